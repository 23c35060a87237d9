//! What one person adds: the calls of each finished week that count, what they add up to (sums of whole numbers and nothing
//! else), and what other settings would have cost.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::base::id::Id;
use crate::fleet::light::{IN_ENDPOINT, IN_TOOL, LAGS, calls};
use crate::fleet::limits::{FleetLimits, monday_of};
use crate::fleet::measure::{
    BASELINE, BYTES, CALLS, COLUMNS, DISTANCE, EDGE, ENDPOINT, FORMATS, INNER_FORMAT, LATENCY, LOG_TOKENS,
    POLICY_TOKENS, REPEATS, SENT, SESSIONS, SHAPE, STEPS, SUPPORT, TOOL, WHAT_IF, bin,
};
use crate::fleet::naming::FleetNaming;
use crate::frames::contribution::{Contribution, Count, CountSubject};
use crate::frames::light::{LightCall, Number};
use crate::logs::trace::Millis;
use crate::telemetry::log::EventLog;

/// Who shares, when, and within which bounds.
pub struct ShareGuide<'a> {
    pub naming: &'a FleetNaming,
    pub limits: &'a FleetLimits,
    /// Pseudonym of the person.
    pub user: &'a str,
    pub now_ms: Millis,
}

/// A session under another setting, in input-equivalent tokens.
#[derive(Clone, Debug)]
pub struct Alternative {
    pub name: String,
    pub session: Id,
    /// When it began.
    pub start: Millis,
    /// As it was, simulated.
    pub log: u64,
    /// Under the setting.
    pub policy: u64,
}

/// A week of a person.
pub struct PersonWeek {
    /// What is added to a pool.
    pub contribution: Contribution,
    /// The calls that are counted in it, as they leave.
    pub calls: Vec<LightCall>,
}

/// All weeks that are over. What other settings would have cost stands in the week in which a session began.
pub fn contributions(log: &EventLog, alternatives: &[Alternative], guide: &ShareGuide<'_>) -> Vec<PersonWeek> {
    let week = |(week, calls): (Date, Vec<LightCall>)| {
        let mut counts = counts(&calls, guide.limits);
        counts.extend(what_if(week, alternatives, guide));
        counts.sort();
        let marks: BTreeSet<&String> = calls.iter().map(|call| &call.session).collect();
        let contribution = Contribution {
            user: guide.user.to_owned(),
            week: week.to_string(),
            secret: guide.naming.secret(),
            marks: marks.into_iter().take(guide.limits.marks_max).cloned().collect(),
            counts,
        };
        PersonWeek { contribution, calls }
    };
    calls(log, guide).into_iter().map(week).collect()
}

/// Whether a contribution tells what other settings would have cost.
pub fn tells_settings(contribution: &Contribution) -> bool {
    contribution.counts.iter().any(|count| count.subject.kind == WHAT_IF)
}

/// What the sessions of a week would have cost under other settings: as many as count, each up to a bound.
fn what_if(week: Date, alternatives: &[Alternative], guide: &ShareGuide<'_>) -> Vec<Count> {
    let FleetLimits { sessions_max, session_tokens_max, policy_factor_max, .. } = *guide.limits;
    let mut by_name: BTreeMap<&str, Vec<(String, &Alternative)>> = BTreeMap::new();
    for one in alternatives.iter().filter(|one| one.log > 0 && monday_of(one.start) == Some(week)) {
        by_name.entry(&one.name).or_default().push((guide.naming.mark(&one.session.to_string()), one));
    }
    let mut out = Vec::new();
    for (name, mut sessions) in by_name {
        sessions.sort_by(|(a, _), (b, _)| a.cmp(b));
        sessions.truncate(sessions_max as usize);
        let mut counts = Cells::from([((SESSIONS, 0), sessions.len() as u64)]);
        for (_, one) in sessions {
            let log = one.log.min(session_tokens_max);
            // Scaled down alike, so that the share that is saved stays.
            let policy = (u128::from(one.policy) * u128::from(log) / u128::from(one.log)) as u64;
            *counts.entry((LOG_TOKENS, 0)).or_default() += log;
            *counts.entry((POLICY_TOKENS, 0)).or_default() += policy.min(session_tokens_max * policy_factor_max);
        }
        let subject = CountSubject { kind: WHAT_IF.to_owned(), name: name.to_owned(), ..CountSubject::default() };
        out.extend(rows(&subject, &counts));
    }
    out
}

