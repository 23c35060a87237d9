//! `prompt-cache`: causes of breaks, verdicts, and the two models that stand beside the simulated cache.

use std::collections::BTreeMap;

use super::shipped_sheets::anchored_sizes;
use super::timeline_builder::{MODEL, Story};
use crate::base::data::Data;
use crate::logs::timeline::requests::{Marks, SegmentCause, Timeline, Trigger};
use crate::logs::trace::{NO_TIME, Usage};
use crate::whatif::calibration::Calibration;
use crate::whatif::prompt_cache;
use crate::whatif::prompt_cache::other_models::{self, HotCacheRules};
use crate::whatif::prompt_cache::outcome::{Cause, PromptCache};
use crate::whatif::prompt_cache::params::{CacheLayout, CacheLifetime, CacheRules, Params, Switch};
use crate::whatif::prompt_cache::{PromptCacheThresholds, causes};
use crate::whatif::sim::bill;
use crate::whatif::sim::cells::CellRules;
use crate::whatif::sim::figures::CostVerdict;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::outcome::verdict;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::unlogged::unlogged;

fn sheet() -> PromptCacheThresholds {
    PromptCacheThresholds::parse(&Data::default().text("policies/prompt_cache.toml").unwrap(), "prompt_cache.toml")
        .unwrap()
}

fn cells() -> CellRules {
    CellRules::parse(&Data::default().text("policies/cells.toml").unwrap(), "cells.toml").unwrap()
}

/// Looks at a timeline with the shipped rules.
fn on_simulator<T>(timeline: &Timeline, change: impl FnOnce(&mut Params), look: impl FnOnce(&Simulator<'_>) -> T) -> T {
    let mut cache_rules: CacheRules = sheet().cache_rules;
    change(&mut cache_rules.params);
    look(&Simulator::new(timeline, &anchored_sizes(timeline), &cache_rules, Prices::shipped()))
}

fn found(timeline: &Timeline, change: impl FnOnce(&mut Params)) -> PromptCache {
    on_simulator(timeline, change, |simulator| prompt_cache::run(simulator, &sheet(), Prices::shipped(), &cells()))
}

/// Two sessions that pause for so many seconds, and whether the prefix is still there: one of the half on which the slack is
/// fitted, one that is held out.
fn pausing(fitted: (i64, bool), held_out: (i64, bool)) -> Timeline {
    let name = |odd: u8| {
        let mut names = (0..).map(|n| format!("session {n}"));
        names.find(|name| crate::base::id::Id::pseudonym(name.as_bytes()).0[0] & 1 == odd).unwrap()
    };
    let mut log = Story::new();
    for (odd, (seconds, is_alive)) in [(0, fitted), (1, held_out)] {
        log.session(&name(odd), &format!("/{odd}")).human(10).ask(0, 50_000, 0).calls("Bash", "", 10).wait(seconds);
        let (read, written) = if is_alive { (50_000, 1_000) } else { (0, 51_000) };
        log.result(10).ask(read, written, 0);
    }
    log.done()
}

#[test]
fn the_slack_is_fitted_on_one_half_and_judged_on_the_other() {
    let on = |fitted, held_out| {
        let found = found(&pausing(fitted, held_out), |_| {});
        (found.slack_s_fitted, found.against_bill_held_out.read_error)
    };
    assert_eq!(on((340, true), (340, true)), (60, 0));
    assert_eq!(on((340, true), (340, false)), (60, 50_000), "what was fitted elsewhere may be wrong here");
    assert_eq!(on((310, false), (312, true)), (0, 50_000));
    assert_eq!(on((20, true), (312, true)), (15, 0), "where nothing tells them apart the first one stays");
}

/// policies.md 9.
#[test]
fn a_read_that_falls_below_half_is_a_break() {
    assert_eq!(causes::drop_percent(1_000, 500), None);
    assert_eq!(causes::drop_percent(1_000, 499), Some(50));
    assert_eq!(causes::drop_percent(1_000, 0), Some(100));
    assert_eq!(causes::drop_percent(0, 0), None);
    assert_eq!(causes::drop_percent(0, 7), None);
}

/// A warm chain, then something that costs the cache.
fn broken(what: impl FnOnce(&mut Story)) -> BTreeMap<Cause, u64> {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 50_000, 0).calls("Bash", "", 10).wait(1);
    log.result(10).ask(50_000, 1_000, 0).says(10).wait(1);
    what(&mut log);
    log.ask(9_000, 43_000, 0);
    let timeline = log.done();
    let sums = on_simulator(&timeline, |_| {}, causes::attribute);
    sums.into_iter().map(|(cause, sum)| (cause, sum.events)).collect()
}

