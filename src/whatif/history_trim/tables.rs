//! The report of trimming: what was removed, what that did to the provider's cache, and what it cost.

use crate::report::numbers::{counted, known, percent, share_of, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::history_trim::outcome::{MessageAgeRow, Role, TrimCosts, TrimOutcome, TrimReport};
use crate::whatif::history_trim::params::{Params, TrimSource};
use crate::whatif::history_trim::plan::{Caps, TrimRule, UNLIMITED, base, cap_at, crowd_share};

/// What the figures rest on, and in which direction they err.
pub const NOTES: [&str; 4] = [
    "cuts are computed from characters and measured tokens, as if tokens were spread evenly over a text; the router strips \
     trailing blanks besides, so it keeps a little less",
    "reminders and other text that is not in the log are neither counted nor cut: the router would drop somewhat earlier",
    "the model is assumed to answer what it answered, whatever it was sent; what it would have read again is not in the cost",
    "where head and tail of a text are kept, what stood in the tail counts as lost all the same: breakage is an upper bound",
];

/// Of telemetry.
pub const TELEMETRY_NOTE: &str = "telemetry has no prompts, so no exchange ever ends and nothing grows old; only with \
     keep_recent_exchanges=0 and keep_recent_user_turns_in_chained_tool_calls=0 answers of tools are cut";

/// Saving, cost and what was lost, in this order. Cost and lost edits are of the whole run: they are told where something
/// was billed and no other policy had a part in it.
pub fn summary(report: &TrimReport, is_whole: bool) -> Vec<String> {
    let outcome = &report.outcome;
    let share = |part: u64| share_of(part, outcome.requests);
    let costs = [
        format!(
            "cost with the provider's cache: {}, {} (the same simulation without trimming is 100 %)",
            relative(&report.cached),
            report.cached.verdict.into_str()
        ),
        format!(
            "cost where the provider caches nothing: {}, {}",
            relative(&report.uncached),
            report.uncached.verdict.into_str()
        ),
    ];
    let mut lines = vec![
        format!(
            "{}: {} of {} context tokens were sent ({}), in {}; {} of these were changed",
            report.name,
            thousands(outcome.sent),
            thousands(outcome.logged),
            share_of(outcome.sent, outcome.logged),
            counted(outcome.requests, "request"),
            thousands(outcome.requests_changed),
        ),
        format!(
            "{} that the log does not have; {} were cut and {} dropped (once per request)",
            counted(outcome.breaks_total(), "prefix break"),
            counted(outcome.messages_trimmed, "message"),
            thousands(outcome.messages_dropped),
        ),
        format!(
            "protected messages were lost in {} ({}), the first user message in {} ({})",
            counted(outcome.protected_lost_requests, "request"),
            share(outcome.protected_lost_requests),
            thousands(outcome.first_user_lost_requests),
            share(outcome.first_user_lost_requests),
        ),
    ];
    if is_whole {
        lines.splice(1..1, costs);
        lines.push(format!(
            "{} of {} lost their source ({})",
            thousands(report.edits.lost),
            counted(report.edits.all, "edit"),
            share_of(report.edits.lost, report.edits.all)
        ));
    }
    lines
}

/// How caps and drops come about, with the numbers of the parameters.
pub fn formulas(rule: &TrimRule) -> Vec<String> {
    let (params, numbers) = (&rule.params, &rule.thresholds.caps);
    let (budget, base) = base(numbers, params.max_history_tokens);
    let tokens = |count: u32| thousands(count.into());
    let mut lines = vec![
        format!(
            "base of the caps = {} × budget = {} × {} = {} tokens; the budget counts from {} to {}, the base from {} to {}",
            numbers.base_per_budget,
            numbers.base_per_budget,
            tokens(budget),
            base,
            tokens(numbers.budget_min),
            tokens(numbers.budget_max),
            numbers.base_min,
            numbers.base_max
        ),
        format!(
            "cap next to the boundary = base × ({} + {} × min({} / old messages, 1)), at least {}; cap of the oldest message = {} × \
             that, at least {}; of tool results = {} × those, at least {} and {}; fractions are dropped",
            numbers.crowd_floor,
            numbers.crowd_weight,
            numbers.crowd_messages,
            numbers.message_near_min,
            numbers.message_oldest_share,
            numbers.message_oldest_min,
            numbers.tool_share,
            numbers.tool_near_min,
            numbers.tool_oldest_min
        ),
    ];
    lines.push(
        "cap by position = oldest + (next to the boundary − oldest) × place / (old messages − 1); place 0 is the oldest".to_owned(),
    );
    let set = caps_set(params);
    if !set.is_empty() {
        lines.push(format!("set instead of computed: {}", set.join(", ")));
    }
    lines.extend(rule.thresholds.report.explain_old_messages.iter().map(|&old| cap_example(rule, base, old)));
    lines.push(drops(params));
    lines
}

/// The parameters that set a cap.
fn caps_set(params: &Params) -> Vec<String> {
    let caps = [
        ("old_message_max_tokens", params.old_message_max_tokens),
        ("oldest_message_max_tokens", params.oldest_message_max_tokens),
        ("old_tool_result_max_tokens", params.old_tool_result_max_tokens),
        ("oldest_tool_result_max_tokens", params.oldest_tool_result_max_tokens),
    ];
    caps.into_iter().filter(|(_, cap)| *cap > 0).map(|(name, cap)| format!("{name}={cap}")).collect()
}

/// The caps where so many messages are old, on a request that continues no chain of tool calls.
fn cap_example(rule: &TrimRule, base: u32, old_messages: u32) -> String {
    let (params, numbers, old) = (&rule.params, &rule.thresholds.caps, old_messages as usize);
    let Caps { message_near, message_oldest, tool_near, tool_oldest } =
        Caps::new(numbers, params.max_history_tokens, old, params.overrides());
    let share = crowd_share(numbers, old);
    let (middle, last) = (old_messages / 2, old_messages.saturating_sub(1));
    let middle_cap = cap_at(message_near, message_oldest, middle as usize, old);
    format!(
        "{} old messages: base × share = {base} × {share:.3}; a message next to the boundary may have {message_near} tokens, the \
         oldest {message_oldest}, results {tool_near} and {tool_oldest}; the message at place {middle} of 0 to {last} may have \
         {message_oldest} + ({message_near} − {message_oldest}) × {middle} / {last} = {middle_cap} tokens",
        thousands(old_messages.into())
    )
}

fn drops(params: &Params) -> String {
    let is_apart = params.treats_continuations_apart();
    let apart = if is_apart { "; requests that continue a chain of tool calls have no budget" } else { "" };
    if params.max_history_tokens >= UNLIMITED {
        return format!("nothing is dropped: the budget has no limit{apart}");
    }
    let is_sane = params.fidelity == TrimSource::Sane;
    let then = if is_sane { "units with protected messages stay" } else { "then any" };
    format!(
        "units are dropped, oldest first, while more than {} tokens are left: an assistant message that calls tools with its results, \
         a run of other results, or one message; first those without protected messages, {then}{apart}",
        thousands(params.max_history_tokens.into())
    )
}

/// Tokens by role and age; rows without any are left out.
pub fn ages(outcome: &TrimOutcome) -> Table {
    let mut table = Table::new(&["role", "exchanges since", "#in the log", "#sent", "#dropped", "#sent of log"]);
    for role in Role::ALL {
        let rows: Vec<&MessageAgeRow> = outcome.ages.iter().filter(|row| row.role == role).collect();
        for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.logged > 0) {
            table.row([
                role.into_str().to_owned(),
                age(row.age_from, rows.get(place + 1).map(|next| next.age_from)),
                thousands(row.logged),
                thousands(row.sent),
                thousands(row.dropped),
                share_of(row.sent, row.logged),
            ]);
        }
    }
    table
}

