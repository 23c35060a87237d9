//! The report of fewer tools: what is shown, what is missed, and how rare misses must be.

use crate::report::numbers::{counted, percent, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::sim::figures::Portion;
use crate::whatif::tool_filter::result::{
    ALL_TURNS, BreakEven, CoverageElsewhere, ListCoverage, ToolFilter, Unexplained, turns_key,
};

/// What was shown and missed.
pub fn summary(found: &ToolFilter) -> Vec<String> {
    let accuracy = &found.accuracy;
    let saved = || match found.removed_tokens {
        Some(tokens) => {
            format!("{} tokens of definitions left out over {}", thousands(tokens), counted(found.requests, "request"))
        }
        None => "nothing is left out".to_owned(),
    };
    let mut lines: Vec<String> = found.not_estimated.is_none().then(saved).into_iter().collect();
    lines.push(format!(
        "{:.1} of {} shown to a request, mean",
        found.visible.value(),
        counted(found.catalog.tools, "tool")
    ));
    lines.push(format!(
        "{} of {} that used tools missed one ({}); {} misses in {} ({})",
        thousands(found.turns_missed.k),
        counted(found.turns_missed.n, "turn"),
        share(found.turns_missed),
        thousands(found.misses.k),
        counted(found.misses.n, "call"),
        share(found.misses)
    ));
    lines.push(format!(
        "{}, {} misses that nothing made good, {} changes of the shown set (each is a new prefix)",
        counted(found.retries, "extra request"),
        thousands(found.unrecovered),
        thousands(found.set_changes)
    ));
    lines.push(format!(
        "shown when a turn began: {} of what it used (without the always list {}); used of what was shown: {}",
        share(accuracy.recall),
        share(accuracy.recall_rest),
        share(accuracy.precision)
    ));
    lines.extend(found.unexplained.as_ref().map(unexplained));
    lines
}

fn unexplained(gap: &Unexplained) -> String {
    let beside = match gap.system_tokens {
        Some(tokens) => format!("definitions and {} tokens of system prompt", thousands(tokens)),
        None => "definitions (the system prompt is in what is left: set system_tokens)".to_owned(),
    };
    format!(
        "static prefix beside {beside}: {} tokens unexplained at the median of {} ({} to {}); too small for all definitions in {}",
        thousands(gap.median),
        counted(gap.chains, "chain"),
        thousands(gap.min),
        thousands(gap.max),
        thousands(gap.too_small)
    )
}

/// The rule of thumb, with the log's numbers in it. Prices are twentieths of an uncached input token.
pub fn break_even(found: &ToolFilter) -> Vec<String> {
    let Some(rule) = found.break_even else { return Vec::new() };
    let BreakEven { removed_tokens, context_tokens, definition_tokens, read_u20, write_u20, .. } = rule;
    let from = |requests: Option<u64>| requests.map_or("never".to_owned(), |n| format!("one in {}", thousands(n)));
    let actual = rule.requests_per_miss.map_or("no miss".to_owned(), |n| format!("one in {}", thousands(n)));
    let mut lines = vec![
        format!(
            "each request saves {read_u20} x {} = {} u20; the log has {actual} requests with a miss",
            thousands(removed_tokens),
            thousands(rule.saved_per_request_u20())
        ),
        format!(
            "a rebuilt prefix costs ({write_u20} - {read_u20}) x {} = {} u20 and a request: misses rarer than {} pay",
            thousands(context_tokens),
            thousands(rule.rebuild_u20()),
            from(rule.rebuild_pays_from())
        ),
        format!(
            "appended definitions cost {read_u20} x {} + {write_u20} x {} = {} u20: misses rarer than {} pay",
            thousands(context_tokens),
            thousands(definition_tokens),
            thousands(rule.append_u20()),
            from(rule.append_pays_from())
        ),
    ];
    lines.extend(rule.append_pays_from_tokens().map(|tokens| {
        format!("at the log's rate of misses, appending pays from {} tokens left out per request", thousands(tokens))
    }));
    lines
}

/// Tools by misses.
pub fn regret(found: &ToolFilter, rows: usize) -> Table {
    TableBuilder::of(found.regret.iter().filter(|tool| tool.calls > 0 || tool.tokens.is_some()).take(rows))
        .text("tool", |tool| tool.tool.clone())
        .number("definition tokens", |tool| tool.tokens.map_or("unknown".to_owned(), thousands))
        .count("calls", |tool| tool.calls)
        .count("turns", |tool| tool.turns)
        .count("turns missed", |tool| tool.misses)
        .count("requests without", |tool| tool.requests_hidden)
        .count("context tokens at misses", |tool| tool.missed_context_tokens)
        .table()
}

/// What the list alone covers in main threads, beside what other logs came to.
pub fn covered(found: &ListCoverage, elsewhere: &CoverageElsewhere) -> String {
    format!(
        "in main threads the always list alone covers {} of {} and all calls of {} of {} that used tools (public logs, the shipped list: \
         {:.1} % and {:.1} %)",
        share(found.calls),
        counted(found.calls.n, "call"),
        share(found.turns),
        counted(found.turns.n, "turn"),
        elsewhere.calls_pct,
        elsewhere.turns_pct
    )
}

/// What a fixed list misses with the tools of the last turns, by turns that are looked back on, beside what other logs
/// came to with the shipped list.
pub fn coverage(found: &ListCoverage, elsewhere: &CoverageElsewhere) -> Table {
    let columns = ["tools of the last", "#turns with a miss", "#misses per 100 calls", "#turns, public logs"];
    let mut table = Table::new(&columns);
    for (turns, recent) in &found.recency {
        let name = if *turns == ALL_TURNS { "all turns".to_owned() } else { counted((*turns).into(), "turn") };
        let misses =
            if recent.misses.n == 0 { "-".to_owned() } else { format!("{:.1}", 100.0 * recent.misses.value()) };
        let known = elsewhere.turns_missed_pct.get(&turns_key(*turns));
        let known = known.map_or("-".to_owned(), |share| format!("{share:.1} %"));
        table.row([name, share(recent.turns_missed), misses, known]);
    }
    table
}

/// "12.5 %", or a dash of nothing.
pub(crate) fn share(portion: Portion) -> String {
    if portion.n == 0 { "-".to_owned() } else { percent(portion.value()) }
}
