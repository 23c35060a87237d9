//! The bill shared out: parts that add up to it exactly, whatever it is shared out by, and each part where it belongs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;

use super::timeline_builder::Story;
use crate::base::id::work;
use crate::cost::attribution::{Attribution, GroupCost};
use crate::cost::bill::Bill;
use crate::cost::groups::{CostKey, Label};
use crate::cost::shares;
use crate::cost::shares::{Thing, When};
use crate::cost::tables::per_call;
use crate::logs::timeline::requests::{Marks, NONE, SegmentCause, Timeline, Trigger};
use crate::logs::trace::Usage;
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::laid_out;
use crate::whatif::sim::money::{Prices, Tariff};
use crate::whatif::sim::sizes::{BlockSizes, Estimator, SizeRules};
use crate::whatif::sim::view::ItemKey;

/// Does something with the bill of a timeline.
fn with_bill<T>(timeline: &Timeline, estimator: Estimator, ask: impl FnOnce(&Bill<'_>) -> T) -> T {
    let sizes = BlockSizes::new(timeline, estimator, SizeRules::shipped());
    ask(&Bill::of(timeline, &sizes, Tariff::new(Prices::shipped(), &timeline.names), CacheLifetime::FiveMinutes))
}

fn usage(read: u64, write: u64, input: u64, output: u64) -> Usage {
    Usage { input, output, cache_creation: write, cache_read: read, cache_creation_5m: write, ..Usage::default() }
}

/// First, carried and again, in nano-dollars.
fn money(entry: &GroupCost) -> [u128; 3] {
    [entry.first, entry.carried, entry.again].map(|cost| cost.nano_usd)
}

/// The row of a name, of a bill by one key.
fn row<'a>(found: &'a Attribution, name: &str) -> &'a GroupCost {
    let is = |label: &Label| match label {
        Label::Word(text) | Label::Tool(text) | Label::Server(text) => text == name,
        _ => false,
    };
    &found.rows.iter().find(|row| is(&row.labels[0])).unwrap_or_else(|| panic!("no {name}: {:?}", found.rows)).entry
}

/// Opus 4.5: input 5, write 6.25, read 0.5, output 25 dollars per million tokens; nano-dollars per token 1,000 times that.
#[test]
fn a_result_is_paid_for_when_it_comes_each_time_it_is_sent_and_again_after_a_miss() {
    let mut log = Story::new();
    log.session("a", "/p").human(414).ask_with(usage(0, 20_000, 0, 100)).calls("Read", "/a", 326).wait(1);
    // The call has grown the context by 100 tokens and the result by 900, as their answers and the bill say.
    log.result(2_600).ask_with(usage(20_000, 1_000, 0, 40)).says(160).wait(1);
    log.human(4).ask_with(usage(21_000, 40, 0, 10)).says(30).wait(4_000);
    log.human(4).ask_with(usage(0, 21_080, 0, 10)).says(30);
    let timeline = log.done();
    with_bill(&timeline, Estimator::Anchored, |bill| {
        let tokens = |block: u32| u128::from(bill.sizes.tokens[block as usize]);
        let (call, result) = (tokens(timeline.calls[0].asked), tokens(timeline.calls[0].answered));
        assert_eq!(call + result, 1_000, "the measured growth");
        let by_content = Attribution::new(bill, &[CostKey::Content]);
        // Written when it came, read once, written once more.
        assert_eq!(money(row(&by_content, "(tool results)")), [result * 6_250, result * 500, result * 6_250]);
        // Answered first; then written and read; then written once more.
        assert_eq!(money(row(&by_content, "(tool calls)")), [100 * 25_000, call * (6_250 + 500), call * 6_250]);
        let by_tool = Attribution::new(bill, &[CostKey::Tool]);
        let tool = row(&by_tool, "Read");
        assert_eq!(tool.calls, 1);
        assert_eq!(
            money(tool),
            [100 * 25_000 + result * 6_250, call * 6_250 + 1_000 * 500, 1_000 * 6_250],
            "a tool has its calls and their results"
        );
        let prefix = u128::from(bill.sizes.prefix[0]);
        let system = row(&by_tool, "(system prompt and tool definitions)");
        assert_eq!(money(system), [prefix * 6_250, prefix * 2 * 500, prefix * 6_250]);
    });
}