/// Breaks by cause.
pub fn breaks(outcome: &TrimOutcome) -> Table {
    TableBuilder::of(&outcome.breaks)
        .text("cause", |(cause, _)| cause.into_str().to_owned())
        .count("requests", |(_, count)| count.events)
        .count("tokens behind", |(_, count)| count.tokens)
        .number("of requests", |(_, count)| share_of(count.events, outcome.requests))
        .table()
}

/// Several settings side by side.
pub fn variants(reports: &[TrimReport]) -> Table {
    TableBuilder::of(reports)
        .text("settings", |report| report.name.clone())
        .number("tokens sent", |report| share_of(report.outcome.sent, report.outcome.logged))
        .number("read from cache", |report| share_of(report.spent.read, report.spent.prompt()))
        .number("cost, cache", |report| relative(&report.cached))
        .number("elsewhere, 5m / 1h", |report| report.elsewhere.clone().unwrap_or_else(|| "–".to_owned()))
        .number("cost, no cache", |report| relative(&report.uncached))
        .count("breaks", |report| report.outcome.breaks_total())
        .count("protected lost", |report| report.outcome.protected_lost_requests)
        .number("edits lost", |report| share_of(report.edits.lost, report.edits.all))
        .text("verdict", |report| report.cached.verdict.into_str().to_owned())
        .table()
}

/// Cost of the policy as a share of the baseline's.
fn relative(sides: &TrimCosts) -> String {
    known(sides.baseline.change_to(&sides.policy), |change| percent(1.0 + change))
}

/// "3–7", "20+".
fn age(from: u32, next: Option<u32>) -> String {
    match next {
        None => format!("{from}+"),
        Some(next) if next == from + 1 => from.to_string(),
        Some(next) => format!("{from}–{}", next - 1),
    }
}
