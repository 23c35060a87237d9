//! The planner replayed: a plan after every result of every session, raced against the clock of the log, and judged by
//! what the agent did next. A planner in the walk sees the past only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use crate::base::names::{Names, Sym};
use crate::base::numbers::saturated;
use crate::logs::history::Call;
use crate::logs::trace::{NO_TIME, ResultKind, Status};
use crate::mine::projections::ToldHistory;
use crate::mine::runnable::Runnable;
use crate::planner::bound::OfferedValues;
use crate::planner::candidates::{AnswerMoment, CallKey, Candidates, NamedArgument, Projected, candidates};
use crate::planner::contexts::{Latencies, PlannerContext, window};
use crate::planner::fail_fast::Refusals;
use crate::planner::intents::{Intents, prefetch_hint};
use crate::planner::known_tools::{KnownLink, KnownTools};
use crate::planner::numbers::PlannerThresholds;
use crate::planner::opportunities::{Odds, Opportunity, OpportunityReader};
use crate::planner::plan::{Plan, knapsack, optimum};
use crate::planner::prefetches::{
    AskedFor, DeclineReason, HostTrace, Least, PlannerLedger, PrefetchEdge, PrefetchEnd, PrefetchTally,
};
use crate::planner::race::{Prefetch, Race, RaceEnd, RaceLimits, latency_ms};
use crate::planner::value_models::ValueModels;
use crate::planner::watch::{Match, PrefetchWatch, SentPrefetch};
use crate::planner::{plan as planner, published};
use crate::settings::Enrichment;
use crate::settings::tool_model::FollowUp;
use crate::telemetry::effectiveness::needed;
use crate::telemetry::log as event;

/// A planner to be judged.
#[derive(Clone, Copy)]
pub struct JudgedPlanner<'a> {
    pub models: &'a ValueModels,
    /// The same in the symbols of the history.
    pub known: &'a KnownTools<'a>,
    /// Whether plans are made as published: names of tools instead of arguments, whatever fits the budget, the first values
    /// of a list. Else per call and arguments, charged one by one.
    pub is_published: bool,
    /// Probability below which nothing is called ahead; as published, that of the link.
    pub probability_min: f64,
    /// Where probabilities come from; none takes those of the links, as the published planner does.
    pub odds: Option<&'a dyn Odds>,
    /// Budget and limits.
    pub enrichment: &'a Enrichment,
    /// How long calls take.
    pub latencies: &'a Latencies,
    /// Arguments that each tool was seen to take.
    pub arguments_seen: &'a BTreeMap<String, BTreeSet<String>>,
    /// Which calls can run with one argument.
    pub runnable: &'a Runnable,
    /// What the prompts name, where they were read.
    pub intents: Option<&'a Intents>,
    /// Values of other sessions to put in place of the planned ones.
    pub control: Option<&'a OfferedValues>,
    pub numbers: &'a PlannerThresholds,
}

/// The books of every session wanted, in the order of the history; those of the others are empty.
pub fn judge(told: ToldHistory<'_>, policy: &JudgedPlanner<'_>, wanted: &[bool]) -> Vec<PlannerLedger> {
    PlannerContext::each_session(told.history, wanted, |contexts| {
        let mut ledger = PlannerLedger::default();
        contexts.for_each(|context| ContextWalk::over(told, policy, context).finish(context, &mut ledger));
        ledger
    })
}

/// What the live host would have recorded of the planner: the prefetches sent out and the declines of the sessions wanted,
/// in the order of the history.
pub fn trail(told: ToldHistory<'_>, policy: &JudgedPlanner<'_>, wanted: &[bool]) -> Vec<HostTrace> {
    let traces = |context: &PlannerContext| ContextWalk::over(told, policy, context).traces(context);
    let sessions =
        PlannerContext::each_session(told.history, wanted, |contexts| contexts.flat_map(traces).collect::<Vec<_>>());
    sessions.into_iter().flatten().collect()
}

