//! `devboy tune analyze` and the retention of telemetry from the outside.

use std::path::Path;

use serde_json::{Value, json};

use super::harness::{Home, NOW_MS};
use crate::base::data::Data;
use crate::rules::tool_keys::{kib, kib_at_least, link_list};
use crate::settings::annotations::Annotations;
use crate::settings::{Effective, SettingsFile, View};
use crate::shell::arguments::Exit;

const EVENTS: &str = ".config/devboy/telemetry/events/s.jsonl";
const DAY_MS: i64 = 86_400_000;

/// One event; `body` names its content, `number` its place in time.
fn event(endpoint: &str, number: usize, body: usize, tokens: u64, sent: u64, layer: &str) -> Value {
    json!({
        "session_hash": "s1",
        "tool_call_id_hash": format!("{number:08x}"),
        "tool_name_anon": endpoint,
        "endpoint_class": endpoint,
        "response_chars": 4 * tokens,
        "shape": "prose",
        "inner_formats": [],
        "content_sha_prefix_hex": format!("{body:032x}"),
        "is_dedup_hit": layer == "L0",
        "layer_used": layer,
        "tokens_baseline": tokens,
        "tokens_final": sent,
        "context_partition": 0,
        "is_sidechain": false,
        "ts_ms": NOW_MS - DAY_MS + 1000 * number as i64,
        "sample_rate_applied": 1.0,
    })
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// Forty answers of one endpoint in pairs of the same content, six other bodies between the two.
fn repeats_far_apart() -> Vec<Value> {
    let bodies: Vec<usize> = (0..5).flat_map(|block| (0..8).map(move |place| block * 4 + place % 4)).collect();
    // Between the two showings of a body lie three others and, from another endpoint, three more.
    let mut events = Vec::new();
    for (number, body) in bodies.into_iter().enumerate() {
        events.push(event("Poll", 2 * number, 1 + body, 300, 300, "L3"));
        events.push(event("Other", 2 * number + 1, 1000 + number, 300, 300, "L3"));
    }
    events
}

#[test]
fn an_endpoint_that_repeats_gets_the_cache_that_its_repeats_need_and_the_effect_is_replayed() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    let report = home.json(&["tune", "analyze", "-q"]);
    let tree: toml_edit::DocumentMut = std::fs::read_to_string(home.config()).unwrap().parse().unwrap();
    // That hints are on is built in, and that Other has none saves nothing more: neither is written.
    assert!(tree.get("dedup").is_none() && tree["endpoint_overrides"].get("Other").is_none(), "{tree}");
    let findings = report["findings"].as_array().unwrap();
    let held = |words: &str| findings.iter().any(|row| row["reason"].as_str().is_some_and(|why| why.contains(words)));
    assert!(
        held("says nothing that does not hold without it") && held("which save as much without it"),
        "{findings:#?}"
    );
    // Three other Polls and four Others lie between: one more than seven bodies have to be kept.
    assert_eq!(tree["endpoint_overrides"]["Poll"]["lru_size"].as_integer(), Some(8));
    // Twenty repeats of 300 tokens are answered by hints, none of them with the five entries of before.
    assert_eq!(report["gate"]["saved_before"], json!(0.0));
    let hint = 300.0 - report["gate"]["saved_after"].as_f64().unwrap() / 20.0;
    assert!((10.0..20.0).contains(&hint), "a hint of {hint} tokens");
    let second = home.run(&["tune", "analyze"]);
    assert_eq!((second.exit, second.out.lines().count()), (Exit::Done, 1), "{}", second.out);
    assert!(
        second.out.starts_with("Nothing to change in ") && second.out.contains("no change is sure to save more"),
        "{}",
        second.out
    );
    assert_eq!(home.run(&["tune", "analyze", "-q"]).out, "", "the weekly job prints what changed, and nothing else");
}

#[test]
fn a_new_block_of_a_tool_takes_nothing_away() {
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", "[enrichment]\nenabled = true\n");
    // Every file is read, edited, and read as it was: what Edit makes stale counts.
    let of_file = |file: usize| {
        let calls = [("Read", file, 1000), ("Edit", 100 + file, 40), ("Read", file, 1000)];
        let call = move |(at, (tool, body, tokens))| event(tool, 3 * file + at, body, tokens, tokens, "L3");
        calls.into_iter().enumerate().map(call)
    };
    home.write(EVENTS, lines(&(0..20).flat_map(of_file).collect::<Vec<_>>()));
    let report = home.json(&["tune", "analyze", "-q"]);
    let findings = report["findings"].as_array().unwrap();
    assert!(!findings.iter().any(|row| row["reason"].as_str().is_some_and(|why| why.contains("tokens less"))));
    let file = SettingsFile::load(&home.config()).unwrap();
    let annotations = Annotations::load(&Data::default()).unwrap();
    for (tool, bytes) in [("Edit", 160.0), ("Read", 4_000.0)] {
        let mut model = annotations.of(tool).unwrap().model;
        (model.cost_model.typical_kb, model.cost_model.max_kb) = (kib(bytes), Some(kib_at_least(bytes)));
        assert_eq!(Effective::resolve(&file).unwrap().settings.tools[tool], model);
    }
    let second = home.run(&["tune", "analyze"]);
    assert!(second.exit == Exit::Done && second.out.starts_with("Nothing to change in "), "{}", second.out);
}

