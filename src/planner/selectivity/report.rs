//! Selectivity in words, tables and JSON: the cells that were counted, the curve, and the point that was chosen. A
//! candidate *comes true* if the agent makes exactly that call; each counts by itself. That is another figure than the hits
//! of a planner, which sends what it has sent already only once.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::base::error::Result;
use crate::base::stats::Share;
use crate::planner::selectivity::SelectivityThresholds;
use crate::planner::selectivity::backtest::{Learned, ThresholdPoint};
use crate::planner::selectivity::table::{CandidateCounts, FeatureCell, FollowUpLink};
use crate::report::numbers::known;
use crate::report::share::{self, interval, whole_percent};
use crate::report::table::{Table, TableBuilder, TableFormat};

/// Rows of the table of cells that are shown; JSON and the file have all.
const CELLS_MAX: usize = 12;
/// Points of the curve that are shown on either side of the chosen one; JSON has all.
const POINTS_BESIDE: usize = 3;

/// What matters first: what is fetched, and how often that is what was asked for.
pub fn words(learned: &Learned) -> Vec<String> {
    let Some((chosen, judged)) = learned.backtest.chosen.as_ref().zip(learned.backtest.judged()) else {
        return vec![format!(
            "selective: no threshold keeps {} exact on the training sessions at the lower ends of both \
             intervals, so nothing is prefetched",
            whole_percent(learned.target)
        )];
    };
    let mut lines = vec![
        format!(
            "selective: a call is prefetched where at least {} of its kind were exactly what came next; chosen on \
             the training sessions, each judged by the others: {}, {} of the results with a candidate",
            whole_percent(chosen.threshold),
            shares(chosen.exact, chosen.exact_sessions),
            percent(chosen.coverage),
        ),
        format!("on the judged sessions: {} of the results with a candidate", percent(judged.coverage)),
        format!(
            "  came true within three calls: {}; the same value, whatever else: {}",
            shares(judged.exact, judged.exact_sessions),
            percent(judged.target)
        ),
        "  each candidate counts by itself here; of a planner's hits above one call makes one, and what was fetched \
         already is not sent again"
            .to_owned(),
    ];
    if judged.sessions < 10 {
        lines.push(format!("  from {} sessions only: read the interval, not the share", judged.sessions));
    }
    lines
}

/// Words, the curve, the cells.
pub fn write(
    out: &mut dyn Write,
    learned: &Learned,
    numbers: &SelectivityThresholds,
    format: TableFormat,
    width: Option<u16>,
) -> Result<()> {
    let bullet = format.bullet();
    words(learned).iter().try_for_each(|line| writeln!(out, "{bullet}{}", format.sentence(line.trim_start())))?;
    writeln!(out)?;
    curve(learned).write(out, format, width)?;
    writeln!(out)?;
    cells(learned, numbers).write(out, format, width)
}

/// The curve on training and judged sessions, intervals over sessions: the points around the one that was chosen, or
/// around the target if none was. Thresholds that change nothing are left out.
fn curve(learned: &Learned) -> Table {
    let backtest = &learned.backtest;
    let pairs: Vec<(&ThresholdPoint, &ThresholdPoint)> = backtest.training.iter().zip(&backtest.held_out).collect();
    let is_chosen = |point: &ThresholdPoint| backtest.threshold() == Some(point.threshold);
    let tells = |place: usize| {
        let (training, judged) = pairs[place];
        let same =
            |next: &(&ThresholdPoint, &ThresholdPoint)| next.0.exact == training.exact && next.1.exact == judged.exact;
        is_chosen(training) || pairs.get(place + 1).is_some_and(|next| !same(next))
    };
    let told: Vec<(&ThresholdPoint, &ThresholdPoint)> =
        (0..pairs.len()).filter(|&place| tells(place)).map(|place| pairs[place]).collect();
    let middle = backtest.threshold().unwrap_or(learned.target);
    let middle = told.partition_point(|(training, _)| training.threshold < middle);
    let start = middle.saturating_sub(POINTS_BESIDE);
    TableBuilder::of(told.into_iter().skip(start).take(middle + POINTS_BESIDE + 1 - start))
        .number("from", |(training, _)| whole_percent(training.threshold))
        .number("training", |(training, _)| fraction(training.exact))
        .number("95 %", |(training, _)| known(training.exact_widest(), share::ends))
        .number("covers", |(training, _)| percent(training.coverage))
        .number("judged", |(_, judged)| fraction(judged.exact))
        .number("95 %", |(_, judged)| known(judged.exact_widest(), share::ends))
        .number("covers", |(_, judged)| percent(judged.coverage))
        .text("", |(training, _)| if is_chosen(training) { "chosen" } else { "" }.to_owned())
        .table()
}

