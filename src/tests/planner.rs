//! The planner: value models, candidates, plans and arguments, against the published vectors and against brute force.
//! Comments name the published defect (`C4`) that a test keeps out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use super::log_builder::{Told, answers, asks, cases, fails, log};
use crate::base::data::{Data, fitting};
use crate::base::key_path::KeyPath;
use crate::base::names::Sym;
use crate::mine::runnable::Runnable;
use crate::planner::candidates::{AnswerMoment, Candidate, Candidates, Declined, NamedArgument, Projected, candidates};
use crate::planner::fail_fast::{FailFast, came_empty};
use crate::planner::intents::prefetch_hint;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::plan::{
    ExpectedCost, KnapsackChoice, KnapsackItem, KnapsackProblem, Plan, intent_boost, knapsack, optimum, plan,
};
use crate::planner::prefetches::DeclineReason;
use crate::planner::published;
use crate::planner::value_models::{LayerPrecedence, Level, ModelLayers, Severity, ValueModel, ValueModels};
use crate::settings::SettingsFile;
use crate::settings::annotations::Annotations;
use crate::settings::tool_model::{CostModel, FieldGroup, FollowUp, SideEffectClass, ToolModel, ValueClass};

// ---- value models --------------------------------------------------------------------------------------------------

/// The published annotations, by tool.
pub fn published_tools() -> BTreeMap<String, ToolModel> {
    #[derive(serde::Deserialize)]
    struct File {
        tools: BTreeMap<String, ToolModel>,
    }
    let text = include_str!("../../rules/annotations/claude_code_published.toml");
    toml_edit::de::from_str::<File>(text).unwrap().tools
}

pub fn shipped_layers(tools: &BTreeMap<String, ToolModel>) -> ModelLayers {
    let mut layers = ModelLayers::default();
    for (tool, model) in tools {
        layers.annotate(tool, model, Level::Shipped, "annotations.toml").unwrap();
    }
    layers
}

pub fn shipped(tools: &BTreeMap<String, ToolModel>) -> ValueModels {
    shipped_layers(tools).resolve(LayerPrecedence::WholeModel).unwrap()
}

/// The models of a user's file alone.
fn of_user(text: &str) -> ValueModels {
    with_user(ModelLayers::default(), text, LayerPrecedence::ByField)
}

pub fn with_user(mut layers: ModelLayers, text: &str, precedence: LayerPrecedence) -> ValueModels {
    layers.user(&SettingsFile::parse(Path::new("pipeline_config.toml"), text).unwrap());
    layers.resolve(precedence).unwrap()
}

pub fn annotated(tools: &[&str], user: &str) -> ValueModels {
    let annotations = Annotations::load(&Data::default()).unwrap();
    let mut layers = ModelLayers::default();
    let of = |tool: &str| annotations.of(tool).map(|found| (found.model, found.origin));
    layers.annotate_reachable(tools.iter().copied(), of).unwrap();
    with_user(layers, user, LayerPrecedence::ByField)
}

fn link(tool: &str, probability: f64) -> FollowUp {
    FollowUp { tool: tool.into(), probability, projection: None, projection_arg: None }
}

#[test]
fn a_users_key_changes_no_other_value_of_the_tool() {
    // A8, B2
    let user = "[tools.Grep]\nspeculate = false\n\n[tools.Grep.cost_model]\nlatency_ms_p50 = 7\n";
    let models = with_user(shipped_layers(&published_tools()), user, LayerPrecedence::ByField);
    let grep = models.get("Grep").unwrap();
    assert_eq!(grep.model.speculate, Some(false));
    assert_eq!(grep.model.cost_model.latency_ms_p50, Some(7));
    assert_eq!((grep.model.cost_model.typical_kb, grep.model.follow_up.len()), (0.3, 3));
    let source = |key: &[&str]| &grep.sources[&KeyPath::from(key)];
    assert_eq!(source(&["tools", "Grep", "speculate"]).place, "pipeline_config.toml:2");
    assert_eq!(source(&["tools", "Grep", "cost_model", "latency_ms_p50"]).place, "pipeline_config.toml:5");
    assert_eq!(source(&["tools", "Grep", "cost_model", "typical_kb"]).level, Level::Shipped);
    assert_eq!(models.problems.iter().filter(|problem| problem.message.contains("hides")).count(), 0);
}

#[test]
fn the_users_file_wins_whenever_it_is_read() {
    let mut layers = ModelLayers::default();
    let user = "[tools.Read]\nvalue_class = \"optional\"\n";
    layers.user(&SettingsFile::parse(Path::new("pipeline_config.toml"), user).unwrap());
    layers.annotate("Read", &published_tools()["Read"], Level::Shipped, "annotations.toml").unwrap();
    let models = layers.resolve(LayerPrecedence::ByField).unwrap();
    let read = &models.get("Read").unwrap().model;
    assert_eq!((read.value_class, read.cost_model.typical_kb), (ValueClass::Optional, 2.5));
}

