//! Sizes: increments shared out exactly, whatever the log leaves out.

use super::shipped_sheets::anchored_sizes;
use super::timeline_builder::Story;
use crate::base::data::Data;
use crate::base::tokenizer::VOCABULARIES;
use crate::logs::timeline::requests::{Marks, SegmentCause, Timeline, Trigger};
use crate::whatif::calibration;
use crate::whatif::sim::laid_out;
use crate::whatif::sim::sizes::{BlockSizes, Estimator, SizeRules, apportioned};

/// Tokens of the context that is laid out for a request.
fn laid(timeline: &Timeline, sizes: &BlockSizes, request: u32) -> u64 {
    let mut items = Vec::new();
    laid_out::lay(timeline, sizes, request, &mut items);
    let chain = timeline.requests[request as usize].chain;
    sizes.prefix[chain as usize] + items.iter().map(|item| u64::from(item.tokens)).sum::<u64>()
}

#[test]
fn parts_go_by_largest_remainder_and_sum_to_the_whole() {
    // 10 over 1 : 1 : 1 is 3⅓ each; the first of equals gets the one that is left.
    assert_eq!(apportioned(10, &[1, 1, 1]), [4, 3, 3]);
    // 7 over 5 : 3 : 2 is 3.5, 2.1, 1.4: one is left and .5 is the largest remainder.
    assert_eq!(apportioned(7, &[5, 3, 2]), [4, 2, 1]);
    assert_eq!(apportioned(7, &[0, 0]), [0, 0]);
    assert_eq!(apportioned(0, &[4, 2]), [0, 0]);
}

#[test]
fn an_increment_is_shared_in_proportion_to_estimates() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 4).calls("Read", "/a", 163).wait(1);
    // The growth is 1,000 tokens: 20,004 to 21,004.
    log.result(2_890).ask(20_000, 1_000, 4);
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    // Estimates: the call 163 / 3.26 + 55 = 105, the result 2890 / 2.89 + 30 = 1030; together 1,135 of 1,000 tokens.
    let (call, result) = (timeline.calls[0].asked as usize, timeline.calls[0].answered as usize);
    assert_eq!(
        (sizes.tokens[call], sizes.tokens[result]),
        (93, 907),
        "105/1135 = 92.5 and 907.5, the earlier gets more"
    );
    assert_eq!(sizes.residual[1], 0);
    assert!(sizes.anchored[1] && !sizes.anchored[0]);
}

#[test]
fn what_no_block_explains_is_residual() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Read", "/a", 163).wait(1);
    log.result(2_890).ask(20_000, 5_000, 0);
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    // At most 1.6 times the estimate of 1,135.
    assert_eq!(u64::from(sizes.residual[1]), 5_000 - 1_816);
    assert_eq!(laid(&timeline, &sizes, 1), 25_000);
}

#[test]
fn an_answer_that_was_cached_before_the_human_turn_has_its_measured_size() {
    let mut log = Story::new();
    log.session("a", "/p").hour().human(400).ask(0, 31_883, 8).says(2_000).wait(30);
    log.human(100).ask(32_515, 31, 8);
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    assert_eq!(sizes.tokens[timeline.requests[0].outputs.start as usize], 632);
    assert_eq!(sizes.tokens[timeline.requests[1].inputs.start as usize] + sizes.residual[1], 31);
}

#[test]
fn a_context_that_shrinks_loses_its_newest_items_and_keeps_its_measured_size() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).says(4_000).wait(1);
    log.human(400).ask(20_000, 1_100, 0).thinks(3_330).says(414).wait(1);
    log.segment(SegmentCause::Shrink).human(40).ask(0, 20_500, 0);
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    assert!(!sizes.gone[&2].is_empty());
    for request in 0..3 {
        assert_eq!(laid(&timeline, &sizes, request), timeline.requests[request as usize].context());
    }
}

#[test]
fn a_clearing_takes_the_results_that_it_names() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Read", "/a", 20).calls("Read", "/b", 20).wait(1);
    log.result(28_900).result(28_900).ask(20_000, 20_000, 0).says(40).wait(1);
    log.clearing(20_000, 10_000, &[1]).segment(SegmentCause::Shrink).human(4).ask(0, 31_000, 0);
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    let gone: Vec<_> = sizes.gone[&2].iter().map(|key| format!("{key:?}")).collect();
    assert_eq!(gone, [format!("Block({})", timeline.calls[1].answered)]);
    assert_eq!(laid(&timeline, &sizes, 2), 31_000);
}

