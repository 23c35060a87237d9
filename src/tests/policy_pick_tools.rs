//! Tools picked by keywords.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::base::data::Data;
use crate::base::id::work;
use crate::base::words::hash;
use crate::logs::timeline::requests::{Marks, Timeline};
use crate::tests::timeline_builder::{Story, change_word};
use crate::whatif::catalog::read::Spec;
use crate::whatif::catalog::{Catalog, DefinitionSource};
use crate::whatif::pick_tools::outcome::{PickTools, RecallAt};
use crate::whatif::pick_tools::{Empty, Overlap, Params, PickPolicy, PickScope, Rules, Score, UnsafeDefault};
use crate::whatif::sim::figures::Portion;
use crate::whatif::tools::stage::Chains;
use crate::whatif::tools::{Bag, Tools};

const SHEET: &str = include_str!("../../rules/policies/pick_tools.toml");

fn params() -> Params {
    #[derive(serde::Deserialize)]
    struct Sheet {
        params: Params,
    }
    toml_edit::de::from_str::<Sheet>(SHEET).unwrap().params
}

fn rules() -> Rules {
    toml_edit::de::from_str(SHEET).unwrap()
}

fn bag(words: &[&str]) -> Bag {
    words.iter().map(|word| (hash(word), 1)).collect()
}

fn counts(words: &[&str]) -> Vec<(u64, u32)> {
    bag(words).into_iter().collect()
}

/// Tools by name and description.
fn catalog(tools: &[(&str, &str)]) -> Value {
    json!(
        tools
            .iter()
            .map(|(name, about)| json!({ "name": name, "description": about, "input_schema": {} }))
            .collect::<Vec<_>>()
    )
}

/// The sheets that the policy reads.
static SHEETS: LazyLock<Tools> = LazyLock::new(|| Tools::read(&[], &Data::default()).unwrap());

fn policy(timeline: &Timeline, params: &Params, catalog: Option<&Value>) -> Arc<PickPolicy> {
    let spec = Spec::parse("tools.json").unwrap();
    let given = catalog.map(|catalog| Catalog::read([(&spec, catalog.to_string().as_str())]).unwrap());
    params.check().unwrap();
    let tools = Tools { catalog: given.map(|catalog| (catalog, DefinitionSource::Given)), ..SHEETS.clone() };
    Arc::new(PickPolicy::new(timeline, params, &rules(), &tools, None))
}

/// One session: words of each turn, and the tools that it used.
fn log(turns: &[(&[&str], &[&str])]) -> Timeline {
    let mut story = Story::new();
    story.session("a", "/p");
    for (words, tools) in turns {
        story.human(10).words(words).ask(0, 10, 1);
        tools.iter().for_each(|tool| _ = story.calls(tool, "", 1));
        tools.iter().for_each(|_| _ = story.result(1));
    }
    story.ask(0, 10, 1);
    story.done()
}

fn picked(timeline: &Timeline, params: &Params, catalog: &Value) -> Vec<Vec<String>> {
    let picks = policy(timeline, params, Some(catalog)).picks(timeline, 0);
    picks.into_iter().map(|picks| picks.picks.into_iter().map(|pick| pick.tool).collect()).collect()
}

fn outcome(timeline: &Timeline, params: &Params, catalog: &Value) -> PickTools {
    policy(timeline, params, Some(catalog)).outcome(timeline)
}

/// policies.md 9: Q = {weather, paris}, T = {get, weather, city}.
#[test]
fn scores_are_those_of_the_golden_vector() {
    let (query, tool) = (bag(&["weather", "paris"]), counts(&["get", "weather", "city"]));
    let expected = [
        (Overlap::Tool, 1, 3),
        (Overlap::Query, 1, 2),
        (Overlap::Jaccard, 1, 4),
        (Overlap::Smaller, 1, 2),
        // 1 / (√2 · √3), squared.
        (Overlap::Cosine, 1, 6),
    ];
    for (overlap, numerator, denominator) in expected {
        let score = Score::new(overlap, &query, &tool);
        assert_eq!((score.numerator, score.denominator, score.shared), (numerator, denominator, 1), "{overlap:?}");
        assert!(score.is_at_least(50_000), "{overlap:?}");
    }
    let third = Score::new(Overlap::Tool, &query, &tool);
    assert!(third.is_at_least(333_333) && !third.is_at_least(333_334));
    let root = Score::new(Overlap::Cosine, &query, &tool);
    assert!(root.is_at_least(408_248) && !root.is_at_least(408_249));
}

