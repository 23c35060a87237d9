//! The totals against a second, plain program that reads the same logs with serde_json, and sums that must come out
//! even.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Deserializer, Value, json};

use crate::logs::history::History;
use crate::logs::trace::Status;
use crate::mine::totals::{quantile_lower, totals};
use crate::tests::log_builder::*;

/// What stands on a line, in order; `None` for what is no JSON.
fn items(line: &str) -> Vec<Option<Value>> {
    let mut values = Deserializer::from_str(line).into_iter::<Value>();
    let mut out: Vec<Option<Value>> = Vec::new();
    for value in &mut values {
        out.push(value.ok());
    }
    out
}

/// The text of a result.
fn body(content: &Value) -> String {
    let texts = |blocks: &Vec<Value>| {
        let texts =
            blocks.iter().filter(|block| block["type"] == "text").map(|block| block["text"].as_str().unwrap_or(""));
        texts.collect::<Vec<_>>().join("\n")
    };
    content.as_str().map(str::to_owned).unwrap_or_else(|| content.as_array().map(texts).unwrap_or_default())
}

/// A result: its text, whether it is an error, the partition in which it stands.
type Answer = (String, bool, u64);

/// Sums over all files, in the words of the report.
#[derive(Default)]
struct Facts {
    numbers: BTreeMap<&'static str, u64>,
    types: BTreeMap<String, u64>,
    sessions: BTreeSet<String>,
    ids: BTreeSet<String>,
    calls: BTreeMap<String, u64>,
    files: BTreeMap<String, u64>,
    sizes: BTreeMap<String, Vec<usize>>,
    usage: BTreeMap<String, [u64; 4]>,
    models: BTreeMap<String, String>,
}

const TOKENS: [&str; 4] = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

impl Facts {
    fn add(&mut self, name: &'static str, more: usize) {
        *self.numbers.entry(name).or_default() += more as u64;
    }

    fn file(&mut self, log: &str) {
        self.add("files", 1);
        let (mut uses, mut answers, mut order) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (mut partition, mut boundary) = (0, None);
        let items = log.lines().filter(|line| !line.trim().is_empty()).flat_map(items);
        for (number, item) in items.enumerate() {
            let Some(record) = item else {
                self.add("bad", 1);
                continue;
            };
            if !record.is_object() {
                self.add("bare", 1);
                continue;
            }
            self.add("records", 1);
            *self.types.entry(record["type"].as_str().unwrap_or("None").to_owned()).or_default() += 1;
            self.sessions.extend(record["sessionId"].as_str().map(str::to_owned));
            if record["type"] == "system" && record["subtype"] == "compact_boundary" {
                (partition, boundary) = (partition + 1, Some(number));
                self.add("boundaries", 1);
            }
            if record["isCompactSummary"] == true && boundary.is_none_or(|boundary| number - boundary > 3) {
                partition += 1;
                self.add("summaries", 1);
            }
            if record["type"] == "assistant" {
                self.usage(&record["message"]);
            }
            for block in record["message"]["content"].as_array().into_iter().flatten() {
                if record["type"] == "assistant" && block["type"] == "tool_use" {
                    uses.push((block["id"].to_string(), block["name"].as_str().unwrap_or("").to_owned()));
                } else if record["type"] == "user" && block["type"] == "tool_result" {
                    let id = block["tool_use_id"].to_string();
                    answers.insert(id.clone(), (body(&block["content"]), block["is_error"] == true, partition));
                    order.push(id);
                }
            }
        }
        self.calls(&uses, &answers);
        self.repeats(&order, &answers);
    }

    fn usage(&mut self, message: &Value) {
        let (Some(id), true) = (message["id"].as_str(), message["usage"].is_object()) else { return };
        if message["model"] != "<synthetic>" {
            let sums = self.usage.entry(id.to_owned()).or_default();
            for (sum, name) in sums.iter_mut().zip(TOKENS) {
                *sum = message["usage"][name].as_u64().unwrap_or(0).max(*sum);
            }
            self.models.insert(id.to_owned(), message["model"].as_str().unwrap_or("").to_owned());
        }
    }