type Happening = Box<dyn FnOnce(&mut Story)>;

#[test]
fn every_break_has_the_first_cause_that_fits() {
    let cases: Vec<(Cause, Happening)> = vec![
        (
            Cause::Compaction,
            Box::new(|log| {
                log.wait(9_000).compaction(Trigger::Auto, None, 10);
            }),
        ),
        (
            Cause::Microcompact,
            Box::new(|log| {
                log.clearing(1, 1, &[]).human(9);
            }),
        ),
        (
            Cause::ModelSwap,
            Box::new(|log| {
                log.wait(9_000).model("claude-haiku-4-5").human(9);
            }),
        ),
        (
            Cause::TtlExpiry,
            Box::new(|log| {
                log.wait(320).version("2.1.31").human(9);
            }),
        ),
        (
            Cause::VersionChange,
            Box::new(|log| {
                log.version("2.1.31").mark(Marks::RESUME).human(9);
            }),
        ),
        (
            Cause::Resume,
            Box::new(|log| {
                log.mark(Marks::RESUME).mark(Marks::META).human(9);
            }),
        ),
        (
            Cause::MetaInjection,
            Box::new(|log| {
                log.mark(Marks::META).mark(Marks::PLAN_MODE).human(9);
            }),
        ),
        (
            Cause::MetaInjection,
            Box::new(|log| {
                log.mark(Marks::SKILL).human(9);
            }),
        ),
        (
            Cause::PlanMode,
            Box::new(|log| {
                log.mark(Marks::PLAN_MODE).segment(SegmentCause::Rewind).human(9);
            }),
        ),
        (
            Cause::RewindOrShrink,
            Box::new(|log| {
                log.segment(SegmentCause::Shrink).mark(Marks::WORKSPACE_EDIT);
            }),
        ),
        (
            Cause::WorkspaceEdit,
            Box::new(|log| {
                log.mark(Marks::WORKSPACE_EDIT).human(9);
            }),
        ),
        (
            Cause::MutationAtHuman,
            Box::new(|log| {
                log.human(9);
            }),
        ),
        (
            Cause::MutationAtTool,
            Box::new(|log| {
                log.injected(9);
            }),
        ),
    ];
    for (cause, what) in cases {
        assert_eq!(broken(what), BTreeMap::from([(cause, 1)]));
    }
}

#[test]
fn a_break_is_priced_by_what_was_written_again() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 50_000, 0).calls("Bash", "", 10).wait(1);
    log.result(10).ask(50_000, 1_000, 0).says(10).wait(1).human(10).ask(9_000, 43_000, 0);
    log.says(10).wait(1).compaction(Trigger::Auto, None, 10).ask(9_000, 0, 8_000);
    let sums = on_simulator(&log.done(), |_| {}, causes::attribute);
    let human = sums[&Cause::MutationAtHuman];
    assert_eq!((human.tokens_lost, human.tokens_again), (42_000, 42_000));
    // 42,000 tokens at $6.25 instead of $0.50 per million.
    assert_eq!(human.cost_lost.nano_usd, 42_000 * (6_250 - 500));
    assert!(!sums.contains_key(&Cause::Compaction), "9,000 after 9,000 is no drop");
}

/// A session that is taken up in a log of its own goes on from the context of the first.
#[test]
fn a_session_taken_up_in_another_log_pays_again_for_what_the_first_had_cached() {
    let sums = |seconds: i64| {
        let mut log = Story::new();
        log.session("a", "/p").human(10).ask(0, 50_000, 0).says(10).wait(1);
        log.human(10).ask(50_000, 1_000, 0).says(10).wait(seconds);
        log.session("b", "/p").back_to(1).human(10).ask(9_000, 43_000, 0).says(10).wait(1);
        log.human(10).ask(52_000, 1_000, 0);
        let sums = on_simulator(&log.done(), |_| {}, causes::attribute);
        sums.into_iter().map(|(cause, sum)| (cause, sum.events, sum.tokens_again)).collect::<Vec<_>>()
    };
    assert_eq!(sums(90_000), [(Cause::TtlExpiry, 1, 42_000)]);
    assert_eq!(sums(1), [(Cause::Fork, 1, 42_000)]);
}

