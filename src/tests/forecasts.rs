//! Predictions and what came: weeks, and intervals that promise how often they hold.

use crate::base::backtest::{at_share, next_within, week_of};

#[test]
fn the_next_of_many_equal_draws_lies_in_the_range_as_often_as_asked() {
    let values: Vec<f64> = (1..=39).map(f64::from).collect();
    // 40 gaps: one at either end is 5 %.
    assert_eq!(next_within(&values, 0.95), Some((1.0, 39.0)));
    assert_eq!(next_within(&values[..38], 0.95), None, "with 38 no range is that sure");
    assert_eq!(next_within(&values, 0.5), Some((10.0, 30.0)));
    assert_eq!(next_within(&[], 0.5), None);
}

#[test]
fn weeks_begin_on_thursdays() {
    const WEEK_MS: i64 = 604_800_000;
    assert_eq!([0, WEEK_MS - 1, WEEK_MS, -1].map(week_of), [0, 0, 1, -1]);
    assert_eq!(at_share(&[1.0, 2.0, 3.0], 0.5), Some(2.0));
    assert_eq!(at_share::<f64>(&[], 0.5), None);
}
