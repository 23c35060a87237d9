//! Clearing of tool results: the fitted rule, what the stage does to contexts told by hand, and the log's own clearings.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::plain_driver::{PREFIX, Sent, blocks, run_of, send};
use super::timeline_builder::Story;
use crate::logs::timeline::requests::{BlockKind, NONE, Segment, SegmentCause, Timeline, Trigger};
use crate::whatif::clearing::{Cleared, Micro, ResultSize, plan};
use crate::whatif::clearing::{clearings, replayed};
use crate::whatif::compaction::CompactionThresholds;
use crate::whatif::compaction::params::{MicroParams, Style};
use crate::whatif::sim::view::{ContextView, Given, ItemKey, Moment, Stage, StageJournal, StageOutput};

/// Clears above 100 tokens of estimate if that frees 50; any size.
fn params() -> MicroParams {
    MicroParams {
        min_bytes: 0,
        target_tokens: 100,
        min_saving_tokens: 50,
        protect_last: 0,
        only_uncached: false,
        style: Style::Clear,
    }
}

fn clear(timeline: &Timeline, params: &MicroParams) -> (Vec<Sent>, Vec<Cleared>) {
    let journal = StageJournal::default();
    let sent =
        send(timeline, &mut Micro::new(params.clone(), CompactionThresholds::shipped().clone(), journal.clone()));
    (sent, journal.take())
}

/// One call and one result a request, of so many characters each. Blocks: 0 prompt, 2i + 1 call, 2i + 2 result.
fn results(chars: &[u32]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1);
    for &chars in chars {
        log.calls("Bash", "", 5).result(chars).ask(1_000, 10, 1);
    }
    log.done()
}

fn free(tokens: u64) -> ResultSize {
    ResultSize { tokens, cleared_tokens: 0, is_free: true }
}

#[test]
fn the_golden_vector_stops_at_the_first_remainder_that_fits() {
    // 20,000 + 18,000 leave 40,208; the next 535 leave 39,673.
    let sizes: Vec<ResultSize> = [20_000, 18_000, 535, 9_673, 30_000].map(free).into();
    assert_eq!(sizes.iter().map(|size| size.tokens).sum::<u64>(), 78_208);
    let chosen = plan(&sizes, 40_000, 20_000);
    assert_eq!(chosen, [0, 1, 2]);
    let saved: u64 = chosen.iter().map(|&index| sizes[index].tokens).sum();
    assert_eq!((saved, 78_208 - saved), (38_535, 39_673));
}

#[test]
fn too_little_is_not_worth_it() {
    let sizes: Vec<ResultSize> = [19_999, 40_000].map(free).into();
    assert_eq!(plan(&sizes, 40_000, 20_000), [] as [usize; 0]);
    assert_eq!(plan(&sizes, 40_000, 19_999), [0]);
    assert_eq!(plan(&[], 40_000, 0), [] as [usize; 0]);
    assert_eq!(plan(&sizes, 59_999, 1), [] as [usize; 0], "small enough as it is");
}

#[test]
fn results_that_are_not_free_count_but_stay() {
    let mut sizes: Vec<ResultSize> = [30, 40, 50].map(free).into();
    sizes[0].is_free = false;
    assert_eq!(plan(&sizes, 80, 1), [1]);
    sizes[1].cleared_tokens = 35; // a head stays: 5 saved are not enough
    assert_eq!(plan(&sizes, 80, 1), [1, 2]);
}

#[test]
fn estimates_are_rounded_item_by_item_and_a_half_is_rounded_up() {
    let client = &CompactionThresholds::shipped().client;
    assert_eq!([0, 1, 2, 4, 5, 6, 8, 9, 11].map(|chars| client.estimate(chars)), [0, 0, 1, 1, 1, 2, 2, 2, 3]);
}