#[test]
fn published_precedence_replaces_the_whole_model_and_says_what_it_hides() {
    let user = "[tools.Grep]\nspeculate = false\n";
    let models = with_user(shipped_layers(&published_tools()), user, LayerPrecedence::WholeModel);
    let grep = models.get("Grep").unwrap();
    assert_eq!((grep.model.cost_model.typical_kb, grep.model.follow_up.len()), (1.0, 0));
    let hidden = models.problems.iter().find(|problem| problem.message.contains("hides")).unwrap();
    assert_eq!(hidden.key.to_string(), "tools.Grep.follow_up");
    assert_eq!(hidden.message, "hides the shipped links to Read, Edit, Grep");
    assert_eq!(hidden.source.as_ref().unwrap().place, "pipeline_config.toml:1");
}

#[test]
fn equal_verbs_of_two_servers_keep_their_own_models() {
    // B2, and §6.7
    let models = annotated(&["mcp__gitlab__get_issues", "mcp__github__get_issues"], "");
    let link_of = |tool: &str| models.get(tool).unwrap().model.follow_up[0].clone();
    assert_eq!(link_of("mcp__gitlab__get_issues").projection.as_deref(), Some("iid"));
    assert_eq!(link_of("mcp__github__get_issues").projection.as_deref(), Some("number"));
    assert_eq!(link_of("mcp__github__get_issues").tool, "mcp__github__get_issue_comments");
    let host = |tool: &str| models.get(tool).unwrap().model.rate_limit_host.clone();
    // B3: what a link leads to is there too, with the host of its provider.
    assert_eq!(host("mcp__github__get_issue_comments").as_deref(), Some("api.github.com"));
    assert_eq!(host("mcp__gitlab__get_issue_comments"), None);
    let key = KeyPath::from(["tools", "mcp__github__get_issues", "value_class"]);
    let source = &models.get("mcp__github__get_issues").unwrap().sources[&key];
    assert_eq!((source.level, source.place.as_str()), (Level::Provider, "rules/annotations/github.toml"));
}

#[test]
fn a_class_that_changes_something_is_never_speculated() {
    use SideEffectClass::{Indeterminate, MutatesExternal, MutatesLocal, Other, Pure, ReadOnly};
    let expected = [
        (Pure, [true, false, true]),
        (ReadOnly, [true, false, true]),
        (Indeterminate, [false, false, true]),
        (MutatesLocal, [false, false, false]),
        (MutatesExternal, [false, false, false]),
        (Other, [false, false, false]),
    ];
    for (class, verdicts) in expected {
        for (speculate, verdict) in [None, Some(false), Some(true)].into_iter().zip(verdicts) {
            let model = ToolModel { side_effect_class: class, speculate, ..ToolModel::default() };
            // Published: an explicit flag beats every class.
            assert_eq!(published::is_speculatable(&model), speculate.unwrap_or(verdict), "{class:?} {speculate:?}");
            let model = ValueModel { model, ..ValueModel::default() };
            assert_eq!(model.is_speculatable(), verdict, "{class:?} {speculate:?}");
        }
    }
}

#[test]
fn a_wildcard_fills_gaps_but_unlocks_no_known_tool() {
    let user = "[tools.\"*\"]\nspeculate = true\nside_effect_class = \"read_only\"\nfail_fast_after_n = 4\n";
    let models = with_user(shipped_layers(&published_tools()), user, LayerPrecedence::ByField);
    let bash = models.get("Bash").unwrap();
    assert_eq!((bash.model.side_effect_class, bash.model.speculate), (SideEffectClass::Indeterminate, None));
    assert!(!bash.is_speculatable());
    assert_eq!(bash.model.fail_fast_after_n, Some(4));
    assert_eq!(models.get("ToolSearch").unwrap().model.fail_fast_after_n, Some(2));
    assert!(models.get("mcp__x__look").unwrap().is_speculatable());
    // A blanket ban reaches every tool that does not say otherwise.
    let banned =
        with_user(shipped_layers(&published_tools()), "[tools.\"*\"]\nspeculate = false\n", LayerPrecedence::ByField);
    assert!(!banned.get("Read").unwrap().is_speculatable());
}

#[test]
fn a_tool_that_nobody_describes_has_the_defaults_of_the_schema() {
    let models = of_user("");
    assert_eq!(models.get("X"), None);
    let model = models.get_or_default("X");
    assert_eq!((model.model.value_class, model.model.cost_model.typical_kb), (ValueClass::Critical, 1.0));
    assert!(!model.is_speculatable());
}

#[test]
fn value_models_are_written_as_published() {
    let write = |model: &ToolModel| toml_edit::ser::to_string(model).unwrap();
    let read = |text: &str| toml_edit::de::from_str::<ToolModel>(text).unwrap();
    assert_eq!(read(""), ToolModel::default());
    assert_eq!(write(&ToolModel::default()), "value_class = \"critical\"\ncost_model = { typical_kb = 1.0 }\n");
    let group = read("[field_groups.debug]\n").field_groups.remove("debug").unwrap();
    assert_eq!((group.estimated_value, group.default_include, group.fields.len()), (0.5, true, 0));
    let linked = ToolModel { follow_up: vec![link("B", 0.5)], ..ToolModel::default() };
    assert!(!write(&linked).contains("projection"));
    assert_eq!(read("follow_up = [{ tool = \"B\" }]"), linked);
    for class in ["pure", "read_only", "mutates_local", "mutates_external"] {
        let line = format!("side_effect_class = \"{class}\"\n");
        assert!(write(&read(&line)).contains(&line), "{class}");
    }
}

