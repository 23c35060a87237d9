//! What a stage keeps of the context before stands for making it anew: the same contexts, breaks and books, in fewer steps.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::*;

use super::policy_sizes::laid_out_from_each_other;
use super::shipped_sheets::anchored_sizes;
use super::timeline_builder::Story;
use crate::base::data::Data;
use crate::base::id::work;
use crate::logs::timeline::requests::{SegmentCause, Timeline, Trigger};
use crate::whatif::clearing::Micro;
use crate::whatif::client::capped::{Capped, Limit, ResultLimit};
use crate::whatif::client::thresholds::ClientThresholds;
use crate::whatif::compaction::params::{MicroParams, Params, Real, Style};
use crate::whatif::compaction::{Compaction, CompactionThresholds, CompactionTrigger};
use crate::whatif::history_trim::{self as trim, HistoryTrim, HistoryTrimThresholds, TrimRule};
use crate::whatif::pipeline::{self, Formats, HintScope, Pipeline, Points, SentResult};
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::sim::breakage::rows::Break;
use crate::whatif::sim::breakage::{BreakWatch, BreakageThresholds, Detectors};
use crate::whatif::sim::laid_out;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::shared_list::{COPIED, SharedList};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::sizes::{BlockSizes, SizeRules};
use crate::whatif::sim::view::{ContextView, Given, Moment, Stage, StageJournal, StageOutput};

/// Makes every context anew.
struct Anew(Box<dyn Stage>);

impl Stage for Anew {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.0.begin(timeline, chain);
    }

    fn may_change(&self, timeline: &Timeline, chain: u32, largest: u64) -> bool {
        self.0.may_change(timeline, chain, largest)
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        *view = ContextView::default();
        self.0.apply(moment, Given { kept: 0, ..given }, view, out);
        0
    }
}

/// Is asked for every request, whether it would change something or not.
struct Asked(Box<dyn Stage>);

impl Stage for Asked {
    fn begin(&mut self, timeline: &Timeline, chain: u32) {
        self.0.begin(timeline, chain);
    }

    fn apply(&mut self, moment: &Moment<'_>, given: Given<'_>, view: &mut ContextView, out: &mut StageOutput) -> usize {
        self.0.apply(moment, given, view, out)
    }
}

/// Stages, and what each wrote down when they ran.
#[derive(Default)]
struct Booked {
    stages: Vec<Box<dyn Stage>>,
    books: Vec<Box<dyn Fn() -> String>>,
}

impl Booked {
    fn new(stage: impl Stage + 'static, book: impl Fn() -> String + 'static) -> Self {
        Self { stages: vec![Box::new(stage)], books: vec![Box::new(book)] }
    }

    fn of<T: Ord + Debug + 'static>(stage: impl Stage + 'static, journal: StageJournal<T>) -> Self {
        Self::new(stage, move || format!("{:?}", journal.take()))
    }

    fn then(mut self, next: Self) -> Self {
        self.stages.extend(next.stages);
        self.books.extend(next.books);
        self
    }

    /// The same, made anew at each request.
    fn anew(mut self) -> Self {
        self.stages = self.stages.into_iter().map(|stage| Box::new(Anew(stage)) as Box<dyn Stage>).collect();
        self
    }

    /// The same, asked for every request.
    fn asked(mut self) -> Self {
        self.stages = self.stages.into_iter().map(|stage| Box::new(Asked(stage)) as Box<dyn Stage>).collect();
        self
    }
}

struct Bench {
    timeline: Timeline,
    sizes: BlockSizes,
}

impl Bench {
    fn new(timeline: Timeline) -> Self {
        Self { sizes: anchored_sizes(&timeline), timeline }
    }

    fn compaction(&self, real: Real) -> Booked {
        let thresholds = CompactionThresholds::shipped();
        let params = Params {
            real,
            tail_keep_tokens: 900,
            summary_tokens: 60,
            reattach_tokens: 40,
            min_gain_tokens: 1,
            min_turns_between: 0,
            window: 12_000,
            ..thresholds.params.clone()
        };
        let tokens = Arc::clone(&self.sizes.tokens);
        let journal = StageJournal::default();
        let stage = Compaction::new(params, thresholds.clone(), tokens, journal.clone());
        Booked::of(stage.at(CompactionTrigger::Tokens(11_000)), journal)
    }

