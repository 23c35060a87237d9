//! What a stage keeps of the context before is what it would make anew, and a request of a long thread takes no more steps than
//! one of a short thread.

use std::sync::Arc;

use proptest::prelude::*;

use super::timeline_builder::Story;
use crate::base::data::fitting;
use crate::base::id::work;
use crate::logs::timeline::requests::{SegmentCause, Timeline, Trigger};
use crate::whatif::clearing::Micro;
use crate::whatif::compaction::params::{MicroParams, Params, Real, Style};
use crate::whatif::compaction::{Compaction, CompactionThresholds, CompactionTrigger};
use crate::whatif::history_trim::{HistoryTrim, HistoryTrimThresholds, TrimRule};
use crate::whatif::pipeline::{self, ActingLayers, Formats, HintScope, Pipeline, Points, SentResult};
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::sim::breakage::rows::Break;
use crate::whatif::sim::breakage::{BreakWatch, BreakageThresholds, Detectors};
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::simulator::{SimulatedRun, Simulator};
use crate::whatif::sim::sizes::{BlockSizes, Estimator, SizeRules};
use crate::whatif::sim::view::{ContextView, Given, RequestMoment, Stage, StageJournal, StageOutput};

/// Makes every context anew.
struct Anew(Box<dyn Stage>);

impl Stage for Anew {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.0.begin(timeline, chain);
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, largest: u64) -> bool {
        self.0.may_change(timeline, chain, largest)
    }

    fn apply(
        &mut self,
        moment: &RequestMoment<'_>,
        given: Given<'_>,
        view: &mut ContextView,
        output: &mut StageOutput,
    ) -> usize {
        *view = ContextView::default();
        self.0.apply(moment, Given { kept: 0, ..given }, view, output);
        0
    }
}

struct Bench {
    timeline: Timeline,
    rules: SizeRules,
    sizes: BlockSizes,
    oracle: CacheRules,
    prices: Prices,
}

impl Bench {
    fn new(timeline: Timeline) -> Self {
        let rules = SizeRules::parse(include_str!("../../rules/policies/sizes.toml"), "sizes").unwrap();
        Self {
            sizes: BlockSizes::new(&timeline, Estimator::Anchored, &rules),
            rules,
            timeline,
            oracle: fitting::<CacheRules>(include_str!("../../rules/policies/prompt_cache.toml"), "cache").unwrap(),
            prices: Prices::parse(include_str!("../../rules/prices.toml"), "prices").unwrap(),
        }
    }

    fn compaction(&self, real: Real) -> Box<dyn Stage> {
        let sheet = CompactionThresholds::shipped();
        let params = Params {
            real,
            tail_keep_tokens: 900,
            summary_tokens: 60,
            reattach_tokens: 40,
            min_gain_tokens: 1,
            min_turns_between: 0,
            window: 12_000,
            ..sheet.params.clone()
        };
        let tokens: Arc<[u32]> = self.sizes.tokens.as_slice().into();
        let stage = Compaction::new(params, sheet.clone(), tokens, StageJournal::default());
        Box::new(stage.at(CompactionTrigger::Tokens(11_000)))
    }

    fn micro(&self, only_uncached: bool) -> Box<dyn Stage> {
        let params = MicroParams {
            min_bytes: 200,
            target_tokens: 1_500,
            min_saving_tokens: 300,
            protect_last: 2,
            only_uncached,
            style: Style::Clear,
        };
        Box::new(Micro::new(params, CompactionThresholds::shipped().clone(), StageJournal::default()))
    }

    fn trim(&self, sticky: bool) -> Box<dyn Stage> {
        let sheet =
            HistoryTrimThresholds::parse(include_str!("../../rules/policies/history_trim.toml"), "trim").unwrap();
        let rule = TrimRule { params: crate::whatif::history_trim::Params { sticky, ..sheet.params.clone() }, sheet };
        Box::new(HistoryTrim::new(rule, &self.rules).0)
    }