/// Arguments that each tool was given in the sessions wanted.
pub fn arguments_seen(told: ToldHistory<'_>, wanted: &[bool]) -> BTreeMap<String, BTreeSet<String>> {
    let mut seen: BTreeSet<(Sym, Sym)> = BTreeSet::new();
    for (index, call) in told.history.calls.iter().enumerate() {
        if wanted[told.history.chains[call.chain as usize].session as usize] {
            seen.extend(told.values.given(index).iter().map(|given| (call.tool, given.argument)));
        }
    }
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (tool, argument) in seen {
        let arguments = names.entry(told.tools.text(tool).to_owned()).or_default();
        arguments.insert(told.values.names.text(argument).to_owned());
    }
    names
}

struct Planned {
    moment: Opportunity,
    predicted_tokens: u64,
}

/// What an answer offers, link by link.
struct AnswerOffer<'a> {
    moments: Vec<Opportunity>,
    /// Links with the places of what they are offered.
    ranges: Vec<(&'a KnownLink<'a>, Range<usize>)>,
}

impl AnswerOffer<'_> {
    /// The arguments for a link, and how likely each call is where the odds know it.
    fn project(&self, follow_up: &FollowUp, odds: Option<&dyn Odds>) -> Vec<Projected> {
        let range = self.ranges.iter().find(|(link, _)| std::ptr::eq(link.follow_up, follow_up));
        let Some((link, range)) = range else { return Vec::new() };
        let moments = &self.moments[range.clone()];
        let argument = |moment: &Opportunity| NamedArgument::new(link.argument_name.unwrap_or_default(), moment.value);
        let mut projected = Projected::evenly(moments.iter().map(argument).collect());
        for (projected, moment) in projected.iter_mut().zip(moments) {
            if let Some(probability) = odds.and_then(|odds| odds.of(moment)) {
                *projected = Projected::certain(projected.argument.clone(), probability);
            }
        }
        projected
    }

    /// What a call was made of.
    fn of(&self, names: &Names, tool: &str, argument: &NamedArgument) -> Option<Opportunity> {
        let links = self.ranges.iter().filter(|(link, _)| link.argument_name == Some(&argument.name));
        let is_it = |moment: &&Opportunity| moment.value == argument.value && names.text(moment.to) == tool;
        links.flat_map(|(_, range)| &self.moments[range.clone()]).find(is_it).copied()
    }
}

struct ContextWalk<'a> {
    told: ToldHistory<'a>,
    policy: &'a JudgedPlanner<'a>,
    reader: OpportunityReader<'a, 'a>,
    watch: PrefetchWatch<'a, 'a>,
    race: Race,
    now_ms: u64,
    start_ms: i64,
    called: BTreeSet<String>,
    recent: VecDeque<Sym>,
    refusals: Refusals<'a>,
    total: PrefetchTally,
    edges: BTreeMap<PrefetchEdge, Box<PrefetchTally>>,
}

impl<'a> ContextWalk<'a> {
    /// The walk to the end of a context.
    fn over(told: ToldHistory<'a>, policy: &'a JudgedPlanner<'a>, context: &PlannerContext) -> Self {
        let numbers = policy.numbers;
        let mut walk = Self {
            told,
            policy,
            reader: OpportunityReader::new(told, policy.known, &numbers.judge, context.session),
            watch: PrefetchWatch::new(told, policy.known, numbers),
            race: Race::new(RaceLimits::new(policy.enrichment, &numbers.race)),
            now_ms: 0,
            start_ms: NO_TIME,
            called: BTreeSet::new(),
            recent: VecDeque::new(),
            refusals: Refusals::new(policy),
            total: PrefetchTally::default(),
            edges: BTreeMap::new(),
        };
        for step in context.steps(told.history) {
            walk.watch.message();
            step.iter().for_each(|&call| walk.call(call));
            step.iter().for_each(|&call| walk.reader.see(call));
            for (answered_ms, trigger) in walk.answers(step) {
                walk.now_ms = walk.now_ms.max(answered_ms);
                walk.answer(trigger);
            }
        }
        walk
    }

