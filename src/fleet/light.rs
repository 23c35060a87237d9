//! The calls of one person that count in a pool, as light rows: a bounded sample of each endpoint and tool of a finished
//! week, the rare left out, under names that say nothing of the person.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use rayon::prelude::*;

use crate::base::names::Sym;
use crate::fleet::contribute::ShareGuide;
use crate::fleet::limits::{FleetLimits, monday_of};
use crate::fleet::measure::{bin, middle};
use crate::frames::contribution::TEXT_BYTES_MAX;
use crate::frames::light::{AFTER, LightCall, NONE, Number};
use crate::logs::trace::Millis;
use crate::mine::repeats::{NO_REPEAT, distances};
use crate::telemetry::log::{EventLog, NO_LATENCY, NO_STEP, RecordedEvent};

/// [`Number::CountsIn`] of a call that counts in its endpoint.
pub const IN_ENDPOINT: i64 = 1;
/// The same for the tool and what followed it; of a call that counts in both it is the sum.
pub const IN_TOOL: i64 = 2;

/// Steps later that rows have a column for.
pub const LAGS: [u32; AFTER.len()] = [1, 2, 3];

/// The calls of all weeks that are over, as they leave.
pub fn calls(log: &EventLog, guide: &ShareGuide<'_>) -> BTreeMap<Date, Vec<LightCall>> {
    let names = log.names.texts().iter().map(|name| guide.naming.of(name)).collect();
    let sessions = log.sessions.iter().map(|session| guide.naming.mark(session)).collect();
    let uses = uses(log);
    let beside = log.beside.iter().filter(|event| event.what.is_call()).collect();
    let mut draft = LightDraft { log, guide, names, sessions, beside, uses: &uses, calls: BTreeMap::new() };
    draft.endpoints();
    draft.tools();
    let mut weeks: BTreeMap<Date, Vec<LightCall>> = BTreeMap::new();
    for ((week, _), call) in draft.calls {
        weeks.entry(week).or_default().push(rounded(call, guide.limits));
    }
    weeks.values_mut().for_each(|calls| calls.sort());
    weeks
}

/// A call as it leaves: sizes, counts and times as the middles of their bins, so that none of them tells an answer by its size.
/// Counts are sums of these and not of what they were made from, so that counts less rows are nothing.
pub fn rounded(mut call: LightCall, limits: &FleetLimits) -> LightCall {
    use Number::{Baseline, Bytes, Columns, Distance, Latency, Saved};
    for number in [Columns, Bytes, Baseline, Saved, Distance, Latency] {
        if let Ok(value) = u32::try_from(call.number(number)) {
            let tokens = [Baseline, Saved].contains(&number);
            let most = if tokens { limits.tokens_max } else { u64::MAX };
            call.set(number, middle(bin(value)).min(most) as i64);
        }
    }
    // Rounded each for itself, the part may have become more than the whole.
    call.set(Saved, call.number(Saved).min(call.number(Baseline)));
    call
}

struct LightDraft<'a> {
    log: &'a EventLog,
    guide: &'a ShareGuide<'a>,
    /// Names by symbol, as they leave.
    names: Vec<String>,
    sessions: Vec<String>,
    /// Calls that brought no response.
    beside: Vec<&'a RecordedEvent>,
    uses: &'a [StepTool],
    /// By week and index of the event.
    calls: BTreeMap<(Date, usize), LightCall>,
}