    fn calls(&mut self, uses: &[(String, String)], answers: &BTreeMap<String, Answer>) {
        let ids: BTreeSet<&String> = uses.iter().map(|(id, _)| id).collect();
        self.ids.extend(ids.iter().map(|id| (*id).clone()));
        self.add("orphans", answers.keys().filter(|id| !ids.contains(id)).count());
        for lag in 1..=3 {
            self.add(["lag 1", "lag 2", "lag 3"][lag - 1], uses.len().saturating_sub(lag));
        }
        for (id, tool) in uses {
            *self.calls.entry(tool.clone()).or_default() += 1;
            match answers.get(id) {
                None => self.add("unanswered", 1),
                Some((text, failed, _)) => {
                    self.add(if *failed { "error" } else { "ok" }, 1);
                    self.sizes.entry(tool.clone()).or_default().push(text.chars().count());
                }
            }
        }
        for tool in uses.iter().map(|(_, tool)| tool).collect::<BTreeSet<_>>() {
            *self.files.entry(tool.clone()).or_default() += 1;
        }
    }

    fn repeats(&mut self, order: &[String], answers: &BTreeMap<String, Answer>) {
        let (mut seen, mut recent, mut current) = (BTreeSet::new(), Vec::new(), 0);
        for (text, _, partition) in order.iter().map(|id| &answers[id]) {
            if *partition != current {
                (seen, recent, current) = (BTreeSet::new(), Vec::new(), *partition);
            }
            let chars = text.chars().count();
            if chars < 200 {
                continue;
            }
            self.add("eligible", 1);
            if !seen.insert(text) {
                self.add("repeats", 1);
                self.add("repeated chars", chars);
            }
            let before = recent.len();
            recent.retain(|known| known != &text);
            self.add("recent repeats", before - recent.len());
            recent.push(text);
            recent.drain(..recent.len().saturating_sub(5));
        }
    }

    fn report(mut self) -> Value {
        let tools: BTreeMap<&String, Value> = self
            .calls
            .iter()
            .map(|(tool, calls)| {
                let sizes = self.sizes.entry(tool.clone()).or_default();
                sizes.sort_unstable();
                let at = |share: f64| sizes.get((share * sizes.len().saturating_sub(1) as f64) as usize);
                (tool, json!({ "calls": calls, "files": self.files[tool], "p50": at(0.5), "p90": at(0.9) }))
            })
            .collect();
        let mut models: BTreeMap<&String, u64> = BTreeMap::new();
        for model in self.models.values() {
            *models.entry(model).or_default() += 1;
        }
        let tokens = |index: usize| self.usage.values().map(|sums| sums[index]).sum::<u64>();
        let number = |name| self.numbers.get(name).copied().unwrap_or(0);
        json!({
            "files": number("files"),
            "records": number("records"),
            "bad_fragments": number("bad"),
            "non_objects": number("bare"),
            "sessions": self.sessions.len(),
            "tool_uses": self.calls.values().sum::<u64>(),
            "tool_uses_distinct": self.ids.len(),
            "paired": number("ok") + number("error"),
            "unanswered": number("unanswered"),
            "orphan_results": number("orphans"),
            "status": { "ok": number("ok"), "error": number("error") },
            "compact_boundaries": number("boundaries"),
            "compact_summaries_alone": number("summaries"),
            "tools": tools,
            "edge_total": { "1": number("lag 1"), "2": number("lag 2"), "3": number("lag 3") },
            "messages": self.usage.len(),
            "usage": TOKENS.iter().enumerate().map(|(index, name)| (*name, tokens(index))).collect::<BTreeMap<_, _>>(),
            "models": models,
            "dedup": {
                "eligible_ge200": number("eligible"),
                "repeat_unlimited": number("repeats"),
                "repeat_lru5": number("recent repeats"),
                "repeat_chars": number("repeated chars"),
            },
            "types": self.types,
        })
    }
}

/// Texts of which many are equal and whose lengths lie around the least length of a repeat.
fn any_body() -> impl Strategy<Value = Value> {
    let text = (
        prop::sample::select(vec!["a", "é", "→", "😀", "\n", "\"", "\u{0}"]),
        prop_oneof![Just(0_usize), 1..4_usize, 198..203_usize],
    )
        .prop_map(|(piece, times)| piece.repeat(times));
    prop_oneof![
        6 => text.clone().prop_map(Value::from),
        2 => (text.clone(), text).prop_map(|(one, two)| json!([
            { "type": "text", "text": one }, { "type": "image", "source": {} }, { "text": two, "type": "text" },
        ])),
        1 => Just(json!([{ "type": "tool_reference", "tool_name": "x" }])),
        1 => Just(json!([])),
        1 => Just(Value::Null),
    ]
}

