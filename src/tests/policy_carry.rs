//! Sizes after compactions, predicted by what was known before their week, on clients of which everything is known.

use super::shipped_sheets::anchored_sizes;
use crate::base::backtest::week_of;
use crate::base::bootstrap::below;
use crate::logs::timeline::requests::{Timeline, Trigger};
use crate::tests::timeline_builder::Story;
use crate::whatif::compaction::carry::after_sizes;
use crate::whatif::compaction::outcome::AfterSizes;
use crate::whatif::compaction::{CompactionThresholds, carry};

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Tokens of tools and system prompt, and of the instructions behind them.
const PREFIX: u64 = 18_000;
const MEMORY: u64 = 9_000;

/// A client that puts back the five files that were read last, cut to 5,000 tokens, and a rest of its own. A session every day and a
/// half; `noise` is how far what comes back varies, in tokens.
pub fn sessions(count: usize, seed: u64, rest: u64, noise: usize) -> Timeline {
    let mut state = seed;
    let mut pick = move |end: usize| below(end, &mut state);
    let mut log = Story::new();
    for number in 0..count {
        log.at(number as i64 * DAY * 3 / 2);
        log.session(&format!("s{number}"), "/p").human(40).ask(PREFIX, MEMORY + 13, 0);
        let mut read = PREFIX + MEMORY + 13;
        let mut files = Vec::new();
        for file in 0..4 + pick(6) {
            let tokens = 200 + pick(9_000) as u64;
            // Framing of a call and of an increment is in the bill and in no file.
            log.calls("Read", &format!("/f{file}"), 0).wait(2).result((tokens as f64 * 2.89) as u32);
            log.ask(read, tokens + 103, 0);
            read += tokens + 103;
            files.push(tokens);
        }
        log.says(0).wait(60);
        let summary = 2_500 + pick(1_500) as u64;
        let back: u64 = files.iter().rev().take(5).map(|tokens| (*tokens).min(5_000)).sum();
        let varies = pick(noise.max(1)) as u64;
        log.compaction(Trigger::Auto, Some(read), (summary as f64 * 4.14) as u32).human(40);
        log.ask(PREFIX, MEMORY + 10 + summary + back + rest + varies, 0).says(10);
    }
    log.done()
}

fn found(timeline: &Timeline) -> AfterSizes {
    let thresholds = CompactionThresholds::shipped();
    after_sizes(timeline, &anchored_sizes(timeline), &thresholds.params, thresholds)
}

#[test]
fn sizes_after_compactions_are_predicted_by_what_comes_back() {
    for seed in 0..4 {
        let found = found(&sessions(120, seed, 6_000, 4_000));
        assert_eq!(found.learned.n, 120);
        assert!(found.learned.value() >= 0.9, "{:?}", found.learned);
        assert!(found.learned.value() > found.by_params.value(), "better than one size for all: {:?}", found.by_params);
        assert_eq!(found.is_met, Some(true));
    }
}

#[test]
fn the_interval_holds_as_often_as_it_promises() {
    let (mut held, mut all) = (0, 0);
    for seed in 0..6 {
        let found = found(&sessions(200, seed, 9_000, 16_000));
        // Once enough was seen.
        let known = &found.forecasts[60..];
        held += known.iter().filter(|one| one.holds()).count();
        all += known.len();
    }
    let share = 100.0 * held as f64 / all as f64;
    assert!(
        (share - CompactionThresholds::shipped().client.reattach.interval_percent).abs() <= 3.0 || share > 90.0,
        "{share}"
    );
    assert!(share < 99.9, "an interval that never fails says nothing");
}

#[test]
fn a_week_knows_nothing_of_itself_and_of_later_ones() {
    let timeline = sessions(60, 7, 6_000, 4_000);
    let sizes = anchored_sizes(&timeline);
    let thresholds = CompactionThresholds::shipped();
    let mut compactions = carry::compactions(&timeline, &sizes, thresholds);
    let before = carry::forecasts(&compactions, thresholds);
    let week = week_of(compactions[30].at);
    for one in compactions.iter_mut().filter(|one| week_of(one.at) >= week) {
        one.came *= 3;
    }
    let after = carry::forecasts(&compactions, thresholds);
    for (one, other) in before.iter().zip(&after).filter(|(one, _)| one.week <= week) {
        assert_eq!((one.predicted, one.lower, one.upper), (other.predicted, other.lower, other.upper));
    }
    assert!(
        before.iter().zip(&after).any(|(one, other)| one.predicted != other.predicted),
        "later weeks learn from it"
    );
}

/// What comes back is measured on the log where it has compactions enough; else it is what the parameters say.
#[test]
fn what_comes_back_after_a_compaction_is_that_of_the_log() {
    let thresholds = CompactionThresholds::shipped();
    let of = |count: usize| {
        let timeline = sessions(count, 5, 6_000, 4_000);
        let found = carry::reattached(&timeline, &anchored_sizes(&timeline), &thresholds.params, thresholds);
        let mut came: Vec<u64> =
            timeline.boundaries.iter().map(|one| timeline.request(one.request).context() - PREFIX).collect();
        came.sort_unstable();
        (found, came[came.len().div_ceil(2) - 1] - 3_012)
    };
    let (measured, expected) = of(41);
    assert!(measured.is_measured && measured.known == 41);
    assert!(u64::from(measured.tokens).abs_diff(expected) * 50 < expected, "{measured:?}, not {expected}");
    assert!(measured.words().ends_with("(the median of 41 compactions here)"), "{}", measured.words());
    let (few, _) = of(2);
    assert_eq!((few.is_measured, few.known, few.tokens), (false, 2, thresholds.params.reattach_tokens));
    assert!(few.words().contains("15,000 tokens come back"), "{}", few.words());
}