#[test]
fn a_pin_also_holds_the_key_that_would_overrule_it() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    for pinned in ["[dedup.enabled_per_endpoint]\nPoll = false # pin\n", "# pin\n[dedup]\nlru_size = 2\n"] {
        home.write(".config/devboy/pipeline_config.toml", pinned);
        let report = home.json(&["tune", "analyze", "--dry-run", "-q"]);
        let findings = report["findings"].as_array().unwrap();
        let of_poll = findings.iter().filter(|row| row["rule"] == "R1" && row["subject"] == "Poll");
        let reasons: Vec<&str> = of_poll.map(|row| row["reason"].as_str().unwrap_or_default()).collect();
        let overrules = |key: &str| {
            let words = format!("which `endpoint_overrides.Poll.{key}` would overrule");
            reasons.iter().any(|reason| reason.ends_with(&words))
        };
        assert!(overrules("dedup_enabled") && overrules("lru_size") == pinned.contains("lru_size"), "{reasons:?}");
        assert!(!report["diff"].as_str().unwrap().contains("dedup_enabled"), "{}", report["diff"]);
    }
}

#[test]
fn one_of_two_keys_that_say_the_same_is_pinned_with_the_other() {
    let file = SettingsFile::parse(
        Path::new("c.toml"),
        "[endpoint_overrides.a]\ntemplate_id = \"csv_from_md\" # pin\n\n[endpoint_overrides.b] # pin\nlru_size = 9\n",
    )
    .unwrap();
    let view = View::of(&file).unwrap();
    let against = |key: &str| view.pin_against(&key.parse().unwrap()).map(|key| key.to_string());
    assert_eq!(against("templates.endpoint_overrides.a").as_deref(), Some("endpoint_overrides.a.template_id"));
    assert_eq!(against("dedup.enabled_per_endpoint.b").as_deref(), Some("endpoint_overrides.b.dedup_enabled"));
    assert_eq!((against("dedup.enabled_per_endpoint.a"), against("dedup.lru_size")), (None, None));
}

#[test]
fn a_pin_of_a_tool_holds_the_keys_of_its_classes() {
    let pinned = "[endpoint_overrides.Bash]\ndedup_enabled = false # pin\n";
    let file = SettingsFile::parse(Path::new("c.toml"), pinned).unwrap();
    let view = View::of(&file).unwrap().knowing([("git_log".to_owned(), "Bash".to_owned())].into());
    for name in ["git_log", "\"Bash:git_diff\"", "Bash"] {
        for key in [format!("endpoint_overrides.{name}.dedup_enabled"), format!("dedup.enabled_per_endpoint.{name}")] {
            let pin = view.pin_against(&key.parse().unwrap()).map(|key| key.to_string());
            assert_eq!(pin.as_deref(), Some("endpoint_overrides.Bash.dedup_enabled"), "{key}");
        }
    }
    assert_eq!(view.pin_against(&"endpoint_overrides.git_log.lru_size".parse().unwrap()), None);
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", pinned);
    let of_bash = |mut event: Value| {
        event["tool_name_anon"] = json!("Bash");
        event
    };
    home.write(EVENTS, lines(&repeats_far_apart().into_iter().map(of_bash).collect::<Vec<_>>()));
    let report = home.json(&["tune", "analyze", "--dry-run", "-q"]);
    let diff = report["diff"].as_str().unwrap();
    assert!(!diff.lines().any(|line| line.starts_with('+') && line.contains("dedup")), "{diff}");
}

#[test]
fn a_proposal_that_loses_tokens_is_held_with_what_it_would_lose() {
    let home = Home::new();
    // Forty answers, one of them a repeat that a hint answers: R1 would switch the endpoint off.
    let mut events: Vec<Value> = (0..39).map(|number| event("Read", number, 1 + number, 400, 400, "L3")).collect();
    events.push(event("Read", 39, 39, 400, 13, "L0"));
    home.write(EVENTS, lines(&events));
    let report = home.json(&["tune", "analyze", "--dry-run"]);
    let findings = report["findings"].as_array().unwrap();
    let off: Vec<&Value> = findings.iter().filter(|f| f["rule"] == "R1" && f["subject"] == "Read").collect();
    assert!(!off.is_empty() && off.iter().all(|finding| finding["verdict"] == "hold"), "{off:#?}");
    assert!(off[0]["reason"].as_str().unwrap().contains("would save 38"), "{}", off[0]["reason"]);
    assert!(off[0]["effect"]["tokens"].as_f64().unwrap() < -380.0);
    assert!(!report["diff"].as_str().unwrap().contains("Read = false"));
}

/// The events of [`repeats_far_apart`] in sessions of their own, a day apart; those with an odd number do not repeat.
fn sessions_of(count: usize, repeats: &dyn Fn(usize) -> bool) -> Vec<Value> {
    let session = |number: usize| {
        repeats_far_apart().into_iter().enumerate().map(move |(place, mut event)| {
            event["session_hash"] = json!(format!("s{number:03}"));
            event["tool_call_id_hash"] = json!(format!("{:08x}", 1000 * number + place));
            event["ts_ms"] = json!(NOW_MS - DAY_MS * (count - number) as i64 + 1000 * place as i64);
            if !repeats(number) {
                event["content_sha_prefix_hex"] = json!(format!("{:032x}", 1 + 100_000 * number + place));
            }
            event
        })
    };
    (0..count).flat_map(session).collect()
}

