//! The simulated cache: the golden chain, its rules one by one, and what must hold for any story.

use std::ops::Range;

use proptest::prelude::*;

use super::shipped_sheets::anchored_sizes;
use super::timeline_builder::{MODEL, Story};
use crate::base::data::{Data, fitting};
use crate::logs::timeline::requests::{Marks, SegmentCause, Timeline, Trigger};
use crate::whatif::prompt_cache::params::{
    CacheLayout, CacheLifetime, CacheRules, HiddenForks, MinCacheable, Params, Switch, TtlPolicy,
};
use crate::whatif::sim::cost::{Spent, UNITS_PER_TOKEN};
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::{ContextView, ForkPoints, Given, Moment, Stage, StageOutput};

fn simulated(timeline: &Timeline, change: impl FnOnce(&mut Params)) -> SimulatedRun {
    let mut cache_rules = CacheRules::shipped().clone();
    change(&mut cache_rules.params);
    Simulator::new(timeline, &anchored_sizes(timeline), &cache_rules, Prices::shipped()).baseline()
}

fn reads_and_writes(run: &SimulatedRun) -> Vec<(u64, u64)> {
    run.requests.iter().map(|priced| (priced.spent().read, priced.spent().write())).collect()
}

/// policies.md 9: six requests of the 1-hour class.
const GOLDEN: [(u64, u64); 6] =
    [(0, 27_979), (27_979, 876), (28_855, 3_028), (32_515, 31), (32_546, 18_305), (50_851, 39_881)];

fn golden(log: &mut Story) -> &mut Story {
    log.session("golden", "/p").hour().human(100);
    for (index, (read, write)) in GOLDEN.into_iter().enumerate() {
        match index {
            0 => log.ask(read, write, 8),
            1 => log.wait(630).result(900).ask(read, write, 8),
            3 => log.wait(20).human(60).ask(read, write, 8),
            _ => log.wait(2).result(3_000).ask(read, write, 8),
        };
        match index {
            2 => log.says(2_200),
            _ => log.calls("Bash", "", 80),
        };
    }
    log
}

#[test]
fn the_golden_chain_is_read_and_written_to_the_token() {
    let mut log = Story::new();
    golden(&mut log);
    let timeline = log.done();
    let run = simulated(&timeline, |_| {});
    assert_eq!(reads_and_writes(&run), GOLDEN);
    let last = run.requests[5];
    assert_eq!(last.spent(), Spent { read: 50_851, write_1h: 39_881, uncached: 8, ..Spent::default() });
    assert_eq!(run.cost_of(&last).units, 1_697_102 * u128::from(UNITS_PER_TOKEN / 20));
}

#[test]
fn under_five_minutes_the_golden_chain_loses_everything_in_its_long_pause() {
    let mut log = Story::new();
    golden(&mut log);
    let timeline = log.done();
    let run = simulated(&timeline, |params| params.ttl = TtlPolicy::Always(CacheLifetime::FiveMinutes));
    assert_eq!(reads_and_writes(&run)[1], (0, 28_855));
    assert_eq!(run.cost_of(&run.requests[5]).units, 1_098_887 * u128::from(UNITS_PER_TOKEN / 20));
}

#[test]
fn another_live_session_keeps_the_static_prefix() {
    let mut log = Story::new();
    // Sessions stand in the order of their first records; the clock is told for each.
    log.session("other", "/p").hour().human(10).at(-4_000).ask(0, 18_000, 8).says(10);
    log.at(-300).human(10).ask(16_000, 2_100, 8).says(10);
    log.at(500).human(10).ask(18_100, 100, 8);
    log.at(0);
    golden(&mut log);
    let timeline = log.done();
    // The break of the other session showed a floor of 16,000.
    let five = simulated(&timeline, |params| params.ttl = TtlPolicy::Always(CacheLifetime::FiveMinutes));
    assert_eq!(reads_and_writes(&five)[4], (16_000, 12_855));
    let alone = simulated(&timeline, |params| {
        (params.ttl, params.cross_session) = (TtlPolicy::Always(CacheLifetime::FiveMinutes), Switch::Off);
    });
    assert_eq!(reads_and_writes(&alone)[4], (0, 28_855));
}