    /// What the host would have recorded, by the answer that set it off.
    fn traces(mut self, context: &PlannerContext) -> Vec<HostTrace> {
        self.race.pass(self.now_ms);
        let known = &self.policy.known.names;
        let sent = self.watch.sent.iter().map(|sent| HostTrace {
            after: sent.moment.trigger,
            tool: known.text(sent.moment.to).to_owned(),
            input: self.link(&sent.moment).sole_input(sent.moment.value),
            is_path: sent.moment.is_path,
            plan: event::RecordedPlan {
                prefetched: true,
                predicted: saturated(sent.predicted_tokens),
                cited: Some(sent.found.calls_near == Match::Exact),
                declined: None,
                race: end_of(sent, self.race.records()[sent.record].fate).race(),
            },
        });
        let left = self.watch.left.iter().filter_map(|left| {
            let plan = event::RecordedPlan { declined: Some(left.held.decline()?), ..event::RecordedPlan::default() };
            // Declines are known by the number of calls before them.
            let after = context.calls[left.at.checked_sub(1)? as usize];
            Some(HostTrace { after, tool: known.text(left.edge.1).to_owned(), input: left.input, is_path: false, plan })
        });
        let mut traces: Vec<HostTrace> = sent.chain(left).collect();
        traces.sort_by(|a, b| (a.after, &a.tool, a.input).cmp(&(b.after, &b.tool, b.input)));
        traces
    }

    /// Answers of a step in the order in which they came, with their times.
    fn answers(&self, step: &[u32]) -> Vec<(u64, u32)> {
        let calls = step.iter().map(|&call| (call, &self.told.history.calls[call as usize]));
        let answered = calls.filter(|(_, row)| row.status == Status::Ok);
        let mut answers: Vec<(u64, u32)> = answered
            .map(|(call, row)| (self.log_ms(row) + u64::from(row.latency_ms.unwrap_or_default()), call))
            .collect();
        answers.sort_unstable();
        answers
    }

    /// When a call was made, from the first call of the context on; one without a time is made when the last thing
    /// happened.
    fn log_ms(&self, row: &Call) -> u64 {
        if row.ts == NO_TIME || self.start_ms == NO_TIME {
            return self.now_ms;
        }
        u64::try_from(row.ts - self.start_ms).unwrap_or_default()
    }

    fn call(&mut self, call: u32) {
        let index = call as usize;
        let row = &self.told.history.calls[index];
        if self.start_ms == NO_TIME {
            self.start_ms = row.ts;
        }
        self.now_ms = self.now_ms.max(self.log_ms(row));
        self.total.calls += 1;
        self.refusals.call(self.told, index, &mut self.total);
        let mut is_served = false;
        if let Some(place) = self.watch.call(index) {
            let request = self.race.records()[self.watch.sent[place].record].prefetch.request.clone();
            match self.race.claim(self.now_ms, &request) {
                Some(RaceEnd::Stale) | None => self.watch.revoke(place),
                fate => is_served = fate == Some(RaceEnd::Won),
            }
        }
        let host = &self.policy.known.get(row.tool).host;
        if let Some(host) = host.as_ref().filter(|_| row.ran() && !is_served) {
            self.race.occupy(self.now_ms, host, row.latency_ms.unwrap_or_default().into());
        }
        let stale = self.watch.change(index);
        if !stale.is_empty() {
            let records = self.race.records();
            let requests: BTreeSet<CallKey> =
                stale.iter().map(|&place| records[self.watch.sent[place].record].prefetch.request.clone()).collect();
            self.race.invalidate(self.now_ms, |request| requests.contains(request));
        }
    }

    /// An answer is there: plan and send.
    fn answer(&mut self, trigger: u32) {
        let row = self.told.history.calls[trigger as usize];
        let name = self.policy.known.names.text(row.tool);
        if !self.called.contains(name) {
            self.called.insert(name.to_owned());
        }
        self.recent.push_back(row.tool);
        if self.recent.len() > self.policy.numbers.published.recent_tools_max {
            self.recent.pop_front();
        }
        let mut planned = if self.policy.is_published { self.published(trigger) } else { self.improved(trigger, name) };
        if let Some(donors) = self.policy.control {
            planned.retain_mut(|planned| match donors.other(&planned.moment) {
                Some(value) => {
                    planned.moment.value = value;
                    true
                }
                None => false,
            });
        }
        if !planned.is_empty() {
            self.send(planned);
        }
    }