#[test]
fn what_the_earlier_sessions_ask_for_is_judged_on_the_later_ones() {
    let size = |repeats: &dyn Fn(usize) -> bool| {
        let home = Home::new();
        home.write(EVENTS, lines(&sessions_of(40, repeats)));
        let report = home.json(&["tune", "analyze", "--dry-run"]);
        assert_eq!((&report["gate"]["held_out"], &report["gate"]["sessions"]), (&true.into(), &12.into()));
        let is_size = |row: &&Value| row["key"] == "endpoint_overrides.Poll.lru_size";
        let size = report["findings"].as_array().unwrap().iter().find(is_size).map(|row| row["new"].clone());
        (size, report)
    };
    assert_eq!(size(&|_| true).0, Some(json!(8)));
    // The habit ends with the earlier sessions: what it asked for does nothing any more.
    let (gone, report) = size(&|number| number < 28);
    assert_eq!(gone, None);
    assert!(report["findings"].to_string().contains("not a token more or less"), "{report:#}");
    // One later session in twelve may be chance.
    let (rare, report) = size(&|number| number < 28 || number == 30);
    assert_eq!(rare, None);
    assert!(report["findings"].to_string().contains("no effect beyond its error"), "{report:#}");
}

#[test]
fn the_first_line_of_a_new_file_says_what_it_is_worth() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    home.run(&["tune", "analyze"]);
    let text = std::fs::read_to_string(home.config()).unwrap();
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with(
            "# Read by the devboy pipeline in an MCP host; only a gateway gains: of all results' tokens the MCP host saves 0.0 % as"
        ),
        "{first}"
    );
    assert!(first.ends_with("(replayed on 1 session)."), "{first}");
}

#[test]
fn numbers_of_a_planner_that_is_off_are_not_refreshed() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    let off = home.run(&["tune", "analyze", "--dry-run", "--explain"]);
    assert!(
        off.out.contains("R6 hold Poll: `tools.Poll.cost_model.typical_kb`: no effect: `enrichment.enabled` is false"),
        "{}",
        off.out
    );
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n[enrichment]\nenabled = true\n");
    let on = home.run(&["tune", "analyze", "--dry-run", "--explain"]);
    assert!(on.out.contains("R6 tools.Poll.cost_model.typical_kb") && on.out.contains("not replayed: "), "{}", on.out);
}

#[test]
fn what_loses_by_itself_is_made_where_it_gains_beside_the_others() {
    let home = Home::new();
    // Between two showings of a Poll lie five others and six Others: too many for the largest cache, unless Other, whose
    // one repeat is answered by a hint, is switched off.
    let bodies: Vec<usize> = (0..5).flat_map(|block| (0..12).map(move |place| block * 6 + place % 6)).collect();
    let mut events = Vec::new();
    for (number, body) in bodies.into_iter().enumerate() {
        events.push(event("Poll", 2 * number, 1 + body, 300, 300, "L3"));
        let (body, sent, layer) = if number == 1 { (1000, 13, "L0") } else { (1000 + number, 300, "L3") };
        events.push(event("Other", 2 * number + 1, body, 300, sent, layer));
    }
    home.write(EVENTS, lines(&events));
    let first = home.json(&["tune", "analyze"]);
    let tree: toml_edit::DocumentMut = std::fs::read_to_string(home.config()).unwrap().parse().unwrap();
    assert_eq!(tree["endpoint_overrides"]["Poll"]["lru_size"].as_integer(), Some(10));
    assert_eq!(tree["dedup"]["enabled_per_endpoint"]["Other"].as_bool(), Some(false), "{first:#}");
    // Thirty repeats are answered by hints instead of one.
    assert!(first["gate"]["saved_after"].as_f64().unwrap() > 25.0 * first["gate"]["saved_before"].as_f64().unwrap());
    let second = home.run(&["tune", "analyze"]);
    assert!(second.exit == Exit::Done && second.out.starts_with("Nothing to change in "), "{}", second.out);
}

