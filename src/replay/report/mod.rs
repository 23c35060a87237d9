//! The report of a replay: plain data that the lake can remember, and the same for programs.

mod page;
mod tables;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::body_shape::LayerId;
use crate::replay::quotes::Quotes;
use crate::replay::savings::{Bounds, Expanded, PaperClaim, PublishedClaim, Savings, Tally, share};
use crate::report::numbers::counted;

pub use page::html;
pub use tables::{figure, reaches, table, write};

/// Everything that a replay of one configuration says.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct ReplayReport {
    pub input: ReplayedInput,
    /// One replay with the published formats, one with the extended ones.
    pub arms: Vec<ReplayArm>,
    /// Id of who runs the pipeline in these replays, and in all figures but those of [`Self::reaches`].
    pub reach: String,
    /// What everybody on the way from tools to the model could do, the widest last.
    pub reaches: Vec<ReachSavings>,
    /// What exact references could save at most.
    pub bounds: Bounds,
    /// What edits and `invalidates` cost: tokens that L0 would have saved besides.
    pub invalidation_tokens: u64,
    /// What the published accounting says about the same logs.
    pub claim: PublishedClaim,
    /// What the published paper says about its own logs.
    pub paper: PaperClaim,
    /// JSON bodies under each baseline, for the responses that missed L0.
    pub json: JsonBaselines,
}

/// What was replayed.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Default)]
pub struct ReplayedInput {
    /// Sessions that a tool gave a text.
    pub sessions: u64,
    /// Contexts in which one did: sessions' threads between compactions.
    pub contexts: u64,
    pub calls: u64,
    /// Of these, without text to send.
    pub silent: u64,
    /// Failed, refused or cancelled: shown as they are.
    pub failures: u64,
    /// Text beside images or documents: shown as it is.
    pub mixed: u64,
    /// Without facts: the log was deleted before it was studied.
    pub unstudied: u64,
    pub bodies: u64,
    /// Ways to write them that were proven by reading them back.
    pub proven: u64,
    /// Ways that were not, and are not used.
    pub unproven: u64,
    /// Bodies too large to be written in other ways.
    pub oversize: u64,
    /// Sessions by the way in which their tokens are counted.
    pub counters: BTreeMap<String, u64>,
    /// Tokens that entered contexts by the usage of the logs (estimated).
    pub context_tokens: u64,
    /// Bodies of at least 200 code points seen before in their log and partition, by the plain definition of
    /// `devboy ingest`: eligible, seen before, among the five most recent.
    pub plain_repeats: [u64; 3],
}

/// One replay.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct ReplayArm {
    pub name: String,
    pub total: Tally,
    /// Later edits that quote what was shown.
    pub quotes: Quotes,
    /// Answers by exact references, near-references, references to lines.
    pub hints: [u64; 3],
    pub expanded: Expanded,
    pub endpoints: Vec<NamedTally>,
    pub shapes: Vec<NamedTally>,
    pub projects: Vec<NamedTally>,
    /// By format of L1 and L2.
    pub formats: Vec<NamedTally>,
    /// Combined savings of the sessions, as shares of 1.
    pub sessions: Option<Distribution>,
}

/// What somebody on the way from tools to the model could save.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct ReachSavings {
    /// Name for programs.
    pub id: String,
    pub name: String,
    /// Tokens of the answers that may be changed.
    pub tokens: u64,
    /// A replay with the published formats; answers out of reach are sent as they are.
    pub published: Tally,
    /// The same with the extended formats.
    pub extended: Tally,
}

/// A tally with its name.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct NamedTally {
    /// Endpoint, shape, project or format.
    pub name: String,
    pub tally: Tally,
}

/// How the combined savings are spread over sessions that have any tool response.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct Distribution {
    pub n: u64,
    pub worst: f64,
    /// 5th percentile (lower element, like all of them).
    pub p5: f64,
    /// 25th percentile.
    pub p25: f64,
    pub p50: f64,
    /// 75th percentile.
    pub p75: f64,
    /// 95th percentile.
    pub p95: f64,
    pub best: f64,
}

/// Sums over the JSON bodies that missed L0.
#[derive(Clone, Copy, Serialize, Deserialize, Debug, PartialEq, Eq, Default)]
pub struct JsonBaselines {
    pub responses: u64,
    /// Tokens as they stand.
    pub raw: u64,
    /// Tokens as compact JSON.
    pub compact: u64,
    /// Tokens as indented JSON.
    pub pretty: u64,
    /// Tokens sent.
    pub sent: u64,
}