/// Two requests with a pause of so many seconds between them.
fn pause(seconds: i64, hour: bool) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p");
    if hour {
        log.hour();
    }
    log.human(10).ask(0, 10_000, 5).calls("Bash", "", 10).wait(seconds).result(10).ask(0, 10_100, 5);
    log.done()
}

#[test]
fn a_prefix_lives_for_its_class_and_the_slack() {
    let read = |seconds, hour, slack| {
        reads_and_writes(&simulated(&pause(seconds, hour), |params| params.slack_s = slack))[1].0
    };
    assert_eq!((read(300, false, 0), read(301, false, 0)), (10_000, 0));
    assert_eq!((read(315, false, 15), read(316, false, 15)), (10_000, 0));
    assert_eq!((read(3_600, true, 0), read(3_601, true, 0)), (10_000, 0));
}

#[test]
fn a_hit_gives_everything_before_it_a_new_life_of_its_own_class() {
    let mut log = Story::new();
    log.session("a", "/p").hour().human(10).ask(0, 10_000, 0).calls("Bash", "", 10);
    // From here on five minutes: what was written for an hour lives on for five minutes after each hit.
    log.five_minutes().wait(60).result(10).ask(10_000, 100, 0).calls("Bash", "", 10);
    log.wait(200).result(10).ask(10_100, 100, 0).calls("Bash", "", 10);
    log.wait(200).result(10).ask(10_200, 100, 0).calls("Bash", "", 10);
    log.wait(900).result(10).ask(0, 10_400, 0);
    let timeline = log.done();
    let reads: Vec<u64> = reads_and_writes(&simulated(&timeline, |_| {})).iter().map(|pair| pair.0).collect();
    assert_eq!(reads, [0, 10_000, 10_100, 10_200, 0]);
}

#[test]
fn a_clock_that_ran_backwards_loses_nothing() {
    let reads = |seconds| reads_and_writes(&simulated(&pause(seconds, false), |_| {}))[1].0;
    assert_eq!(reads(-50_000), 10_000);
    assert_eq!(reads(i64::from(u32::MAX)), 0);
}

/// A session taken up again may be written with one time for all that was said before; only what people wrote has its own.
#[test]
fn one_time_for_many_answers_is_no_time() {
    let mut log = Story::new();
    log.session("a", "/p").takes(0).human(10).at(-9_000).ask(0, 10_000, 0);
    for request in 1..4 {
        // Answers and results all carry the time of the resumption.
        log.calls("Bash", "", 10).at(0).result(10).ask(9_900 + 100 * request, 100, 0);
    }
    log.says(10).at(100).human(10).ask(0, 10_400, 0);
    let timeline = log.done();
    let run = simulated(&timeline, |params| params.hidden_forks = HiddenForks::Off);
    let reads: Vec<u64> = run.requests.iter().map(|priced| priced.spent().read).collect();
    assert_eq!(reads, [0, 10_000, 10_100, 10_200, 0], "the pause is 9,100 s, not 100 s");
}

#[test]
fn after_a_compaction_only_the_static_prefix_is_left() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(16_000, 4_000, 0).calls("Bash", "", 10);
    log.wait(1).result(10).ask(20_000, 80_000, 0).says(10).wait(5);
    log.compaction(Trigger::Auto, Some(100_010), 9_000).ask(16_000, 20_000, 0);
    let run = simulated(&log.done(), |_| {});
    assert_eq!(reads_and_writes(&run)[2], (16_000, 20_000));
    assert_eq!(run.requests[2].shared(), 16_000);
}

#[test]
fn each_model_has_a_cache_of_its_own() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).calls("Bash", "", 10).wait(1);
    log.model("claude-haiku-4-5").result(10).ask(0, 20_100, 0).calls("Bash", "", 10).wait(1);
    log.model("claude-opus-4-5").result(10).ask(20_000, 200, 0);
    let run = simulated(&log.done(), |_| {});
    assert_eq!(reads_and_writes(&run), [(0, 20_000), (0, 20_100), (0, 20_200)], "ids are models");
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).calls("Bash", "", 10).wait(1);
    log.model("claude-haiku-4-5").result(10).ask(0, 20_100, 0).calls("Bash", "", 10).wait(1);
    log.model(MODEL).result(10).ask(20_000, 200, 0);
    let run = simulated(&log.done(), |_| {});
    assert_eq!(reads_and_writes(&run)[2], (20_000, 200), "back at the first model its prefix is still there");
}

