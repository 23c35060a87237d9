//! Showing fewer tools: who is shown what, what is missed, what that does to contexts.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::json;

use super::shipped_sheets::anchored_sizes;
use crate::base::data::Data;
use crate::base::id::work;
use crate::base::toml;
use crate::logs::timeline::requests::{BlockKind, NONE, SegmentCause, Timeline, Trigger};
use crate::tests::timeline_builder::{Story, change_word};
use crate::whatif::catalog::read::Spec;
use crate::whatif::catalog::{Catalog, DefinitionSource};
use crate::whatif::prompt_cache::params::{CacheLayout, CacheRules};
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::figures::Portion;
use crate::whatif::sim::money::Prices;
use crate::whatif::sim::predictors::{Predictions, Successions};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::{ContextView, ExtraCall, Given, Item, ItemKey, Moment, Prefix, StageOutput};
use crate::whatif::tool_filter::Filter;
use crate::whatif::tool_filter::outcome::coverage;
use crate::whatif::tool_filter::params::{Continuation, Params, Predictor, Rules};
use crate::whatif::tool_filter::result::{ALL_TURNS, BreakEven, ToolFilter};
use crate::whatif::tools::inventory::Inventory;
use crate::whatif::tools::plan::{Expand, ToolPlan};
use crate::whatif::tools::stage::Chains;
use crate::whatif::tools::{ToolSet, Tools};

const SHEET: &str = include_str!("../../rules/policies/tool_filter.toml");
/// Static prefix of every chain in these tests, and the size of every block.
const PREFIX: u64 = 20_000;
const BLOCK: u32 = 10;

fn params() -> Params {
    #[derive(serde::Deserialize)]
    struct Sheet {
        params: Params,
    }
    toml_edit::de::from_str::<Sheet>(SHEET).unwrap().params
}

/// The shipped parameters with some set otherwise, as `--set` would.
fn knobs_with(sets: &str) -> Result<Params, String> {
    let mut sheet: toml_edit::DocumentMut = SHEET.parse().unwrap();
    let sets: toml_edit::DocumentMut = sets.parse().unwrap();
    for (key, value) in sets.iter() {
        sheet["params"][key] = value.clone();
    }
    #[derive(serde::Deserialize)]
    #[serde(rename = "part")]
    struct Sheet {
        params: Params,
    }
    toml::parsed::<Sheet>(&sheet.to_string()).map(|sheet| sheet.params).map_err(|cause| cause.message)
}

fn rules() -> Rules {
    toml_edit::de::from_str(SHEET).unwrap()
}

fn always(names: &[&str]) -> Params {
    Params { always: names.iter().map(|name| (*name).to_owned()).collect(), ..params() }
}

/// The sheets that the policy reads.
static SHEETS: LazyLock<Tools> = LazyLock::new(|| Tools::read(&[], &Data::default()).unwrap());

/// A catalog of these tools, in this order, each described by its name and a filler of so many characters.
fn catalog(tools: &[(&str, usize)]) -> Catalog {
    let tools = tools
        .iter()
        .map(|(name, chars)| json!({ "name": name, "description": "x".repeat(*chars), "input_schema": {} }));
    let text = json!(tools.collect::<Vec<_>>()).to_string();
    Catalog::read([(&Spec::parse("tools.json").unwrap(), text.as_str())]).unwrap()
}

/// Tokens of such a tool, by the formula: `{"description":"…","input_schema":{},"name":"…"}` has 46 characters around.
fn size(name: &str, chars: usize) -> u64 {
    let chars = (46 + name.len() + chars) as u64;
    (chars * 343 + 500) / 1000 + 12
}

/// Tokens of `tool_search`: 0.343 per code point of its definition in Anthropic's shape, and 12.
fn fallback() -> u64 {
    let definition = json!({
        "name": "tool_search",
        "description": "Load a tool that is not listed yet. Give its name and why it is needed.",
        "input_schema": {
            "type": "object",
            "properties": { "tool_name": { "type": "string" }, "reason": { "type": "string" } },
            "required": ["tool_name", "reason"],
        },
    });
    (definition.to_string().len() as u64 * 343 + 500) / 1000 + 12
}

fn filter(timeline: &Timeline, params: &Params, catalog: Option<&Catalog>) -> Arc<Filter> {
    filter_with(timeline, params, catalog, None)
}

fn filter_with(
    timeline: &Timeline,
    params: &Params,
    catalog: Option<&Catalog>,
    predictions: Option<&Predictions>,
) -> Arc<Filter> {
    let prefixes = vec![PREFIX; timeline.chains.len()];
    let catalog = catalog.map(|catalog| (catalog.clone(), DefinitionSource::Given));
    let tools = Tools { catalog, ..SHEETS.clone() };
    let predictions = predictions.cloned().unwrap_or_default();
    params.check().unwrap();
    Arc::new(Filter::new(timeline, params, &rules(), &tools, Some(&prefixes), predictions))
}

fn outcome(timeline: &Timeline, params: &Params) -> ToolFilter {
    filter(timeline, params, None).outcome(timeline)
}

/// A turn: the words of the person, and the tools of each answer.
type Turn<'a> = (&'a [&'a str], &'a [&'a [&'a str]]);