/// policies.md 6.2: server and tool are words of an MCP tool, what stands in front of them is none.
#[test]
fn the_prefix_of_mcp_tools_is_no_word_of_them() {
    let tools = catalog(&[("mcp__weather__get", "city"), ("mcp__x__mcp", "city")]);
    let timeline = log(&[(&["weather", "paris"], &[])]);
    let third = |min_score: f64| picked(&timeline, &Params { min_score, ..params() }, &tools);
    assert_eq!(third(0.333_333), [["mcp__weather__get"]]);
    assert_eq!(third(0.333_334), [[""; 0]; 1]);
    let timeline = log(&[(&["mcp"], &[])]);
    assert_eq!(picked(&timeline, &params(), &tools), [["mcp__x__mcp"]], "unless it is called so");
}

#[test]
fn nothing_shared_and_nothing_to_share_is_the_score_zero() {
    for overlap in [Overlap::Tool, Overlap::Query, Overlap::Jaccard, Overlap::Smaller, Overlap::Cosine] {
        for (query, tool) in [
            (bag(&[]), counts(&["a"])),
            (bag(&["a"]), counts(&[])),
            (bag(&[]), counts(&[])),
            (bag(&["a"]), counts(&["b"])),
        ] {
            let score = Score::new(overlap, &query, &tool);
            assert!(score.is_at_least(0) && !score.is_at_least(1), "{overlap:?}");
        }
    }
}

#[test]
fn ties_go_to_more_shared_words_then_to_catalog_order() {
    let tools = catalog(&[("zz", "weather city"), ("mcp__a__yy", "paris"), ("aa", "weather city")]);
    let timeline = log(&[(&["weather", "city", "paris"], &[])]);
    // zz: {zz, weather, city} 2/3; yy: {yy, paris} 1/2; aa: as zz.
    assert_eq!(picked(&timeline, &params(), &tools), [["zz", "aa", "mcp__a__yy"]]);
    let query = Params { overlap: Overlap::Query, ..params() };
    assert_eq!(picked(&timeline, &query, &tools), [["zz", "aa", "mcp__a__yy"]]);
    let even = catalog(&[("aa", "weather"), ("bb", "weather city paris")]);
    // aa: 1/2; bb: 3/4. By overlap both are 1/2 and 3/3.
    assert_eq!(picked(&timeline, &Params { max_candidates: 1, ..params() }, &even), [["bb"]]);
}

#[test]
fn reasons_are_the_matched_words_in_order() {
    let tools = catalog(&[("getWeather", "City forecasts for a city")]);
    let timeline = log(&[(&["weather", "forecasts", "city", "for"], &[]), (&["nothing"], &[])]);
    let picks = policy(&timeline, &params(), Some(&tools)).picks(&timeline, 0);
    let pick = &picks[0].picks[0];
    assert_eq!(pick.matched, ["city", "forecasts", "weather"]);
    // get, weather, city, forecasts: `for` and `a` are stop words.
    assert_eq!((pick.numerator, pick.denominator, pick.score), (3, 4, 0.75));
    // (1 + 1 + 2)² over 3 · (1 + 1 + 4 + 1): the tool has `city` twice.
    let cosine = Params { overlap: Overlap::Cosine, ..params() };
    let pick = policy(&timeline, &cosine, Some(&tools)).picks(&timeline, 0).remove(0).picks.remove(0);
    assert_eq!((pick.numerator, pick.denominator), (16, 21));
    assert!((pick.score - 0.872_871_56).abs() < 1e-6, "its root: {}", pick.score);
    assert!(picks[1].picks.is_empty() && !picks[1].budget_fallback);
}

#[test]
fn unsafe_tools_are_never_picked_unless_allowed() {
    let tool = |name: &str, more: Value| {
        let mut tool = json!({ "name": name, "description": "weather", "input_schema": {} });
        tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tool
    };
    let tools = json!([
        tool("plain", json!({})),
        tool("declared", json!({ "safe": true, "annotations": { "destructiveHint": true } })),
        tool("refused", json!({ "safe": false, "annotations": { "readOnlyHint": true } })),
        tool("destroys", json!({ "annotations": { "destructiveHint": true } })),
        tool("harmless", json!({ "annotations": { "destructiveHint": false } })),
        tool("reads", json!({ "annotations": { "readOnlyHint": true } })),
    ]);
    let timeline = log(&[(&["weather"], &["destroys", "refused", "plain"])]);
    let wide = Params { max_candidates: 9, ..params() };
    assert_eq!(picked(&timeline, &wide, &tools), [["plain", "declared", "harmless", "reads"]]);
    let spec = Params { unsafe_default: UnsafeDefault::Spec, ..wide.clone() };
    assert_eq!(picked(&timeline, &spec, &tools), [["declared", "harmless", "reads"]]);
    let all = Params { allow_unsafe: true, min_score: 0.0, ..wide.clone() };
    assert_eq!(picked(&timeline, &all, &tools)[0].len(), 6);
    assert_eq!(outcome(&timeline, &wide, &tools).unsafe_needed, 2);
    assert_eq!(outcome(&timeline, &spec, &tools).unsafe_needed, 3);
    assert_eq!(outcome(&timeline, &all, &tools).unsafe_needed, 0);
}

