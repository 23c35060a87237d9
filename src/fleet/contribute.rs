//! What one person adds: the responses of each finished week as counts, bounded and with the rare left out, under names that
//! say nothing of the person.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::fleet::edges::{Use, after, uses};
use crate::fleet::limits::Limits;
use crate::fleet::measure::{
    BASELINE, BYTES, CALLS, COLUMNS, DISTANCE, EDGE, ENDPOINT, INNER_FORMAT, LOG_TOKENS, POLICY_TOKENS, REPEATS, SENT,
    SESSIONS, SHAPE, STEPS, SUPPORT, TOOL, WHAT_IF, bin,
};
use crate::fleet::naming::Naming;
use crate::fleet::weeks;
use crate::frames::contribution::{Contribution, Count, Subject};
use crate::logs::trace::Millis;
use crate::mine::repeats::{NO_REPEAT, repeats};
use crate::telemetry::log::{Event, EventLog};

/// Who shares, when, and within which bounds.
pub struct Guide<'a> {
    /// How names leave.
    pub naming: &'a Naming,
    /// Bounds.
    pub limits: &'a Limits,
    /// Pseudonym of the person.
    pub user: &'a str,
    /// Now.
    pub now_ms: Millis,
}

/// A session under another setting, in input-equivalent tokens.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// Name of the setting.
    pub name: String,
    /// The session.
    pub session: Id,
    /// When it began.
    pub start: Millis,
    /// As it was, simulated.
    pub log: u64,
    /// Under the setting.
    pub policy: u64,
}

/// The contributions of all weeks that are over, by week. What other settings would have cost stands in the week in which a session
/// began.
pub fn contributions(log: &EventLog, alternatives: &[Alternative], guide: &Guide<'_>) -> Vec<Contribution> {
    let told =
        |event: &Event| weeks::monday_of(event.ts).filter(|week| weeks::is_told(*week, guide.now_ms, guide.limits));
    let draft = Draft { log, guide, distances: repeats(log), uses: uses(log), weeks: Weeks::default() };
    let mut draft = draft;
    for (index, event) in log.events.iter().enumerate() {
        if let Some(week) = told(event) {
            draft.weeks.endpoints.entry((week, event.endpoint, event.tool)).or_default().push(index);
            draft.weeks.sessions.entry(week).or_default().insert(event.session);
        }
    }
    for (index, used) in draft.uses.iter().enumerate() {
        if let Some(week) = told(&log.events[used.event]) {
            draft.weeks.steps.entry((week, used.tool)).or_default().push(index);
        }
    }
    draft.finish(alternatives)
}

/// Where the responses of each week stand.
#[derive(Default)]
struct Weeks {
    sessions: BTreeMap<Date, BTreeSet<u32>>,
    endpoints: BTreeMap<(Date, Sym, Sym), Vec<usize>>,
    steps: BTreeMap<(Date, Sym), Vec<usize>>,
}

struct Draft<'a> {
    log: &'a EventLog,
    guide: &'a Guide<'a>,
    distances: Vec<u32>,
    uses: Vec<Use>,
    weeks: Weeks,
}

