//! R6: what the planner believes about tools, brought up to date with what was recorded.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml_edit::{Array, InlineTable, Value};

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::names::Sym;
use crate::base::numbers::counted;
use crate::base::stats::{FollowUpCount, Share};
use crate::frames::fingerprint::ToolCosts;
use crate::rules::responses::{RecordedSubject, if_sampled};
use crate::rules::statistics::{FOLLOW_UPS, LARGEST, TYPICAL};
use crate::rules::tool_keys::{
    TOOLS, kib, kib_at_least, line_each, link_list, link_words, of_new_block, rounded_down, strongest_lag,
};
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::annotations::Annotation;
use crate::settings::finding::{Delta, Evidence, Finding, Verdict};
use crate::settings::tool_model::FollowUp;

/// The rule.
pub static RULE: Rule = Rule {
    id: "R6",
    file: "r6_cost_models",
    summary: "Refreshes sizes and follow-up probabilities of `[tools.<name>]`, and flags tools whose prefetches go unused.",
    speaks: Speaks::Events,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    calls_min: f64,
    predictions_min: u64,
    overrun_share_max: f64,
    overrun_ratio: f64,
    drift_min: f64,
    steps_min: u64,
    sessions_min: u64,
    probability_min: f64,
    prefetches_min: u64,
    hit_share_min: f64,
}

impl Thresholds {
    /// Whether a value is so near to the new one that the difference means nothing.
    fn is_near(&self, held: f64, new: f64) -> bool {
        (held - new).abs() <= self.drift_min * new
    }
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let tool = |seen| CostModelJudge {
        facts,
        sheet,
        thresholds: &thresholds,
        seen,
        recorded: RecordedSubject::of_tool(seen),
        findings: Vec::new(),
    };
    Ok(facts.observed.tools.iter().flat_map(|seen| tool(seen).run()).collect())
}

/// The judgement of one tool.
struct CostModelJudge<'a> {
    facts: &'a RuleFacts<'a>,
    sheet: &'a RuleThresholds,
    thresholds: &'a Thresholds,
    seen: &'a ToolCosts,
    recorded: RecordedSubject<'a>,
    findings: Vec<Finding>,
}