/// Whoever never reads has nothing to fall from: what the request before wrote tells it.
#[test]
fn a_cache_that_is_never_read_is_missed_at_every_request_but_the_first() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 20_000, 0);
    for turn in 1..4 {
        log.calls("Bash", "", 10).wait(20).result(10).ask(0, 20_000 + 100 * turn, 0);
    }
    // A thread of its own, and what is left of a context, lose nothing.
    log.says(10).wait(1).compaction(Trigger::Auto, None, 10).ask(0, 9_000, 0);
    log.session("b", "/p").human(10).ask(0, 20_000, 0);
    let sums = on_simulator(&log.done(), |_| {}, causes::attribute);
    let found: Vec<_> = sums.iter().map(|(cause, sum)| (*cause, sum.events, sum.tokens_again)).collect();
    assert_eq!(found, [(Cause::MutationAtTool, 3, 20_000 + 20_100 + 20_200)]);
}

#[test]
fn what_expired_behind_a_request_that_read_nothing_is_a_break_whatever_else_happened() {
    let found = |model: &str, seconds: i64| {
        let mut log = Story::new();
        log.session("a", "/p").human(10).ask(0, 20_000, 0).says(10).wait(seconds);
        log.model(model).human(10).ask(0, 20_100, 0);
        let losses = on_simulator(&log.done(), |_| {}, causes::losses);
        losses.iter().map(|loss| (loss.cause, loss.expired, loss.sum.tokens_again)).collect::<Vec<_>>()
    };
    assert_eq!(found("claude-sonnet-5", 600), [(Cause::ModelSwap, true, 20_000)]);
    assert_eq!(found("claude-sonnet-5", 20), [(Cause::ModelSwap, false, 20_000)]);
    // What a simulation would still find in its slack was lost here.
    for seconds in [305, 600] {
        assert_eq!(found(MODEL, seconds), [(Cause::TtlExpiry, true, 20_000)], "{seconds}");
    }
    let same = found("claude-opus-4-6", 600);
    assert_eq!(same.iter().map(|(_, expired, again)| (*expired, *again)).collect::<Vec<_>>(), [(true, 20_000)]);
}

#[test]
fn what_a_rewind_or_a_compaction_left_out_is_not_paid_for_again() {
    let sums = |goes_on: fn(&mut Story)| {
        let mut log = Story::new();
        log.session("a", "/p").human(10).ask(0, 20_000, 0).says(10).wait(1);
        log.human(300_000).ask(20_000, 80_000, 0).says(10).wait(1);
        log.human(300_000).ask(100_000, 100_000, 0).says(10).wait(1);
        goes_on(&mut log);
        on_simulator(&log.done(), |_| {}, causes::attribute)
    };
    let rewound = sums(|log| {
        log.back_to(1).human(20_000).ask(30_000, 75_000, 0);
    });
    let sum = rewound[&Cause::RewindOrShrink];
    // Three of what was written: the answer before, which no context had held.
    assert_eq!((sum.tokens_lost, sum.tokens_again), (170_000, 70_003));
    let compacted = sums(|log| {
        log.compaction(Trigger::Auto, None, 40_000).ask(20_000, 10_000, 0);
    });
    let sum = compacted[&Cause::Compaction];
    assert_eq!((sum.tokens_lost, sum.tokens_again), (180_000, 0), "the summary is new");
}

#[test]
fn differences_within_the_error_have_no_winner() {
    let wide = |change: f64| Some((change - 0.01, change + 0.01));
    assert_eq!(verdict(-0.029, 0.03, wide(-0.029)), CostVerdict::NoClearWinner);
    assert_eq!(verdict(0.03, 0.03, wide(0.03)), CostVerdict::NoClearWinner);
    assert_eq!(verdict(-0.031, 0.03, wide(-0.031)), CostVerdict::Cheaper);
    assert_eq!(verdict(0.031, 0.03, wide(0.031)), CostVerdict::MoreExpensive);
    assert_eq!(verdict(0.05, 0.03, Some((-0.01, 0.11))), CostVerdict::NoClearWinner);
    assert_eq!(verdict(0.104, 0.03, Some((0.0, 0.36))), CostVerdict::NoClearWinner);
    assert_eq!(verdict(-0.639, 0.03, None), CostVerdict::NoClearWinner, "too few sessions to tell");
}

