//! The report of compaction and of clearing: the virtual run, the real compactions beside it, the sweep of thresholds.

use serde::Serialize;

use crate::base::stats::Share;
use crate::report::numbers::{counted, known, percent, percent_of, thousands};
use crate::report::share::ends;
use crate::report::table::{Table, TableBuilder};
use crate::whatif::compaction::outcome::{
    AfterSizes, AttemptEnd, ClearingsReplayed, CompactionSweepRow, Compactions, ContextGrowth, Grown, Percentiles,
    Placement, RealCompactions, SummariserTokens,
};
use crate::whatif::compaction::params::{AS_CLIENT, CompactionBars, CompactionThresholds, Params};
use crate::whatif::report::money;
use crate::whatif::sim::breakage::rows::{Breakage, EditAges};

/// What the figures rest on, and in which direction they err.
pub const TELEMETRY_NOTE: &str = "telemetry has the sizes of tool answers alone: contexts are larger by prompts, answers and \
     the static prefix, so a trigger of a window is reached later here; `--set window=…` replays a smaller one";
/// What is to be kept in mind about logs.
pub const NOTES: [&str; 3] = [
    "most summarisers are not logged: their calls are estimates, beside the bill of the log; those that newer clients log as \
     agents of their own (acompact) are on that bill as subagents",
    "the model is assumed to answer what it answered; files to be read again are a penalty beside the cost, not in it",
    "the curve of thresholds has no term for quality: read it with the breaks in the same row",
];

/// At which size contexts are compacted.
pub fn trigger(params: &Params, thresholds: &CompactionThresholds) -> String {
    format!(
        "contexts are compacted where they reach {} tokens (by the newest client)",
        thousands(params.newest_trigger_tokens(thresholds))
    )
}

/// What this rule does that the client does not, and at how many requests that made it wait; nothing where it acts as the
/// client.
pub fn unlike_client(params: &Params, thresholds: &CompactionThresholds, done: &Compactions) -> Option<String> {
    let client = params.as_client(&thresholds.client);
    let keeps = || format!("keeps {} tokens of the newest messages", thousands(params.tail_keep_tokens));
    let waits = || {
        let held = done.outcomes.get(&AttemptEnd::Held).copied().unwrap_or_default();
        let prompts = counted(params.min_turns_between.into(), "prompt");
        format!(
            "lets {prompts} pass between two compactions (at {} it was due and had to wait)",
            counted(held, "request")
        )
    };
    let differs = [
        (params.tail_keep_tokens != client.tail_keep_tokens).then(keeps),
        (params.align != client.align).then(|| "cuts only where a person wrote".to_owned()),
        (params.min_turns_between != client.min_turns_between).then(waits),
    ];
    let differs: Vec<String> = differs.into_iter().flatten().collect();
    let command = AS_CLIENT.join(" ");
    (!differs.is_empty()).then(|| {
        format!("unlike Claude Code, this rule {}; `devboy what-if compaction {command}` has its", differs.join(", "))
    })
}

/// How compactions are placed and priced, with the parameters that were set.
pub fn formulas(params: &Params, thresholds: &CompactionThresholds) -> Vec<String> {
    vec![
        format!(
            "it fires where context sent + what came in ≥ trigger = {} tokens (newest client)",
            thousands(params.newest_trigger_tokens(thresholds))
        ),
        format!(
            "context after = static prefix + summary {} + acknowledgement {} + reattached {} + tail of at least {}",
            thousands(params.summary_tokens.into()),
            thousands(thresholds.client.acknowledgement_tokens.into()),
            thousands(params.reattach_tokens.into()),
            thousands(params.tail_keep_tokens)
        ),
        format!(
            "a summary costs its context as a read (uncached where the cache was cold) + {} tokens of output",
            thousands(params.summary_tokens.into())
        ),
        "after it the prefix is read as far as tools and system go; the rest is written anew".to_owned(),
    ]
}

/// What is to be said about windows.
pub fn notes(placed: &Placement, window_tokens: u64) -> Option<String> {
    (placed.beyond_window > 0).then(|| {
        format!(
            "{} of the log hold more than {} tokens, so their window is larger: much of the saving is theirs; \
             `--set window=…` replays a larger one",
            counted(placed.beyond_window, "chain"),
            thousands(window_tokens)
        )
    })
}

/// Everything that was found, under the names of the JSON.
#[derive(Serialize)]
pub struct CompactionReport<'a> {
    /// The virtual run.
    pub compactions: &'a Compactions,
    /// What the log's own compactions cost.
    pub real: RealCompactions,
    /// Whether the rule finds them again.
    pub placement: Placement,
    /// How large contexts were after them.
    pub after_size: AfterSizes,
    /// How old the sources of edits are.
    pub edit_ages: EditAges,
    pub clearings: ClearingsReplayed,
    /// Other thresholds.
    pub sweep: Vec<CompactionSweepRow>,
}

