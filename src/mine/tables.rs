//! Edges, tools, patterns, sessions and changes: all columns for programs, some of them for people.

use crate::base::listing::{Columns, Listing, counts};
use crate::base::stats::Share;
use crate::frames::edge::{Edge, EndSum};
use crate::frames::tool_use::{SessionRowSummary, ToolUsage, Volume};
use crate::mine::compare::ComparedRow;
use crate::mine::patterns::PatternCount;
use crate::report::numbers::{date, known, lasting, thousands};
use crate::report::share::bounds;
use crate::report::table::{Table, TableBuilder};

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// "12.3 (10.1–15.0)"
pub(super) fn interval(share: &Share) -> String {
    format!("{} ({})", percent(share.value()), bounds(*share))
}

/// 850, 12.1k, 3.46M.
fn short(value: u64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let Some((size, name)) = units.into_iter().find(|(size, _)| value as f64 >= *size) else {
        return value.to_string();
    };
    let scaled = value as f64 / size;
    let digits = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    format!("{scaled:.digits$}{name}")
}

/// The family of a model, without vendor and date.
fn family(model: &str) -> String {
    let is_date = |part: &&str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = model.trim_start_matches("claude-").split('-').filter(|part| !is_date(part)).collect();
    parts.join("-")
}

/// All columns of edges; `has_turns` where it is known between which calls a person wrote.
pub fn edges(rows: &[Edge], has_turns: bool) -> Listing {
    Columns::of(rows)
        .text("from", |row| row.from.clone())
        .text("to", |row| row.to.clone())
        .whole("lag", |row| row.sum.lag.map(i64::from))
        .count("count", |row| row.sum.count)
        .whole("across_turns", |row| {
            row.sum.lag.filter(|_| has_turns).and_then(|_| i64::try_from(row.sum.across_turns).ok())
        })
        .count("cases", |row| row.sum.cases)
        .count("sessions", |row| row.sum.sessions)
        .real("support", |row| Some(row.support))
        .count("trials", |row| row.confidence.n)
        .share(["confidence", "confidence_lower", "confidence_upper"], |row| Some(row.confidence))
        .real("lift", |row| row.lift)
        .real("dependency", |row| Some(row.dependency))
        .real("expected", |row| row.sum.chance.map(|chance| chance.expected))
        .real("p", |row| row.p)
        .real("q", |row| row.q)
        .flag_or_none("significant", |row| row.q.map(|_| row.significant))
        .whole("gap_ms_p50", |row| row.sum.gap_ms_p50)
        .whole("gap_ms_p90", |row| row.sum.gap_ms_p90)
        .finish()
}

/// The published columns of edges.
pub fn edges_published(rows: &[Edge]) -> Listing {
    Columns::of(rows)
        .text("prev_tool", |row| row.from.clone())
        .text("next_tool", |row| row.to.clone())
        .whole("lag", |row| row.sum.lag.map(i64::from))
        .count("count", |row| row.sum.count)
        .finish()
}

/// Edges for people; `*` at the lift marks what is more than another order of the messages would show.
pub fn edges_overview(rows: &[Edge]) -> Table {
    TableBuilder::of(rows)
        .text("from", |row| row.from.clone())
        .text("to", |row| row.to.clone())
        .number("lag", |row| row.sum.lag.map_or_else(|| "any".to_owned(), |lag| lag.to_string()))
        .count("count", |row| row.sum.count)
        .count("sess.", |row| row.sum.sessions)
        .number("% of from (95 %)", |row| interval(&row.confidence))
        .number("lift", |row| known(row.lift, |lift| format!("{lift:.2}{}", if row.significant { "*" } else { " " })))
        .number("dep.", |row| format!("{:.2}", row.dependency).replace('-', "−"))
        .number("gap", |row| known(row.sum.gap_ms_p50, lasting))
        .table()
}

/// Tools as beginnings and ends of contexts.
pub fn ends(rows: &[(String, EndSum)]) -> Listing {
    Columns::of(rows)
        .text("tool", |(name, _)| name.clone())
        .count("calls", |(_, row)| row.calls)
        .count("starts", |(_, row)| row.starts)
        .count("ends", |(_, row)| row.ends)
        .count("sessions", |(_, row)| row.sessions)
        .finish()
}