/// field-notes.md 3.3: the worked example, to the cent.
#[test]
fn the_threshold_model_gives_the_published_dollars() {
    let mut log = Story::new();
    log.session("a", "/p").model("claude-opus-4-8").takes(0).human(10).at(0).ask(0, 1_000_000, 0).says(10);
    log.at(120).human(10).ask(900_000, 400_000, 0).says(10);
    log.at(1_200).human(10).ask(500_000, 600_000, 0).says(10);
    log.at(7_200).human(10).ask(0, 300_000, 0);
    let model = on_simulator(&log.done(), |_| {}, other_models::threshold);
    assert_eq!(model.actual.nano_usd, 15_075_000_000);
    assert_eq!(model.five_minutes.nano_usd, 17_950_000_000);
    assert_eq!(model.hour.nano_usd, 22_000_000_000);
    assert_eq!((model.written, model.recoverable), (2_300_000, 600_000));
}

/// policies.md 9.
#[test]
fn the_router_calls_a_cache_hot_for_four_and_a_half_minutes() {
    let rules = sheet().router;
    assert_eq!((rules.hits(), rules.multiplier()), (2, 48_333));
    assert!(rules.is_hot(269_900) && !rules.is_hot(270_000));
    let short = HotCacheRules { ttl_minutes: 1, ..rules };
    assert_eq!((short.hits(), short.multiplier()), (0, 125_000));
    let none = HotCacheRules { ttl_minutes: 0, ..rules };
    assert!(!none.is_hot(-1) && none.hits() == 0);
}

#[test]
fn steady_traffic_is_called_cold_because_hits_do_not_set_the_routers_clock() {
    let mut log = Story::new();
    log.session("a", "/p").takes(0).human(10).ask(0, 20_000, 0);
    for turn in 0..4 {
        log.says(10).wait(120).human(10).ask(20_000 + 100 * turn, 100, 0);
    }
    let found = found(&log.done(), |_| {});
    // Stamped at 0; hot at 120 and 240; cold at 360, which stamps anew; hot at 480.
    assert_eq!((found.hot_cache.hot.n, found.hot_cache.hot.k), (3, 3));
    assert_eq!((found.hot_cache.cold_but_warm.n, found.hot_cache.cold_but_warm.k), (2, 1));
}

#[test]
fn writes_to_markdown_are_counted_by_root_and_debounced() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 50_000, 0).calls("Edit", "/p/CLAUDE.md", 9).calls("Write", "/p/x.md", 9);
    log.wait(1).result(9).result(9).ask(9_000, 42_000, 0).calls("Edit", "/p/main.rs", 9).wait(1);
    log.result(9).ask(51_000, 10, 0).calls("Read", "/p/x.md", 9).wait(1).result(9).ask(51_010, 10, 0);
    log.calls("Write", "/p/y.md", 9).wait(1).result(9).ask(51_020, 10, 0);
    let timeline = log.done();
    assert!(found(&timeline, |_| {}).workspace.is_none());
    let found = found(&timeline, |params| params.report.workspace = Switch::On).workspace.unwrap();
    assert_eq!((found.sessions, found.roots, found.writes, found.instruction_writes), (1, 1, 3, 1));
    assert_eq!(found.invalidations, 2, "both edits of one answer are one");
    // The first one had read nothing, and what it wrote was not found.
    assert_eq!((found.followed_by_break.n, found.followed_by_break.k), (2, 1));
    assert!(found.cost_at_risk.nano_usd > 0);
}