#[test]
fn short_prefixes_are_not_cached() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 0, 4_095).calls("Bash", "", 10).wait(1);
    log.result(10).ask(0, 4_096, 0).calls("Bash", "", 10).wait(1).result(10).ask(4_096, 10, 0);
    let timeline = log.done();
    let run = simulated(&timeline, |_| {});
    assert_eq!(reads_and_writes(&run), [(0, 0), (0, 4_096), (4_096, 10)]);
    let all = simulated(&timeline, |params| params.min_cacheable = MinCacheable::Tokens(10_000));
    assert_eq!(all.total().spent, Spent { uncached: 4_095 + 4_096 + 4_106, ..Spent::default() });
    assert_eq!(CacheRules::shipped().min_cacheable("claude-opus-5"), 512);
    assert_eq!(CacheRules::shipped().min_cacheable("claude-opus-4-6[1m]"), 4_096);
    assert_eq!(CacheRules::shipped().min_cacheable("gpt-9"), 1_024);
}

#[test]
fn layouts_decide_what_is_marked() {
    let mut log = Story::new();
    log.session("a", "/p").human(0).ask(0, 16_000, 0).says(0).wait(5);
    log.human(40).ask(16_000, 1_000, 0).calls("Bash", "", 10).wait(1_000).result(10).ask(0, 18_000, 0);
    let timeline = log.done();
    let under = |layout| simulated(&timeline, |params| params.layout = layout);
    let none = under(CacheLayout::None);
    assert_eq!(none.total().spent, Spent { uncached: 51_000, ..Spent::default() });
    assert_eq!(none.cost().units, 20 * 51_000 * u128::from(UNITS_PER_TOKEN / 20));
    // The static prefix is all 16,000 tokens of the first context.
    let runtime = under(CacheLayout::AgentRuntime);
    let spent: Vec<Spent> = runtime.requests.iter().map(|priced| priced.spent()).collect();
    assert_eq!(spent[0], Spent { write_5m: 16_000, ..Spent::default() });
    assert_eq!(spent[1], Spent { read: 16_000, uncached: 1_000, ..Spent::default() });
    assert_eq!(spent[2], Spent { write_5m: 16_000, uncached: 2_000, ..Spent::default() });
    // For an hour the static prefix, for five minutes the tail: after 1,000 s only the former is left.
    let split = under(CacheLayout::StaticAndTail);
    assert_eq!(split.requests[0].spent(), Spent { write_1h: 16_000, ..Spent::default() });
    assert_eq!(split.requests[2].spent(), Spent { read: 16_000, write_5m: 2_000, ..Spent::default() });
    let mixed = simulated(&timeline, |params| {
        params.ttl = TtlPolicy::Mixed { still: CacheLifetime::Hour, tail: CacheLifetime::FiveMinutes };
    });
    assert_eq!(mixed.requests, split.requests);
    let doubled = simulated(&timeline, |params| {
        (params.layout, params.double_system) = (CacheLayout::AgentRuntime, Switch::On);
    });
    let again = CacheRules::shipped().cache.system_tokens;
    assert_eq!(doubled.requests[1].spent(), Spent { read: 16_000, uncached: 1_000 + again, ..Spent::default() });
}

#[test]
fn a_look_back_of_twenty_blocks_does_not_find_an_older_breakpoint() {
    let story = |calls: u32| {
        let mut log = Story::new();
        log.session("a", "/p").human(40).ask(0, 20_000, 0);
        (0..calls).for_each(|_| {
            log.calls("Bash", "", 10);
        });
        log.wait(1);
        (0..calls).for_each(|_| {
            log.result(10);
        });
        log.ask(20_000, 5_000, 0);
        log.done()
    };
    let read = |calls, lookback| {
        let timeline = story(calls);
        let still = anchored_sizes(&timeline).prefix[0];
        let run = simulated(&timeline, |params| params.lookback_blocks = lookback);
        (run.requests[1].spent().read, still)
    };
    assert_eq!(read(9, 20).0, 20_000);
    let (found, still) = read(10, 20);
    assert!(found == still && found < 20_000, "20 blocks and a residual: only the static prefix is found");
    assert_eq!(read(30, 0).0, 20_000);
}

