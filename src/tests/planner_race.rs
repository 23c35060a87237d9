//! The race of prefetches in simulated time, against the published vectors and its own invariants.
//! Comments name the published defect (`D5`) that a test keeps out.

use proptest::prelude::*;

use super::log_builder::cases;
use crate::planner::candidates::{CallKey, NamedArgument};
use crate::planner::numbers::PlannerThresholds;
use crate::planner::prefetches::PrefetchEnd;
use crate::planner::race::{Prefetch, Race, RaceEnd, RaceLimits, Round, latency_ms};
use crate::settings::Effective;
use crate::settings::tool_model::CostModel;

fn limits(parallel_max: usize, timeout_ms: u64, per_host_max: u32) -> RaceLimits {
    RaceLimits { parallel_max, timeout_ms, per_host_max, respect_rate_limits: true }
}

fn request(number: u64) -> CallKey {
    CallKey { tool: "Read".into(), argument: NamedArgument::new("file_path", number) }
}

fn prefetch(number: u64, latency_ms: u64) -> Prefetch {
    Prefetch { request: request(number), host: None, latency_ms, fresh_ms: None }
}

fn to(host: &str, number: u64, latency_ms: u64) -> Prefetch {
    Prefetch { host: Some(host.into()), ..prefetch(number, latency_ms) }
}

fn fates(race: &Race) -> Vec<RaceEnd> {
    race.records().iter().map(|record| record.fate).collect()
}

/// Prefetches that are on their way, claimed or not.
fn in_flight(race: &Race) -> usize {
    let sent = race.records().iter().filter(|record| !matches!(record.fate, RaceEnd::Refused(_)));
    sent.filter(|record| record.settled_ms.is_none()).count()
}

const SATURATED: RaceEnd = RaceEnd::Refused(PrefetchEnd::HostSaturated);
const AT_THE_CAP: RaceEnd = RaceEnd::Refused(PrefetchEnd::MaxParallelReached);

#[test]
fn limits_come_from_the_configuration() {
    let numbers = &PlannerThresholds::shipped().race;
    let enrichment = Effective::built_in().settings.enrichment;
    assert_eq!(RaceLimits::new(&enrichment, numbers), limits(3, 1000, 4));
    let known = CostModel { latency_ms_p50: Some(220), ..CostModel::default() };
    let of = |measured, cost| latency_ms(measured, cost, numbers);
    assert_eq!((of(Some(5), &known), of(None, &known), of(None, &CostModel::default())), (5, 220, 1000));
}

#[test]
fn fast_prefetches_settle_within_the_wait_which_lasts_no_longer_than_they_do() {
    // D4: the wait is accounted.
    let mut race = Race::new(limits(3, 500, 4));
    let round = race.dispatch(100, vec![prefetch(1, 10), prefetch(2, 15)]);
    assert_eq!(round, Round { records: vec![0, 1], in_time: vec![0, 1], waited_ms: 15 });
    assert_eq!(race.records()[1].settled_ms, Some(115));
}

#[test]
fn a_slow_prefetch_outlives_the_wait_and_stays_in_flight() {
    let mut race = Race::new(limits(3, 50, 4));
    let round = race.dispatch(0, vec![prefetch(1, 500)]);
    assert_eq!((round.in_time.len(), round.waited_ms, in_flight(&race)), (0, 50, 1));
    // The wait is global: two slow ones hold the answer no longer than one.
    let round = race.dispatch(0, vec![prefetch(2, 500), prefetch(3, 600)]);
    assert_eq!((round.in_time.len(), round.waited_ms), (0, 50));
    // D2, D3: what arrives late is still there for a call that comes later.
    race.pass(700);
    assert_eq!((in_flight(&race), race.claim(700, &request(1))), (0, Some(RaceEnd::Won)));
}

#[test]
fn nothing_is_waited_for_that_an_earlier_answer_set_off() {
    let mut race = Race::new(limits(3, 50, 4));
    race.dispatch(0, vec![prefetch(1, 5000)]);
    assert_eq!(race.dispatch(10, vec![prefetch(2, 20)]).waited_ms, 20);
    assert_eq!(race.dispatch(20, Vec::new()).waited_ms, 0);
}

#[test]
fn more_than_the_parallel_cap_is_refused() {
    let mut race = Race::new(limits(2, 500, 4));
    let round = race.dispatch(0, (1..=4).map(|n| prefetch(n, 10)).collect());
    assert_eq!(fates(&race), [RaceEnd::Settled, RaceEnd::Settled, AT_THE_CAP, AT_THE_CAP]);
    assert_eq!(round.in_time, [0, 1]);
}

