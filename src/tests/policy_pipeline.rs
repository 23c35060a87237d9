//! The pipeline among policies, on stories told by hand: what is shortened, what hints may point at, and what stays.

use proptest::prelude::*;

use super::plain_driver::{Sent as Seen, blocks, send};
use super::timeline_builder::Story;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::pipeline::{Formats, HintScope, Params, Pipeline, Points, SentResult, Shortened, outcome};
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::{ContextView, Given, Item, ItemKey, Moment, Stage, StageOutput};

const KNOBS: Params = Params { formats: Formats::Published, partition: HintScope::Virtual };

/// One call and one result a request. Blocks: 0 prompt, 2i + 1 call, 2i + 2 result.
fn results(chars: &[u32]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1);
    for &chars in chars {
        log.calls("Read", "", 5).result(chars).ask(1_000, 10, 1);
    }
    log.done()
}

fn hint(call: u32, target: u32) -> SentResult {
    SentResult { call, baseline: 100, tokens: 10, points: Points::At(target) }
}

fn encoded(call: u32, tokens: u64) -> SentResult {
    SentResult { call, baseline: 100, tokens, points: Points::Nowhere }
}

/// The stage, and behind it one that takes blocks out from some request on.
struct Before {
    pipeline: Pipeline,
    from: u32,
    gone: Vec<u32>,
}

impl Stage for Before {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.pipeline.begin(timeline, chain);
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        self.pipeline.apply(moment, Given { kept: 0, ..given }, view, out);
        if moment.request >= self.from {
            view.items.retain(|item| !matches!(item.key, ItemKey::Block(block) if self.gone.contains(&block)));
        }
        0
    }
}

/// What goes out, and the sums.
fn run(timeline: &Timeline, params: Params, sent: &[SentResult], from: u32, gone: &[u32]) -> (Vec<Seen>, Shortened) {
    let (pipeline, journal) = Pipeline::new(timeline, params, sent.into(), SizeRules::shipped());
    let seen = send(timeline, &mut Before { pipeline, from, gone: gone.to_vec() });
    (seen, outcome(&journal))
}

fn tokens(view: &ContextView, block: u32) -> u32 {
    view.items.iter().find(|item| item.key == ItemKey::Block(block)).unwrap().tokens
}

/// What is left of a result of so many characters (and tokens) of which a share of the text is sent.
fn left(timeline: &Timeline, block: u32, sent: &SentResult) -> u32 {
    let chars = timeline.blocks[block as usize].chars;
    let text = SizeRules::shipped().text_tokens(&timeline.blocks[block as usize], chars, chars).unwrap();
    assert!(text < chars, "framing is no text");
    chars - text + (u64::from(text) * sent.tokens).div_ceil(sent.baseline) as u32
}

#[test]
fn text_is_shortened_in_proportion_and_framing_is_not() {
    let timeline = results(&[1_000, 1_000, 500]);
    let sent = [encoded(0, 60), hint(1, 0), encoded(2, 100)];
    let (seen, sum) = run(&timeline, KNOBS, &sent, u32::MAX, &[]);
    let last = &seen.last().unwrap().view;
    assert_eq!(tokens(last, 2), left(&timeline, 2, &sent[0]));
    assert_eq!(tokens(last, 4), left(&timeline, 4, &sent[1]));
    assert_eq!(tokens(last, 6), 500, "nothing was gained there");
    assert_eq!(blocks(last), blocks(&seen.last().unwrap().logged), "nothing goes");
    let saved = u64::from(2_000 - tokens(last, 2) - tokens(last, 4));
    let expected = Shortened { results: 3, shortened: 2, hints: 1, hints_held: 0, tokens: 2_500, tokens_saved: saved };
    assert_eq!(sum, expected, "each result counts once, however many requests carry it");
    let hints: Vec<usize> = seen.iter().map(|seen| seen.aside.hints.len()).collect();
    assert_eq!(hints, [0, 0, 1, 1], "told for every context that carries it");
}

