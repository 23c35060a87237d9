//! Log records as JSON text, and the way from text to rows and to a history.

use std::fmt;
use std::sync::OnceLock;

use proptest::test_runner::Config;
use serde_json::{Value, json};

use crate::base::id::Id;
use crate::facts::shape;
use crate::logs::assemble::{Kept, assemble};
use crate::logs::corpus::{Corpus, RowSource};
use crate::logs::endpoint::Endpoints;
use crate::logs::history::{Call, Chain, History};
use crate::logs::message::ExtractionGuide;
use crate::logs::read;
use crate::logs::trace::{FileTrace, Millis, Place};
use crate::logs::value_rules::ValueRules;
use crate::logs::vocabulary::Vocabulary;

/// Session of every record that names no other.
pub const SESSION: &str = "s-main";
/// Working directory of every record that names no other.
pub const CWD: &str = "/home/user/lantern";
/// Time of [`Record::at`] zero: 2026-01-02T03:00:00Z.
pub const START_MS: Millis = 1_767_322_800_000;

/// One record: fields in the order in which they are written.
#[derive(Clone)]
pub struct Record(Vec<(String, Value)>);

impl Record {
    /// Its fields; of a field that is there twice the last one.
    pub fn json(&self) -> Value {
        Value::Object(self.0.iter().cloned().collect())
    }

    /// A record with the fields that records of the conversation have; `name` becomes its uuid.
    pub fn new(kind: &str, name: &str) -> Self {
        let fields = [
            ("parentUuid", Value::Null),
            ("isSidechain", json!(false)),
            ("cwd", json!(CWD)),
            ("sessionId", json!(SESSION)),
            ("version", json!("2.1.40")),
            ("type", json!(kind)),
            ("uuid", json!(name)),
        ];
        Self(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()).at(0)
    }

    /// Replaces a field or appends it.
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some(field) => field.1 = value.into(),
            None => self.0.push((key.to_owned(), value.into())),
        }
        self
    }

    /// Removes a field.
    pub fn without(mut self, key: &str) -> Self {
        self.0.retain(|(known, _)| known != key);
        self
    }

    /// Replaces a field of the message.
    pub fn message(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Some((_, message)) = self.0.iter_mut().find(|(known, _)| known == "message") {
            message[key] = value.into();
        }
        self
    }

    /// Removes a field of the message.
    pub fn without_message(mut self, key: &str) -> Self {
        let message = self.0.iter_mut().find(|(known, _)| known == "message");
        message.and_then(|(_, message)| message.as_object_mut()?.remove(key));
        self
    }

    /// Replaces the token counts that most tests look at.
    pub fn usage(self, input: u64, output: u64) -> Self {
        self.message("usage", json!({ "input_tokens": input, "output_tokens": output }))
    }

    /// Sets the time, in seconds after [`START_MS`].
    pub fn at(self, second: u32) -> Self {
        self.set("timestamp", time(second))
    }

    /// Sets the session.
    pub fn session(self, session: &str) -> Self {
        self.set("sessionId", session)
    }

    /// Sets the uuid and the parent's.
    pub fn link(self, uuid: &str, parent: Option<&str>) -> Self {
        self.set("uuid", uuid).set("parentUuid", parent)
    }

    /// Makes it a record of a subagent's own file.
    pub fn agent(self, agent: &str) -> Self {
        self.set("isSidechain", true).set("agentId", agent)
    }

    /// Makes it a side-chain record in the main file.
    pub fn inline(self) -> Self {
        self.set("isSidechain", true)
    }

    /// The record and a line feed.
    pub fn line(&self) -> String {
        format!("{self}\n")
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<String> = self.0.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        write!(f, "{{{}}}", fields.join(","))
    }
}

/// A timestamp, in seconds after [`START_MS`].
pub fn time(second: u32) -> String {
    format!("2026-01-02T{:02}:{:02}:{:02}.000Z", 3 + second / 3600, second / 60 % 60, second % 60)
}

