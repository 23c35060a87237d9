//! Prefetches and declines of one context, compared with the calls that the agent makes afterwards.

use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::logs::history::Call;
use crate::logs::trace::{ResultKind, Status};
use crate::mine::projections::ToldHistory;
use crate::planner::known_tools::{AnswerEffect, KnownTools};
use crate::planner::numbers::{JudgeNumbers, PlannerThresholds};
use crate::planner::opportunities::{Change, Opportunity};
use crate::planner::prefetches::{DeclineReason, PrefetchEdge};

/// How close a call came to a prefetch: not at all, by name, by value, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Match {
    #[default]
    None,
    Name,
    Target,
    Exact,
}

/// The best that came within each window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PrefetchMatches {
    /// Within the next few calls of later steps.
    pub calls_near: Match,
    /// Within more calls.
    pub calls_far: Match,
    /// Within the next few steps.
    pub steps_near: Match,
}

impl PrefetchMatches {
    /// Takes in what came, before whose message so many calls were made, so many steps later.
    fn add(&mut self, came: Match, calls_before: u32, steps: u32, numbers: &JudgeNumbers) {
        let windows = [
            (calls_before < numbers.calls_near, &mut self.calls_near),
            (calls_before < numbers.calls_far, &mut self.calls_far),
            (steps <= numbers.steps_near, &mut self.steps_near),
        ];
        windows.into_iter().filter(|(inside, _)| *inside).for_each(|(_, best)| *best = came.max(*best));
    }
}

/// Where in its context something happened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    /// Calls so far.
    pub call: u32,
    /// Of these, made before the message of the last one. Windows are measured in them: calls of one message have no order
    /// among each other, so that a window holds all of them or none.
    pub before: u32,
    pub step: u32,
    /// Calls and prefetches.
    pub event: u32,
    /// Calls that may have changed something.
    pub shell: u32,
}

/// A prefetch that was sent out.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentPrefetch {
    pub moment: Opportunity,
    /// Its place in the race.
    pub record: usize,
    pub predicted_tokens: u64,
    at: Clock,
    pub found: PrefetchMatches,
    /// At any time.
    pub ever: Match,
    pub cited: bool,
    /// The agent's own call failed.
    pub failed: bool,
    pub across_shell: bool,
    /// Bytes of the answer, where the log shows it.
    pub bytes: Option<u64>,
    /// How long the agent's own call took.
    pub own_ms: u64,
    /// Nothing can hit it any more.
    closed: bool,
}

/// A call that was declined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub edge: PrefetchEdge,
    pub held: DeclineReason,
    pub input: u64,
    /// Calls before it.
    pub at: u32,
    pub exact: bool,
    pub name: bool,
}

/// Prefetches that can still be hit, by what makes them stale. Those that were hit exactly stay until then.
#[derive(Default)]
struct LivePrefetches {
    /// Those of files, by the file.
    by_file: IdMap<u64, Vec<u32>>,
    /// By tool: those of files, and all others.
    files_by_tool: IdMap<Sym, Vec<u32>>,
    others_by_tool: IdMap<Sym, Vec<u32>>,
}

impl LivePrefetches {
    fn add(&mut self, place: u32, moment: &Opportunity) {
        if moment.is_path {
            self.by_file.entry(moment.value).or_default().push(place);
            self.files_by_tool.entry(moment.to).or_default().push(place);
        } else {
            self.others_by_tool.entry(moment.to).or_default().push(place);
        }
    }

    /// Takes out what a change makes stale; some of it may have been taken out before, under its other name.
    fn take_stale(&mut self, change: &Change<'_>) -> Vec<u32> {
        let mut stale = Vec::new();
        for tool in change.tools {
            stale.extend(self.others_by_tool.remove(tool).into_iter().flatten());
            if change.files.is_empty() {
                stale.extend(self.files_by_tool.remove(tool).into_iter().flatten());
            }
        }
        stale.extend(change.files.iter().filter_map(|file| self.by_file.remove(file)).flatten());
        stale
    }
}