impl LightDraft<'_> {
    fn week(&self, event: &RecordedEvent) -> Option<Date> {
        monday_of(event.ts).filter(|week| self.guide.limits.is_told(*week, self.guide.now_ms))
    }

    fn endpoints(&mut self) {
        let mut found: BTreeMap<(Date, Sym, Sym), Vec<usize>> = BTreeMap::new();
        for (index, event) in self.log.events.iter().enumerate() {
            if let Some(week) = self.week(event) {
                found.entry((week, event.endpoint, event.tool)).or_default().push(index);
            }
        }
        let sessions = self.log.events.par_chunk_by(|a, b| a.session == b.session);
        let distances: Vec<u32> = sessions.flat_map_iter(distances).collect();
        for ((week, endpoint, _), events) in found {
            for index in self.chosen(&events, |at| &self.log.events[at]) {
                let name = self.names[endpoint.0 as usize].clone();
                let numbers = self.answer(index, distances[index]);
                let call = self.call(week, index, IN_ENDPOINT);
                call.endpoint = name;
                numbers.into_iter().for_each(|(number, value)| call.set(number, value));
            }
        }
    }

    fn tools(&mut self) {
        let mut found: BTreeMap<(Date, Sym), Vec<usize>> = BTreeMap::new();
        for (index, used) in self.uses.iter().enumerate() {
            if let Some(week) = self.week(&self.log.events[used.event]) {
                found.entry((week, used.tool)).or_default().push(index);
            }
        }
        for ((week, _), steps) in found {
            let steps = self.chosen(&steps, |at| &self.log.events[self.uses[at].event]);
            let after = self.after(&steps);
            for (step, after) in steps.into_iter().zip(after) {
                self.call(week, self.uses[step].event, IN_TOOL).after = after;
            }
        }
    }

    /// A bounded sample: of so many sessions so many events, drawn by keyed marks, so that the choice does not depend on
    /// what is in them. Nothing where there are too few.
    fn chosen<'e>(&self, of: &[usize], event: impl Fn(usize) -> &'e RecordedEvent) -> Vec<usize> {
        let FleetLimits { sessions_max, events_max, events_min, .. } = *self.guide.limits;
        let sessions: BTreeSet<(&str, u32)> =
            of.iter().map(|&at| event(at).session).map(|at| (&*self.sessions[at as usize], at)).collect();
        let kept: BTreeSet<u32> = sessions.into_iter().take(sessions_max as usize).map(|(_, at)| at).collect();
        let mut chosen: Vec<usize> = of.iter().copied().filter(|&at| kept.contains(&event(at).session)).collect();
        if chosen.len() as u64 > events_max {
            let mark = |&at: &usize| {
                let RecordedEvent { step, call, ts, .. } = event(at);
                self.guide.naming.mark(&format!("{} {step} {call} {ts}", chain_name(self.log, event(at))))
            };
            chosen.sort_by_cached_key(mark);
            chosen.truncate(events_max as usize);
        }
        if (chosen.len() as u64) < events_min { Vec::new() } else { chosen }
    }

    /// The row of an event, which counts in one thing more.
    fn call(&mut self, week: Date, index: usize, counts_in: i64) -> &mut LightCall {
        let Self { log, guide, names, sessions, beside, calls, .. } = self;
        let made = || {
            let event = &log.events[index];
            let mut call = LightCall {
                session: sessions[event.session as usize].clone(),
                chain: guide.naming.mark(&chain_name(log, event)),
                tool: names[event.tool.0 as usize].clone(),
                ..LightCall::default()
            };
            call.set(Number::Position, event.order);
            call.set(Number::Distance, NONE);
            call.set(Number::Latency, NONE);
            call.set(Number::Gap, gap(call_before(log, beside, index), event, guide.limits));
            call
        };
        let call = calls.entry((week, index)).or_insert_with(made);
        call.set(Number::CountsIn, call.number(Number::CountsIn) | counts_in);
        call
    }

    /// What is told of an answer.
    fn answer(&self, index: usize, distance: u32) -> [(Number, i64); 8] {
        let event = &self.log.events[index];
        let tokens = |tokens: u32| u64::from(tokens).min(self.guide.limits.tokens_max) as i64;
        let known = |value: u32, unknown: u32| if value == unknown { NONE } else { value.into() };
        [
            (Number::Shape, event.shape.into()),
            (Number::InnerFormats, event.inner_formats.into()),
            (Number::Columns, event.columns.into()),
            (Number::Bytes, event.bytes.into()),
            (Number::Baseline, tokens(event.baseline)),
            (Number::Saved, (tokens(event.baseline) - tokens(event.sent)).max(0)),
            (Number::Distance, known(distance, NO_REPEAT)),
            (Number::Latency, known(event.latency_ms, NO_LATENCY)),
        ]
    }

    /// What came after each of some steps of a tool, by lag; no tool that came so too seldom.
    fn after(&self, steps: &[usize]) -> Vec<[String; AFTER.len()]> {
        let events_min = self.guide.limits.events_min;
        let mut support: BTreeMap<(u32, &str), u64> = BTreeMap::new();
        let names = |step: usize, lag: u32| -> BTreeSet<&str> {
            followers(self.uses, step, lag).map(|tool| &*self.names[tool.0 as usize]).collect()
        };
        let found: Vec<[BTreeSet<&str>; AFTER.len()]> =
            steps.iter().map(|&step| LAGS.map(|lag| names(step, lag))).collect();
        for (lag, names) in found.iter().flat_map(|after| LAGS.into_iter().zip(after)) {
            names.iter().for_each(|name| *support.entry((lag, *name)).or_default() += 1);
        }
        let often = |lag: u32, names: &BTreeSet<&str>| {
            joined(names.iter().copied().filter(|name| support.get(&(lag, *name)).is_some_and(|n| *n >= events_min)))
        };
        found.iter().map(|after| LAGS.map(|lag| often(lag, &after[lag as usize - 1]))).collect()
    }
}