    fn improved(&mut self, trigger: u32, tool: &str) -> Vec<Planned> {
        let JudgedPlanner { intents, arguments_seen, runnable, .. } = *self.policy;
        let offer = self.fresh(trigger);
        if offer.moments.is_empty() {
            return Vec::new();
        }
        self.total.plans += 1;
        let nothing = BTreeSet::new();
        let intents = intents.map_or(&nothing, |intents| intents.of(trigger));
        let turn = AnswerMoment { tool, intents, arguments_seen, runnable };
        let found = self.found(&turn, &offer);
        self.compare(&found);
        let plan = self.plan(found);
        if !intents.is_empty() {
            let without = self.found(&AnswerMoment { intents: &nothing, ..turn }, &offer);
            self.total.plans_with_intent += 1;
            self.total.plans_by_intent += u64::from(!plan.is_like(&self.plan(without)));
        }
        let names = &self.policy.known.names;
        for declined in &plan.declined {
            let argument = declined.argument.as_ref();
            if let Some(moment) = argument.and_then(|argument| offer.of(names, &declined.tool, argument)) {
                self.decline(&moment, declined.reason);
            }
        }
        let planned = plan.calls.iter().filter_map(|call| {
            let moment = offer.of(names, &call.request.tool, &call.request.argument)?;
            Some(Planned { moment, predicted_tokens: call.cost.tokens })
        });
        planned.collect()
    }

    /// The candidates among what an answer offers.
    fn found(&self, turn: &AnswerMoment<'_>, offer: &AnswerOffer<'_>) -> Candidates {
        let JudgedPlanner { models, probability_min, odds, numbers, .. } = *self.policy;
        candidates(models, turn, probability_min, numbers, &|follow_up| offer.project(follow_up, odds))
    }

    fn plan(&self, found: Candidates) -> Plan {
        planner::plan(found, &self.called, self.policy.enrichment.prefetch_budget_tokens)
    }

    /// Books the greedy choice against the best one, unless there is nothing or too much to choose from.
    fn compare(&mut self, found: &Candidates) {
        if found.open.is_empty() {
            return;
        }
        let problem = knapsack(found, &self.called, self.policy.enrichment.prefetch_budget_tokens);
        let Some(best_value) = optimum(&problem, self.policy.numbers.exact.items_max) else { return };
        let greedy_value = problem.greedy().value;
        let share = if best_value > 0.0 { (greedy_value / best_value).min(1.0) } else { 1.0 };
        self.total += PrefetchTally {
            greedy_value,
            best_value,
            plans_compared: 1,
            plans_behind: u64::from(1.0 - share > f64::EPSILON),
            least_share: Least::of(share),
            ..PrefetchTally::default()
        };
    }