/// Sessions of one project, an hour apart, told turn by turn; each turn ends with an answer that calls nothing.
fn log(sessions: &[&[Turn<'_>]]) -> Timeline {
    let mut story = Story::new();
    for (number, session) in sessions.iter().enumerate() {
        story.at(3_600 * number as i64).session(&format!("s{number}"), "/p");
        for (words, requests) in *session {
            story.human(10).words(words);
            for tools in *requests {
                story.ask(1_000, 100, 1);
                for tool in *tools {
                    story.calls(tool, "", 10);
                }
                for _ in *tools {
                    story.result(10);
                }
            }
            story.ask(1_000, 100, 1);
        }
    }
    story.done()
}

fn names(filter: &Filter, set: &ToolSet) -> Vec<String> {
    set.iter().map(|tool| filter.inventory.tools[*tool as usize].definition.name.clone()).collect()
}

fn plan(filter: &Filter, timeline: &Timeline, chain: u32) -> ToolPlan {
    filter.plan(timeline, chain)
}

/// What the first request of each turn of a chain is shown.
fn shown(filter: &Filter, timeline: &Timeline, chain: u32) -> Vec<Vec<String>> {
    let plan = plan(filter, timeline, chain);
    plan.turns.iter().map(|turn| names(filter, &plan.steps_of(turn)[0].visible)).collect()
}

/// The context of a request as the log has it.
fn logged(timeline: &Timeline, request: u32) -> ContextView {
    let segment = timeline.requests[request as usize].segment;
    let earlier = (0..=request).filter(|other| timeline.requests[*other as usize].segment == segment);
    let blocks = earlier.flat_map(|other| {
        let other_request = &timeline.requests[other as usize];
        let outputs = if other == request { 0..0 } else { other_request.outputs.clone() };
        other_request.inputs.clone().chain(outputs)
    });
    let item = |block| Item { key: ItemKey::Block(block), tokens: BLOCK, kept_chars: u32::MAX };
    ContextView { prefix: Prefix { tokens: PREFIX, edition: 0 }, items: blocks.map(item).collect() }
}

/// Every request as it is sent, with what the stage left besides.
fn sent(filter: &Arc<Filter>, timeline: &Timeline) -> Vec<(ContextView, StageOutput)> {
    let mut stage = filter.stage();
    let mut out = Vec::new();
    for (chain, place) in (0u32..).zip(&timeline.chains) {
        stage.begin(timeline, chain);
        let mut sent_before = None;
        for request in place.requests.clone() {
            let (logged, mut view) = (logged(timeline, request), ContextView::default());
            let mut aside = StageOutput::default();
            let before = request.checked_sub(1).map(|before| timeline.requests[before as usize].segment);
            let opens_segment = before != Some(timeline.requests[request as usize].segment);
            let moment = Moment {
                timeline,
                request,
                sent_before,
                before: None,
                cached_before: 0,
                is_warm: false,
                opens_segment,
            };
            stage.apply(&moment, Given { view: &logged, kept: 0 }, &mut view, &mut aside);
            sent_before = Some(view.tokens());
            out.push((view, aside));
        }
    }
    out
}

#[test]
fn misses_are_told_without_sizes_and_savings_are_withheld() {
    let timeline =
        log(&[&[(&["go"], &[&["Read"], &["Task", "Read", "Task"]]), (&["on"], &[&["Task"]]), (&["thanks"], &[])]]);
    let found = outcome(&timeline, &params());
    assert_eq!(found.misses, Portion { k: 1, n: 5 });
    assert_eq!(found.turns, Portion { k: 2, n: 3 });
    assert_eq!(found.turns_missed, Portion { k: 1, n: 2 });
    assert_eq!((found.retries, found.unrecovered), (1, 0));
    assert_eq!((found.removed_tokens, found.break_even), (None, None));
    assert!(found.not_estimated.unwrap().contains("bring them with --tool-catalog"));
    let task = &found.regret[0];
    assert_eq!((task.tool.as_str(), task.calls, task.turns, task.misses), ("Task", 3, 2, 1));
    assert_eq!(task.missed_context_tokens, 1_101);
    let forgetful = outcome(&timeline, &Params { learn: false, ..params() });
    assert_eq!(forgetful.misses, Portion { k: 2, n: 5 });
    let sent = sent(&filter(&timeline, &params(), None), &timeline);
    assert!(
        sent.iter()
            .zip(0..)
            .all(|((view, aside), request)| *view == logged(&timeline, request) && aside.extra.is_empty())
    );
    assert_eq!(sent.iter().map(|(_, aside)| aside.noticed.len()).sum::<usize>(), 1);
}

#[test]
fn nothing_changes_where_everything_is_always_shown_or_the_filter_is_off() {
    let timeline = log(&[&[(&["go"], &[&["Read"], &["Task"]])], &[(&["go"], &[&["Bash"]])]]);
    let tools = catalog(&[("Task", 900), ("Read", 300), ("Bash", 10)]);
    let idle = [
        always(&["*"]),
        Params { enabled: false, ..params() },
        Params { skip_cacheable: true, ..params() },
        always(&["Nothing"]),
        Params { predictor: Predictor::TfCosine, ..always(&[]) },
    ];
    for params in idle {
        let filter = filter(&timeline, &params, Some(&tools));
        for (request, (view, aside)) in (0..).zip(sent(&filter, &timeline)) {
            assert_eq!(view, logged(&timeline, request), "{params:?}");
            assert!(aside.extra.is_empty() && aside.noticed.is_empty(), "{params:?}");
        }
        assert_eq!(filter.outcome(&timeline).misses.k, 0);
        assert_eq!(filter.outcome(&timeline).removed_tokens.unwrap_or(0), 0);
    }
    let skipped = filter(&timeline, &Params { skip_cacheable: true, ..params() }, Some(&tools)).outcome(&timeline);
    assert!(skipped.notes.iter().any(|note| note.contains("nothing changes")), "{:?}", skipped.notes);
}

#[test]
fn an_appended_definition_leaves_the_prefix_alone_and_stays() {
    let timeline = log(&[&[(&["go"], &[&["Read"], &["Task"], &["Task"]])]]);
    let tools = catalog(&[("Task", 900), ("Read", 300), ("Web", 600)]);
    let filter = filter(&timeline, &always(&["Read"]), Some(&tools));
    let sent = sent(&filter, &timeline);
    let hidden = size("Task", 900) + size("Web", 600);
    let prefix = sent[0].0.prefix;
    assert_eq!(prefix.tokens, PREFIX - hidden + fallback());
    assert_ne!(prefix.edition, 0);
    assert!(sent.iter().all(|(view, _)| view.prefix == prefix));
    // The second request answers with Task: one more request asks for it, its definition follows what came in.
    let definition = u32::try_from(size("Task", 900) + 150).unwrap();
    let before = prefix.tokens + u64::from(BLOCK) * 3;
    let retry = ExtraCall {
        cause: "tool_retry",
        model: None,
        is_before: false,
        read: before,
        write: 0,
        uncached: 0,
        output: 0,
    };
    assert_eq!(sent[1].1.extra, [retry]);
    let made = sent[1].0.items[3];
    assert!(matches!(made.key, ItemKey::Made(_)) && made.tokens == definition);
    for (view, aside) in &sent[2..] {
        assert_eq!(view.items[..4], sent[1].0.items[..]);
        assert!(aside.extra.is_empty() && aside.noticed.is_empty());
    }
}

#[test]
fn an_appended_definition_is_appended_again_after_a_compaction() {
    let mut story = Story::new();
    story.session("a", "/p").human(10).ask(0, 100, 1).calls("Task", "", 5).result(5).ask(100, 10, 1).says(5);
    story.compaction(Trigger::Auto, None, 50).human(10).ask(0, 60, 1).says(5).human(5).ask(60, 10, 1);
    let timeline = story.done();
    let tools = catalog(&[("Task", 900), ("Read", 300)]);
    let sent = sent(&filter(&timeline, &always(&["Read"]), Some(&tools)), &timeline);
    let made = |view: &ContextView| view.items.iter().position(|item| matches!(item.key, ItemKey::Made(_)));
    assert_eq!(made(&sent[0].0), Some(1));
    assert_eq!(made(&sent[1].0), Some(1));
    // Summary, prompt, then the definition; there it stays.
    assert_eq!(made(&sent[2].0), Some(2));
    assert_eq!(made(&sent[3].0), Some(2));
    assert_eq!(sent[3].0.items.len(), 5);
}

#[test]
fn a_rebuilt_head_is_another_prefix_and_costs_the_request_that_asked() {
    let timeline = log(&[&[(&["go"], &[&["Read"], &["Task"], &["Task"]])]]);
    let tools = catalog(&[("Task", 900), ("Read", 300), ("Web", 600)]);
    let params = Params { expand: Expand::RetryRebuild, ..always(&["Read"]) };
    let filter = filter(&timeline, &params, Some(&tools));
    let sent = sent(&filter, &timeline);
    let (first, second) = (sent[0].0.prefix, sent[1].0.prefix);
    assert_eq!(second.tokens, first.tokens + size("Task", 900));
    assert_ne!(second.edition, first.edition);
    assert_eq!(sent[2].0.prefix, second);
    assert!(sent.iter().all(|(view, _)| view.items.iter().all(|item| matches!(item.key, ItemKey::Block(_)))));
    // It reads what the first request had sent and writes the two blocks that came since.
    let read = sent[0].0.tokens();
    assert_eq!(
        sent[1].1.extra,
        [ExtraCall { cause: "tool_retry", model: None, is_before: true, read, write: 20, uncached: 0, output: 0 }]
    );
    assert_eq!(filter.outcome(&timeline).set_changes, 1);
}

#[test]
fn what_nothing_makes_good_is_noticed_as_unrecovered() {
    let timeline = log(&[&[(&["go"], &[&["Task", "Task"], &["Task"], &["Read"]])]]);
    let lost = [
        Params { expand: Expand::Fail, ..params() },
        Params { fallback: false, ..params() },
        Params { max_retries: 0, ..params() },
    ];
    for params in lost {
        let filter = filter(&timeline, &params, None);
        let found = filter.outcome(&timeline);
        assert_eq!((found.misses.k, found.retries, found.unrecovered), (1, 0, 1));
        let noticed = sent(&filter, &timeline).into_iter().flat_map(|(_, aside)| aside.noticed);
        let classes = noticed.map(|noticed| (noticed.class.into_str(), noticed.call)).collect::<Vec<_>>();
        assert_eq!(classes, [("tool_miss", 0), ("unrecovered", 0)]);
    }
}

#[test]
fn what_was_learned_ends_with_its_session() {
    let timeline = log(&[&[(&["go"], &[&["Task", "Read"]]), (&["on"], &[])], &[(&["go"], &[&["Task"]])]]);
    let filter = filter(&timeline, &params(), None);
    assert_eq!(shown(&filter, &timeline, 0), [vec!["Read"], vec!["Read", "Task"]]);
    assert_eq!(shown(&filter, &timeline, 1), [["Read"]]);
    assert_eq!(filter.outcome(&timeline).misses.k, 2);
}

#[test]
fn the_visible_set_keeps_the_order_of_the_catalog() {
    let timeline = log(&[&[(&["go"], &[&["Zed", "Alpha"]])]]);
    let tools = catalog(&[("Zed", 1), ("Edit", 1), ("Alpha", 1)]);
    let filter = filter(&timeline, &always(&["Alpha", "Zed"]), Some(&tools));
    assert_eq!(shown(&filter, &timeline, 0)[0], ["Zed", "Alpha"]);
}

#[test]
fn names_of_the_always_list_that_mean_no_tool_are_told() {
    let timeline = log(&[&[(&["go"], &[&["mcp__git__get", "Reed"]])]]);
    let notes = |names: &[&str]| outcome(&timeline, &always(names)).notes.join("\n");
    // Grep is a tool of the client, whether these logs use it or not.
    assert!(!notes(&["Grep", " exec ", "mcp__git__*", "Reed", "*"]).contains("no tool has"));
    let told = notes(&["Grep", "Bsh", "mcp__hub__*"]);
    assert!(told.contains("no tool has these names of `always`: Bsh, mcp__hub__*"), "{told}");
}

#[test]
fn names_mean_tools_through_aliases_stars_and_commas() {
    let timeline = log(&[&[(&["go"], &[&["Read", "Bash", "mcp__git__get", "mcp__git__put", "Task"]])]]);
    let params = knobs_with(r#"always = " read , exec/bash,mcp__git__* ""#).unwrap();
    let filter = filter(&timeline, &params, None);
    assert_eq!(shown(&filter, &timeline, 0)[0], ["Bash", "Read", "mcp__git__get", "mcp__git__put"]);
}

#[test]
fn recency_remembers_so_many_turns() {
    let turns: &[Turn<'_>] = &[(&["a"], &[&["Task"]]), (&["b"], &[&["Web"]]), (&["c"], &[]), (&["d"], &[])];
    let timeline = log(&[turns]);
    let shown = |turns| {
        let params = Params { predictor: Predictor::Recency, recency_turns: turns, learn: false, ..always(&["Read"]) };
        shown(&filter(&timeline, &params, Some(&catalog(&[("Read", 1)]))), &timeline, 0)
    };
    assert_eq!(shown(1), [vec!["Read"], vec!["Read", "Task"], vec!["Read", "Web"], vec!["Read"]]);
    assert_eq!(shown(2), [vec!["Read"], vec!["Read", "Task"], vec!["Read", "Task", "Web"], vec!["Read", "Web"]]);
}

#[test]
fn proposals_are_filled_up_and_cut() {
    let timeline = log(&[&[(&["a"], &[&["Task", "Web"]]), (&["b"], &[])]]);
    let tools = catalog(&[("Alpha", 1), ("Beta", 1), ("Task", 1), ("Web", 1)]);
    let shown = |min_tools, max_tools| {
        let predictor = Predictor::Recency;
        let params = Params { predictor, min_tools, max_tools, learn: false, ..always(&["Beta"]) };
        shown(&filter(&timeline, &params, Some(&tools)), &timeline, 0)[1].clone()
    };
    assert_eq!(shown(0, Some(1)), ["Beta", "Task"]);
    assert_eq!(shown(3, None), ["Alpha", "Beta", "Task", "Web"]);
    assert_eq!(shown(0, None), ["Beta", "Task", "Web"]);
}

#[test]
fn continuations_can_be_shown_everything() {
    let timeline = log(&[&[(&["a"], &[&["Read"], &["Task"]])]]);
    let tools = catalog(&[("Read", 1), ("Task", 1)]);
    let params = Params { continuation: Continuation::All, ..always(&["Read"]) };
    let filter = filter(&timeline, &params, Some(&tools));
    let found = filter.outcome(&timeline);
    assert_eq!((found.misses.k, found.set_changes), (0, 1));
    let editions = sent(&filter, &timeline).iter().map(|(view, _)| view.prefix.edition).collect::<Vec<_>>();
    assert!(editions[0] != 0 && editions[1..].iter().all(|edition| *edition == 0), "{editions:?}");
}

/// The query "weather paris paris" counts twice: 2 and 4.
#[test]
fn tf_cosine_ranks_by_angle_and_keeps_catalog_order() {
    let about = |name: &str, words: &str| json!({ "name": name, "description": words, "input_schema": {} });
    let tools = json!([
        about("t_one", "weather city"),
        about("t_two", "paris"),
        about("t_six", "database tables"),
        about("named", "alpha beta gamma delta epsilon zeta theta iota kappa")
    ]);
    let text = tools.to_string();
    let tools = Catalog::read([(&Spec::parse("t.json").unwrap(), text.as_str())]).unwrap();
    let mut story = Story::new();
    story.session("a", "/p").human(10).words(&["weather", "paris", "the"]).ask(0, 100, 1);
    story.human(10).words(&["the"]).ask(100, 10, 1).human(10).words(&["named"]).ask(110, 10, 1);
    story.human(10).ask(120, 10, 1).human(10).ask(130, 10, 1);
    let mut timeline = story.done();
    change_word(&mut timeline, 1, |word| word.count = 2);
    let shown = |top_k, min_score| {
        let params = Params { predictor: Predictor::TfCosine, top_k, min_score, ..always(&[]) };
        shown(&filter(&timeline, &params, Some(&tools)), &timeline, 0)
    };
    assert_eq!(shown(1, 0.01)[0], ["t_two"]);
    assert_eq!(shown(2, 0.01)[0], ["t_one", "t_two"]);
    assert_eq!(shown(3, 0.01)[0], ["t_one", "t_two"]);
    // cos(t_one): its terms are t_one, weather, city: 2 / (√20 · √3) = 0.258; cos(t_two): 4 / (√20 · √2) = 0.632.
    assert_eq!(shown(2, 0.259)[0], ["t_two"]);
    assert_eq!(shown(2, 0.258)[0], ["t_one", "t_two"]);
    // The stop word alone is no query, but the message before it is.
    assert_eq!(shown(1, 0.01)[1], ["t_two"]);
    // A tool whose name is written is added, whatever its rank.
    assert_eq!(shown(1, 0.01)[2], ["t_two", "named"]);
    assert_eq!(shown(4, 0.9)[0].len(), 4, "a catalog that is no larger than top_k is shown whole");
    assert_eq!(shown(0, 0.01)[0].len(), 4, "no always list and no proposals: everything");
    let strict = Params { predictor: Predictor::TfCosine, top_k: 0, ..always(&["t_six"]) };
    assert_eq!(self::shown(&filter(&timeline, &strict, Some(&tools)), &timeline, 0)[2], ["t_six"]);
}

#[test]
fn a_turn_without_any_word_is_shown_everything_by_tf_cosine() {
    let mut story = Story::new();
    story.session("a", "/p").human(10).ask(0, 100, 1);
    let timeline = story.done();
    let params = Params { predictor: Predictor::TfCosine, top_k: 1, ..always(&[]) };
    let tools = catalog(&[("Read", 1), ("Task", 1)]);
    assert_eq!(shown(&filter(&timeline, &params, Some(&tools)), &timeline, 0)[0], ["Read", "Task"]);
}

#[test]
fn markov_knows_nothing_later_than_the_start_of_the_session() {
    // Both sessions run at the same time; the third begins when both are over.
    let mut story = Story::new();
    story
        .session("a", "/p")
        .human(1)
        .ask(0, 1, 1)
        .calls("Read", "", 1)
        .result(1)
        .ask(0, 1, 1)
        .calls("Web", "", 1)
        .result(1);
    story
        .wait(7_200)
        .human(1)
        .ask(0, 1, 1)
        .calls("Read", "", 1)
        .result(1)
        .ask(0, 1, 1)
        .calls("Web", "", 1)
        .result(1)
        .human(1)
        .ask(0, 1, 1);
    story.at(3_600).session("b", "/p").human(1).ask(0, 1, 1).calls("Read", "", 1).result(1).human(1).ask(0, 1, 1);
    story.at(10_800).session("c", "/p").human(1).ask(0, 1, 1).calls("Read", "", 1).result(1).human(1).ask(0, 1, 1);
    let timeline = story.done();
    let params = Params { predictor: Predictor::Markov, learn: false, ..always(&["Glob"]) };
    let filter = filter(&timeline, &params, Some(&catalog(&[("Glob", 1)])));
    assert_eq!(shown(&filter, &timeline, 0)[1], ["Glob"], "its own session does not count");
    assert_eq!(shown(&filter, &timeline, 1)[1], ["Glob", "Web"]);
    let inventory = &filter.inventory;
    let successions = Successions::new(&timeline, inventory);
    let (read, web) = (inventory.find("Read").unwrap(), inventory.find("Web").unwrap());
    let start = |session: usize| timeline.sessions[session].ts_first;
    assert_eq!(successions.after(read, start(0)), Vec::<u32>::new());
    assert_eq!(successions.after(read, start(1)), [web]);
    assert_eq!(successions.after(web, start(1)), Vec::<u32>::new(), "Read came again only later");
    assert_eq!(successions.after(web, start(2)), [read]);
}

#[test]
fn predictions_of_others_are_replayed_and_faults_in_them_named() {
    let timeline = log(&[&[(&["a"], &[&["Read"], &["Task"]]), (&["b"], &[])]]);
    let text = "{\"message_id\": \"message 1\", \"tools\": [\"Task\", \"Nope\", \"Task\"]}\n\n";
    let predictions = Predictions::parse(text, "p.jsonl").unwrap();
    let params = Params { predictor: Predictor::Replay("p.jsonl".into()), ..always(&["Read"]) };
    let filter = filter_with(&timeline, &params, None, Some(&predictions));
    assert_eq!(shown(&filter, &timeline, 0), [vec!["Read", "Task"], vec!["Read"]]);
    let notes = filter.outcome(&timeline).notes;
    assert!(notes.iter().any(|note| note.ends_with("dropped: Nope")), "{notes:?}");
    let error = Predictions::parse("{}\n", "p.jsonl").unwrap_err();
    assert!(error.message.starts_with("p.jsonl:1: "), "{}", error.message);
}

#[test]
fn senseless_knobs_are_named() {
    let wrong = [
        ("min_score = 1.5", "min_score=1.5"),
        ("min_tools = 5\nmax_tools = 3", "max_tools=3"),
        ("predictor = \"recency\"\nrecency_turns = 0", "recency_turns=0"),
        ("description_chars = 0", "description_chars=0"),
    ];
    for (sets, knob) in wrong {
        let error = knobs_with(sets).unwrap().check().unwrap_err();
        assert!(error.message.contains(knob), "{}", error.message);
    }
    for (sets, knob) in [("predictor = \"guess\"", "guess"), ("expand = \"maybe\"", "maybe"), ("tools = 1", "tools")] {
        let error = knobs_with(sets).unwrap_err();
        assert!(error.contains(knob), "{error}");
    }
    assert_eq!(knobs_with("expand = \"retry-rebuild\"").unwrap().expand, Expand::RetryRebuild);
    params().check().unwrap();
}

/// policies.md 5.2 and 5.3: 20,000 saved per request against 3,800,000 per miss, one in 190; 45 requests per miss,
/// C = 95.5k and d = 600 need about 2.4k tokens.
#[test]
fn break_even_has_the_numbers_of_the_specification() {
    let rule = BreakEven {
        removed_tokens: 10_000,
        context_tokens: 100_000,
        definition_tokens: 600,
        read_u20: 2,
        write_u20: 40,
        requests_per_miss: Some(45),
    };
    assert_eq!((rule.saved_per_request_u20(), rule.rebuild_u20()), (20_000, 3_800_000));
    assert_eq!((rule.rebuild_pays_from(), rule.append_pays_from()), (Some(190), Some(12)));
    let usual = BreakEven { context_tokens: 95_500, ..rule };
    assert_eq!(usual.append_pays_from_tokens(), Some(2_389));
    let nothing = BreakEven { removed_tokens: 0, requests_per_miss: None, ..rule };
    assert_eq!((nothing.rebuild_pays_from(), nothing.append_pays_from_tokens()), (None, None));
}

#[test]
fn sums_are_those_of_the_log() {
    let timeline = log(&[&[(&["go"], &[&["Read"], &["Task"]])]]);
    let tools = catalog(&[("Task", 900), ("Read", 300)]);
    let found = filter(&timeline, &always(&["Read"]), Some(&tools)).outcome(&timeline);
    assert_eq!(found.removed_tokens, Some(3 * size("Task", 900)));
    assert_eq!(found.visible, Portion { k: 1 + 1 + 2, n: 3 });
    let rule = found.break_even.unwrap();
    assert_eq!(
        (rule.removed_tokens, rule.context_tokens, rule.definition_tokens),
        (size("Task", 900) - fallback(), 1_101, size("Task", 900))
    );
    assert_eq!((rule.write_u20, rule.requests_per_miss), (25, Some(3)));
    assert_eq!(found.accuracy.recall, Portion { k: 1, n: 2 });
    assert_eq!(
        (found.accuracy.recall_rest, found.accuracy.precision),
        (Portion { k: 0, n: 1 }, Portion { k: 1, n: 1 })
    );
    let gap = found.unexplained.unwrap();
    let total = size("Task", 900) + size("Read", 300);
    assert_eq!((gap.chains, gap.min, gap.max, gap.too_small), (1, PREFIX - total, PREFIX - total, 0));
    let known = Params { system_tokens: Some(PREFIX), ..always(&["Read"]) };
    let gap = filter(&timeline, &known, Some(&tools)).outcome(&timeline).unexplained.unwrap();
    assert_eq!((gap.median, gap.system_tokens), (total, Some(PREFIX)));
}

#[test]
fn a_request_that_misses_two_tools_asks_for_both_at_once() {
    let timeline = log(&[&[(&["go"], &[&["Task", "Web"], &["Read"], &["Read"]])]]);
    let tools = catalog(&[("Task", 900), ("Read", 300), ("Web", 600)]);
    let found = filter(&timeline, &always(&["Read"]), Some(&tools)).outcome(&timeline);
    let rule = found.break_even.unwrap();
    assert_eq!((found.misses.k, found.retries, rule.requests_per_miss), (2, 1, Some(4)));
    assert_eq!(rule.definition_tokens, size("Task", 900) + size("Web", 600));
}

#[test]
fn a_catalog_that_the_prefix_could_not_hold_counts_for_nothing_if_asked() {
    let timeline = log(&[&[(&["go"], &[&["Read"]])]]);
    let tools = catalog(&[("Task", 100_000), ("Read", 300)]);
    let counted = filter(&timeline, &always(&["Read"]), Some(&tools)).outcome(&timeline);
    assert_eq!(counted.unexplained.unwrap().too_small, 1);
    let mut params = always(&["Read"]);
    params.catalog.timeline = true;
    assert_eq!(filter(&timeline, &params, Some(&tools)).outcome(&timeline).removed_tokens, Some(0));
}

#[test]
fn inferred_sizes_share_what_the_system_prompt_leaves() {
    let timeline = log(&[&[(&["go"], &[&["Read", "Task", "Web"]])]]);
    let params = Params { system_tokens: Some(PREFIX - 1_000), ..always(&["Read"]) };
    let filter = filter(&timeline, &params, None);
    let found = filter.outcome(&timeline);
    assert_eq!((found.catalog.source.as_str(), found.not_estimated.clone()), ("inferred", None));
    let definitions = filter.definitions(&timeline, 0).unwrap();
    assert_eq!(definitions.tokens, [334, 333, 333]);
    assert_eq!(found.removed_tokens, Some(2 * 666));
    assert!(found.notes.iter().any(|note| note.starts_with("inferred")));
}

#[test]
fn what_a_project_used_is_gathered_once_for_all_its_chains() {
    let steps = |sessions: usize| {
        let session: &[Turn<'_>] = &[(&["go"], &[&["Read"]])];
        let timeline = log(&vec![session; sessions]);
        let params = Params { system_tokens: Some(PREFIX - 1_000), ..always(&["Read"]) };
        let filter = filter(&timeline, &params, None);
        work::of(|| (0..timeline.chains.len() as u32).for_each(|chain| drop(filter.definitions(&timeline, chain))))
    };
    assert!(steps(400) <= 5 * steps(100));
}

#[test]
fn definitions_are_gone_through_once_while_the_same_ones_are_sent() {
    let names: Vec<String> = (0..1_000).map(|number| format!("tool{number}")).collect();
    let tools: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 10)).collect();
    let steps = |requests: usize| {
        let called: &[&str] = &["tool7"];
        let timeline = log(&[&[(&["go"], &vec![called; requests])]]);
        let filter = filter(&timeline, &always(&["tool7"]), Some(&catalog(&tools)));
        work::of(|| drop(sent(&filter, &timeline)))
    };
    let [few, many] = [2, 20].map(steps);
    assert!(few >= 1_000 && many < 3 * few, "{few} steps, then {many}");
}

#[test]
fn shorter_descriptions_save_without_hiding_anything() {
    let timeline = log(&[&[(&["go"], &[&["Read"]])]]);
    let tools = catalog(&[("Task", 900), ("Read", 300)]);
    let params = Params { description_chars: Some(100), ..always(&["*"]) };
    let filter = filter(&timeline, &params, Some(&tools));
    let saved = size("Task", 900) - size("Task", 100) + size("Read", 300) - size("Read", 100);
    let sent = sent(&filter, &timeline);
    assert!(
        sent.iter()
            .all(|(view, _)| view.prefix.tokens == PREFIX - saved && view.prefix.edition == sent[0].0.prefix.edition)
    );
    assert_ne!(sent[0].0.prefix.edition, 0);
    assert_eq!(filter.outcome(&timeline).misses.k, 0);
}

#[test]
fn coverage_counts_main_threads_calls_and_turns() {
    let mut story = Story::new();
    story.session("a", "/p");
    for tools in [&["Read", "Bash", "Task"][..], &["Read"], &["Task", "Web"], &[], &["Task"]] {
        story.human(1).ask(0, 1, 1);
        tools.iter().for_each(|tool| _ = story.calls(tool, "", 1));
        tools.iter().for_each(|_| _ = story.result(1));
    }
    story.ask(0, 1, 1).agent("x").human(1).ask(0, 1, 1).calls("Task", "", 1);
    let timeline = story.done();
    let inventory = Inventory::new(&timeline, &SHEETS);
    let six = inventory.matching(&params().always);
    let found = coverage(&timeline, &inventory, &six, &[1, 2]);
    assert_eq!((found.tools, found.calls, found.turns), (4, Portion { k: 3, n: 7 }, Portion { k: 1, n: 4 }));
    let missed = |turns: u32| (found.recency[&turns].turns_missed, found.recency[&turns].misses);
    assert_eq!(missed(1), (Portion { k: 3, n: 4 }, Portion { k: 4, n: 7 }));
    assert_eq!(missed(2), (Portion { k: 2, n: 4 }, Portion { k: 2, n: 7 }));
    assert_eq!(missed(ALL_TURNS), (Portion { k: 2, n: 4 }, Portion { k: 2, n: 7 }));
}

#[test]
fn a_new_segment_without_the_place_of_a_definition_gets_it_at_its_end() {
    let mut story = Story::new();
    story
        .session("a", "/p")
        .human(1)
        .ask(0, 10, 1)
        .says(1)
        .human(1)
        .ask(10, 1, 1)
        .calls("Task", "", 1)
        .result(1)
        .ask(11, 1, 1);
    story.segment(SegmentCause::Rewind).human(1).ask(5, 5, 1);
    let timeline = story.done();
    let tools = catalog(&[("Task", 900), ("Read", 300)]);
    let sent = sent(&filter(&timeline, &always(&["Read"]), Some(&tools)), &timeline);
    let last = &sent[3].0.items;
    assert_eq!(last.len(), 2);
    assert!(matches!(last[1].key, ItemKey::Made(_)));
}

/// Through the driver: three requests of one turn after a first one, an hour of life.
#[test]
fn a_fixed_list_is_read_from_the_cache_and_a_changed_one_is_written_anew() {
    let mut story = Story::new();
    story.session("a", "/p").hour().human(400).ask(0, 30_000, 8).calls("Read", "", 40).result(4_000);
    story.ask(30_000, 1_500, 8).calls("Task", "", 40).result(4_000).ask(31_500, 1_500, 8).says(40);
    story.human(40).ask(33_000, 200, 8);
    let timeline = story.done();
    let (sizes, cache_rules, prices) = (anchored_sizes(&timeline), CacheRules::shipped(), Prices::shipped());
    let tools = catalog(&[("Task", 3_000), ("Read", 300), ("Web", 3_000)]);
    let run = |params: Option<Params>| {
        let stage = params.map(|params| filter(&timeline, &params, Some(&tools)));
        let mut stages: Vec<_> = stage.iter().map(Filter::stage).collect();
        Simulator::new(&timeline, &sizes, cache_rules, prices).run(0..timeline.chains.len() as u32, &mut stages, None)
    };
    let baseline = run(None);
    assert_eq!(run(Some(always(&["*"]))), baseline);
    let appended = run(Some(always(&["Read"])));
    let rebuilt = run(Some(Params { expand: Expand::RetryRebuild, ..always(&["Read"]) }));
    assert_eq!((appended.extra.len(), rebuilt.extra.len()), (1, 1));
    // The request with the miss: appended, all that was sent before is still good; rebuilt, nothing is.
    assert_eq!(
        appended.requests[1].shared(),
        baseline.requests[1].shared() - size("Task", 3_000) - size("Web", 3_000) + fallback()
    );
    assert_eq!((rebuilt.requests[1].shared(), rebuilt.requests[1].spent().read), (0, 0));
    assert!(rebuilt.requests[2].spent().read > 20_000, "from there on the new head is cached");
    let recent = Params { predictor: Predictor::Recency, learn: false, ..always(&["Read"]) };
    assert_eq!(run(Some(recent)).requests[3].shared(), 0, "another set in the second turn");
}

/// Two requests with a pause between them; the second calls a tool that it was not shown.
fn missed_after(seconds: i64, layout: CacheLayout, expand: Expand) -> (Spent, Spent) {
    let mut story = Story::new();
    story.session("a", "/p").human(400).ask(0, 30_000, 8).calls("Read", "", 40).wait(seconds).result(4_000);
    let read = if seconds < 300 { 30_000 } else { 0 };
    story.ask(read, 31_500 - read, 8).calls("Task", "", 40);
    let timeline = story.done();
    let mut cache_rules = CacheRules::shipped().clone();
    cache_rules.params.layout = layout;
    let tools = catalog(&[("Task", 3_000), ("Read", 300), ("Web", 3_000)]);
    let filter = filter(&timeline, &Params { expand, ..always(&["Read"]) }, Some(&tools));
    let run = Simulator::new(&timeline, &anchored_sizes(&timeline), &cache_rules, Prices::shipped()).run(
        0..1,
        &mut [filter.stage()],
        None,
    );
    assert_eq!(run.extra.len(), 1);
    (run.extra[0].spent, run.requests[1].spent())
}

#[test]
fn a_request_for_a_tool_is_billed_by_the_same_cache_as_all_others() {
    use Expand::{RetryAppend, RetryRebuild};
    for expand in [RetryAppend, RetryRebuild] {
        let (retry, request) = missed_after(10, CacheLayout::None, expand);
        assert_eq!((retry.read, retry.write()), (0, 0), "nothing is cached there");
        assert!(retry.uncached + 4_000 > request.uncached && request.uncached > retry.uncached);
        let (retry, _) = missed_after(10, CacheLayout::AgentRuntime, expand);
        assert!(retry.read > 0 && retry.uncached > 500, "only the static prefix is cached: {retry:?}");
    }
    let (retry, _) = missed_after(10, CacheLayout::ClaudeCode, RetryRebuild);
    assert!(retry.read > 20_000 && retry.write_5m > 1_000 && retry.uncached == 0, "{retry:?}");
    let (retry, _) = missed_after(18_000, CacheLayout::ClaudeCode, RetryRebuild);
    assert!(retry.read == 0 && retry.write_5m > 20_000, "the prefix is dead after five hours: {retry:?}");
    // Appended, the request of the log comes first and writes all of it anew.
    let (retry, request) = missed_after(18_000, CacheLayout::ClaudeCode, RetryAppend);
    assert!(request.read == 0 && retry.read > 20_000 && retry.write() == 0, "{retry:?} {request:?}");
}

const TOOLS: [&str; 6] = ["Read", "Bash", "Task", "Web", "mcp__a__x", "mcp__a__y"];

/// A few sessions of turns of answers, each calling some of [`TOOLS`].
fn any_log() -> impl Strategy<Value = Timeline> {
    let answer = prop::collection::vec(0..TOOLS.len(), 0..3);
    let turn = (prop::collection::vec(0..TOOLS.len(), 0..3), prop::collection::vec(answer, 0..3));
    let session = prop::collection::vec(turn, 1..5);
    prop::collection::vec(session, 1..3).prop_map(|sessions| {
        let mut story = Story::new();
        for (number, session) in sessions.iter().enumerate() {
            story.at(number as i64 * 3_600).session(&format!("s{number}"), "/p");
            for (words, answers) in session {
                story.human(5).words(&words.iter().map(|word| TOOLS[*word]).collect::<Vec<_>>());
                for answer in answers {
                    story.ask(1_000, 10, 1);
                    answer.iter().for_each(|tool| _ = story.calls(TOOLS[*tool], "", 1));
                    answer.iter().for_each(|_| _ = story.result(1));
                }
            }
            story.ask(1_000, 10, 1);
        }
        story.done()
    })
}

fn any_predictor() -> impl Strategy<Value = Predictor> {
    let known = ["none", "recency", "tf-cosine", "markov", "oracle"];
    prop::sample::select(known.to_vec()).prop_map(|name| name.to_owned().try_into().unwrap())
}

fn used(timeline: &Timeline, request: u32) -> BTreeSet<String> {
    let outputs = timeline.requests[request as usize].outputs.clone();
    let blocks = outputs.map(|block| timeline.blocks[block as usize]);
    let calls = blocks.filter(|block| block.kind == BlockKind::ToolUsage && block.call != NONE).map(|block| block.call);
    calls.map(|call| timeline.names.text(timeline.calls[call as usize].tool).to_owned()).collect()
}

fn misses(timeline: &Timeline, params: &Params, tools: &Catalog) -> u64 {
    filter(timeline, params, Some(tools)).outcome(timeline).misses.k
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_used_is_visible_unless_it_is_missed(
        timeline in any_log(), predictor in any_predictor(), learn in any::<bool>(), top_k in 0usize..4,
    ) {
        let tools = catalog(&TOOLS.map(|tool| (tool, 50)));
        let params = Params { predictor, learn, top_k, ..always(&["Read"]) };
        let filter = filter(&timeline, &params, Some(&tools));
        let found = filter.outcome(&timeline);
        let mut misses = 0;
        for chain in 0..timeline.chains.len() as u32 {
            let plan = plan(&filter, &timeline, chain);
            for turn in &plan.turns {
                for (request, step) in turn.clone().zip(plan.steps_of(turn)) {
                    let visible = names(&filter, &step.visible).into_iter().collect::<BTreeSet<_>>();
                    prop_assert!(visible.iter().all(|name| TOOLS.contains(&name.as_str())));
                    prop_assert_eq!(used(&timeline, request).is_subset(&visible), step.missed.is_empty());
                    prop_assert!(step.visible.iter().is_sorted());
                    misses += step.missed.len() as u64;
                }
            }
        }
        prop_assert_eq!(found.misses.k, misses);
        prop_assert_eq!(found.retries > 0, misses > 0);
        for (request, (view, _)) in (0..).zip(sent(&filter, &timeline)) {
            let definitions = filter.definitions(&timeline, 0).unwrap();
            prop_assert!(view.prefix.tokens <= PREFIX + definitions.fallback, "{}", request);
        }
    }

    #[test]
    fn more_shown_is_never_more_missed(
        timeline in any_log(), predictor in any_predictor(), learn in any::<bool>(),
        added in prop::sample::select(TOOLS.to_vec()), less in 1usize..4, more in 0usize..4,
    ) {
        let tools = catalog(&TOOLS.map(|tool| (tool, 50)));
        let base = Params { predictor, learn, top_k: less, recency_turns: less, ..always(&["Read"]) };
        let fewer = misses(&timeline, &base, &tools);
        let wider = Params { always: vec!["Read".into(), added.into()], ..base.clone() };
        prop_assert!(misses(&timeline, &wider, &tools) <= fewer);
        let larger = Params { top_k: less + more, recency_turns: less + more, ..base };
        prop_assert!(misses(&timeline, &larger, &tools) <= fewer);
    }

    #[test]
    fn the_oracle_misses_nothing_with_the_least_set(timeline in any_log()) {
        let tools = catalog(&TOOLS.map(|tool| (tool, 50)));
        let oracle = filter(&timeline, &Params { predictor: Predictor::Oracle, ..always(&["Read"]) }, Some(&tools));
        prop_assert_eq!(oracle.outcome(&timeline).misses.k, 0);
        for chain in 0..timeline.chains.len() as u32 {
            let plan = plan(&oracle, &timeline, chain);
            for turn in &plan.turns {
                let mut needed = turn.clone().flat_map(|request| used(&timeline, request)).collect::<BTreeSet<_>>();
                needed.insert("Read".into());
                let shown = names(&oracle, &plan.steps_of(turn)[0].visible).into_iter().collect::<BTreeSet<_>>();
                prop_assert_eq!(shown, needed);
            }
        }
    }
}