#[test]
fn estimators_without_an_anchor_say_what_they_say() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0);
    log.timeline().blocks[0].tokens = [70, 90];
    let timeline = log.done();
    let size = |estimator| BlockSizes::new(&timeline, estimator, SizeRules::shipped()).tokens[0];
    assert_eq!(size(Estimator::O200k), 70);
    assert_eq!(size(Estimator::Cl100k), 90);
    assert_eq!(size(Estimator::Chars4), 100);
    assert_eq!(size(Estimator::Fitted), 97, "400 / 4.14 = 96.6");
    let unanchored = BlockSizes::new(&timeline, Estimator::Cl100k, SizeRules::shipped());
    assert_eq!((unanchored.residual[0], unanchored.anchored_share(&timeline)), (0, (0, 1)));
}

#[test]
fn sheets_with_senseless_ratios_are_refused() {
    let shipped = Data::default().text("policies/sizes.toml").unwrap();
    for (from, to) in
        [("text = 4.14", "text = 0"), ("stretch_max = 1.6", "stretch_max = -1"), ("text = 4.14", "txt = 4")]
    {
        let error = SizeRules::parse(&shipped.replace(from, to), "s.toml").unwrap_err().to_string();
        assert!(error.starts_with("s.toml:"), "{error}");
    }
}

/// policies.md 9: 100 for 120 is 16.67 %, so 17.
#[test]
fn drift_is_rounded_to_the_nearest_percent_of_the_truth() {
    assert_eq!(calibration::percent(100, 120), 17);
    assert_eq!(calibration::percent(120, 100), 20);
    assert_eq!(calibration::percent(0, 0), 0);
    assert_eq!(calibration::percent(1_005, 1_000), 1, "0.5 goes up");
    assert_eq!(calibration::percent(1_004, 1_000), 0);
}

/// Two sessions with known growth: ratios and drift worked out by hand.
#[test]
fn characters_per_token_are_measured_on_warm_increments() {
    let mut log = Story::new();
    for (name, chars, growth) in [("a", 3_000, 1_103), ("b", 1_000, 603)] {
        log.session(name, "/p").human(40).ask(0, 20_000, 3).calls("Bash", "", 0).wait(1);
        log.result(chars).ask(20_000, growth - 3, 3).says(10).wait(1);
        // A human turn and a cold one do not count.
        log.human(500).ask(20_000 + growth - 3, 900, 3).wait(60);
    }
    let timeline = log.done();
    let found = calibration::calibrate(&timeline, SizeRules::shipped());
    let [family] = found.families.as_slice() else { panic!("{:?}", found.families) };
    assert_eq!((family.family.as_str(), family.increments, family.sessions), ("claude-opus-4.5", 2, 2));
    // Framing: 55 + 30 + 18 = 103 per increment, so 1,000 and 500 tokens of text.
    assert_eq!((family.chars, family.tokens), (4_000, 1_500));
    assert!((family.chars_per_token.value - 8.0 / 3.0).abs() < 1e-12);
    // Residuals 3000 − 8/3·1000 = 333.3 and −333.3; variance n/(n−1) · 2 · 333.3² / 1500², so half = 12.706 · 666.7 / 1500 (Student, one degree).
    let above = family.chars_per_token.upper.unwrap() - family.chars_per_token.value;
    assert!((above - 12.706 * 666.666_666_7 / 1_500.0).abs() < 1e-6);
    assert_eq!((family.bytes, family.bytes_per_token, family.counted), (4_000, family.chars_per_token, [1_000; 2]));
    let quarter = found.drift.iter().find(|drift| drift.estimator == "chars/4").unwrap();
    // 750 for 1,103 is 32 %, 250 for 603 is 59 %.
    assert_eq!((quarter.estimated, quarter.actual), (1_000, 1_706));
    assert_eq!((quarter.percent_p50, quarter.percent_p90), (59, 59));
    assert_eq!(quarter.histogram, [0, 0, 0, 0, 0, 0, 0, 1, 1, 0]);
}

