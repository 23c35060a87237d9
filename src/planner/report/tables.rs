//! The report for people: the verdict in plain words before any table, the metrics by arm, the edges, what to do.

use std::io::Write;

use crate::base::error::Result;
use crate::base::stats::{Share, TargetFigure, TargetVerdict};
use crate::planner::prefetches::{Bound, DeclineReason, PrefetchEnd, PrefetchTally};
use crate::planner::report::{
    EdgeRow, HIT, Metric, Net, PlannerArm, PlannerReport, PlannerSweepRow, by_tool, effectiveness,
};
use crate::planner::selectivity::report as selectivity;
use crate::planner::stage::CONFIGURED;
use crate::report::numbers::{counted, date, percent, percent_of, thousands};
use crate::report::share::{self, whole_percent};
use crate::report::table::{Table, TableFormat};

/// Rows of a table of edges or tools that are shown.
const ROWS_MAX: usize = 12;

/// What the short report leaves out.
const MORE: &str = "targets, all figures, by edge and by tool, and what they rest on: --explain";

/// Writes the answer for people (or as Markdown) and what to do; explained, also what that rests on.
pub fn write(
    out: &mut dyn Write,
    report: &PlannerReport,
    is_explained: bool,
    format: TableFormat,
    width: Option<u16>,
) -> Result<()> {
    for line in answer(report) {
        writeln!(out, "{}", format.sentence(&line))?;
    }
    listed(out, "what to do", &report.advice, format)?;
    if !is_explained {
        return Ok(writeln!(out, "\n{MORE}")?);
    }
    format
        .heading(out, "the targets; a hit is the exact call within three calls, intervals of 95 % are over sessions or calls, whichever is wider")?;
    targets(report).write(out, format, width)?;
    format
        .heading(out, "all figures; shares are of what was prefetched (the paper claims 58 % won and 12 % wasted)")?;
    figures(report).write(out, format, width)?;
    let edges = most_sent(report, "edge", by_edge);
    if !edges.is_empty() {
        format.heading(out, "by edge: prefetched, and asked for within three calls; intervals are over calls alone")?;
        edges.write(out, format, width)?;
        format.heading(out, "by tool that is called ahead; intervals are over calls alone")?;
        most_sent(report, "tool", by_tool).write(out, format, width)?;
    }
    format.heading(
        out,
        "why calls were not prefetched (how many were needed within five calls: exactly, by name of the tool)",
    )?;
    declines(report).write(out, format, width)?;
    let by_arm: [ArmRow; 3] = [
        (
            "every planned call ends in one way (wasted, above, is all that was sent and is neither won nor late)",
            |arm| {
                if arm.total.planned() == 0 { "–".to_owned() } else { ends(arm) }
            },
        ),
        ("net: what a planner saves less what it adds, against no planner", net),
        ("the published line, by its own definitions (cited = same tool by name within three events)", |arm| {
            effectiveness(&arm.total).to_string()
        }),
    ];
    for (title, says) in by_arm {
        format.heading(out, title)?;
        for arm in &report.arms {
            writeln!(out, "{}{}: {}", format.bullet(), arm.name, says(arm))?;
        }
    }
    if let Some((learned, numbers)) = &report.selectivity {
        format.heading(out, "what the selective planner learned")?;
        selectivity::write(out, learned, numbers, format, width)?;
    }
    listed(out, "to be read beside these figures", &report.notes, format)
}

fn listed(out: &mut dyn Write, title: &str, lines: &[String], format: TableFormat) -> Result<()> {
    format.heading(out, title)?;
    lines.iter().try_for_each(|line| Ok(writeln!(out, "{}{}", format.bullet(), format.sentence(line))?))
}

/// The metrics with their targets, planner by planner.
fn targets(report: &PlannerReport) -> Table {
    let columns = ["figure", "planner", "#share", "#95 %", "#of", "#target", "reached"];
    let mut table = Table::new(&columns);
    for place in 0..report.arms.first().map_or(0, |arm| arm.metrics.len()) {
        for arm in &report.arms {
            table.row(target(arm, &arm.metrics[place]));
        }
    }
    table
}

