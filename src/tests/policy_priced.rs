//! Compaction and clearing through the driver: what they do to the bill of a story whose contexts grow as its blocks do.

use std::sync::Arc;

use proptest::prelude::*;

use super::shipped_sheets::anchored_sizes;
use super::timeline_builder::Story;
use crate::logs::timeline::requests::{ReferenceKind, Timeline};
use crate::whatif::clearing::Micro;
use crate::whatif::compaction::figures::{SweepPoint, row};
use crate::whatif::compaction::params::{MicroParams, Params, Real, Style};
use crate::whatif::compaction::{Compaction, CompactionThresholds, CompactionTrigger};
use crate::whatif::prompt_cache::params::{CacheLifetime, CacheRules, Params as CacheParams, TtlPolicy};
use crate::whatif::sim::breakage;
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::breakage::{BreakWatch, Detectors};
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::sizes::BlockSizes;
use crate::whatif::sim::view::{Stage, StageJournal};

struct Bench {
    timeline: Timeline,
    sizes: BlockSizes,
}

impl Bench {
    fn new(timeline: Timeline) -> Self {
        Self { sizes: anchored_sizes(&timeline), timeline }
    }

    fn run(&self, stage: impl FnOnce() -> Option<Box<dyn Stage>>) -> SimulatedRun {
        let mut stages: Vec<_> = stage().into_iter().collect();
        self.simulator().run(0..self.timeline.chains.len() as u32, &mut stages, None)
    }

    fn simulator(&self) -> Simulator<'_> {
        Simulator::new(&self.timeline, &self.sizes, CacheRules::shipped(), Prices::shipped())
    }

    fn compaction(&self, params: &Params, trigger: CompactionTrigger) -> Box<dyn Stage> {
        let tokens = Arc::clone(&self.sizes.tokens);
        Box::new(
            Compaction::new(params.clone(), CompactionThresholds::shipped().clone(), tokens, StageJournal::default())
                .at(trigger),
        )
    }
}

/// Turns of two requests: the prompt brings 2,000 tokens, a result 6,000; each request reads what was written before.
fn talk(turns: usize) -> Story {
    pausing(turns, 30)
}

/// The same with so many seconds between turns.
fn pausing(turns: usize, seconds: i64) -> Story {
    let mut log = Story::new();
    log.session("a", "/p").hour();
    let mut cached = 0;
    for turn in 0..turns {
        let first = if turn == 0 { 18_000 } else { 2_000 };
        log.human(4_000).ask(cached, first, 0).calls("Bash", "", 60).wait(2).result(20_000).wait(1);
        log.ask(cached + first, 6_000, 0).says(300).wait(seconds);
        cached += first + 6_000;
    }
    log
}

fn params() -> Params {
    Params {
        min_turns_between: 0,
        tail_keep_tokens: 5_000,
        reattach_tokens: 2_000,
        ..CompactionThresholds::shipped().params.clone()
    }
}

#[test]
fn without_a_firing_the_bill_is_the_baselines() {
    let bench = Bench::new(talk(6).done());
    let baseline = bench.run(|| None);
    assert_eq!(bench.run(|| Some(bench.compaction(&params(), CompactionTrigger::Never))), baseline);
    assert_eq!(bench.run(|| Some(bench.compaction(&params(), CompactionTrigger::Params))), baseline);
}

#[test]
fn a_compaction_reads_no_more_than_the_static_prefix_and_writes_the_rest() {
    let bench = Bench::new(talk(6).done());
    let baseline = bench.run(|| None);
    let compacted = bench.run(|| Some(bench.compaction(&params(), CompactionTrigger::Tokens(40_000))));
    // 18,000 + 6,000, and 8,000 a turn: request 4 (the third prompt) has 34,000, request 5 has 40,000.
    let contexts: Vec<u64> = baseline.requests[..6].iter().map(|priced| priced.spent().prompt()).collect();
    assert_eq!(contexts, [18_000, 24_000, 26_000, 32_000, 34_000, 40_000]);
    assert_eq!(compacted.requests[..5], baseline.requests[..5]);
    assert_eq!((compacted.extra[0].request, compacted.extra[0].call.cause), (5, "summary"));
    assert_eq!((compacted.extra[0].call.read, compacted.extra[0].call.output), (40_000, 3_000));
    let (after, prefix) = (compacted.requests[5], bench.sizes.prefix[0]);
    assert!(after.spent().read <= prefix && after.spent().prompt() < 40_000);
    assert_eq!(after.spent().prompt() - after.spent().read, after.spent().write());
    // Two units a token read and a hundred a token of the summary (in twentieths of an input token).
    assert_eq!(compacted.extra[0].cost.units, (2 * 40_000 + 100 * 3_000) * 10);
}