#[test]
fn the_answer_before_a_human_turn_is_cached_by_a_hidden_request() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).says(2_070).wait(20);
    log.human(4).ask(20_600, 20, 0).says(10).wait(20);
    // A read of exactly what was written: there was no such request here.
    log.human(4).ask(20_620, 30, 0);
    let timeline = log.done();
    let reads = |forks| {
        let run = simulated(&timeline, |params| params.hidden_forks = forks);
        run.requests.iter().map(|priced| priced.spent().read).collect::<Vec<_>>()
    };
    assert_eq!(reads(HiddenForks::On), [0, 20_600, 20_620]);
    assert_eq!(reads(HiddenForks::Off), [0, 20_000, 20_620]);
    let estimated = reads(HiddenForks::Estimated);
    assert!(estimated[1] > 20_000 && estimated[2] > 20_620, "{estimated:?}");
}

#[test]
fn keeping_alive_costs_a_read_for_every_interval_and_loses_nothing() {
    let timeline = pause(1_000, false);
    let run = simulated(&timeline, |params| (params.keepalive_s, params.keepalive_max_s) = (270, 3_600));
    // 270, 540 and 810 s; then after the end of the chain 13 more within 3,600 s.
    let before = run.extra.iter().filter(|extra| extra.request == 1 && extra.call.read == 10_000).count();
    assert_eq!((before, run.extra.len()), (3, 3 + 13));
    assert_eq!(reads_and_writes(&run)[1], (10_000, 100));
    let short = simulated(&timeline, |params| (params.keepalive_s, params.keepalive_max_s) = (270, 300));
    assert_eq!(reads_and_writes(&short)[1], (0, 10_100), "it had stopped too early");
    assert!(simulated(&timeline, |_| {}).extra.is_empty());
}

#[test]
fn a_request_without_usage_is_counted_and_changes_nothing() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0).calls("Bash", "", 10).wait(1);
    log.result(10).ask(0, 0, 0).calls("Bash", "", 10).wait(1).result(10).ask(20_000, 300, 0);
    let run = simulated(&log.done(), |_| {});
    assert_eq!((run.without_usage, reads_and_writes(&run)), (1, vec![(0, 20_000), (20_000, 300)]));
}

#[test]
fn a_subagent_forked_off_reads_what_its_parent_has_cached() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 60_000, 0).says(1_000).wait(2);
    log.agent("fork").back_to(0).human(400).ask(60_000, 350, 0);
    let run = simulated(&log.done(), |_| {});
    assert_eq!(reads_and_writes(&run)[1], (60_000, 350));
}

/// Makes the first item half as long in some chains.
struct Halved {
    chains: Range<u32>,
    is_halved: bool,
}

impl Stage for Halved {
    fn begin(&mut self, _: &Timeline, chain: u32) {
        self.is_halved = self.chains.contains(&chain);
    }

    fn apply(&mut self, _: &Moment<'_>, given: Given<'_>, view: &mut ContextView, _: &mut StageOutput) -> usize {
        view.clone_from(given.view);
        if self.is_halved {
            view.items[0].tokens /= 2;
        }
        0
    }
}