fn target(arm: &PlannerArm, metric: &Metric) -> Vec<String> {
    let Metric { name, share, sessions, target, .. } = metric;
    let ends = |(lower, upper): (f64, f64)| format!("{:.0}–{:.0} %", 100.0 * lower, 100.0 * upper);
    let asked = match target {
        Some(TargetFigure::AtLeast(least)) => format!("≥ {}", whole_percent(*least)),
        Some(TargetFigure::AtMost(most)) => format!("≤ {}", whole_percent(*most)),
        None => "–".to_owned(),
    };
    vec![
        (*name).to_owned(),
        arm.name.clone(),
        percent_of(share.k, share.n),
        sessions.map_or_else(|| "n/a".to_owned(), ends),
        format!("{}/{}", thousands(share.k), thousands(share.n)),
        asked,
        metric.verdict().into_str().to_owned(),
    ]
}

/// A figure or a sentence: its name, and what it says of an arm.
type ArmRow = (&'static str, fn(&PlannerArm) -> String);

fn of_sent(arm: &PlannerArm, count: u64) -> String {
    percent_of(count, arm.total.sent())
}

const FIGURES: [ArmRow; 21] = [
    ("prefetched", |arm| thousands(arm.total.sent())),
    ("exact, 3 calls", |arm| of_sent(arm, arm.total.near.exact)),
    ("exact, 3, random", |arm| percent_of(arm.control.near.exact, arm.control.sent())),
    ("exact, 10 calls", |arm| of_sent(arm, arm.total.far.exact)),
    ("exact, 10, random", |arm| percent_of(arm.control.far.exact, arm.control.sent())),
    ("exact, 3 steps", |arm| of_sent(arm, arm.total.steps.exact)),
    ("value, 3 calls", |arm| of_sent(arm, arm.total.near.target)),
    ("value, 3 steps", |arm| of_sent(arm, arm.total.steps.target)),
    ("tool, once", |arm| of_sent(arm, arm.total.near.name_only)),
    ("tool, published", |arm| of_sent(arm, arm.total.cited)),
    ("tool, by chance", |arm| by_chance(&arm.total)),
    ("won", |arm| of_sent(arm, arm.total.ends[PrefetchEnd::Won])),
    ("wasted", |arm| of_sent(arm, arm.total.wasted())),
    ("calls added", |arm| thousands(arm.total.calls_added())),
    ("results delayed by", |arm| seconds(arm.total.waited_ms)),
    ("waiting spared", |arm| seconds(arm.total.spared_ms)),
    ("tokens unused", |arm| thousands(arm.net().unused_tokens)),
    ("hint tokens", |arm| thousands(arm.total.hint_tokens)),
    ("refused (wrongly)", |arm| format!("{} ({})", arm.total.refused, arm.total.refused_wrongly)),
    ("greedy, of best", |arm| greedy(arm, arm.total.greedy_value / arm.total.best_value)),
    ("greedy, at worst", |arm| greedy(arm, arm.total.least_share.share())),
];

fn figures(report: &PlannerReport) -> Table {
    let mut table = by_arm(report, "figure");
    for (name, cell) in FIGURES {
        table.row(std::iter::once(name.to_owned()).chain(report.arms.iter().map(cell)));
    }
    table
}

/// A table with a column for each arm behind the first one.
fn by_arm(report: &PlannerReport, first: &str) -> Table {
    let arms = report.arms.iter().map(|arm| format!("#{}", arm.name));
    let columns: Vec<String> = std::iter::once(first.to_owned()).chain(arms).collect();
    Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>())
}

/// What the greedy choice reaches of the best one.
fn greedy(arm: &PlannerArm, share: f64) -> String {
    let PrefetchTally { plans_compared, best_value, .. } = arm.total;
    if plans_compared == 0 || best_value <= 0.0 { "n/a".to_owned() } else { percent(share) }
}

fn by_chance(tally: &PrefetchTally) -> String {
    let sent = tally.sent();
    if sent == 0 { "n/a".to_owned() } else { format!("{:.1} %", 100.0 * tally.name_by_chance / sent as f64) }
}

