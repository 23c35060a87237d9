//! The gate of what the planner reads: a value model is written where prefetching with it pays on sessions that it was not
//! mined on. And the gate of R6: refreshed numbers are written if the planner runs and does better with them on the later
//! sessions.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toml_edit::{Array, Value};

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::saturated;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::plan::ExpectedCost;
use crate::report::numbers::{counted, percent, thousands};
use crate::rules::proposal::Proposal;
use crate::rules::responses::{ResponseOrigin, Responses};
use crate::rules::tool_keys::TOOLS;
use crate::rules::{Rule, r6_cost_models, r7_speculation, t1_tools};
use crate::settings::finding::{Delta, Evidence, Finding, Verdict};
use crate::settings::tool_model::CostModel;
use crate::settings::{SettingsFile, View};
use crate::telemetry::log::{EventLog, RecordedPlan, foreseeable_tokens};

/// What calls ahead have to reach.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct PrefetchBars {
    /// Share that has to be asked for.
    pub hit_min: f64,
    /// Share of the known answers that may be larger than foreseen by a third.
    pub overrun_max: f64,
}

/// What calls that were made ahead came to.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct Fetched {
    /// Calls made ahead.
    pub sent: u64,
    /// Of these, asked for with exactly these arguments within three calls.
    pub exact: u64,
    /// Of [`Self::sent`], asked for then or later and there in time, so that the agent's own call need not run.
    pub won: u64,
    /// Both ends of the 95 % interval of [`Self::net`] over sessions.
    pub net_95: Option<(f64, f64)>,
    /// Calls made ahead whose answer is known, and of these those that were larger than foreseen by a third.
    pub overruns: (u64, u64),
}

impl Fetched {
    /// Calls spared less calls that ran for nothing, or twice.
    pub fn net(&self) -> i64 {
        2 * self.won as i64 - self.sent as i64
    }

    /// Why it does not pay; none if it does, beyond its own error.
    pub fn why_not(&self, bars: &PrefetchBars) -> Option<String> {
        let Self { sent, exact, won, overruns: (over, known), .. } = *self;
        if sent == 0 {
            return Some("no effect: nothing would be called ahead on the later sessions".to_owned());
        }
        let hits = exact as f64 / sent as f64;
        let counts = format!(
            "{} of {} calls ahead were asked for within three calls ({}), {} spared a call then or later, {} for nothing",
            thousands(exact),
            thousands(sent),
            percent(hits),
            thousands(won),
            thousands(sent - won)
        );
        if hits < bars.hit_min || self.net() < 0 {
            return Some(format!("loses: {counts}; {} is the least", percent(bars.hit_min)));
        }
        if over as f64 > bars.overrun_max * known as f64 {
            let most = percent(bars.overrun_max);
            return Some(format!(
                "loses sight of its budget: {} of {} known results were larger than foreseen by a third; {most} is the most",
                thousands(over),
                thousands(known)
            ));
        }
        let lower = self.net_95.map_or(0.0, |(lower, _)| lower);
        (lower <= 0.0).then(|| format!("no effect beyond its error: {counts}"))
    }
}

/// What became of mined links on the sessions behind those that they were mined on.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Prefetching {
    /// Sessions that links were mined on.
    pub mined_on: u64,
    pub judged_on: u64,
    /// Fewer of them judge nothing.
    pub judged_min: u64,
    /// What the calls made ahead have to reach.
    pub bars: PrefetchBars,
    /// Calls of the judged sessions.
    pub calls: u64,
    /// Of these, named by an earlier answer of their context: no planner spares more.
    pub reachable: u64,
    /// By the tool that answered and the one called ahead, each link on its own.
    pub links: BTreeMap<String, BTreeMap<String, Fetched>>,
    /// All mined links.
    pub all: Fetched,
    /// The file as it would be with those that pay on their own; what stands in it stays.
    pub paying: Fetched,
    /// The configuration as it is, if it prefetches.
    pub configured: Option<Fetched>,
}

impl Prefetching {
    /// Why a link is not written; none if it is.
    pub fn why_not(&self, from: &str, to: &str) -> Option<String> {
        if self.judged_on < self.judged_min {
            return Some(format!("needs {} later sessions to judge, has {}", self.judged_min, self.judged_on));
        }
        let Some(fetched) = self.links.get(from).and_then(|links| links.get(to)) else {
            return Some("the earlier sessions do not have it, so that the later ones cannot judge it".to_owned());
        };
        let alone = fetched.why_not(&self.bars);
        alone.or_else(|| {
            self.paying.why_not(&self.bars).map(|why| format!("beside the others and what stands in the file: {why}"))
        })
    }