/// One record of any kind. Few ids, so that many are equal.
fn any_record() -> impl Strategy<Value = Record> {
    let call = (0..12_u8).prop_map(|call| format!("c{call}"));
    let tool = prop::sample::select(vec!["Read", "Bash", "mcp__a__b", "Grep", ""]);
    let uses = prop::collection::vec((call.clone(), tool).prop_map(|(call, tool)| tool_use(&call, tool)), 0..4);
    let tokens = (0..9_u64, 0..99_u64, prop::option::of(0..50_u64));
    let talk = (0..9_u8, uses, tokens).prop_map(|(message, blocks, (input, output, cached))| {
        let usage = json!({ "input_tokens": input, "output_tokens": output, "cache_read_input_tokens": cached, "cache_creation_input_tokens": input * 3 });
        let record = assistant(&format!("m{message}"), &blocks).message("usage", usage);
        match message {
            0 => record.message("model", "<synthetic>"),
            1 => record.message("model", "claude-opus-5"),
            2 => record.message("usage", Value::Null),
            3 => record.message("id", Value::Null),
            _ => record,
        }
    });
    let result = (call, any_body(), any::<bool>(), any::<bool>()).prop_map(|(call, content, fails, told)| {
        let mut block = json!({ "type": "tool_result", "tool_use_id": call, "content": content });
        if fails || told {
            block["is_error"] = json!(fails);
        }
        user("r", vec![block])
    });
    let mark = prop_oneof![Just(boundary("b")), Just(compact_summary("s", None)), Just(micro_compaction("b", &["c1"]))];
    let other = prop_oneof![
        Just(user("u", "a prompt")),
        Just(bash_progress()),
        Just(agent_progress("a1", &asks("m-own", "c7", "Read"))),
        Just(Record::new("surprise", "u").set("nested", json!({ "type": "user", "text": "}{" }))),
        Just(Record::new("attachment", "u").without("type")),
    ];
    let session = prop::sample::select(vec![Some("s-1"), Some("s-2"), Some("s-3"), None]);
    (prop_oneof![5 => talk, 5 => result, 1 => mark, 1 => other], session).prop_map(|(record, session)| match session {
        Some(session) => record.session(session),
        None => record.without("sessionId"),
    })
}

fn any_line() -> impl Strategy<Value = String> {
    let odd = vec!["", "   ", "[1,2]", "7", "\"text\"", "nonsense", "{\"type\":\"user\",\"message\":{", "{}", "{} {}"];
    let skipped = prop_oneof![Just(snapshot()), Just(queue_operation())];
    prop_oneof![
        12 => any_record().prop_map(|record| record.to_string()),
        1 => (any_record(), any_record()).prop_map(|(one, two)| format!("{one}{two}")),
        1 => (skipped.clone(), any_record()).prop_map(|(one, two)| format!("{one}{two}")),
        1 => (any_record(), skipped.clone(), any_record()).prop_map(|(one, two, three)| format!("{one}{two}{three}")),
        1 => skipped,
        1 => prop::sample::select(odd).prop_map(str::to_owned),
    ]
}

