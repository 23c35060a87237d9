//! Published figures and texts of the planner that are kept, and published defects that no other test keeps out. Comments
//! name the defect (`E7`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::harness::{Home, all_bytes};
use super::log_builder::user;
use super::planner::{annotated, published_plan, published_tools, shipped, shipped_layers, with_user};
use super::script::{Script, path};
use crate::base::body_shape::LayerId;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::value_models::LayerPrecedence;
use crate::settings::tool_model::{CostModel, FollowUp};
use crate::shell::arguments::Exit;
use crate::telemetry::effectiveness::Effectiveness;
use crate::telemetry::log::{Decline, RecordedEvent, RecordedPlan};

/// Sessions on days that follow each other.
fn home(sessions: usize, log: impl Fn(usize) -> String) -> Home {
    let home = Home::new();
    for session in 0..sessions {
        let text = log(session).replace("2026-01-02T", &format!("2026-01-{:02}T", session + 1));
        home.write(&format!(".claude/projects/p/s{session:02}.jsonl"), text);
    }
    home
}

/// Searches of one hit, which is read.
fn searches(session: usize) -> String {
    let script = (0..6).fold(Script::new(&format!("s{session:02}")), |script, n| {
        let file = format!("src/file_{session}_{n}.rs");
        script.grep(&[&file]).read(&file)
    });
    script.log()
}

fn arm<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["planner"]["arms"].as_array().unwrap().iter().find(|arm| arm["arm"] == name).unwrap()
}

// ---- counters and the report line ----------------------------------------------------------------------------------

/// An event of these tokens, by the ratio of the planner and as a vocabulary counts.
fn event(baseline: u32, layer: LayerId, plan: RecordedPlan) -> RecordedEvent {
    RecordedEvent { bytes: 4 * baseline, baseline, layer, plan, ..super::observed::event(0, 0, 0, 0, 0, 0) }
}

fn fetched(predicted: u32, cited: Option<bool>) -> RecordedPlan {
    RecordedPlan { prefetched: true, predicted, cited, ..RecordedPlan::default() }
}

fn counted(events: &[RecordedEvent]) -> Effectiveness {
    events.iter().fold(Effectiveness::default(), |mut sum, event| {
        sum.add(event, 4);
        sum
    })
}

#[test]
fn events_are_counted_as_published() {
    let none = RecordedPlan::default();
    let hint = counted(&[event(800, LayerId::L0, none)]);
    assert_eq!((hint.saved_dedup, hint.tokens_saved, hint.total_prefetches), (1, 800, 0));
    let used = counted(&[event(540, LayerId::L3, fetched(500, Some(true)))]);
    assert_eq!((used.saved_prefetch, used.tokens_saved, used.cost_overrun_count), (1, 540, 0));
    assert_eq!((used.cited_prefetches, used.total_predictions, used.net_prediction_error_tokens), (1, 1, 40));
    for cited in [None, Some(false)] {
        let unused = counted(&[event(540, LayerId::L3, fetched(500, cited))]);
        assert_eq!((unused.calls_saved(), unused.tokens_saved, unused.total_prefetches), (0, 0, 1));
    }
    let over = counted(&[event(200, LayerId::L3, fetched(100, None))]);
    assert_eq!((over.cost_overrun_count, over.net_prediction_error_tokens), (1, 100));
    // 130 % is an overrun, and without a prediction there is none.
    let at = |actual, predicted| counted(&[event(actual, LayerId::L3, fetched(predicted, None))]).cost_overrun_count;
    assert_eq!([at(130, 100), at(129, 100), at(99, 0)], [1, 0, 0]);
    // Predictions are bytes by four, so that what a vocabulary counts of the same bytes is no overrun.
    let dense = RecordedEvent { baseline: 200, ..event(100, LayerId::L3, fetched(100, Some(true))) };
    let counted_dense = counted(&[dense]);
    assert_eq!((counted_dense.cost_overrun_count, counted_dense.net_prediction_error_tokens), (0, 0));
    assert_eq!(counted_dense.tokens_saved, 200);
    let declined = counted(&[event(0, LayerId::L3, RecordedPlan { declined: Some(Decline::Budget), ..none })]);
    assert_eq!((declined.total_declines, declined.total_prefetches), (1, 0));
}