    /// What the answer offers to each link and was not read before.
    fn fresh(&mut self, trigger: u32) -> AnswerOffer<'a> {
        let (mut offered, mut ranges) = (Vec::new(), Vec::new());
        for (number, link) in self.reader.links(trigger) {
            let start = offered.len();
            let values = link.offered(self.told, trigger as usize, self.policy.numbers.judge.ranks_max);
            self.reader.offers(trigger, number, link, values, &mut offered);
            let edge = (self.told.history.calls[trigger as usize].tool, link.to);
            let read = offered[start..].iter().filter(|moment| moment.already_read).count() as u64;
            self.hold(edge, DeclineReason::AlreadyRead, read);
            let mut fresh: Vec<Opportunity> = offered.drain(start..).filter(|moment| !moment.already_read).collect();
            fresh.truncate(link.arguments_max);
            offered.extend(fresh);
            if offered.len() == start {
                self.hold(edge, DeclineReason::NoArgument, u64::from(read == 0));
            }
            ranges.push((link, start..offered.len()));
        }
        AnswerOffer { moments: offered, ranges }
    }

    fn decline(&mut self, moment: &Opportunity, reason: DeclineReason) {
        let edge = (moment.from, moment.to);
        self.hold(edge, reason, 1);
        if reason.is_decline() {
            let input = self.link(moment).sole_input(moment.value);
            self.watch.decline(edge, reason, input);
        }
    }

    /// The published planner, in the wiring of its host.
    fn published(&mut self, trigger: u32) -> Vec<Planned> {
        let JudgedPlanner { known, models, probability_min, numbers, enrichment, .. } = *self.policy;
        let mut offered = Vec::new();
        for (number, link) in self.reader.links(trigger) {
            self.reader.offers(trigger, number, link, link.taken(self.told, trigger as usize), &mut offered);
        }
        offered.retain(|moment| published::is_speculatable(&known.get(moment.to).model.model));
        if offered.is_empty() {
            return Vec::new();
        }
        self.total.plans += 1;
        let recent: Vec<&str> = self.recent.iter().map(|&tool| known.names.text(tool)).collect();
        let plan = published::plan(models, &recent, enrichment.prefetch_budget_tokens, probability_min, numbers);
        let of_tool =
            |name: &str| offered.iter().filter(|moment| known.names.text(moment.to) == name).copied().collect();
        for name in &plan.over_budget {
            let moments: Vec<Opportunity> = of_tool(name);
            for moment in moments {
                self.decline(&moment, DeclineReason::Budget);
            }
        }
        let calls = plan.calls.iter().flat_map(|call| {
            let moments: Vec<Opportunity> = of_tool(&call.tool);
            moments.into_iter().map(|moment| Planned { moment, predicted_tokens: call.cost.tokens })
        });
        calls.collect()
    }

    fn hold(&mut self, edge: PrefetchEdge, held: DeclineReason, count: u64) {
        if count > 0 {
            self.edges.entry(edge).or_default().held[held] += count;
        }
    }

    fn link(&self, moment: &Opportunity) -> &'a KnownLink<'a> {
        &self.policy.known.get(moment.from).links[moment.link as usize]
    }

    fn send(&mut self, planned: Vec<Planned>) {
        let JudgedPlanner { known, latencies, numbers, .. } = *self.policy;
        let prefetch = |planned: &Planned| {
            let (moment, link) = (&planned.moment, self.link(&planned.moment));
            let tool = known.get(moment.to);
            let cost_model = &tool.model.model.cost_model;
            let argument = NamedArgument::new(link.argument_name.unwrap_or_default(), moment.value);
            let request = CallKey { tool: known.names.text(moment.to).to_owned(), argument };
            Prefetch {
                host: tool.host.clone(),
                latency_ms: latency_ms(latencies.median_ms(moment.to), cost_model, &numbers.race),
                fresh_ms: cost_model.freshness_ttl_s.map(|seconds| seconds * 1000),
                request,
            }
        };
        let prefetches: Vec<Prefetch> = planned.iter().map(prefetch).collect();
        let round = self.race.dispatch(self.now_ms, prefetches);
        self.total.waited_ms += round.waited_ms;
        if self.policy.is_published {
            self.total.hint_tokens += self.hint_tokens(&round.in_time);
        }
        for (planned, record) in planned.into_iter().zip(round.records) {
            let Planned { moment, predicted_tokens } = planned;
            match self.race.records()[record].fate {
                RaceEnd::Refused(end) => self.edges.entry((moment.from, moment.to)).or_default().ends[end] += 1,
                _ => {
                    let input = self.link(&moment).sole_input(moment.value);
                    self.watch.send(moment, input, record, predicted_tokens);
                }
            }
        }
    }

    /// What the published line costs.
    fn hint_tokens(&self, records: &[usize]) -> u64 {
        let tools = records.iter().map(|&record| self.race.records()[record].prefetch.request.tool.as_str());
        let hint = prefetch_hint(tools, &self.policy.numbers.texts);
        (hint.len() as f64 / f64::from(self.policy.numbers.published.bytes_per_token)).round() as u64
    }

    fn finish(mut self, context: &PlannerContext, ledger: &mut PlannerLedger) {
        self.race.pass(self.now_ms);
        let bytes_per_token = self.policy.numbers.published.bytes_per_token;
        let calls_near = self.policy.numbers.judge.calls_near as usize;
        let mut chances: BTreeMap<Sym, f64> = BTreeMap::new();
        for sent in &self.watch.sent {
            let fate = self.race.records()[sent.record].fate;
            let tally = self.edges.entry((sent.moment.from, sent.moment.to)).or_default();
            let tool = sent.moment.to;
            tally.name_by_chance +=
                *chances.entry(tool).or_insert_with(|| chance_of(tool, self.told, context, calls_near));
            record(tally, sent, fate, bytes_per_token, self.policy.is_published);
        }
        for left in &self.watch.left {
            let tally = self.edges.entry(left.edge).or_default();
            tally.late_exact[left.held] += u64::from(left.exact);
            tally.late_name[left.held] += u64::from(left.name);
        }
        self.total.late_published = self.late_published(context);
        self.edges.values().for_each(|tally| self.total += tally.as_ref());
        ledger.absorb(&PlannerLedger { total: self.total, edges: self.edges });
        debug_assert!(ledger.balance(), "every planned call ends in one way");
    }

    /// Declines that the published line calls late: it counts the responses that are recorded, one by one.
    fn late_published(&self, context: &PlannerContext) -> u64 {
        let is_recorded =
            |row: &Call| row.status == Status::Ok && matches!(row.kind, ResultKind::Text | ResultKind::Mixed);
        let rows = (0..).zip(context.calls.iter().map(|&call| &self.told.history.calls[call as usize]));
        let (places, tools): (Vec<u32>, Vec<Sym>) =
            rows.filter(|(_, row)| is_recorded(row)).map(|(place, row)| (place, row.tool)).unzip();
        let declines = self.watch.left.iter();
        let declines = declines.map(|left| (places.partition_point(|&place| place < left.at), left.edge.1));
        needed(declines, &tools, self.policy.numbers.judge.declined_calls)
    }
}