/// One record of an API message.
pub fn assistant(message: &str, blocks: &[Value]) -> Record {
    let message_object = json!({
        "id": message,
        "role": "assistant",
        "model": "claude-sonnet-5",
        "stop_reason": "tool_use",
        "content": blocks,
        "usage": { "input_tokens": 3, "output_tokens": 5 },
    });
    Record::new("assistant", &format!("u-{message}"))
        .set("requestId", format!("req-{message}"))
        .set("message", message_object)
}

/// A `tool_use` block.
pub fn tool_use(call: &str, tool: &str) -> Value {
    json!({ "type": "tool_use", "id": call, "name": tool, "input": {} })
}

/// A record that makes one call.
pub fn asks(message: &str, call: &str, tool: &str) -> Record {
    assistant(message, &[tool_use(call, tool)])
}

/// A user record with these blocks.
pub fn user(name: &str, content: impl Into<Value>) -> Record {
    Record::new("user", name).set("message", json!({ "role": "user", "content": content.into() }))
}

/// The result of a call: a text or a list of blocks.
pub fn answers(call: &str, body: impl Into<Value>) -> Record {
    let block = json!({ "type": "tool_result", "tool_use_id": call, "content": body.into() });
    user(&format!("r-{call}"), vec![block])
}

/// A result with `is_error`.
pub fn fails(call: &str, body: &str) -> Record {
    let block = json!({ "type": "tool_result", "tool_use_id": call, "content": body, "is_error": true });
    user(&format!("r-{call}"), vec![block])
}

/// A compaction's boundary.
pub fn boundary(uuid: &str) -> Record {
    Record::new("system", uuid).set("subtype", "compact_boundary").set("compactMetadata", json!({ "trigger": "auto" }))
}

/// A compaction's summary.
pub fn compact_summary(uuid: &str, parent: Option<&str>) -> Record {
    user(uuid, "what happened so far").link(uuid, parent).set("isCompactSummary", true)
}

/// A micro-compaction that clears the results of these calls.
pub fn micro_compaction(uuid: &str, calls: &[&str]) -> Record {
    let metadata = json!({ "trigger": "auto", "compactedToolIds": calls });
    Record::new("system", uuid).set("subtype", "microcompact_boundary").set("microcompactMetadata", metadata)
}

/// What the parent of a subagent repeats of one of its records.
pub fn agent_progress(agent: &str, inner: &Record) -> Record {
    let inner: Value = serde_json::from_str(&inner.to_string()).unwrap();
    let message = json!({
        "type": inner["type"], "message": inner["message"], "uuid": inner["uuid"], "timestamp": inner["timestamp"],
    });
    let data = json!({ "type": "agent_progress", "agentId": agent, "prompt": "look around", "message": message });
    Record::new("progress", "p").set("data", data)
}

/// Progress of a running command.
pub fn bash_progress() -> Record {
    Record::new("progress", "p").set("data", json!({ "type": "bash_progress", "output": "..." }))
}

/// A record of a type that has no session.
pub fn snapshot() -> String {
    r#"{"type":"file-history-snapshot","messageId":"u","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}"#
        .into()
}

/// A record of a type that carries nothing but its session.
pub fn queue_operation() -> String {
    r#"{"type":"queue-operation","operation":"dequeue","timestamp":"2026-01-02T03:00:00.000Z","sessionId":"s-main"}"#
        .into()
}

/// Records as the text of a file.
pub fn log(records: &[Record]) -> String {
    records.iter().map(Record::line).collect()
}

/// What extraction needs.
pub fn guide() -> ExtractionGuide<'static> {
    static WORDS: OnceLock<Vocabulary> = OnceLock::new();
    static ENDPOINTS: OnceLock<Endpoints> = OnceLock::new();
    static VALUES: OnceLock<ValueRules> = OnceLock::new();
    ExtractionGuide {
        vocabulary: WORDS.get_or_init(Vocabulary::shipped),
        endpoints: ENDPOINTS.get_or_init(Endpoints::shipped),
        values: VALUES.get_or_init(ValueRules::shipped),
        with_values: true,
        classify: shape::classify,
        study: None,
        timeline: None,
    }
}