/// What was shown: endpoint, body and tokens.
type Shown = (&'static str, usize, u64);

/// The events of sessions one after the other.
fn events_of_sessions(sessions: [Vec<Shown>; 3]) -> String {
    let mut events = Vec::new();
    for (session, shown) in sessions.into_iter().enumerate() {
        for (endpoint, body, tokens) in shown {
            let mut event = event(endpoint, events.len(), body, tokens, tokens, "L3");
            event["session_hash"] = json!(format!("s{session}"));
            events.push(event);
        }
    }
    lines(&events)
}

/// So many bodies, each shown so often, all others between two showings.
fn in_turn(endpoint: &'static str, bodies: usize, times: usize, first: usize) -> Vec<Shown> {
    (0..bodies * times).map(|place| (endpoint, first + place % bodies, 300)).collect()
}

#[test]
fn what_pays_once_the_others_are_written_is_written_with_them() {
    let home = Home::new();
    // Reads are remembered no more. Once they are, they save something in every session with room for eight bodies; with
    // five they take the room of Polls in the last one.
    let pairs = |first: usize| (0..20).map(move |place| ("Read", first + place / 2, 300));
    let mut mixed = in_turn("Poll", 8, 3, 5000);
    for place in 0..20 {
        mixed.extend([("Poll", 6000 + place % 4, 300), ("Read", 7000 + if place < 18 { place } else { 17 }, 300)]);
    }
    let calm = |first: usize| in_turn("Poll", 8, 3, first).into_iter().chain(pairs(first + 500)).collect();
    home.write(EVENTS, events_of_sessions([calm(1000), calm(2000), mixed]));
    home.write(".config/devboy/pipeline_config.toml", "[dedup.enabled_per_endpoint]\nRead = false\n");
    let report = home.json(&["tune", "analyze"]);
    let tree: toml_edit::DocumentMut = std::fs::read_to_string(home.config()).unwrap().parse().unwrap();
    assert_eq!(tree["endpoint_overrides"]["Poll"]["lru_size"].as_integer(), Some(8));
    assert_eq!(tree["dedup"]["enabled_per_endpoint"]["Read"].as_bool(), Some(true), "{report:#}");
    // What each saves adds up to the whole.
    let made = report["findings"].as_array().unwrap().iter().filter(|finding| finding["verdict"] == "propose");
    let saved: f64 = made.filter_map(|finding| finding["effect"]["tokens"].as_f64()).sum();
    let [before, after] = ["saved_before", "saved_after"].map(|key| report["gate"][key].as_f64().unwrap());
    assert!(saved > 0.0 && (after - before - saved).abs() < 0.5, "{report:#}");
    assert_eq!(home.run(&["tune", "analyze", "--check"]).exit, Exit::Done);
}

#[test]
fn what_loses_without_a_proposal_that_is_held_is_held_itself() {
    let home = Home::new();
    // Small bodies that are remembered take the room of large ones in a host. With a larger cache they would not, but that one
    // pays in one session only.
    let session = |first: usize| {
        let mut shown: Vec<Shown> = Vec::new();
        for place in 0..20 {
            let [large, small] = [first + place % 4, first + 100 + place];
            let others = [200, 300].map(|from| ("Bash", first + from + place, 300));
            shown.extend([("mcp__x__get", large, 300), ("mcp__x__get", small, 40), others[0], others[1]]);
        }
        shown.extend((0..20).map(|place| ("Bash", first + 400 + place / 2, 40)));
        shown
    };
    let last = session(3000).into_iter().chain(in_turn("mcp__x__get", 8, 3, 4000)).collect();
    home.write(EVENTS, events_of_sessions([session(1000), session(2000), last]));
    let outcome = home.run(&["tune", "analyze", "--explain"]);
    let reason = "R5 hold (all): `dedup.min_body_chars` = 160 would save 13,680 tokens less on these responses";
    assert!(outcome.exit == Exit::Done && outcome.out.contains(reason), "{}{}", outcome.err, outcome.out);
}

#[test]
fn a_typical_size_that_foresees_worse_is_held_over_telemetry() {
    let home = Home::new();
    let size = |number: usize| if number % 5 < 3 { 100 } else { 1000 };
    let events = (0..40).map(|number| event("Poll", number, number, size(number), size(number), "L3"));
    home.write(EVENTS, lines(&events.collect::<Vec<_>>()));
    let told = |typical_kb: &str| {
        let text = format!("[enrichment]\nenabled = true\n[tools.Poll.cost_model]\ntypical_kb = {typical_kb}\n");
        home.write(".config/devboy/pipeline_config.toml", text);
        home.run(&["tune", "analyze", "--dry-run", "--explain"]).out
    };
    let (large, small) = (told("4.0"), told("0.1"));
    let reason =
        "R6 hold Poll: `tools.Poll.cost_model.typical_kb` = 0.391: loses sight of its budget: 40.0 % of the results";
    assert!(large.contains(reason), "{large}");
    assert!(small.contains("R6 tools.Poll.cost_model.typical_kb: 0.1 → 0.391"), "{small}");
}

#[test]
fn a_list_without_links_is_an_empty_list() {
    assert_eq!(link_list(&[]).to_string(), "[]");
}

#[test]
fn the_three_figures_are_those_of_the_reporting_rule() {
    let home = Home::new();
    // The published example: 100 to 10 by L0, 100 to 70 by L2, 100 as it is.
    let events =
        [event("Read", 0, 1, 100, 10, "L0"), event("Read", 1, 2, 100, 70, "L2"), event("Read", 2, 3, 100, 100, "L3")];
    home.write(EVENTS, lines(&events));
    let told = home.run(&["tune", "analyze", "--dry-run", "--explain"]).err;
    let summary = "# events: 3 | sessions: 1 | endpoints: 1 | dedup: 30.0% | encoder: 15.0% | total: 40.0%";
    assert!(told.contains(summary), "{told}");
    assert!(told.contains("# enrichment: prefetch_hit=n/a"), "a hint was shown");
    assert!(told.lines().filter(|line| !line.is_empty()).all(|line| line.starts_with('#')), "{told}");
}

#[test]
fn without_telemetry_the_places_are_named_and_nothing_is_written() {
    let home = Home::new();
    let outcome = home.run(&["tune", "analyze"]);
    assert_eq!(outcome.exit, Exit::Failed);
    for place in [".config/devboy/telemetry/events", ".devboy/telemetry"] {
        assert!(outcome.err.contains(&home.path(place).display().to_string()), "{}", outcome.err);
    }
    assert!(outcome.err.contains("--from-claude-logs"));
    assert!(!home.config().exists());
    assert_eq!(home.run(&["tune", "analyze", "--allow-empty"]).exit, Exit::Done);
    assert!(!home.config().exists());
}

/// The logs of the test data for each of these days in place of the twenties of October 2026, each time with ids of their own.
/// Returns where.
fn many_times(home: &Home, days: &[&str]) -> String {
    let projects = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/claude-home/projects");
    let files = super::promises::files(Path::new(projects), ".jsonl");
    for (file, (time, days)) in files.iter().flat_map(|file| days.iter().enumerate().map(move |day| (file, day))) {
        let inside = file.strip_prefix(projects).unwrap().to_str().unwrap();
        let mut text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        for id in ["\"msg_", "\"toolu_", "\"req_", "\"uuid\":\"", "\"parentUuid\":\"", "\"sessionId\":\""] {
            text = text.replace(id, &format!("{id}{time}"));
        }
        text = text.replace("2026-10-2", days);
        let (directory, name) = inside.rsplit_once('/').unwrap_or(("", inside));
        home.write(&format!("many/projects/{directory}/{time}{name}"), text);
    }
    home.path("many").to_str().unwrap().to_owned()
}

#[test]
fn extended_formats_are_proposed_where_they_are_asked_for_and_pay_on_later_sessions() {
    let home = Home::new();
    let logs = many_times(&home, &["2026-09-0", "2026-09-1", "2026-09-2", "2026-10-0", "2026-10-1", "2026-10-2"]);
    let analyze = ["tune", "analyze", "--from-claude-logs", "--input-dir", logs.as_str()];
    let of_rule = |more: &[&str]| -> Vec<Value> {
        let report = home.json(&[&analyze[..], &["--dry-run"], more].concat());
        report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == "E1").cloned().collect()
    };
    assert!(of_rule(&[]).is_empty());
    let found = of_rule(&["--extended-formats"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["key"], json!("mckp.formats_enabled"), "{found:?}");
    assert!(found[0]["effect"]["tokens_95"][0].as_f64().unwrap() > 0.0, "{found:?}");
    assert_eq!(found[0]["effect"]["host_tokens"].to_string(), "0.0", "these logs have no tool of an MCP server");
    assert_eq!(home.run(&["tune", "analyze", "--extended-formats"]).exit, Exit::Usage);
    // What is written is what the replay takes, and what it says of it.
    assert_eq!(home.run(&[&analyze[..], &["--extended-formats"]].concat()).exit, Exit::Done);
    let replayed = home.run(&["replay", "--input-dir", &logs]);
    assert!(replayed.out.contains("the configuration lists extended formats"), "{}", replayed.out);
    assert_eq!(of_rule(&["--extended-formats"])[0]["verdict"], json!("skip"));
}

#[test]
fn events_outside_the_window_do_not_count() {
    let home = Home::new();
    let mut events = repeats_far_apart();
    for old in &mut events[..40] {
        old["ts_ms"] = json!(NOW_MS - 40 * DAY_MS);
    }
    home.write(EVENTS, lines(&events));
    let report = home.json(&["tune", "analyze", "--days", "30", "--dry-run"]);
    assert_eq!(report["profile"]["events"], json!(40));
    assert_eq!(report["inputs"]["events_outside_window"], json!(40));
}

#[test]
fn damaged_events_are_counted_and_the_others_used() {
    let home = Home::new();
    let mut text = lines(&[event("Read", 0, 1, 100, 100, "L3")]);
    text += "{\"session_hash\":\"s1\"}\nnot json\n\n";
    text += &lines(&[event("Read", 1, 2, 100, 100, "L3")]).replace("\"tokens_final\":100", "\"tokens_final\":-5");
    text += &lines(&[event("Read", 2, 3, 100, 100, "L3")]).replace("\"tokens_final\":100", "\"tokens_final\":NaN");
    text += &lines(&[event("Read", 3, 4, 100, 100, "L3")])
        .replace("\"sample_rate_applied\":1.0", "\"sample_rate_applied\":1.0,\"schema\":9,\"new_field\":{\"a\":[1]}");
    home.write(EVENTS, text);
    let report = home.json(&["tune", "analyze", "--dry-run"]);
    assert_eq!(report["profile"]["events"], json!(2));
    for (reason, count) in [("missing_field", 1), ("parse_error", 2), ("blank_line", 1), ("out_of_range", 1)] {
        assert_eq!(report["data_quality"][reason]["count"], json!(count), "{reason}: {}", report["data_quality"]);
    }
}

#[test]
fn a_configuration_that_changed_meanwhile_is_not_overwritten() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n");
    // The reader of the output edits the file before devboy gets to writing it.
    struct Editor<'h>(&'h Home);
    impl std::io::Write for Editor<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            std::fs::write(self.0.config(), "schema_version = 4\n# edited\n")?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(home.run_into(&["tune", "analyze"], &mut Editor(&home)), Exit::Failed);
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), "schema_version = 4\n# edited\n");
    let history = home.json(&["tune", "history"]);
    assert_eq!(history["entries"].as_array().unwrap().len(), 0, "what was not written is no change");
}

