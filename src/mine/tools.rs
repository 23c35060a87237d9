//! What each call was like in its context, and what the calls of tools and servers add up to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::Deserialize;

use crate::base::error::Result;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::{Names, Sym, mcp_server};
use crate::frames::tool_use::{MinedCall, Reread, ToolFrame, ToolUsage, ToolUsages, Volume};
use crate::logs::assemble::files_of_input;
use crate::logs::corpus::Corpus;
use crate::logs::history::{Call, CallDetails, History};
use crate::logs::trace::{Millis, ResultKind, Status, is_within};
use crate::mine::totals::{answers, asked, standing};

/// The name under which tools of no MCP server are summed up.
pub const BUILT_IN: &str = "(built-in)";

/// What the reading of calls needs to know besides.
pub struct ToolGuide<'a> {
    pub rules: &'a ToolUseRules,
    pub changing: &'a BTreeSet<String>,
    /// Exact tokens of bodies, as far as they are known; all others are estimated.
    pub exact: &'a IdMap<Id, u32>,
}

/// What a context has seen so far.
#[derive(Default)]
struct ContextSeen {
    context: Option<(u32, u32)>,
    bodies: IdSet<Id>,
    /// Reads of each file by each tool since it was changed last.
    read: BTreeMap<(Id, Sym), FileReads>,
    /// Calls with empty answers in a row, by tool.
    empty: BTreeMap<Sym, Vec<usize>>,
}

/// What reads of a file showed.
#[derive(Default)]
struct FileReads {
    bodies: IdSet<Id>,
    /// Lines, by the first one: stretches with none in common.
    shown: BTreeMap<u32, u32>,
}

impl FileReads {
    /// Takes in a read; tells how it stands to those before it.
    fn add(&mut self, call: &Call, lines: Range<u32>) -> Option<Reread> {
        let is_first = self.bodies.is_empty();
        let is_new = self.bodies.insert(call.body);
        let overlaps = self.show(lines);
        if is_first {
            None
        } else if !is_new {
            Some(Reread::Same)
        } else if overlaps {
            Some(Reread::Overlapping)
        } else {
            Some(Reread::Other)
        }
    }

    /// Adds lines; tells whether some of them were there.
    fn show(&mut self, lines: Range<u32>) -> bool {
        let Range { mut start, mut end } = lines;
        let mut overlaps = false;
        while let Some((&first, &last)) = self.shown.range(..end).next_back().filter(|(_, last)| **last > start) {
            self.shown.remove(&first);
            (start, end, overlaps) = (start.min(first), end.max(last), true);
        }
        if start < end {
            self.shown.insert(start, end);
        }
        overlaps
    }
}

/// The lines that a read showed: `lines_max` where it has no limit, as far as anyone can tell.
fn lines(details: &CallDetails, lines_max: u32) -> Range<u32> {
    let [first, count] = details.lines;
    let first = first.max(1);
    first..first.saturating_add(if count == 0 { lines_max } else { count })
}

/// Every call of a history, in its order; and the servers, by number.
pub fn calls(history: &History, names: &Names, guide: &ToolGuide<'_>) -> (Vec<MinedCall>, Vec<String>) {
    let is_in = |tools: &BTreeSet<String>| names.texts().iter().map(|name| tools.contains(name)).collect::<Vec<bool>>();
    let (reading, changing) = (is_in(&guide.rules.reading_tools), is_in(guide.changing));
    let (servers, server_of) = servers(names);
    let mut seen = ContextSeen::default();
    let mut out: Vec<MinedCall> = Vec::with_capacity(history.calls.len());
    for (call, details) in history.detailed_calls() {
        if seen.context != Some((call.chain, call.partition)) {
            seen = ContextSeen { context: Some((call.chain, call.partition)), ..ContextSeen::default() };
        }
        let tool = call.tool.0 as usize;
        let mut row = plain(call, guide);
        row.input_bytes = details.input_bytes;
        row.server = server_of[tool];
        row.session = history.chains[call.chain as usize].session;
        row.repeat = row.repeatable && !seen.bodies.insert(call.body);
        let file = details.path.is_some() && call.status == Status::Ok;
        row.reads = file && reading[tool];
        if row.reads {
            let lines = lines(details, guide.rules.lines_max);
            row.reread = seen.read.entry((details.path, call.tool)).or_default().add(call, lines);
        }
        if file && changing[tool] {
            let of_file = (details.path, Sym(0))..=(details.path, Sym(u32::MAX));
            let stale: Vec<(Id, Sym)> = seen.read.range(of_file).map(|(key, _)| *key).collect();
            for read in &stale {
                seen.read.remove(read);
            }
        }
        if row.empty {
            let run = seen.empty.entry(call.tool).or_default();
            run.push(out.len());
            row.empty_run = run.len() as u32;
            row.in_empty_run = run.len() > 1;
            let first = run[0];
            if let Some(first) = out.get_mut(first) {
                first.in_empty_run = true;
            }
        } else if row.ran {
            seen.empty.remove(&call.tool);
        }
        out.push(row);
    }
    (out, servers)
}