#[test]
fn shipped_annotations_do_not_repeat_what_the_published_ones_got_wrong() {
    let models = annotated(&["ToolSearch", "WebSearch", "Read", "Grep", "mcp__gitlab__update_issue"], "");
    let model = |tool: &str| &models.get(tool).unwrap().model;
    // A4: no refusal without evidence of failure.
    assert_eq!(model("ToolSearch").fail_fast_after_n, None);
    // A5: the example of the paper is annotated.
    assert!(model("mcp__gitlab__update_issue").invalidates.contains(&"mcp__gitlab__get_issue".to_owned()));
    // F1: the measured share, not that of the link back to itself.
    let fetch = model("WebSearch").follow_up.iter().find(|link| link.tool == "WebFetch").unwrap();
    assert!(fetch.probability < 0.2);
    // F6: a shell may change what they read.
    assert_eq!([model("Read"), model("Grep")].map(|model| model.side_effect_class), [SideEffectClass::ReadOnly; 2]);
    models.accept().unwrap();
}

#[test]
fn what_cannot_be_meant_is_an_error_with_its_key() {
    let mut layers = ModelLayers::default();
    let bad = ToolModel { follow_up: vec![link("B", 0.4), link("C", 1.5)], ..ToolModel::default() };
    layers.annotate("A", &bad, Level::Shipped, "bad.toml").unwrap();
    let models = with_user(
        layers,
        "[tools.B]\nrequires = [\"C\"]\n[tools.C]\nrequires = [\"D\", \"B\"]\n[tools.D]\n",
        LayerPrecedence::ByField,
    );
    let errors: Vec<_> = models.problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    let keys: Vec<_> = errors.iter().map(|problem| problem.key.to_string()).collect();
    assert_eq!(keys, ["tools.A.follow_up.1.probability", "tools.B.requires"]);
    assert_eq!(errors[1].message, "leads back to itself: B → C → B");
    let error = models.accept().unwrap_err();
    assert!(error.message.starts_with("bad.toml: `tools.A.follow_up.1.probability` is 1.5"), "{error}");
    assert!(error.hint.unwrap().contains("pipeline_config.toml:2"));
    // A link without a probability leads nowhere.
    assert_eq!(models.get("A").unwrap().links().map(|link| link.tool.as_str()).collect::<Vec<_>>(), ["B"]);
}

#[test]
fn what_has_no_effect_is_a_warning_with_its_key() {
    let user = "[tools.Write]\nside_effect_class = \"read_only\"\n\n[tools.Look]\ninvalidates = [\"Read\", \"Raed\"]\n\
                follow_up = [{ tool = \"Edit\", probability = 0.5 }]\n";
    let models = with_user(shipped_layers(&published_tools()), user, LayerPrecedence::ByField);
    models.accept().unwrap();
    let warned: BTreeSet<_> = models.problems.iter().map(|problem| problem.key.to_string()).collect();
    for key in ["tools.Look.invalidates.1", "tools.Look.follow_up.0.tool", "tools.Write.side_effect_class"] {
        assert!(warned.contains(key), "{key}: {warned:?}");
    }
    assert!(!warned.contains("tools.Look.invalidates.0"));
}

// ---- score ---------------------------------------------------------------------------------------------------------

#[test]
fn sizes_cost_what_the_published_table_says() {
    let table = [
        (0.0, 0, 0),
        (0.2, 204, 51),
        (0.3, 307, 76),
        (0.5, 512, 128),
        (0.6, 614, 153),
        (0.8, 819, 204),
        (1.0, 1024, 256),
        (1.2, 1228, 307),
        (1.4, 1433, 358),
        (1.5, 1536, 384),
        (1.6, 1638, 409),
        (2.0, 2048, 512),
        (2.5, 2560, 640),
        (3.0, 3072, 768),
        (3.1, 3174, 793),
        (3.5, 3584, 896),
        (4.0, 4096, 1024),
        (4.5, 4608, 1152),
        (6.0, 6144, 1536),
        (6.5, 6656, 1664),
        (8.0, 8192, 2048),
    ];
    for (typical_kb, bytes, tokens) in table {
        let cost = CostModel { typical_kb, ..CostModel::default() };
        assert_eq!(ExpectedCost::of(&cost, 4.0), ExpectedCost { bytes, tokens }, "{typical_kb}");
    }
    // F8: one ratio, stated; below one byte per token it makes no sense.
    let kib = CostModel::default();
    assert_eq!((ExpectedCost::of(&kib, 3.5).tokens, ExpectedCost::of(&kib, 0.0).tokens), (292, 1024));
    assert_eq!(ExpectedCost { bytes: 0, tokens: 0 }.charged(ValueClass::Supporting), 1);
    assert_eq!(ExpectedCost { bytes: 0, tokens: 99 }.charged(ValueClass::AuditOnly), 0);
}

