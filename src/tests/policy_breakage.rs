//! What a changed context broke: every expectation is worked out by hand from the story that is told.

use proptest::prelude::*;

use super::plain_driver::{blocks, logged, sizes};
use super::timeline_builder::Story;
use crate::base::data::fitting;
use crate::logs::timeline::requests::{Marks, NONE, ReferenceKind, Timeline, Trigger};
use crate::whatif::sim::breakage::detect::{Hint, dangling, orphans};
use crate::whatif::sim::breakage::files::{edit_ages, rereads, turn_of};
use crate::whatif::sim::breakage::rows::{Break, BreakClass, Strength, penalty, tally};
use crate::whatif::sim::breakage::{BreakWatch, BreakageThresholds, Detectors};
use crate::whatif::sim::view::{ContextView, Given, ItemKey, Moment, StageOutput};

/// What the answer to `request` misses when only some items are sent, or cut.
fn broken(timeline: &Timeline, request: u32, change: impl Fn(&mut ContextView)) -> Vec<Break> {
    let tokens = sizes(timeline);
    let detectors = Detectors::new(timeline, &tokens, BreakageThresholds::shipped());
    let (log, mut breaks) = (logged(timeline, request), Vec::new());
    let mut sent = log.clone();
    change(&mut sent);
    detectors.look(request, &log, &sent, &mut breaks);
    breaks
}

fn without(blocks: &[u32]) -> impl Fn(&mut ContextView) {
    move |view| view.items.retain(|item| !matches!(item.key, ItemKey::Block(block) if blocks.contains(&block)))
}

fn classes(breaks: &[Break]) -> Vec<BreakClass> {
    breaks.iter().map(|event| event.class).collect()
}

/// Blocks: 0 human, 1 Read, 2 its result of 900, 3 Edit of the same file, 4 its result of 30, 5 second Edit.
fn edited() -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20);
    log.result(900).ask(1_000, 900, 1).calls("Edit", "/a.rs", 50);
    log.refers(ReferenceKind::EditSource, 1, &[(2, 300)]);
    log.result(30).ask(1_900, 80, 1).calls("Edit", "/a.rs", 50);
    log.refers(ReferenceKind::EditSource, 2, &[(2, 600), (3, 40)]);
    log.done()
}

#[test]
fn nothing_breaks_where_nothing_is_removed() {
    let timeline = edited();
    for request in 0..3 {
        assert_eq!(broken(&timeline, request, |_| ()), []);
    }
}

#[test]
fn an_edit_loses_its_source_with_the_last_block_that_shows_it() {
    let timeline = edited();
    let first = broken(&timeline, 1, without(&[2]));
    assert_eq!(classes(&first), [BreakClass::EditSourceLost]);
    assert_eq!((first[0].request, first[0].call, first[0].reading, first[0].reread_tokens), (1, 1, 2, 900));
    assert!(!first[0].is_reading && !first[0].is_upper_bound);
    // The second edit has another source in the first one's own text.
    assert_eq!(broken(&timeline, 2, without(&[2])), []);
    assert_eq!(classes(&broken(&timeline, 2, without(&[2, 3]))), [BreakClass::EditSourceLost]);
}

#[test]
fn a_source_counts_as_long_as_its_last_character_is_kept() {
    let timeline = edited();
    let cut = |chars: u32| {
        move |view: &mut ContextView| {
            view.items.iter_mut().filter(|item| item.key == ItemKey::Block(2)).for_each(|item| item.kept_chars = chars);
        }
    };
    assert_eq!(broken(&timeline, 1, cut(300)), []);
    assert_eq!(classes(&broken(&timeline, 1, cut(299))), [BreakClass::EditSourceLost]);
}

#[test]
fn what_the_log_itself_did_not_show_is_nobodys_loss() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20);
    log.result(900).ask(1_000, 900, 1).says(10);
    log.compaction(Trigger::Auto, Some(2_000), 100).human(20).ask(500, 500, 1).calls("Edit", "/a.rs", 50);
    log.refers(ReferenceKind::EditSource, 1, &[(2, 300)]); // compacted away
    log.refers(ReferenceKind::Hex, NONE, &[]); // from nowhere
    let timeline = log.done();
    assert_eq!(broken(&timeline, 2, |view| view.items.clear()), []);
}

