//! How far the simulated cache is from real bills: `DEVBOY_LOGS=<folder> cargo test bars_of_the_cache -- --ignored --nocapture`.

use std::time::Instant;

use super::shipped_sheets::anchored_sizes;
use super::timeline_corpus::input;
use crate::base::data::Data;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::whatif::calibration;
use crate::whatif::prompt_cache;
use crate::whatif::prompt_cache::PromptCacheThresholds;
use crate::whatif::sim::cells::CellRules;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::sizes::SizeRules;

#[test]
#[ignore = "needs a folder of logs in DEVBOY_LOGS"]
fn bars_of_the_cache_on_real_logs() {
    let logs = std::env::var("DEVBOY_LOGS").expect("DEVBOY_LOGS names a folder of logs");
    let timeline = input(&logs, None)
        .timeline(TimelineDetail { tokens: true, words: TextWords::All, ..TimelineDetail::default() })
        .unwrap();
    let data = Data::default();
    let text = |name: &str| data.text(name).unwrap();
    let cells = CellRules::parse(&text("policies/cells.toml"), "cells.toml").unwrap();
    let thresholds = PromptCacheThresholds::parse(&text("policies/prompt_cache.toml"), "prompt_cache.toml").unwrap();
    let begin = Instant::now();
    let sizes = anchored_sizes(&timeline);
    let simulator = Simulator::new(&timeline, &sizes, &thresholds.cache_rules, Prices::shipped());
    println!("simulator in {:?}", begin.elapsed());
    let begin = Instant::now();
    let found = prompt_cache::run(&simulator, &thresholds, Prices::shipped(), &cells);
    println!("all runs in {:?}", begin.elapsed());
    let parts =
        [("all", found.against_bill), ("main", found.against_bill_main), ("held out", found.against_bill_held_out)];
    for (name, against) in parts {
        println!(
            "{name}: {} requests, WAPE {:.2} %, bias {:+.2} %, cost {:+.2} %, tool turns {}/{} ({} late), human turns {}/{}",
            against.requests,
            100.0 * against.wape().size(),
            100.0 * against.bias().share().unwrap(),
            100.0 * against.cost_error().share().unwrap(),
            against.warm_tool_turns.k,
            against.warm_tool_turns.n,
            against.late_writes,
            against.human_turns_close.k,
            against.human_turns_close.n,
        );
    }
    for (cause, sum) in &found.causes {
        println!("{cause:?}: {} events, {} tokens lost, {} again", sum.events, sum.tokens_lost, sum.tokens_again);
    }
    for drift in calibration::calibrate(&timeline, SizeRules::shipped()).drift {
        let ratio = drift.estimated as f64 / drift.actual.max(1) as f64;
        println!("{}: {ratio:.3}, p50 {} %, p90 {} %", drift.estimator, drift.percent_p50, drift.percent_p90);
    }
    let bars = found.against_bill_held_out;
    assert!(bars.wape().size() <= 0.015 && bars.bias().size() <= 0.015 && bars.cost_error().size() <= 0.02);
    assert!(bars.human_turns_close.value() >= 0.8);
}