#[test]
fn intents_boost_groups_that_are_left_out_by_default() {
    let group = |fields: &[&str], value, include| FieldGroup {
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        estimated_value: value,
        default_include: include,
    };
    let boost = |groups: Vec<FieldGroup>, words: &[&str]| {
        let field_groups = groups.into_iter().enumerate().map(|(n, group)| (n.to_string(), group)).collect();
        let model = ToolModel { field_groups, ..ToolModel::default() };
        intent_boost(&model, words.iter().copied(), &PlannerThresholds::shipped().score)
    };
    let snippet = || vec![group(&["snippet"], 0.3, false)];
    assert_eq!(boost(snippet(), &[]), 1.0);
    assert_eq!(boost(snippet(), &["log"]), 1.0);
    assert_eq!(boost(snippet(), &["SNIPPET"]), 1.3);
    assert_eq!(boost(vec![group(&["Page_Snippets"], 0.3, false)], &["snippet"]), 1.3);
    assert_eq!(boost(vec![group(&["snip"], 0.3, false)], &["snippet"]), 1.0);
    assert_eq!(boost(vec![group(&["snippet"], 0.3, true)], &["snippet"]), 1.0);
    assert_eq!(boost((0..5).map(|_| group(&["body"], 1.0, false)).collect(), &["body"]), 2.5);
}

// ---- the published planner -----------------------------------------------------------------------------------------

pub fn published_plan(
    models: &ValueModels,
    recent: &[&str],
    budget: u32,
    probability_min: f64,
) -> published::PublishedPlan {
    published::plan(models, recent, budget, probability_min, PlannerThresholds::shipped())
}

fn tools(plan: &published::PublishedPlan) -> Vec<&str> {
    plan.calls.iter().map(|call| call.tool.as_str()).collect()
}

#[test]
fn the_published_planner_gives_the_published_plans() {
    let models = shipped(&published_tools());
    assert_eq!(
        published_plan(&models, &[], 1024, 0.5),
        published::PublishedPlan { remaining_budget_tokens: 1024, ..published::PublishedPlan::default() }
    );
    let grep = published_plan(&models, &["Grep"], 4000, 0.3);
    assert_eq!(tools(&grep), ["Read"]);
    assert_eq!(grep.remaining_budget_tokens, 3360);
    let search = published_plan(&models, &["WebSearch"], 4000, 0.5);
    assert_eq!(tools(&search), ["WebFetch"]);
    assert_eq!(published_plan(&models, &["Grep", "Glob", "Edit"], 4000, 0.5).calls, []);
    assert_eq!(published_plan(&models, &["Glob"], 50, 0.3).over_budget, ["Read"]);
    assert_eq!(published_plan(&models, &["Read"], 4000, 0.3).calls, []);
    assert_eq!(published_plan(&models, &["Read", "Grep"], 4000, 0.3).calls, []);
}

#[test]
fn the_published_planner_charges_no_bookkeeping() {
    let mut tools_with_link = published_tools();
    tools_with_link.get_mut("Grep").unwrap().follow_up.push(link("TaskUpdate", 0.9));
    let plan = published_plan(&shipped(&tools_with_link), &["Grep"], 1000, 0.3);
    assert_eq!(tools(&plan), ["TaskUpdate", "Read"]);
    assert_eq!((plan.calls[0].class, plan.calls[0].cost.tokens), (ValueClass::AuditOnly, 256));
    assert_eq!(plan.remaining_budget_tokens, 360);
}

#[test]
fn the_published_planner_charges_at_least_one_token() {
    let models = of_user(
        "[tools.A]\nfollow_up = [{ tool = \"T\", probability = 0.9 }]\n[tools.T]\nvalue_class = \"supporting\"\n\
         cost_model = { typical_kb = 0.0 }\n",
    );
    let plan = published_plan(&models, &["A"], 1, 0.5);
    assert_eq!(plan.remaining_budget_tokens, 0);
    assert_eq!(published_plan(&models, &["A"], 0, 0.5).over_budget, ["T"]);
}

#[test]
fn among_equals_the_published_planner_goes_by_the_alphabet() {
    let models = of_user(
        "[tools.A]\nfollow_up = [{ tool = \"Second\", probability = 0.9 }, { tool = \"First\", probability = 0.9 }]\n\
         [tools.Second]\nvalue_class = \"supporting\"\n[tools.First]\nvalue_class = \"supporting\"\n",
    );
    assert_eq!(tools(&published_plan(&models, &["A"], 1024, 0.5)), ["First", "Second"]);
}

// ---- candidates ----------------------------------------------------------------------------------------------------

/// A turn with nothing before it.
#[derive(Default)]
struct Moment {
    called: BTreeSet<String>,
    intents: BTreeSet<String>,
    arguments_seen: BTreeMap<String, BTreeSet<String>>,
    runnable: Runnable,
}

impl Moment {
    fn turn<'a>(&'a self, tool: &'a str) -> AnswerMoment<'a> {
        let Self { intents, arguments_seen, runnable, .. } = self;
        AnswerMoment { tool, intents, arguments_seen, runnable }
    }

    fn candidates(&self, models: &ValueModels, tool: &str, values: &[&str]) -> Candidates {
        let project = |link: &FollowUp| {
            let name = link.projection_arg.as_deref().unwrap_or("it");
            Projected::evenly(values.iter().map(|value| argument(name, value)).collect())
        };
        candidates(models, &self.turn(tool), probability_min(), PlannerThresholds::shipped(), &project)
    }
}

fn probability_min() -> f64 {
    PlannerThresholds::shipped().candidates.probability_min
}

fn argument(name: &str, text: &str) -> NamedArgument {
    NamedArgument::new(name, xxh3_64(text.as_bytes()))
}

fn values(found: &Candidates) -> Vec<(String, NamedArgument)> {
    found.open.iter().map(|open| (open.request.tool.clone(), open.request.argument.clone())).collect()
}