    /// Whether prefetching is worth it with what is written.
    pub fn is_worth_it(&self) -> bool {
        self.judged_on >= self.judged_min && self.paying.why_not(&self.bars).is_none()
    }

    /// What prefetching would bring at best, in a line.
    pub fn line(&self) -> String {
        let least = self.judged_min;
        if self.judged_on < least {
            return format!("prefetching: not proposed; needs {least} later sessions to judge, has {}", self.judged_on);
        }
        let worth = if self.is_worth_it() { "worth it" } else { "not worth it" };
        let told = if self.is_worth_it() { self.paying } else { self.all };
        format!(
            "prefetching could spare at best {} of {} calls of {}, at any later step; the links learned from earlier sessions \
             would spare {}, with {} calls made ahead, {} of them for nothing: {worth}",
            thousands(self.reachable),
            thousands(self.calls),
            counted(self.judged_on, "later session"),
            thousands(told.won),
            thousands(told.sent),
            thousands(told.sent - told.won),
        )
    }

    /// What is spared where prefetching is switched on, for the first line of the configuration.
    pub fn spared(&self) -> String {
        let Fetched { won, sent, .. } = self.paying;
        let [won, calls, wasted] = [won, self.calls, sent - won].map(thousands);
        let later = counted(self.judged_on, "later session");
        format!("prefetching spares {won} of {calls} calls of {later}, with {wasted} calls made for nothing")
    }

    fn evidence(&self) -> Evidence {
        Evidence::of(self.line(), self.judged_on)
    }
}

/// The switch of the planner.
pub fn switch() -> KeyPath {
    KeyPath::from(["enrichment", "enabled"])
}

/// Whether anything is prefetched under a configuration.
pub fn is_on(current: &View<'_>) -> bool {
    current.value(&switch()).and_then(|value| value.as_bool()).unwrap_or(false)
}

/// Leaves of what T1 proposes the links that pay, and what the planner has to know about their tools; says whether the planner
/// should run.
pub fn gate(findings: &mut Vec<Finding>, judged: &Prefetching, current: &View<'_>) {
    let mut concerned: BTreeSet<String> = BTreeSet::new();
    for finding in findings.iter_mut() {
        if let Some(from) = links_of(finding) {
            keep_links(finding, &mut |to| {
                let why_not = judged.why_not(&from, to);
                if why_not.is_none() {
                    concerned.extend([from.clone(), to.to_owned()]);
                }
                why_not
            });
        }
    }
    for finding in findings.iter_mut().filter(|finding| links_of(finding).is_none()) {
        let idle = of_tool(finding).filter(|tool| !concerned.contains(tool));
        if let (Some(_), Some(delta)) = (idle, finding.proposed()) {
            let reason =
                format!("`{}` = {}: no effect, nothing is called ahead with it", delta.key, in_a_line(&delta.to));
            finding.verdict = Verdict::Hold(reason);
        }
    }
    findings.push(whether(judged, !concerned.is_empty(), current));
}

/// Whether the planner should run.
fn whether(judged: &Prefetching, has_links: bool, current: &View<'_>) -> Finding {
    let (key, is_on) = (switch(), is_on(current));
    let configured = judged.configured.and_then(|fetched| fetched.why_not(&judged.bars));
    let loses = configured.filter(|why| is_on && !has_links && why.starts_with("loses"));
    let to = if has_links { Some(true) } else { loses.as_ref().map(|_| false) };
    let verdict = match to.filter(|to| *to != is_on) {
        Some(to) => Verdict::Propose(Delta { from: current.value(&key), key, to: to.into() }),
        None => Verdict::Skip(format!("`{key}` stays {is_on}")),
    };
    let mut evidence = judged.evidence();
    evidence.counts += &loses.map(|why| format!("\nas configured it {why}")).unwrap_or_default();
    Finding::new(t1_tools::RULE.id, "prefetching", verdict, evidence)
}

/// Leaves of mined links those that pass; what is left of none is not proposed.
pub fn only_links(findings: &mut [Finding], passes: &dyn Fn(&str, &str) -> bool) {
    for finding in findings.iter_mut() {
        if let Some(from) = links_of(finding) {
            keep_links(finding, &mut |to| (!passes(&from, to)).then(String::new));
        }
    }
}

/// The tool whose value model a finding of T1 proposes something for.
fn of_tool(finding: &Finding) -> Option<String> {
    of_block(finding).filter(|_| finding.rule == t1_tools::RULE.id)
}