#[test]
fn identifiers_are_lost_softly_and_edits_hard() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).says(60);
    log.human(30).ask(1_000, 90, 1).says(20).refers(ReferenceKind::Ticket, NONE, &[(0, 12)]);
    log.refers(ReferenceKind::Url, NONE, &[(0, 30), (2, 9)]);
    let timeline = log.done();
    let breaks = broken(&timeline, 1, without(&[0]));
    assert_eq!(classes(&breaks), [BreakClass::RefLost]);
    assert_eq!((breaks[0].call, breaks[0].reading, breaks[0].reread_tokens), (NONE, NONE, 0));
    assert_eq!(
        (BreakClass::RefLost.strength(), BreakClass::EditSourceLost.strength()),
        (Strength::Soft, Strength::Hard)
    );
    assert_eq!(classes(&broken(&timeline, 1, without(&[0, 2]))), [BreakClass::RefLost, BreakClass::RefLost]);
}

#[test]
fn more_occurrences_than_were_kept_make_a_break_an_upper_bound() {
    let mut timeline = edited();
    timeline.references[0].cut = true;
    assert!(broken(&timeline, 1, without(&[2]))[0].is_upper_bound);
}

/// A search lists two files; one is read, then edited, then read again. Blocks: 0 human, 1 Glob, 2 its list, 3 Read,
/// 4 its result of 700, 5 Edit, 6 its result, 7 Read.
fn listed() -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Glob", "", 20);
    log.result(60).ask(1_000, 60, 1).calls("Read", "/b.rs", 20).refers(ReferenceKind::ReadPath, 1, &[(2, 25)]);
    log.result(700).ask(1_060, 700, 1).calls("Edit", "/b.rs", 50);
    log.result(30).ask(1_760, 80, 1).calls("Read", "/b.rs", 20);
    log.done()
}

#[test]
fn a_file_is_read_again_when_every_place_that_names_it_is_gone() {
    let timeline = listed();
    // First reading: only the list named the file, and there is no earlier result to price.
    let first = broken(&timeline, 1, without(&[2]));
    assert_eq!(classes(&first), [BreakClass::RereadPredicted]);
    assert_eq!((first[0].reading, first[0].reread_tokens, first[0].is_reading), (NONE, 0, true));
    // The edit: the call that read it names it as well.
    assert_eq!(broken(&timeline, 2, without(&[2, 4])), []);
    let edit = broken(&timeline, 2, without(&[2, 3, 4]));
    assert_eq!(classes(&edit), [BreakClass::RereadPredicted]);
    assert_eq!((edit[0].call, edit[0].reading, edit[0].reread_tokens, edit[0].is_reading), (2, 4, 700, false));
    // The log reads it again by itself.
    let again = broken(&timeline, 3, without(&[2, 3, 4, 5, 6]));
    assert_eq!(classes(&again), [BreakClass::RereadPredicted]);
    assert_eq!((again[0].reread_tokens, again[0].is_reading), (700, true));
    assert_eq!(penalty(&[edit[0], again[0]]), 700);
    assert_eq!(penalty(&[again[0]]), 0);
}

#[test]
fn a_lost_reading_is_paid_for_once() {
    let timeline = edited();
    let mut breaks = broken(&timeline, 1, without(&[2]));
    breaks.extend(broken(&timeline, 2, without(&[2, 3])));
    assert_eq!(breaks.iter().map(|event| event.reread_tokens).sum::<u64>(), 1_800);
    assert_eq!(penalty(&breaks), 900);
}

#[test]
fn calls_of_one_answer_do_not_stand_for_each_other() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20);
    log.result(100).ask(1_000, 100, 1).calls("Edit", "/a.rs", 50).calls("Edit", "/a.rs", 50);
    let timeline = log.done();
    let breaks = broken(&timeline, 1, without(&[1, 2]));
    assert_eq!(breaks.iter().map(|event| event.call).collect::<Vec<_>>(), [1, 2]);
    assert!(breaks.iter().all(|event| event.class == BreakClass::RereadPredicted && event.reading == 2));
}

#[test]
fn another_chain_knows_nothing_of_this_one() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20).result(100).ask(1_000, 100, 1).says(5);
    log.agent("x").human(10).ask(0, 500, 1).calls("Edit", "/a.rs", 50);
    let timeline = log.done();
    assert_eq!(broken(&timeline, 2, |view| view.items.clear()), []);
}