/// The rows of one file.
pub fn trace(log: impl AsRef<[u8]>) -> FileTrace {
    read::read_stream(log.as_ref(), guide()).trace
}

/// Files that were read, and their history.
pub struct Told {
    /// Rows.
    pub corpus: Corpus,
    /// History.
    pub history: History,
}

impl Told {
    /// Reads files, given as name and text.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self::from_traces(files.iter().map(|(name, log)| (*name, trace(log))))
    }

    /// Puts files together that were read.
    pub fn from_traces<'a>(files: impl IntoIterator<Item = (&'a str, FileTrace)>) -> Self {
        let mut corpus = Corpus::default();
        for (name, trace) in files {
            let source = RowSource {
                key: Id::pseudonym(name.as_bytes()),
                path: Some(name.into()),
                bytes: 0,
                counters: trace.counters.clone().into(),
            };
            corpus.push(source, trace);
        }
        let history = assemble(&mut corpus, &|_| (), Kept::default()).0;
        Self { corpus, history }
    }

    /// The call with this `tool_use` id, of which there must be one.
    pub fn call(&self, id: &str) -> &Call {
        let found: Vec<&Call> = self.history.calls.iter().filter(|call| call.id == Id::of(id.as_bytes())).collect();
        assert_eq!(found.len(), 1, "calls with the id {id}");
        found[0]
    }

    /// The chain of a call.
    pub fn chain(&self, call: &str) -> &Chain {
        &self.history.chains[self.call(call).chain as usize]
    }

    /// Ids of all calls in order, looked up among those given.
    pub fn order<'a>(&self, ids: &[&'a str]) -> Vec<&'a str> {
        let name = |call: &Call| ids.iter().copied().find(|id| Id::of(id.as_bytes()) == call.id).unwrap_or("?");
        self.history.calls.iter().map(name).collect()
    }

    /// Chains as place and number of calls.
    pub fn chains(&self) -> Vec<(Place, usize)> {
        self.history.chains.iter().map(|chain| (chain.place, chain.calls.len())).collect()
    }

    /// The whole history as lines, with names instead of symbols: equal for equal histories in whatever order the
    /// files were read.
    pub fn lines(&self) -> Vec<String> {
        let History { sessions, chains, calls, messages, evictions, prompts, talk_compactions, .. } = &self.history;
        let History { message_sums, merged, held_before, details, .. } = &self.history;
        let name = |sym| self.corpus.names.text(sym);
        let zero = crate::base::names::Sym(0);
        let sessions =
            sessions.iter().map(|row| format!("{} {row:?}", name(row.version)).replace(&sym(row.version), ""));
        let chains = chains.iter().map(|row| format!("{row:?}"));
        let calls = calls.iter().zip(&**details).map(|(row, details)| {
            let tool = name(row.tool);
            let row = Call { tool: zero, ..*row };
            format!("{tool} {row:?} {details:?}")
        });
        let messages = messages.iter().map(|row| format!("{} {row:?}", name(row.model)).replace(&sym(row.model), ""));
        let evictions = evictions.iter().map(|row| format!("{row:?}"));
        let times =
            [format!("{prompts:?}"), format!("{talk_compactions:?}"), format!("{message_sums:?} {held_before:?}")];
        sessions
            .chain(chains)
            .chain(calls)
            .chain(messages)
            .chain(evictions)
            .chain(times)
            .chain([format!("{merged:?}")])
            .collect()
    }
}

fn sym(sym: crate::base::names::Sym) -> String {
    format!("{sym:?}")
}

/// A property with this many cases and no files of its own.
pub fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_global_rejects: 100_000, ..Config::default() }
}