#[test]
fn what_an_answer_has_beyond_its_blocks_was_thought() {
    let mut log = Story::new();
    log.session("a", "/p").human(414).ask_with(usage(0, 20_000, 0, 900)).thinks(0).says(414).wait(1);
    log.human(4).ask_with(usage(20_000, 110, 0, 70)).says(280);
    let timeline = log.done();
    with_bill(&timeline, Estimator::Anchored, |bill| {
        let said = u128::from(bill.sizes.tokens[timeline.requests[0].outputs.start as usize + 1]);
        let found = Attribution::new(bill, &[CostKey::Content]);
        assert_eq!(money(row(&found, "(thinking)")), [(900 - said) * 25_000, 0, 0]);
        assert_eq!(row(&found, "(text of the model)").first.nano_usd, (said + 70) * 25_000);
    });
}

#[test]
fn failed_calls_and_what_was_tried_again_have_rows_of_their_own() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Edit", "/a", 163).wait(1);
    log.error(500).ask(20_000, 400, 0).calls("Edit", "/a", 163).calls("Bash", "", 163).wait(1);
    log.result(100).result(100).ask(20_400, 400, 0).calls("Edit", "/b", 163).wait(1);
    log.result(100).ask(20_800, 300, 0);
    let timeline = log.done();
    with_bill(&timeline, Estimator::Anchored, |bill| {
        let found = Attribution::new(bill, &[CostKey::Outcome]);
        assert_eq!(row(&found, "(calls that failed, were refused or cancelled)").calls, 1);
        assert_eq!(row(&found, "(the same tool again, right after it failed)").calls, 1);
        assert_eq!(row(&found, "(other calls)").calls, 2);
    });
}

#[test]
fn a_file_that_is_read_again_unchanged_has_a_row_and_one_that_changed_has_none() {
    let again = |between: &[(&str, u32)], second: u32| {
        let mut log = Story::new();
        log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Read", "/a", 163).wait(1);
        log.result(4_000).ask(20_000, 400, 0);
        for (tool, chars) in between {
            log.calls(tool, "/a", 163).wait(1).result(*chars).ask(20_400, 400, 0);
        }
        log.calls("Read", "/a", 163).wait(1);
        log.result(second).ask(20_800, 400, 0);
        let timeline = log.done();
        with_bill(&timeline, Estimator::Anchored, |bill| {
            let found = Attribution::new(bill, &[CostKey::Outcome]);
            let is = |label: &Label| matches!(label, Label::Word(text) if text.starts_with("(files read again"));
            found.rows.iter().filter(|row| is(&row.labels[0])).map(|row| row.entry.calls).sum::<u64>()
        })
    };
    assert_eq!(again(&[], 4_000), 1);
    assert_eq!(again(&[], 4_001), 0, "another text");
    assert_eq!(again(&[("Edit", 100)], 4_000), 0, "it was edited in between");
    assert_eq!(again(&[("Read", 4_000)], 4_000), 2);
    assert_eq!(again(&[("Grep", 100)], 4_000), 1, "who searches changes nothing");
}

/// Calls of each outcome.
fn calls_by_outcome(timeline: &Timeline, start: &str) -> u64 {
    with_bill(timeline, Estimator::Anchored, |bill| {
        let found = Attribution::new(bill, &[CostKey::Outcome]);
        let is = |label: &Label| matches!(label, Label::Word(text) if text.starts_with(start));
        found.rows.iter().filter(|row| is(&row.labels[0])).map(|row| row.entry.calls).sum()
    })
}

#[test]
fn a_text_that_was_cleared_is_read_anew_and_one_that_a_rewind_left_standing_is_read_again() {
    let read = |log: &mut Story| {
        log.calls("Read", "/a", 163).wait(1).result(4_000);
    };
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0);
    read(&mut log);
    log.clearing(20_000, 1_000, &[0]).ask(20_000, 400, 0);
    read(&mut log);
    log.ask(20_000, 400, 0);
    assert_eq!(calls_by_outcome(&log.done(), "(files read again"), 0);
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0);
    read(&mut log);
    log.ask(20_000, 2_000, 0).says(40).human(40).ask(22_000, 90, 0).says(40);
    log.back_to(1).human(40).ask(22_000, 95, 0);
    read(&mut log);
    log.ask(22_000, 2_000, 0);
    assert_eq!(calls_by_outcome(&log.done(), "(files read again"), 1);
    // What was read on the way that was left is in no context.
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).says(40).human(40).ask(20_000, 90, 0);
    read(&mut log);
    log.ask(20_000, 2_000, 0).says(40).back_to(0).human(40).ask(20_000, 95, 0);
    read(&mut log);
    log.ask(20_000, 2_000, 0);
    assert_eq!(calls_by_outcome(&log.done(), "(files read again"), 0);
}

