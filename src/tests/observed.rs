//! Follow-ups and repeats of recorded responses, against plain re-implementations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;

use crate::base::id::{Id, work};
use crate::base::names::{Names, Sym};
use crate::mine::follow_ups::FollowUps;
use crate::mine::observe::{EventGuide, EventSums};
use crate::telemetry::log::{EventLog, NO_STEP, RecordedEvent};

const TOOLS: [&str; 4] = ["", "A", "B", "C"];

pub fn event(chain: u32, partition: u32, step: u32, tool: u32, body: u8, place: usize) -> RecordedEvent {
    RecordedEvent {
        session: chain / 2,
        chain,
        partition,
        step,
        ts: place as i64,
        call: place as u32,
        tool: Sym(tool),
        endpoint: Sym(tool),
        body: if body == 0 { Id::NONE } else { Id([body; 16]) },
        bytes: 100,
        baseline: 25,
        sent: 25,
        ..RecordedEvent::default()
    }
}

/// A sorted log; steps grow within a chain, and several calls may share one.
fn logs() -> impl Strategy<Value = EventLog> {
    logs_of(4, TOOLS.len() as u32, 0..120)
}

/// The same of so many chains, two of each session, of some of so many tools.
fn logs_of(chains: u32, tools: u32, rows: Range<usize>) -> impl Strategy<Value = EventLog> {
    let row = (0..chains, 0_u32..3, 1..tools, 0_u8..6, any::<bool>());
    (prop::collection::vec(row, rows), any::<bool>()).prop_map(move |(mut rows, stepped)| {
        rows.sort_by_key(|&(chain, partition, ..)| (chain, partition));
        let (mut last, mut step) = (None, 0);
        let mut events = Vec::new();
        for (place, (chain, partition, tool, body, same_step)) in rows.into_iter().enumerate() {
            step = match last {
                Some(before) if before == chain => step + u32::from(!same_step),
                _ => 0,
            };
            last = Some(chain);
            events.push(event(chain, partition, if stepped { step } else { NO_STEP }, tool, body, place));
        }
        let name = |tool: u32| TOOLS.get(tool as usize).map_or_else(|| format!("T{tool}"), |name| (*name).to_owned());
        let names = Names::from_texts((0..tools).map(name).collect());
        let sessions: Vec<String> = (0..chains.div_ceil(2)).map(|session| format!("s{session}")).collect();
        EventLog { names: names.into(), sessions: sessions.into(), events, ..EventLog::default() }
    })
}

/// Names as they are.
const PLAIN: EventGuide<'_> = EventGuide {
    sessions: &[],
    pseudonym: &str::to_owned,
    is_pseudonym: &|_| false,
    is_foreseen: true,
    bytes_per_token: 4,
};

/// A step of a chain.
type Step = (u32, u32);
/// Tool, partition.
type Use = (u32, u32);

fn steps(log: &EventLog) -> BTreeMap<Step, BTreeSet<Use>> {
    let mut steps: BTreeMap<Step, BTreeSet<Use>> = BTreeMap::new();
    let mut places: BTreeMap<u32, u32> = BTreeMap::new();
    for event in &log.events {
        let place = places.entry(event.chain).or_insert(0);
        let step = if event.step == NO_STEP { *place } else { event.step };
        *place += 1;
        steps.entry((event.chain, step)).or_default().insert((event.tool.0, event.partition));
    }
    steps
}

/// Holds the follow-ups of a log against a plain count.
fn plain_count(log: &EventLog) -> Result<(), TestCaseError> {
    let numbers = crate::rules::statistics::numbers(&crate::base::data::Data::default()).unwrap();
    let found = FollowUps::of_events(log, &log.starts(), &numbers.links.lags, usize::MAX).rows(&numbers);
    let steps = steps(log);
    let mut expected: BTreeMap<(u32, u32, u32), (u64, BTreeSet<u32>)> = BTreeMap::new();
    for (&(chain, step), uses) in &steps {
        for lag in 1..=3 {
            for &(to, there) in steps.get(&(chain, step + lag)).into_iter().flatten() {
                for &(from, _) in uses.iter().filter(|(_, here)| *here == there) {
                    let row = expected.entry((from, to, lag)).or_default();
                    row.0 += 1;
                    row.1.insert(chain / 2);
                }
            }
        }
    }
    prop_assert_eq!(found.len(), expected.len());
    for edge in &found {
        let (support, sessions) = &expected[&(edge.from.0, edge.to.0, edge.lag)];
        let trials: u64 =
            steps.values().map(|uses| uses.iter().filter(|(tool, _)| *tool == edge.from.0).count() as u64).sum();
        prop_assert_eq!((edge.support, edge.sessions), (*support, sessions.len() as u64));
        prop_assert_eq!(edge.trials, trials);
        let share = edge.support as f64 / trials as f64;
        prop_assert!(edge.lower <= share + 1e-9 && edge.upper + 1e-9 >= share, "{:?}", edge);
    }
    Ok(())
}