#[test]
fn a_fork_reads_what_was_sent_to_its_original_as_far_as_it_begins_so() {
    let mut log = Story::new();
    log.session("a", "/p").human(40_000).ask(0, 60_000, 0).says(1_000).wait(2);
    log.agent("fork").back_to(0).human(400).ask(60_000, 350, 0);
    let timeline = log.done();
    let (cache_rules, sizes, prices) = (CacheRules::shipped(), anchored_sizes(&timeline), Prices::shipped());
    let simulator = Simulator::new(&timeline, &sizes, cache_rules, prices);
    let read = |chains| {
        let stage: Box<dyn Stage> = Box::new(Halved { chains, is_halved: false });
        reads_and_writes(&simulator.run(simulator.chains(), &mut [stage], None))[1].0
    };
    assert_eq!(read(0..0), 60_000);
    let prompt = u64::from(sizes.tokens[0]);
    assert!(prompt > 1_000);
    assert_eq!(read(0..2), 60_000 - prompt.div_ceil(2));
    // Nothing but tools and system prompt is the same.
    let still = simulator.priors[1].still.min(sizes.prefix[1]);
    assert!(still > 0);
    assert_eq!([0..1, 1..2].map(read), [still, still]);
}

#[test]
fn what_stood_is_kept_until_the_last_fork_begins() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 60_000, 0).says(10);
    for name in ["one", "two"] {
        log.agent(name).back_to(0).human(40).ask(60_000, 350, 0);
    }
    let timeline = log.done();
    let mut forks = ForkPoints::default();
    forks.keep(&timeline, 0, |_| 7);
    assert_eq!([0, 1, 2, 2].map(|chain| forks.take(&timeline, chain)), [None, Some(7), Some(7), None]);
}

#[test]
fn knobs_are_read_as_written_and_senseless_ones_named() {
    let params = |line: &str| {
        let text = Data::default().text("policies/prompt_cache.toml").unwrap();
        let key = line.split(" =").next().unwrap();
        let lines = text.lines().map(|held| if held.starts_with(&format!("{key} =")) { line } else { held });
        fitting::<CacheRules>(&lines.collect::<Vec<_>>().join("\n"), "p.toml").map(|cache_rules| cache_rules.params)
    };
    assert_eq!(params("ttl = \"mixed:static=1h,tail=5m\"").unwrap().ttl.to_string(), "mixed:static=1h,tail=5m");
    assert_eq!(params("min_cacheable = 7").unwrap().min_cacheable, MinCacheable::Tokens(7));
    assert!(params("cross_session = false").unwrap().cross_session == Switch::Off);
    for wrong in [
        "ttl = \"2h\"",
        "ttl = \"mixed:static=5m,tail=1h\"",
        "ttl = \"mixed:tail=5m\"",
        "layout = \"x\"",
        "min_cacheable = \"x\"",
        "min_cacheable = -1",
        "cross_session = \"maybe\"",
        "slack_s = -1",
    ] {
        assert!(params(wrong).unwrap_err().to_string().starts_with("p.toml:"), "{wrong}");
    }
    let check = |change: fn(&mut Params)| {
        let mut params = CacheRules::shipped().params;
        change(&mut params);
        params.check().map_err(|error| error.message)
    };
    assert!(check(|_| {}).is_ok());
    assert!(check(|params| params.double_system = Switch::On).unwrap_err().starts_with("double_system"));
    assert!(check(|params| params.keepalive_s = 4_000).unwrap_err().starts_with("keepalive_max_s"));
}

/// Changes nothing.
struct Idle;

impl Stage for Idle {
    fn begin(&mut self, _: &Timeline, _: u32) {}

    fn apply(&mut self, _: &Moment<'_>, given: Given<'_>, view: &mut ContextView, _: &mut StageOutput) -> usize {
        view.follow(given.view, given.kept, given.kept);
        given.kept
    }
}

/// Cuts every context down to its newest items, so that every prefix breaks.
struct Newest(usize);

impl Stage for Newest {
    fn begin(&mut self, _: &Timeline, _: u32) {}

    fn apply(&mut self, _: &Moment<'_>, given: Given<'_>, view: &mut ContextView, _: &mut StageOutput) -> usize {
        view.follow(given.view, 0, given.view.items.len().saturating_sub(self.0));
        0
    }
}

