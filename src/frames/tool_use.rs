//! How tools were used: what a call was like, and what the calls of a tool or server add up to.

use serde::{Deserialize, Serialize};

use crate::base::names::Sym;

/// How a read stands to the earlier reads of the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reread {
    /// The same bytes were shown before.
    Same,
    /// Other bytes, of lines that overlap.
    Overlapping,
    /// Other bytes, of other lines, or of lines that nobody can tell.
    Other,
}

/// What one call was like, in its context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinedCall {
    /// Tool.
    pub tool: Sym,
    /// Number of its MCP server in the list of servers; 0 for tools of no server.
    pub server: u32,
    /// Number of its session.
    pub session: u32,
    /// Whether it ran and answered.
    pub ran: bool,
    /// Whether it ran and its answer has a text size: text or nothing at all.
    pub sized: bool,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it was refused.
    pub rejected: bool,
    /// Whether it has no answer, or was cancelled with a sibling.
    pub open: bool,
    /// Whether it answered without any content.
    pub empty: bool,
    /// Whether its answer is text that was no failure: what can repeat.
    pub repeatable: bool,
    /// Whether the context was shown the same text before.
    pub repeat: bool,
    /// Whether it read a file that it names.
    pub reads: bool,
    /// How it stands to earlier reads of the same file by the same tool in the context, with no edit of it since; none for
    /// a first read.
    pub reread: Option<Reread>,
    /// Length of the answer in code points.
    pub chars: u32,
    /// The same in bytes.
    pub bytes: u32,
    /// Tokens of the answer.
    pub tokens: u32,
    /// Whether these were counted exactly.
    pub counted: bool,
    /// Length of the input as JSON, in bytes.
    pub input_bytes: u32,
    /// From call to answer, for calls that ran.
    pub latency_ms: Option<u32>,
    /// Answers of its tool in a row without content, up to and with this one, within the context.
    pub empty_run: u32,
    /// Whether an empty answer of its tool came before or comes after it in such a row.
    pub in_empty_run: bool,
}

/// What calls add up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolUsage {
    /// Tool or server.
    pub name: String,
    /// Calls, each once.
    pub calls: u64,
    /// Sessions with at least one.
    pub sessions: u64,
    /// Calls that ran and answered.
    pub ran: u64,
    /// Of these, with a text size: the base of size quantiles.
    pub sized: u64,
    /// Of those that ran, failed.
    pub failed: u64,
    /// Calls refused.
    pub rejected: u64,
    /// Calls without an answer.
    pub open: u64,
    /// Answers without content.
    pub empty: u64,
    /// Of these, in rows of two and more.
    pub empty_in_runs: u64,
    /// The longest such row.
    pub empty_run_max: u64,
    /// Answers that can repeat.
    pub repeatable: u64,
    /// Of these, shown to the context before.
    pub repeats: u64,
    /// Reads of a named file.
    pub reads: u64,
    /// Of these, again without a change between: bytes that were shown before.
    pub rereads_same: u64,
    /// Other bytes, of lines that overlap with lines read before.
    pub rereads_overlapping: u64,
    /// Other bytes, of other lines.
    pub rereads_other: u64,
    /// Median, 90th and 99th percentile of the answers in code points (lower element).
    pub chars: [u64; 3],
    /// The same in bytes.
    pub bytes: [u64; 3],
    /// Calls with a known latency.
    pub timed: u64,
    /// Median, 90th and 99th percentile of the latency.
    pub latency_ms: [u64; 3],
    /// Tokens of the answers.
    pub response_tokens: u64,
    /// Answers whose tokens were counted exactly; the others are estimated from their bytes.
    pub counted: u64,
    /// Bytes of the inputs.
    pub input_bytes: u64,
}

/// Tools and servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolUsages {
    /// Tools, the most called first.
    pub tools: Vec<ToolUsage>,
    /// MCP servers and, under `(built-in)`, all other tools.
    pub servers: Vec<ToolUsage>,
    /// Sessions with a call.
    pub sessions: u64,
}

/// A row of the published table of volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Tool.
    pub tool: String,
    /// Calls, copies in other files included.
    pub calls: u64,
    /// Files with at least one.
    pub sessions: u64,
    /// Median of the answers in code points, truncated; calls without an answer count as 0.
    pub chars_median: u64,
    /// 90th percentile, linear between elements, truncated.
    pub chars_p90: u64,
    /// 99th percentile of the same.
    pub chars_p99: u64,
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRowSummary {
    /// Pseudonym.
    pub session: String,
    /// Pseudonym of its project.
    pub project: String,
    /// First record, in milliseconds since 1970.
    pub first_ms: Option<i64>,
    /// Last record.
    pub last_ms: Option<i64>,
    /// Tool calls.
    pub calls: u64,
    /// Of these, by tools that only read.
    pub read_calls: u64,
    /// Main threads and subagents with calls.
    pub chains: u64,
    /// Of these, subagents.
    pub subagents: u64,
    /// Compactions.
    pub compactions: u64,
    /// Stretches of the main thread between prompts of a person, whether tools were called in them or not.
    pub turns: u64,
    /// API messages.
    pub messages: u64,
    /// Models, the most used first.
    pub models: Vec<String>,
    /// Tokens sent uncached.
    pub input_tokens: u64,
    /// Tokens written; a lower bound.
    pub output_tokens: u64,
    /// Tokens written to the cache.
    pub cache_creation_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Bytes of all tool answers.
    pub response_bytes: u64,
    /// Agent variant by the published thresholds; empty until it is classified.
    pub class: String,
}