#[test]
fn the_oldest_results_go_and_stay_gone() {
    // Estimates 50, 50, 40: 140 at request 3, of which the first 50 go; 100 at request 4 are few enough.
    let timeline = results(&[200, 200, 160, 40]);
    let (sent, cleared) = clear(&timeline, &params());
    assert_eq!(cleared, [Cleared { request: 3, block: 2, removed_tokens: 192 }]);
    assert!(sent[..3].iter().all(|sent| sent.view == sent.logged));
    for later in &sent[3..] {
        let item = later.view.items.iter().find(|item| item.key == ItemKey::Block(2)).unwrap();
        assert_eq!((item.tokens, item.kept_chars), (8, 0));
        assert_eq!(later.logged.tokens() - later.view.tokens(), 192);
        assert_eq!(blocks(&later.view), blocks(&later.logged), "calls keep their results, cleared ones");
        assert!(later.aside.noticed.is_empty());
    }
}

#[test]
fn a_head_may_stay() {
    let timeline = results(&[400, 240, 160]);
    let (sent, cleared) = clear(&timeline, &MicroParams { style: Style::Head(100), min_saving_tokens: 75, ..params() });
    // 100 + 60 at request 2: the first result saves 75 of its 100 and leaves 85.
    assert_eq!(cleared[0], Cleared { request: 2, block: 2, removed_tokens: 400 - 108 });
    let item = sent[2].view.items.iter().find(|item| item.key == ItemKey::Block(2)).unwrap();
    assert_eq!((item.tokens, item.kept_chars), (108, 100));
}

#[test]
fn small_and_newest_results_are_spared() {
    let timeline = results(&[200, 240, 160]);
    let blocks = |params: MicroParams| {
        clear(&timeline, &params).1.iter().map(|cleared| (cleared.request, cleared.block)).collect::<Vec<_>>()
    };
    // Estimates 50, 60, 40: 110 at request 2.
    assert_eq!(blocks(params()), [(2, 2)]);
    assert_eq!(blocks(MicroParams { min_bytes: 200, ..params() }), [(2, 2)]);
    assert_eq!(blocks(MicroParams { min_bytes: 201, ..params() }), [(2, 4)]);
    assert_eq!(blocks(MicroParams { protect_last: 1, ..params() }), [(2, 2)]);
    assert_eq!(blocks(MicroParams { protect_last: 2, ..params() }), [(3, 2)]);
    assert_eq!(blocks(MicroParams { protect_last: 3, ..params() }), []);
}

#[test]
fn a_result_cleared_before_it_was_sent_is_a_hard_break() {
    let timeline = results(&[40, 800]);
    let (sent, cleared) = clear(&timeline, &params());
    assert_eq!(cleared.iter().map(|cleared| cleared.block).collect::<Vec<_>>(), [2, 4]);
    let noticed: Vec<(&str, u32)> =
        sent[2].aside.noticed.iter().map(|seen| (seen.class.into_str(), seen.call)).collect();
    assert_eq!(noticed, [("cleared_before_seen", 1)], "the older one had been sent");
    let (sent, _) = clear(&timeline, &MicroParams { protect_last: 1, ..params() });
    assert!(sent.iter().all(|sent| sent.aside.noticed.is_empty()));
}

#[test]
fn what_is_cached_is_left_alone_on_request() {
    let timeline = results(&[200, 240, 160]);
    let (sent, cleared) = clear(&timeline, &MicroParams { only_uncached: true, ..params() });
    // At request 2 the estimate of 110 is over 100, and only the new result of 60 is not yet cached.
    assert_eq!(cleared.iter().map(|cleared| (cleared.request, cleared.block)).collect::<Vec<_>>(), [(2, 4)]);
    for pair in sent.windows(2) {
        assert_eq!(pair[1].view.items[..pair[0].view.items.len()], pair[0].view.items, "the prefix is as it was sent");
    }
}

/// Clears, and then leaves the first prompt out, as a later stage may.
struct ThenWithoutPrompt(Micro);

impl Stage for ThenWithoutPrompt {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.0.begin(timeline, chain);
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        self.0.apply(moment, Given { kept: 0, ..given }, view, out);
        view.items.retain(|item| item.key != ItemKey::Block(0));
        0
    }
}