#[test]
fn what_events_propose_and_the_disk_refuses_is_not_told_as_a_change() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    super::tune::expect_no_word_of_a_refused_change(&home, &["tune", "analyze"]);
}

#[test]
fn the_secret_of_a_machine_decides_no_order() {
    let told = |secret: &str| {
        let home = Home::of_team(Some(secret));
        for number in 0..8 {
            let tool = format!("\"mcp__store__list_{number}\"");
            let text = super::harness::session(&format!("s{number}"), 30).replace("\"Grep\"", &tool);
            home.write(&format!(".claude/projects/-home-u-p/s{number}.jsonl"), text);
        }
        home.run(&["tune", "analyze", "--from-claude-logs", "--dry-run", "--explain"]).out
    };
    let first = told("one");
    assert!(first.contains("R1 skip mcp__store__list_7"), "{first}");
    for secret in ["two", "three", "four"] {
        let lines = |text: String| {
            text.lines().filter(|line| line.contains("mcp__store")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(told(secret)), lines(first.clone()), "{secret}");
    }
}

#[test]
fn a_written_change_is_in_the_history_and_can_be_undone() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    let before = "schema_version = 4\n# mine\n";
    home.write(".config/devboy/pipeline_config.toml", before);
    assert_eq!(home.run(&["tune", "analyze", "-q"]).exit, Exit::Done);
    let history = home.json(&["tune", "history"]);
    assert_eq!(history["entries"].as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["tune", "undo"]).exit, Exit::Done);
    assert_eq!(std::fs::read_to_string(home.config()).unwrap(), before);
}