#[test]
fn a_catalog_over_budget_falls_back_on_its_first_tools() {
    let tools = catalog(&[("aa", "x"), ("bb", "y"), ("cc", "weather")]);
    let timeline = log(&[(&["weather"], &["cc"])]);
    let tight = Params { budget_tools: 2, max_candidates: 2, ..params() };
    let picks = policy(&timeline, &tight, Some(&tools)).picks(&timeline, 0);
    assert!(picks[0].budget_fallback && picks[0].picks.iter().all(|pick| pick.matched.is_empty()));
    assert_eq!(picked(&timeline, &tight, &tools), [["aa", "bb"]]);
    let found = outcome(&timeline, &tight, &tools);
    assert_eq!((found.budget_fallbacks, found.recall[&1].recall.k, found.recall[&3].recall.k), (1, 0, 1));
    assert_eq!(picked(&timeline, &Params { budget_tools: 3, ..tight }, &tools), [["cc"]]);
}

#[test]
fn an_empty_pick_shows_what_the_knob_says() {
    let tools = catalog(&[("aa", "weather"), ("bb", "y")]);
    let timeline = log(&[(&["weather"], &["aa", "bb"]), (&["continue"], &["aa", "bb"])]);
    let shown = |on_empty| {
        let params = Params { on_empty, always: vec!["bb".into()], ..params() };
        outcome(&timeline, &params, &tools).shown
    };
    let recall = |k| RecallAt { recall: Portion { k, n: 4 }, turns_covered: Portion { k: k / 2, n: 2 } };
    assert_eq!(shown(Empty::None), recall(2));
    assert_eq!(shown(Empty::All), recall(4));
    let always = shown(Empty::Always);
    assert_eq!((always.recall.k, always.turns_covered.k), (3, 1));
    assert_eq!(outcome(&timeline, &params(), &tools).empty, Portion { k: 1, n: 2 });
}

#[test]
fn picks_of_every_request_may_use_what_was_said_since() {
    let tools = catalog(&[("aa", "weather"), ("bb", "trains")]);
    let mut story = Story::new();
    story.session("a", "/p").human(5).words(&["weather"]).ask(0, 1, 1).calls("aa", "", 1).says(5);
    story.words(&["trains"]).result(1).ask(1, 1, 1).calls("bb", "", 1).result(1).ask(1, 1, 1);
    let timeline = story.done();
    let once = Params { query_context: 1, max_candidates: 2, ..params() };
    assert_eq!(picked(&timeline, &once, &tools), [["aa"]]);
    let each = Params { scope: PickScope::Request, ..once.clone() };
    assert_eq!(picked(&timeline, &each, &tools)[1], ["aa", "bb"]);
    assert_eq!(outcome(&timeline, &once, &tools).shown.recall, Portion { k: 1, n: 2 });
    assert_eq!(outcome(&timeline, &each, &tools).shown.recall, Portion { k: 2, n: 2 });
}

#[test]
fn words_far_into_a_prompt_do_not_count() {
    let tools = catalog(&[("aa", "weather")]);
    let mut timeline = log(&[(&["weather"], &["aa"])]);
    change_word(&mut timeline, 0, |word| word.position = 8);
    assert!(picked(&timeline, &params(), &tools)[0].is_empty());
    assert_eq!(picked(&timeline, &Params { query_chars: 4_500, ..params() }, &tools)[0], ["aa"]);
}

