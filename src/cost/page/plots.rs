//! The figures behind the plots of the page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cost::attribution::Attribution;
use crate::cost::findings::{BillEvidence, tried_sides};
use crate::cost::groups::{CostKey, Label};
use crate::cost::session::{self, SessionRequest};
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::report::numbers::thousands;
use crate::whatif::client::LeverValue;
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::Sides;

/// The figures.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Plots {
    /// Cache misses: cause, how often, dollars; the most expensive first.
    pub causes: Vec<(String, u64, f64)>,
    /// Settings that were tried: their name, and of each value the cost with it over that of the log, less one.
    pub tried: Vec<(String, Vec<(String, f64)>)>,
    /// The most expensive sessions.
    pub sessions: Vec<ContextTrace>,
    /// The most expensive tools.
    pub tools: Vec<ToolCost>,
}

/// Money of a tool's calls and results, in all contexts that had them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolCost {
    /// Its name; in brackets what is no tool.
    pub tool: String,
    /// Dollars when it came in.
    pub first: f64,
    /// Dollars of sending it again.
    pub carried: f64,
    /// Dollars of paying for it once more, not read from the cache that had it.
    pub again: f64,
}

/// The context of one session over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ContextTrace {
    /// Pseudonym of the session.
    pub session: String,
    /// Pseudonym of its project.
    pub project: String,
    /// First day.
    pub day: String,
    /// Dollars, subagents included.
    pub usd: f64,
    /// Requests of the main thread.
    pub requests: u64,
    pub compactions: u64,
    /// Requests of it that lost the cache.
    pub misses: u64,
    /// Minutes since the first request, tokens of the context.
    pub points: Vec<(f64, u64)>,
    /// Minutes, tokens, what happened there: `compaction` or a cause of a cache miss.
    pub marks: Vec<(f64, u64, String)>,
}

impl Plots {
    /// Takes the figures down.
    pub fn of(evidence: &BillEvidence<'_>) -> Self {
        let mut causes: Vec<(String, u64, f64)> = causes::attribute(evidence.simulator)
            .into_iter()
            .map(|(cause, sum)| (cause.words().to_owned(), sum.events, sum.cost_lost.nano_usd as f64 / 1e9))
            .collect();
        causes.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        Self { causes, tried: tried(evidence), sessions: traces(evidence), tools: tools(evidence) }
    }
}

fn tools(evidence: &BillEvidence<'_>) -> Vec<ToolCost> {
    let bill = evidence.bill();
    let found = Attribution::new(&bill, &[CostKey::Tool]);
    let dollars = |cost: &Cost| cost.nano_usd as f64 / 1e9;
    let named = found.rows.iter().filter_map(|row| match row.labels.first()? {
        Label::Word(name) | Label::Tool(name) => Some((name, &row.entry)),
        _ => None,
    });
    let told = named.filter(|(_, entry)| entry.cost().nano_usd > 0).take(evidence.thresholds.tools_drawn);
    told.map(|(tool, entry)| ToolCost {
        tool: tool.clone(),
        first: dollars(&entry.first),
        carried: dollars(&entry.carried),
        again: dollars(&entry.again),
    })
    .collect()
}

/// The windows of compaction and lifetimes of the cache that `tune claude-settings` tries, each with what it would change.
fn tried(evidence: &BillEvidence<'_>) -> Vec<(String, Vec<(String, f64)>)> {
    let mut tried: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for trial in &evidence.study.trials {
        let value = match trial.setting {
            LeverValue::Window(tokens) => thousands(tokens),
            LeverValue::MainTtl(class) | LeverValue::SubagentTtl(class) => class.into_str().to_owned(),
            LeverValue::Result(_) => continue,
        };
        let name = trial.setting.name();
        let Some(change) = tried_sides(trial).into_values().sum::<Sides>().change() else { continue };
        match tried.iter_mut().find(|one| one.0 == name) {
            Some((_, values)) => values.push((value, change)),
            None => tried.push((name.to_owned(), vec![(value, change)])),
        }
    }
    tried
}

/// Main threads of the sessions that cost most.
fn traces(evidence: &BillEvidence<'_>) -> Vec<ContextTrace> {
    let (timeline, bill) = (&evidence.workload.timeline, evidence.bill());
    let mut money: BTreeMap<u32, u128> = BTreeMap::new();
    for (_, request) in timeline.billed() {
        let session = timeline.chains[request.chain as usize].session;
        *money.entry(session).or_default() += bill.charge(request).cost.nano_usd;
    }
    let mut most: Vec<(u32, u128)> = money.into_iter().filter(|(_, nano_usd)| *nano_usd > 0).collect();
    most.sort_by_key(|(session, nano_usd)| (std::cmp::Reverse(*nano_usd), *session));
    let misses = session::misses(evidence.simulator);
    let told = most.into_iter().take(evidence.thresholds.sessions_drawn);
    told.filter_map(|(session, nano_usd)| trace(evidence, session, nano_usd as f64 / 1e9, &misses)).collect()
}

fn trace(
    evidence: &BillEvidence<'_>,
    session: u32,
    usd: f64,
    misses: &BTreeMap<u32, causes::Loss>,
) -> Option<ContextTrace> {
    let (timeline, bill) = (&evidence.workload.timeline, evidence.bill());
    let mut chains = (0..).zip(&timeline.chains);
    let (chain, _) = chains.find(|(_, chain)| chain.session == session && chain.place == Place::Main)?;
    let moments = session::of_chain(&bill, chain, 0, misses);
    let told: Vec<SessionRequest> = moments.filter(|moment| moment.context > 0 && moment.ts != NO_TIME).collect();
    let first = told.iter().map(|moment| moment.ts).min()?;
    // A clock that was set back does not move the line back.
    let mut now: Millis = first;
    let mut points = Vec::new();
    let mut marks = Vec::new();
    for moment in &told {
        now = now.max(moment.ts);
        let at = (now - first) as f64 / 60_000.0;
        points.push((at, moment.context));
        let what = if moment.compacted { Some("compaction") } else { moment.miss.map(Cause::words) };
        marks.extend(what.map(|what| (at, moment.context, what.to_owned())));
    }
    let session = &timeline.sessions[session as usize];
    let count = |is: fn(&SessionRequest) -> bool| told.iter().filter(|moment| is(moment)).count() as u64;
    Some(ContextTrace {
        session: session.id.to_string(),
        project: session.project.to_string(),
        day: crate::report::numbers::date(first),
        usd,
        requests: told.len() as u64,
        compactions: count(|moment| moment.compacted),
        misses: count(|moment| moment.miss.is_some()),
        points: thinned(points, evidence.thresholds.points_drawn),
        marks,
    })
}

/// So many points: of neighbours the one with the largest context, so that peaks stay.
fn thinned(points: Vec<(f64, u64)>, most: usize) -> Vec<(f64, u64)> {
    if points.len() <= most.max(1) {
        return points;
    }
    let size = points.len().div_ceil(most.max(1));
    points.chunks(size).filter_map(|chunk| chunk.iter().copied().max_by_key(|point| point.1)).collect()
}