#[test]
fn a_call_made_once_more_that_nothing_answered_did_not_work() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Edit", "/a", 163).wait(1);
    log.error(500).ask(20_000, 400, 0).calls("Edit", "/a", 163);
    assert_eq!(calls_by_outcome(&log.done(), "(the same tool again"), 0);
}

/// One that failed is made once more by one call, however many others follow it.
#[test]
fn no_more_calls_are_made_once_more_than_failed() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Bash", "", 163).calls("Bash", "", 163).wait(1);
    log.error(500).result(100).ask(20_000, 400, 0);
    log.calls("Bash", "", 163).calls("Bash", "", 163).calls("Bash", "", 163).wait(1);
    log.result(100).result(100).result(100).ask(20_400, 400, 0);
    assert_eq!(calls_by_outcome(&log.done(), "(the same tool again"), 1);
}

#[test]
fn calls_of_requests_that_cost_nothing_are_in_no_price_of_a_call() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0).calls("Read", "/a", 163).wait(1);
    log.result(400).ask(0, 0, 0).calls("Read", "/b", 163).wait(1).result(400).ask(20_000, 900, 0);
    with_bill(&log.done(), Estimator::Anchored, |bill| {
        assert_eq!(row(&Attribution::new(bill, &[CostKey::Tool]), "Read").calls, 1);
    });
}

#[test]
fn what_a_call_costs_is_told_of_calls_of_models_with_a_price() {
    let told = |models: &[&str]| {
        let mut log = Story::new();
        for (number, model) in models.iter().enumerate() {
            log.session(&format!("s{number}"), "/p").model(model).human(400);
            log.ask_with(usage(0, 20_000, 0, 100)).calls("Read", "/a", 163);
        }
        with_bill(&log.done(), Estimator::Anchored, |bill| {
            per_call(row(&Attribution::new(bill, &[CostKey::Tool]), "Read")).unwrap()
        })
    };
    let alone = told(&["claude-opus-4-6"]);
    assert!(alone > 0.0 && (told(&["claude-opus-4-6", "mystery-1"]) - alone).abs() < 1e-9);
}

#[test]
fn a_chain_that_is_forked_off_only_carries_what_it_begins_with() {
    let mut log = Story::new();
    log.session("a", "/p").human(4_000).ask(0, 20_000, 0).calls("Read", "/a", 163).wait(1);
    log.result(2_890).ask(20_000, 1_100, 0).says(40).wait(1);
    log.agent("x").back_to(1).human(40).ask(20_000, 1_200, 0);
    let timeline = log.done();
    with_bill(&timeline, Estimator::Anchored, |bill| {
        let of = |block: u32| {
            let mut found: Vec<(u32, When)> = Vec::new();
            for chain in 0..2 {
                shares::of_chain(bill, chain, |request| request, &mut |share| {
                    if share.thing == Thing::Block(block) {
                        found.push((share.request, share.when));
                    }
                });
            }
            found
        };
        assert_eq!(of(0), [(0, When::First), (1, When::Carried), (2, When::Carried)]);
        let result = timeline.calls[0].answered;
        assert_eq!(of(result), [(1, When::First), (2, When::Again)], "the fork had to write it once more");
    });
}

#[test]
fn what_is_carried_is_told_once_for_each_group_however_many_take_turns() {
    let mut log = Story::new();
    log.session("a", "/p").human(400).ask(0, 20_000, 0);
    for before in 0..299 {
        log.calls("Read", "/a", 163).wait(1).result(290).ask(20_000 + 150 * before, 150, 0);
    }
    let timeline = log.done();
    with_bill(&timeline, Estimator::Anchored, |bill| {
        let mut told = 0;
        shares::of_chain(bill, 0, |request| request % 12, &mut |_| told += 1);
        // Besides, all that is new is told by itself.
        let things = timeline.blocks.len() + timeline.requests.len();
        assert!(told <= (12 + 4) * things, "{told} shares of {things} things");
    });
}