/// What was sent most, of what is told apart by `name`.
fn most_sent(report: &PlannerReport, name: &str, of: fn(&[EdgeRow]) -> Vec<(String, PrefetchTally)>) -> Table {
    let mut table = Table::new(&["planner", name, "#sent", "#exact", "#value", "#tool", "#chance", "#won"]);
    for arm in &report.arms {
        let mut rows = of(&arm.edges);
        rows.retain(|(_, tally)| tally.sent() > 0);
        rows.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.sent()));
        for (name, tally) in rows.into_iter().take(ROWS_MAX) {
            table.row(judged(arm, name, &tally));
        }
    }
    table
}

fn by_edge(edges: &[EdgeRow]) -> Vec<(String, PrefetchTally)> {
    edges.iter().map(|edge| (format!("{} → {}", edge.from, edge.to), edge.tally)).collect()
}

fn judged(arm: &PlannerArm, name: String, tally: &PrefetchTally) -> Vec<String> {
    let sent = tally.sent();
    let part = |part: f64| whole_percent(part / sent as f64);
    vec![
        arm.name.clone(),
        name,
        thousands(sent),
        share::interval(Share::new(tally.near.exact, sent)),
        part(tally.near.target as f64),
        part(tally.near.name_only as f64),
        part(tally.name_by_chance),
        thousands(tally.ends[PrefetchEnd::Won]),
    ]
}

fn declines(report: &PlannerReport) -> Table {
    let mut table = by_arm(report, "reason");
    for &held in DeclineReason::ALL {
        let cell = |arm: &PlannerArm| {
            let PrefetchTally { held: all, late_exact, late_name, .. } = &arm.total;
            match (all[held], held.is_decline()) {
                (0, _) => "–".to_owned(),
                (count, false) => thousands(count),
                (count, true) => {
                    format!("{} ({}, {})", thousands(count), late_exact[held], late_name[held])
                }
            }
        };
        table.row(std::iter::once(held.into_str().to_owned()).chain(report.arms.iter().map(cell)));
    }
    table
}

/// What the columns of [`sweep`] mean.
pub const SWEPT: &str = "exact: asked for within three calls; saved: calls of the agent that need not have run; \
                         added: calls for nothing or twice; needed: declined, and asked for within five calls; \
                         waited: by how much results came later";

/// What each value of the swept keys would do.
pub fn sweep(keys: &[String], rows: &[PlannerSweepRow]) -> Table {
    let figures = ["planner", "#sent", "#exact", "#exact%", "#saved", "#added", "#declined", "#needed", "#waited ms"];
    let headers: Vec<&str> = keys.iter().map(String::as_str).chain(figures).collect();
    let mut table = Table::new(&headers);
    for PlannerSweepRow { values, arm, tally } in rows {
        let figures = [
            arm.clone(),
            thousands(tally.sent()),
            thousands(tally.near.exact),
            percent_of(tally.near.exact, tally.sent()),
            thousands(tally.calls_saved()),
            thousands(tally.calls_added()),
            thousands(tally.declined()),
            thousands(tally.declined_needed()),
            thousands(tally.waited_ms),
        ];
        table.row(values.iter().cloned().chain(figures));
    }
    table
}

/// "Would prefetching have paid?": as configured, with any other planner, and what nobody could beat.
pub fn answer(report: &PlannerReport) -> Vec<String> {
    let backtest = &report.backtest;
    let since = backtest.judged_from.map(|ms| format!(" since {}", date(ms))).unwrap_or_default();
    let mut lines = vec![
        format!("Would prefetching have paid? {}", verdict(report)),
        format!(
            "Judged on {}{since} ({}), learned from the {} before. A hit is exactly the call that was made.",
            counted(backtest.judged_sessions, "session"),
            counted(backtest.judged_calls, "call"),
            thousands(backtest.training_sessions),
        ),
    ];
    let told = |arm: &&PlannerArm| arm.name == CONFIGURED || reached(arm).is_some();
    lines.extend(report.arms.iter().filter(told).map(words));
    lines.push(bound(&report.bound));
    lines
}

