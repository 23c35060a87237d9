//! Statistics against values worked out by hand or by plain summation.

use crate::base::significance::{TwoByTwo, benjamini_hochberg, normal_of_t, quantile_above, t_of_normal, upper_tail};
use crate::base::stats::{Clustered, Share};

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1e-12), "{found} is not {wanted}");
}

#[test]
fn the_wilson_interval_of_25_in_100_is_the_published_one() {
    let share = Share::new(25, 100);
    assert_eq!(format!("{:.5} {:.5}", share.lower, share.upper), "0.17545 0.34305");
}

/// The tea tasting: 3 of 4 cups named right. P = (16 + 1) / 70.
#[test]
fn fishers_test_of_the_tea_tasting_is_17_in_70() {
    near(TwoByTwo { both: 3, row: 4, column: 4, total: 8 }.p_greater(), 17.0 / 70.0);
    near(TwoByTwo { both: 4, row: 4, column: 4, total: 8 }.p_greater(), 1.0 / 70.0);
    near(TwoByTwo { both: 0, row: 4, column: 4, total: 8 }.p_greater(), 1.0);
    near(TwoByTwo { both: 3, row: 4, column: 4, total: 8 }.p_two_sided(), 34.0 / 70.0);
}

fn choose(n: u64, k: u64) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// All tables of some small margins against a plain sum of binomials.
#[test]
fn tails_are_sums_of_all_tables_that_are_as_far_out() {
    for (row, column, total) in
        [(4_u64, 7_u64, 12_u64), (9, 9, 10), (1, 1, 30), (20, 6, 41), (30, 25, 60), (5, 0, 9), (6, 6, 6)]
    {
        let least = (row + column).saturating_sub(total);
        let most = row.min(column);
        let chance = |k: u64| choose(column, k) * choose(total - column, row - k) / choose(total, row);
        for both in least..=most {
            let table = TwoByTwo { both, row, column, total };
            let (upper, lower): (f64, f64) = ((both..=most).map(chance).sum(), (least..=both).map(chance).sum());
            near(table.p_greater(), upper);
            let two = if least == most { 1.0 } else { (2.0 * upper.min(lower)).min(1.0) };
            near(table.p_two_sided(), two);
        }
    }
}

#[test]
fn a_test_of_a_million_pairs_is_finite_and_says_the_obvious() {
    let strong = TwoByTwo { both: 90_000, row: 100_000, column: 120_000, total: 1_000_000 };
    assert_eq!(strong.p_greater(), 0.0, "far below what a number can hold");
    let even = TwoByTwo { both: 12_000, row: 100_000, column: 120_000, total: 1_000_000 }.p_greater();
    assert!((0.45..0.55).contains(&even), "{even}");
}

/// Ten values as in the textbook: q of rank i is the least p·10/j over all ranks j from i on.
#[test]
fn benjamini_hochberg_gives_the_values_worked_out_by_hand() {
    let p = [0.041, 0.001, 0.216, 0.008, 0.039, 0.205, 0.042, 0.060, 0.074, 0.212];
    let q = benjamini_hochberg(&p);
    // Sorted: .001 .008 .039 .041 .042 .060 .074 .205 .212 .216; times 10 / rank:
    // .01 .04 .13 .1025 .084 .1 .1057… .25625 .2355… .216; running least from the right.
    let wanted = [0.084, 0.01, 0.216, 0.04, 0.084, 0.216, 0.084, 0.1, 0.74 / 7.0, 0.216];
    for (found, wanted) in q.into_iter().zip(wanted) {
        near(found, wanted);
    }
    assert!(benjamini_hochberg(&[]).is_empty());
}

/// *Pass* and *fail* need the whole interval.
#[test]
fn a_target_inside_the_interval_is_open() {
    use crate::base::stats::{TargetFigure, TargetVerdict};
    let of = |ends, target| TargetVerdict::of(ends, target).into_str();
    assert_eq!(of((0.61, 0.9), TargetFigure::AtLeast(0.6)), "pass");
    assert_eq!(of((0.59, 0.9), TargetFigure::AtLeast(0.6)), "open");
    assert_eq!(of((0.1, 0.59), TargetFigure::AtLeast(0.6)), "fail");
    assert_eq!(of((0.0, 0.1), TargetFigure::AtMost(0.1)), "pass");
    assert_eq!(of((0.0, 0.2), TargetFigure::AtMost(0.1)), "open");
    assert_eq!(of((0.11, 0.2), TargetFigure::AtMost(0.1)), "fail");
}

/// A bound in KiB holds what it was made of, and is no larger than three digits ask for.
#[test]
fn a_largest_size_is_rounded_up() {
    use crate::rules::tool_keys::{kib, kib_at_least};
    for bytes in (1..200_000_u32).step_by(37) {
        let (written, nearest) = (kib_at_least(f64::from(bytes)), kib(f64::from(bytes)));
        assert!(1024.0 * written >= f64::from(bytes) * (1.0 - 1e-9), "{bytes}: {written}");
        assert!((written - nearest).abs() <= 0.0101 * nearest, "{bytes}: {written} and {nearest}");
    }
    assert_eq!((kib_at_least(1024.0), kib_at_least(1025.0), kib_at_least(0.0)), (1.0, 1.01, 0.0));
}

