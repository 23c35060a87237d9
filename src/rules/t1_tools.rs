//! T1: value models of the tools that were used: sizes, latencies and follow-ups from the logs. What the shipped annotation
//! says besides is added where a block is new.

use std::collections::BTreeMap;

use toml_edit::Value;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::names::Sym;
use crate::base::numbers::counted;
use crate::base::significance::benjamini_hochberg;
use crate::base::stats::{FollowUpCount, Share, ToolStats};
use crate::frames::projection::MinedProjection;
use crate::mine::follow_ups::bounds::LinkNumbers;
use crate::rules::statistics::{FOLLOW_UPS, LARGEST, TYPICAL};
use crate::rules::tool_keys::{kib, kib_at_least, link_list, link_words, of_new_block, rounded_down, strongest_lag};
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::annotations::{Annotation, is_plain_name};
use crate::settings::finding::{Evidence, Finding, Verdict};
use crate::settings::tool_model::FollowUp;

/// The rule.
pub static RULE: Rule = Rule {
    id: "T1",
    file: "t1_tools",
    summary: "Writes a `[tools.<name>]` value model for every tool with which prefetching pays (`--tools`).",
    speaks: Speaks::LogsWithTools,
    judge,
};

/// The numbers of its sheet.
pub fn link_numbers(data: &Data) -> Result<LinkNumbers> {
    RuleThresholds::of(RULE.file, data)?.thresholds()
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: LinkNumbers = sheet.thresholds()?;
    let mut tools: Vec<&ToolStats> = facts.tools.iter().collect();
    tools.sort_by_key(|stats| facts.names.text(stats.tool));
    let mut findings = Vec::new();
    let chances = chances(facts.follow_ups, &thresholds);
    for stats in tools {
        let name = facts.names.text(stats.tool);
        let annotation = facts.annotations.of(name);
        let thresholds = &thresholds;
        ToolJudge { facts, sheet, thresholds, chances: &chances, stats, name, annotation, findings: &mut findings }
            .run();
    }
    Ok(findings)
}

/// Of every edge that occurs in enough sessions, by its tools and lag, how likely it is chance, over all of them.
fn chances(edges: &[FollowUpCount], thresholds: &LinkNumbers) -> ChanceByLag {
    let often: Vec<&FollowUpCount> = edges.iter().filter(|edge| edge.sessions >= thresholds.sessions_min).collect();
    let p: Vec<f64> = often.iter().map(|edge| edge.p_of_chance()).collect();
    often.into_iter().map(|edge| (edge.from, edge.to, edge.lag)).zip(benjamini_hochberg(&p)).collect()
}

type ChanceByLag = BTreeMap<(Sym, Sym, u32), f64>;

struct ToolJudge<'a> {
    facts: &'a RuleFacts<'a>,
    sheet: &'a RuleThresholds,
    thresholds: &'a LinkNumbers,
    chances: &'a ChanceByLag,
    stats: &'a ToolStats,
    name: &'a str,
    annotation: Option<Annotation>,
    findings: &'a mut Vec<Finding>,
}

