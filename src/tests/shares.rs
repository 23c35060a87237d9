//! Effects as shares of one whole.

use proptest::prelude::*;

use crate::base::bootstrap::{Resampling, TAIL, sum_interval};
use crate::replay::savings::{SavedBySession, shares, total};

fn by_session(effects: &[f64]) -> SavedBySession {
    (0..).zip(effects.iter().copied()).collect()
}

/// Effects alone, as the last one, and together, of changes of which each covers some sessions fully: what several cover
/// counts once.
fn covering(changes: &[Vec<bool>], worth: &[f64]) -> (Vec<SavedBySession>, Vec<SavedBySession>, SavedBySession) {
    let count = |session: usize| changes.iter().filter(|covers| covers[session]).count();
    let value = |is_saved: &dyn Fn(usize) -> bool| {
        by_session(
            &(0..worth.len()).map(|session| if is_saved(session) { worth[session] } else { 0.0 }).collect::<Vec<_>>(),
        )
    };
    let alone = changes.iter().map(|covers| value(&|session| covers[session])).collect();
    let last = changes.iter().map(|covers| value(&|session| covers[session] && count(session) == 1)).collect();
    (alone, last, value(&|session| count(session) > 0))
}

proptest! {
    #![proptest_config(super::log_builder::cases(128))]

    #[test]
    fn shares_add_up_to_the_whole_in_every_session(
        changes in prop::collection::vec(prop::collection::vec(any::<bool>(), 6), 1..7),
        worth in prop::collection::vec(0.0..100.0_f64, 6),
    ) {
        let (alone, last, whole) = covering(&changes, &worth);
        let found = shares(&alone, &last, &whole);
        for session in 0..6 {
            let sum: f64 = found.iter().map(|share| share.get(&session).copied().unwrap_or_default()).sum();
            prop_assert!((sum - whole[&session]).abs() < 1e-6, "session {}: {} of {}", session, sum, whole[&session]);
        }
        // What shares nothing keeps its effect.
        for (share, (alone, last)) in found.iter().zip(alone.iter().zip(&last)) {
            if found.len() > 1 && alone == last && total(alone) > 0.0 && changes.iter().any(|_| total(&whole) > total(alone)) {
                let others: f64 = found.iter().map(total).sum::<f64>() - total(share);
                prop_assert!(others <= total(&whole) + 1e-6);
            }
        }
    }
}

#[test]
fn the_same_saving_at_five_endpoints_is_a_fifth_at_each() {
    let (alone, last, whole) = covering(&std::array::from_fn::<_, 5, _>(|_| vec![true, true]), &[30.0, 70.0]);
    for share in shares(&alone, &last, &whole) {
        assert!((total(&share) - 20.0).abs() < 1e-9, "{share:?}");
    }
}

#[test]
fn of_two_changes_the_share_is_the_shapley_value_and_apart_from_them_a_third_keeps_its_own() {
    // The first alone 10, the second alone 6, both 12; the third 5, whatever the others do.
    let changes: Vec<SavedBySession> = [10.0, 6.0, 5.0].iter().map(|effect| by_session(&[*effect])).collect();
    let last: Vec<SavedBySession> = [6.0, 2.0, 5.0].iter().map(|effect| by_session(&[*effect])).collect();
    let found: Vec<f64> = shares(&changes, &last, &by_session(&[17.0])).iter().map(total).collect();
    assert_eq!(found, [8.0, 4.0, 5.0]);
}

#[test]
fn the_interval_of_a_sum_knows_sessions_that_add_nothing() {
    let resampling = Resampling { seed: 7, samples: 1000 };
    let (low, high) = sum_interval(&[100.0], 50, &resampling, TAIL).unwrap();
    assert!(low == 0.0 && high >= 200.0, "one session of fifty may not come again, or three times: {low} to {high}");
    let (low, high) = sum_interval(&[2.0; 50], 50, &resampling, TAIL).unwrap();
    assert_eq!((low, high), (100.0, 100.0));
    assert_eq!(sum_interval(&[], 0, &resampling, TAIL), None);
}
