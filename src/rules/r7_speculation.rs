//! R7: no longer prefetch for tools whose prefetches go unused, and switch the planner on where they are used.

use serde::Deserialize;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::frames::fingerprint::{ToolCosts, UnrecordedPlans};
use crate::rules::prefetching::switch;
use crate::rules::responses::{EVERYTHING, RecordedSubject, if_sampled};
use crate::rules::tool_keys::{TOOLS, of_new_block};
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::finding::{Basis, Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "R7",
    file: "r7_speculation",
    summary: "Stops prefetches that go unused, tool by tool, and switches the planner on where they are used.",
    speaks: Speaks::AutoEnrichment,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    prefetches_min: u64,
    tool_share_min: f64,
    global_share_min: f64,
}

/// The findings, one line for each tool that is no longer prefetched and one for the whole: the published words, then what
/// becomes of the file.
pub fn lines(findings: &[Finding]) -> Vec<String> {
    let own = findings.iter().filter(|finding| finding.rule == RULE.id);
    own.filter_map(|finding| Some(format!("{}{FOR_THE_FILE}{}", line(finding)?, meant(finding)))).collect()
}

/// What stands between the published words and what they mean.
pub(crate) const FOR_THE_FILE: &str = "; for the file: ";

fn meant(finding: &Finding) -> &'static str {
    match (&finding.verdict, finding.subject == EVERYTHING) {
        (Verdict::Propose(_), true) => "the planner is switched on",
        (Verdict::Propose(_), false) => "this tool is not fetched ahead any more",
        (Verdict::Hold(_), true) => "the planner stays as it is, on or off",
        (Verdict::Hold(_), false) => "nothing changes for this tool",
        _ => "nothing changes",
    }
}

fn line(finding: &Finding) -> Option<String> {
    let Finding { subject, verdict, evidence, .. } = finding;
    let rates = evidence.counts.lines().next().unwrap_or_default();
    match verdict {
        _ if evidence.basis == Basis::Shipped => None,
        Verdict::Propose(delta) if subject == EVERYTHING => {
            Some(format!("R7 enabled: {} = true  ({rates})", delta.key))
        }
        Verdict::Propose(_) => Some(format!("R7 disabled: [tools.\"{subject}\"].speculate = false  ({rates})")),
        Verdict::Hold(reason) if subject == EVERYTHING => Some(format!("R7 hold: {reason}")),
        Verdict::Hold(reason) => Some(format!("R7 hold: [tools.\"{subject}\"] {reason}  ({rates})")),
        Verdict::Skip(reason) if reason.starts_with(ENABLED) => Some(format!("R7 ok: {reason}")),
        Verdict::Skip(reason) if subject == EVERYTHING => Some(format!("R7 skip: {reason}")),
        Verdict::Wait { .. } | Verdict::TakenBack { .. } | Verdict::Skip(_) | Verdict::Hint(_) => None,
    }
}

/// How the reason begins if the planner is on (published words).
const ENABLED: &str = "enrichment already enabled";
/// What judges prefetches.
const ANNOTATE: &str = "`devboy annotate`";

/// Responses prefetched.
#[derive(Clone, Copy, Default)]
struct Prefetches {
    all: u64,
    judged: u64,
    used: u64,
    raced: u64,
    won: u64,
    /// What those that were judged or timed stand for beyond themselves, and those that were used or won.
    unrecorded: UnrecordedPlans,
}

adds_up!(Prefetches: all, judged, used, raced, won, unrecorded);

impl Prefetches {
    fn of(seen: &ToolCosts) -> Self {
        let ToolCosts { prefetches: all, prefetches_judged: judged, prefetches_cited: used, unrecorded, .. } = *seen;
        let ToolCosts { prefetches_raced: raced, prefetches_won: won, .. } = *seen;
        Self { all, judged, used, raced, won, unrecorded }
    }

    /// Why they did not pay, as far as somebody timed them: no more calls were spared than ran for nothing, or twice. Also of
    /// one that was used the agent's own call ran, if it came too late.
    fn loss(&self) -> Option<String> {
        let Self { raced, won, unrecorded, .. } = *self;
        let net = 2.0 * (won as f64 + unrecorded.won) - (raced as f64 + unrecorded.raced);
        let lost = raced - won;
        (raced > 0 && net <= 0.0).then(|| {
            format!("of {raced} prefetches that were timed {won} spared a call, {lost} ran for nothing or twice")
        })
    }

    /// The share that was used, weighted.
    fn rate(&self) -> f64 {
        let all = self.judged as f64 + self.unrecorded.judged;
        (self.used as f64 + self.unrecorded.cited) / all.max(1.0)
    }

    fn share(&self) -> Share {
        Share::new(self.used, self.judged)
    }

    /// "12 prefetches", or how many of them were judged and what judges the others.
    fn words(&self) -> String {
        if self.judged == self.all {
            return format!("{} prefetches", self.all);
        }
        format!("{} of {} prefetches judged, {ANNOTATE} judges the others", self.judged, self.all)
    }