#[test]
fn the_parallel_cap_counts_what_earlier_answers_set_off() {
    // D5
    let mut race = Race::new(limits(2, 0, 4));
    race.dispatch(0, vec![prefetch(1, 100), prefetch(2, 100)]);
    race.dispatch(50, vec![prefetch(3, 10)]);
    race.dispatch(100, vec![prefetch(4, 10)]);
    assert_eq!(fates(&race), [RaceEnd::Settled, RaceEnd::Settled, AT_THE_CAP, RaceEnd::InFlight]);
}

#[test]
fn a_host_is_saturated_until_its_call_ends() {
    let mut race = Race::new(limits(9, 0, 1));
    race.dispatch(0, vec![to("h", 1, 100)]);
    race.dispatch(10, vec![to("h", 2, 100), to("other", 3, 100), prefetch(4, 5)]);
    assert_eq!(fates(&race)[1..], [SATURATED, RaceEnd::InFlight, RaceEnd::InFlight]);
    race.pass(100);
    assert_eq!(race.calls_to("h"), 0);
    race.dispatch(100, vec![to("h", 5, 100)]);
    assert_eq!(fates(&race)[4], RaceEnd::InFlight);
    // A cap of 0 lets nothing through.
    let mut closed = Race::new(limits(9, 0, 0));
    closed.dispatch(0, vec![to("h", 1, 1), prefetch(2, 1)]);
    assert_eq!(fates(&closed), [SATURATED, RaceEnd::InFlight]);
}

#[test]
fn three_hosts_do_not_stand_in_each_others_way_and_the_limit_can_be_switched_off() {
    let mut race = Race::new(limits(9, 500, 1));
    race.dispatch(0, vec![to("a", 1, 10), to("b", 2, 10), to("c", 3, 10)]);
    assert_eq!(fates(&race), [RaceEnd::Settled; 3]);
    let mut free = Race::new(RaceLimits { respect_rate_limits: false, ..limits(9, 500, 1) });
    free.dispatch(0, (1..=3).map(|n| to("a", n, 10)).collect());
    assert_eq!(fates(&free), [RaceEnd::Settled; 3]);
}

#[test]
fn calls_of_the_agent_take_slots_of_their_host() {
    // D5
    let mut race = Race::new(limits(9, 0, 1));
    race.occupy(0, "h", 100);
    race.dispatch(50, vec![to("h", 1, 10)]);
    race.dispatch(100, vec![to("h", 2, 10)]);
    assert_eq!(fates(&race), [SATURATED, RaceEnd::InFlight]);
}

#[test]
fn a_win_is_a_call_that_need_not_run() {
    // A1, A2, D1
    let mut race = Race::new(limits(9, 0, 4));
    race.dispatch(0, vec![prefetch(1, 100), prefetch(2, 100), prefetch(3, 100)]);
    assert_eq!(race.claim(100, &request(1)), Some(RaceEnd::Won));
    // E1: one call of the agent credits one prefetch, and another argument is another call.
    assert_eq!((race.claim(101, &request(1)), race.claim(101, &request(9))), (None, None));
    race.pass(200);
    assert_eq!(fates(&race), [RaceEnd::Won, RaceEnd::Settled, RaceEnd::Settled]);
}

#[test]
fn a_call_that_comes_first_is_late_and_runs_twice() {
    let mut race = Race::new(limits(9, 0, 4));
    race.dispatch(0, vec![prefetch(1, 100)]);
    assert_eq!(race.claim(99, &request(1)), Some(RaceEnd::Late));
    assert_eq!(in_flight(&race), 1, "it is not recalled");
    race.pass(100);
    assert_eq!((in_flight(&race), race.records()[0].settled_ms), (0, Some(100)));
    race.pass(500);
    assert_eq!(fates(&race), [RaceEnd::Late]);
}

#[test]
fn after_a_wait_everything_happens_later_than_in_the_log() {
    let mut race = Race::new(limits(9, 1000, 4));
    assert_eq!(race.dispatch(0, vec![prefetch(1, 300)]).waited_ms, 300);
    // In the log the agent asked 10 ms after the answer; it got the answer 300 ms later.
    assert_eq!(race.claim(10, &request(1)), Some(RaceEnd::Won));
    assert_eq!(race.records()[0].claimed_ms, Some(310));
}

#[test]
fn freshness_and_changes_bound_every_reuse() {
    // C9
    let mut race = Race::new(limits(9, 0, 4));
    let aging = |n| Prefetch { fresh_ms: Some(50), ..prefetch(n, 100) };
    race.dispatch(0, vec![aging(1), aging(2), prefetch(3, 100), prefetch(4, 100)]);
    assert_eq!(race.claim(150, &request(1)), Some(RaceEnd::Won));
    assert_eq!(race.claim(151, &request(2)), Some(RaceEnd::Stale));
    race.invalidate(160, |changed| *changed == request(3));
    assert_eq!((race.claim(170, &request(3)), race.claim(170, &request(4))), (None, Some(RaceEnd::Won)));
    assert_eq!(fates(&race), [RaceEnd::Won, RaceEnd::Stale, RaceEnd::Stale, RaceEnd::Won]);
}

