//! The report of a replay for programs.

use serde_json::{Value, json};

use crate::base::body_shape::LayerId;
use crate::replay::report::{NamedTally, ReachSavings, ReplayArm, ReplayReport};
use crate::replay::savings::{Savings, Tally, share};

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
