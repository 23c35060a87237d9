//! Compaction: golden vectors, what the stage does to contexts told by hand, and the log's own compactions found again.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::plain_driver::{PREFIX, Sent, blocks, logged, run_of, send, sizes};
use super::timeline_builder::{MODEL, Story};
use crate::logs::timeline::requests::{BlockKind, ReferenceKind, SegmentCause, Timeline, Trigger as Asked};
use crate::whatif::compaction::carry::after_sizes;
use crate::whatif::compaction::figures::{compactions, percentiles, points};
use crate::whatif::compaction::outcome::{AttemptEnd, CompactionAttempt};
use crate::whatif::compaction::params::{Align, Mode, Params, Real, Reserve, Style, Tier};
use crate::whatif::compaction::real::{placement, real_compactions, soon_after};
use crate::whatif::compaction::splice::{by_target, start};
use crate::whatif::compaction::{Compaction, CompactionThresholds, CompactionTrigger};
use crate::whatif::sim::breakage;
use crate::whatif::sim::breakage::Detectors;
use crate::whatif::sim::breakage::detect::orphans;
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::sizes::BlockSizes;
use crate::whatif::sim::view::{ContextView, ExtraCall, Given, ItemKey, Moment, Stage, StageJournal, StageOutput};

const SHIPPED: &str = include_str!("../../rules/policies/compaction.toml");

/// Small enough for stories of a few hundred tokens: a compaction leaves 30 + 12 + 20 and a tail of 100.
fn params() -> Params {
    Params {
        tail_keep_tokens: 100,
        summary_tokens: 30,
        reattach_tokens: 20,
        min_gain_tokens: 10,
        min_turns_between: 0,
        ..CompactionThresholds::shipped().params.clone()
    }
}

fn compact(timeline: &Timeline, params: &Params, trigger: CompactionTrigger) -> (Vec<Sent>, Vec<CompactionAttempt>) {
    let journal = StageJournal::default();
    let tokens: Arc<[u32]> = sizes(timeline).into();
    let mut stage =
        Compaction::new(params.clone(), CompactionThresholds::shipped().clone(), tokens, journal.clone()).at(trigger);
    let sent = send(timeline, &mut stage);
    (sent, journal.take())
}

fn outcomes(attempts: &[CompactionAttempt]) -> Vec<(u32, AttemptEnd)> {
    attempts.iter().map(|attempt| (attempt.request, attempt.outcome)).collect()
}

/// Turns of 100 tokens, two requests each: the person writes 20, a call of 10 brings a result of 50, the model says 20.
/// Each turn has four blocks, in that order.
fn talk(turns: u32) -> Story {
    let mut log = Story::new();
    log.session("a", "/p");
    add_turns(&mut log, turns);
    log
}

fn add_turns(log: &mut Story, turns: u32) {
    for _ in 0..turns {
        log.human(20).ask(0, 1_000, 1).calls("Bash", "", 10).result(50).ask(1_000, 60, 1).says(20);
    }
}

#[test]
fn triggers_are_those_of_the_golden_vectors() {
    let thresholds = CompactionThresholds::shipped();
    let with = |reserve| Params { reserve_output: Reserve::Tokens(reserve), ..thresholds.params.clone() };
    assert_eq!(with(32_000).trigger_tokens(thresholds, ""), 155_000);
    assert_eq!(with(20_000).trigger_tokens(thresholds, ""), 167_000);
    let runtime = Params { mode: Mode::Pct, window: 100_000, ..thresholds.params.clone() };
    assert_eq!(runtime.trigger_tokens(thresholds, ""), 75_000);
    // The nearest binary fractions of some shares are a little less than these.
    for hundredths in 1..=100_u64 {
        let share = Params { mode: Mode::Pct, compact_at_pct: hundredths as f64 / 100.0, ..thresholds.params.clone() };
        assert_eq!(share.trigger_tokens(thresholds, ""), 2_000 * hundredths);
    }
    assert_eq!(runtime.tail_keep_tokens * 4, 80_000, "bytes of the agent runtime's tail");
}

#[test]
fn the_observed_reserve_goes_by_version() {
    let thresholds = CompactionThresholds::shipped();
    let trigger = |version| thresholds.params.trigger_tokens(thresholds, version);
    for version in ["2.0.64", "2.0.76", "2.1.5", "2.1.20"] {
        assert_eq!(trigger(version), 155_000, "{version}");
    }
    for version in ["2.1.25", "2.1.42", "2.1.217", "3.0.0"] {
        assert_eq!(trigger(version), 167_000, "{version}");
    }
}

#[test]
fn the_byte_rule_cuts_where_the_golden_vectors_do() {
    let tail = |sizes: &[u64], target| by_target(sizes.iter().copied(), target);
    assert_eq!(tail(&[50, 50, 50, 50], 100), Some(2));
    assert_eq!(tail(&[5_000, 5_000], 1_000), Some(1));
    assert_eq!(tail(&[1_000], 100), None);
    assert_eq!(tail(&[30, 30], 100), None);
    assert_eq!(tail(&[], 100), None);
}