/// Counts of one subject by measure and bin.
type Cells = BTreeMap<(&'static str, u32), u64>;

/// The counts of the calls of a week, sorted.
pub fn counts(calls: &[LightCall], limits: &FleetLimits) -> Vec<Count> {
    let mut sums: BTreeMap<CountSubject, CountSum<'_>> = BTreeMap::new();
    let mut add = |kind: &str, name: &str, other: &str, lag: u32, session, cells: &[(&'static str, u32, u64)]| {
        let subject = CountSubject { kind: kind.to_owned(), name: name.to_owned(), other: other.to_owned(), lag };
        let sum = sums.entry(subject).or_default();
        sum.sessions.insert(session);
        cells.iter().for_each(|(measure, bin, count)| *sum.cells.entry((*measure, *bin)).or_default() += count);
    };
    for call in calls {
        let LightCall { session, tool, endpoint, after, .. } = call;
        let counts_in = call.number(Number::CountsIn);
        if counts_in & IN_ENDPOINT != 0 {
            add(ENDPOINT, endpoint, tool, 0, session.as_str(), &answer(call));
        }
        if counts_in & IN_TOOL != 0 {
            add(TOOL, tool, "", 0, session, &[(STEPS, 0, 1)]);
            for (lag, later) in LAGS.into_iter().zip(after).filter(|(lag, _)| limits.lags.contains(lag)) {
                later.split_whitespace().for_each(|to| add(EDGE, tool, to, lag, session, &[(SUPPORT, 0, 1)]));
            }
        }
    }
    sums.into_iter().flat_map(|(subject, sum)| rows(&subject, &sum.finished())).collect()
}

#[derive(Default)]
struct CountSum<'c> {
    cells: Cells,
    sessions: BTreeSet<&'c str>,
}

impl CountSum<'_> {
    fn finished(mut self) -> Cells {
        self.cells.insert((SESSIONS, 0), self.sessions.len() as u64);
        self.cells
    }
}

/// What an answer adds to its endpoint.
fn answer(call: &LightCall) -> Vec<(&'static str, u32, u64)> {
    let number = |number: Number| u32::try_from(call.number(number)).ok();
    let value = |of: Number| number(of).unwrap_or_default();
    let (baseline, saved) = (value(Number::Baseline), value(Number::Saved));
    let mut cells = vec![
        (CALLS, 0, 1),
        (BYTES, bin(value(Number::Bytes)), 1),
        (SHAPE, value(Number::Shape), 1),
        (BASELINE, 0, baseline.into()),
        (SENT, 0, baseline.saturating_sub(saved).into()),
    ];
    let formats = value(Number::InnerFormats);
    cells.extend((0..FORMATS).filter(|format| formats >> format & 1 == 1).map(|format| (INNER_FORMAT, format, 1)));
    cells.extend(number(Number::Columns).filter(|columns| *columns > 0).map(|columns| (COLUMNS, bin(columns), 1)));
    cells.extend(number(Number::Latency).map(|latency| (LATENCY, bin(latency), 1)));
    if let Some(distance) = number(Number::Distance) {
        cells.extend([(REPEATS, 0, 1), (DISTANCE, bin(distance), 1)]);
    }
    cells
}

/// The counts of a subject; what is nothing is not told.
fn rows(subject: &CountSubject, cells: &Cells) -> Vec<Count> {
    let row = |(&(measure, bin), &count): (&(&'static str, u32), &u64)| Count {
        subject: subject.clone(),
        measure: measure.to_owned(),
        bin,
        count: count as i64,
    };
    cells.iter().filter(|(_, count)| **count > 0).map(row).collect()
}