    fn micro(&self, only_uncached: bool) -> Booked {
        let params = MicroParams {
            min_bytes: 200,
            target_tokens: 1_500,
            min_saving_tokens: 300,
            protect_last: 2,
            only_uncached,
            style: Style::Clear,
        };
        let journal = StageJournal::default();
        Booked::of(Micro::new(params, CompactionThresholds::shipped().clone(), journal.clone()), journal)
    }

    /// Shell output of so many characters is shown as it was.
    fn capped(&self, chars: u64) -> Booked {
        let results = ClientThresholds::load(&Data::default()).unwrap().results;
        let limit = ResultLimit::new(Limit::BashChars(chars), results, SizeRules::shipped().clone());
        Booked { stages: vec![Box::new(Capped::new(limit, Arc::clone(&self.sizes.tokens)))], books: Vec::new() }
    }

    fn trim(&self, sticky: bool) -> Booked {
        self.trimmed(|params| (params.sticky, params.max_history_tokens) = (sticky, 4_000))
    }

    /// Without a budget, and with all that comes back and goes again.
    fn trim_all(&self) -> Booked {
        self.trimmed(|params| {
            (params.sticky, params.max_history_tokens, params.keep_recent_exchanges) = (true, 1_000_000_000, 1);
            (params.fidelity, params.trim_thinking) = (trim::params::TrimSource::Sane, true);
        })
    }

    fn trimmed(&self, change: impl FnOnce(&mut trim::Params)) -> Booked {
        let thresholds =
            HistoryTrimThresholds::parse(include_str!("../../rules/policies/history_trim.toml"), "trim").unwrap();
        let mut params = trim::Params { sticky_step: 1, ..thresholds.params };
        change(&mut params);
        let (stage, outcome) = HistoryTrim::new(TrimRule { params, thresholds }, SizeRules::shipped());
        Booked::new(stage, move || format!("{:?}", outcome.borrow()))
    }

    fn pipeline(&self) -> Booked {
        let answered =
            (0..).zip(&self.timeline.calls).filter(|(_, call)| self.timeline.blocks.len() > call.answered as usize);
        let sent = |(call, _): (u32, _)| {
            let points = [Points::Nowhere, Points::At(call / 2), Points::Lines][call as usize % 3];
            SentResult { call, baseline: 100, tokens: 40, points }
        };
        let sent: Vec<SentResult> = answered.map(sent).collect();
        let params = pipeline::Params { formats: Formats::Extended, partition: HintScope::Virtual };
        let (stage, journal) = Pipeline::new(&self.timeline, params, sent.into(), SizeRules::shipped());
        Booked::of(stage, journal)
    }

    /// Some stages, alone and together.
    fn stacks(&self) -> Vec<Booked> {
        vec![
            self.compaction(Real::Keep),
            self.compaction(Real::Ignore),
            self.micro(false),
            self.micro(true),
            self.trim(false),
            self.trim(true),
            self.pipeline(),
            self.pipeline().then(self.micro(false)).then(self.trim(false)).then(self.compaction(Real::Keep)),
            self.micro(true).then(self.trim(false)),
            self.trim_all(),
            self.capped(3_000),
            self.capped(3_000).then(self.compaction(Real::Keep)),
        ]
    }

    fn simulator(&self) -> Simulator<'_> {
        Simulator::new(&self.timeline, &self.sizes, CacheRules::shipped(), Prices::shipped())
    }

    fn run(&self, booked: Booked) -> (SimulatedRun, Vec<Break>, Vec<String>) {
        self.run_on(&self.simulator(), booked)
    }

    fn run_on(
        &self,
        simulator: &Simulator<'_>,
        Booked { mut stages, books }: Booked,
    ) -> (SimulatedRun, Vec<Break>, Vec<String>) {
        let detectors = Detectors::new(&self.timeline, &self.sizes.tokens, BreakageThresholds::shipped());
        let mut watch = BreakWatch::new(&detectors);
        watch.with_pairs = true;
        let run = simulator.run(simulator.chains(), &mut stages, Some(&mut watch));
        (run, watch.breaks, books.iter().map(|book| book()).collect())
    }
}