#[test]
fn what_is_cached_is_what_was_sent_in_the_end() {
    let mut log = Story::new();
    log.session("a", "/p").human(5_000).ask(0, 1_000, 1);
    for chars in [200, 240, 160] {
        log.calls("Bash", "", 5).result(chars).ask(1_000, 10, 1);
    }
    let journal = StageJournal::default();
    let params = MicroParams { only_uncached: true, ..params() };
    let stage = Micro::new(params, CompactionThresholds::shipped().clone(), journal.clone());
    send(&log.done(), &mut ThenWithoutPrompt(stage));
    // Behind the prompt that was not sent the first result had been sent and cached.
    let cleared = journal.take();
    assert_eq!(cleared.iter().map(|cleared| (cleared.request, cleared.block)).collect::<Vec<_>>(), [(2, 4)]);
}

#[test]
fn what_is_cleared_stays_so_in_what_is_forked_off() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1);
    for chars in [200, 200, 160] {
        log.calls("Bash", "", 5).result(chars).ask(1_000, 10, 1);
    }
    log.says(5).agent("fork").back_to(3).human(10).ask(1_000, 20, 1);
    let (sent, cleared) = clear(&log.done(), &params());
    assert_eq!(cleared, [Cleared { request: 3, block: 2, removed_tokens: 192 }], "once");
    assert_eq!(sent[4].view.items[..sent[3].view.items.len()], sent[3].view.items);
}

#[test]
fn a_run_is_summed_up_in_figures() {
    let timeline = results(&[200, 240, 160, 300, 300]);
    let (sent, cleared) = clear(&timeline, &params());
    let found = clearings(&timeline, &cleared, &run_of(&sent));
    let requests: BTreeSet<u32> = cleared.iter().map(|cleared| cleared.request).collect();
    assert_eq!((found.clearings, found.results, found.sessions), (requests.len() as u64, cleared.len() as u64, 1));
    let last = sent.last().unwrap();
    assert_eq!(found.removed_tokens, last.logged.tokens() - last.view.tokens());
    assert_eq!(found.context.max, sent.iter().map(|sent| sent.view.tokens()).max().unwrap());
}

/// Five results of 80,000, 72,000, 2,140, 38,692 and 120,000 characters: the golden vector in characters.
fn logged_clearing(calls: &[u32]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1);
    for chars in [80_000, 72_000, 2_140, 38_692, 120_000] {
        log.calls("Bash", "", 5).result(chars);
        if chars < 120_000 {
            log.ask(1_000, 10, 1);
        }
    }
    log.clearing(78_208, 38_535, calls).segment(SegmentCause::Shrink).ask(1_000, 10, 1);
    log.done()
}

#[test]
fn a_clearing_of_the_log_is_found_again() {
    let params = &CompactionThresholds::shipped().params.micro;
    let found = replayed(&logged_clearing(&[0, 1, 2]), params, CompactionThresholds::shipped());
    let check = &found.checks[0];
    assert_eq!((check.both, check.only_predicted, check.only_logged), (3, 0, 0));
    assert_eq!((check.total_tokens, check.logged_total_tokens), (78_208, Some(78_208)));
    assert_eq!((check.saved_tokens, check.logged_saved_tokens), (38_535, Some(38_535)));
    assert_eq!((found.equal.k, found.equal.n, found.is_met), (1, 1, Some(true)));
    let other = replayed(&logged_clearing(&[0, 1, 3]), params, CompactionThresholds::shipped());
    assert_eq!((other.checks[0].both, other.checks[0].only_predicted, other.checks[0].only_logged), (2, 1, 1));
    assert_eq!((other.equal.k, other.is_met), (0, Some(false)));
    assert_eq!(replayed(&results(&[10]), params, CompactionThresholds::shipped()).is_met, None);
}