#[test]
fn the_head_goes_and_the_tail_begins_where_a_person_wrote() {
    let timeline = talk(6).done();
    // Request 2t has 1000 + 100t + 20 tokens, request 2t + 1 has 60 more.
    let (sent, attempts) = compact(&timeline, &params(), CompactionTrigger::Tokens(1_400));
    assert_eq!(outcomes(&attempts), [(8, AttemptEnd::Ok)]);
    // At request 8 the newest 100 tokens are turn 4's prompt (20), turn 3's text, result and call (80): its prompt,
    // block 12, is the nearest earlier one. 300 tokens go.
    let fired = attempts[0];
    assert_eq!((fired.before_tokens, fired.head_tokens, fired.made_tokens, fired.tail_tokens), (1_420, 300, 62, 120));
    assert_eq!(blocks(&sent[8].view), [12, 13, 14, 15, 16]);
    assert_eq!(sent[8].view.tokens(), PREFIX + 62 + 120);
    let made: Vec<u32> = sent[8].view.items.iter().take(3).map(|item| item.tokens).collect();
    assert_eq!(made, [30, 12, 20]);
    assert!(sent[..8].iter().all(|sent| sent.view == sent.logged));
    // From there on the same head is gone, and the rest is the log's.
    for later in &sent[8..] {
        assert_eq!(later.logged.tokens() - later.view.tokens(), 300 - 62);
        assert_eq!(later.view.items[..3], sent[8].view.items[..3]);
    }
}

#[test]
fn a_fork_begins_with_what_a_compaction_left_of_the_thread_before() {
    let mut log = talk(6);
    log.agent("later").back_to(8).human(20).ask(1_430, 20, 0).says(20);
    log.agent("off that").back_to(12).human(20).ask(1_450, 40, 0);
    log.agent("earlier").back_to(6).human(20).ask(1_330, 20, 0);
    let (sent, attempts) = compact(&log.done(), &params(), CompactionTrigger::Tokens(1_400));
    assert_eq!(outcomes(&attempts), [(8, AttemptEnd::Ok)], "nothing is summarised twice");
    let [parent, later, off_that, earlier] = [8, 12, 13, 14].map(|request: usize| &sent[request]);
    for fork in [later, off_that] {
        assert_eq!(fork.view.items[..3], parent.view.items[..3]);
    }
    assert_eq!(later.view.tokens(), parent.view.tokens() + 10 + 20);
    assert_eq!(off_that.view.tokens(), later.view.tokens() + 20 + 20);
    assert_eq!(earlier.view, earlier.logged);
}

#[test]
fn a_fork_with_small_contexts_is_not_sent_as_logged_where_it_begins_with_a_summary() {
    let mut log = talk(6);
    log.agent("later").back_to(8).human(20).ask(900, 20, 0);
    log.agent("earlier").back_to(6).human(20).ask(900, 20, 0);
    let timeline = log.done();
    let (thresholds, tokens) = (CompactionThresholds::shipped().clone(), Arc::from(sizes(&timeline)));
    let mut stage =
        Compaction::new(params(), thresholds, tokens, StageJournal::default()).at(CompactionTrigger::Tokens(1_400));
    send(&timeline, &mut stage);
    assert_eq!([1, 2].map(|chain| stage.may_change(&timeline, chain, 1_000)), [true, false]);
}

#[test]
fn what_writes_a_summary_of_the_log_is_not_summarised() {
    let mut log = talk(4);
    log.agent("a").back_to(7).human(40).ask(1_400, 40, 0);
    let mut timeline = log.done();
    let attempts = |timeline: &Timeline| outcomes(&compact(timeline, &params(), CompactionTrigger::Tokens(1_400)).1);
    assert_eq!(attempts(&timeline), [(8, AttemptEnd::Ok)]);
    timeline.chains[1].agent_type = timeline.names.intern("compact");
    assert!(attempts(&timeline).is_empty());
}

#[test]
fn with_align_message_the_tail_begins_at_any_message_but_never_inside_a_pair() {
    let timeline = talk(6).done();
    let tail = |keep_tokens| {
        let items = logged(&timeline, 8).items;
        let at = start(&timeline, &items, &mut 0, keep_tokens, Align::Message).unwrap();
        items[at].key
    };
    assert_eq!(tail(20), ItemKey::Block(16)); // the prompt
    assert_eq!(tail(21), ItemKey::Block(15)); // the text before it
    assert_eq!(tail(41), ItemKey::Block(13)); // the result is not left without its call
    assert_eq!(tail(91), ItemKey::Block(13));
    assert_eq!(tail(101), ItemKey::Block(12));
}

#[test]
fn a_prompt_of_several_parts_is_not_cut_in_two() {
    let mut log = talk(3);
    let record = log.injected(5).human(7).human(8).last_block();
    for block in [record - 2, record - 1] {
        log.timeline().blocks[block as usize].record = log.timeline().blocks[record as usize].record;
    }
    log.ask(0, 1_000, 1);
    let timeline = log.done();
    let items = logged(&timeline, 6).items;
    for keep_tokens in [1, 8, 12, 20] {
        let at = start(&timeline, &items, &mut 0, keep_tokens, Align::Turn).unwrap();
        assert_eq!(items[at].key, ItemKey::Block(record - 2), "{keep_tokens}");
    }
}