/// What a call says by itself.
fn plain(call: &Call, guide: &ToolGuide<'_>) -> MinedCall {
    let exact = guide.exact.get(&call.body).copied();
    let estimated = (f64::from(call.bytes) / guide.rules.bytes_per_token).ceil() as u32;
    MinedCall {
        tool: call.tool,
        ran: call.ran(),
        sized: call.ran() && call.kind != ResultKind::NonText,
        failed: call.status == Status::Error,
        rejected: call.status == Status::Rejected,
        open: matches!(call.status, Status::Unanswered | Status::Cancelled),
        empty: call.is_empty(),
        // Of images nothing is known by which they could be compared.
        repeatable: call.status == Status::Ok && call.kind == ResultKind::Text,
        chars: call.chars,
        bytes: call.bytes,
        tokens: exact.unwrap_or(estimated),
        with_text: call.bytes > 0,
        counted: exact.is_some() && call.bytes > 0,
        latency_ms: call.latency_ms.filter(|_| call.ran()),
        ..MinedCall::default()
    }
}

/// The servers by number, and the number of each tool's.
fn servers(names: &Names) -> (Vec<String>, Vec<u32>) {
    let mut servers = vec![BUILT_IN.to_owned()];
    let known: BTreeSet<&str> = names.texts().iter().filter_map(|name| mcp_server(name)).collect();
    servers.extend(known.iter().map(|server| (*server).to_owned()));
    let numbers: BTreeMap<&str, u32> = known.into_iter().zip(1..).collect();
    let number = |name: &String| mcp_server(name).and_then(|server| numbers.get(server)).copied().unwrap_or_default();
    let of = names.texts().iter().map(number).collect();
    (servers, of)
}

/// Tools and servers, the most called first.
pub fn uses(calls: &[MinedCall], servers: &[String], names: &Names) -> Result<ToolUsages> {
    if calls.is_empty() {
        return Ok(ToolUsages::default());
    }
    let frame = ToolFrame::new(calls)?;
    let named = |rows: Vec<(u32, ToolUsage)>, name: &dyn Fn(u32) -> String| {
        let mut rows: Vec<ToolUsage> =
            rows.into_iter().map(|(number, row)| ToolUsage { name: name(number), ..row }).collect();
        rows.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
        rows
    };
    let sessions: BTreeSet<u32> = calls.iter().map(|call| call.session).collect();
    Ok(ToolUsages {
        tools: named(frame.uses("tool")?, &|number| names.text(Sym(number)).to_owned()),
        servers: named(frame.uses("server")?, &|number| servers[number as usize].clone()),
        sessions: sessions.len() as u64,
    })
}

/// The published table of volumes: a file is a session, copies in other files count again, a call without an answer has
/// size 0; the most called first.
pub fn volumes(corpus: &Corpus, window: &Range<Millis>) -> Vec<Volume> {
    let sizes = sizes(corpus, window);
    let volume = |(tool, sizes): (Sym, Vec<SessionSize>)| {
        let sessions = sizes.chunk_by(|a, b| a.session == b.session).count() as u64;
        let mut chars: Vec<u32> = sizes.iter().map(|size| size.chars).collect();
        chars.sort_unstable();
        Volume {
            tool: corpus.names.text(tool).to_owned(),
            calls: chars.len() as u64,
            sessions,
            chars_median: interpolated(&chars, 0.5),
            chars_p90: interpolated(&chars, 0.9),
            chars_p99: interpolated(&chars, 0.99),
        }
    };
    let mut rows: Vec<Volume> = sizes.into_iter().map(volume).collect();
    rows.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
    rows
}

/// The size of an answer in code points, and the number of its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSize {
    pub chars: u32,
    pub session: u32,
}

/// The sizes of all answers of every tool; a file is a session.
pub fn sizes(corpus: &Corpus, window: &Range<Millis>) -> BTreeMap<Sym, Vec<SessionSize>> {
    let mut out: BTreeMap<Sym, Vec<SessionSize>> = BTreeMap::new();
    for (session, file) in (0..).zip(files_of_input(corpus)) {
        let results = standing(&answers(file));
        for (asked, call) in asked(file).into_iter().filter(|(asked, _)| is_within(window, asked.ts)) {
            let chars = results.get(&call).map_or(0, |result| result.chars);
            out.entry(asked.tool).or_default().push(SessionSize { chars, session });
        }
    }
    out
}

/// The quantile between the two elements next to it, truncated to a whole number.
fn interpolated(sorted: &[u32], share: f64) -> u64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0 };
    let at = share * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    let (low, high) = (f64::from(sorted[low]), f64::from(sorted[high]));
    (low + (high - low) * at.fract()) as u64
}

/// How calls are turned into tokens where nothing better is known.
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ToolUseRules {
    pub bytes_per_token: f64,
    pub reading_tools: BTreeSet<String>,
    pub lines_max: u32,
}