#[test]
fn the_same_call_is_fetched_once_until_it_is_too_old() {
    let mut race = Race::new(limits(9, 0, 4));
    let aging = || vec![Prefetch { fresh_ms: Some(50), ..prefetch(1, 10) }];
    for at_ms in [0, 5, 60, 61] {
        race.dispatch(at_ms, aging());
    }
    let again = RaceEnd::Refused(PrefetchEnd::AlreadyFetched);
    assert_eq!(fates(&race), [RaceEnd::Stale, again, again, RaceEnd::InFlight]);
}

#[test]
fn what_has_not_settled_by_the_end_stays_in_flight() {
    let mut race = Race::new(limits(9, 0, 4));
    race.dispatch(0, vec![to("h", 1, 10), to("h", 2, 1000)]);
    race.pass(100);
    assert_eq!(fates(&race), [RaceEnd::Settled, RaceEnd::InFlight]);
    assert_eq!((in_flight(&race), race.calls_to("h")), (1, 1));
    assert_eq!(race.records()[1].settled_ms, None);
}

#[test]
fn fifty_requests_leave_nothing_behind() {
    let mut race = Race::new(limits(6, 10, 2));
    race.dispatch(0, (0..50).map(|n| to(["a", "b", "c"][n as usize % 3], n, 5 + n)).collect());
    let settled = fates(&race).iter().filter(|fate| **fate == RaceEnd::Settled).count();
    let refused = fates(&race).iter().filter(|fate| matches!(fate, RaceEnd::Refused(_))).count();
    assert!(refused >= 44 && settled <= 6, "{refused} {settled}");
    race.pass(1000);
    assert_eq!(in_flight(&race), 0);
}

/// What may happen in a race: kind, gap to the one before, number, latency.
type Step = (u8, u64, u64, u64);

fn play(steps: &[Step], limits: RaceLimits) -> Race {
    let mut race = Race::new(limits);
    let mut at_ms = 0;
    for &(kind, gap_ms, number, latency_ms) in steps {
        at_ms += gap_ms;
        let host = |n: u64| ["a", "b"][(n % 2) as usize];
        match kind {
            0..4 => {
                let of = |n: u64| Prefetch {
                    fresh_ms: n.is_multiple_of(3).then_some(20),
                    ..to(host(n), n, latency_ms * (n % 4))
                };
                let round = race.dispatch(at_ms, (number..number + u64::from(kind)).map(of).collect());
                assert!(round.waited_ms <= limits.timeout_ms);
            }
            4 => drop(race.claim(at_ms, &request(number))),
            5 => race.occupy(at_ms, host(number), latency_ms),
            6 => race.invalidate(at_ms, |changed| *changed == request(number)),
            _ => race.pass(at_ms),
        }
        assert!(in_flight(&race) <= limits.parallel_max);
    }
    race
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn races_keep_their_limits_and_their_books(
        steps in prop::collection::vec((0_u8..8, 0_u64..40, 0_u64..9, 0_u64..60), 0..40),
        parallel_max in 0_usize..4,
        timeout_ms in 0_u64..50,
        per_host_max in 0_u32..3,
    ) {
        let limits = limits(parallel_max, timeout_ms, per_host_max);
        let race = play(&steps, limits);
        // The same again is the same again.
        let again = play(&steps, limits);
        prop_assert_eq!(race.records(), again.records());
        let sent: Vec<_> = race.records().iter().filter(|record| !matches!(record.fate, RaceEnd::Refused(_))).collect();
        // At no moment are there more of them in flight than allowed, in all and by host, whatever became of them.
        for record in &sent {
            let at = record.dispatched_ms;
            let ends = |other: &Prefetch, from: u64| from + other.latency_ms;
            let overlapping: Vec<_> = sent
                .iter()
                .filter(|other| other.dispatched_ms <= at && ends(&other.prefetch, other.dispatched_ms) > at)
                .collect();
            prop_assert!(overlapping.len() <= parallel_max);
            let host = &record.prefetch.host;
            let same_host = overlapping.iter().filter(|other| other.prefetch.host == *host).count();
            prop_assert!(same_host <= per_host_max as usize);
        }
        for record in &sent {
            match record.fate {
                RaceEnd::Won => prop_assert!(record.settled_ms <= record.claimed_ms && record.settled_ms.is_some()),
                RaceEnd::Late => prop_assert!(record.settled_ms.is_none_or(|settled| Some(settled) > record.claimed_ms)),
                RaceEnd::InFlight => prop_assert_eq!(record.settled_ms, None),
                RaceEnd::Settled => {
                    prop_assert!(record.settled_ms.is_some() && record.claimed_ms.is_none());
                }
                RaceEnd::Stale | RaceEnd::Refused(_) => {}
            }
        }
    }
}