#[test]
fn a_hint_points_only_at_what_stood_whole_in_the_context_that_was_sent() {
    // The first result is gone from request 2 on; the hint for it comes in with request 3.
    let timeline = results(&[1_000, 300, 1_000]);
    let sent = [hint(2, 0)];
    let (seen, sum) = run(&timeline, KNOBS, &sent, 2, &[2]);
    assert_eq!((tokens(&seen[3].view, 6), sum.hints, sum.hints_held), (1_000, 0, 1));
    let (seen, sum) = run(&timeline, Params { partition: HintScope::Logged, ..KNOBS }, &sent, 2, &[2]);
    assert_eq!((tokens(&seen[3].view, 6), sum.hints), (left(&timeline, 6, &sent[0]), 1));
    // It had been sent before its target went: what stands in a context is not changed any more.
    let (seen, sum) = run(&results(&[1_000, 1_000, 300]), KNOBS, &[hint(1, 0)], 3, &[2]);
    assert_eq!(tokens(&seen[3].view, 4), tokens(&seen[2].view, 4));
    assert_eq!((sum.hints, seen[3].aside.hints.len()), (1, 1), "whether it dangles is for the detector to say");
}

#[test]
fn a_result_stays_as_it_was_sent_in_what_is_forked_off() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1);
    for chars in [1_000, 300, 1_000] {
        log.calls("Read", "", 5).result(chars).ask(1_000, 10, 1);
    }
    log.says(5).agent("fork").back_to(3).human(10).ask(1_000, 20, 1);
    // The hint was held: the first result had gone before.
    let (seen, sum) = run(&log.done(), KNOBS, &[hint(2, 0)], 2, &[2]);
    assert_eq!((tokens(&seen[3].view, 6), tokens(&seen[4].view, 6)), (1_000, 1_000));
    assert_eq!((sum.hints, sum.hints_held), (0, 1));
}

#[test]
fn results_of_one_batch_may_point_at_each_other() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1);
    log.calls("Read", "", 5).calls("Read", "", 5).result(900).result(900).ask(1_000, 10, 1);
    let timeline = log.done();
    let (_, sum) = run(&timeline, KNOBS, &[hint(1, 0)], u32::MAX, &[]);
    assert_eq!((sum.hints, sum.hints_held), (1, 0));
}

#[test]
fn references_to_lines_are_held_once_any_result_is_gone() {
    let timeline = results(&[1_000, 300, 1_000]);
    let lines = [SentResult { call: 2, baseline: 100, tokens: 40, points: Points::Lines }];
    assert_eq!(run(&timeline, KNOBS, &lines, u32::MAX, &[]).1.hints, 1);
    let (seen, sum) = run(&timeline, KNOBS, &lines, 2, &[4]);
    assert_eq!((sum.hints, sum.hints_held, tokens(&seen[3].view, 6)), (0, 1, 1_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was sent: no item grows or goes, and what was sent once is sent the same way again.
    #[test]
    fn contexts_only_get_shorter_and_only_at_their_ends(
        sizes in prop::collection::vec(1u32..5_000, 1..12),
        shares in prop::collection::vec((0u64..=100, 0u32..12, any::<bool>()), 12),
    ) {
        let timeline = results(&sizes);
        let sent: Vec<SentResult> = (0u32..).zip(&sizes).zip(shares).map(|((call, _), (tokens, target, is_hint))| {
            let points = if is_hint && target < call { Points::At(target) } else { Points::Nowhere };
            SentResult { call, baseline: 100, tokens, points }
        }).collect();
        let (seen, sum) = run(&timeline, KNOBS, &sent, u32::MAX, &[]);
        for pair in seen.windows(2) {
            prop_assert!(pair[1].view.items.starts_with(&pair[0].view.items));
        }
        for one in &seen {
            let pairs = one.view.items.iter().zip(&one.logged.items);
            let same = |(view, log): (&Item, &Item)| view.key == log.key && view.tokens <= log.tokens;
            prop_assert!(one.view.items.len() == one.logged.items.len() && pairs.clone().all(same));
        }
        let last = seen.last().unwrap();
        prop_assert_eq!(last.logged.tokens() - last.view.tokens(), sum.tokens_saved);
        prop_assert_eq!(sum.hints_held, 0, "nothing was taken away");
    }
}
