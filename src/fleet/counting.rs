//! What light rows add up to: the counts of a contribution, which are sums of whole numbers and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::light::{IN_ENDPOINT, IN_TOOL, LAGS};
use crate::fleet::limits::FleetLimits;
use crate::fleet::measure::{
    BASELINE, BYTES, CALLS, COLUMNS, DISTANCE, EDGE, ENDPOINT, FORMATS, INNER_FORMAT, LATENCY, REPEATS, SENT, SESSIONS,
    SHAPE, STEPS, SUPPORT, TOOL, bin,
};
use crate::frames::contribution::{Count, CountSubject};
use crate::frames::light::{LightCall, Number};

/// Counts of one subject by measure and bin.
pub type Cells = BTreeMap<(&'static str, u32), u64>;

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
pub fn rows(subject: &CountSubject, cells: &Cells) -> Vec<Count> {
    let row = |(&(measure, bin), &count): (&(&'static str, u32), &u64)| Count {
        subject: subject.clone(),
        measure: measure.to_owned(),
        bin,
        count: count as i64,
    };
    cells.iter().filter(|(_, count)| **count > 0).map(row).collect()
}