#[test]
fn half_a_pair_is_found_whichever_half_it_is() {
    let timeline = edited();
    let log = logged(&timeline, 2);
    let halves = |gone: &[u32]| {
        let mut sent = log.clone();
        without(gone)(&mut sent);
        orphans(&timeline, &log, &sent, log.items.iter())
    };
    assert_eq!(halves(&[]), [] as [u32; 0]);
    assert_eq!(halves(&[1]), [0]);
    assert_eq!(halves(&[2]), [0]);
    assert_eq!(halves(&[1, 2]), [] as [u32; 0]);
    assert_eq!(halves(&[1, 4]), [0, 1]);
}

#[test]
fn a_hint_dangles_when_its_target_is_gone_or_cut() {
    let timeline = edited();
    let hints = [Hint { block: 4, target: 2 }];
    let mut view = logged(&timeline, 2);
    assert_eq!(dangling(&timeline, 2, &hints, &view), []);
    view.items.iter_mut().filter(|item| item.key == ItemKey::Block(2)).for_each(|item| item.kept_chars = 899);
    let cut = dangling(&timeline, 2, &hints, &view);
    assert_eq!((classes(&cut), cut[0].call), (vec![BreakClass::DanglingRef], 1));
    without(&[2])(&mut view);
    assert_eq!(dangling(&timeline, 2, &hints, &view).len(), 1);
    // A hint that is itself gone points nowhere.
    without(&[4])(&mut view);
    assert_eq!(dangling(&timeline, 2, &hints, &view), []);
}

#[test]
fn a_hint_that_comes_back_without_its_target_dangles() {
    let timeline = edited();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    let whole = logged(&timeline, 2);
    let [mut short, mut back] = [whole.clone(), whole.clone()];
    without(&[2, 3, 4])(&mut short);
    without(&[2, 3])(&mut back);
    let mut watch = BreakWatch::new(&detectors);
    let mut dangling_after = |view: &ContextView, before: Option<&ContextView>, kept: usize, hints: Vec<Hint>| {
        let moment = Moment {
            timeline: &timeline,
            request: 2,
            sent_before: None,
            before,
            cached_before: 0,
            is_warm: true,
            opens_segment: false,
        };
        let both = [Given { view: &whole, kept: 0 }, Given { view, kept }];
        watch.sent(&moment, both, 0, &StageOutput { hints, ..StageOutput::default() });
        watch.breaks.iter().filter(|lost| lost.class == BreakClass::DanglingRef).count()
    };
    assert_eq!(dangling_after(&whole, None, 0, vec![Hint { block: 4, target: 2 }]), 0);
    assert_eq!(dangling_after(&short, Some(&whole), 3, Vec::new()), 0, "neither is there");
    // Now the context only grows, and no hint is made.
    assert_eq!(dangling_after(&back, Some(&short), short.items.len(), Vec::new()), 1);
}

#[test]
fn what_stages_notice_is_counted_by_its_word() {
    let timeline = edited();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    for &class in BreakClass::ALL {
        let found = detectors.broken(class, 1, NONE);
        assert_eq!(found.class, class);
        assert_eq!(serde_json::to_value(class).unwrap(), class.into_str());
    }
}

#[test]
fn a_tally_counts_events_and_sessions_and_shows_at_most_five() {
    let mut log = Story::new();
    for session in ["a", "b"] {
        log.session(session, "/p").human(40).ask(0, 1_000, 8).says(10);
        log.human(5).ask(1_000, 10, 1).calls("Edit", "/a.rs", 50);
    }
    let timeline = log.done();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    let event = |request: u32, class| Break {
        request,
        call: NONE,
        class,
        reading: NONE,
        reread_tokens: 0,
        is_reading: false,
        is_upper_bound: request == 3,
    };
    let mut breaks: Vec<Break> = (0..6).map(|_| event(3, BreakClass::RefLost)).collect();
    breaks.push(event(1, BreakClass::RefLost));
    breaks.push(event(1, BreakClass::ToolMiss));
    let found = tally(&detectors, &breaks, 4);
    let lost = &found.classes[0];
    assert_eq!((lost.class, lost.events, lost.sessions, lost.upper_bound), (BreakClass::RefLost, 7, 2, 6));
    assert_eq!((lost.per_1k_requests, lost.examples.len()), (1_750.0, 5));
    assert_eq!(lost.examples[0].message, timeline.requests[1].id.to_string());
    assert_eq!(found.classes[1].class, BreakClass::ToolMiss);
    assert_eq!((found.classes[1].control, found.classes[1].strength), (None, Strength::Hard));
    assert_eq!((found.classes.len(), found.events(BreakClass::RefLost), found.events(BreakClass::Overflow)), (2, 7, 0));
    breaks.reverse();
    assert_eq!(tally(&detectors, &breaks, 4), found);
}