    fn pipeline(&self) -> Box<dyn Stage> {
        let answered =
            (0..).zip(&self.timeline.calls).filter(|(_, call)| self.timeline.blocks.len() > call.answered as usize);
        let sent = |(call, _): (u32, _)| {
            let points = [Points::Nowhere, Points::At(call / 2), Points::Lines][call as usize % 3];
            SentResult { call, baseline: 100, tokens: 40, points }
        };
        let sent: Vec<SentResult> = answered.map(sent).collect();
        let params =
            pipeline::Params { layers: ActingLayers::All, formats: Formats::Extended, partition: HintScope::Virtual };
        Box::new(Pipeline::new(&self.timeline, params, sent.into(), &self.rules).0)
    }

    /// Some stages, alone and together.
    fn stacks(&self) -> Vec<Vec<Box<dyn Stage>>> {
        vec![
            vec![self.compaction(Real::Keep)],
            vec![self.compaction(Real::Ignore)],
            vec![self.micro(false)],
            vec![self.micro(true)],
            vec![self.trim(false)],
            vec![self.trim(true)],
            vec![self.pipeline()],
            vec![self.pipeline(), self.micro(false), self.trim(false), self.compaction(Real::Keep)],
        ]
    }

    fn run(&self, mut stages: Vec<Box<dyn Stage>>) -> (SimulatedRun, Vec<Break>) {
        let simulator = Simulator::new(&self.timeline, &self.sizes, &self.oracle, &self.prices);
        let detectors = Detectors::new(&self.timeline, &self.sizes.tokens, BreakageThresholds::shipped());
        let mut watch = BreakWatch::new(&detectors).with_pairs();
        let run = simulator.run(simulator.chains(), &mut stages, Some(&mut watch));
        (run, watch.breaks)
    }
}

/// A conversation: prompts, results, edits, compactions, and going back; then a fork of it.
fn told(steps: &[(u8, u32)]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 9_000, 3);
    let mut told = (9_000, 1);
    steps.iter().for_each(|&one| step(&mut log, one, &mut told));
    log.agent("fork").back_to(told.1 / 2).human(60).ask(told.0 / 2, 300, 3);
    steps.iter().filter(|(what, _)| *what > 3).for_each(|&one| step(&mut log, one, &mut told));
    log.done()
}

/// One request of it; counts what is cached, and the requests.
fn step(log: &mut Story, (what, chars): (u8, u32), (cached, requests): &mut (u64, u32)) {
    match what {
        0 => log.human(chars),
        1 => log.compaction(Trigger::Auto, None, 300),
        2 => log.back_to(*requests / 2),
        3 => log.segment(SegmentCause::Shrink).human(30),
        _ => log.calls(["Bash", "Read", "Edit"][what as usize % 3], "/a.rs", 30).result(chars),
    };
    let grown = u64::from(chars) / 3 + 40;
    log.wait(i64::from(chars % 400)).ask(*cached, grown, 3).says(chars / 9 + 1);
    *cached = if what == 1 { 4_000 } else { *cached + grown };
    *requests += 1;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_what_would_be_made(steps in prop::collection::vec((0_u8..12, 1_u32..4_000), 1..40)) {
        let bench = Bench::new(told(&steps));
        for (number, (kept, anew)) in bench.stacks().into_iter().zip(bench.stacks()).enumerate() {
            let anew = anew.into_iter().map(|stage| Box::new(Anew(stage)) as Box<dyn Stage>).collect();
            prop_assert_eq!(bench.run(kept), bench.run(anew), "stack {}", number);
        }
    }
}

#[test]
fn a_long_thread_takes_no_more_steps_for_a_request() {
    let steps = |requests: usize| {
        let mut log = Story::new();
        log.session("a", "/p").human(400).ask(0, 9_000, 3);
        for request in 0..requests as u64 {
            log.calls("Bash", "", 30).wait(1).result(900).ask(9_000 + 400 * request, 400, 3).says(20);
        }
        let bench = Bench::new(log.done());
        bench.stacks().into_iter().map(|stages| work::of(|| drop(bench.run(stages)))).collect::<Vec<_>>()
    };
    let counted = [100, 400].map(steps);
    for (number, (few, many)) in counted[0].iter().zip(&counted[1]).enumerate() {
        println!("stack {number}: {few} steps for 100 requests, {many} for 400");
        // For references to lines all of a context is looked at.
        let is_made_anew = [6, 7].contains(&number);
        assert!(is_made_anew || *many < 6 * few, "stack {number}: {few} steps, then {many}");
    }
}