#[test]
fn a_stage_that_changes_the_head_leaves_only_the_static_prefix() {
    let mut log = Story::new();
    log.session("a", "/p").human(40).ask(0, 20_000, 0);
    for request in 1..6_u64 {
        log.calls("Bash", "", 100).wait(1).result(400).ask(20_000 + 200 * (request - 1), 200, 0);
    }
    let timeline = log.done();
    let (cache_rules, prices, sizes) = (CacheRules::shipped(), Prices::shipped(), anchored_sizes(&timeline));
    let simulator = Simulator::new(&timeline, &sizes, cache_rules, prices);
    let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(Newest(2))];
    let run = simulator.run(0..1, &mut stages, None);
    let still = simulator.priors[5].still;
    for priced in &run.requests[1..] {
        assert_eq!((priced.spent().read, priced.shared()), (still, still));
        assert!(priced.spent().prompt() < 20_300, "{priced:?}");
    }
}

/// One step of a random chain.
#[derive(Clone, Debug)]
struct Step {
    wait: i64,
    growth: u64,
    tail: u64,
    kind: u8,
    hour: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        (prop_oneof![0_i64..400, 0_i64..8_000, -9_000_i64..9_000], 1_u64..9_000, 0_u64..40, 0_u8..20, any::<bool>())
            .prop_map(|(wait, growth, tail, kind, hour)| Step { wait, growth, tail, kind, hour });
    proptest::collection::vec(step, 1..25)
}

/// A chain with everything that can happen to one.
fn tell(log: &mut Story, name: &str, steps: &[Step]) {
    log.session(name, "/p").human(40);
    let mut context = 12_000;
    for (index, step) in steps.iter().enumerate() {
        if step.hour {
            log.hour()
        } else {
            log.five_minutes()
        };
        if index > 0 {
            log.wait(step.wait);
            let half_way = half_way(log);
            match step.kind {
                0 => log.says(30).model("claude-haiku-4-5").human(20),
                1 => log.says(30).model(MODEL).human(20),
                2 => log.compaction(Trigger::Auto, None, 400),
                3 => log.says(10).segment(SegmentCause::Shrink).human(10),
                4 => log.says(10).back_to(half_way).human(10),
                5..=8 => log.says(900).human(60),
                9 => log.mark(Marks::MICROCOMPACTION),
                _ => log.calls("Bash", "", 30).result(700),
            };
            context = match step.kind {
                2 => 9_000,
                3 | 9 => context / 2 + 600,
                _ => context + step.growth,
            };
        }
        // What the bill says of reads is any number: nothing but sizes and floors are learned from it.
        let read = (context - step.tail) / (1 + u64::from(step.kind % 3));
        log.ask(read, context - step.tail - read, step.tail);
    }
}

/// A request in the middle of the chain so far.
fn half_way(log: &mut Story) -> u32 {
    let first = log.timeline().chains.last().unwrap().requests.start;
    (first + log.timeline().requests.len() as u32) / 2
}

fn stories() -> impl Strategy<Value = Timeline> {
    proptest::collection::vec(steps(), 1..4).prop_map(|chains| {
        let mut log = Story::new();
        for (index, steps) in chains.iter().enumerate() {
            log.at(index as i64 * 200);
            tell(&mut log, &format!("s{index}"), steps);
        }
        log.done()
    })
}

fn any_ttl() -> impl Strategy<Value = TtlPolicy> {
    prop_oneof![
        Just(TtlPolicy::Observed),
        Just(TtlPolicy::Always(CacheLifetime::FiveMinutes)),
        Just(TtlPolicy::Always(CacheLifetime::Hour)),
        Just(TtlPolicy::Mixed { still: CacheLifetime::Hour, tail: CacheLifetime::FiveMinutes }),
    ]
}

fn any_layout() -> impl Strategy<Value = CacheLayout> {
    prop_oneof![
        Just(CacheLayout::ClaudeCode),
        Just(CacheLayout::AgentRuntime),
        Just(CacheLayout::StaticAndTail),
        Just(CacheLayout::None)
    ]
}