/// Sessions each have a tool of their own: none looks through those of all.
#[test]
fn a_session_is_billed_without_the_tools_of_others() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let steps = |sessions: u32| {
        let mut log = Story::new();
        for session in 0..sessions {
            log.session(&format!("s{session}"), "/p").human(40).ask(0, 20_000, 0);
            log.calls(&format!("mcp__m{session}__get"), "", 30).wait(1).result(400).ask(20_000, 200, 0).says(30);
        }
        let timeline = log.done();
        with_bill(&timeline, Estimator::Anchored, |bill| {
            pool.install(|| {
                work::of(|| {
                    let found = Attribution::new(bill, &[CostKey::Server]);
                    assert!(found.rows.len() > sessions as usize);
                })
            })
        })
    };
    let [few, many] = [40, 640].map(steps);
    assert!(many < 20 * few, "{few} steps of 40 sessions, {many} of 640");
}

#[test]
fn an_empty_log_has_an_empty_bill() {
    with_bill(&Timeline::default(), Estimator::Anchored, |bill| {
        let found = Attribution::new(bill, &[CostKey::Tool, CostKey::Day]);
        assert_eq!((found.rows.len(), found.total), (0, GroupCost::default()));
    });
}

/// What may happen between two requests.
#[derive(Clone, Debug)]
enum Move {
    Tool(u8, u32, u64, bool),
    Human(u32, u64),
    Thought(u32, u64),
    Empty(u64),
    Shrink(u64),
    Compaction(u64),
    BackTo(u32),
    Unbilled,
    Model(u8),
    Wait(i64),
    Agent(bool),
    Session,
}

/// A move, of ten which tenths of the context are read and written, and the tokens of the answer.
type Step = (Move, u64, u64, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![
        (0_u8..4, 0_u32..4_000, 0_u64..2_000, any::<bool>())
            .prop_map(|(tool, chars, growth, fails)| Move::Tool(tool, chars, growth, fails)),
        (0_u32..400, 0_u64..900).prop_map(|(chars, growth)| Move::Human(chars, growth)),
        (0_u32..400, 0_u64..900).prop_map(|(chars, growth)| Move::Thought(chars, growth)),
        (0_u64..300).prop_map(Move::Empty),
        (1_u64..3_000).prop_map(Move::Shrink),
        (100_u64..6_000).prop_map(Move::Compaction),
        (0_u32..30).prop_map(Move::BackTo),
        Just(Move::Unbilled),
        (0_u8..4).prop_map(Move::Model),
        (-90_000_i64..900_000).prop_map(Move::Wait),
        any::<bool>().prop_map(Move::Agent),
        Just(Move::Session),
    ];
    proptest::collection::vec((one, 0_u64..=10, 0_u64..=10, 0_u64..400), 1..25)
}

const TOOLS: [&str; 4] = ["Read", "Bash", "mcp__tracker__get_issue", "mcp__wiki__search"];
/// The third of them costs more for long prompts and has no price for an hour there, the last one has no price.
const MODELS: [&str; 4] = ["claude-opus-4-5", "claude-haiku-4-5", "claude-sonnet-4-5", "somebodys-model"];