/// The configuration first, then the planners that reach the hit rate; where none would have sent anything there is
/// nothing to say.
fn verdict(report: &PlannerReport) -> String {
    let sent = |arm: &&PlannerArm| arm.total.sent() > 0;
    if !report.arms.iter().any(|arm| sent(&arm)) {
        return "Nothing would have been prefetched.".to_owned();
    }
    let mut said = Vec::new();
    match report.arms.iter().find(|arm| arm.name == CONFIGURED).filter(sent) {
        None => said.push("As configured nothing is prefetched.".to_owned()),
        Some(arm) if reached(arm).is_none() => {
            let hit = arm.metrics.first().map(interval).unwrap_or_default();
            let is_hit = arm.metrics.first().is_some_and(Metric::seems_reached);
            let but = if is_hit { ", but no call of the agent is spared" } else { "" };
            said.push(format!("Not as configured: {hit} of what it fetches is asked for within three calls{but}."));
        }
        Some(_) => {}
    }
    for arm in &report.arms {
        let Some(metric) = reached(arm) else { continue };
        let is_sure = metric.verdict() == TargetVerdict::Pass;
        let (sure, but) =
            if is_sure { ("Yes", "") } else { ("Perhaps", ", but the interval reaches below the target") };
        said.push(format!(
            "{sure} with planner \"{}\": {} of what it fetches is asked for within three calls{but}.",
            arm.name,
            interval(metric)
        ));
    }
    said.join(" ")
}

/// The hit rate of a planner that reaches the target and spares a call. No other window may stand in for it.
fn reached(arm: &PlannerArm) -> Option<&Metric> {
    let hit = arm.metrics.first().filter(|metric| metric.key == HIT)?;
    (hit.seems_reached() && arm.total.calls_saved() > 0).then_some(hit)
}

fn words(arm: &PlannerArm) -> String {
    let total = &arm.total;
    if total.sent() == 0 {
        return format!("{}: sends nothing ahead.", arm.name);
    }
    format!(
        "{}: {} prefetched, {} asked for exactly within three calls. {} of the agent need not have run, {} ran for \
         nothing or twice. Results come {} later in all; the agent is spared {} of waiting for its own calls.",
        arm.name,
        thousands(total.sent()),
        thousands(total.near.exact),
        counted(arm.total.calls_saved(), "call"),
        thousands(arm.total.calls_added()),
        seconds(total.waited_ms),
        seconds(total.spared_ms),
    )
}

/// "−66 calls (12 saved, 78 added; 1,300 instead of 1,234), 45,000 tokens of cost (45,000 of unused results, 0 of hints)"
pub fn net(arm: &PlannerArm) -> String {
    let Net { calls_off, calls_on, saved, added, unused_tokens, hint_tokens, .. } = arm.net();
    let sign = if saved >= added { '+' } else { '−' };
    format!(
        "{sign}{} calls ({} saved, {} added; {} instead of {}), {} tokens of cost ({} of unused results, {} of hints)",
        thousands(saved.abs_diff(added)),
        thousands(saved),
        thousands(added),
        thousands(calls_on),
        thousands(calls_off),
        thousands(unused_tokens + hint_tokens),
        thousands(unused_tokens),
        thousands(hint_tokens),
    )
}

/// "12 % [9–18]"
pub fn interval(metric: &Metric) -> String {
    if metric.share.n == 0 {
        return "n/a".to_owned();
    }
    format!("{} {}", whole_percent(metric.share.value()), share::ends(metric.ends()))
}

/// "12.3 s"
pub fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1000.0)
}

fn bound(bound: &Bound) -> String {
    format!(
        "Upper bound: {} of the {} calls that ran were new, had one argument, and were listed by a result within three calls before \
         (in the whole context {}; with further arguments {}).",
        thousands(bound.reachable),
        thousands(bound.calls),
        thousands(bound.listed_whole),
        thousands(bound.listed),
    )
}

/// Ways in which prefetches ended, those that occurred.
pub fn ends(arm: &PlannerArm) -> String {
    let some = PrefetchEnd::ALL.iter().copied().filter(|end| arm.total.ends[*end] > 0);
    some.map(|end| format!("{} {}", end.into_str(), thousands(arm.total.ends[end]))).collect::<Vec<_>>().join(", ")
}