/// Under another lifetime the summariser finds what that one has left, whatever the log's did.
#[test]
fn the_summariser_finds_the_cache_of_the_simulated_lifetime() {
    let bench = Bench::new(pausing(6, 600).done());
    let summary = |ttl| {
        let shipped = CacheRules::shipped();
        let cache_rules = shipped.with(CacheParams { ttl, ..shipped.params });
        let mut stages = vec![bench.compaction(&params(), CompactionTrigger::Tokens(33_000))];
        let run = bench.simulator().under(&cache_rules).run(0..1, &mut stages, None);
        (run.extra[0].request, run.extra[0].call.read, run.extra[0].call.uncached)
    };
    // The third prompt, ten minutes after the answer before.
    assert_eq!(summary(TtlPolicy::Observed), (4, 34_000, 0));
    assert_eq!(summary(TtlPolicy::Always(CacheLifetime::FiveMinutes)), (4, 0, 34_000));
}

/// A session that goes on in a file of its own has the static prefix that it began with: nothing else tells what that is.
#[test]
fn a_session_taken_up_in_another_file_is_simulated_as_if_it_had_one() {
    let told = |is_split: bool| {
        let mut log = talk(3);
        if is_split {
            log.session("b", "/p").hour().back_to(5);
        }
        for turn in 0..4 {
            let cached = 40_000 + 8_000 * turn;
            log.human(4_000).ask(cached, 2_000, 0).calls("Bash", "", 60).wait(2).result(20_000).wait(1);
            log.ask(cached + 2_000, 6_000, 0).says(300).wait(30);
        }
        let bench = Bench::new(log.done());
        let stills: Vec<u64> = bench.sizes.priors.iter().map(|prior| prior.still).collect();
        let run = bench.run(|| Some(bench.compaction(&params(), CompactionTrigger::Tokens(60_000))));
        (stills, run.requests.iter().map(|priced| priced.spent()).collect::<Vec<_>>(), run.extra.len())
    };
    let (stills, spent, compactions) = told(false);
    assert!(compactions > 0 && stills.iter().all(|still| *still < 18_000), "{stills:?}");
    assert_eq!(told(true), (stills, spent, compactions));
}

#[test]
fn tools_of_subagents_are_no_static_prefix_of_a_main_thread() {
    let mut log = Story::new();
    let day = |log: &mut Story, session: &str| {
        log.session(session, "/servers").human(40).ask(0, 44_000, 0).says(60);
        for (agent, read, write) in [("x", 0, 6_500), ("y", 6_000, 500)] {
            log.wait(30).agent(&format!("{session}{agent}")).human(40).ask(read, write, 0).says(60);
        }
        log.wait(90_000);
    };
    day(&mut log, "a");
    day(&mut log, "b");
    let priors = Bench::new(log.done()).sizes.priors;
    let (main, cold_agent, warm_agent) = (&priors[3], &priors[4], &priors[5]);
    assert!(main.still > 43_000 && main.elsewhere().is_none(), "{main:?}");
    assert!(cold_agent.still == 6_000 && cold_agent.elsewhere().is_none(), "{cold_agent:?}");
    assert_eq!(warm_agent.elsewhere().map(|warm| warm.length), Some(6_000), "{warm_agent:?}");
}

/// Nothing that two subagents begin with is found, though it was sent a moment ago: so is the next one expected to begin.
#[test]
fn what_was_warm_and_not_found_is_not_expected() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).says(60);
    for agent in ["x", "y", "z"] {
        log.wait(30).agent(agent).human(40).ask(0, 6_000, 0).says(60);
    }
    let priors = Bench::new(log.done()).sizes.priors;
    assert!(priors[2].elsewhere().is_some() && priors[3].elsewhere().is_none(), "{priors:?}");
}

#[test]
fn a_row_of_the_sweep_holds_cost_summaries_and_losses() {
    let mut log = talk(6);
    log.human(4_000).ask(64_000, 2_000, 0).calls("Edit", "/a.rs", 60);
    log.refers(ReferenceKind::EditSource, 6, &[(2, 900)]);
    let bench = Bench::new(log.done());
    let thresholds = CompactionThresholds::shipped();
    let detectors = Detectors::new(&bench.timeline, &bench.sizes.tokens, breakage::BreakageThresholds::shipped());
    let requests = bench.simulator();
    let point = |trigger_tokens| SweepPoint { trigger_tokens, carry_tokens: 10_012, params: params() };
    let at = |trigger_tokens| row(&requests, &detectors, &point(trigger_tokens), thresholds);
    let never = at(None);
    assert_eq!((never.trigger_tokens, never.firings, never.edit_source_lost), (None, 0, 0));
    assert_eq!(never.cost, bench.run(|| None).cost());
    let fired = at(Some(40_000));
    let run = bench.run(|| Some(bench.compaction(&params(), CompactionTrigger::Tokens(40_000))));
    assert_eq!((fired.firings, fired.cost), (run.extra.len() as u64, run.cost()));
    assert_eq!(fired.summariser.units, run.extra.iter().map(|extra| extra.cost.units).sum::<u128>());
    assert_eq!(fired.edit_source_lost, 1);
}