#[test]
fn recall_is_told_by_number_of_picks_and_for_mcp_alone() {
    let tools = catalog(&[("mcp__w__get", "weather paris"), ("forecast", "weather"), ("other", "nothing")]);
    let timeline =
        log(&[(&["weather", "paris"], &["mcp__w__get", "forecast"]), (&["yes"], &["other"]), (&["weather"], &[])]);
    let found = outcome(&timeline, &params(), &tools);
    assert_eq!(found.turns, Portion { k: 2, n: 3 });
    assert_eq!(found.recall[&1].recall, Portion { k: 1, n: 3 });
    assert_eq!(found.recall[&3], RecallAt { recall: Portion { k: 2, n: 3 }, turns_covered: Portion { k: 1, n: 2 } });
    assert_eq!(found.recall.keys().copied().collect::<Vec<_>>(), [1, 3, 5, 10, 24]);
    assert_eq!(
        found.recall_mcp[&1],
        RecallAt { recall: Portion { k: 1, n: 1 }, turns_covered: Portion { k: 1, n: 1 } }
    );
    // mcp__w__get: {get, weather, paris} 2/3; forecast: 1/2.
    assert_eq!(found.scores.iter().sum::<u64>(), 2);
    assert_eq!((found.scores[0], found.scores[7]), (1, 1));
}

#[test]
fn the_bad_news_is_told_first_and_plainly() {
    let timeline = log(&[(&["continue"], &["Read"]), (&["yes"], &["Bash", "Edit"])]);
    let found = policy(&timeline, &params(), None).outcome(&timeline);
    assert!(found.notes[0].contains("would have broken 2 of 2 turns"), "{:?}", found.notes);
    assert!(found.not_estimated.unwrap().contains("--tool-catalog"));
    let six = ["Read", "Bash", "Write", "Edit", "Glob", "Grep"].map(str::to_owned).to_vec();
    let kept = Params { always: six, on_empty: Empty::Always, ..params() };
    let found = policy(&timeline, &kept, None).outcome(&timeline);
    assert_eq!(found.shown.turns_covered, Portion { k: 2, n: 2 });
    assert!(!found.notes[0].contains("broken"), "{:?}", found.notes);
}

#[test]
fn senseless_knobs_are_named() {
    let wrong = Params { min_score: -0.1, ..params() };
    assert!(wrong.check().unwrap_err().message.contains("min_score=-0.1"));
    let wrong = Params { query_chars: 0, ..params() };
    assert!(wrong.check().unwrap_err().message.contains("query_chars=0"));
    let wrong = Params { query_chars: 501, ..params() };
    assert!(wrong.check().unwrap_err().message.contains("query_chars=501: of a word only is known in which 500"));
}

/// The turn began before the window: what it called there counts nowhere, what was asked for is what its tools are picked by.
#[test]
fn of_a_turn_that_a_window_cuts_the_calls_inside_count() {
    let tools = catalog(&[("aa", "weather"), ("bb", "y")]);
    let mut story = Story::new();
    story.session("a", "/p").human(5).words(&["weather"]).ask(0, 1, 1).calls("bb", "", 1).result(1);
    story.ask(1, 1, 1).calls("aa", "", 1).result(1).ask(1, 1, 1);
    let mut timeline = story.done();
    assert_eq!(outcome(&timeline, &params(), &tools).shown.recall, Portion { k: 1, n: 2 });
    timeline.requests[0].marks.set(Marks::UNCOUNTED);
    let found = outcome(&timeline, &params(), &tools);
    assert_eq!((found.shown.recall, found.recall[&1].recall), (Portion { k: 1, n: 1 }, Portion { k: 1, n: 1 }));
    assert_eq!(found.shown.turns_covered, Portion { k: 1, n: 1 });
}

#[test]
fn subagents_keep_their_tools() {
    let mut story = Story::new();
    story.session("a", "/p").human(5).words(&["weather"]).ask(0, 1, 1).calls("aa", "", 1).result(1).ask(0, 1, 1);
    story.agent("x").injected(5).ask(0, 1, 1).calls("bb", "", 1);
    let timeline = story.done();
    let policy = policy(&timeline, &params(), Some(&catalog(&[("aa", "weather"), ("bb", "y")])));
    let found = policy.outcome(&timeline);
    assert_eq!((found.turns.n, found.chains_left_alone, found.shown.recall), (1, 1, Portion { k: 1, n: 1 }));
    assert!(policy.plan(&timeline, 1).steps.iter().all(|step| step.visible.len() == 2 && step.missed.is_empty()));
}

const WORDS: [&str; 6] = ["weather", "paris", "train", "ticket", "city", "music"];

fn some_words() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(WORDS.to_vec(), 0..=WORDS.len())
}

fn any_overlap() -> impl Strategy<Value = Overlap> {
    prop::sample::select(vec![Overlap::Tool, Overlap::Query, Overlap::Jaccard, Overlap::Smaller, Overlap::Cosine])
}

fn tools_of(words: &[Vec<&str>]) -> Value {
    let tools = (0..).zip(words).map(|(number, words): (usize, _)| {
        json!({ "name": format!("t{number}"), "description": words.join(" "), "input_schema": {} })
    });
    json!(tools.collect::<Vec<_>>())
}