/// How a prefetch that was sent out ended, once its race is over.
fn end_of(sent: &SentPrefetch, fate: RaceEnd) -> PrefetchEnd {
    match fate {
        _ if sent.failed => PrefetchEnd::Failed,
        RaceEnd::Won => PrefetchEnd::Won,
        RaceEnd::Late => PrefetchEnd::Late,
        _ if sent.ever == Match::Target => PrefetchEnd::Target,
        RaceEnd::Stale => PrefetchEnd::Stale,
        // The context ends.
        RaceEnd::InFlight => PrefetchEnd::Cancelled,
        RaceEnd::Settled | RaceEnd::Refused(_) => PrefetchEnd::Wasted,
    }
}

/// Enters one prefetch; as published the agent's own call always runs, so that none spares anything.
fn record(tally: &mut PrefetchTally, sent: &SentPrefetch, fate: RaceEnd, bytes_per_token: u32, always_runs: bool) {
    let end = end_of(sent, fate);
    tally.ends[end] += 1;
    enter(&mut tally.near, sent.found.calls_near);
    enter(&mut tally.far, sent.found.calls_far);
    enter(&mut tally.steps, sent.found.steps_near);
    tally.across_shell += u64::from(sent.across_shell && sent.ever == Match::Exact);
    tally.cited += u64::from(sent.cited);
    tally.predicted_tokens += sent.predicted_tokens;
    if end == PrefetchEnd::Won && !always_runs {
        tally.spared += 1;
        tally.spared_ms += sent.own_ms;
    } else {
        tally.unused_tokens += sent.predicted_tokens;
    }
    let actual = sent.bytes.map(|bytes| event::foreseeable_tokens(bytes, bytes_per_token));
    if sent.cited {
        tally.cited_tokens += actual.unwrap_or(sent.predicted_tokens);
    }
    if let Some(actual) = actual {
        tally.answers_known += 1;
        let predicted = saturated(sent.predicted_tokens);
        let plan = event::RecordedPlan { predicted, ..event::RecordedPlan::default() };
        tally.overruns += u64::from(plan.is_overrun(actual));
        tally.error_tokens += actual as i64 - sent.predicted_tokens as i64;
    }
}

fn enter(asked: &mut AskedFor, found: Match) {
    asked.exact += u64::from(found == Match::Exact);
    asked.target += u64::from(found >= Match::Target);
    asked.name_only += u64::from(found >= Match::Name);
}

/// How often a window of the context, wherever it begins, has a call of a tool.
fn chance_of(tool: Sym, told: ToldHistory<'_>, context: &PlannerContext, calls_near: usize) -> f64 {
    let (calls, mut behind, mut with) = (&context.calls, 0, 0);
    let is_of_tool = |&call: &u32| told.history.calls[call as usize].tool == tool;
    for step in context.steps(told.history) {
        behind += step.len();
        let has = window(told.history, &calls[behind..], calls_near).iter().any(is_of_tool);
        with += step.len() * usize::from(has);
    }
    with as f64 / calls.len().max(1) as f64
}