fn reasons(declined: &[Declined]) -> Vec<(&str, DeclineReason)> {
    declined.iter().map(|declined| (declined.tool.as_str(), declined.reason)).collect()
}

#[test]
fn candidates_come_from_the_tool_that_answered_and_every_refusal_is_recorded() {
    // C11, C12, D6
    let models = shipped(&published_tools());
    let found = Moment::default().candidates(&models, "Grep", &["a.rs"]);
    assert_eq!(
        values(&found),
        [("Grep".to_owned(), argument("it", "a.rs")), ("Read".to_owned(), argument("file_path", "a.rs"))]
    );
    assert_eq!(reasons(&found.declined), [("Edit", DeclineReason::NotSpeculatable)]);
    let glob = Moment::default().candidates(&models, "Glob", &[]);
    assert_eq!(glob.open, []);
    assert_eq!(
        reasons(&glob.declined),
        [
            ("Read", DeclineReason::NoArgument),
            ("Grep", DeclineReason::LowProbability),
            ("Glob", DeclineReason::NoArgument)
        ]
    );
}

#[test]
fn an_argument_that_the_tool_was_never_seen_to_take_is_declined() {
    // B6
    let models = annotated(
        &["mcp__gitlab__get_merge_request"],
        "[tools.mcp__gitlab__get_merge_request]\nfollow_up = [{ tool = \"mcp__gitlab__get_merge_request_discussions\", \
         probability = 0.5, projection = \"iid\", projection_arg = \"merge_request_id\" }]\n",
    );
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let discussions = "mcp__gitlab__get_merge_request_discussions".to_owned();
    let mut moment =
        Moment { arguments_seen: BTreeMap::from([(discussions.clone(), names(&["key"]))]), ..Moment::default() };
    let found = moment.candidates(&models, "mcp__gitlab__get_merge_request", &["7"]);
    assert_eq!(reasons(&found.declined), [(discussions.as_str(), DeclineReason::UnknownArgument)]);
    moment.arguments_seen = BTreeMap::from([(discussions, names(&["key", "merge_request_id"]))]);
    assert_eq!(moment.candidates(&models, "mcp__gitlab__get_merge_request", &["7"]).open.len(), 1);
}

#[test]
fn an_empty_intent_is_no_intent() {
    let models = of_user(
        "[tools.A]\nfollow_up = [{ tool = \"T\", probability = 0.9 }]\n[tools.T]\nside_effect_class = \"pure\"\n\
         [tools.T.field_groups.more]\nfields = [\"snippet\"]\nestimated_value = 0.3\ndefault_include = false\n",
    );
    let worth = |intent: &str| {
        let moment = Moment { intents: [intent.to_owned()].into(), ..Moment::default() };
        moment.candidates(&models, "A", &["x"]).open[0].worth
    };
    assert_eq!((worth(""), worth("snip")), (1.0, 1.3));
}

#[test]
fn of_two_links_to_the_same_call_the_likelier_counts() {
    let models = of_user(
        "[tools.A]\nfollow_up = [{ tool = \"T\", probability = 0.4 }, { tool = \"T\", probability = 0.7 }, \
         { tool = \"T\", probability = 0.6 }]\n[tools.T]\nside_effect_class = \"pure\"\n",
    );
    let found = Moment::default().candidates(&models, "A", &["x"]);
    assert_eq!((found.open.len(), found.open[0].probability), (1, 0.7));
}

#[test]
fn the_share_of_an_argument_counts() {
    let models = shipped(&published_tools());
    let project =
        |_: &FollowUp| vec![Projected { argument: NamedArgument::new("file_path", 7), share: 0.5, probability: None }];
    let moment = Moment::default();
    let found = candidates(&models, &moment.turn("Glob"), probability_min(), PlannerThresholds::shipped(), &project);
    let read = found.open.iter().find(|open| open.request.tool == "Read").unwrap();
    assert_eq!(read.request.argument, NamedArgument::new("file_path", 7));
    assert!((read.expected_value() - 0.32 * 0.5).abs() < 1e-9);
}

// ---- plans ---------------------------------------------------------------------------------------------------------

/// Tools A → each of `lines`, given as (name, probability, KiB, more keys).
fn targets(lines: &[(&str, f64, f64, &str)]) -> ValueModels {
    let links: Vec<_> =
        lines.iter().map(|(tool, p, ..)| format!("{{ tool = \"{tool}\", probability = {p:?} }}")).collect();
    let mut text = format!("[tools.A]\nfollow_up = [{}]\n", links.join(", "));
    for (tool, _, typical_kb, more) in lines {
        let class = if more.contains("side_effect_class") { "" } else { "side_effect_class = \"read_only\"\n" };
        text += &format!("[tools.{tool}]\n{class}cost_model = {{ typical_kb = {typical_kb:?} }}\n{more}\n");
    }
    of_user(&text)
}

fn planned(models: &ValueModels, called: &[&str], budget: u32) -> Plan {
    let moment = Moment { called: called.iter().map(|tool| (*tool).to_owned()).collect(), ..Moment::default() };
    plan(moment.candidates(models, "A", &["x"]), &moment.called, budget)
}

fn charged(plan: &Plan) -> u64 {
    plan.calls.iter().map(Candidate::charged_tokens).sum()
}