#[test]
fn check_says_that_changes_are_pending() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    assert_eq!(home.run(&["tune", "analyze", "--check"]).exit, Exit::Pending);
    assert!(!home.config().exists());
    home.run(&["tune", "analyze"]);
    assert_eq!(home.run(&["tune", "analyze", "--check"]).exit, Exit::Done);
    assert!(home.path(".config/devboy/telemetry/endpoints.parquet").exists());
}

#[test]
fn a_pseudonym_is_tuned_under_its_name_once_the_name_is_known() {
    let home = Home::new();
    let mut events = repeats_far_apart();
    for event in events.iter_mut().filter(|event| event["endpoint_class"] == "Poll") {
        event["endpoint_class"] = json!("mcp__p9d96d9__get_pipeline");
        event["tool_name_anon"] = json!("mcp__p9d96d9__get_pipeline");
    }
    home.write(EVENTS, lines(&events));
    let unknown = home.run(&["tune", "analyze", "--dry-run", "--explain"]);
    assert!(unknown.out.contains("R1 hold mcp__p9d96d9__get_pipeline: only a pseudonym"), "{}", unknown.out);
    home.write(
        ".config/devboy/pipeline_config.toml",
        "schema_version = 4\n\n[tools.mcp__gitlab__get_pipeline]\nvalue_class = \"critical\"\n",
    );
    let known = home.run(&["tune", "analyze", "--dry-run"]);
    assert!(known.out.contains("+[endpoint_overrides.mcp__gitlab__get_pipeline]\n+lru_size = 8"), "{}", known.out);
}

#[test]
fn old_telemetry_is_pruned_line_by_line_and_the_rest_stays_byte_for_byte() {
    let home = Home::new();
    let aged = |number: usize, days: i64| {
        let mut event = event("Read", number, 1 + number, 100, 100, "L3");
        event["ts_ms"] = json!(NOW_MS - days * DAY_MS);
        format!("{event}\n")
    };
    let summary = |days: i64| {
        format!("{{\"type\":\"session_summary\",\"data\":{{\"ended_at_ms\":{}}}}}\n", NOW_MS - days * DAY_MS)
    };
    let switched = |days: i64| {
        let mut event = event("Read", 9, 9, 0, 0, "L3");
        event["ts_ms"] = json!(NOW_MS - days * DAY_MS);
        format!("{}\n", json!({ "type": "context_event", "ts_ms": event["ts_ms"], "data": event }))
    };
    let quiet = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis((NOW_MS - 2 * DAY_MS) as u64);
    let put = |name: &str, text: String| {
        let path = home.write(&format!(".devboy/telemetry/{name}.jsonl"), text);
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(quiet).unwrap();
        path
    };
    let mixed =
        put("mixed", aged(0, 31) + "damaged\n" + &aged(1, 29) + &summary(89) + &summary(91) + &switched(28) + "torn");
    let old = put("old", aged(2, 40) + &aged(3, 50) + &summary(95) + &switched(45));
    let busy = put("busy", aged(4, 60));
    // Events that share a line, behind a mark of UTF-8: all of them are too old, or the line stays.
    let glued = |ages: [i64; 2]| format!("\u{feff}{}{}", aged(5, ages[0]).trim_end(), aged(6, ages[1]));
    let shared = put("shared", glued([40, 41]) + &glued([40, 3]));
    // The same events, and nothing that is counted twice.
    put("mixed.annotated", aged(0, 31) + &aged(1, 29));
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode;
    std::fs::set_permissions(&mixed, mode(0o644)).unwrap();
    // A pipeline writes where a link leads to.
    let behind = home.write("elsewhere/behind.jsonl", aged(7, 40) + &aged(8, 3));
    std::fs::File::options().append(true).open(&behind).unwrap().set_modified(quiet).unwrap();
    let link = home.path(".devboy/telemetry/link.jsonl");
    std::os::unix::fs::symlink(&behind, &link).unwrap();
    std::fs::File::options().append(true).open(&busy).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let outcome = home.run(&["ingest", "--prune", "--allow-empty"]);
    assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
    let kept = "damaged\n".to_owned() + &aged(1, 29) + &summary(89) + &switched(28) + "torn";
    assert_eq!(std::fs::metadata(&mixed).unwrap().permissions(), mode(0o100_644), "as the pipeline made it");
    assert_eq!(std::fs::read_to_string(mixed).unwrap(), kept);
    assert_eq!(std::fs::read_to_string(shared).unwrap(), glued([40, 3]));
    assert!(!old.exists() && busy.exists());
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(behind).unwrap(), aged(8, 3));
    let told = "# pruned: 6 events and 1 context event older than 30 days, 2 summaries older than 90 days\n";
    assert!(outcome.err.contains(told), "{}", outcome.err);
    assert!(outcome.err.contains("# pruned: 1 file removed, 4 shortened"), "{}", outcome.err);
    assert!(outcome.err.contains("left 1 file written to within 24 hours"), "{}", outcome.err);
}