#[test]
fn what_was_cleared_or_compacted_before_does_not_count_again() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 1_000, 1).calls("Bash", "", 5).result(400_000).ask(1_000, 10, 1).says(5);
    log.compaction(Trigger::Auto, None, 100).human(10).ask(0, 1_000, 1);
    for chars in [100_000, 100_000, 100_000] {
        log.calls("Bash", "", 5).result(chars).ask(1_000, 10, 1);
    }
    // 75,000 in all: two go, 25,000 stay.
    log.clearing(75_000, 50_000, &[1, 2]).segment(SegmentCause::Shrink).ask(1_000, 10, 1);
    log.calls("Bash", "", 5).result(100_000).ask(1_000, 10, 1).calls("Bash", "", 5).result(60_000);
    // 25,000 + 25,000 + 15,000: the oldest goes.
    log.clearing(65_000, 25_000, &[3]).segment(SegmentCause::Shrink).ask(1_000, 10, 1);
    let found = replayed(&log.done(), &CompactionThresholds::shipped().params.micro, CompactionThresholds::shipped());
    let totals: Vec<u64> = found.checks.iter().map(|check| check.total_tokens).collect();
    assert_eq!((totals, found.equal.k), (vec![75_000, 65_000], 2));
}

/// To look through the segments of all chains for each clearing takes minutes here.
#[test]
fn a_clearing_is_held_against_its_own_chain() {
    let mut log = Story::new();
    for number in 0..4_000 {
        log.session(&number.to_string(), "/p").human(10).ask(0, 1_000, 1).calls("Bash", "", 5).result(400_000);
        log.ask(1_000, 10, 1).clearing(100_000, 100_000, &[number]).segment(SegmentCause::Shrink).ask(1_000, 10, 1);
    }
    let mut timeline = log.done();
    let of_others = Segment { chain: NONE, ..timeline.segments[0].clone() };
    timeline.segments.resize(2_000_000, of_others);
    let found = replayed(&timeline, &CompactionThresholds::shipped().params.micro, CompactionThresholds::shipped());
    assert_eq!((found.checks.len(), found.equal.k), (4_000, 4_000));
}

/// Clears what has just been cleared.
struct Twice(Micro);

impl Stage for Twice {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.0.begin(timeline, chain);
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        self.0.apply(moment, given, view, out);
        let once = view.clone();
        self.0.apply(moment, Given { view: &once, kept: 0 }, view, out);
        0
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_cleared_twice_and_the_newest_are_spared(
        chars in prop::collection::vec(0_u32..600, 1..20),
        protect_last in 0_usize..4,
        target_tokens in 0_u64..300,
        min_saving_tokens in 0_u64..150,
        only_uncached in any::<bool>(),
        head in prop::option::of(0_u32..300),
    ) {
        let style = head.map_or(Style::Clear, Style::Head);
        let params = MicroParams { min_bytes: 0, target_tokens, min_saving_tokens, protect_last, only_uncached, style };
        let timeline = results(&chars);
        let (sent, cleared) = clear(&timeline, &params);
        let distinct: BTreeSet<u32> = cleared.iter().map(|cleared| cleared.block).collect();
        prop_assert_eq!(distinct.len(), cleared.len());
        for sent in &sent {
            let known: Vec<u32> = blocks(&sent.logged)
                .into_iter()
                .filter(|&block| timeline.blocks[block as usize].kind == BlockKind::ToolResult)
                .collect();
            let newest = &known[known.len().saturating_sub(protect_last)..];
            prop_assert!(cleared
                .iter()
                .filter(|cleared| cleared.request == sent.request)
                .all(|cleared| !newest.contains(&cleared.block)));
            prop_assert!(sent.view.tokens() >= PREFIX && sent.view.tokens() <= sent.logged.tokens());
            // What is cleared accounts for every token that is missing.
            let gone = cleared.iter().filter(|cleared| cleared.request <= sent.request);
            let removed: u64 = gone.map(|cleared| u64::from(cleared.removed_tokens)).sum();
            prop_assert_eq!(sent.logged.tokens() - sent.view.tokens(), removed);
        }
        if only_uncached {
            for pair in sent.windows(2) {
                let before = &pair[0].view.items;
                prop_assert_eq!(&pair[1].view.items[..before.len()], &before[..]);
            }
        }
        // A second pass over what was sent finds nothing more to do.
        let journal = StageJournal::default();
        let stage = Micro::new(params, CompactionThresholds::shipped().clone(), journal.clone());
        let again = send(&timeline, &mut Twice(stage));
        prop_assert!(again.iter().zip(&sent).all(|(again, sent)| again.view == sent.view));
        prop_assert_eq!(journal.take(), cleared);
    }
}