fn order(plan: &Plan) -> Vec<&str> {
    plan.calls.iter().map(|call| call.request.tool.as_str()).collect()
}

#[test]
fn expected_value_ranks_the_likely_link_first() {
    // C4: by the published worth the two links are equal.
    let models = targets(&[("Rare", 0.31, 1.0, ""), ("ZOften", 0.95, 1.0, "")]);
    let expected = planned(&models, &[], 300);
    assert_eq!(order(&expected), ["ZOften"]);
    assert_eq!((expected.calls[0].worth, expected.calls[0].expected_value()), (1.0, 0.95));
    assert_eq!(reasons(&expected.declined), [("Rare", DeclineReason::Budget)]);
}

#[test]
fn every_request_is_charged() {
    // C8: three arguments are three calls.
    let models = shipped(&published_tools());
    let found = Moment::default().candidates(&models, "Glob", &["a", "b", "c", "d"]);
    let plan = plan(found, &BTreeSet::new(), 1500);
    let reads = plan.calls.iter().filter(|call| call.request.tool == "Read").count() as u64;
    let globs = plan.calls.iter().filter(|call| call.request.tool == "Glob").count() as u64;
    assert_eq!((reads, globs), (2, 3));
    assert_eq!(charged(&plan), 2 * 640 + 3 * 51);
    assert_eq!(plan.declined.iter().filter(|declined| declined.reason == DeclineReason::Budget).count(), 1);
}

#[test]
fn of_equal_arguments_the_first_of_the_list_is_called() {
    let models = targets(&[("T", 0.9, 1.0, "")]);
    for list in [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]] {
        let plan = plan(Moment::default().candidates(&models, "A", &list), &BTreeSet::new(), 512);
        let called: Vec<_> = plan.calls.iter().map(|call| call.request.argument.clone()).collect();
        assert_eq!(called, [argument("it", list[0]), argument("it", list[1])]);
    }
}

#[test]
fn nothing_is_charged_that_cannot_run() {
    // C11
    let models = targets(&[("Writes", 0.9, 1.0, "side_effect_class = \"mutates_local\""), ("Reads", 0.5, 1.0, "")]);
    let plan = planned(&models, &[], 256);
    assert_eq!((order(&plan), charged(&plan)), (vec!["Reads"], 256));
    assert_eq!(reasons(&plan.declined), [("Writes", DeclineReason::NotSpeculatable)]);
}

#[test]
fn bookkeeping_is_free_even_without_any_budget() {
    let models = targets(&[("Note", 0.9, 1.0, "value_class = \"audit_only\""), ("T", 0.9, 0.0, "")]);
    let plan = planned(&models, &[], 0);
    assert_eq!((order(&plan), charged(&plan)), (vec!["Note"], 0));
    // An answer without any size still costs a token.
    assert_eq!(reasons(&plan.declined), [("T", DeclineReason::Budget)]);
}

#[test]
fn a_prerequisite_is_called_first_and_charged_along() {
    // C1
    let models = targets(&[("Page", 0.9, 1.0, "requires = [\"Login\"]"), ("Login", 0.4, 0.5, "")]);
    assert_eq!(order(&planned(&models, &[], 384)), ["Login", "Page"]);
    let tight = planned(&models, &[], 383);
    assert_eq!((order(&tight), reasons(&tight.declined)), (vec!["Login"], vec![("Page", DeclineReason::Budget)]));
    // Where it was called before, it need not be called again.
    assert_eq!(order(&planned(&models, &["Login"], 256)), ["Page"]);
}

#[test]
fn what_cannot_have_its_prerequisite_is_declined_for_that() {
    let models = targets(&[
        ("Lost", 0.9, 1.0, "requires = [\"Nowhere\"]"),
        ("Second", 0.9, 1.0, "requires = [\"Lost\"]"),
        ("Egg", 0.9, 1.0, "requires = [\"Hen\"]"),
        ("Hen", 0.9, 1.0, "requires = [\"Egg\"]"),
    ]);
    let plan = planned(&models, &[], 8000);
    assert_eq!(plan.calls, []);
    let declined: BTreeSet<_> = reasons(&plan.declined).into_iter().collect();
    let missing = ["Egg", "Hen", "Lost", "Second"].map(|tool| (tool, DeclineReason::PrereqMissing));
    assert_eq!(declined, missing.into());
}

#[test]
fn a_single_better_item_takes_the_place_of_dense_ones() {
    // C2: by density the small one goes first and leaves no room; 0.35 / 51 against 0.9 / 2048 tokens.
    let models = targets(&[("Small", 0.35, 0.2, ""), ("Big", 0.9, 8.0, "")]);
    let plan = planned(&models, &[], 2048);
    assert_eq!((order(&plan), reasons(&plan.declined)), (vec!["Big"], vec![("Small", DeclineReason::Preempted)]));
}

#[test]
fn worthless_links_are_declined_as_improbable() {
    let models = targets(&[("T", 0.9, 1.0, "")]);
    let project = |_: &FollowUp| vec![Projected { argument: argument("it", "x"), share: 0.0, probability: None }];
    let moment = Moment::default();
    let found = candidates(&models, &moment.turn("A"), probability_min(), PlannerThresholds::shipped(), &project);
    let plan = plan(found, &moment.called, 8000);
    assert_eq!((plan.calls.len(), reasons(&plan.declined)), (0, vec![("T", DeclineReason::LowProbability)]));
}