/// All tables with their titles; checks are held against `bars`.
pub fn tables(found: &CompactionReport<'_>, bars: &CompactionBars) -> Vec<(String, Table)> {
    let all = [
        ("thresholds: what compacting at another size would cost (log and summarisers)", sweep(&found.sweep)),
        ("compactions of the replay and of the log", both(found)),
        ("how well the rule knows the log's own compactions", checks(found, bars)),
        ("edits whose source goes when all but the last human turns are cut", risk(&found.edit_ages)),
        ("age of the latest verbatim source of edits, in human turns", ages(&found.edit_ages)),
        (CLEARINGS, clearings(&found.clearings)),
    ];
    let titled = all.into_iter().filter(|(_, table)| !table.is_empty());
    titled.map(|(title, table)| (title.to_owned(), table)).collect()
}

/// The tables about telemetry, which knows sizes of tool answers and where partitions ended.
pub fn telemetry_tables(done: &Compactions, growth: &ContextGrowth) -> Vec<(String, Table)> {
    let mut attempts = Table::new(&["attempts of the replay", "#times"]);
    done.outcomes.iter().for_each(|(end, times)| attempts.row([end.into_str().to_owned(), thousands(*times)]));
    let mut table = Table::new(&["partitions", "#number", "#tokens p50", "#p95", "#largest", "#requests p50", "#p95"]);
    for (name, grown) in [("ended by a compaction", growth.compacted), ("the last of their context", growth.open)] {
        let Grown { partitions, tokens, requests } = grown;
        let figures = [partitions, tokens.p50, tokens.p95, tokens.max, requests.p50, requests.p95];
        table.row(std::iter::once(name.to_owned()).chain(figures.map(thousands)));
    }
    vec![
        ("tokens of tool results in a partition when it ended".to_owned(), table),
        ("virtual compactions".to_owned(), attempts),
    ]
}

/// The title of [`clearings`].
pub const CLEARINGS: &str =
    "clearings of tool results: by the client's rule and as logged, in tokens, then in results cleared";

/// Clearings of the log beside what the rule would have cleared there.
pub fn clearings(found: &ClearingsReplayed) -> Table {
    TableBuilder::of(&found.checks)
        .text("record", |check| check.record.chars().take(12).collect())
        .count("tokens by rule", |check| check.total_tokens)
        .number("tokens logged", |check| known(check.logged_total_tokens, thousands))
        .count("freed by rule", |check| check.saved_tokens)
        .number("freed logged", |check| known(check.logged_saved_tokens, thousands))
        .count("by both", |check| check.both)
        .count("only rule", |check| check.only_predicted)
        .count("only log", |check| check.only_logged)
        .count("gone unlogged", |check| check.unlogged)
        .text("same results", |check| match (check.is_judged(), check.is_equal()) {
            (false, _) => "not judged: no log holds the results".to_owned(),
            (true, true) => "yes".to_owned(),
            (true, false) => "no".to_owned(),
        })
        .table()
}

fn both(found: &CompactionReport<'_>) -> Table {
    let (done, real) = (found.compactions, &found.real);
    let compacted = real.triggers.values().sum::<u64>();
    let mut table = TableBuilder::of(&done.outcomes)
        .text("figure", |(end, _)| format!("attempts: {}", end.into_str()))
        .count("replay", |(_, count)| **count)
        .number("log", |(end, _)| known((**end == AttemptEnd::Ok).then_some(compacted), thousands))
        .table();
    let mut row = |figure: &str, replay: String, log: String| table.row([figure.to_owned(), replay, log]);
    for (trigger, count) in &real.triggers {
        row(&format!("asked for: {trigger}"), none(), thousands(*count));
    }
    row("tokens removed", thousands(done.removed_tokens), thousands(real.removed_tokens));
    row("tokens written right after", thousands(done.rewritten_tokens), thousands(real.rewritten_tokens));
    let [estimated, logged] = [done.summariser, real.summariser_estimate].map(summariser);
    row("summarisers, tokens (estimated)", estimated, logged);
    row("context, median / 95 % / largest", sizes(&done.context), none());
    let thrash = if done.is_thrashing { " (thrashing)" } else { "" };
    row("requests from one to the next, median", known(done.requests_between_p50, thousands) + thrash, none());
    row("human turns from one to the next, median", known(done.turns_between_p50, thousands), none());
    let events = |breakage: &Breakage| thousands(breakage.classes.iter().map(|class| class.events).sum());
    let soon = known(done.soon_after.as_ref(), events);
    row("breaks in the next tool calls", soon, events(&real.breakage));
    row("files read again in the next tool calls", none(), thousands(real.rereads.reads_again));
    table
}