proptest! {
    #[test]
    fn every_token_is_read_written_or_uncached_and_no_read_is_longer_than_what_is_shared(
        timeline in stories(), ttl in any_ttl(), layout in any_layout(), lookback in 0_u32..30, cross in any::<bool>(),
    ) {
        let run = simulated(&timeline, |params| {
            (params.ttl, params.layout, params.lookback_blocks) = (ttl, layout, lookback);
            params.cross_session = if cross { Switch::On } else { Switch::Off };
        });
        for priced in &run.requests {
            let request = &timeline.requests[priced.request as usize];
            prop_assert_eq!(priced.spent().prompt(), request.context());
            prop_assert!(priced.spent().read <= priced.shared(), "{:?}", priced);
        }
    }

    #[test]
    fn a_longer_life_never_lowers_a_read(timeline in stories(), layout in any_layout()) {
        let reads = |class| simulated(&timeline, |params| (params.ttl, params.layout) = (TtlPolicy::Always(class), layout));
        let (five, hour) = (reads(CacheLifetime::FiveMinutes), reads(CacheLifetime::Hour));
        for (five, hour) in five.requests.iter().zip(&hour.requests) {
            prop_assert!(five.spent().read <= hour.spent().read, "{:?} {:?}", five, hour);
        }
    }

    #[test]
    fn no_caching_costs_the_sum_of_all_contexts(timeline in stories()) {
        let run = simulated(&timeline, |params| params.layout = CacheLayout::None);
        let contexts: u64 = timeline.requests.iter().map(|request| request.context()).sum();
        prop_assert_eq!(run.cost().units, u128::from(contexts * UNITS_PER_TOKEN));
    }

    /// The identity of warm chains, and a second way to say what a lifetime does.
    #[test]
    fn an_unbroken_chain_reads_what_was_cached_before_unless_it_has_expired(
        growths in proptest::collection::vec((1_u64..5_000, 0_u64..20, 0_i64..700), 2..20),
    ) {
        let mut log = Story::new();
        log.session("a", "/p").human(40);
        let mut context = 20_000;
        for &(growth, tail, wait) in &growths {
            log.ask(0, context - tail, tail).calls("Bash", "", 20).wait(wait).result(300);
            // What is cached never ends before what was cached.
            context += growth + 20;
        }
        let timeline = log.done();
        // These bills show nothing but losses, which are not the question here.
        let simulated = |change: fn(&mut Params)| {
            simulated(&timeline, |params| {
                params.unforeseen = Switch::Off;
                change(params);
            })
        };
        let forever = simulated(|params| params.slack_s = u32::MAX);
        let run = simulated(|params| params.slack_s = 0);
        for (index, &(_, _, wait)) in growths.iter().enumerate().take(growths.len() - 1) {
            let before = &timeline.requests[index];
            let cached = before.context() - before.usage().input;
            prop_assert_eq!(forever.requests[index + 1].spent().read, cached);
            let expected = if wait <= 300 { cached } else { 0 };
            prop_assert_eq!(run.requests[index + 1].spent().read, expected, "after {} s", wait);
        }
        let alive = simulated(|params| (params.slack_s, params.keepalive_s) = (0, 300));
        for (index, priced) in alive.requests.iter().enumerate().skip(1) {
            let before = &timeline.requests[index - 1];
            prop_assert_eq!(priced.spent().read, before.context() - before.usage().input, "kept alive");
        }
    }

    /// Chains are independent: whoever runs them in parts, in any parts, gets the same.
    #[test]
    fn parts_put_together_are_the_whole(timeline in stories(), cut in 0_u32..4) {
        let (cache_rules, prices, sizes) = (CacheRules::shipped(), Prices::shipped(), anchored_sizes(&timeline));
        let simulator = Simulator::new(&timeline, &sizes, cache_rules, prices);
        let all = timeline.chains.len() as u32;
        let cut = cut.min(all);
        let mut parts = simulator.run(0..cut, &mut [], None);
        let later = simulator.run(cut..all, &mut [], None);
        parts.requests.extend(later.requests);
        parts.extra.extend(later.extra);
        parts.without_usage += later.without_usage;
        prop_assert_eq!(parts, simulator.baseline());
    }

    /// The short cut for runs without stages and the full way are two ways to the same.
    #[test]
    fn a_stage_that_changes_nothing_changes_nothing(timeline in stories(), layout in any_layout()) {
        let mut cache_rules = CacheRules::shipped().clone();
        cache_rules.params.layout = layout;
        let (prices, sizes) = (Prices::shipped(), anchored_sizes(&timeline));
        let simulator = Simulator::new(&timeline, &sizes, &cache_rules, prices);
        let mut stages: Vec<Box<dyn Stage>> = vec![Box::new(Idle)];
        prop_assert_eq!(simulator.run(0..timeline.chains.len() as u32, &mut stages, None), simulator.baseline());
    }

    /// Another chain can share the static prefix, and nothing behind it.
    #[test]
    fn two_chains_never_share_more_than_the_static_prefix(timeline in stories()) {
        let (cache_rules, prices, sizes) = (CacheRules::shipped(), Prices::shipped(), anchored_sizes(&timeline));
        let simulator = Simulator::new(&timeline, &sizes, cache_rules, prices);
        let run = simulator.baseline();
        for chain in &timeline.chains {
            let first = run.requests.iter().find(|priced| chain.requests.contains(&priced.request)).unwrap();
            prop_assert!(first.spent().read <= simulator.priors[first.request as usize].still);
        }
    }
}