#[test]
fn controls_say_on_how_much_they_rest() {
    let timeline = listed();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    let breaks = broken(&timeline, 3, without(&[2, 3, 4, 5, 6]));
    let found = tally(&detectors, &breaks, 4);
    let control = found.classes[0].control.unwrap();
    assert_eq!((control.k, control.n), (1, 2), "one of two readings repeats an earlier one");
    let timeline = edited();
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    let found = tally(&detectors, &broken(&timeline, 1, without(&[2])), 3);
    let control = found.classes[0].control.unwrap();
    assert_eq!((control.k, control.n), (0, 2));
}

/// One edit in each of the turns given, all of the same source in turn 0 (ages are the turns); one without a source.
fn aged(turns: &[u32]) -> Timeline {
    let last = turns.iter().max().copied().unwrap_or(0);
    let mut log = Story::new();
    log.session("a", "/p");
    for turn in 0..=last {
        log.human(40).ask(0, 1_000, 8);
        for _ in turns.iter().filter(|&&wanted| wanted == turn) {
            log.calls("Edit", "/a.rs", 50);
            let call = log.last_call();
            log.refers(ReferenceKind::EditSource, call, &[(0, 10)]);
        }
        log.says(10);
    }
    log.calls("Edit", "/a.rs", 50);
    let call = log.last_call();
    log.refers(ReferenceKind::EditSource, call, &[]);
    log.done()
}

#[test]
fn edits_are_tabled_by_the_age_of_their_source() {
    let found = edit_ages(&aged(&[0, 0, 0, 1, 2, 3, 7, 8, 19, 20]), BreakageThresholds::shipped());
    let rows: Vec<(u32, Option<u32>, u64)> = found.ages.iter().map(|row| (row.from, row.to, row.edits)).collect();
    let expected =
        [(0, Some(0), 3), (1, Some(1), 1), (2, Some(2), 1), (3, Some(7), 2), (8, Some(19), 2), (20, None, 1)];
    assert_eq!(rows, expected);
    assert_eq!((found.edits, found.unsourced), (11, 1));
    // Keeping k turns loses ages of k and more.
    let risk: Vec<(u32, u64)> = found.risk.iter().map(|row| (row.kept_turns, row.at_risk.k)).collect();
    assert_eq!(risk, [(1, 7), (3, 5), (8, 3), (20, 1)]);
    assert!(found.risk.iter().all(|row| row.at_risk.n == 11 && row.is_met == Some(false)));
}

#[test]
fn the_measured_table_meets_its_own_curve() {
    // 1,000 edits in the shares of policies.md 1.7; the rest has no source.
    let shares = [(0, 868), (1, 66), (2, 21), (3, 23), (8, 6)];
    let turns: Vec<u32> = shares.iter().flat_map(|&(age, edits)| std::iter::repeat_n(age, edits)).collect();
    let mut timeline = aged(&turns);
    let unsourced = timeline.references.last().unwrap().clone();
    timeline.references.extend((1..16).map(|_| unsourced.clone()));
    let found = edit_ages(&timeline, BreakageThresholds::shipped());
    assert_eq!((found.edits, found.unsourced), (1_000, 16));
    assert_eq!(found.risk.iter().map(|row| row.at_risk.k).collect::<Vec<_>>(), [116, 29, 6, 0]);
    assert!(found.risk.iter().all(|row| row.is_met == Some(true)));
}

#[test]
fn the_curve_is_what_the_detector_finds_when_the_turns_are_cut() {
    let timeline = aged(&[0, 0, 1, 2, 2, 3, 7, 8, 12, 19, 20, 23]);
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    for row in edit_ages(&timeline, BreakageThresholds::shipped()).risk {
        let mut breaks = Vec::new();
        for request in 0..timeline.requests.len() as u32 {
            let log = logged(&timeline, request);
            let now = timeline.requests[request as usize].turn;
            let is_old = |block: u32| now - turn_of(&timeline, block) >= row.kept_turns;
            let mut sent = log.clone();
            sent.items.retain(|item| !matches!(item.key, ItemKey::Block(block) if is_old(block)));
            detectors.look(request, &log, &sent, &mut breaks);
        }
        let lost = breaks.iter().filter(|event| event.class == BreakClass::EditSourceLost).count() as u64;
        assert_eq!(lost, row.at_risk.k, "{} turns kept", row.kept_turns);
        assert!(lost > 0);
    }
}