fn any_log() -> impl Strategy<Value = String> {
    (prop::collection::vec(any_line(), 0..40), any::<bool>())
        .prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

fn share_of(history: &History, status: Status) -> usize {
    history.calls.iter().filter(|call| call.status == status).count()
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn totals_are_those_of_the_plain_program(logs in prop::collection::vec(any_log(), 0..4)) {
        let names: Vec<String> = (0..logs.len()).map(|index| format!("f{index}")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(logs.iter().map(String::as_str)).collect();
        let told = Told::of(&files);
        let found = totals(&told.corpus);
        let mut facts = Facts::default();
        for log in &logs {
            facts.file(log);
        }
        prop_assert_eq!(serde_json::to_value(&found).unwrap(), facts.report());

        // What must come out even, whatever the logs say.
        prop_assert_eq!(found.tool_uses, found.paired + found.unanswered);
        prop_assert_eq!(found.paired, found.status.ok + found.status.error);
        prop_assert_eq!(found.tool_uses, found.tools.values().map(|tool| tool.calls).sum::<u64>());
        prop_assert_eq!(found.records, found.types.values().sum::<u64>());
        prop_assert_eq!(found.messages, found.models.values().sum::<u64>());
        let history = &told.history;
        let ended = Status::ALL.iter().map(|&status| share_of(history, status)).sum::<usize>();
        prop_assert_eq!(ended, history.calls.len());
        prop_assert_eq!(history.calls.len(), history.chains.iter().map(|chain| chain.calls.len()).sum::<usize>());
        for (index, chain) in history.chains.iter().enumerate() {
            let calls = &history.calls[chain.calls.clone()];
            prop_assert!(calls.iter().all(|call| call.chain as usize == index));
            prop_assert!(calls.is_sorted_by_key(|call| call.step));
        }
    }
}

#[test]
fn a_call_in_every_state_is_counted_in_the_history() {
    let rejected = "The user doesn't want to proceed with this tool use.";
    let records = [
        assistant("m1", &["c1", "c2", "c3", "c4", "c5"].map(|call| tool_use(call, "Read"))),
        answers("c1", "x"),
        fails("c2", "no"),
        fails("c3", rejected),
        fails("c4", "Sibling tool call errored"),
    ];
    let told = Told::of(&[("f", &log(&records))]);
    for status in Status::ALL {
        assert_eq!(share_of(&told.history, status), 1, "{}", status.into_str());
    }
    let found = totals(&told.corpus);
    assert_eq!((found.status.ok, found.status.error, found.unanswered), (1, 3, 1));
}

#[test]
fn a_message_of_two_models_counts_for_the_same_one_in_any_order_of_files() {
    let [one, other] = ["claude-opus-5", "claude-sonnet-5"].map(|model| assistant("m1", &[]).message("model", model));
    for files in [[("a", one.line()), ("b", other.line())], [("a", other.line()), ("b", one.line())]] {
        let told = Told::of(&files.each_ref().map(|(name, log)| (*name, log.as_str())));
        let known = &told.history.messages[0];
        let models = totals(&told.corpus).models;
        assert_eq!(models.keys().collect::<Vec<_>>(), [told.corpus.names.text(known.model)]);
    }
}

#[test]
fn progress_of_a_subagent_does_not_count_among_the_records_of_a_file() {
    let found = totals(&Told::of(&[("f", &agent_progress("a1", &asks("m1", "c1", "Read")).line())]).corpus);
    assert_eq!((found.records, found.tool_uses, found.messages), (1, 0, 0));
}

#[test]
fn usage_that_progress_repeats_does_not_raise_that_of_the_record_itself() {
    let progress = agent_progress("a1", &assistant("m1", &[]).usage(90, 90));
    for records in [[progress.clone(), assistant("m1", &[])], [assistant("m1", &[]), progress]] {
        let found = totals(&Told::of(&[("f", &log(&records))]).corpus);
        assert_eq!((found.messages, found.usage.input_tokens, found.usage.output_tokens), (1, 3, 5));
    }
}

#[test]
fn the_small_cache_holds_the_five_most_recently_used() {
    let repeats = |letters: &str| {
        let answer = |(index, letter): (usize, char)| answers(&format!("c{index}"), letter.to_string().repeat(200));
        let records: Vec<Record> = letters.chars().enumerate().map(answer).collect();
        let found = totals(&Told::of(&[("f", &log(&records))]).corpus).dedup;
        (found.repeat_unlimited, found.repeat_lru5, found.repeat_chars)
    };
    assert_eq!(repeats("abcdea"), (1, 1, 200));
    assert_eq!(repeats("abcdefa"), (1, 0, 200));
    assert_eq!(repeats("abcdeafa"), (2, 2, 400), "a hit refreshes");
    assert_eq!(repeats("abcdeafb"), (2, 1, 400));
}

#[test]
fn a_quantile_is_the_lower_element() {
    assert_eq!(quantile_lower(&[], 0.5), None);
    assert_eq!(quantile_lower(&[7], 0.9), Some(7));
    assert_eq!(quantile_lower(&[1, 2, 3, 4], 0.5), Some(2));
    assert_eq!(quantile_lower(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9), Some(9));
    assert_eq!(quantile_lower(&[1, 2, 3], 1.0), Some(3));
}