#[test]
fn nothing_fires_without_a_trigger_and_every_context_is_the_logs() {
    let timeline = talk(8).done();
    for (params, trigger) in [
        (params(), CompactionTrigger::Never),
        (params(), CompactionTrigger::Tokens(u64::MAX)),
        (Params { window: u64::MAX, ..params() }, CompactionTrigger::Params),
    ] {
        let (sent, attempts) = compact(&timeline, &params, trigger);
        assert!(attempts.is_empty());
        assert!(sent.iter().all(|sent| sent.view == sent.logged && sent.aside.extra.is_empty()));
    }
}

#[test]
fn a_context_without_a_place_to_cut_stays_whole() {
    let mut log = Story::new();
    log.session("a", "/p").human(20).ask(0, 1_000, 1);
    for _ in 0..5 {
        log.calls("Bash", "", 10).result(50).ask(1_000, 60, 1);
    }
    let timeline = log.done();
    let (sent, attempts) = compact(&timeline, &params(), CompactionTrigger::Tokens(1_300));
    assert_eq!(outcomes(&attempts), [(5, AttemptEnd::NoBoundary)]);
    assert!(sent.iter().all(|sent| sent.view == sent.logged && sent.aside.extra.is_empty()));
    let (sent, attempts) =
        compact(&timeline, &Params { align: Align::Message, ..params() }, CompactionTrigger::Tokens(1_300));
    assert_eq!(outcomes(&attempts), [(5, AttemptEnd::Ok)]);
    assert_eq!(blocks(&sent[5].view), [7, 8, 9, 10]);
}

#[test]
fn too_small_a_gain_is_left_alone() {
    let timeline = talk(6).done();
    // 300 tokens would go and 62 come: a gain of 238.
    let with = |min_gain_tokens| {
        compact(&timeline, &Params { min_gain_tokens, ..params() }, CompactionTrigger::Tokens(1_400)).1[0].outcome
    };
    assert_eq!((with(238), with(239)), (AttemptEnd::Ok, AttemptEnd::NoGain));
    // Even without a limit a context never grows by being compacted.
    let params = Params { min_gain_tokens: 0, summary_tokens: 300 - 32, ..params() };
    assert_eq!(compact(&timeline, &params, CompactionTrigger::Tokens(1_400)).1[0].outcome, AttemptEnd::NoGain);
}

#[test]
fn compactions_keep_their_distance_in_human_turns() {
    let timeline = talk(20).done();
    let fired = |min_turns_between| {
        let params = Params { min_turns_between, ..params() };
        let attempts = compact(&timeline, &params, CompactionTrigger::Tokens(1_250)).1;
        let turns = attempts.iter().filter(|attempt| attempt.outcome == AttemptEnd::Ok);
        turns.map(|attempt| timeline.requests[attempt.request as usize].turn).collect::<Vec<u32>>()
    };
    // A compaction in turn t leaves 182 (at its start); a turn brings 100.
    assert_eq!(fired(0)[..3], [2, 3, 4]);
    assert_eq!(fired(5), [2, 7, 12, 17]);
    let held = compact(&timeline, &Params { min_turns_between: 5, ..params() }, CompactionTrigger::Tokens(1_250)).1;
    assert!(held.iter().any(|attempt| attempt.outcome == AttemptEnd::Held));
}

#[test]
fn the_breaker_opens_after_failures_in_a_row() {
    let timeline = talk(12).done();
    let run = |fail_every, max_consecutive_failures| {
        let params = Params { fail_every, max_consecutive_failures, ..params() };
        let (sent, attempts) = compact(&timeline, &params, CompactionTrigger::Tokens(1_400));
        let calls: usize = sent.iter().map(|sent| sent.aside.extra.len()).sum();
        let mut counts: BTreeMap<AttemptEnd, usize> = BTreeMap::new();
        for attempt in &attempts {
            *counts.entry(attempt.outcome).or_default() += 1;
        }
        (outcomes(&attempts)[..4].to_vec(), counts, calls)
    };
    let (first, counts, calls) = run(1, 3);
    let (failed, open) = (AttemptEnd::Failed, AttemptEnd::BreakerOpen);
    assert_eq!(first, [(8, failed), (9, failed), (10, failed), (11, open)]);
    assert_eq!((counts[&failed], calls, counts.get(&AttemptEnd::Ok)), (3, 3, None));
    // A success in between closes it again: every second call fails, never two in a row.
    let (_, counts, _) = run(2, 2);
    assert!(counts[&failed] >= 2 && !counts.contains_key(&open) && counts[&AttemptEnd::Ok] >= 2, "{counts:?}");
    let (first, ..) = run(2, 1);
    assert_eq!(first[0].1, AttemptEnd::Ok);
}

#[test]
fn a_failed_summary_costs_its_reading_and_changes_nothing() {
    let timeline = talk(6).done();
    let (sent, _) = compact(&timeline, &Params { fail_every: 1, ..params() }, CompactionTrigger::Tokens(1_400));
    let call = sent[8].aside.extra[0];
    assert_eq!((call.read + call.uncached, call.write, call.output), (1_420, 0, 0));
    assert!(sent.iter().all(|sent| sent.view == sent.logged));
}