#[test]
fn the_newest_source_counts_and_results_before_the_prompt_are_of_the_turn_before() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20); // blocks 0, 1
    log.result(100).human(10).ask(1_000, 110, 1).says(5); // blocks 2 (still turn 0), 3, 4
    log.human(10).ask(1_100, 20, 1).calls("Edit", "/a.rs", 50); // blocks 5, 6
    log.refers(ReferenceKind::EditSource, 1, &[(0, 10), (2, 50)]);
    let timeline = log.done();
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|block| turn_of(&timeline, block)), [0, 0, 0, 1, 1, 2, 2]);
    assert!(timeline.requests[1].marks.has(Marks::HUMAN));
    assert_eq!(edit_ages(&timeline, BreakageThresholds::shipped()).ages[2].edits, 1);
}

#[test]
fn readings_after_a_compaction_are_told_from_those_elsewhere() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20);
    log.result(100).ask(1_000, 100, 1).calls("Read", "/a.rs", 20); // elsewhere: 1 of 2 again
    log.result(100).compaction(Trigger::Auto, Some(9_000), 50).ask(500, 300, 1).calls("Read", "/a.rs", 20); // again
    log.result(100).ask(800, 100, 1).calls("Read", "/b.rs", 20); // new
    log.result(100).ask(900, 100, 1).calls("Read", "/b.rs", 20); // read after the compaction only
    for _ in 0..50 {
        log.result(10).ask(1_000, 10, 1).calls("Bash", "", 5);
    }
    log.result(10).ask(1_500, 10, 1).calls("Read", "/a.rs", 20); // too late to be put down to it
    let timeline = log.done();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, BreakageThresholds::shipped());
    let found = rereads(&timeline, &detectors.files, BreakageThresholds::shipped());
    assert_eq!((found.compactions, found.compactions_with_one), (1, 1));
    assert_eq!((found.reads, found.reads_again), (3, 1));
    assert_eq!((found.elsewhere.k, found.elsewhere.n), (2, 3));
}

#[test]
fn a_misspelled_key_of_the_sheet_is_named() {
    let text = include_str!("../../rules/policies/breakage.toml").replace("examples_max", "example_max");
    let error = fitting::<BreakageThresholds>(&text, "breakage.toml").unwrap_err();
    assert!(error.message.contains("breakage.toml") && error.message.contains("example_max"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever breaks when some blocks are gone still breaks when more are, and only what the log showed can break.
    #[test]
    fn removing_more_never_mends(
        steps in prop::collection::vec((0_u32..4, prop::collection::vec(0_u32..40, 0..4), any::<bool>()), 1..12),
        few in prop::collection::vec(0_u32..40, 0..8),
        more in prop::collection::vec(0_u32..40, 0..8),
    ) {
        let mut log = Story::new();
        log.session("a", "/p").human(50).ask(0, 1_000, 1);
        for (file, places, is_edit) in steps {
            let last = log.last_block();
            log.calls(if is_edit { "Edit" } else { "Read" }, &format!("/{file}.rs"), 50);
            let mut places: Vec<(u32, u32)> =
                places.into_iter().map(|place| (place % (last + 1), 1 + place)).collect();
            places.sort_unstable();
            let call = log.last_call();
            let kind = if is_edit { ReferenceKind::EditSource } else { ReferenceKind::ReadPath };
            log.refers(kind, call, &places).result(50).ask(1_000, 100, 1);
        }
        let timeline = log.done();
        let both: Vec<u32> = few.iter().chain(&more).copied().collect();
        for request in 0..timeline.requests.len() as u32 {
            let (less, most) = (broken(&timeline, request, without(&few)), broken(&timeline, request, without(&both)));
            prop_assert!(less.iter().all(|event| most.contains(event)), "{less:?} {most:?}");
            prop_assert_eq!(broken(&timeline, request, |_| ()), []);
            let shown = blocks(&logged(&timeline, request));
            for event in broken(&timeline, request, |view| view.items.clear()) {
                prop_assert!(event.reading == NONE || shown.contains(&event.reading));
            }
        }
    }
}