#[test]
fn the_report_holds_the_run_against_the_bill() {
    let mut log = Story::new();
    log.session("a", "/p").hour().human(10).ask(0, 50_000, 0).calls("Bash", "", 10).wait(1);
    log.result(10).ask(50_000, 1_000, 0).calls("Bash", "", 10).wait(1);
    // Two misses: a break that nothing explains, and a write that could not be read yet.
    log.result(10).ask(0, 51_200, 0).calls("Bash", "", 10).wait(1);
    log.result(10).ask(51_200, 300, 0).calls("Bash", "", 10).wait(1).result(10).ask(51_200, 400, 0);
    log.says(10).wait(1).human(10).ask(51_600, 100, 0);
    let timeline = log.done();
    let found = found(&timeline, |_| {});
    let against = found.against_bill;
    assert_eq!((against.requests, against.read_billed), (6, 50_000 + 51_200 + 51_200 + 51_600));
    assert_eq!((against.warm_tool_turns.n, against.warm_tool_turns.k, against.late_writes), (4, 2, 1));
    assert_eq!((against.human_turns_close.n, against.human_turns_close.k), (1, 1));
    // The answer was believed to be cached: 10 of its 20 characters' worth, stretched 1.6 times, is 4 tokens.
    assert_eq!(against.read_error, 51_000 + 300 + 4);
    assert_eq!(found.billed.spent.prompt(), found.baseline.spent.prompt());
    assert_eq!(
        found.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(),
        [
            "ttl=5m",
            "ttl=1h",
            "ttl=mixed:static=1h,tail=5m",
            "layout=agent-runtime",
            "layout=static+tail",
            "layout=none",
            "keepalive_s=270",
            "keepalive_s=3300"
        ]
    );
    let none = found.arms.iter().find(|arm| arm.name == "layout=none").unwrap();
    // One session tells nothing of others.
    assert_eq!((none.verdict, none.sessions_worse), (CostVerdict::NoClearWinner, 1));
    let five = found.arms.iter().find(|arm| arm.name == "ttl=5m").unwrap();
    // No pause: an hour is paid for nothing. But the simulation missed a whole re-write, more than any difference.
    assert_eq!((five.verdict, five.sessions_better), (CostVerdict::NoClearWinner, 1));
    assert!(five.total.cost.units < found.baseline.cost.units);
    assert_eq!(found.best_per_session.cost, five.total.cost);
    assert_eq!(found.best_per_session.sessions, BTreeMap::from([("5m".to_owned(), 1)]));
}

#[test]
fn knobs_change_the_simulated_run_and_not_the_baseline() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 50_000, 0).calls("Bash", "", 10).wait(1).result(10).ask(50_000, 1_000, 0);
    let timeline = log.done();
    let found = found(&timeline, |params| params.layout = CacheLayout::None);
    assert_eq!(found.simulated.spent.uncached, 101_000);
    assert_eq!((found.baseline.spent.read, found.verdict), (50_000, CostVerdict::NoClearWinner));
    let named = prompt_cache::aliases(&found, &Calibration::default());
    assert_eq!(named["llm_prompt_tokens_estimated"], 101_000);
    assert_eq!(named["llm_cache_hit_ratio"], 0.0);
    let json = serde_json::to_string(&found).unwrap();
    assert!(json.contains("\"write_5m\"") && json.contains("\"no clear winner\""), "{json}");
}

#[test]
fn a_model_without_a_minimum_is_named_and_one_without_a_price_has_no_dollars() {
    let mut log = Story::new();
    log.session("a", "/p").model("gpt-9").human(10).ask(0, 9_000, 0);
    let found = found(&log.done(), |_| {});
    assert_eq!(found.unlisted_minimum, ["gpt-9"]);
    assert_eq!(found.billed.cost.usd(), None);
    assert_eq!(found.billed.cost.units, 9_000 * 250);
}

#[test]
fn a_run_reads_what_can_be_read_and_names_what_the_bill_says() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 50_000, 5).calls("Bash", "", 10).wait(1);
    log.result(10).ask(50_000, 1_000, 5).says(10).wait(400).human(10).ask(0, 51_100, 5);
    let timeline = log.done();
    let (run, causes) = on_simulator(
        &timeline,
        |_| {},
        |simulator| {
            let run = simulator.baseline();
            let causes: Vec<Option<Cause>> = bill::causes(simulator, &run).map(|(_, cause)| cause).collect();
            (run, causes)
        },
    );
    let [_, warm, cold] = run.requests.as_slice() else { panic!("{:?}", run.requests) };
    assert_eq!((warm.spent().read, warm.spent().write(), cold.spent().read), (50_000, 1_000, 0));
    assert_eq!(causes, [None, None, Some(Cause::TtlExpiry)]);
}

#[test]
fn writes_whose_lifetime_is_not_said_have_the_old_one() {
    let mut log = Story::new();
    log.session("a", "/p").human(10).ask(0, 9_000, 5);
    let request = &mut log.timeline().requests[0];
    request.tokens = Usage { cache_creation_5m: 0, ..request.usage() }.into();
    let timeline = log.done();
    let request = &timeline.requests[0];
    assert_eq!(bill::spent(request, CacheLifetime::FiveMinutes).write_5m, 9_000);
    assert_eq!(bill::spent(request, CacheLifetime::Hour).write_1h, 9_000);
}