#[test]
fn only_tools_that_share_a_word_are_scored() {
    let steps = |count: usize| {
        let words: Vec<String> = (0..count).map(|number| format!("word{number}")).collect();
        let tools: Vec<(&str, &str)> = words.iter().map(|word| (word.as_str(), "")).collect();
        let asked: Vec<[&str; 1]> = words.iter().map(|word| [word.as_str()]).collect();
        let turns: Vec<(&[&str], &[&str])> = asked.iter().map(|word| (&word[..], &word[..])).collect();
        let (timeline, tools) = (log(&turns), catalog(&tools));
        let policy = policy(&timeline, &params(), Some(&tools));
        assert_eq!(policy.picks(&timeline, 0)[count / 2].picks[0].tool, words[count / 2]);
        work::of(|| drop(policy.outcome(&timeline)))
    };
    let [few, many] = [50, 200].map(steps);
    assert!(many < 6 * few, "linear in turns and tools: {few} steps, then {many}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scores_lie_between_nothing_and_all_and_more_words_never_share_fewer(
        overlap in any_overlap(), query in some_words(), tool in some_words(), more in some_words(),
    ) {
        let score = Score::new(overlap, &bag(&query), &counts(&tool));
        prop_assert!(score.numerator <= score.denominator);
        prop_assert!(score.is_at_least(0) && !score.is_at_least(1_000_001));
        let all = query.iter().chain(&more).copied().collect::<Vec<_>>();
        prop_assert!(Score::new(overlap, &bag(&all), &counts(&tool)).shared >= score.shared);
    }

    #[test]
    fn picks_are_few_and_from_the_catalog_and_another_tool_changes_no_score(
        overlap in any_overlap(), query in some_words(), tools in prop::collection::vec(some_words(), 1..6),
        max_candidates in 0usize..4, more in some_words(),
    ) {
        let timeline = log(&[(&query, &[])]);
        let params = Params { overlap, max_candidates, ..params() };
        let picks = policy(&timeline, &params, Some(&tools_of(&tools))).picks(&timeline, 0).remove(0).picks;
        prop_assert!(picks.len() <= max_candidates);
        let wide = Params { max_candidates: 99, ..params };
        let mut wider = tools.clone();
        wider.push(more);
        let all = policy(&timeline, &wide, Some(&tools_of(&tools))).picks(&timeline, 0).remove(0).picks;
        let mut beside = policy(&timeline, &wide, Some(&tools_of(&wider))).picks(&timeline, 0).remove(0).picks;
        prop_assert_eq!(&all[..picks.len()], &picks[..]);
        beside.retain(|pick| pick.tool != format!("t{}", tools.len()));
        prop_assert_eq!(beside, all);
    }

    #[test]
    fn the_order_does_not_depend_on_the_catalog_but_for_exact_ties(
        overlap in any_overlap(), query in some_words(), tools in prop::collection::vec(some_words(), 1..6),
    ) {
        let timeline = log(&[(&query, &[])]);
        let params = Params { overlap, max_candidates: 99, min_score: 0.0, ..params() };
        let there = tools_of(&tools);
        let back = json!(there.as_array().unwrap().iter().rev().collect::<Vec<_>>());
        let scores = |catalog: &Value| {
            let picks = policy(&timeline, &params, Some(catalog)).picks(&timeline, 0).remove(0).picks;
            picks.into_iter().map(|pick| (pick.numerator, pick.denominator, pick.matched.len())).collect::<Vec<_>>()
        };
        let fractions = |scores: Vec<(u64, u64, usize)>| {
            scores.into_iter().map(|(k, n, shared)| (k * 1_000_000 / n, shared)).collect::<Vec<_>>()
        };
        prop_assert_eq!(fractions(scores(&there)), fractions(scores(&back)));
        prop_assert_eq!(scores(&there).len(), tools.len(), "no least score: every safe tool");
    }

    #[test]
    fn recall_never_falls_with_more_picks(
        overlap in any_overlap(), tools in prop::collection::vec(some_words(), 2..6), query in some_words(),
        used in 0usize..2,
    ) {
        let name = format!("t{used}");
        let timeline = log(&[(&query, &[&name, "t1"])]);
        let found = outcome(&timeline, &Params { overlap, ..params() }, &tools_of(&tools));
        let curve = found.recall.values().map(|at| (at.recall.k, at.turns_covered.k)).collect::<Vec<_>>();
        prop_assert!(curve.is_sorted(), "{:?}", curve);
        prop_assert!(found.recall.values().all(|at| at.recall.k <= at.recall.n));
    }
}