/// All columns of tools or servers; `what` names the first, `all_tokens` are those of all answers.
pub fn tools(rows: &[ToolUsage], what: &'static str, all_tokens: u64, bytes_per_token: f64) -> Listing {
    let size = |row: &ToolUsage, value: u64| (row.sized > 0).then_some(value as i64);
    let time = |row: &ToolUsage, value: u64| (row.timed > 0).then_some(value as i64);
    let columns = Columns::of(rows).text(what, |row| row.name.clone());
    let columns = counts!(columns, calls, sessions, ran, failed)
        .share(["error_rate", "error_rate_lower", "error_rate_upper"], |row| Share::new(row.failed, row.ran).known())
        .count("rejected", |row| row.rejected)
        .share(["rejection_rate", "rejection_rate_lower", "rejection_rate_upper"], |row| {
            Some(Share::new(row.rejected, row.calls))
        });
    let columns = counts!(columns, open, empty, empty_in_runs, empty_run_max, sized)
        .whole("response_chars_p50", |row| size(row, row.chars[0]))
        .whole("response_chars_p90", |row| size(row, row.chars[1]))
        .whole("response_chars_p99", |row| size(row, row.chars[2]))
        .whole("response_bytes_p50", |row| size(row, row.bytes[0]))
        .whole("response_bytes_p90", |row| size(row, row.bytes[1]))
        .whole("response_bytes_p99", |row| size(row, row.bytes[2]))
        .count("timed", |row| row.timed)
        .whole("latency_ms_p50", |row| time(row, row.latency_ms[0]))
        .whole("latency_ms_p90", |row| time(row, row.latency_ms[1]))
        .whole("latency_ms_p99", |row| time(row, row.latency_ms[2]));
    let columns = counts!(columns, repeatable, repeats)
        .real("dup_rate", |row| Share::new(row.repeats, row.repeatable).known().map(|share| share.value()));
    counts!(columns, reads, rereads_same, rereads_overlapping, rereads_other, response_tokens)
        .count("responses_counted", |row| row.counted)
        .real("response_tokens_share", |row| Some(row.response_tokens as f64 / all_tokens.max(1) as f64))
        .count("input_tokens", |row| (row.input_bytes as f64 / bytes_per_token).ceil() as u64)
        .finish()
}

/// Tools or servers for people.
pub fn tools_overview(rows: &[ToolUsage], what: &str, all_tokens: u64) -> Table {
    let share = |k: u64, n: u64| if n == 0 { "–".to_owned() } else { percent(k as f64 / n as f64) };
    let chars = |row: &ToolUsage, place: usize| known((row.sized > 0).then_some(row.chars[place]), thousands);
    TableBuilder::of(rows)
        .text(what, |row| row.name.clone())
        .count("calls", |row| row.calls)
        .count("sess.", |row| row.sessions)
        .number("chars p50", |row| chars(row, 0))
        .number("p90", |row| chars(row, 1))
        .number("p99", |row| chars(row, 2))
        .number("time", |row| known((row.timed > 0).then_some(row.latency_ms[0] as i64), lasting))
        .number("error %", |row| share(row.failed, row.ran))
        .number("dup %", |row| share(row.repeats, row.repeatable))
        .number("tokens", |row| short(row.response_tokens))
        .number("share %", |row| share(row.response_tokens, all_tokens))
        .table()
}

/// The published columns of volumes.
pub fn volumes(rows: &[Volume]) -> Listing {
    Columns::of(rows)
        .text("tool_anon", |row| row.tool.clone())
        .count("calls", |row| row.calls)
        .count("sessions", |row| row.sessions)
        .count("response_chars_median", |row| row.chars_median)
        .count("response_chars_p90", |row| row.chars_p90)
        .count("response_chars_p99", |row| row.chars_p99)
        .finish()
}

/// All columns of patterns.
pub fn patterns(rows: &[PatternCount], all_tokens: u64) -> Listing {
    let columns = Columns::of(rows).count("number", |row| row.number.into()).text("pattern", |row| row.id.clone());
    counts!(columns, calls, matches, sessions, tokens)
        .real("tokens_share", |row| Some(row.tokens as f64 / all_tokens.max(1) as f64))
        .count("published", |row| row.published)
        .text("answer", |row| row.answer.clone())
        .finish()
}