impl CostModelJudge<'_> {
    fn run(mut self) -> Vec<Finding> {
        self.hits();
        let too_few = || Verdict::Skip(format!("too few responses ({})", self.sheet.cite("calls_min")));
        let few = (self.seen.calls < self.thresholds.calls_min).then(too_few);
        match few.or_else(|| self.recorded.unnamed()) {
            Some(verdict) => self.conclude(verdict, self.seen()),
            None => self.tool(self.recorded.name()),
        }
        self.findings
    }

    fn conclude(&mut self, verdict: Verdict, evidence: Evidence) {
        self.findings.push(Finding::new(RULE.id, self.recorded.name(), verdict, evidence));
    }

    fn seen(&self) -> Evidence {
        self.recorded.evidence(&counted(self.seen.events, "response"))
    }

    /// Flags a tool whose prefetches are used too seldom.
    fn hits(&mut self) {
        let ToolCosts { prefetches_judged, prefetches_cited, .. } = *self.seen;
        let share = Share::new(prefetches_cited, prefetches_judged);
        if prefetches_judged < self.thresholds.prefetches_min
            || self.seen.cited_share() >= self.thresholds.hit_share_min
        {
            return;
        }
        let weighted = if_sampled(self.seen.unrecorded.judged, self.seen.cited_share());
        let counts = format!("{prefetches_cited} of {prefetches_judged} responses prefetched were used{weighted}");
        let cite = self.sheet.cite("hit_share_min");
        let evidence = Evidence::of(counts, prefetches_judged).with_share(share).by(cite);
        let reason = "tighten: its `cost_model` and the `follow_up` links to it promise more than it keeps";
        self.conclude(Verdict::Hold(reason.to_owned()), evidence);
    }

    fn tool(&mut self, name: &str) {
        let block = KeyPath::from([TOOLS, name]);
        let annotation = match of_new_block(self.facts, name) {
            Ok(annotation) => annotation,
            Err(reason) => return self.conclude(Verdict::Hold(reason), self.seen()),
        };
        self.sizes(&block.child("cost_model"));
        self.links(name, &block.child("follow_up"), annotation.as_ref());
    }

    fn sizes(&mut self, costs: &KeyPath) {
        let ToolCosts { events, bytes_p50, bytes_p85, bytes_p99, predictions, overruns, .. } = *self.seen;
        let ratio = self.thresholds.overrun_ratio;
        let sizes = |what: &str, bytes: u64| Evidence {
            threshold: Some(self.sheet.cite("calls_min")),
            ..self.recorded.evidence(&format!("the {what} of {events} responses is {bytes} bytes"))
        };
        let (key, median) = (costs.child("typical_kb"), bytes_p50 as f64);
        // So large that few enough responses overrun it, and that no more than half are larger.
        let bounding = (bytes_p85 as f64 / ratio).max(median);
        // What bounds them now stays: predicting the median again would bring the overruns back.
        let bounds = |held| self.thresholds.is_near(held, kib(bounding));
        let is_overrun = self.seen.overrun_share() > self.thresholds.overrun_share_max
            || self.facts.current.number(&key).is_some_and(bounds);
        let (typical, why) = if predictions >= self.thresholds.predictions_min && is_overrun {
            let mut why =
                if bounding > median { sizes("85th percentile", bytes_p85) } else { sizes("median", bytes_p50) };
            let divided = if bounding > median { format!(", divided by {ratio}") } else { String::new() };
            let weighted = if_sampled(self.seen.unrecorded.predictions, self.seen.overrun_share());
            why.counts += &format!(
                "{divided}\n{overruns} of {predictions} predictions were met with {:.0} % or more{weighted}",
                100.0 * ratio
            );
            why.share = Some(Share::new(overruns, predictions));
            why.threshold = Some(self.sheet.cite("overrun_share_max"));
            (bounding, why)
        } else {
            (median, sizes("median", bytes_p50))
        };
        let largest = sizes("99th percentile", bytes_p99);
        self.refresh(TYPICAL, key, kib(typical), why);
        self.refresh(LARGEST, costs.child("max_kb"), kib_at_least(bytes_p99 as f64), largest);
    }

    /// Proposes a size unless the one that holds is near enough, or such sizes did not hold on later sessions.
    fn refresh(&mut self, statistic: &str, key: KeyPath, to: f64, evidence: Evidence) {
        let from = self.facts.current.value(&key);
        if let Some(reason) = self.facts.broken(statistic) {
            return self.conclude(Verdict::Hold(reason), evidence);
        }
        let verdict = match self.facts.current.number(&key) {
            Some(held) if self.thresholds.is_near(held, to) => {
                Verdict::Skip(format!("`{key}` is {held}, near enough to {to} ({})", self.sheet.cite("drift_min")))
            }
            _ => Verdict::Propose(Delta { key, from, to: to.into() }),
        };
        self.conclude(verdict, evidence);
    }

    /// Brings the links that stand in the configuration, or in the annotation of a new block, up to date.
    fn links(&mut self, tool: &str, key: &KeyPath, annotation: Option<&Annotation>) {
        let from = self.facts.current.value(key);
        let of_annotation = annotation.map(|annotation| link_list(&annotation.model.follow_up));
        let Some(Value::Array(list)) = from.as_ref().or(of_annotation.as_ref()).filter(|list| !is_empty(list)) else {
            return;
        };
        let links = self.judged(tool, list);
        let measured = Evidence::of(links.words.join("\n"), links.steps);
        if !links.refreshed && !links.removed {
            let reason = format!("`{key}` agrees with what was recorded, as far as it goes");
            return self.conclude(Verdict::Skip(reason), measured);
        }
        let threshold = if links.removed { "probability_min" } else { "drift_min" };
        let evidence = measured.by(self.sheet.cite(threshold));
        let to = line_each(links.tables.into_iter());
        let broken = self.facts.broken(FOLLOW_UPS).map(Verdict::Hold);
        self.conclude(broken.unwrap_or(Verdict::Propose(Delta { key: key.clone(), from, to })), evidence);
    }

    /// Holds every link of a list against the follow-ups of the tool.
    fn judged(&self, tool: &str, list: &Array) -> Links {
        let observed = self.facts.observed;
        let is = |sym: Sym, name: &str| observed.names.get(sym.0 as usize).is_some_and(|text| text == name);
        let edges: Vec<&FollowUpCount> = observed.follow_ups.iter().filter(|edge| is(edge.from, tool)).collect();
        let mut links = Links { steps: edges.iter().map(|edge| edge.trials).max().unwrap_or(0), ..Links::default() };
        for table in list.iter().filter_map(Value::as_inline_table) {
            let mut table = table.clone();
            let Ok(link) = FollowUp::deserialize(Value::InlineTable(table.clone()).into_deserializer()) else {
                links.tables.push(table);
                continue;
            };
            let to: Vec<&FollowUpCount> = edges.iter().filter(|edge| is(edge.to, &link.tool)).copied().collect();
            let (fate, words) = self.fate(&link, &to, links.steps);
            match fate {
                LinkFate::Kept => links.words.push(format!("{words}: {} stays", link.probability)),
                LinkFate::Refreshed(to) => {
                    links.words.push(format!("{words}: {} → {to}", link.probability));
                    links.refreshed = true;
                    table.insert("probability", to.into());
                }
                LinkFate::Removed => {
                    links.words.push(format!("{words}: removed"));
                    links.removed = true;
                    continue;
                }
            }
            links.tables.push(table);
        }
        links
    }

    /// What becomes of a link, by the follow-ups to its tool of all steps with the tool that has it; and the counts.
    fn fate(&self, link: &FollowUp, edges: &[&FollowUpCount], steps: u64) -> (LinkFate, String) {
        let thresholds = self.thresholds;
        if steps < thresholds.steps_min {
            return (LinkFate::Kept, format!("{} after {steps} steps, too few to judge", link.tool));
        }
        let (share, lag, sessions) = match strongest_lag(edges.iter().copied()) {
            Some((edge, share)) => (share, format!("lag {}", edge.lag), edge.sessions),
            None => (Share::new(0, steps), "any lag".to_owned(), 0),
        };
        let new = rounded_down(share.lower);
        let outside = !(share.lower..=share.upper).contains(&link.probability);
        let fate = if share.upper < thresholds.probability_min {
            LinkFate::Removed
        } else if sessions >= thresholds.sessions_min && outside && !thresholds.is_near(link.probability, new) {
            LinkFate::Refreshed(new)
        } else {
            LinkFate::Kept
        };
        (fate, link_words(&link.tool, &share, &lag))
    }
}

/// What becomes of a link.
enum LinkFate {
    Kept,
    /// With this probability.
    Refreshed(f64),
    Removed,
}

/// Links as they should be.
#[derive(Default)]
struct Links {
    tables: Vec<InlineTable>,
    /// One line for each link that was there.
    words: Vec<String>,
    steps: u64,
    refreshed: bool,
    removed: bool,
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Array::is_empty)
}