#[test]
fn prefetches_that_go_unused_forbid_their_tool_when_r7_is_asked() {
    let home = Home::new();
    let events: Vec<Value> = (0..12)
        .map(|number| {
            let mut event = event("Read", number, 1 + number, 100, 100, "L3");
            event["enricher_prefetched"] = json!(true);
            event["cited_in_next_n_turns"] = json!(number < 3);
            event
        })
        .collect();
    home.write(EVENTS, lines(&events));
    assert!(!home.run(&["tune", "analyze", "--dry-run", "--explain"]).err.contains("R7"));
    let told = home.run(&["tune", "analyze", "--auto-enrichment"]).err;
    assert!(told.contains("# auto-enrichment: R7 active"), "{told}");
    assert!(told.contains("# R7 disabled: [tools.\"Read\"].speculate = false  (12 prefetches, hit_rate 25.0% < 50%)"));
    let tree: toml_edit::DocumentMut = std::fs::read_to_string(home.config()).unwrap().parse().unwrap();
    assert_eq!(tree["tools"]["Read"]["speculate"].as_bool(), Some(false));
    assert!(tree["tools"]["Read"].get("follow_up").is_some());
}

#[test]
fn what_was_fetched_ahead_is_no_example_of_how_the_agent_works() {
    let organic = || -> Vec<Value> {
        (0..40)
            .map(|number: usize| {
                let tool = if number.is_multiple_of(2) { "Grep" } else { "Read" };
                event(tool, number, 1 + number % 23, 400 + 10 * number as u64, 300, "L3")
            })
            .collect()
    };
    let planned = |number: usize| {
        let mut event = event("Read", 100 + number, 1 + number % 23, 9_000, 9_000, "L3");
        event["ts_ms"] = organic()[number]["ts_ms"].clone();
        if number.is_multiple_of(3) {
            event["response_chars"] = json!(0);
            event["enricher_decline_reason"] = json!("budget");
        } else {
            event["enricher_prefetched"] = json!(true);
            event["cited_in_next_n_turns"] = json!(true);
        }
        event
    };
    let with: Vec<Value> = (0..40).flat_map(|number| [organic()[number].clone(), planned(number)]).collect();
    let report = |events: &[Value]| {
        let home = Home::new();
        home.write(EVENTS, lines(events));
        home.json(&["tune", "analyze", "--dry-run", "--reproducible"])
    };
    let (plain, fetched) = (report(&organic()), report(&with));
    assert_eq!(fetched["profile"], plain["profile"]);
    assert_eq!(fetched["fingerprints"], plain["fingerprints"]);
    assert_eq!(fetched["gate"], plain["gate"]);
    assert_eq!(fetched["findings"], plain["findings"]);
    let home = Home::new();
    home.write(EVENTS, lines(&with));
    let told = home.run(&["tune", "analyze", "--dry-run", "--explain"]).err;
    assert!(told.contains("# besides 40 events of the planner"), "{told}");
    // Nobody knows what became of what L1 and L2 wrote (pipeline-compat.md DP-1).
    assert!(told.contains("# encoder and total are potential: "), "{told}");
    assert!(told.contains("prefetches=26 dispatched=0 declines=14"), "{told}");
}

#[test]
fn an_empty_window_leaves_the_fingerprints_as_they_are() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    home.run(&["tune", "analyze"]);
    let path = home.config().parent().unwrap().join("telemetry/endpoints.parquet");
    let before = std::fs::read(&path).unwrap();
    let empty = home.run(&["tune", "analyze", "--allow-empty", "--until", "2001-01-01"]);
    assert_eq!((empty.exit, std::fs::read(&path).unwrap() == before), (Exit::Done, true), "{}", empty.err);
}