fn told(steps: &[Step]) -> Timeline {
    let mut log = Story::new();
    let mut context = 2_000_u64;
    let mut sessions = 0;
    log.session("s0", "/p0").human(40).ask(0, context, 0);
    for &(ref step, read, write, output) in steps {
        log.wait(1);
        let count = log.timeline().requests.len() as u32;
        let opened = log.timeline().chains.last().unwrap().requests.is_empty();
        match *step {
            Move::Tool(tool, chars, growth, fails) if !opened => {
                log.calls(TOOLS[usize::from(tool)], "/a", 30);
                if fails {
                    log.error(chars)
                } else {
                    log.result(chars)
                };
                context += growth;
            }
            Move::Human(chars, growth) if !opened => {
                log.says(chars / 2).human(chars);
                context += growth;
            }
            Move::Thought(chars, growth) if !opened => {
                log.thinks(chars / 3).says(chars / 2).human(chars);
                context += growth;
            }
            Move::Empty(growth) => context += growth,
            Move::Shrink(by) if !opened => {
                if by > 500 {
                    log.segment(SegmentCause::Shrink);
                }
                context = context.saturating_sub(by).max(1);
            }
            Move::Compaction(to) if !opened => {
                log.compaction(Trigger::Auto, None, 900);
                context = to;
            }
            Move::BackTo(request) if !opened => {
                let first = log.timeline().chains.last().unwrap().requests.start;
                log.back_to((first + request).min(count - 1)).human(10);
                context += 50;
            }
            Move::Unbilled if !opened => {
                log.says(50).human(10).ask(0, 0, 0);
                continue;
            }
            Move::Model(model) => _ = log.model(MODELS[usize::from(model)]).human(5),
            Move::Wait(seconds) => _ = log.wait(seconds).mark(Marks::RESUME),
            Move::Agent(forked) => {
                log.agent(&format!("agent {count}"));
                if forked {
                    log.back_to(count - 1).human(7)
                } else {
                    log.human(7)
                };
                context = if forked { context + 60 } else { 1_500 };
            }
            Move::Session => {
                sessions += 1;
                log.session(&format!("s{sessions}"), &format!("/p{}", sessions % 2)).human(70);
                context = 1_800;
            }
            _ => context += 10,
        }
        let read = context * read / 10;
        let write = (context - read) * write / 10;
        let hour = write * (output % 3) / 2;
        log.ask_with(Usage {
            input: context - read - write,
            output,
            cache_creation: write,
            cache_read: read,
            cache_creation_5m: if output % 7 == 0 { 0 } else { write - hour },
            cache_creation_1h: hour,
        });
    }
    log.done()
}

/// The bill as the usage has it, by prices looked up one by one.
fn billed(timeline: &Timeline) -> (Spent, Cost) {
    let prices = Prices::shipped();
    let mut all = (Spent::default(), Cost::default());
    for request in &timeline.requests {
        let usage = request.usage();
        let write_1h = usage.cache_creation_1h;
        let spent = Spent {
            read: usage.cache_read,
            write_1h,
            write_5m: usage.cache_creation - write_1h,
            uncached: usage.input,
            output: usage.output,
        };
        let tariff = Tariff::new(prices, &timeline.names);
        all.0 += spent;
        all.1 += tariff.cost(request.model, request.start, &spent);
    }
    all
}

fn any_keys() -> impl Strategy<Value = Vec<CostKey>> {
    let all = <CostKey as clap::ValueEnum>::value_variants().to_vec();
    proptest::sample::subsequence(all, 0..4).prop_shuffle()
}