/// A profile divides bytes: text of two bytes a character has twice as many of them per token.
#[test]
fn bytes_per_token_are_counted_apart_from_characters() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 3).calls("Bash", "", 0).wait(1);
    log.result(3_000).ask(20_000, 1_100, 3);
    log.timeline().blocks.iter_mut().for_each(|block| block.bytes = 2 * block.chars);
    let found = calibration::calibrate(&log.done(), SizeRules::shipped());
    let family = &found.families[0];
    assert_eq!((family.chars, family.bytes, family.tokens), (3_000, 6_000, 1_000));
    assert_eq!((family.chars_per_token.value, family.bytes_per_token.value), (3.0, 6.0));
    assert_eq!(family.bytes_per_token.lower, None, "one session has no interval");
}

/// Logs may be gone before their blocks were counted: no tokens is not a count of none.
#[test]
fn blocks_that_nobody_counted_are_estimated_and_calibrate_nothing() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 3).calls("Bash", "", 0).wait(1);
    log.result(3_000).ask(20_000, 1_100, 3);
    log.timeline().blocks.iter_mut().for_each(|block| block.tokens = [0; VOCABULARIES.len()]);
    let timeline = log.done();
    assert_eq!(calibration::calibrate(&timeline, SizeRules::shipped()).families, []);
    let sizes = |estimator| BlockSizes::new(&timeline, estimator, SizeRules::shipped()).tokens;
    let (counted, fitted) = (sizes(Estimator::O200k), sizes(Estimator::Fitted));
    assert_eq!([counted[0], counted[2]], [fitted[0], fitted[2]]);
    assert_eq!(counted[1], 0, "no text has no tokens");
}

/// What may happen between two requests.
#[derive(Clone, Debug)]
enum Move {
    Tool(u32, u64),
    Human(u32, u64),
    Empty(u64),
    Shrink(u64),
    Compaction(u64),
    BackTo(u32),
    Unbilled,
}

fn moves() -> impl proptest::strategy::Strategy<Value = Vec<Move>> {
    use proptest::prelude::*;
    let one = prop_oneof![
        (0_u32..40_000, 0_u64..20_000).prop_map(|(chars, growth)| Move::Tool(chars, growth)),
        (0_u32..4_000, 0_u64..9_000).prop_map(|(chars, growth)| Move::Human(chars, growth)),
        (0_u64..3_000).prop_map(Move::Empty),
        (1_u64..30_000).prop_map(Move::Shrink),
        (1_000_u64..60_000).prop_map(Move::Compaction),
        (0_u32..30).prop_map(Move::BackTo),
        Just(Move::Unbilled),
    ];
    proptest::collection::vec(one, 1..30)
}

fn told(moves: &[Move]) -> Timeline {
    let mut log = Story::new();
    let mut context = 20_000_u64;
    log.session("a", "/p").human(40).ask(0, context, 0);
    for (index, step) in moves.iter().enumerate() {
        log.wait(1);
        match *step {
            Move::Tool(chars, growth) => {
                log.calls("Bash", "", 30).result(chars);
                context += growth;
            }
            Move::Human(chars, growth) => {
                log.says(chars / 2).human(chars);
                context += growth;
            }
            Move::Empty(growth) => context += growth,
            Move::Shrink(by) => {
                if by > 500 {
                    log.segment(SegmentCause::Shrink);
                }
                context = context.saturating_sub(by).max(1);
            }
            Move::Compaction(to) => {
                log.compaction(Trigger::Auto, None, 900);
                context = to;
            }
            Move::BackTo(request) => {
                log.back_to(request.min(index as u32)).human(10);
                context += 50;
            }
            Move::Unbilled => {
                log.says(50).human(10).ask(0, 0, 0);
                continue;
            }
        }
        log.ask(0, context, 0);
    }
    log.done()
}

/// Expects contexts laid out one from the other to hold what those hold that are laid out by themselves. For each, how many leading
/// items are said to have stayed, and how many did.
pub fn laid_out_from_each_other(
    timeline: &Timeline,
    sizes: &BlockSizes,
) -> Result<Vec<(usize, usize)>, proptest::test_runner::TestCaseError> {
    let (mut items, mut stayed) = (Vec::new(), Vec::new());
    for index in 0..timeline.requests.len() as u32 {
        let old = items.clone();
        let kept = laid_out::step(timeline, sizes, index, &mut items);
        let mut whole = Vec::new();
        laid_out::lay(timeline, sizes, index, &mut whole);
        proptest::prop_assert_eq!(&items, &whole, "request {}", index);
        proptest::prop_assert_eq!(&old[..kept], &items[..kept], "request {}", index);
        stayed.push((kept, old.iter().zip(&items).take_while(|(old, new)| old == new).count()));
    }
    Ok(stayed)
}