/// The planner runs from here on, so that a second run would want the rest.
#[test]
fn what_a_planner_goes_by_is_written_with_its_switch() {
    let home = Home::new();
    let mut events = repeats_far_apart();
    for event in &mut events[..12] {
        event["enricher_prefetched"] = json!(true);
        event["cited_in_next_n_turns"] = json!(true);
    }
    home.write(EVENTS, lines(&events));
    let tune = ["tune", "analyze", "--auto-enrichment"];
    let first = home.run(&tune);
    assert!(first.err.contains("R7 enabled: "), "{}", first.err);
    assert!(first.out.contains("R6 tools.Poll.cost_model.typical_kb"), "{}", first.out);
    assert_eq!(home.run(&[&tune[..], &["--check"]].concat()).exit, Exit::Done);
}

#[test]
fn evidence_stands_on_one_line_of_a_table_and_a_new_file_says_why_it_has_a_version() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    let analyze = ["tune", "analyze", "--dry-run"];
    for form in ["csv", "md"] {
        let table = home.run(&[&analyze[..], &["--format", form]].concat()).out;
        assert!(table.contains("lru_size") && !table.contains("u{a}"), "{table}");
    }
    assert!(home.run(&analyze).out.contains("# schema_version: "));
}

#[test]
fn a_named_place_without_telemetry_is_told_by_the_history_as_well() {
    let home = Home::new();
    let missing = home.run(&["tune", "history", "--input-dir", "nowhere"]);
    assert_eq!(missing.exit, Exit::Failed);
    assert!(missing.err.contains("nowhere") && missing.err.contains("does not exist"), "{}", missing.err);
    assert_eq!(home.run(&["tune", "history", "--input-dir", "nowhere", "--allow-empty"]).exit, Exit::Done);
}

#[test]
fn with_few_sessions_it_says_that_nothing_is_judged_on_later_ones() {
    let home = Home::new();
    home.write(EVENTS, lines(&repeats_far_apart()));
    let few =
        "# 1 session, too few to judge on later ones (29 are needed): proposals are judged on what they were found on";
    let told = home.run(&["tune", "analyze", "--dry-run"]).err;
    assert!(told.contains(few), "{told}");
    // One session says nothing of others.
    let has_interval = |finding: &Value| finding["effect"]["tokens_95"].is_array();
    let found = || home.json(&["tune", "analyze", "--dry-run"])["findings"].as_array().unwrap().clone();
    let effects = found().into_iter().filter(|finding| !finding["effect"].is_null()).collect::<Vec<_>>();
    assert!(!effects.is_empty() && !effects.iter().any(has_interval), "{effects:#?}");
    for (sessions, is_few) in [(28, true), (29, false)] {
        home.write(EVENTS, lines(&sessions_of(sessions, &|_| true)));
        let told = home.run(&["tune", "analyze", "--dry-run"]).err;
        assert_eq!(told.contains("too few to judge on later ones (29 are needed)"), is_few, "{told}");
        assert_eq!(told.contains("rules speak on the earlier sessions"), !is_few, "{told}");
        assert!(found().iter().any(has_interval));
    }
}

#[test]
fn the_rule_about_prefetches_says_whose_it_counts() {
    let told = |sessions: usize| {
        let home = Home::new();
        let mut events = sessions_of(sessions, &|_| true);
        for event in events.iter_mut().step_by(2) {
            (event["enricher_prefetched"], event["cited_in_next_n_turns"]) = (json!(true), json!(false));
        }
        home.write(EVENTS, lines(&events));
        home.run(&["tune", "analyze", "--dry-run", "--auto-enrichment"]).err
    };
    let words = "# R7 counts the prefetches of the earlier sessions:\n# R7 ";
    let (few, many) = (told(1), told(40));
    assert!(few.contains("# R7 ") && !few.contains(words) && many.contains(words), "{few}{many}");
}

/// What came later is kept for the judgement, what the planner foresaw as well as the answers.
#[test]
fn what_the_planner_foresaw_in_later_sessions_says_nothing_of_the_earlier_ones() {
    let told = |earlier: Option<u64>| {
        let home = Home::new();
        home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n[enrichment]\nenabled = true\n");
        let of_session = |session: usize| {
            (0..2).map(move |call| {
                let mut event = event("Poll", 100 * session + call, 1 + 2 * session + call, 300, 300, "L3");
                event["session_hash"] = json!(format!("s{session:02}"));
                // An answer of 300 tokens overruns 30.
                event["enricher_predicted_cost_tokens"] = json!(if session < 28 { earlier } else { Some(30) });
                event
            })
        };
        home.write(EVENTS, lines(&(0..40).flat_map(of_session).collect::<Vec<_>>()));
        home.run(&["tune", "analyze", "--dry-run", "--explain"])
    };
    let both = told(Some(600));
    assert!(both.out.contains("R6") && !both.out.contains("predictions were met"), "{}{}", both.err, both.out);
    // Where only later sessions know the planner, they are what there is, and are named.
    let later = told(None);
    assert!(later.out.contains("24 of 24 predictions were met with 130 % or more = 100.0 % (95 %"), "{}", later.out);
    let words = "what R6 and R7 say of the planner is of the latest sessions";
    assert!(later.err.contains(words) && !both.err.contains(words), "{}", later.err);
}