/// Names with a space between them, as many as fit into a column.
fn joined<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.fold(String::new(), |mut all, name| {
        if all.len() + 1 + name.len() <= TEXT_BYTES_MAX {
            all += if all.is_empty() { "" } else { " " };
            all += name;
        }
        all
    })
}

/// What a chain is called, whatever other logs there are: chains are numbered over all of them.
fn chain_name(log: &EventLog, event: &RecordedEvent) -> String {
    let subagent = log.subagents.get(event.chain as usize).copied().flatten();
    let subagent = subagent.map_or_else(String::new, |id| id.to_string());
    format!("{} {subagent}", log.sessions[event.session as usize])
}

/// The call before an event in its chain, whether it brought a response or not.
fn call_before<'l>(log: &'l EventLog, beside: &[&'l RecordedEvent], index: usize) -> Option<&'l RecordedEvent> {
    let event = &log.events[index];
    let place = beside.partition_point(|other| other.key() < event.key());
    let before = [index.checked_sub(1).map(|at| &log.events[at]), place.checked_sub(1).map(|at| beside[at])];
    let of_chain = |other: &&RecordedEvent| (other.session, other.chain) == (event.session, event.chain);
    before.into_iter().flatten().filter(of_chain).max_by_key(|other| other.key())
}

/// The class of the time between an event and the call before it: how many of the bounds it reaches.
fn gap(before: Option<&RecordedEvent>, event: &RecordedEvent, limits: &FleetLimits) -> i64 {
    let Some(before) = before.filter(|before| before.ts != 0) else { return NONE };
    let seconds = event.ts.saturating_sub(before.ts) / 1_000;
    limits.gap_seconds.iter().filter(|bound| seconds >= Millis::from(**bound)).count() as i64
}

/// A tool in a step. Step, lag and partition mean what they mean in [`crate::mine::follow_ups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StepTool {
    /// Who was shown the answer.
    chain: u32,
    step: u32,
    tool: Sym,
    partition: u32,
    /// Index into [`EventLog::sessions`].
    session: u32,
    /// Index of the first event of the step with the tool.
    event: usize,
}

/// Every use of a tool, by chain and step.
fn uses(log: &EventLog) -> Vec<StepTool> {
    let mut uses = Vec::with_capacity(log.events.len());
    let mut start = 0;
    for chain in log.events.chunk_by(|a, b| (a.session, a.chain) == (b.session, b.chain)) {
        uses.extend((0_u32..).zip(chain).map(|(place, event)| used(event, place, start + place as usize)));
        start += chain.len();
    }
    uses.sort_unstable();
    uses.dedup_by_key(|used| (used.chain, used.step, used.tool, used.partition));
    uses
}

fn used(event: &RecordedEvent, place: u32, index: usize) -> StepTool {
    StepTool {
        chain: event.chain,
        step: if event.step == NO_STEP { place } else { event.step },
        tool: event.tool,
        partition: event.partition,
        session: event.session,
        event: index,
    }
}

/// The tools of the step that came so many steps after a use, in the same partition.
fn followers(uses: &[StepTool], at: usize, lag: u32) -> impl Iterator<Item = Sym> {
    let used = uses[at];
    let wanted = (used.chain, used.step.saturating_add(lag));
    let first = uses.partition_point(|later| (later.chain, later.step) < wanted);
    let later = uses[first..].iter().take_while(move |later| (later.chain, later.step) == wanted);
    later.filter(move |later| later.partition == used.partition).map(|later| later.tool)
}