/// A write for five minutes pays for eleven reads that keep it: (1.25 − 0.1) / 0.1 = 11.5.
#[test]
fn keeping_alive_breaks_even_where_reads_cost_what_a_write_does() {
    let even = |model, class| prompt_cache::keep_alive_break_even(Prices::shipped(), model, class, NO_TIME);
    assert_eq!(even("claude-opus-4-8", CacheLifetime::FiveMinutes), Some((5_750, 500)));
    assert_eq!(even("claude-opus-5-5", CacheLifetime::Hour), Some((7_800, 200)));
    assert_eq!(even("gpt-9", CacheLifetime::Hour), None);
}

#[test]
fn what_no_log_has_is_estimated_and_kept_apart() {
    let mut log = Story::new();
    // The second request reads 600 more than was written: a fork had cached the answer. Then a compaction.
    log.session("a", "/p").human(10).ask(0, 50_000, 5).says(2_000).wait(1);
    log.human(10).ask(50_600, 400, 5).says(90);
    log.compaction(Trigger::Auto, None, 400).human(10).ask(0, 20_000, 5).says(9);
    let timeline = log.done();
    let found = on_simulator(
        &timeline,
        |_| {},
        |simulator| {
            let summary = simulator.timeline.boundaries[0].summary;
            (unlogged(simulator), u64::from(simulator.sizes.tokens[summary as usize]), bill::total(simulator))
        },
    );
    let (hidden, summary, billed) = found;
    assert_eq!((hidden.forks.calls, hidden.forks.spent.read, hidden.forks.spent.write_5m), (1, 50_000, 600));
    // 50,000 at $0.50 and 600 at $6.25 per million.
    assert_eq!(hidden.forks.cost.nano_usd, 50_000 * 500 + 600 * 6_250);
    assert_eq!((hidden.summaries.calls, hidden.summaries.spent.read), (1, 51_005));
    assert_eq!(hidden.summaries.spent.output, summary);
    assert!(hidden.answers.calls == 0 && hidden.answers.spent.output > 300, "{:?}", hidden.answers);
    assert_eq!(billed.spent.read, 50_600, "nothing of it is on the bill");
}

/// What an answer costs goes by the size of what it answers: above 200,000 tokens Sonnet 4 takes $22.50 per million.
#[test]
fn output_that_is_not_billed_has_the_price_of_its_context() {
    let mut log = Story::new();
    log.session("a", "/p").model("claude-sonnet-4-20250514").human(10).ask(0, 250_000, 5).says(2_000);
    let answers = on_simulator(&log.done(), |_| {}, |simulator| unlogged(simulator).answers);
    assert!(answers.spent.output > 300, "{answers:?}");
    assert_eq!(answers.cost.nano_usd, u128::from(answers.spent.output) * 22_500);
}

/// Opus 4.8 charges 500 nano-dollars for a read, 6,250 and 10,000 for the writes: 11.5 and 19 keep-alive reads.
#[test]
fn idle_reads_are_told_for_every_model_and_lifetime_that_was_written_for() {
    let mut log = Story::new();
    log.session("a", "/p").five_minutes().model("claude-opus-4-8").human(10).ask(0, 50_000, 5).says(10);
    log.hour().human(10).ask(50_000, 100, 5).says(10).model("gpt-9").human(10).ask(0, 9_000, 5).says(10);
    // A model that only reads has written nothing that could be kept.
    log.model("claude-opus-5-5").human(10).ask(9_000, 0, 5);
    let rows = found(&log.done(), |_| {}).idle_reads;
    let [short, long] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((&*short.model, short.lifetime, short.reads), ("claude-opus-4-8", "5m", 11));
    assert_eq!((short.write_nano_usd, short.read_nano_usd), (6_250, 500));
    assert_eq!(short.idle_s, BTreeMap::from([(270, Some(12 * 270)), (3_300, None)]), "five minutes end before 55");
    assert_eq!((&*long.model, long.lifetime, long.reads), ("claude-opus-4-8", "1h", 19));
    assert_eq!(long.idle_s, BTreeMap::from([(270, Some(20 * 270)), (3_300, Some(20 * 3_300))]));
}