impl Distribution {
    /// The distribution of the combined savings of some tallies.
    pub fn of<'t>(tallies: impl Iterator<Item = &'t Tally>) -> Option<Self> {
        let mut shares: Vec<f64> = tallies.filter_map(|tally| tally.savings().combined).collect();
        shares.sort_by(f64::total_cmp);
        let last = shares.len().checked_sub(1)?;
        let at = |share: f64| shares[(share * last as f64) as usize];
        Some(Self {
            n: shares.len() as u64,
            worst: at(0.0),
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            best: at(1.0),
        })
    }
}

impl ReplayReport {
    /// Who runs the pipeline, in words.
    pub fn reach_name(&self) -> &str {
        let chosen = self.reaches.iter().find(|reached| reached.id == self.reach);
        chosen.map_or(&self.reach, |reached| &reached.name)
    }

    /// How tokens were counted, in words.
    pub fn counters(&self) -> String {
        let only = self.input.counters.len() == 1;
        let words = self.input.counters.iter().map(|(name, sessions)| {
            if only { name.clone() } else { format!("{name} ({})", counted(*sessions, "session")) }
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// A tally for JSON: sums, and the three figures in per cent.
pub fn tally_json(tally: &Tally) -> Value {
    let Savings { dedup, encoder, combined } = tally.savings();
    let pct = |share: Option<f64>| share.map(|share| 100.0 * share);
    let layers: serde_json::Map<String, Value> = LayerId::ALL
        .map(|layer| {
            let index = layer as usize;
            let sums = json!({
                "responses": tally.responses[index],
                "baseline_tokens": tally.baseline[index],
                "sent_tokens": tally.sent[index],
                "saved_tokens": tally.saved_by(layer),
            });
            (layer.key().to_owned(), sums)
        })
        .into_iter()
        .collect();
    json!({
        "responses": tally.count(),
        "baseline_tokens": tally.baseline(),
        "sent_tokens": tally.sent(),
        "saved_tokens": tally.saved(),
        "dedup_savings_pct": pct(dedup),
        "encoder_savings_pct": pct(encoder),
        "combined_savings_pct": pct(combined),
        "layers": layers,
    })
}

/// Who could save what, for JSON.
pub fn reaches_json(reaches: &[ReachSavings]) -> Value {
    let whole = |reached: &ReachSavings| reached.published.baseline();
    let row = |reached: &ReachSavings| {
        json!({
            "id": reached.id,
            "name": reached.name,
            "tokens": reached.tokens,
            "tokens_pct": share(reached.tokens, whole(reached)).map(|share| 100.0 * share),
            "published": tally_json(&reached.published),
            "extended": tally_json(&reached.extended),
        })
    };
    reaches.iter().map(row).collect()
}

/// The report for JSON.
pub fn json(report: &ReplayReport) -> Value {
    let groups = |groups: &[NamedTally]| {
        let rows = groups.iter().map(|group| json!({ "name": group.name, "savings": tally_json(&group.tally) }));
        rows.collect::<Vec<_>>()
    };
    let arm = |arm: &ReplayArm| {
        let [exact, near, lines] = arm.hints;
        json!({
            "name": arm.name,
            "savings": tally_json(&arm.total),
            "hints": { "exact": exact, "near": near, "lines": lines },
            "hints_expanded": arm.expanded,
            "later_edits": { "quoting": arm.quotes.edits, "at_risk": arm.quotes.at_risk },
            "endpoints": groups(&arm.endpoints),
            "shapes": groups(&arm.shapes),
            "projects": groups(&arm.projects),
            "formats": groups(&arm.formats),
            "sessions_combined": arm.sessions,
        })
    };
    json!({
        "baseline": "raw",
        "tokens": report.counters(),
        "basis": "replayed",
        "input": report.input,
        "reach": report.reach,
        "reaches": reaches_json(&report.reaches),
        "arms": report.arms.iter().map(arm).collect::<Vec<_>>(),
        "bounds": report.bounds,
        "invalidation_tokens": report.invalidation_tokens,
        "published_claim": report.claim,
        "paper_claim": report.paper,
        "json_baselines": report.json,
    })
}