#[test]
fn age_fires_only_where_it_is_asked_for() {
    let mut log = talk(4);
    log.wait(60 * 60);
    add_turns(&mut log, 1);
    let timeline = log.done();
    let aged = |max_age_minutes| {
        let params = Params { max_age_minutes, ..params() };
        outcomes(&compact(&timeline, &params, CompactionTrigger::Tokens(1_000_000)).1)
    };
    assert_eq!(aged(0), []);
    assert_eq!(aged(61), []);
    assert_eq!(aged(60)[0], (8, AttemptEnd::Ok));
}

#[test]
fn the_summariser_reads_a_warm_cache_of_its_own_model_only() {
    let call = |seconds: i64, hour: bool, model: &str| {
        let mut log = Story::new();
        log.session("a", "/p");
        if hour {
            log.hour();
        }
        add_turns(&mut log, 4);
        log.wait(seconds);
        add_turns(&mut log, 1);
        let params = Params { summarizer_model: model.to_owned(), ..params() };
        let timeline = log.done();
        let (sent, _) = compact(&timeline, &params, CompactionTrigger::Tokens(1_400));
        sent[8].aside.extra[0]
    };
    let warm =
        ExtraCall { cause: "summary", model: None, is_before: false, read: 1_420, write: 0, uncached: 0, output: 30 };
    let cold = ExtraCall { read: 0, uncached: 1_420, ..warm };
    assert_eq!(call(0, false, ""), warm);
    assert_eq!(call(0, false, "claude-haiku-4-5"), cold);
    let same = call(0, false, MODEL);
    assert_eq!(same, ExtraCall { model: same.model, ..warm }, "the same model by another name");
    // Five minutes and the slack of 15 seconds, from the end of the request before.
    assert_eq!((call(315, false, ""), call(316, false, "")), (warm, cold));
    assert_eq!((call(3_615, true, ""), call(3_616, true, "")), (warm, cold));
}

#[test]
fn a_real_compaction_starts_the_run_anew() {
    let mut log = talk(6);
    log.compaction(Asked::Auto, Some(1_600), 40);
    add_turns(&mut log, 6);
    let timeline = log.done();
    let (sent, attempts) = compact(&timeline, &params(), CompactionTrigger::Tokens(1_400));
    // The second stretch has 40 tokens more, so it fires a request earlier in its own count.
    assert_eq!(outcomes(&attempts)[..2], [(8, AttemptEnd::Ok), (19, AttemptEnd::Ok)]);
    assert!(sent[12..19].iter().all(|sent| sent.view == sent.logged));
}

#[test]
fn without_the_real_compactions_the_context_grows_on_past_the_window() {
    let mut log = talk(3);
    log.compaction(Asked::Auto, Some(1_300), 40).injected(25);
    add_turns(&mut log, 3);
    let timeline = log.done();
    let params = Params { real: Real::Ignore, window: 1_450, ..params() };
    let (sent, attempts) = compact(&timeline, &params, CompactionTrigger::Never);
    // As if six turns had been told in one go.
    let whole = talk(6).done();
    let told = (0..12).map(|request| logged(&whole, request).tokens()).collect::<Vec<u64>>();
    assert_eq!(sent.iter().map(|sent| sent.view.tokens()).collect::<Vec<u64>>(), told);
    let summary = timeline.boundaries[0].summary;
    assert!(sent.iter().all(|sent| !blocks(&sent.view).contains(&summary)));
    assert!(attempts.is_empty() && sent.iter().all(|sent| sent.aside.window == Some(1_450)));
}

#[test]
fn without_the_real_compactions_virtual_ones_reach_back_over_them() {
    let mut log = talk(3);
    log.compaction(Asked::Auto, Some(1_300), 40);
    add_turns(&mut log, 3);
    let (virtual_run, _) =
        compact(&log.done(), &Params { real: Real::Ignore, ..params() }, CompactionTrigger::Tokens(1_400));
    let whole = compact(&talk(6).done(), &params(), CompactionTrigger::Tokens(1_400)).0;
    let tokens = |sent: &[Sent]| sent.iter().map(|sent| sent.view.tokens()).collect::<Vec<u64>>();
    assert_eq!(tokens(&virtual_run), tokens(&whole));
}

/// Six turns, and two more in a segment that goes on from the answer to request `after`.
fn gone_back(after: u32) -> Timeline {
    let mut log = talk(6);
    log.segment(SegmentCause::Rewind);
    add_turns(&mut log, 2);
    let mut timeline = log.done();
    timeline.segments[1].after = after;
    timeline
}

#[test]
fn a_conversation_that_goes_back_keeps_its_summary_only_if_it_keeps_what_followed_it() {
    // The run compacts at request 8 and keeps from block 12 on: the prompt of request 6.
    for (after, is_kept) in [(11, true), (8, true), (6, true), (5, false), (1, false)] {
        let timeline = gone_back(after);
        let (sent, attempts) = compact(&timeline, &params(), CompactionTrigger::Tokens(1_400));
        assert_eq!(attempts[0].request, 8);
        let gone = sent[12].logged.tokens() - sent[12].view.tokens();
        assert_eq!(gone, if is_kept { 300 - 62 } else { 0 }, "after {after}");
    }
}

