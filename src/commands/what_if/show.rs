//! Shows the reports of policies in the form that was asked for: projects and sessions under the names that people
//! know, in what is shared by letters.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::id::Id;
use crate::commands::what_if::Args;
use crate::cost::groups::Label;
use crate::cost::shown_names::ShownNames;
use crate::frames::input::Input;
use crate::report::sharing;
use crate::report::table::TableFormat;
use crate::shell::context::Context;
use crate::whatif::report::{self, PolicyReport, data};
use crate::whatif::sweep::SweepCell;

/// Writes the figures of the cache under the names of an agent runtime.
fn aliases(args: &Args, reports: &[PolicyReport], context: &mut Context<'_>) -> Result<()> {
    let of = |report: &PolicyReport| report.details.get("prompt-cache")?.get("aliases").cloned();
    args.asked.output.write_json("replay", json!({ "metrics": reports.iter().find_map(of) }), context)
}

/// Writes one report, or several side by side; without an input they are about telemetry.
pub fn show(args: &Args, reports: &mut [PolicyReport], input: Option<&Input>, context: &mut Context<'_>) -> Result<()> {
    if args.setting.alias.is_some() && input.is_some() {
        return aliases(args, reports, context);
    }
    if args.asked.output.form() == TableFormat::Json {
        let rows: Vec<Value> = reports.iter().map(|one| report::json(one, args.setting.per_session)).collect();
        let fields = match input {
            Some(input) => input.fields(json!({ "policies": rows })),
            None => json!({ "basis": "telemetry", "policies": rows }),
        };
        return write_json(args, fields, context);
    }
    if hides_servers(args) {
        reports.iter_mut().for_each(|report| report.hide_servers(&context.pseudonyms));
    }
    in_words(args, reports, context)
}

/// Writes a document, without places and names of servers if it is to be shared.
fn write_json(args: &Args, mut fields: Value, context: &mut Context<'_>) -> Result<()> {
    if args.setting.redact {
        sharing::hide_places(&mut fields);
        sharing::hide_servers(&mut fields, &context.pseudonyms);
    }
    args.asked.output.write_json("replay", fields, context)
}

/// Whether names of servers are taken out of what people are shown; out of Markdown they are taken where it is written.
fn hides_servers(args: &Args) -> bool {
    args.setting.redact && args.asked.output.form() != TableFormat::Md
}

/// Writes a sweep.
pub fn sweep(
    args: &Args,
    (keys, cells): (&[String], &mut [SweepCell]),
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    if args.asked.output.form() == TableFormat::Json {
        let cell = |cell: &SweepCell| {
            let values = keys.iter().cloned().zip(cell.values.iter().map(|value| json!(value)));
            json!({ "values": values.collect::<serde_json::Map<String, Value>>(), "policy": report::json(&cell.report, args.setting.per_session) })
        };
        let cells: Vec<Value> = cells.iter().map(cell).collect();
        return write_json(args, input.fields(json!({ "cells": cells })), context);
    }
    for cell in cells.iter_mut().filter(|_| hides_servers(args)) {
        cell.report.hide_servers(&context.pseudonyms);
        cell.values.iter_mut().for_each(|value| *value = sharing::servers_hidden(value, &context.pseudonyms));
    }
    let rows: Vec<(&[String], &PolicyReport)> =
        cells.iter().map(|cell| (cell.values.as_slice(), &cell.report)).collect();
    let form = args.asked.output.form();
    if form == TableFormat::Csv {
        return data::sweep(keys, &rows).write(context.out, form, context.width);
    }
    let first = rows.first().map(|(_, report)| *report);
    if let Some(off) = first.and_then(report::off_the_bar) {
        writeln!(context.out, "{off}\n")?;
    }
    if let Some(report) = first {
        writeln!(context.out, "{}: each cell against the log", report.policy)?;
    }
    report::sweep(keys, &rows).write(context.out, form, context.width)?;
    if let Some(why) = rows.iter().find_map(|(_, report)| report.not_estimated.as_ref()) {
        writeln!(context.out, "\nnot estimated: {why}")?;
    }
    let reports: Vec<&PolicyReport> = rows.iter().map(|(_, report)| *report).collect();
    for line in report::unpriced_of_all(&reports).into_iter().chain(first.and_then(report::basis)) {
        writeln!(context.out, "\n{}", form.sentence(&line))?;
    }
    Ok(())
}