/// The tool whose value model a finding proposes something for.
fn of_block(finding: &Finding) -> Option<String> {
    finding.proposed().filter(|delta| delta.key.0[0] == TOOLS)?.key.0.get(1).cloned()
}

/// The same, if it proposes links.
fn links_of(finding: &Finding) -> Option<String> {
    of_tool(finding).filter(|_| finding.proposed().is_some_and(|delta| delta.key.leaf() == Some("follow_up")))
}

/// Keeps the links for which there is no reason against; holds the finding with the reasons if none is left.
fn keep_links(finding: &mut Finding, why_not: &mut dyn FnMut(&str) -> Option<String>) {
    let Verdict::Propose(delta) = &mut finding.verdict else { return };
    let Some(list) = delta.to.as_array() else { return };
    let (mut kept, mut reasons) = (list.clone(), Vec::new());
    kept.retain(|link| {
        let to = link.as_inline_table().and_then(|link| link.get("tool")).and_then(Value::as_str).unwrap_or_default();
        let reason = why_not(to);
        reasons.extend(reason.iter().map(|why| format!("{to}: {why}")));
        reason.is_none()
    });
    if kept.is_empty() {
        finding.verdict = Verdict::Hold(format!("`{}`: {}", delta.key, reasons.join("; ")));
    } else if kept.len() < list.len() {
        delta.to = Value::Array(kept);
        finding.evidence.counts += &format!("\nheld: {}", reasons.join("; "));
    }
}

fn in_a_line(value: &Value) -> String {
    let words = |list: &Array| format!("[{}]", counted(list.len() as u64, "value"));
    value.as_array().map_or_else(|| value.to_string().trim().to_owned(), words)
}

/// Why nothing that only the planner reads is written while it is off.
const IDLE: &str = "no effect: `enrichment.enabled` is false, so that nothing is called ahead with it";

/// Holds what R6 proposes unless it pays beside what R7 proposes. Telemetry holds no values: there nothing can be replayed,
/// what was recorded has to do, and each proposal says so. And what R7 forbids over logs while the planner is off: it was only
/// replayed.
pub fn gate_refreshed(
    file: &SettingsFile,
    view: &View<'_>,
    responses: &mut Responses,
    later: Option<&EventLog>,
    findings: &mut [Finding],
) -> Result<()> {
    if matches!(responses.origin, ResponseOrigin::Logs(_)) {
        hold_idle(findings, view);
    }
    let proposed_by =
        |rule: &Rule| findings.iter().filter(|finding| is_of(finding, rule)).cloned().collect::<Vec<Finding>>();
    let [of_r7, refreshes] = [&r7_speculation::RULE, &r6_cost_models::RULE].map(proposed_by);
    let runs = is_on(view) || of_r7.iter().any(|finding| of_block(finding).is_none());
    let refusals = match runs {
        _ if refreshes.is_empty() => return Ok(()),
        true => refusals(file, responses, &of_r7, &refreshes)?,
        false => Some(of_tools(&refreshes, IDLE)),
    };
    if refusals.is_none() {
        hold_worse_sizes((file, view), responses, later.unwrap_or(&responses.log), findings)?;
    }
    for finding in findings.iter_mut().filter(|finding| is_of(finding, &r6_cost_models::RULE)) {
        let Some(refusals) = &refusals else {
            // In front: a share is told behind the last line.
            let words = "not replayed: telemetry holds no values of results, which calls ahead are made from; `devboy tune \
                         analyze --from-claude-logs` replays it";
            finding.evidence.counts = format!("{words}\n{}", finding.evidence.counts);
            continue;
        };
        let reason = of_block(finding).and_then(|tool| refusals.get(&tool));
        if let (Some(reason), Some(delta)) = (reason, finding.proposed()) {
            finding.verdict = Verdict::Hold(format!("`{}`: {reason}", delta.key));
        }
    }
    Ok(())
}

/// Holds what R7 forbids over logs while the planner is off: nothing is called ahead.
pub fn hold_idle(findings: &mut [Finding], view: &View<'_>) {
    let forbids = |finding: &&mut Finding| is_of(finding, &r7_speculation::RULE) && of_block(finding).is_some();
    let held = || Verdict::Hold(IDLE.to_owned());
    findings.iter_mut().filter(|finding| !is_on(view) && forbids(finding)).for_each(|finding| finding.verdict = held());
}