#[test]
fn going_back_to_before_a_real_compaction_leaves_nothing_to_splice() {
    let told = |after: u32| {
        let mut log = talk(3);
        log.compaction(Asked::Auto, Some(1_300), 40);
        add_turns(&mut log, 3);
        log.segment(SegmentCause::Rewind);
        add_turns(&mut log, 1);
        let mut timeline = log.done();
        timeline.segments[2].after = after;
        let (sent, _) = compact(&timeline, &Params { real: Real::Ignore, ..params() }, CompactionTrigger::Never);
        (sent[12].view.tokens(), sent[12].logged.tokens())
    };
    // Two turns and a prompt from before the compaction.
    assert_eq!(told(3), (1_220, 1_220));
    // After request 9: three turns from before it, two from after it (the log has its summary of 40 instead).
    assert_eq!(told(9), (1_520, 1_260));
}

/// Compaction, and behind it a stage that halves everything.
struct Halved(Compaction);

impl Stage for Halved {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.0.begin(timeline, chain);
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        self.0.apply(moment, Given { kept: 0, ..given }, view, out);
        view.items.iter_mut().for_each(|item| item.tokens /= 2);
        0
    }
}

#[test]
fn the_trigger_sees_what_later_stages_left() {
    let timeline = talk(8).done();
    let journal = StageJournal::default();
    let stage =
        Compaction::new(params(), CompactionThresholds::shipped().clone(), sizes(&timeline).into(), journal.clone());
    send(&timeline, &mut Halved(stage.at(CompactionTrigger::Tokens(1_400))));
    // Alone it fires at request 8. What was sent before is halved, what has come since is not yet.
    let first = journal.take()[0];
    let halved = |request: u32| PREFIX + (logged(&timeline, request).tokens() - PREFIX) / 2;
    let fresh = |request: u32| logged(&timeline, request).tokens() - logged(&timeline, request - 1).tokens();
    let expected = (1..16).find(|&request| halved(request - 1) + fresh(request) >= 1_400).unwrap();
    assert_eq!((first.request, first.before_tokens), (expected, halved(expected - 1) + fresh(expected)));
    assert!(expected > 12);
}

#[test]
fn a_run_is_summed_up_in_figures() {
    let timeline = talk(20).done();
    let thresholds = CompactionThresholds::shipped();
    let (sent, attempts) = compact(&timeline, &params(), CompactionTrigger::Tokens(1_250));
    let contexts = sent.iter().map(|sent| sent.view.tokens());
    let done = compactions(&timeline, &attempts, &run_of(&sent), None, thresholds);
    let fired: Vec<u32> =
        attempts.iter().filter(|attempt| attempt.outcome == AttemptEnd::Ok).map(|attempt| attempt.request).collect();
    assert_eq!(done.outcomes[&AttemptEnd::Ok], fired.len() as u64);
    assert_eq!((done.sessions, done.summariser.calls), (1, fired.len() as u64));
    assert_eq!(done.summariser.output, 30 * fired.len() as u64);
    assert_eq!(done.context.max, contexts.max().unwrap());
    assert_eq!(done.rewritten_tokens, 5 * fired.len() as u64, "five tokens a request");
    let mut gaps: Vec<u64> = fired.windows(2).map(|pair| u64::from(pair[1] - pair[0])).collect();
    gaps.sort_unstable();
    assert_eq!(done.requests_between_p50, Some(gaps[(gaps.len() - 1) / 2]));
    assert!(done.is_thrashing);
    // Five turns apart are ten requests: no longer thrashing.
    let (_, attempts) =
        compact(&timeline, &Params { min_turns_between: 5, ..params() }, CompactionTrigger::Tokens(1_250));
    let done = compactions(&timeline, &attempts, &SimulatedRun::default(), None, thresholds);
    assert_eq!((done.requests_between_p50, done.turns_between_p50), (Some(10), Some(5)));
    assert!(!done.is_thrashing);
}

#[test]
fn breaks_soon_after_a_compaction_are_told_apart() {
    let mut log = talk(4);
    for _ in 0..2 {
        log.human(20).ask(0, 1_000, 1).calls("Edit", "/a.rs", 10);
        let call = log.last_call();
        log.refers(ReferenceKind::EditSource, call, &[(0, 5)]).result(50).ask(1_000, 60, 1).says(20);
        for _ in 0..60 {
            log.calls("Bash", "", 1).result(1).ask(1_000, 2, 1);
        }
    }
    let timeline = log.done();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, breakage::BreakageThresholds::shipped());
    let (sent, attempts) =
        compact(&timeline, &Params { min_turns_between: 5, ..params() }, CompactionTrigger::Tokens(1_400));
    let mut breaks = Vec::new();
    for sent in &sent {
        detectors.look(sent.request, &sent.logged, &sent.view, &mut breaks);
    }
    assert_eq!(breaks.iter().map(|event| event.class).collect::<Vec<_>>(), [BreakClass::EditSourceLost; 2]);
    let watched = (&detectors, breaks.as_slice());
    let done =
        compactions(&timeline, &attempts, &SimulatedRun::default(), Some(watched), CompactionThresholds::shipped());
    assert_eq!(done.outcomes[&AttemptEnd::Ok], 1);
    let soon = done.soon_after.unwrap();
    assert_eq!(soon.events(BreakClass::EditSourceLost), 1);
    assert_eq!(soon_after(&timeline, 8, 50).len(), 50, "one call a request, but for the text of its second");
}