/// The cells that were believed, best first; one that tells nothing apart in its coarser cell is left out.
fn cells(learned: &Learned, numbers: &SelectivityThresholds) -> Table {
    let links = &learned.backtest.table.links;
    let tells = |link: &FollowUpLink, cell: &FeatureCell, counts: &CandidateCounts| {
        let coarser = cell.outwards().nth(1);
        coarser.is_none_or(|coarser| links[link].get(&coarser) != Some(counts))
    };
    let mut rows: Vec<_> = learned.backtest.table.believed(numbers).filter(|row| tells(row.0, row.1, row.2)).collect();
    rows.sort_by(|a, b| b.2.exact().lower.total_cmp(&a.2.exact().lower).then_with(|| (a.0, a.1).cmp(&(b.0, b.1))));
    TableBuilder::of(rows.into_iter().take(CELLS_MAX))
        .text("after", |(link, _, _)| link.from.clone())
        .text("call", |(link, _, _)| format!("{} {}", link.to, link.argument))
        .text("where", |(_, cell, _)| cell.words(numbers))
        .number("candidates", |(_, _, counts)| counts.trials.to_string())
        .number("came true", |(_, _, counts)| interval(counts.exact()))
        .number("same value", |(_, _, counts)| interval(counts.target()))
        .table()
}

/// Everything as JSON.
pub fn json(learned: &Learned, numbers: &SelectivityThresholds) -> Value {
    let backtest = &learned.backtest;
    let cells = backtest.table.believed(numbers).map(|(link, cell, counts)| {
        let groups: Map<String, Value> = cell
            .named(numbers)
            .into_iter()
            .map(|(feature, group)| (feature.into_str().to_owned(), json!(group)))
            .collect();
        json!({
            "after": link.from,
            "tool": link.to,
            "argument": link.argument,
            "where": groups,
            "candidates": counts.trials,
            "came_true": share::json(counts.exact(), None),
            "value_came_true": share::json(counts.target(), None),
        })
    });
    let points = |points: &[ThresholdPoint]| points.iter().map(point_json).collect::<Vec<_>>();
    json!({
        "target": learned.target,
        "threshold": backtest.threshold(),
        "chosen_on_training": backtest.chosen.as_ref().map(point_json),
        "judged": backtest.judged().map(point_json),
        "curve": { "training": points(&backtest.training), "judged": points(&backtest.held_out) },
        "cells": cells.collect::<Vec<_>>(),
    })
}

fn point_json(point: &ThresholdPoint) -> Value {
    json!({
        "threshold": point.threshold,
        "coverage": share::json(point.coverage, None),
        "sessions": point.sessions,
        "came_true": share::json(point.exact, point.exact_sessions),
        "value_came_true": share::json(point.target, point.target_sessions),
    })
}

/// "14 of 18 = 78 % [55–91], by sessions [0–93]"
fn shares(share: Share, sessions: Option<(f64, f64)>) -> String {
    let by_sessions = sessions.map(|ends| format!(", by sessions {}", share::ends(ends))).unwrap_or_default();
    known(share.known(), |share| format!("{} of {} = {}{by_sessions}", share.k, share.n, interval(share)))
}

fn percent(share: Share) -> String {
    known(share.known(), |share| whole_percent(share.value()))
}

/// "78 % of 18"
fn fraction(share: Share) -> String {
    known(share.known(), |share| format!("{} of {}", whole_percent(share.value()), share.n))
}