/// Who owns each token of a prompt, in order, laid out anew for every request.
fn owners(timeline: &Timeline, sizes: &BlockSizes, request: u32) -> Vec<Thing> {
    let mut items = Vec::new();
    laid_out::lay(timeline, sizes, request, &mut items);
    let chain = timeline.requests[request as usize].chain as usize;
    let mut owners = vec![Thing::Prefix; sizes.prefix[chain] as usize];
    for item in items {
        let thing = match item.key {
            ItemKey::Block(block) => Thing::Block(block),
            ItemKey::Residual(request) | ItemKey::Made(request) => Thing::Unlogged(request),
        };
        owners.extend(std::iter::repeat_n(thing, item.tokens as usize));
    }
    owners
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn parts_add_up_to_the_bill_for_every_grouping(
        steps in steps(), keys in any_keys(), measured in any::<bool>(),
    ) {
        let timeline = told(&steps);
        let estimator = if measured { Estimator::Anchored } else { Estimator::Chars4 };
        let (spent, cost) = billed(&timeline);
        with_bill(&timeline, estimator, |bill| -> Result<(), TestCaseError> {
            prop_assert_eq!(bill.total().spent, spent);
            prop_assert_eq!(bill.total().cost, cost);
            let found = Attribution::new(bill, &keys);
            let mut all = GroupCost::default();
            found.rows.iter().for_each(|row| all += row.entry);
            prop_assert_eq!(all.spent, spent);
            prop_assert_eq!(all.cost(), cost);
            prop_assert_eq!(all, found.total);
            let is_billed = |block: u32| timeline.request(timeline.request_of_block(block)).is_billed();
            prop_assert_eq!(all.calls, timeline.calls.iter().filter(|call| is_billed(call.asked)).count() as u64);
            let names: HashSet<_> = found.rows.iter().map(|row| row.labels.clone()).collect();
            prop_assert_eq!(names.len(), found.rows.len(), "a group has one row");
            // The cross table of two keys has the same margins as each key has rows.
            for (place, key) in keys.iter().enumerate() {
                let mut margin: BTreeMap<Label, GroupCost> = BTreeMap::new();
                found.rows.iter().for_each(|row| *margin.entry(row.labels[place].clone()).or_default() += row.entry);
                let alone = Attribution::new(bill, &[*key]).rows;
                let alone: BTreeMap<Label, GroupCost> =
                    alone.into_iter().map(|row| (row.labels[0].clone(), row.entry)).collect();
                prop_assert_eq!(margin, alone);
            }
            Ok(())
        })?;
    }

    /// Token by token: of a prompt the first ones were read, then come those written for an hour, for five minutes, and the
    /// rest; whose each is tells who pays for it.
    #[test]
    fn each_part_is_what_a_walk_over_single_tokens_finds(steps in steps()) {
        let timeline = told(&steps);
        with_bill(&timeline, Estimator::Anchored, |bill| -> Result<(), TestCaseError> {
            let mut shared: BTreeMap<(u32, Thing, When), Spent> = BTreeMap::new();
            // What was paid for as an answer.
            let mut answered: BTreeSet<(u32, Thing)> = BTreeSet::new();
            for chain in 0..timeline.chains.len() as u32 {
                shares::of_chain(bill, chain, |request| request, &mut |share| {
                    if share.spent.output > 0 {
                        answered.insert((share.request, share.thing));
                    }
                    let spent = Spent { output: 0, ..share.spent };
                    *shared.entry((share.request, share.thing, share.when)).or_default() += spent;
                });
            }
            let mut walked: BTreeMap<(u32, Thing, When), Spent> = BTreeMap::new();
            // Things by chain: how many of their tokens have been in the cache.
            let mut known: BTreeMap<(u32, Thing), u64> = BTreeMap::new();
            let mut is_whole = true;
            for (index, request) in timeline.requests.iter().enumerate() {
                let usage = request.usage();
                let one = |kind: usize| {
                    let [read, write_1h, write_5m, uncached] = std::array::from_fn(|at| u64::from(at == kind));
                    Spent { read, write_5m, write_1h, uncached, output: 0 }
                };
                let hour = usage.cache_creation_1h;
                let counts = [usage.cache_read, hour, usage.cache_creation - hour, usage.input];
                let kinds = counts.iter().enumerate().flat_map(|(kind, &count)| std::iter::repeat_n(kind, count as usize));
                let owners = owners(&timeline, bill.sizes, index as u32);
                let chain = &timeline.chains[request.chain as usize];
                let is_own = |thing: Thing| match thing {
                    Thing::Block(block) => timeline.requests_of(request.chain).iter().any(|request| {
                        (request.inputs.start..request.outputs.end).contains(&block)
                    }),
                    Thing::Unlogged(brought) => chain.requests.contains(&brought),
                    _ => timeline.segments[chain.segments.start as usize].after == NONE,
                };
                if request.context() > 0 && owners.len() as u64 == request.context() {
                    let mut tokens: Vec<(Thing, Vec<Spent>)> = Vec::new();
                    for (owner, kind) in owners.into_iter().zip(kinds) {
                        if tokens.last().is_none_or(|(last, _)| *last != owner) {
                            tokens.push((owner, Vec::new()));
                        }
                        tokens.last_mut().unwrap().1.push(one(kind));
                    }
                    for (thing, tokens) in tokens {
                        let spent: Spent = tokens.iter().copied().sum();
                        let before = if is_own(thing) { known.get(&(request.chain, thing)).copied() } else { Some(u64::MAX) };
                        let lost = before.map_or(0, |cached| cached.saturating_sub(spent.read)) as usize;
                        let behind = spent.read as usize;
                        for (at, token) in tokens.into_iter().enumerate() {
                            let when = match before {
                                None => When::First,
                                Some(_) if (behind..behind.saturating_add(lost)).contains(&at) => When::Again,
                                Some(_) => When::Carried,
                            };
                            *walked.entry((index as u32, thing, when)).or_default() += token;
                        }
                        let cached = known.entry((request.chain, thing)).or_default();
                        *cached = (spent.read + spent.write()).max(*cached);
                    }
                } else if request.context() > 0 {
                    // What was compacted below the prefix of the chain that it was forked off: no places are known.
                    is_whole = false;
                    shared.retain(|(request, ..), _| *request != index as u32);
                }
                for &(_, thing) in answered.range((index as u32, Thing::Prefix)..(index as u32 + 1, Thing::Prefix)) {
                    known.entry((request.chain, thing)).or_default();
                }
            }
            if !is_whole {
                // Nor is known what of them was in the cache.
                let whole = |parts: BTreeMap<(u32, Thing, When), Spent>| {
                    let mut all: BTreeMap<(u32, Thing, When), Spent> = BTreeMap::new();
                    for ((request, thing, _), spent) in parts {
                        *all.entry((request, thing, When::First)).or_default() += spent;
                    }
                    all
                };
                (shared, walked) = (whole(shared), whole(walked));
            }
            shared.retain(|_, spent| *spent != Spent::default());
            prop_assert_eq!(shared, walked);
            Ok(())
        })?;
    }

    /// Shares of requests that are told together are the sums of their shares one by one.
    #[test]
    fn shares_told_together_are_the_sums_of_shares_told_one_by_one(steps in steps(), by in 1_u32..40, estimator in 0..2) {
        let timeline = told(&steps);
        let estimator = if estimator == 0 { Estimator::Anchored } else { Estimator::Chars4 };
        with_bill(&timeline, estimator, |bill| -> Result<(), TestCaseError> {
            let told = |group: &dyn Fn(u32) -> u32, sum: &dyn Fn(u32) -> u32| {
                let mut sums: BTreeMap<(u32, Thing, When), Total> = BTreeMap::new();
                let mut requests: BTreeMap<(u32, Thing), u64> = BTreeMap::new();
                for chain in 0..timeline.chains.len() as u32 {
                    shares::of_chain(bill, chain, group, &mut |share| {
                        let one = Total { requests: 0, spent: share.spent, cost: share.cost };
                        *sums.entry((sum(share.request), share.thing, share.when)).or_default() += one;
                        *requests.entry((sum(share.request), share.thing)).or_default() += share.requests;
                    });
                }
                (sums, requests)
            };
            let (in_a_row, in_turn) = (|request| request / by, |request| request % by);
            prop_assert_eq!(told(&|request| request, &in_a_row), told(&in_a_row, &in_a_row));
            prop_assert_eq!(told(&|request| request, &in_turn), told(&in_turn, &in_turn));
            Ok(())
        })?;
    }

    /// A thing is new once: its first cost is at one request, and nothing is paid for it earlier.
    #[test]
    fn every_block_has_one_first_cost_before_all_others(steps in steps()) {
        let timeline = told(&steps);
        with_bill(&timeline, Estimator::Anchored, |bill| -> Result<(), TestCaseError> {
            for chain in 0..timeline.chains.len() as u32 {
                let mut paid: BTreeMap<u32, u32> = BTreeMap::new();
                let mut faults = Vec::new();
                let own = |block: u32| {
                    let requests = timeline.requests_of(chain);
                    let end = requests.last().map_or(0, |request| request.outputs.end);
                    (requests.first().map_or(0, |request| request.inputs.start)..end).contains(&block)
                };
                shares::of_chain(bill, chain, |request| request, &mut |share| {
                    let Thing::Block(block) = share.thing else { return };
                    match (share.when, paid.get(&block)) {
                        (When::First, None) if own(block) => drop(paid.insert(block, share.request)),
                        (When::First, Some(&at)) if at == share.request => {}
                        (When::Carried | When::Again, Some(&at)) if at < share.request => {}
                        (When::Carried | When::Again, None) if !own(block) => {}
                        found => faults.push(format!("block {block}: {found:?} at {}", share.request)),
                    }
                });
                prop_assert!(faults.is_empty(), "{:?}", faults);
            }
            Ok(())
        })?;
    }
}