/// What the watch of a context knows.
pub(super) struct PrefetchWatch<'a, 'm> {
    told: ToldHistory<'a>,
    known: &'a KnownTools<'m>,
    numbers: &'a PlannerThresholds,
    pub clock: Clock,
    pub sent: Vec<SentPrefetch>,
    pub left: Vec<Left>,
    /// Prefetches by tool and input, and by tool, argument and value.
    by_input: IdMap<u64, Vec<u32>>,
    by_value: IdMap<u64, Vec<u32>>,
    /// Prefetches within the widest window.
    recent: Vec<u32>,
    /// Prefetches that can still be hit.
    live: LivePrefetches,
    recent_left: Vec<u32>,
}

impl<'a, 'm> PrefetchWatch<'a, 'm> {
    pub fn new(told: ToldHistory<'a>, known: &'a KnownTools<'m>, numbers: &'a PlannerThresholds) -> Self {
        Self {
            told,
            known,
            numbers,
            clock: Clock::default(),
            sent: Vec::new(),
            left: Vec::new(),
            by_input: IdMap::default(),
            by_value: IdMap::default(),
            recent: Vec::new(),
            live: LivePrefetches::default(),
            recent_left: Vec::new(),
        }
    }

    /// The agent sends a message.
    pub fn message(&mut self) {
        self.clock.step += 1;
        self.clock.before = self.clock.call;
    }

    /// A prefetch goes out. One of the same call that is still open grew too old, else none would go out: nothing hits it any
    /// more.
    pub fn send(&mut self, moment: Opportunity, input: u64, record: usize, predicted_tokens: u64) {
        self.clock.event += 1;
        let place = self.sent.len() as u32;
        let same = self.by_input.entry(key(moment.to, input)).or_default();
        if let Some(&before) = same.last() {
            self.sent[before as usize].closed = true;
        }
        same.push(place);
        let value = key(moment.to, moment.value ^ u64::from(moment.argument.0));
        self.by_value.entry(value).or_default().push(place);
        self.recent.push(place);
        self.live.add(place, &moment);
        self.sent.push(SentPrefetch {
            moment,
            record,
            predicted_tokens,
            at: self.clock,
            found: PrefetchMatches::default(),
            ever: Match::None,
            cited: false,
            failed: false,
            across_shell: false,
            bytes: None,
            own_ms: 0,
            closed: false,
        });
    }

    /// A call is declined.
    pub fn decline(&mut self, edge: PrefetchEdge, held: DeclineReason, input: u64) {
        self.recent_left.push(self.left.len() as u32);
        self.left.push(Left { edge, held, input, at: self.clock.call, exact: false, name: false });
    }

    /// The agent calls: credits one prefetch and one decline at most; gives the place of the prefetch that is asked for
    /// exactly.
    pub fn call(&mut self, index: usize) -> Option<usize> {
        let row = &self.told.history.calls[index];
        self.clock.call += 1;
        self.clock.event += 1;
        self.forget();
        if !row.ran() {
            return None;
        }
        self.cite(row.tool);
        self.credit_declined(row.tool, index);
        let (place, found) = self.closest(row, index)?;
        self.credit(place, found, row);
        (found == Match::Exact).then_some(place)
    }

    /// What a call changes: prefetches that it makes stale.
    pub fn change(&mut self, index: usize) -> Vec<usize> {
        let tool = self.known.get(self.told.history.calls[index].tool);
        self.clock.shell += u32::from(tool.changes == AnswerEffect::Perhaps);
        let Some(change) = Change::of(self.told, self.known, index) else { return Vec::new() };
        let mut stale = Vec::new();
        for place in self.live.take_stale(&change) {
            #[cfg(test)]
            crate::base::id::work::step();
            let closed = &mut self.sent[place as usize].closed;
            if !std::mem::replace(closed, true) {
                stale.push(place as usize);
            }
        }
        stale
    }