/// Rows of an endpoint are looked up, not sought among those of all others.
#[test]
fn fingerprints_of_many_endpoints_take_as_many_times_longer() {
    let steps = |endpoints: u32| {
        let names = (0..=endpoints).map(|number| format!("T{number:05}")).collect();
        let events = (1..=endpoints).map(|tool| event(0, 0, tool, tool, 0, tool as usize)).collect();
        let names = Names::from_texts(names);
        let log = EventLog { names: names.into(), sessions: ["s".into()].into(), events, ..EventLog::default() };
        let sums = EventSums::of(&log.whole()).unwrap();
        let mut found = 0;
        let steps = work::of(|| found = sums.observed(&log.whole(), &PLAIN).endpoints.len());
        assert_eq!(found, endpoints as usize);
        steps
    };
    let [few, many] = [250, 1000].map(steps);
    assert!(few > 0 && many < 6 * few, "{few} steps for 250, {many} for 1000");
}

proptest! {
    #![proptest_config(super::log_builder::cases(128))]

    #[test]
    fn follow_ups_are_those_of_a_plain_count(log in logs()) {
        plain_count(&log)?;
    }

    // Pairs of so many tools have no places of their own.
    #[test]
    fn follow_ups_of_many_tools_are_those_of_a_plain_count(log in logs_of(2, 90, 60..120)) {
        plain_count(&log)?;
    }

    // More than are counted at once.
    #[test]
    fn follow_ups_of_many_sessions_are_those_of_a_plain_count(log in logs_of(800, 4, 500..900)) {
        plain_count(&log)?;
    }

    #[test]
    fn follow_ups_of_the_first_sessions_are_those_of_a_log_without_the_others(log in logs(), sessions in 0_usize..3) {
        let numbers = crate::rules::statistics::numbers(&crate::base::data::Data::default()).unwrap();
        let (starts, lags) = (log.starts(), &numbers.links.lags);
        let sessions = sessions.min(starts.len());
        let within = FollowUps::of_events(&log, &starts, lags, sessions).rows_of_first(sessions, &numbers);
        let alone = FollowUps::of_events(&log, &starts[..sessions], lags, usize::MAX).rows(&numbers);
        prop_assert_eq!(format!("{within:?}"), format!("{alone:?}"));
    }

    #[test]
    fn what_two_parts_add_up_to_is_what_the_whole_does(log in logs(), split_at in 0_i64..40) {
        let starts = log.starts();
        let part = log.within(&starts[..starts.partition_point(|(start, _)| *start < split_at)]);
        let sums = EventSums::of(&part).unwrap().plus(EventSums::of(&part.others()).unwrap()).unwrap();
        let whole = EventSums::of(&log.whole()).unwrap();
        prop_assert_eq!(format!("{:?}", sums.observed(&log.whole(), &PLAIN)), format!("{:?}", whole.observed(&log.whole(), &PLAIN)));
    }

    #[test]
    fn the_distance_of_a_repeat_is_the_number_of_other_bodies_since(log in logs()) {
        let observed = EventSums::of(&log.whole()).unwrap().observed(&log.whole(), &PLAIN);
        let mut distances: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (place, event) in log.events.iter().enumerate().filter(|(_, event)| event.body.is_some()) {
            let context = |other: &RecordedEvent| (other.chain, other.partition) == (event.chain, event.partition);
            let before: Vec<&RecordedEvent> = log.events[..place].iter().filter(|other| context(other)).collect();
            let Some(last) = before.iter().rposition(|other| other.body == event.body) else { continue };
            let between: BTreeSet<Id> =
                before[last + 1..].iter().map(|other| other.body).filter(|body| body.is_some()).collect();
            distances.entry(event.endpoint.0).or_default().push(between.len() as u64);
        }
        for row in &observed.endpoints {
            let endpoint = TOOLS.iter().position(|name| *name == row.endpoint).unwrap() as u32;
            let mut wanted = distances.remove(&endpoint).unwrap_or_default();
            wanted.sort_unstable();
            prop_assert_eq!(row.repeat_events, wanted.len() as u64);
            // The smallest value that nine in ten do not exceed.
            let rank = (wanted.len() * 9).div_ceil(10);
            prop_assert_eq!(row.repeat_distance_p90, rank.checked_sub(1).map(|at| wanted[at]));
        }
    }
}