fn sweep(rows: &[CompactionSweepRow]) -> Table {
    let price = |row: &CompactionSweepRow| row.cost.usd().unwrap_or_else(|| row.cost.iet());
    let best = rows.iter().map(price).filter(|price| *price > 0.0).min_by(f64::total_cmp);
    // Where all cost the same, none is the cheapest.
    let best = best.filter(|best| rows.iter().any(|row| price(row) > *best));
    TableBuilder::of(rows)
        .text("compact at", |row| row.trigger_tokens.map_or_else(|| "never".to_owned(), thousands))
        .count("keeps", |row| row.carry_tokens)
        .count("times", |row| row.firings)
        .number("cost", |row| money(&row.cost))
        .number("summaries", |row| money(&row.summariser))
        .count("to read again", |row| row.reread_tokens)
        .count("edits lost", |row| row.edit_source_lost)
        .count("refs lost", |row| row.ref_lost)
        .text("", |row| {
            let remark = match (row.is_thrashing, Some(price(row)) == best) {
                (true, true) => "cheapest, thrashing",
                (true, false) => "thrashing",
                (false, true) => "cheapest",
                _ => "",
            };
            remark.to_owned()
        })
        .table()
}

/// Whether a bar is met, if there is anything to judge.
fn met(met: Option<bool>) -> String {
    met.map_or("n/a", |met| if met { "yes" } else { "missed" }).to_owned()
}

fn checks(found: &CompactionReport<'_>, bars: &CompactionBars) -> Table {
    let mut table = Table::new(&["check", "#found", "bar", "met"]);
    let mut row = |check: &str, found: &Share, bar: String, met: String| {
        table.row([check.to_owned(), share(found), bar, met]);
    };
    let least = |percent: f64| format!("≥ {percent} %");
    let most = |percent: f64| format!("≤ {percent} %");
    let elsewhere = |percent: f64| format!("{percent} % elsewhere measured");
    let CompactionReport { placement: placed, after_size: after, clearings: cleared, real, .. } = found;
    let of_placement = |is_met: bool| met((placed.placed.n > 0).then_some(is_met));
    let is_placed = of_placement(100.0 * placed.placed.value() >= bars.placed_percent);
    row("automatic compactions placed within one request", &placed.placed, least(bars.placed_percent), is_placed);
    let is_quiet = of_placement(100.0 * placed.false_firings.value() <= bars.false_firings_percent);
    row("firings without one beside, of requests", &placed.false_firings, most(bars.false_firings_percent), is_quiet);
    let by_parameters = format!("size after within {} %, by the parameters", bars.after_size_tolerance_percent);
    row(&by_parameters, &after.by_params, none(), none());
    let bar = least(bars.after_size_percent);
    row("the same, by what was known before its week", &after.learned, bar, met(after.is_met));
    let promised = format!("promised: {} %", after.interval_percent);
    row("size after within the interval of that", &after.in_interval, promised, none());
    row("clearings with the very set of calls", &cleared.equal, least(bars.clearings_percent), met(cleared.is_met));
    let again = Share::new(real.rereads.reads_again, real.rereads.reads);
    let bar = elsewhere(bars.rereads_elsewhere_percent);
    row("reads after a compaction that repeat an earlier one", &again, bar, none());
    row("the same everywhere else (control)", &real.rereads.elsewhere, none(), none());
    let with_one = Share::new(real.rereads.compactions_with_one, real.rereads.compactions);
    row("compactions with such a read", &with_one, elsewhere(bars.with_reread_elsewhere_percent), none());
    table
}

fn risk(ages: &EditAges) -> Table {
    TableBuilder::of(&ages.risk)
        .text("turns kept", |row| thousands(row.kept_turns.into()))
        .number("at risk", |row| share(&row.at_risk))
        .number("measured elsewhere", |row| format!("{} %", row.expected_percent))
        .text("within 1 point", |row| met(row.is_met))
        .table()
}

fn ages(ages: &EditAges) -> Table {
    let part = |edits: u64| percent_of(edits, ages.edits);
    let mut table = TableBuilder::of(&ages.ages)
        .text("age", |row| match row.to {
            Some(to) if to == row.from => to.to_string(),
            Some(to) => format!("{}–{to}", row.from),
            None => format!("≥ {}", row.from),
        })
        .count("edits", |row| row.edits)
        .number("share", |row| part(row.edits))
        .table();
    table.row(["no source found".into(), thousands(ages.unsourced), part(ages.unsourced)]);
    table
}

fn share(share: &Share) -> String {
    if share.n == 0 {
        return "none to judge".into();
    }
    let (percent, ends) = (percent(share.value()), ends((share.lower, share.upper)));
    format!("{} of {} = {percent} {ends}", thousands(share.k), thousands(share.n))
}

fn summariser(tokens: SummariserTokens) -> String {
    thousands(tokens.read + tokens.uncached + tokens.output)
}

fn sizes(sizes: &Percentiles) -> String {
    format!("{} / {} / {}", thousands(sizes.p50), thousands(sizes.p95), thousands(sizes.max))
}

fn none() -> String {
    "–".to_owned()
}