proptest::proptest! {
    /// The anchor: whatever happens, the context that is laid out for a request is as large as the bill says.
    #[test]
    fn every_context_has_its_billed_size(moves in moves()) {
        let timeline = told(&moves);
        let sizes = anchored_sizes(&timeline);
        for (index, request) in timeline.requests.iter().enumerate().filter(|(_, request)| request.context() > 0) {
            proptest::prop_assert_eq!(laid(&timeline, &sizes, index as u32), request.context(), "request {}", index);
        }
    }

    /// From one context to the next, or from the beginning: they hold the same, and what is said to have stayed stayed.
    #[test]
    fn contexts_laid_out_one_from_the_other_are_those_laid_out_by_themselves(moves in moves()) {
        let timeline = told(&moves);
        let is_cut = timeline.segments.len() > 1;
        for (kept, same) in laid_out_from_each_other(&timeline, &anchored_sizes(&timeline))? {
            proptest::prop_assert!(kept == same || kept < same && is_cut, "{} of {}", kept, same);
        }
    }

    #[test]
    fn parts_are_whole_and_off_by_less_than_one(whole in 0_u64..1 << 32, weights in proptest::collection::vec(0_u64..1 << 32, 1..20)) {
        let parts = apportioned(whole, &weights);
        let all: u64 = weights.iter().sum();
        if all > 0 {
            proptest::prop_assert_eq!(parts.iter().sum::<u64>(), whole);
            for (&part, &weight) in parts.iter().zip(&weights) {
                let exact = whole as f64 * weight as f64 / all as f64;
                proptest::prop_assert!((part as f64 - exact).abs() < 1.0 + 1e-6 * exact);
            }
        }
    }
}

#[test]
fn each_chain_has_its_own_prefix_and_items() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).says(100).wait(1).human(40).ask(20_000, 200, 0);
    log.agent("x").mark(Marks::META).human(40).ask(0, 9_000, 0);
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    assert_eq!(laid(&timeline, &sizes, 2), 9_000);
    assert_eq!(laid(&timeline, &sizes, 1), 20_200);
}

#[test]
fn a_conversation_that_goes_back_again_and_again_is_laid_out_from_where_it_went_on() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).says(40);
    for request in 0..30_000 {
        log.wait(1).back_to(request).human(10).ask(0, 20_000 + u64::from(request), 0).says(4);
    }
    let timeline = log.done();
    let sizes = anchored_sizes(&timeline);
    let (mut whole, mut items) = (Vec::new(), Vec::new());
    laid_out::lay(&timeline, &sizes, 30_000, &mut whole);
    (0..=30_000).for_each(|index| {
        laid_out::step(&timeline, &sizes, index, &mut items);
    });
    assert_eq!((items.len(), items == whole), (whole.len(), true));
}

/// A result of 2,890 characters: 1,000 tokens and 30 of framing by the fitted formula, 700 and 722.5 where its text is counted.
#[test]
fn what_is_counted_has_no_framing_in_it() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Read", "/a", 163).result(2_890).ask(20_000, 5_000, 0);
    let mut timeline = log.done();
    let result = timeline.calls[0].answered as usize;
    let text_of = |timeline: &Timeline, estimator| {
        let sizes = BlockSizes::new(timeline, estimator, SizeRules::shipped());
        sizes.rules.text_tokens(&timeline.blocks[result], 2_890, sizes.tokens[result]).unwrap()
    };
    timeline.blocks[result].tokens = [0; VOCABULARIES.len()];
    assert_eq!(text_of(&timeline, Estimator::O200k), 1_000, "never counted, so estimated");
    timeline.blocks[result].tokens = [700; VOCABULARIES.len()];
    let all = [Estimator::Anchored, Estimator::Fitted, Estimator::Cl100k, Estimator::O200k, Estimator::Chars4];
    // The measured growth is more than its blocks can take: 1.6 times their estimates.
    assert_eq!(all.map(|estimator| text_of(&timeline, estimator)), [1_600, 1_000, 700, 700, 723]);
}