#[test]
fn percentiles_are_values_that_occur() {
    let found = percentiles((1..=20).rev().collect());
    assert_eq!((found.p5, found.p25, found.p50, found.p75, found.p95, found.max), (1, 5, 10, 15, 19, 20));
    assert_eq!(percentiles(vec![7]).p5, 7);
    assert_eq!(percentiles(Vec::new()).max, 0);
}

/// A stretch of contexts, one a request, and how it ends.
fn stretch(log: &mut Story, contexts: &[u64]) {
    for &context in contexts {
        log.human(4).ask(0, context, 0).says(0);
    }
}

/// Sizes with a static prefix of so many tokens.
fn sized(timeline: &Timeline, prefix: u64) -> BlockSizes {
    BlockSizes { prefix: vec![prefix; timeline.chains.len()], ..super::shipped_sheets::anchored_sizes(timeline) }
}

fn client_knobs() -> Params {
    Params { min_turns_between: 0, ..CompactionThresholds::shipped().params.clone() }
}

#[test]
fn automatic_compactions_are_placed_at_the_request_or_beside_it() {
    let thresholds = CompactionThresholds::shipped();
    let placed = |contexts: &[u64], answer: u32, pre_tokens: Option<u64>| {
        let mut log = Story::new();
        log.version("2.1.30").session("a", "/p");
        stretch(&mut log, contexts);
        log.says(answer).compaction(Asked::Auto, pre_tokens, 40).human(4).ask(0, 30_000, 0);
        let found = placement(&log.done(), &client_knobs(), thresholds);
        (found.placed.k, found.placed.n, found.false_firings.k, found.is_met)
    };
    // The last request itself reached the trigger of 167,000: one beside the compaction.
    assert_eq!(placed(&[90_000, 167_000], 0, None), (1, 1, 0, Some(true)));
    // Only its answer of 10,000 characters (3,430 tokens) reaches it.
    assert_eq!(placed(&[90_000, 164_000], 10_000, None), (1, 1, 0, Some(true)));
    assert_eq!(placed(&[90_000, 163_000], 10_000, None), (0, 1, 0, Some(false)));
    // What the boundary says of its context goes first.
    assert_eq!(placed(&[90_000, 163_000], 10_000, Some(167_000)), (1, 1, 0, Some(true)));
    assert_eq!(placed(&[90_000, 164_000], 10_000, Some(166_999)), (0, 1, 0, Some(false)));
    // Reached long before: the rule fires where nothing happened.
    assert_eq!(placed(&[167_000, 168_000, 169_000], 0, Some(170_000)), (0, 1, 1, Some(false)));
}

#[test]
fn results_that_were_never_sent_count_towards_the_trigger() {
    let mut log = Story::new();
    log.session("a", "/p").human(4).ask(0, 164_000, 0).calls("Bash", "", 0).result(9_000);
    let result = log.last_block();
    log.compaction(Asked::Auto, None, 40).ask(0, 30_000, 0);
    let mut timeline = log.done();
    // 164,000 + 90 + 0.343 * 9,000 = 167,177.
    assert_eq!(placement(&timeline, &client_knobs(), CompactionThresholds::shipped()).placed.k, 1);
    timeline.blocks[result as usize].chars = 8_000; // 166,834
    assert_eq!(placement(&timeline, &client_knobs(), CompactionThresholds::shipped()).placed.k, 0);
}

#[test]
fn firings_without_a_compaction_are_false_unless_the_window_is_another() {
    let mut log = Story::new();
    log.session("a", "/p");
    stretch(&mut log, &[90_000, 170_000, 180_000]);
    log.session("b", "/p");
    stretch(&mut log, &[90_000, 170_000, 250_000]);
    log.session("c", "/p");
    stretch(&mut log, &[90_000, 170_000]);
    log.compaction(Asked::Manual, Some(171_000), 40).human(4).ask(0, 30_000, 0);
    let found = placement(&log.done(), &client_knobs(), CompactionThresholds::shipped());
    assert_eq!((found.false_firings.k, found.false_firings.n), (1, 6));
    assert_eq!((found.placed.n, found.beyond_window), (0, 1));
    assert_eq!(found.is_met, None, "there is nothing to place");
}

#[test]
fn sizes_after_compactions_are_held_against_the_knobs() {
    let mut log = Story::new();
    log.session("a", "/p");
    // 20,000 of prefix and 18,012 of carry are 38,012: within a quarter of 30,410 … 50,682.
    for context in [30_410, 30_409, 50_682, 50_683] {
        stretch(&mut log, &[160_000]);
        log.compaction(Asked::Auto, Some(168_000), 40).human(4).ask(0, context, 0);
    }
    let timeline = log.done();
    let found = after_sizes(
        &timeline,
        &sized(&timeline, 20_000),
        &CompactionThresholds::shipped().params,
        CompactionThresholds::shipped(),
    );
    assert_eq!((found.compactions, found.by_params.k, found.by_params.n), (4, 2, 4));
    assert_eq!((found.context.p50, found.context.max), (30_410, 50_683));
}