impl ToolJudge<'_> {
    fn run(mut self) {
        if !is_plain_name(self.name) {
            return self.conclude(Verdict::Skip("the name cannot stand in a configuration".into()), self.seen());
        }
        if self.stats.ran < self.thresholds.calls_min {
            let shipped =
                if self.annotation.is_some() { "its shipped annotation stays" } else { "no annotation is shipped" };
            let reason = format!("seen too rarely ({}); {shipped}", self.sheet.cite("calls_min"));
            return self.conclude(Verdict::Skip(reason), self.seen());
        }
        if let Err(reason) = of_new_block(self.facts, self.name) {
            return self.conclude(Verdict::Hold(reason), self.seen());
        }
        self.costs();
        self.links();
    }

    fn conclude(&mut self, verdict: Verdict, evidence: Evidence) {
        self.findings.push(Finding::new(RULE.id, self.name, verdict, evidence));
    }

    /// Proposes a value for a key of the tool, unless a person wrote one.
    fn propose(&mut self, field: &[&str], to: Value, evidence: Evidence) {
        let key = field.iter().fold(KeyPath::from(["tools", self.name]), |key, segment| key.child(*segment));
        self.conclude(self.facts.fills(key, to), evidence);
    }

    /// Proposes a value that stands on a statistic, unless that did not hold on later sessions.
    fn propose_proven(&mut self, statistic: &str, field: &[&str], to: Value, evidence: Evidence) {
        match self.facts.broken(statistic) {
            Some(reason) => self.conclude(Verdict::Hold(reason), evidence),
            None => self.propose(field, to, evidence),
        }
    }

    /// How often the tool was seen, whatever became of it.
    fn seen(&self) -> Evidence {
        let ToolStats { calls, sessions, ran, .. } = *self.stats;
        Evidence::of(
            format!("{} in {}, {ran} with a result", counted(calls, "call"), counted(sessions, "session")),
            ran,
        )
    }

    fn costs(&mut self) {
        let stats = self.stats;
        if stats.sized < stats.ran {
            let counts = format!("{} of {} results are images or references", stats.ran - stats.sized, stats.ran);
            let evidence = Evidence::of(counts, stats.ran);
            self.conclude(Verdict::Skip("results without text have no text size".into()), evidence);
        }
        if stats.sized >= self.thresholds.calls_min {
            let sizes = |what: &str, bytes: u64| {
                Evidence::of(format!("{what} of {} results is {bytes} bytes", stats.sized), stats.sized)
                    .by(self.sheet.cite("calls_min"))
            };
            let (p50, p99) = (sizes("median", stats.bytes_p50), sizes("99th percentile", stats.bytes_p99));
            let (typical, largest) = (kib(stats.bytes_p50 as f64), kib_at_least(stats.bytes_p99 as f64));
            self.propose_proven(TYPICAL, &["cost_model", "typical_kb"], typical.into(), p50);
            self.propose_proven(LARGEST, &["cost_model", "max_kb"], largest.into(), p99);
        }
        if stats.timed >= self.thresholds.calls_min {
            let counts = format!("median of {} timed calls, waits for permission included", stats.timed);
            let evidence = Evidence::of(counts, stats.timed).by(self.sheet.cite("calls_min"));
            self.propose(&["cost_model", "latency_ms_p50"], (stats.latency_ms_p50 as i64).into(), evidence);
        }
    }

    fn links(&mut self) {
        let edges: Vec<&FollowUpCount> =
            self.facts.follow_ups.iter().filter(|edge| edge.from == self.stats.tool).collect();
        let steps = edges.first().map_or(0, |edge| edge.trials);
        if steps < self.thresholds.steps_min {
            return;
        }
        let sure = |edge: &FollowUpCount| self.chance(edge) <= self.thresholds.q_max;
        let often: Vec<&FollowUpCount> =
            edges.into_iter().filter(|edge| edge.sessions >= self.thresholds.sessions_min && sure(edge)).collect();
        let mut best: Vec<(FollowUp, &FollowUpCount, Share)> =
            strongest_lags(&often).filter_map(|(edge, share)| self.link(edge, share)).collect();
        best.sort_by(|(a, _, x), (b, _, y)| y.lower.total_cmp(&x.lower).then_with(|| a.tool.cmp(&b.tool)));
        best.truncate(self.thresholds.links_max);
        if best.is_empty() {
            let cited = ["probability_min", "q_max"].map(|name| self.sheet.cite(name)).join(", ");
            let reason = format!("no follow-up whose call could be made ahead is certain enough ({cited})");
            let evidence = Evidence::of(format!("{steps} steps"), steps);
            return self.conclude(Verdict::Skip(reason), evidence);
        }
        let told = |(link, edge, share): &(FollowUp, &FollowUpCount, Share)| {
            let base = 100.0 * edge.chance.expected / edge.trials.max(1) as f64;
            let words = link_words(&link.tool, share, &format!("lag {}", edge.lag));
            let projection = self.projection_words(link).map(|words| format!("\n  {words}")).unwrap_or_default();
            format!("{words}; in any order {base:.1} %, q {}{projection}", in_short(self.chance(edge)))
        };
        let evidence = Evidence::of(best.iter().map(told).collect::<Vec<_>>().join("\n"), steps)
            .by(self.sheet.cite("probability_min"));
        let links: Vec<FollowUp> = best.into_iter().map(|(link, _, _)| link).collect();
        self.propose_proven(FOLLOW_UPS, &["follow_up"], link_list(&links), evidence);
    }

    /// How likely an edge is chance; 1 where that was not asked.
    fn chance(&self, edge: &FollowUpCount) -> f64 {
        self.chances.get(&(edge.from, edge.to, edge.lag)).copied().unwrap_or(1.0)
    }

    /// The link of an edge that is certain enough, with the mined projection of the pair, else the shipped one.
    fn link<'e>(&self, edge: &'e FollowUpCount, share: Share) -> Option<(FollowUp, &'e FollowUpCount, Share)> {
        let tool = self.facts.names.text(edge.to);
        let wanted = share.lower >= self.thresholds.probability_min && is_plain_name(tool);
        let shipped = self.annotation.iter().flat_map(|a| &a.model.follow_up).find(|link| link.tool == tool);
        let shipped = shipped.map(|link| (link.projection.clone(), link.projection_arg.clone()));
        let mined = self.mined(tool).and_then(|row| row.spelling.clone());
        let mined = mined.map(|link| (Some(link.projection), Some(link.projection_arg)));
        let (projection, projection_arg) = mined.or(shipped).unwrap_or_default();
        let link =
            FollowUp { tool: tool.to_owned(), probability: rounded_down(share.lower), projection, projection_arg };
        (wanted && self.can_run(&link)).then_some((link, edge, share))
    }

    /// Whether a link supplies all that its call needs. Without a projection it supplies nothing.
    fn can_run(&self, link: &FollowUp) -> bool {
        let argument = self.facts.projecting.argument(self.name, link);
        argument.is_some_and(|argument| self.facts.runnable.can_run(&link.tool, argument))
    }

    /// The mined projection onto a tool that names its argument best.
    fn mined(&self, to: &str) -> Option<&MinedProjection> {
        let links = self.facts.projections.iter().filter(|row| row.held.is_none() && row.spelling.is_some());
        let here = links.filter(|row| row.from == self.name && row.to == to);
        here.max_by(|a, b| (a.top3, a.hits).cmp(&(b.top3, b.hits)).then_with(|| b.extractor.cmp(&a.extractor)))
    }

    /// Where the projection of a link comes from.
    fn projection_words(&self, link: &FollowUp) -> Option<String> {
        let projection = link.projection.as_ref()?;
        Some(match self.mined(&link.tool) {
            Some(row) => format!("projection `{projection}` mined: {}", row.counts()),
            None => format!("projection `{projection}` shipped, kept: not enough data"),
        })
    }
}

/// A small probability in few digits.
fn in_short(q: f64) -> String {
    if q < 0.001 { "< 0.001".to_owned() } else { format!("{q:.3}") }
}

/// Per following tool, its strongest lag.
fn strongest_lags<'e>(edges: &[&'e FollowUpCount]) -> impl Iterator<Item = (&'e FollowUpCount, Share)> {
    let mut pairs: BTreeMap<Sym, Vec<&FollowUpCount>> = BTreeMap::new();
    for edge in edges {
        pairs.entry(edge.to).or_default().push(edge);
    }
    pairs.into_values().filter_map(strongest_lag)
}