/// A conversation: prompts, also before the result of a call, results, edits, compactions, and going back; then a fork of it.
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
        1 => log.compaction(Trigger::Auto, None, 300).injected(2 * chars),
        2 => log.back_to(*requests / 2),
        3 => log.segment(SegmentCause::Shrink).human(30),
        12 => log.calls("Read", "/a.rs", 30).human(chars / 9 + 1),
        13 => log.thinks(chars).human(20),
        _ => log.calls(["Bash", "Read", "Edit"][what as usize % 3], "/a.rs", 30).result(chars),
    };
    let grown = u64::from(chars) / 3 + 40;
    log.wait(i64::from(chars % 400)).ask(*cached, grown, 3).says(chars / 9 + 1);
    *cached = if what == 1 { 4_000 } else { *cached + grown };
    *requests += 1;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_is_what_would_be_made(steps in prop::collection::vec((0_u8..14, 1_u32..4_000), 1..40)) {
        let bench = Bench::new(told(&steps));
        for (number, (kept, anew)) in bench.stacks().into_iter().zip(bench.stacks()).enumerate() {
            prop_assert_eq!(bench.run(kept), bench.run(anew.anew()), "stack {}", number);
        }
    }
}

/// A conversation, and forks of it and of each other, which go on after one another.
fn told_with_forks(steps: &[(u8, u32)], forks: &[(u32, u8, u32)]) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 9_000, 3);
    let mut told = (9_000, 1);
    steps.iter().for_each(|&one| step(&mut log, one, &mut told));
    for (number, &(after, what, chars)) in forks.iter().enumerate() {
        log.agent(&format!("fork {number}")).back_to(after % told.1).human(60).ask(told.0 / 2, 300, 3).says(30);
        told.1 += 1;
        let kinds = if what > 3 { 4..14 } else { 12..14 };
        step(&mut log, (kinds.start + what % kinds.len() as u8, chars), &mut told);
        // It goes back to anywhere, also into a thread that it was not forked off.
        if what % 2 == 1 {
            log.back_to(chars % told.1).human(40).ask(told.0 / 2, 200, 3).says(20);
            told.1 += 1;
        }
    }
    log.session("b", "/p").wait(9_000).human(400).ask(0, 9_000, 3).says(30).human(20).ask(9_000, 60, 3);
    log.agent("short").back_to(told.1).human(90).ask(9_000, 80, 3);
    log.done()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_as_logged_is_what_a_stage_would_have_left(
        steps in prop::collection::vec((0_u8..14, 1_u32..4_000), 1..20),
        forks in prop::collection::vec((0_u32..40, 0_u8..14, 1_u32..4_000), 0..6),
    ) {
        let bench = Bench::new(told_with_forks(&steps, &forks));
        let knowing = bench.simulator().knowing(bench.simulator().baseline().into());
        for (number, (kept, asked)) in bench.stacks().into_iter().zip(bench.stacks()).enumerate() {
            let kept = bench.run(kept);
            prop_assert_eq!(&kept, &bench.run(asked.asked()), "stack {}", number);
            // Nor does it matter whether it is sent once more.
            let again = bench.stacks().into_iter().nth(number).unwrap();
            prop_assert_eq!(kept, bench.run_on(&knowing, again), "stack {}", number);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn threads_laid_out_from_each_other_are_those_laid_out_by_themselves(
        steps in prop::collection::vec((0_u8..14, 1_u32..4_000), 1..20),
        forks in prop::collection::vec((0_u32..40, 0_u8..14, 1_u32..4_000), 0..9),
    ) {
        let Bench { timeline, sizes, .. } = Bench::new(told_with_forks(&steps, &forks));
        laid_out_from_each_other(&timeline, &sizes)?;
    }
}

#[test]
fn forks_that_no_stage_changes_take_no_more_steps_than_the_log() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 9_000, 3);
    for request in 0..40 {
        log.calls("Bash", "", 30).wait(1).result(4_000).ask(9_000 + 1_200 * request, 1_200, 3).says(20);
    }
    for fork in 1..20 {
        log.agent(&format!("fork {fork}")).back_to(2 * fork).human(60).ask(9_000 + 2_400 * u64::from(fork), 30, 3);
    }
    let bench = Bench::new(log.done());
    let simulator = bench.simulator();
    let steps = |mut run: Booked| work::of(|| drop(simulator.run(simulator.chains(), &mut run.stages, None)));
    let of_log = steps(Booked::default());
    assert!(of_log > 0 && steps(bench.capped(3_000)) > of_log);
    assert_eq!(steps(bench.capped(5_000)), of_log);
    let simulator = bench.simulator().knowing(simulator.baseline().into());
    let again = |mut run: Booked| work::of(|| drop(simulator.run(simulator.chains(), &mut run.stages, None)));
    assert_eq!([bench.capped(5_000), bench.capped(3_000)].map(again), [0, steps(bench.capped(3_000))]);
}