#[test]
fn real_compactions_are_billed_and_what_they_broke_is_found() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20);
    log.result(900).ask(1_000, 900, 1).says(10);
    log.wait(60).compaction(Asked::Auto, Some(2_000), 100).human(20).ask(400, 300, 5).calls("Edit", "/a.rs", 50);
    log.refers(ReferenceKind::EditSource, 1, &[(2, 300)]).result(10).ask(700, 60, 1).calls("Edit", "/a.rs", 50);
    log.refers(ReferenceKind::EditSource, 2, &[(2, 300), (6, 20)]); // the first edit shows it again
    let timeline = log.done();
    assert_eq!(timeline.blocks[6].kind, BlockKind::ToolUsage);
    let tokens = sizes(&timeline);
    let numbers = breakage::BreakageThresholds::shipped();
    let detectors = Detectors::new(&timeline, &tokens, numbers);
    let real = real_compactions(&detectors, CompactionThresholds::shipped());
    assert_eq!(real.triggers, BTreeMap::from([("auto".to_owned(), 1)]));
    let bill = real.summariser_estimate;
    assert_eq!((bill.calls, bill.read, bill.uncached, bill.output), (1, 2_000, 0, 100));
    assert_eq!((real.rewritten_tokens, real.removed_tokens), (300, 1_901 - 705));
    assert_eq!(
        (real.breakage.events(BreakClass::EditSourceLost), real.breakage.events(BreakClass::RereadPredicted)),
        (1, 1)
    );
    assert_eq!((real.breakage.reread_tokens, real.rereads.compactions, real.rereads.reads), (900, 1, 0));
}

/// What comes next is another chain, which lost nothing.
#[test]
fn nothing_comes_soon_after_a_compaction_that_ends_its_chain() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 1_000, 8).calls("Read", "/a.rs", 20);
    log.result(900).ask(1_000, 900, 1).says(10).compaction(Asked::Auto, Some(2_000), 100);
    log.session("b", "/p").human(20).ask(400, 300, 5).calls("Edit", "/a.rs", 50);
    log.refers(ReferenceKind::EditSource, 1, &[(2, 300)]);
    let timeline = log.done();
    let tokens = sizes(&timeline);
    let detectors = Detectors::new(&timeline, &tokens, breakage::BreakageThresholds::shipped());
    let real = real_compactions(&detectors, CompactionThresholds::shipped());
    assert_eq!((real.triggers["auto"], real.breakage.classes.len()), (1, 0));
}

#[test]
fn a_log_without_compactions_has_no_bill_and_no_verdict() {
    let timeline = talk(3).done();
    let tokens = sizes(&timeline);
    let numbers = breakage::BreakageThresholds::shipped();
    let detectors = Detectors::new(&timeline, &tokens, numbers);
    let real = real_compactions(&detectors, CompactionThresholds::shipped());
    assert_eq!((real.summariser_estimate.calls, real.breakage.classes.len()), (0, 0));
    let after = after_sizes(&timeline, &sized(&timeline, 1_000), &params(), CompactionThresholds::shipped());
    assert_eq!((after.is_met, after.learned.n), (None, 0));
}

#[test]
fn the_sweep_tries_every_threshold_with_every_carry_and_once_none() {
    let thresholds = CompactionThresholds::shipped();
    let found = points(&thresholds.params, thresholds);
    let settings: Vec<(Option<u64>, u64)> =
        found.iter().map(|point| (point.trigger_tokens, point.carry_tokens)).collect();
    let mut expected = Vec::new();
    for carry in [35_000, 15_000] {
        expected.extend([75_000, 80_000, 100_000, 120_000, 140_000].map(|tokens| (Some(tokens), carry)));
    }
    expected.push((None, 0));
    assert_eq!(settings, expected);
    for point in &found[..10] {
        let params = &point.params;
        let made = u64::from(params.summary_tokens + thresholds.client.acknowledgement_tokens + params.reattach_tokens);
        assert_eq!(made + params.tail_keep_tokens, point.carry_tokens);
        assert_eq!(params.summary_tokens, 3_000);
    }
}

#[test]
fn defaults_are_those_of_the_specification() {
    let params = &CompactionThresholds::shipped().params;
    assert_eq!(
        (params.tier, params.mode, params.align, params.real),
        (Tier::Auto, Mode::ClaudeCode, Align::Turn, Real::Keep)
    );
    assert_eq!((params.window, params.buffer, params.tail_keep_tokens), (200_000, 13_000, 20_000));
    assert_eq!((params.summary_tokens, params.reattach_tokens, params.min_gain_tokens), (3_000, 15_000, 2_000));
    assert_eq!((params.max_age_minutes, params.min_turns_between, params.max_consecutive_failures), (0, 5, 3));
    assert_eq!((params.fail_every, params.compact_at_pct), (0, 0.75));
    let micro = &params.micro;
    assert_eq!((micro.min_bytes, micro.target_tokens, micro.min_saving_tokens), (8_192, 40_000, 20_000));
    assert_eq!((micro.protect_last, micro.only_uncached, micro.style), (1, false, Style::Clear));
}