/// E4: what was prefetched and then answered by a hint is one saving.
#[test]
fn no_token_is_saved_twice() {
    let both = counted(&[event(540, LayerId::L0, fetched(500, Some(true)))]);
    assert_eq!((both.calls_saved(), both.tokens_saved), (1, 540));
}

#[test]
fn the_report_line_is_the_published_one() {
    let nothing = Effectiveness::default();
    assert_eq!(
        nothing.to_string(),
        "prefetch_hit=n/a decline_recall_loss=n/a cost_overrun=n/a race_win=n/a waste=n/a calls_saved=0 (prefetch=0, \
         dedup=0, fail_fast=0) tokens_saved=0 prefetches=0 dispatched=0 declines=0 predictions=0"
    );
    assert!(!nothing.is_active());
    let full = Effectiveness {
        total_prefetches: 412,
        cited_prefetches: 297,
        total_declines: 190,
        late_invoked_after_decline: 16,
        cost_overrun_count: 66,
        total_predictions: 600,
        net_prediction_error_tokens: -5,
        saved_prefetch: 7,
        saved_dedup: 12,
        saved_fail_fast: 3,
        tokens_saved: 128_400,
        prefetch_dispatched: 10,
        prefetch_won_race: 6,
        prefetch_wasted: 2,
    };
    assert_eq!(
        full.to_string(),
        "prefetch_hit=72.1% decline_recall_loss=8.4% cost_overrun=11.0% race_win=60.0% waste=20.0% calls_saved=22 \
         (prefetch=7, dedup=12, fail_fast=3) tokens_saved=128400 prefetches=412 dispatched=10 declines=190 \
         predictions=600"
    );
    let only_fetched = Effectiveness { total_prefetches: 1, ..nothing };
    assert!(only_fetched.is_active());
}

// ---- the published annotations -------------------------------------------------------------------------------------