/// Any item, or one of the kinds that upset greed: small and dense, large and worth a little less than its size.
fn free_item() -> impl Strategy<Value = KnapsackItem> {
    (0..3, 1_u64..40, 0_u32..50).prop_map(|(kind, cost, value)| {
        let (cost, value) = match kind {
            0 => (cost, f64::from(value)),
            1 => (1 + cost % 3, 2.0 + (cost % 3) as f64),
            _ => (60 + cost, 59.0 + cost as f64),
        };
        KnapsackItem { cost, value, needs: Vec::new() }
    })
}

fn free_problem() -> impl Strategy<Value = KnapsackProblem> {
    (prop::collection::vec(free_item(), 0..13), 0_u64..120)
        .prop_map(|(items, budget)| KnapsackProblem { items, budget })
}

/// Items that need some of the items before them.
fn bound_problem() -> impl Strategy<Value = KnapsackProblem> {
    let needs = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..3), 0..2);
    (prop::collection::vec((free_item(), needs), 0..11), 0_u64..120).prop_map(|(drafts, budget)| {
        let item = |(at, (item, needs)): (usize, (KnapsackItem, Vec<Vec<prop::sample::Index>>))| {
            let choices = |choices: Vec<prop::sample::Index>| choices.iter().map(|choice| choice.index(at)).collect();
            let needs = if at == 0 { Vec::new() } else { needs.into_iter().map(choices).collect() };
            KnapsackItem { needs, ..item }
        };
        KnapsackProblem { items: drafts.into_iter().enumerate().map(item).collect(), budget }
    })
}

/// The best value of all subsets: the definition, spelled out.
fn best_subset(problem: &KnapsackProblem) -> f64 {
    let taken = |set: u32| (0..problem.items.len()).filter(move |item| set >> item & 1 == 1);
    let is_allowed = |set: u32| {
        let closed = taken(set)
            .flat_map(|item| &problem.items[item].needs)
            .all(|needs| needs.iter().any(|need| set >> need & 1 == 1));
        closed && taken(set).map(|item| problem.items[item].cost).sum::<u64>() <= problem.budget
    };
    let sets = (0..1_u32 << problem.items.len()).filter(|&set| is_allowed(set));
    sets.map(|set| taken(set).map(|item| problem.items[item].value).sum()).fold(0.0, f64::max)
}