/// Counts of one subject by measure and bin.
type Counts = BTreeMap<(&'static str, u32), u64>;

impl Draft<'_> {
    fn finish(self, alternatives: &[Alternative]) -> Vec<Contribution> {
        let mut weeks: BTreeMap<Date, Vec<Count>> = BTreeMap::new();
        for ((week, endpoint, tool), events) in &self.weeks.endpoints {
            let chosen = self.chosen(events, |at| &self.log.events[at]);
            if chosen.len() as u64 >= self.guide.limits.events_min {
                let subject = self.subject(ENDPOINT, *endpoint, Some(*tool), 0);
                weeks.entry(*week).or_default().extend(rows(&subject, &self.endpoint(&chosen)));
            }
        }
        for ((week, tool), steps) in &self.weeks.steps {
            let chosen = self.chosen(steps, |at| &self.log.events[self.uses[at].event]);
            if chosen.len() as u64 >= self.guide.limits.events_min {
                weeks.entry(*week).or_default().extend(self.tool(*tool, &chosen));
            }
        }
        for (week, counts) in &mut weeks {
            counts.extend(self.what_if(*week, alternatives));
        }
        let contribution = |(week, mut counts): (Date, Vec<Count>)| {
            counts.sort();
            Contribution {
                user: self.guide.user.to_owned(),
                week: week.to_string(),
                secret: self.guide.naming.secret(),
                marks: self.marks(week),
                counts: summed(counts),
            }
        };
        weeks.into_iter().map(contribution).collect()
    }

    fn subject(&self, kind: &str, name: Sym, other: Option<Sym>, lag: u32) -> Subject {
        let named = |name: Sym| self.guide.naming.of(self.log.names.text(name));
        let other = other.map(named).unwrap_or_default();
        Subject { kind: kind.to_owned(), name: named(name), other, lag }
    }

    /// A bounded sample: of so many sessions so many events, drawn by keyed marks, so that the choice does not depend on
    /// what is in them.
    fn chosen<'e>(&self, of: &[usize], event: impl Fn(usize) -> &'e Event) -> Vec<usize> {
        let Limits { sessions_max, events_max, .. } = *self.guide.limits;
        let sessions: BTreeSet<u32> = of.iter().map(|&at| event(at).session).collect();
        let mut marked: Vec<(String, u32)> = sessions.into_iter().map(|at| (self.session_mark(at), at)).collect();
        marked.sort();
        let kept: BTreeSet<u32> = marked.into_iter().take(sessions_max as usize).map(|(_, at)| at).collect();
        let mut chosen: Vec<usize> = of.iter().copied().filter(|&at| kept.contains(&event(at).session)).collect();
        if chosen.len() as u64 > events_max {
            let mark = |&at: &usize| {
                let Event { session, chain, step, call, ts, .. } = event(at);
                self.guide.naming.mark(&format!("{} {chain} {step} {call} {ts}", self.log.sessions[*session as usize]))
            };
            chosen.sort_by_cached_key(mark);
            chosen.truncate(events_max as usize);
        }
        chosen
    }

    fn session_mark(&self, session: u32) -> String {
        self.guide.naming.mark(&self.log.sessions[session as usize])
    }

    fn marks(&self, week: Date) -> Vec<String> {
        let sessions = self.weeks.sessions.get(&week).into_iter().flatten();
        let marks: BTreeSet<String> = sessions.map(|&session| self.session_mark(session)).collect();
        marks.into_iter().take(self.guide.limits.marks_max).collect()
    }

    fn endpoint(&self, events: &[usize]) -> Counts {
        let mut counts = Counts::new();
        let mut sessions = BTreeSet::new();
        let most = |tokens: u32| u64::from(tokens).min(self.guide.limits.tokens_max);
        for &at in events {
            let event = &self.log.events[at];
            sessions.insert(event.session);
            let mut add = |measure, bin, count: u64| *counts.entry((measure, bin)).or_default() += count;
            add(CALLS, 0, 1);
            add(BYTES, bin(event.bytes), 1);
            add(SHAPE, event.shape.into(), 1);
            add(BASELINE, 0, most(event.baseline));
            add(SENT, 0, most(event.sent));
            (0..14).filter(|format| event.inner_formats >> format & 1 == 1).for_each(|at| add(INNER_FORMAT, at, 1));
            if event.columns > 0 {
                add(COLUMNS, bin(event.columns), 1);
            }
            if self.distances[at] != NO_REPEAT {
                add(REPEATS, 0, 1);
                add(DISTANCE, bin(self.distances[at]), 1);
            }
        }
        counts.insert((SESSIONS, 0), sessions.len() as u64);
        counts
    }

    /// What the sessions of a week would have cost under other settings: as many as count, each up to a bound.
    fn what_if(&self, week: Date, alternatives: &[Alternative]) -> Vec<Count> {
        let Limits { sessions_max, session_tokens_max, policy_factor_max, .. } = *self.guide.limits;
        let mut by_name: BTreeMap<&str, Vec<(String, &Alternative)>> = BTreeMap::new();
        for one in alternatives.iter().filter(|one| one.log > 0 && weeks::monday_of(one.start) == Some(week)) {
            by_name.entry(&one.name).or_default().push((self.guide.naming.mark(&one.session.to_string()), one));
        }
        let mut out = Vec::new();
        for (name, mut sessions) in by_name {
            sessions.sort_by(|(a, _), (b, _)| a.cmp(b));
            sessions.truncate(sessions_max as usize);
            let mut counts = Counts::from([((SESSIONS, 0), sessions.len() as u64)]);
            for (_, one) in sessions {
                let log = one.log.min(session_tokens_max);
                // Scaled down alike, so that the share that is saved stays.
                let policy = (u128::from(one.policy) * u128::from(log) / u128::from(one.log)) as u64;
                *counts.entry((LOG_TOKENS, 0)).or_default() += log;
                *counts.entry((POLICY_TOKENS, 0)).or_default() += policy.min(session_tokens_max * policy_factor_max);
            }
            let subject = Subject { kind: WHAT_IF.to_owned(), name: name.to_owned(), ..Subject::default() };
            out.extend(rows(&subject, &counts));
        }
        out
    }

    /// A tool and what came after it, over the same steps.
    fn tool(&self, tool: Sym, steps: &[usize]) -> Vec<Count> {
        let sessions: BTreeSet<u32> = steps.iter().map(|&at| self.uses[at].session).collect();
        let counts = Counts::from([((STEPS, 0), steps.len() as u64), ((SESSIONS, 0), sessions.len() as u64)]);
        let mut out = rows(&self.subject(TOOL, tool, None, 0), &counts);
        for ((to, lag), followed) in after(&self.uses, steps, &self.guide.limits.lags) {
            if followed.support >= self.guide.limits.events_min {
                let sessions = followed.sessions.len() as u64;
                let counts = Counts::from([((SUPPORT, 0), followed.support), ((SESSIONS, 0), sessions)]);
                out.extend(rows(&self.subject(EDGE, tool, Some(to), lag), &counts));
            }
        }
        out
    }
}

fn rows(subject: &Subject, counts: &Counts) -> Vec<Count> {
    let row = |(&(measure, bin), &count): (&(&'static str, u32), &u64)| Count {
        subject: subject.clone(),
        measure: measure.to_owned(),
        bin,
        count: count as i64,
    };
    counts.iter().filter(|(_, count)| **count > 0).map(row).collect()
}

/// Each key once: two names may leave as one.
fn summed(counts: Vec<Count>) -> Vec<Count> {
    let mut out: Vec<Count> = Vec::with_capacity(counts.len());
    for count in counts {
        match out.last_mut() {
            Some(last) if (&last.subject, &last.measure, last.bin) == (&count.subject, &count.measure, count.bin) => {
                last.count += count.count;
            }
            _ => out.push(count),
        }
    }
    out
}