/// Class, sizes, latency, freshness, class of effects, what it makes stale.
type Annotated =
    (&'static str, &'static str, f64, Option<f64>, Option<u64>, Option<u64>, &'static str, &'static [&'static str]);

const PUBLISHED: [Annotated; 12] = [
    ("Read", "critical", 2.5, Some(43.0), Some(50), None, "pure", &[]),
    ("Edit", "supporting", 0.2, Some(1.0), Some(20), None, "mutates_local", &["Read", "Grep"]),
    ("Write", "supporting", 0.2, None, None, None, "mutates_local", &["Read", "Grep", "Glob"]),
    ("MultiEdit", "supporting", 0.2, None, None, None, "mutates_local", &["Read", "Grep"]),
    ("NotebookEdit", "supporting", 0.5, None, None, None, "mutates_local", &["Read"]),
    ("Bash", "critical", 0.2, Some(9.0), Some(200), None, "indeterminate", &[]),
    ("Grep", "critical", 0.3, Some(10.5), Some(80), None, "pure", &[]),
    ("Glob", "supporting", 0.2, Some(16.6), Some(60), None, "read_only", &[]),
    ("WebSearch", "supporting", 3.1, Some(7.2), Some(900), Some(3600), "read_only", &[]),
    ("WebFetch", "supporting", 1.2, Some(24.0), Some(800), Some(900), "read_only", &[]),
    ("ToolSearch", "supporting", 0.0, Some(0.1), None, None, "read_only", &[]),
    ("Agent", "supporting", 6.5, Some(23.7), Some(60_000), None, "indeterminate", &[]),
];

/// After which tool, which one, probability, projection, its argument.
type Linked = (&'static str, &'static str, f64, Option<&'static str>, Option<&'static str>);

const LINKS: [Linked; 10] = [
    ("Read", "Read", 0.45, None, None),
    ("Edit", "Bash", 0.27, None, None),
    ("Edit", "Read", 0.14, None, None),
    ("Grep", "Read", 0.35, Some("path"), Some("file_path")),
    ("Grep", "Edit", 0.07, Some("path"), Some("file_path")),
    ("Grep", "Grep", 0.39, None, None),
    ("Glob", "Read", 0.32, Some("match_path"), Some("file_path")),
    ("Glob", "Grep", 0.13, None, None),
    ("Glob", "Glob", 0.41, None, None),
    ("WebSearch", "WebFetch", 0.65, Some("url"), Some("url")),
];

#[test]
fn the_comparison_arm_has_the_published_annotations() {
    let tools = published_tools();
    assert_eq!(tools.len(), 17);
    let word = |value: &dyn Fn() -> Value| value().as_str().unwrap().to_owned();
    for (tool, class, typical_kb, max_kb, latency_ms_p50, freshness_ttl_s, effects, invalidates) in PUBLISHED {
        let model = &tools[tool];
        assert_eq!(word(&|| json!(model.value_class)), class, "{tool}");
        assert_eq!(word(&|| json!(model.side_effect_class)), effects, "{tool}");
        assert_eq!(
            model.cost_model,
            CostModel { typical_kb, max_kb, latency_ms_p50, dollars: None, freshness_ttl_s },
            "{tool}"
        );
        assert_eq!(model.invalidates, invalidates, "{tool}");
        assert_eq!((model.rate_limit_host.as_ref(), model.speculate), (None, None), "{tool}");
    }
    for bookkeeping in ["TaskUpdate", "TaskCreate", "TaskGet", "TaskList", "TodoWrite"] {
        let model = &tools[bookkeeping];
        assert_eq!((word(&|| json!(model.value_class)).as_str(), model.cost_model.typical_kb), ("audit_only", 1.0));
    }
    let limits = tools.iter().filter_map(|(tool, model)| Some((tool.as_str(), model.fail_fast_after_n?)));
    assert_eq!(limits.collect::<Vec<_>>(), [("ToolSearch", 2)]);
    let links = tools.iter().flat_map(|(from, model)| model.follow_up.iter().map(move |link| (from.as_str(), link)));
    let mut links: Vec<_> = links
        .map(|(from, FollowUp { tool, probability, projection, projection_arg })| {
            (from, tool.as_str(), *probability, projection.as_deref(), projection_arg.as_deref())
        })
        .collect();
    let mut expected = LINKS.to_vec();
    links.sort_by(|a, b| a.partial_cmp(b).unwrap());
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(links, expected);
    let groups: BTreeMap<_, _> = tools["WebSearch"]
        .field_groups
        .iter()
        .map(|(name, group)| (name.as_str(), (group.fields.join(" "), group.estimated_value, group.default_include)))
        .collect();
    let expected =
        [("must_have", ("title url".to_owned(), 1.0, true)), ("nice_to_have", ("snippet".to_owned(), 0.3, false))];
    assert_eq!(groups, BTreeMap::from(expected));
}

#[test]
fn of_the_published_links_three_are_admissible_at_the_hosts_minimum_and_one_at_the_librarys() {
    let tools = published_tools();
    let models = shipped(&tools);
    let admitted = |least: f64| {
        let mut found = Vec::new();
        for from in tools.keys() {
            let plan = published_plan(&models, &[from], 100_000, least);
            let speculatable = |tool: &str| crate::planner::published::is_speculatable(&tools[tool]);
            let calls = plan.calls.iter().filter(|call| speculatable(&call.tool));
            found.extend(calls.map(|call| format!("{from} {}", call.tool)));
        }
        found
    };
    assert_eq!(admitted(0.5), ["WebSearch WebFetch"]);
    assert_eq!(admitted(0.3), ["Glob Read", "Grep Read", "WebSearch WebFetch"]);
}

#[test]
fn as_published_a_wildcard_speaks_for_tools_that_nobody_names_and_replaces_nothing() {
    let user = "[tools.\"*\"]\nvalue_class = \"optional\"\ncost_model = { typical_kb = 9.0 }\n[tools.Mine]\nspeculate = true\n";
    let models = with_user(shipped_layers(&published_tools()), user, LayerPrecedence::WholeModel);
    let kb = |tool: &str| models.get_or_default(tool).model.cost_model.typical_kb;
    assert_eq!([kb("mcp__x__look"), kb("Mine"), kb("Read")], [9.0, 1.0, 2.5]);
    let without = with_user(shipped_layers(&published_tools()), "", LayerPrecedence::WholeModel);
    assert!(without.get("mcp__x__look").is_none());
}

/// F3: a probability was counted, and the counts stand beside it, or it is said that nobody counted.
#[test]
fn every_shipped_probability_has_its_counts_or_is_called_unmeasured() {
    let sets = ["claude_code", "clickup", "confluence", "fireflies", "github", "gitlab", "jira"];
    let mut seen = 0;
    for set in sets {
        let file = format!("{}/rules/annotations/{set}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| line.starts_with("probability")) {
            let reason = line.split_once('#').unwrap_or_else(|| panic!("{file}: {line}")).1;
            let counted = reason.split('/').collect::<Vec<_>>().windows(2).any(|sides| {
                sides[0].ends_with(|c: char| c.is_ascii_digit()) && sides[1].starts_with(|c: char| c.is_ascii_digit())
            });
            assert!(counted || reason.contains("unmeasured"), "{file}: {line}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

// ---- defects -------------------------------------------------------------------------------------------------------

/// B8: what one command writes the next one finds, and a change of the configuration holds from the next run on. B9: a
/// session needs no summary.
#[test]
fn events_are_found_where_live_pipelines_write_them_and_the_configuration_is_read_anew() {
    let home = home(10, searches);
    for place in [".devboy/telemetry", ".config/devboy/telemetry/events"] {
        let dir = home.path(place);
        let emitted = home.run(&["replay", "--planner", "--emit-telemetry", dir.to_str().unwrap()]);
        assert_eq!(emitted.exit, Exit::Done, "{}", emitted.err);
        assert!(String::from_utf8(all_bytes(&dir)).unwrap().contains("enricher_prefetched"));
        let told = || {
            let told = home.run(&["tune", "analyze", "--dry-run", "--auto-enrichment"]).err;
            told.lines().find(|line| line.starts_with("# enrichment: ")).map(str::to_owned)
        };
        let with_summaries = told().unwrap();
        assert!(with_summaries.contains("prefetch_hit=100.0%"), "{place}: {with_summaries}");
        for file in std::fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()) {
            let text = std::fs::read_to_string(&file).unwrap();
            let events = text.lines().filter(|line| !line.contains("session_summary"));
            std::fs::write(&file, events.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        }
        assert_eq!(told().as_ref(), Some(&with_summaries));
        std::fs::remove_dir_all(&dir).unwrap();
    }
    let sent = || arm(&home.json(&["replay", "--planner"]), "configured")["total"]["sent"].clone();
    assert_eq!(sent(), 18);
    let config = home
        .write(".config/devboy/pipeline_config.toml", "schema_version = 4\n[enrichment]\nprefetch_budget_tokens = 1\n");
    assert_eq!(sent(), 0);
    std::fs::remove_file(config).unwrap();
    assert_eq!(sent(), 18);
}

/// C5: no answer is cut by groups of fields, and none is expected to be: they count for the intent only.
#[test]
fn groups_of_fields_change_no_size_and_no_plan() {
    let home = home(10, searches);
    let books = |groups: &str| {
        let text = format!("schema_version = 4\n[tools.Read]\nside_effect_class = \"read_only\"\n{groups}");
        let config = home.write("groups.toml", text);
        let report = home.json(&["replay", "--planner", "--config", config.to_str().unwrap()]);
        arm(&report, "configured")["total"].clone()
    };
    let group = |name: &str, include: bool| {
        format!("[tools.Read.field_groups.{name}]\nfields = [\"text\"]\ndefault_include = {include}\n")
    };
    let plain = books("");
    assert_eq!(plain["sent"], 18);
    assert_eq!(books(&format!("{}{}", group("debug", false), group("must_have", true))), plain);
    let docs = include_str!("../../docs/planner.md");
    assert!(docs.contains("No answer is cut by groups of fields"));
}

/// E7: two arms, the planner on and off, in calls and in tokens.
#[test]
fn the_net_figure_holds_the_planner_against_none() {
    let home = home(10, searches);
    let report = home.json(&["replay", "--planner"]);
    let net = |name: &str| {
        let net = &arm(&report, name)["net"];
        ["calls_off", "calls_on", "calls_net"].map(|key| net[key].as_i64().unwrap())
    };
    // Three judged sessions of six searches and six reads; every read is fetched in time.
    assert_eq!(net("configured"), [36, 18, 18]);
    let published = arm(&report, "published");
    let sent = published["total"]["sent"].as_i64().unwrap();
    assert_eq!(net("published"), [36, 36 + sent, -sent], "as published the agent's own call runs all the same");
    let total = &published["total"];
    let cost = total["predicted_tokens"].as_i64().unwrap() + total["hint_tokens"].as_i64().unwrap();
    assert!(sent > 0 && cost > 0);
    assert_eq!(published["net"]["tokens_net"], -cost);
    assert_eq!(arm(&report, "configured")["net"]["tokens_net"], 0);
    let text = home.run(&["replay", "--planner", "--explain"]).out;
    let line = "configured: +18 calls (18 saved, 0 added; 18 instead of 36), 0 tokens of cost (0 of unused results, 0 of hints)";
    assert!(text.contains(line), "{text}");
}

/// A list of one number, and two tools that take it.
fn numbers(session: usize) -> Script {
    let number = 4711 + session;
    let list = format!("[{{\"iid\":{number},\"title\":\"a b\"}}]");
    let get = |tool: &'static str| (tool, json!({ "key": number }), "{\"text\":\"so on\"}");
    Script::new(&format!("s{session:02}"))
        .step(&[("mcp__x__find", json!({ "state": "open" }), &list)])
        .step(&[get("mcp__x__one")])
        .step(&[get("mcp__x__two")])
}

const TWO_WAYS: &str = "schema_version = 4\n[enrichment]\nprefetch_budget_tokens = 256\n\
    [tools.mcp__x__one]\nside_effect_class = \"read_only\"\n[tools.mcp__x__two]\nside_effect_class = \"read_only\"\n\
    [tools.mcp__x__two.field_groups.debug]\nfields = [\"full_dom\"]\ndefault_include = false\n\
    [[tools.mcp__x__find.follow_up]]\ntool = \"mcp__x__one\"\nprobability = 0.9\nprojection = \"iid\"\nprojection_arg = \"key\"\n\
    [[tools.mcp__x__find.follow_up]]\ntool = \"mcp__x__two\"\nprobability = 0.8\nprojection = \"iid\"\nprojection_arg = \"key\"\n";

/// C6: what the prompt names comes from the recorded turn, and what it changes is counted.
#[test]
fn the_prompt_of_the_turn_may_decide_between_two_calls() {
    let of_prompt = |prompt: &str, more: &[&str]| {
        let home = home(10, |session| {
            let name = format!("s{session:02}");
            let asked = user(&format!("asked-{name}"), prompt).at(0).session(&name).line();
            asked
                + &numbers(session).log().replacen(
                    "\"parentUuid\":null",
                    &format!("\"parentUuid\":\"asked-{name}\""),
                    1,
                )
        });
        let config = home.write("two.toml", TWO_WAYS);
        let arguments = [&["replay", "--planner", "--config", config.to_str().unwrap()], more].concat();
        let report = home.json(&arguments);
        let configured = arm(&report, "configured").clone();
        let edges = configured["edges"].as_array().unwrap();
        let sent: Vec<&str> = edges
            .iter()
            .filter(|edge| edge["books"]["sent"].as_u64().unwrap() == 3)
            .map(|edge| edge["to"].as_str().unwrap())
            .collect();
        let plans = ["plans_with_intent", "plans_by_intent"].map(|key| configured["total"][key].as_u64().unwrap());
        (sent.join(" "), plans, report["planner"]["notes"].to_string())
    };
    let (sent, plans, notes) = of_prompt("Show me the DOM of that page, please.", &["--intent"]);
    assert_eq!((sent.as_str(), plans), ("mcp__x__two", [3, 3]));
    assert!(notes.contains("configured 3 of 3"), "{notes}");
    let (sent, plans, notes) = of_prompt("Show me the DOM of that page, please.", &[]);
    assert_eq!((sent.as_str(), plans), ("mcp__x__one", [0, 0]));
    assert!(notes.contains("intent keywords: n/a"), "{notes}");
    // A part of a word is no word; as published it would be one.
    let (sent, plans, _) = of_prompt("Show me the domain of that page, please.", &["--intent"]);
    assert_eq!((sent.as_str(), plans), ("mcp__x__one", [0, 0]));
}

/// C6: no shipped link makes an argument for a tool of which a prompt could name a field, so that prompts change no plan by
/// themselves.
#[test]
fn no_shipped_link_supplies_a_tool_whose_fields_can_be_named() {
    let built_in: Vec<String> = published_tools().into_keys().collect();
    let mut tools: Vec<&str> = built_in.iter().map(String::as_str).collect();
    tools.extend([
        "mcp__gitlab__get_issues",
        "mcp__github__get_issues",
        "mcp__jira__get_issues",
        "mcp__clickup__get_issues",
    ]);
    tools.extend(["mcp__fireflies__list_meetings", "mcp__confluence__search_knowledge_base"]);
    let models = annotated(&tools, "");
    let left_out =
        |tool: &str| models.get_or_default(tool).model.field_groups.values().any(|group| !group.default_include);
    let links = models.iter().flat_map(|(from, model)| model.links().map(move |link| (from, link)));
    let supplied = links.filter(|(_, link)| link.projection.is_some());
    let named: Vec<_> =
        supplied.filter(|(_, link)| left_out(&link.tool)).map(|(from, link)| (from, &link.tool)).collect();
    assert_eq!(named, []);
    assert!(left_out("WebSearch"), "the only tool with such fields");
    let pairs = &PlannerThresholds::shipped().projection.pairs;
    assert!(pairs.iter().all(|pair| !left_out(&pair.to)), "nor does a built-in extractor");
}

/// E10: names leave as pseudonyms of one kind, whoever made the call.
#[test]
fn prefetches_are_named_as_the_calls_are() {
    let home = home(10, |session| numbers(session).log());
    let config = home.write("two.toml", TWO_WAYS);
    let dir = home.path("events");
    let arguments =
        ["replay", "--planner", "--config", config.to_str().unwrap(), "--emit-telemetry", dir.to_str().unwrap()];
    let outcome = home.run(&arguments);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    let files = std::fs::read_dir(&dir).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let events: Vec<Value> = files
        .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>())
        .collect();
    let fields = |is_ahead: bool| {
        let of = events.iter().filter(move |event: &&Value| (event["enricher_prefetched"] == true) == is_ahead);
        of.map(|event| (event["tool_name_anon"].to_string(), event["session_hash"].to_string())).collect::<Vec<_>>()
    };
    let (ahead, own) = (fields(true), fields(false));
    assert_eq!(ahead.len(), 3);
    for (tool, session) in &ahead {
        assert!(tool.starts_with("\"mcp__p") && tool.ends_with("__one\""), "{tool}");
        assert!(own.iter().any(|(own, of)| own == tool && of == session), "{tool} {session}");
    }
}

/// F2, F4, F5: figures are those of the user's own logs, and the coverage is a share of calls.
#[test]
fn the_report_says_for_how_many_calls_value_models_speak() {
    let script = |session: usize| {
        let strange = ("mcp__y__look", json!({ "file_path": path("src/a.rs") }), "so on");
        Script::new(&format!("s{session:02}"))
            .grep(&["src/a.rs"])
            .read("src/a.rs")
            .step(&[strange.clone(), strange])
            .log()
    };
    let home = home(10, script);
    let notes = home.json(&["replay", "--planner"])["planner"]["notes"].to_string();
    assert!(notes.contains("value models speak for the tools of 6 of 12 calls"), "{notes}");
}