/// Checks what a choice says about itself, and that nothing stands in it without what it needs before it.
fn check(problem: &KnapsackProblem, picks: &KnapsackChoice) {
    let distinct: BTreeSet<_> = picks.items.iter().collect();
    assert_eq!(distinct.len(), picks.items.len());
    assert_eq!(picks.cost, picks.items.iter().map(|&item| problem.items[item].cost).sum::<u64>());
    assert_eq!(picks.value, picks.items.iter().map(|&item| problem.items[item].value).sum::<f64>());
    assert!(picks.cost <= problem.budget, "{picks:?}");
    for (position, &item) in picks.items.iter().enumerate() {
        let there = &picks.items[..position];
        assert!(problem.items[item].needs.iter().all(|needs| needs.iter().any(|need| there.contains(need))));
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn greedy_is_worth_half_of_the_optimum(problem in free_problem()) {
        let greedy = problem.greedy();
        check(&problem, &greedy);
        prop_assert!(2.0 * greedy.value >= best_subset(&problem), "{greedy:?}");
    }

    #[test]
    fn the_optimum_is_that_of_all_subsets(problem in bound_problem()) {
        let best = optimum(&problem, 20).unwrap();
        prop_assert_eq!(best, best_subset(&problem));
        let greedy = problem.greedy();
        check(&problem, &greedy);
        prop_assert!(greedy.value <= best);
    }

    #[test]
    fn a_plan_keeps_its_budget_and_knows_no_order(
        sizes in prop::collection::vec((0_u32..60, 30_u32..100, 0_usize..6), 1..7),
        budget in 0_u32..4000,
        turn_by in any::<prop::sample::Index>(),
    ) {
        let tool = |n: usize| format!("T{n}");
        let names: Vec<_> = (0..sizes.len()).map(tool).collect();
        let more: Vec<_> = sizes.iter().enumerate().map(|(n, (.., need))| {
            if *need < n { format!("requires = [\"{}\"]", tool(*need)) } else { String::new() }
        }).collect();
        let lines: Vec<_> = sizes.iter().zip(&names).zip(&more).map(|(((tenths, percent, _), name), more)| {
            (name.as_str(), f64::from(*percent) / 100.0, f64::from(*tenths) / 10.0, more.as_str())
        }).collect();
        let models = targets(&lines);
        let found = Moment::default().candidates(&models, "A", &["x", "y"]);
        let called = BTreeSet::new();
        let first = plan(found.clone(), &called, budget);
        let mut turned = found.clone();
        let by = turn_by.index(turned.open.len());
        turned.open.rotate_left(by);
        prop_assert_eq!(&first, &plan(turned, &called, budget));
        prop_assert!(charged(&first) <= u64::from(budget));
        // Everything is either called or declined, once.
        prop_assert_eq!(first.calls.len() + first.declined.len(), found.open.len() + found.declined.len());
        for (at, call) in first.calls.iter().enumerate() {
            let before: BTreeSet<_> = first.calls[..at].iter().map(|call| &call.request.tool).collect();
            prop_assert!(call.requires.iter().all(|tool| before.contains(tool)));
        }
        let problem = knapsack(&found, &called, budget);
        if let Some(best) = optimum(&problem, 20) {
            prop_assert!(first.calls.iter().map(Candidate::expected_value).sum::<f64>() <= best + 1e-9);
        }
    }
}

#[test]
fn large_sets_are_not_searched() {
    let item = KnapsackItem { cost: 1, value: 1.0, needs: Vec::new() };
    let problem = KnapsackProblem { items: vec![item; 21], budget: 3 };
    let items_max = PlannerThresholds::shipped().exact.items_max;
    assert_eq!((optimum(&problem, items_max), optimum(&problem, 21)), (None, Some(3.0)));
}

// ---- texts and fail-fast -------------------------------------------------------------------------------------------

#[test]
fn the_text_is_the_published_one() {
    let expected = format!(
        "\n\n> [enrichment: pre-fetched Read({0}), Grep({0}) in background — call as usual, results served from cache]",
        "x".repeat(40)
    );
    let numbers = &PlannerThresholds::shipped().texts;
    assert_eq!(prefetch_hint(["Read", "Grep"], numbers), expected);
    assert_eq!(prefetch_hint([], numbers), "");
}

const EMPTY: Option<bool> = Some(true);
const REAL: Option<bool> = Some(false);
const SEARCH: Sym = Sym(1);

#[test]
fn a_question_is_refused_after_n_empty_answers_in_a_row() {
    let mut guard = FailFast::new(&PlannerThresholds::shipped().fail_fast);
    guard.answered((SEARCH, 1), EMPTY);
    assert!(!guard.refuses((SEARCH, 1), 2));
    guard.answered((SEARCH, 1), REAL);
    guard.answered((SEARCH, 1), EMPTY);
    assert!(!guard.refuses((SEARCH, 1), 2));
    guard.answered((SEARCH, 1), EMPTY);
    assert!(guard.refuses((SEARCH, 1), 2));
    assert!(!guard.refuses((SEARCH, 2), 2), "another question is another question (A3)");
    assert!(!guard.refuses((Sym(2), 1), 2));
    assert!(!guard.refuses((Sym(2), 9), 0), "nothing is refused without evidence (A4)");
}

#[test]
fn an_answer_without_text_is_an_answer() {
    // A4, F7
    let numbers = &PlannerThresholds::shipped().fail_fast;
    assert!(numbers.is_empty(8) && !numbers.is_empty(9));
    let mut guard = FailFast::new(numbers);
    for _ in 0..5 {
        guard.answered((SEARCH, 1), REAL);
        guard.answered((SEARCH, 1), None);
    }
    assert!(!guard.refuses((SEARCH, 1), 1));
    guard.answered((SEARCH, 1), EMPTY);
    guard.answered((SEARCH, 1), None);
    assert!(guard.refuses((SEARCH, 1), 1), "an error says nothing");
    guard.answered((SEARCH, 1), REAL);
    assert!(!guard.refuses((SEARCH, 1), 1));
}

#[test]
fn only_a_result_of_next_to_no_text_came_empty() {
    // A4, F7
    let numbers = &PlannerThresholds::shipped().fail_fast;
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } });
    let both = vec![json!({ "type": "text", "text": "hi" }), image.clone()];
    let results = [
        (answers("c", vec![image]), Some(false)),
        (answers("c", both), Some(false)),
        (answers("c", "12345678"), Some(true)),
        (answers("c", "123456789"), Some(false)),
        (answers("c", ""), Some(true)),
        (fails("c", ""), None),
    ];
    for (result, is_empty) in results {
        let told = Told::of(&[("f", &log(&[asks("m", "c", "Grep"), result]))]);
        assert_eq!(came_empty(told.call("c"), numbers), is_empty, "{:?}", told.call("c"));
    }
    let unanswered = Told::of(&[("f", &log(&[asks("m", "c", "Grep")]))]);
    assert_eq!(came_empty(unanswered.call("c"), numbers), None);
}

#[test]
fn a_refusal_ends() {
    // A3
    let mut guard = FailFast::new(&PlannerThresholds::shipped().fail_fast);
    let mut refused = Vec::new();
    for _ in 0..7 {
        let is_refused = guard.refuses((SEARCH, 1), 2);
        if !is_refused {
            guard.answered((SEARCH, 1), EMPTY);
        }
        refused.push(is_refused);
    }
    assert_eq!(refused, [false, false, true, false, true, false, true]);
    // Let through once more, it has an answer, and the past is forgotten.
    assert!(!guard.refuses((SEARCH, 1), 2));
    guard.answered((SEARCH, 1), REAL);
    assert!(!guard.refuses((SEARCH, 1), 2));
    guard.answered((SEARCH, 1), EMPTY);
    assert!(!guard.refuses((SEARCH, 1), 2));
}

#[test]
fn misspelled_numbers_are_an_error_with_a_hint() {
    let text = include_str!("../../rules/planner.toml").replace("per_host_max", "per_host");
    let error = fitting::<PlannerThresholds>(&text, "mine/planner.toml").unwrap_err();
    assert!(error.message.starts_with("mine/planner.toml:70: "), "{error}");
    assert!(error.hint.is_some());
}