/// A long thread, forked off at each of its last requests.
fn forked_often(requests: u64, forks: u64) -> Timeline {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 9_000, 3);
    for request in 0..requests {
        log.calls("Bash", "", 30).wait(1).result(400).ask(9_000 + 150 * request, 150, 3).says(20);
    }
    for fork in requests - forks..requests {
        log.agent(&format!("fork {fork}")).back_to(fork as u32).human(60).ask(9_000 + 150 * fork, 150, 3).says(20);
    }
    log.done()
}

#[test]
fn what_is_kept_for_forks_is_kept_once() {
    let (requests, forks) = (1_200, 60);
    let bench = Bench::new(forked_often(requests, forks));
    let simulator = bench.simulator();
    let copied = |mut run: Booked| {
        COPIED.set(0);
        simulator.run(simulator.chains(), &mut run.stages, None);
        COPIED.get() as u64
    };
    // Of a request three items at most, and the request's number, fates and lengths; of a fork a new piece each.
    let most = 6 * (4 * requests + 128 * forks);
    let copied: Vec<u64> = bench.stacks().into_iter().map(copied).collect();
    assert!(copied.iter().all(|copied| (1..most).contains(copied)), "{copied:?}, at most {most}");
}

/// Of a fork only the way from the thread before is laid out.
#[test]
fn forks_are_laid_out_from_each_other() {
    let steps = |forks| {
        let bench = Bench::new(forked_often(400, forks));
        let (all, mut items) = (0..bench.timeline.requests.len() as u32, Vec::new());
        work::of(|| all.for_each(|request| _ = laid_out::step(&bench.timeline, &bench.sizes, request, &mut items)))
    };
    let [few, many] = [20, 80].map(steps);
    assert!(few > 0 && many - few < 60 * 10, "{few} steps, {many} of four times as many forks");
}

#[test]
fn a_shared_list_holds_what_it_was_made_of() {
    let long: Vec<u32> = (0..1_000).collect();
    let first = SharedList::new(&long[..700], None);
    COPIED.set(0);
    let grown = SharedList::new(&long, Some(&first));
    assert_eq!(COPIED.get(), 1_000 - 640);
    let mut changed = long.clone();
    changed[200] = 0;
    let changed_list = SharedList::new(&changed, Some(&grown));
    assert_eq!(COPIED.get(), 1_000 - 640 + 128);
    let shorter = SharedList::new(&changed[..100], Some(&changed_list));
    let empty = SharedList::new(&[], Some(&shorter));
    assert_eq!(
        [&first, &grown, &changed_list, &shorter, &empty].map(SharedList::to_vec),
        [long[..700].to_vec(), long.clone(), changed.clone(), changed[..100].to_vec(), Vec::new()]
    );
}

/// A fork of one thread that goes on from another shows what that one holds.
#[test]
fn what_a_thread_goes_back_into_counts_as_its_own() {
    let mut log = Story::new();
    log.session("long", "/p").human(400).ask(0, 9_000, 3);
    for request in 0..4 {
        log.calls("Bash", "", 30).wait(1).result(4_000).ask(9_000 + 1_200 * request, 1_200, 3).says(20);
    }
    log.session("short", "/p").wait(60).human(400).ask(0, 9_000, 3).says(30);
    log.agent("fork").back_to(5).human(60).ask(9_000, 60, 3).says(30);
    log.back_to(4).human(60).ask(9_000, 4_800, 3).says(30);
    let bench = Bench::new(log.done());
    for (number, (kept, asked)) in bench.stacks().into_iter().zip(bench.stacks()).enumerate() {
        assert_eq!(bench.run(kept), bench.run(asked.asked()), "stack {number}");
    }
}

/// A prompt before the result of a call is no place to cut, until the conversation goes back to before the result.
#[test]
fn where_a_result_went_a_place_is_sought_again() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 9_000, 3).calls("Bash", "", 30);
    log.human(20).ask(9_000, 100, 3).says(6_000).result(30).ask(9_100, 2_400, 3);
    log.back_to(1).human(30).ask(9_100, 2_400, 3);
    let bench = Bench::new(log.done());
    let (.., books) = bench.run(bench.compaction(Real::Keep));
    assert_eq!(books, bench.run(bench.compaction(Real::Keep).anew()).2);
    let outcomes: Vec<&str> = books[0].split("outcome: ").skip(1).filter_map(|rest| rest.split(',').next()).collect();
    assert_eq!(outcomes, ["NoBoundary", "Ok"], "{}", books[0]);
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
