//! How tools were used: what a call was like, and what the calls of a tool or server add up to; and statistics of tools from
//! the calls of a history.

use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::stats::ToolStats;
use crate::frames::groups::{DataFrame, FrameGroup, column, columns, frame, grouped, sums};
use crate::logs::history::{Call, History};
use crate::logs::trace::ResultKind;

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
    pub tool: Sym,
    /// Number of its MCP server in the list of servers; 0 for tools of no server.
    pub server: u32,
    /// Number of its session.
    pub session: u32,
    /// Whether it ran and answered.
    pub ran: bool,
    /// Whether it ran and its answer has a text size: text or nothing at all.
    pub sized: bool,
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
    pub bytes: u32,
    pub tokens: u32,
    pub with_text: bool,
    /// Whether the tokens of it were counted exactly.
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
#[serde(default)]
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
    pub bytes: [u64; 3],
    /// Calls with a known latency.
    pub timed: u64,
    /// Median, 90th and 99th percentile of the latency.
    pub latency_ms: [u64; 3],
    /// Tokens of the answers.
    pub response_tokens: u64,
    /// Answers with text, those included that refuse a call.
    pub with_text: u64,
    /// Of these, those whose tokens were counted exactly; the others are estimated from their bytes.
    pub counted: u64,
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
    pub calls: u64,
    /// Of these, by tools that only read.
    pub read_calls: u64,
    /// Main threads and subagents with calls.
    pub chains: u64,
    /// Of these, subagents.
    pub subagents: u64,
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

/// One row per call.
pub struct ToolFrame {
    calls: DataFrame,
}

impl ToolFrame {
    /// The frame of some calls.
    pub fn new(calls: &[MinedCall]) -> Result<Self> {
        let mut columns = columns!(
            calls => server, session, ran, sized, failed, rejected, open, empty, empty_run, repeatable, reads, chars,
            bytes, latency_ms, with_text, counted, input_bytes
        );
        columns.extend([
            column("tool", calls, |call| call.tool.0),
            column("empty_in_runs", calls, |call| call.in_empty_run),
            column("repeats", calls, |call| call.repeat),
            column("rereads_same", calls, |call| call.reread == Some(Reread::Same)),
            column("rereads_overlapping", calls, |call| call.reread == Some(Reread::Overlapping)),
            column("rereads_other", calls, |call| call.reread == Some(Reread::Other)),
            column("response_tokens", calls, |call| call.tokens),
        ]);
        Ok(Self { calls: frame(calls.len(), columns)? })
    }

    /// Sums by tool (`"tool"`) or server (`"server"`), with the number of each; names are left empty.
    pub fn uses(&self, by: &str) -> Result<Vec<(u32, ToolUsage)>> {
        grouped(&self.calls, &[by], |group| {
            let sized = group.only("sized")?;
            let mut usage = ToolUsage {
                calls: group.count(),
                sessions: group.distinct("session")?,
                sized: sized.count(),
                empty_run_max: group.extremes("empty_run")?[1] as u64,
                chars: quantiles(&sized, "chars")?,
                bytes: quantiles(&sized, "bytes")?,
                timed: group.known("latency_ms")?,
                latency_ms: quantiles(group, "latency_ms")?,
                ..ToolUsage::default()
            };
            sums!(
                group => usage: ran, failed, rejected, open, empty, empty_in_runs, repeatable, repeats, reads,
                rereads_same, rereads_overlapping, rereads_other, response_tokens, with_text, counted, input_bytes
            );
            Ok((group.key(by)?, usage))
        })
    }
}

/// Median, 90th and 99th percentile of a column (lower elements); 0 where nothing is known.
fn quantiles(group: &FrameGroup<'_>, name: &str) -> Result<[u64; 3]> {
    let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| quantile(group, name, share));
    Ok([p50?, p90?, p99?])
}

fn quantile(group: &FrameGroup<'_>, name: &str, share: f64) -> Result<u64> {
    Ok(group.quantile(name, share)?.unwrap_or_default() as u64)
}

/// Statistics of every tool, by symbol.
pub fn tool_stats(history: &History) -> Result<Vec<ToolStats>> {
    let calls: Vec<&Call> = history.calls_of_chains().map(|(_, call)| call).collect();
    let calls = &calls[..];
    let columns = vec![
        column("tool", calls, |call| call.tool.0),
        column("session", calls, |call| history.chains[call.chain as usize].session),
        column("ran", calls, |call| call.ran()),
        column("sized", calls, |call| call.ran() && call.kind != ResultKind::NonText),
        column("known", calls, |call| call.ran() && call.shape > 0),
        column("bytes", calls, |call| call.bytes),
        column("latency_ms", calls, |call| call.latency_ms.filter(|_| call.ran())),
        column("shape", calls, |call| u32::from(call.shape)),
    ];
    let calls = frame(calls.len(), columns)?;
    grouped(&calls, &["tool"], |group| {
        let sized = group.only("sized")?;
        Ok(ToolStats {
            tool: group.name("tool")?,
            calls: group.count(),
            sessions: group.distinct("session")?,
            ran: group.sum("ran")?,
            sized: sized.count(),
            bytes_p50: quantile(&sized, "bytes", 0.5)?,
            bytes_p99: quantile(&sized, "bytes", 0.99)?,
            timed: group.known("latency_ms")?,
            latency_ms_p50: quantile(group, "latency_ms", 0.5)?,
            shapes: group
                .only("known")?
                .counts("shape")?
                .into_iter()
                .map(|(shape, calls)| (shape as u8, calls))
                .collect(),
        })
    })
}