#[test]
fn the_watch_collects_what_stages_notice_and_what_answers_miss() {
    let mut log = talk(3);
    log.calls("Edit", "/a.rs", 60).refers(ReferenceKind::EditSource, 3, &[(2, 900)]);
    let bench = Bench::new(log.done());
    let detectors = Detectors::new(&bench.timeline, &bench.sizes.tokens, breakage::BreakageThresholds::shipped());
    let micro = MicroParams {
        target_tokens: 4_000,
        min_saving_tokens: 1,
        protect_last: 0,
        ..CompactionThresholds::shipped().params.micro.clone()
    };
    let mut watch = BreakWatch::new(&detectors);
    let micro = Micro::new(micro, CompactionThresholds::shipped().clone(), StageJournal::default());
    bench.simulator().run(0..bench.timeline.chains.len() as u32, &mut [Box::new(micro)], Some(&mut watch));
    let classes: Vec<(u32, BreakClass)> = watch.breaks.iter().map(|event| (event.request, event.class)).collect();
    // Each result of 20,000 characters is over 4,000 tokens by itself and goes before it is seen.
    let unseen = [1, 3, 5].map(|request| (request, BreakClass::ClearedBeforeSeen));
    assert_eq!(classes, [unseen.as_slice(), &[(5, BreakClass::EditSourceLost)]].concat());
}

/// Without the compactions of the log: what later stages take out need not fit.
#[test]
fn every_request_that_is_sent_longer_than_the_window_breaks() {
    let bench = Bench::new(talk(6).done());
    let detectors = Detectors::new(&bench.timeline, &bench.sizes.tokens, breakage::BreakageThresholds::shipped());
    let params = Params { real: Real::Ignore, window: 50_000, ..params() };
    let over = |later: Option<Box<dyn Stage>>| {
        let stages = [bench.compaction(&params, CompactionTrigger::Never)].into_iter().chain(later).collect();
        let (_, breaks) = BreakWatch::new(&detectors).over(&bench.simulator(), stages);
        let over = breaks.into_iter().filter(|event| event.class == BreakClass::Overflow);
        over.map(|event| event.request).collect::<Vec<u32>>()
    };
    // Contexts have 50,000, 56,000, 58,000 and 64,000 tokens from request 8 on.
    assert_eq!(over(None), [9, 10, 11]);
    let micro = MicroParams { target_tokens: 4_000, min_saving_tokens: 1, protect_last: 0, ..params.micro.clone() };
    let clearing = Micro::new(micro, CompactionThresholds::shipped().clone(), StageJournal::default());
    assert!(over(Some(Box::new(clearing))).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn clearing_what_is_not_cached_never_lowers_a_read(
        results in prop::collection::vec(0_u32..30_000, 1..12),
        target_tokens in 0_u64..9_000,
        head in prop::option::of(0_u32..4_000),
        minutes in prop::collection::vec(0_i64..12, 12),
    ) {
        let mut log = Story::new();
        log.session("a", "/p").human(400);
        let mut cached = 18_000;
        log.ask(0, cached, 3);
        for (&chars, &minutes) in results.iter().zip(&minutes) {
            let grown = u64::from(chars) / 3 + 120;
            log.calls("Bash", "", 40).wait(60 * minutes).result(chars).ask(cached, grown, 3);
            cached += grown;
        }
        let bench = Bench::new(log.done());
        let style = head.map_or(Style::Clear, Style::Head);
        let micro = MicroParams {
            min_bytes: 0, target_tokens, min_saving_tokens: 1, protect_last: 0, only_uncached: true, style,
        };
        let stage = Micro::new(micro, CompactionThresholds::shipped().clone(), StageJournal::default());
        let (cleared, baseline) = (bench.run(|| Some(Box::new(stage))), bench.run(|| None));
        for (cleared, baseline) in cleared.requests.iter().zip(&baseline.requests) {
            // What was cleared before is shorter from then on, in both directions of the bill.
            let removed = baseline.spent().prompt() - cleared.spent().prompt();
            prop_assert!(cleared.spent().read + removed >= baseline.spent().read);
            prop_assert!(cleared.shared() + removed >= baseline.shared());
        }
    }
}