#[test]
fn students_t_has_the_tails_of_the_published_table() {
    for (t, df) in [(3.182, 3.0), (2.228, 10.0), (2.021, 40.0), (1.984, 100.0)] {
        let tail = upper_tail(normal_of_t(t, df));
        assert!((tail - 0.025).abs() < 0.001, "{t} {df}: {tail}");
    }
    assert!(upper_tail(normal_of_t(12.706, 1.0)) > 0.025, "on the safe side");
}

/// Sessions with a share of their own, of one kind on both sides; also where one side has few of them.
#[test]
fn a_difference_over_sessions_is_found_by_chance_no_oftener_than_it_says() {
    for sessions in [[15, 15], [4, 40]] {
        let (over_sessions, over_trials) = found(sessions, 0.0);
        assert!(over_sessions <= 32, "{over_sessions} of 400, {sessions:?}");
        assert!(over_trials > 120, "{over_trials} of 400, {sessions:?}");
        let (over_sessions, _) = found(sessions, 0.6);
        assert!(over_sessions > 200, "{over_sessions} of 400, {sessions:?}");
    }
}

/// How many of 400 differences are found, over sessions and over single trials, if the share of one side is higher by so much.
fn found(sessions: [usize; 2], more: f64) -> (u32, u32) {
    let mut state = 7_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let (mut over_sessions, mut over_trials) = (0, 0);
    for _ in 0..400 {
        let [a, b] = [(sessions[0], more), (sessions[1], 0.0)].map(|(sessions, more)| {
            let mut side = Clustered::default();
            for _ in 0..sessions {
                let (share, trials) = (more + (1.0 - more) * random() * random(), 10 + (60.0 * random()) as u64);
                side.add_trials(trials, 1.0);
                side.add_successes((0..trials).filter(|_| random() < share).count() as u64, trials, 1.0);
            }
            side
        });
        over_sessions += u32::from(a.p_of_difference(&b).is_some_and(|p| p <= 0.05));
        let counts = |side: &Clustered| (side.successes as u64, side.trials as u64);
        over_trials += u32::from(TwoByTwo::of_sides(counts(&a), counts(&b)).p_two_sided() <= 0.05);
    }
    (over_sessions, over_trials)
}

/// Numbers from 0 to 1.
fn dice(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

/// Sessions of which a few are most of the calls, each with a share of its own; the share of all of them is a quarter.
fn uneven(sessions: usize, random: &mut impl FnMut() -> f64) -> Vec<(u64, u64)> {
    let one = |_| {
        let trials = (4.0 / (1.0 - 0.99 * random()).powf(0.9)) as u64;
        // 1/4 on average: a product of two is, and above a half of them are few.
        let share = random() * random();
        ((0..trials).filter(|_| random() < share).count() as u64, trials)
    };
    (0..sessions).map(one).collect()
}

#[test]
fn an_interval_over_sessions_holds_where_one_over_calls_does_not() {
    for sessions in [4, 8, 20, 60] {
        let mut random = dice(5);
        let (mut over_sessions, mut over_calls) = (0, 0);
        for _ in 0..400 {
            let seen = Clustered::of(uneven(sessions, &mut random)).over_clusters();
            let plain = Share::new(seen.k, seen.n);
            over_sessions += u32::from((seen.lower..=seen.upper).contains(&0.25));
            over_calls += u32::from((plain.lower..=plain.upper).contains(&0.25));
        }
        assert!(over_sessions >= 356 && over_calls < 280, "{sessions}: {over_sessions} and {over_calls} of 400");
    }
}

#[test]
fn sums_over_sessions_are_the_same_in_any_order_and_in_pieces() {
    let sessions = uneven(50, &mut dice(3));
    let whole = Clustered::of(sessions.iter().copied());
    let mut pieces = Clustered::of(sessions[20..].iter().rev().copied());
    pieces.absorb(&Clustered::of(sessions[..20].iter().copied()));
    assert_eq!(pieces, whole);
}

#[test]
fn sessions_that_agree_are_no_more_than_so_many_sessions() {
    let ends = |sessions: &[(u64, u64)]| {
        let share = Clustered::of(sessions.iter().copied()).over_clusters();
        (share.lower, share.upper)
    };
    assert_eq!(ends(&[(900, 1000)]), (0.0, 1.0), "one says nothing of others");
    assert_eq!(ends(&[]), (0.0, 1.0));
    let (lower, upper) = ends(&[(100, 100); 8]);
    assert!((0.5..0.7).contains(&lower) && upper == 1.0, "{lower}");
    let (least, most) = ends(&[(0, 100); 8]);
    assert!(least == 0.0 && (most - (1.0 - lower)).abs() < 1e-12, "{most}");
    // One that has nearly all is as good as alone, however many stand beside it.
    let mut most = vec![(0, 1); 39];
    most.push((900, 1000));
    let (lower, upper) = ends(&most);
    assert!(lower < 0.01 && upper > 0.99, "{lower} to {upper}");
}

#[test]
fn a_tail_of_students_t_is_the_one_of_the_normal_value_it_was_made_from() {
    for df in [0.5, 1.0, 3.0, 10.0, 200.0] {
        near(normal_of_t(t_of_normal(1.96, df), df), 1.96);
    }
    for (t, df) in [(3.182, 3.0), (2.228, 10.0), (2.021, 40.0)] {
        assert!((t_of_normal(quantile_above(0.025), df) / t - 1.0).abs() < 0.02, "{df}");
    }
    assert!(t_of_normal(1.96, 0.0).is_finite());
}