fn in_words(args: &Args, reports: &[PolicyReport], context: &mut Context<'_>) -> Result<()> {
    let form = args.asked.output.form();
    if form == TableFormat::Csv {
        let table = if args.setting.per_session { data::sessions(reports) } else { data::comparison(reports) };
        return table.write(context.out, form, context.width);
    }
    if let [one] = reports {
        report::write(context.out, one, form, args.setting.detail(), context.width)?;
        return by_session(args, one, form, context);
    }
    if let Some(off) = reports.iter().find_map(report::off_the_bar) {
        writeln!(context.out, "{off}\n")?;
    }
    let cheapest_first = report::by_cost(reports);
    let answer = cheapest_first.iter().find(|one| report::is_cheaper(one));
    let answer = answer
        .map_or_else(|| "None of these is clearly cheaper than the log.".to_owned(), |one| report::first_line(one));
    writeln!(context.out, "{}\n", form.sentence(&answer))?;
    report::comparison(reports).write(context.out, form, context.width)?;
    if let Some(unpriced) = report::unpriced_of_all(&cheapest_first) {
        writeln!(context.out, "\n{}", form.sentence(&unpriced))?;
    }
    let is_short = !(args.setting.all || args.setting.explain || args.setting.per_session || args.setting.show_content);
    let parts = report::clear_parts(&cheapest_first);
    if !parts.is_empty() && !is_short {
        writeln!(context.out, "\n{}", report::CLEAR_PARTS)?;
        parts.write_top(context.out, form, context.width, args.setting.detail().rows)?;
    }
    if is_short {
        writeln!(context.out)?;
        let untold = cheapest_first.iter().filter(|one| one.told().is_none()).map(|one| report::first_line(one));
        for line in untold.chain(cheapest_first.iter().filter_map(|one| report::together(one))) {
            writeln!(context.out, "{}{}", form.bullet(), form.sentence(&line))?;
        }
        let breaks = "hard: a step needs text that is gone; soft: a step only mentions it";
        writeln!(
            context.out,
            "\n{breaks}\nWhere it is clear, what each saves, pays and breaks: --all, or devboy what-if POLICY"
        )?;
    }
    for one in cheapest_first.into_iter().filter(|_| !is_short) {
        writeln!(context.out)?;
        report::headline(context.out, one, form)?;
        besides(args, one, form, context)?;
    }
    if let Some(line) = reports.iter().find_map(report::basis) {
        writeln!(context.out, "\n{line}")?;
    }
    Ok(())
}

/// What a report of several adds where it is asked for.
fn besides(args: &Args, one: &PolicyReport, form: TableFormat, context: &mut Context<'_>) -> Result<()> {
    report::examples(context.out, form, one)?;
    if args.setting.explain {
        report::explained(context.out, form, one)?;
    }
    by_session(args, one, form, context)
}

fn by_session(args: &Args, one: &PolicyReport, form: TableFormat, context: &mut Context<'_>) -> Result<()> {
    if args.setting.per_session {
        writeln!(context.out, "\nby session, largest difference first")?;
        report::sessions(one).write_top(context.out, form, context.width, args.setting.detail().rows)?;
    }
    Ok(())
}

/// Puts names in place of pseudonyms. Data keeps these: what is joined by them has them too.
pub fn tell(args: &Args, reports: &mut [PolicyReport], input: &Input) {
    let form = args.asked.output.form();
    if matches!(form, TableFormat::Json | TableFormat::Csv) {
        return;
    }
    let projects = reports.iter().flat_map(|report| &report.cells).filter(|cell| cell.by == "project");
    let sessions = reports.iter().filter(|_| args.setting.per_session).filter_map(|report| report.outcome.as_ref());
    let sessions = sessions.filter_map(|outcome| outcome.by.get("session")).flat_map(BTreeMap::keys);
    let labels: BTreeMap<String, Label> = projects
        .map(|cell| (&cell.name, Label::Project as fn(Id) -> Label))
        .chain(sessions.map(|id| (id, Label::Session as fn(Id) -> Label)))
        .filter_map(|(id, label)| Some((id.clone(), label(Id::from_hex(id)?))))
        .collect();
    let is_shared = args.setting.redact || args.asked.output.is_shared();
    let names = ShownNames::of(labels.values(), is_shared, input);
    for report in reports {
        for cell in report.cells.iter_mut().filter(|cell| cell.by == "project") {
            if let Some(label) = labels.get(&cell.name) {
                cell.name = names.short(label);
            }
        }
        let by = report.outcome.as_mut().and_then(|outcome| outcome.by.get_mut("session"));
        let Some(by) = by.filter(|_| args.setting.per_session) else { continue };
        for (id, sides) in std::mem::take(by) {
            by.insert(labels.get(&id).map_or(id, |label| names.full(label)), sides);
        }
    }
}