    /// The answer could not be used after all: nothing was hit.
    pub fn revoke(&mut self, place: usize) {
        let sent = &mut self.sent[place];
        (sent.found, sent.ever) = Default::default();
    }

    /// Drops what lies behind every window.
    fn forget(&mut self) {
        let (clock, judge, sent) = (self.clock, &self.numbers.judge, &self.sent);
        self.recent.retain(|&place| {
            let at = sent[place as usize].at;
            clock.before - at.call < judge.calls_far || clock.step - at.step <= judge.steps_near
        });
        let left = &self.left;
        self.recent_left.retain(|&place| clock.before - left[place as usize].at < judge.declined_calls);
    }

    fn cite(&mut self, tool: Sym) {
        let (event, reach) = (self.clock.event, self.numbers.published.cited_events);
        for &place in &self.recent {
            let sent = &mut self.sent[place as usize];
            sent.cited |= sent.moment.to == tool && event - sent.at.event <= reach;
        }
    }

    fn credit_declined(&mut self, tool: Sym, index: usize) {
        let input = self.told.values.input(index).map(|input| input.value);
        let of_tool =
            || self.recent_left.iter().map(|&place| place as usize).filter(|&place| self.left[place].edge.1 == tool);
        let exact = of_tool().find(|&place| !self.left[place].exact && input == Some(self.left[place].input));
        let name = exact.filter(|&place| !self.left[place].name);
        let name = name.or_else(|| of_tool().find(|&place| !self.left[place].name));
        if let Some(place) = exact {
            self.left[place].exact = true;
        }
        if let Some(place) = name {
            self.left[place].name = true;
        }
    }

    /// The prefetch that a call came closest to, the earliest of equals.
    fn closest(&self, row: &Call, index: usize) -> Option<(usize, Match)> {
        let open = |place: &&u32| !self.sent[**place as usize].closed;
        let input = self.told.values.input(index)?.value;
        let exact = self.by_input.get(&key(row.tool, input)).and_then(|places| places.iter().find(open));
        if let Some(&place) = exact {
            return Some((place as usize, Match::Exact));
        }
        let of_value = |place: &&u32| open(place) && self.sent[**place as usize].ever < Match::Target;
        let target = self.told.values.given(index).iter().find_map(|given| {
            let value = key(row.tool, given.value ^ u64::from(given.argument.0));
            let fits = |place: &&u32| of_value(place) && self.sent[**place as usize].moment.argument == given.argument;
            self.by_value.get(&value)?.iter().find(fits)
        });
        if let Some(&place) = target {
            return Some((place as usize, Match::Target));
        }
        let unnamed = |place: &&u32| {
            let sent = &self.sent[**place as usize];
            sent.moment.to == row.tool && sent.ever == Match::None && !sent.closed
        };
        self.recent.iter().find(unnamed).map(|&place| (place as usize, Match::Name))
    }

    fn credit(&mut self, place: usize, found: Match, row: &Call) {
        let (clock, judge) = (self.clock, &self.numbers.judge);
        let sent = &mut self.sent[place];
        if found == Match::Exact {
            sent.closed = true;
            sent.across_shell = clock.shell > sent.at.shell;
            sent.own_ms = row.latency_ms.unwrap_or_default().into();
            if row.status == Status::Error {
                sent.failed = true;
                return;
            }
        }
        // The answer to other arguments is another one, and images have no size in text.
        if found == Match::Exact && row.status == Status::Ok && row.kind != ResultKind::NonText {
            sent.bytes = Some(row.bytes.into());
        }
        sent.ever = sent.ever.max(found);
        sent.found.add(found, clock.before - sent.at.call, clock.step - sent.at.step, judge);
    }
}

/// Names a tool with what it is given.
pub(super) fn key(tool: Sym, hash: u64) -> u64 {
    hash ^ u64::from(tool.0).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
