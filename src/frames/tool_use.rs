//! How tools were used: what a call was like, and what the calls of a tool or server add up to in a Polars frame; and statistics
//! of tools from the calls of a history. Frames hold numbers only: names are symbols, so grouping never touches text.

use std::collections::BTreeMap;

use polars::prelude::*;
use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::stats::ToolStats;
use crate::frames::columns::{Collected, fault, grouped, whole};
use crate::logs::history::History;
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

/// Names of the quantiles in the queries.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
/// A column that says yes or no.
type Flag = (&'static str, fn(&MinedCall) -> bool);
/// All of them.
const FLAGS: [Flag; 13] = [
    ("ran", |call| call.ran),
    ("sized", |call| call.sized),
    ("failed", |call| call.failed),
    ("rejected", |call| call.rejected),
    ("open", |call| call.open),
    ("empty", |call| call.empty),
    ("empty_in_runs", |call| call.in_empty_run),
    ("repeatable", |call| call.repeatable),
    ("repeats", |call| call.repeat),
    ("reads", |call| call.reads),
    ("rereads_same", |call| call.reread == Some(Reread::Same)),
    ("rereads_overlapping", |call| call.reread == Some(Reread::Overlapping)),
    ("rereads_other", |call| call.reread == Some(Reread::Other)),
];

/// One row per call.
pub struct ToolFrame {
    calls: LazyFrame,
}

impl ToolFrame {
    /// The frame of some calls.
    ///
    /// # Errors
    /// If the columns do not fit together, which is a fault of devboy.
    pub fn new(calls: &[MinedCall]) -> Result<Self> {
        let of = |value: fn(&MinedCall) -> u32| calls.iter().map(value).collect::<Vec<u32>>();
        let mut columns: Vec<Column> = vec![
            Column::new("tool".into(), of(|call| call.tool.0)),
            Column::new("server".into(), of(|call| call.server)),
            Column::new("session".into(), of(|call| call.session)),
            Column::new("chars".into(), of(|call| call.chars)),
            Column::new("bytes".into(), of(|call| call.bytes)),
            Column::new("tokens".into(), of(|call| call.tokens)),
            Column::new("counted".into(), calls.iter().map(|call| call.counted).collect::<Vec<bool>>()),
            Column::new("input_bytes".into(), of(|call| call.input_bytes)),
            Column::new("latency_ms".into(), calls.iter().map(|call| call.latency_ms).collect::<Vec<Option<u32>>>()),
            Column::new("empty_run".into(), of(|call| call.empty_run)),
        ];
        let flags =
            FLAGS.iter().map(|(name, of)| Column::new((*name).into(), calls.iter().map(of).collect::<Vec<bool>>()));
        columns.extend(flags);
        Ok(Self { calls: DataFrame::new(calls.len(), columns).map_err(fault)?.lazy() })
    }

    /// Sums by tool (`"tool"`) or server (`"server"`), with the number of each; names are left empty.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn uses(&self, by: &str) -> Result<Vec<(u32, ToolUsage)>> {
        let mut sums = vec![
            whole(len(), "calls"),
            whole(col("session").n_unique(), "sessions"),
            whole(col("tokens").cast(DataType::UInt64).sum(), "response_tokens"),
            whole(col("counted").sum(), "counted"),
            whole(col("input_bytes").cast(DataType::UInt64).sum(), "input_bytes"),
            whole(col("latency_ms").drop_nulls().len(), "timed"),
            whole(col("empty_run").max(), "empty_run_max"),
        ];
        sums.extend(FLAGS.iter().map(|(name, _)| whole(col(*name).sum(), name)));
        for (name, share) in QUANTILES {
            let of = |values: Expr, what: &str| {
                whole(values.quantile(lit(share), QuantileMethod::Lower), &format!("{what}_{name}"))
            };
            sums.push(of(col("chars").filter(col("sized")), "chars"));
            sums.push(of(col("bytes").filter(col("sized")), "bytes"));
            sums.push(of(col("latency_ms").drop_nulls(), "latency_ms"));
        }
        let found = grouped(self.calls.clone(), &[by], &sums)?;
        let columns = Collected(&found);
        let mut uses = columns.rows::<ToolUsage>()?;
        for (row, sums) in uses.iter_mut().enumerate() {
            for (place, (name, _)) in QUANTILES.iter().enumerate() {
                let number = |what: &str| columns.number(&format!("{what}_{name}"), row);
                (sums.chars[place], sums.bytes[place]) = (number("chars")?, number("bytes")?);
                sums.latency_ms[place] = number("latency_ms")?;
            }
        }
        Ok(columns.numbers(by)?.into_iter().map(|number| number as u32).zip(uses).collect())
    }
}

/// One row per call.
fn frame(history: &History) -> Result<LazyFrame> {
    let calls = &history.calls;
    let of = |value: fn(&crate::logs::history::Call) -> u32| calls.iter().map(value).collect::<Vec<u32>>();
    let session = |chain: u32| history.chains[chain as usize].session;
    let frame = df!(
        "tool" => of(|call| call.tool.0),
        "session" => calls.iter().map(|call| session(call.chain)).collect::<Vec<u32>>(),
        "ran" => calls.iter().map(|call| call.ran()).collect::<Vec<bool>>(),
        "kind" => of(|call| call.kind as u32),
        "bytes" => of(|call| call.bytes),
        "latency_ms" => calls.iter().map(|call| call.latency_ms).collect::<Vec<Option<u32>>>(),
        "shape" => of(|call| u32::from(call.shape)),
    );
    Ok(frame.map_err(fault)?.lazy())
}

/// Statistics of every tool, by symbol.
///
/// # Errors
/// If Polars refuses the query, which is a fault of devboy.
pub fn tool_stats(history: &History) -> Result<Vec<ToolStats>> {
    let calls = frame(history)?;
    let sized = || col("ran").and(col("kind").neq(lit(ResultKind::NonText as u32)));
    let quantile = |share: f64| col("bytes").filter(sized()).quantile(lit(share), QuantileMethod::Lower);
    let timed = || col("latency_ms").filter(col("ran")).drop_nulls();
    let sums = [
        whole(len(), "calls"),
        whole(col("session").n_unique(), "sessions"),
        whole(col("ran").sum(), "ran"),
        whole(sized().sum(), "sized"),
        whole(quantile(0.5), "bytes_p50"),
        whole(quantile(0.99), "bytes_p99"),
        whole(timed().len(), "timed"),
        whole(timed().quantile(lit(0.5), QuantileMethod::Lower), "latency_ms_p50"),
    ];
    let stats = grouped(calls.clone(), &["tool"], &sums)?;
    let shapes = shapes(calls)?;
    let mut stats = Collected(&stats).rows::<ToolStats>()?;
    stats.iter_mut().for_each(|row| row.shapes = shapes.get(&row.tool).cloned().unwrap_or_default());
    Ok(stats)
}

/// Answers by tool and shape, where the shape was looked at.
fn shapes(calls: LazyFrame) -> Result<BTreeMap<Sym, BTreeMap<u8, u64>>> {
    let known = calls.filter(col("ran").and(col("shape").gt(lit(0_u32))));
    let counted = grouped(known, &["tool", "shape"], &[whole(len(), "calls")])?;
    let columns = Collected(&counted);
    let mut out: BTreeMap<Sym, BTreeMap<u8, u64>> = BTreeMap::new();
    for row in 0..counted.height() {
        let tool = Sym(columns.number("tool", row)? as u32);
        let shape = columns.number("shape", row)? as u8;
        out.entry(tool).or_default().insert(shape, columns.number("calls", row)?);
    }
    Ok(out)
}