    /// "hit_rate 25.0% < 50%"
    fn rate_words(&self, least: f64) -> String {
        let share = self.rate();
        let sign = if share < least { '<' } else { '≥' };
        format!("hit_rate {:.1}% {sign} {:.0}%", 100.0 * share, 100.0 * least)
    }

    /// The evidence; its first line holds the published figures, and the last one the share.
    fn evidence(&self, sheet: &RuleThresholds, key: &str, least: f64) -> Evidence {
        let rates = format!("{}, {}", self.words(), self.rate_words(least));
        let weighted = if_sampled(self.unrecorded.judged, self.rate());
        let counts = format!("{rates}\n{} of {} judged prefetches were used{weighted}", self.used, self.judged);
        Evidence::of(counts, self.judged).with_share(self.share()).by(sheet.cite(key))
    }
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let fetched: Vec<&ToolCosts> = facts.observed.tools.iter().filter(|seen| seen.prefetches > 0).collect();
    let judge = SpeculationJudge { facts, sheet, thresholds: &thresholds };
    let mut findings: Vec<Finding> = fetched.iter().map(|seen| judge.tool(seen)).collect();
    findings.extend(judge.whole(&fetched));
    Ok(findings)
}

struct SpeculationJudge<'a> {
    facts: &'a RuleFacts<'a>,
    sheet: &'a RuleThresholds,
    thresholds: &'a Thresholds,
}

impl SpeculationJudge<'_> {
    /// Whether too few of a tool's prefetches were used.
    fn is_unused(&self, prefetches: Prefetches) -> bool {
        prefetches.judged >= self.thresholds.prefetches_min && prefetches.rate() < self.thresholds.tool_share_min
    }

    fn tool(&self, seen: &ToolCosts) -> Finding {
        let recorded = RecordedSubject::of_tool(seen);
        let prefetches = Prefetches::of(seen);
        let evidence = prefetches.evidence(self.sheet, "tool_share_min", self.thresholds.tool_share_min);
        let finding = |verdict| Finding::new(RULE.id, recorded.name(), verdict, evidence.clone());
        if prefetches.judged < self.thresholds.prefetches_min {
            let reason = format!("too few judged prefetches ({})", self.sheet.cite("prefetches_min"));
            return finding(Verdict::Skip(reason));
        }
        if !self.is_unused(prefetches) {
            return finding(Verdict::Skip("used often enough; it stays as it is".to_owned()));
        }
        if let Some(verdict) = recorded.unnamed() {
            return finding(verdict);
        }
        self.forbid(recorded.name(), &finding)
    }

    /// Forbids speculation for a tool.
    fn forbid(&self, name: &str, finding: &dyn Fn(Verdict) -> Finding) -> Finding {
        let block = KeyPath::from([TOOLS, name]);
        let annotation = match of_new_block(self.facts, name) {
            Ok(annotation) => annotation,
            Err(reason) => return finding(Verdict::Hold(format!("{reason}; give it one with `speculate = false`"))),
        };
        if annotation.as_ref().is_some_and(|annotation| annotation.model.speculate == Some(false)) {
            return finding(Verdict::Skip("its shipped annotation forbids it already".to_owned()));
        }
        finding(self.facts.wants(block.child("speculate"), false.into()))
    }

    /// Whether the planner should run at all; nothing to say where nothing was prefetched.
    fn whole(&self, fetched: &[&ToolCosts]) -> Option<Finding> {
        let of_tools = || fetched.iter().map(|seen| Prefetches::of(seen));
        let all = of_tools().reduce(|sum, one| sum + one)?;
        let least = self.thresholds.global_share_min;
        let verdict = if all.judged < self.thresholds.prefetches_min {
            Verdict::Skip(self.too_few(all))
        } else if of_tools().any(|prefetches| self.is_unused(prefetches)) {
            let unused = fetched.iter().filter(|seen| self.is_unused(Prefetches::of(seen)));
            let names: Vec<&str> = unused.map(|seen| RecordedSubject::of_tool(seen).name()).collect();
            Verdict::Hold(format!("per-tool disables active: {} ({})", names.join(", "), all.words()))
        } else if all.rate() < least {
            Verdict::Hold(format!("global {} ({})", all.rate_words(least), all.words()))
        } else {
            match (self.facts.wants(switch(), true.into()), all.loss()) {
                (Verdict::Propose(_), Some(loss)) => Verdict::Hold(loss),
                (Verdict::Skip(_), _) => {
                    Verdict::Skip(format!("{ENABLED} ({}, {})", all.words(), all.rate_words(least)))
                }
                (wanted, _) => wanted,
            }
        };
        Some(Finding::new(RULE.id, EVERYTHING, verdict, all.evidence(self.sheet, "global_share_min", least)))
    }

    fn too_few(&self, all: Prefetches) -> String {
        let need = self.thresholds.prefetches_min;
        if all.judged == all.all {
            return format!("only {} prefetches recorded (need ≥ {need})", all.all);
        }
        format!("only {} of {} prefetches judged (need ≥ {need}; {ANNOTATE} judges them)", all.judged, all.all)
    }
}