/// Holds the typical sizes of R6 that foresee the recorded results of their tool worse than what holds now: that much can be told
/// without a replay.
fn hold_worse_sizes(
    (file, view): (&SettingsFile, &View<'_>),
    responses: &Responses,
    log: &EventLog,
    findings: &mut [Finding],
) -> Result<()> {
    let most = responses.data.parsed::<PlannerThresholds>("planner.toml")?.targets.overrun_max;
    let bytes_per_token = responses.counted_by.bytes_per_token;
    for finding in findings.iter_mut().filter(|finding| is_of(finding, &r6_cost_models::RULE)) {
        let (Some(tool), Some(delta)) = (of_block(finding), finding.proposed()) else { continue };
        let Some(to) = delta.to.as_float().filter(|_| delta.key.leaf() == Some("typical_kb")) else { continue };
        let is_new = file.get(&KeyPath::from([TOOLS, &*tool])).is_none();
        let shipped = responses.annotations.of(&tool).filter(|_| is_new).map(|annotation| annotation.model.cost_model);
        let held = view.number(&delta.key).unwrap_or(shipped.unwrap_or_default().typical_kb);
        let overrun = |typical_kb: f64| {
            let cost = ExpectedCost::of(&CostModel { typical_kb, ..CostModel::default() }, bytes_per_token.into());
            let plan = RecordedPlan { predicted: saturated(cost.tokens.max(1)), ..RecordedPlan::default() };
            let of_tool = log.events.iter().filter(|event| log.names.text(event.tool) == tool);
            let (mut all, mut larger) = (0.0, 0.0);
            for event in of_tool {
                all += event.weight;
                let is_larger = plan.is_overrun(foreseeable_tokens(event.bytes.into(), bytes_per_token));
                larger += if is_larger { event.weight } else { 0.0 };
            }
            larger / f64::max(all, 1.0)
        };
        let (now, then) = (overrun(held), overrun(to));
        if then > now && then > most {
            finding.verdict = Verdict::Hold(format!(
                "`{}` = {to}: loses sight of its budget: {} of the results would be larger than foreseen by a third, {} with \
                 {held}; {} is the most",
                delta.key,
                percent(then),
                percent(now),
                percent(most)
            ));
        }
    }
    Ok(())
}

/// Whether a finding is a proposal of a rule.
fn is_of(finding: &Finding, rule: &Rule) -> bool {
    finding.rule == rule.id && finding.proposed().is_some()
}

/// One reason for all tools that something is proposed for.
fn of_tools(findings: &[Finding], reason: &str) -> BTreeMap<String, String> {
    findings.iter().filter_map(of_block).map(|tool| (tool, reason.to_owned())).collect()
}

/// Tools whose refreshed numbers do not pay on the later sessions, beside what R7 proposes, and why: they lose all together,
/// or the planner does the same without those of a tool. None of telemetry.
fn refusals(
    file: &SettingsFile,
    responses: &mut Responses,
    of_r7: &[Finding],
    refreshes: &[Finding],
) -> Result<Option<BTreeMap<String, String>>> {
    let mut with = |refreshes: &[Finding]| {
        let text = Proposal::new(file, [of_r7, refreshes].concat(), &responses.annotations)?.text;
        responses.fetched(&SettingsFile::parse(&file.path, &text)?)
    };
    let Some((now, then)) = with(&[])?.zip(with(refreshes)?) else { return Ok(None) };
    if let Some(reason) = why_not(&now, &then) {
        return Ok(Some(of_tools(refreshes, &reason)));
    }
    let (mut kept, mut refused) = (refreshes.to_vec(), BTreeMap::new());
    for (tool, reason) in of_tools(refreshes, "no effect on the later sessions: the planner does the same without it") {
        let rest: Vec<Finding> =
            kept.iter().filter(|finding| of_block(finding).as_ref() != Some(&tool)).cloned().collect();
        if with(&rest)? == Some(then) {
            kept = rest;
            refused.insert(tool, reason);
        }
    }
    Ok(Some(refused))
}

/// Why the planner is not better off with other numbers; none if it is.
fn why_not(now: &Fetched, then: &Fetched) -> Option<String> {
    let words = |fetched: &Fetched| {
        let (overruns, known) = fetched.overruns;
        format!(
            "{} of {} calls ahead spared one, {} of the known results were larger than foreseen",
            thousands(fetched.won),
            thousands(fetched.sent),
            percent(overruns as f64 / known.max(1) as f64)
        )
    };
    let overrun = |fetched: &Fetched| fetched.overruns.0 as f64 / fetched.overruns.1.max(1) as f64;
    let told = || format!("{}; with all of R6 {}", words(now), words(then));
    if then.net() < now.net() || then.net() == now.net() && overrun(then) > overrun(now) {
        return Some(format!("loses on the later sessions: {}", told()));
    }
    (then.net() == now.net() && overrun(then) >= overrun(now))
        .then(|| format!("no effect on the later sessions: {}", told()))
}