/// Turns of which some find nothing but the static prefix, though nothing in the log says why.
fn with_losses(lost: &[bool]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").hour().human(40).ask(10_000, 30_000, 0);
    for (turn, &lost) in lost.iter().enumerate() {
        let cached = 40_000 + 1_000 * turn as u64;
        let read = if lost { 10_000 } else { cached };
        log.wait(60).human(40).ask(read, cached + 1_000 - read, 0);
    }
    log.done()
}

proptest! {
    #[test]
    fn losses_that_nothing_foretells_are_expected_at_the_rate_at_which_they_were_before(
        lost in proptest::collection::vec(any::<bool>(), 1..40),
    ) {
        let timeline = with_losses(&lost);
        let weight = CacheRules::shipped().cache.unforeseen_weight;
        let (run, never) = (simulated(&timeline, |_| {}), simulated(&timeline, |params| params.unforeseen = Switch::Off));
        let mut before = 0;
        for (turn, &lost) in lost.iter().enumerate() {
            let (with, without) = (&run.requests[turn + 1], &never.requests[turn + 1]);
            let cached = 40_000 + 1_000 * turn as u64;
            prop_assert_eq!(without.spent().read, cached);
            // The rate at such places with one loss in so many more; nothing else stood before any of them.
            let at_place = (before + 1) as f64 / (turn as u64 + weight.turn) as f64;
            let believed = weight.occasion as f64;
            let rate = (before as f64 + believed * at_place) / (turn as f64 + believed);
            let expected = if before == 0 { 0.0 } else { (cached - 10_000) as f64 * rate };
            prop_assert!(((cached - with.spent().read) as f64 - expected).abs() <= 1.0, "turn {}", turn);
            prop_assert_eq!(with.spent().prompt(), without.spent().prompt());
            before += u64::from(lost);
        }
    }

    /// No request is foretold by its own bill.
    #[test]
    fn what_a_request_finds_changes_nothing_of_what_was_expected_of_it(
        lost in proptest::collection::vec(any::<bool>(), 1..20), last in any::<bool>(),
    ) {
        let blind = |last: bool| {
            let timeline = with_losses(&[&lost[..], &[last]].concat());
            let run = simulated(&timeline, |params| params.hidden_forks = HiddenForks::Estimated);
            run.requests.last().map(|priced| priced.spent())
        };
        prop_assert_eq!(blind(last), blind(!last));
    }
}

#[test]
fn a_session_finds_its_static_prefix_if_the_last_one_of_its_model_did() {
    let told = |first_read: u64| {
        let mut log = Story::new();
        for (number, read) in [first_read, 16_000, 0].into_iter().enumerate() {
            log.at(100_000 * number as i64);
            log.session(&format!("s{number}"), &format!("/p{number}")).human(40).ask(read, 30_000 - read, 0);
        }
        let reads = reads_and_writes(&simulated(&log.done(), |_| {}));
        reads.into_iter().map(|(read, _)| read).collect::<Vec<_>>()
    };
    // Days lie between them, and each is in a directory of its own. The first has nobody to learn from.
    assert_eq!(told(12_000), [0, 12_000, 16_000]);
    assert_eq!(told(0), [0, 0, 16_000]);
}