#[test]
fn senseless_knobs_are_refused_by_name() {
    let refused = |from: &str, to: &str| {
        assert!(SHIPPED.contains(from), "{from}");
        CompactionThresholds::parse(&SHIPPED.replacen(from, to, 1), "compaction.toml").unwrap_err().to_string()
    };
    assert!(refused("compact_at_pct = 0.75", "compact_at_pct = 75").contains("compact_at_pct"));
    assert!(refused("window = 200000", "window = 0").contains("window"));
    assert!(refused("buffer = 13000", "buffer = 200000").contains("buffer"));
    assert!(refused("max_consecutive_failures = 3", "max_consecutive_failures = 0").contains("max_consecutive"));
    assert!(refused("style = \"clear\"", "style = \"head(x)\"").contains("head(<characters>)"));
    assert!(refused("mode = \"claude-code\"", "mode = \"codex\"").contains("codex"));
    assert!(refused("fail_every = 0", "fails_every = 0").contains("fails_every"));
    let head = CompactionThresholds::parse(&SHIPPED.replace("style = \"clear\"", "style = \"head(80)\""), "").unwrap();
    assert_eq!(head.params.micro.style, Style::Head(80));
    let tokens =
        CompactionThresholds::parse(&SHIPPED.replace("reserve_output = \"observed\"", "reserve_output = 1000"), "")
            .unwrap();
    assert_eq!(tokens.params.trigger_tokens(&tokens, "2.1.30"), 186_000);
}

/// A story of turns: the prompt, and for each step how many calls are made at once and how long their results are.
fn story(turns: &[(u32, Vec<(u32, u32)>)]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p");
    for (prompt, steps) in turns {
        log.human(*prompt).ask(0, 1_000, 1);
        for &(calls, chars) in steps {
            for _ in 0..calls {
                log.calls("Bash", "", 5);
            }
            for _ in 0..calls {
                log.result(chars);
            }
            log.ask(1_000, 10, 1);
        }
        log.says(15);
    }
    log.done()
}

fn turns() -> impl Strategy<Value = Vec<(u32, Vec<(u32, u32)>)>> {
    prop::collection::vec((1_u32..60, prop::collection::vec((1_u32..4, 0_u32..120), 0..4)), 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tail_is_the_newest_part_whole_and_large_enough(
        turns in turns(),
        tail_keep_tokens in 1_u64..300,
        trigger in 1_000_u64..2_000,
        is_turn in any::<bool>(),
        min_turns_between in 0_u32..4,
    ) {
        let timeline = story(&turns);
        let align = if is_turn { Align::Turn } else { Align::Message };
        let params = Params { tail_keep_tokens, align, min_turns_between, ..params() };
        let (sent, attempts) = compact(&timeline, &params, CompactionTrigger::Tokens(trigger));
        let mut last_turn = None;
        for attempt in attempts.iter().filter(|attempt| attempt.outcome == AttemptEnd::Ok) {
            let at = &sent[attempt.request as usize];
            let tail = &at.view.items[3..];
            prop_assert!(at.logged.items.ends_with(tail));
            prop_assert!(attempt.tail_tokens >= tail_keep_tokens);
            // What went and what came account for the context to the token.
            prop_assert_eq!(attempt.before_tokens - at.view.tokens(), attempt.head_tokens - attempt.made_tokens);
            prop_assert!(at.view.tokens() < attempt.before_tokens);
            if let (true, ItemKey::Block(first)) = (is_turn, tail[0].key) {
                prop_assert_eq!(timeline.blocks[first as usize].kind, BlockKind::Human);
            }
            let turn = timeline.requests[attempt.request as usize].turn;
            prop_assert!(last_turn.is_none_or(|last| turn - last >= min_turns_between));
            last_turn = Some(turn);
        }
        for sent in &sent {
            prop_assert!(sent.view.tokens() <= sent.logged.tokens());
            prop_assert_eq!(orphans(&timeline, &sent.logged, &sent.view, sent.logged.items.iter()), [] as [u32; 0]);
            prop_assert_eq!(sent.aside.extra.len() <= 1, true);
        }
    }

    /// With turns of one size, so that no phase decides.
    #[test]
    fn more_distance_never_means_more_compactions(
        turns in 1_usize..40, step in 10_u32..200, trigger in 1_100_u64..2_500, distance in 0_u32..8,
    ) {
        let timeline = story(&vec![(20, vec![(1, step)]); turns]);
        let fired = |min_turns_between| {
            let params = Params { min_turns_between, ..params() };
            let attempts = compact(&timeline, &params, CompactionTrigger::Tokens(trigger)).1;
            attempts.iter().filter(|attempt| attempt.outcome == AttemptEnd::Ok).count()
        };
        prop_assert!(fired(distance + 1) <= fired(distance));
    }

    #[test]
    fn after_the_failures_allowed_nothing_is_tried_until_a_success(
        fail_every in 1_u32..4, most in 1_u32..4,
    ) {
        let timeline = story(&vec![(20, vec![(1, 60)]); 30]);
        let params = Params { fail_every, max_consecutive_failures: most, ..params() };
        let attempts = compact(&timeline, &params, CompactionTrigger::Tokens(1_300)).1;
        let mut in_a_row = 0;
        for attempt in attempts {
            match attempt.outcome {
                AttemptEnd::Failed => in_a_row += 1,
                AttemptEnd::Ok => in_a_row = 0,
                AttemptEnd::BreakerOpen => prop_assert_eq!(in_a_row, most),
                _ => {}
            }
            prop_assert!(in_a_row <= most);
        }
    }
}