/// Patterns for people.
pub fn patterns_overview(rows: &[PatternCount], all_tokens: u64) -> Table {
    TableBuilder::of(rows)
        .number("", |row| row.number.to_string())
        .text("pattern", |row| row.id.replace('_', " "))
        .count("calls", |row| row.calls)
        .count("matches", |row| row.matches)
        .count("sess.", |row| row.sessions)
        .number("tokens", |row| short(row.tokens))
        .number("share %", |row| percent(row.tokens as f64 / all_tokens.max(1) as f64))
        .text("what answers it", |row| row.answer.clone())
        .table()
}

/// All columns of sessions.
pub fn sessions(rows: &[SessionRowSummary]) -> Listing {
    let columns = Columns::of(rows)
        .text("session", |row| row.session.clone())
        .text("project", |row| row.project.clone())
        .whole("first_ms", |row| row.first_ms)
        .whole("last_ms", |row| row.last_ms);
    let columns = counts!(columns, calls, read_calls, chains, subagents, compactions, turns, messages)
        .text("models", |row| row.models.join(" "));
    counts!(columns, input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens, response_bytes)
        .text("class", |row| row.class.clone())
        .finish()
}

/// Sessions for people, the latest first.
pub fn sessions_overview(rows: &[SessionRowSummary]) -> Table {
    TableBuilder::of(rows.iter().rev())
        .text("session", |row| row.session.clone())
        .text("project", |row| row.project.clone())
        .text("begun", |row| known(row.first_ms, date))
        .number("span", |row| known(row.first_ms.zip(row.last_ms).map(|(first, last)| last - first), lasting))
        .count("calls", |row| row.calls)
        .count("chains", |row| row.chains)
        .count("comp.", |row| row.compactions)
        .count("turns", |row| row.turns)
        .text("model", |row| row.models.first().map(|model| family(model)).unwrap_or_default())
        .number("output", |row| short(row.output_tokens))
        .text("class", |row| row.class.replace('_', " "))
        .table()
}

/// All columns of a comparison.
pub fn changes(rows: &[ComparedRow]) -> Listing {
    Columns::of(rows)
        .text("what", |row| row.what.into_str().to_owned())
        .text("name", |row| row.name.clone())
        .text("to", |row| row.to.clone())
        .whole("lag", |row| row.lag.map(i64::from))
        .count("a_count", |row| row.a.k)
        .count("a_n", |row| row.a.n)
        .share(["a_share", "a_lower", "a_upper"], |row| row.a.known())
        .count("b_count", |row| row.b.k)
        .count("b_n", |row| row.b.n)
        .share(["b_share", "b_lower", "b_upper"], |row| row.b.known())
        .whole("a_chars_p50", |row| row.median_a.map(|median| median as i64))
        .whole("b_chars_p50", |row| row.median_b.map(|median| median as i64))
        .real("p", |row| row.p)
        .real("q", |row| row.q)
        .flag("changed", |row| row.changed)
        .finish()
}

/// Rows of a comparison for people.
pub fn changes_overview(rows: &[ComparedRow]) -> Table {
    let shown = |share: &Share, median: Option<u64>| match median {
        Some(median) => format!("{} chars", thousands(median)),
        None if share.n == 0 => "–".to_owned(),
        None => format!("{} %", percent(share.value())),
    };
    let tools = |row: &ComparedRow| {
        let lag = row.lag.filter(|&lag| lag > 1).map(|lag| format!(" (lag {lag})")).unwrap_or_default();
        if row.to.is_empty() { row.name.clone() } else { format!("{} → {}{lag}", row.name, row.to) }
    };
    TableBuilder::of(rows)
        .text("what", |row| row.what.into_str().to_owned())
        .text("tools", |row| tools(row))
        .number("A", |row| shown(&row.a, row.median_a))
        .number("B", |row| shown(&row.b, row.median_b))
        .count("A n", |row| row.a.n)
        .count("B n", |row| row.b.n)
        .number("q", |row| known(row.q, |q| if q < 1e-4 { "<0.0001".to_owned() } else { format!("{q:.4}") }))
        .text("changed", |row| if row.changed { "*" } else { "" }.to_owned())
        .table()
}
