//! Shows the page in the form that was asked for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::visible::visible;
use crate::commands::report::{Args, standing};
use crate::cost::findings::search::BillFinding;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::groups::Label;
use crate::cost::page::spent::by_money;
use crate::cost::page::words::finding::ToldFinding;
use crate::cost::page::words::{NOT_WORTH, NOTHING_TO_SET, Telling};
use crate::cost::page::{self, Page, PageNames};
use crate::cost::shown_names::ShownNames;
use crate::frames::input::Input;
use crate::logs::trace::Millis;
use crate::report::numbers::date;
use crate::report::sharing::without_paths;
use crate::report::table::{Table, TableBuilder, TableFormat, paragraph};
use crate::shell::context::Context;
use crate::shell::window::ALL;

/// The page as it is told: under letters if it is shared. `tools` are those that its file names, `chosen` is the finding asked for.
pub fn telling<'p>(
    args: &Args,
    (page, thresholds): (&'p Page, &'p FindingThresholds),
    (tools, chosen): (&[String], Option<&BillFinding>),
    (is_cut, start): (bool, Millis),
    input: &mut Input,
    context: &Context<'_>,
) -> Result<Telling<'p>> {
    let is_shared = args.is_shared();
    let projects = by_money(&page.spent.by_project).into_iter().map(|(id, _)| (id, Label::Project as fn(Id) -> Label));
    let drawn = page.plots.iter().flat_map(|plots| &plots.sessions).map(|trace| &trace.session);
    let listed = chosen.into_iter().flat_map(|finding| finding.largest.iter().map(|one| &one.session));
    let sessions = drawn.chain(listed).map(|id| (id, Label::Session as fn(Id) -> Label));
    let label = |(id, label): (&String, fn(Id) -> Label)| Some((id.clone(), label(Id::from_hex(id)?)));
    let own = page.findings.iter().flat_map(own_names);
    let tools = tools.iter().map(|tool| (page::own_key("tool", tool), tool_label(tool)));
    let labels: Vec<(String, Label)> = projects.chain(sessions).filter_map(label).chain(own).chain(tools).collect();
    let shown = ShownNames::of(labels.iter().map(|(_, label)| label), is_shared, input);
    let named = labels.into_iter().map(|(id, label)| (id, shown.short(&label)));
    let since = is_cut.then(|| date(input.window.start));
    let until = (input.window.end != ALL.end).then(|| date(input.window.end - 1));
    let flags = |since: Option<&str>, until: Option<&str>| args.asked.same_logs(since, until, is_shared);
    let names = PageNames(named.collect());
    let standing =
        standing::of(page, (&names, thresholds.names_max, is_shared), input, context).unwrap_or_else(|why| {
            let why = if is_shared { without_paths(&why.message).into_owned() } else { why.message };
            input.notes.push(format!("what is set already is not known: {why}"));
            standing::unread(page, &why)
        });
    Ok(Telling {
        page,
        names,
        thresholds,
        top: args.top(),
        same_logs: flags(since.as_deref(), until.as_deref()),
        own_flags: flags(None, None),
        places: args.asked.places(is_shared),
        is_cut,
        days: page::days(page, start),
        settings_file: standing::file_words(is_shared, context),
        is_part: args.asked.input.project.is_some(),
        standing,
    })
}

/// What people may have named themselves in a finding.
fn own_names(finding: &BillFinding) -> impl Iterator<Item = (String, Label)> {
    let names = finding.made_of.iter().flat_map(|made| finding.made_by.iter().zip(&made.names));
    names.filter_map(|(kind, name)| match kind.as_str() {
        "agent type" if !name.starts_with('(') => Some((page::own_key(kind, name), Label::Agent(name.clone()))),
        "server" => Some((page::own_key(kind, name), Label::Server(name.clone()))),
        "tool" => Some((page::own_key(kind, name), tool_label(name))),
        _ => None,
    })
}

/// A tool, or a word for what is none.
fn tool_label(tool: &str) -> Label {
    if tool.starts_with('(') { Label::Word(tool.to_owned()) } else { Label::Tool(tool.to_owned()) }
}

/// Writes the page.
pub fn show(args: &Args, telling: &Telling<'_>, input: &Input, context: &mut Context<'_>) -> Result<()> {
    let form = args.asked.output.form();
    match form {
        TableFormat::Json => document(args, telling, input, context),
        TableFormat::Csv => table(telling).write(context.out, form, context.width),
        TableFormat::Md => markdown(args, telling, context),
        TableFormat::Table => words(args, telling, context),
    }
}

/// Columns of the labels in front of what was spent.
const LABEL: usize = 10;

fn words(args: &Args, telling: &Telling<'_>, context: &mut Context<'_>) -> Result<()> {
    let width = context.width;
    let out = &mut *context.out;
    write!(out, "{}", paragraph("", &telling.headline(), width))?;
    for (label, line) in telling.spent() {
        write!(out, "{}", paragraph(&format!("  {label:LABEL$}"), &line, width))?;
    }
    let told: Vec<ToldFinding> = telling.findings().map(|finding| telling.told(finding)).collect();
    writeln!(out, "\nWhat to change, most valuable first")?;
    if told.is_empty() {
        write!(out, "{}", paragraph("  ", &telling.nothing_found(), width))?;
    }
    for (number, told) in (1..).zip(&told) {
        write!(out, "{}", paragraph(&format!("{number}. "), &told.what, width))?;
        write!(out, "{}", paragraph("   ", &told.holds, width))?;
        write!(out, "{}", paragraph("   → ", &told.advice, width))?;
        // Never broken: it is to be copied.
        writeln!(out, "   See: {}", visible(&told.command))?;
    }
    let nothing = telling.nothing_to_set();
    if !nothing.is_empty() {
        writeln!(out, "\n{NOTHING_TO_SET}")?;
    }
    for (line, command) in nothing {
        write!(out, "{}", paragraph("- ", &line, width))?;
        writeln!(out, "  See: {}", visible(&command))?;
    }
    if let Some(line) = telling.not_worth() {
        write!(out, "\n{}{}", paragraph("", NOT_WORTH, width), paragraph("  ", &line, width))?;
    }
    for line in footer(args, telling) {
        write!(out, "{}", paragraph("", &line, width))?;
    }
    Ok(())
}

/// What is to be kept in mind.
fn footer(args: &Args, telling: &Telling<'_>) -> Vec<String> {
    let mut lines = telling.reminders();
    lines.extend(telling.off_the_bar().into_iter().chain(telling.of_few_sessions()));
    if args.explain {
        lines.extend(telling.explained());
    }
    lines
}

fn markdown(args: &Args, telling: &Telling<'_>, context: &mut Context<'_>) -> Result<()> {
    let form = TableFormat::Md;
    let out = &mut *context.out;
    writeln!(out, "## devboy report\n\n{}\n", form.sentence(&telling.headline()))?;
    for (label, line) in telling.spent() {
        writeln!(out, "- {label}: {}", form.sentence(&line))?;
    }
    writeln!(out, "\n### What to change, most valuable first\n")?;
    let told: Vec<ToldFinding> = telling.findings().map(|finding| telling.told(finding)).collect();
    if told.is_empty() {
        writeln!(out, "{}", form.sentence(&telling.nothing_found()))?;
    }
    for (number, told) in (1..).zip(&told) {
        writeln!(out, "{number}. {}", form.sentence(&told.what))?;
        writeln!(out, "   - {}", form.sentence(&told.holds))?;
        writeln!(out, "   - {}. See: `{}`", form.sentence(&told.advice), told.command)?;
    }
    let nothing = telling.nothing_to_set();
    if !nothing.is_empty() {
        writeln!(out, "\n### {NOTHING_TO_SET}\n")?;
    }
    for (line, command) in nothing {
        writeln!(out, "- {}. See: `{command}`", form.sentence(&line))?;
    }
    if let Some(line) = telling.not_worth() {
        writeln!(out, "\n{NOT_WORTH}: {}", form.sentence(&line))?;
    }
    for line in footer(args, telling) {
        writeln!(out, "\n{}", form.sentence(&line))?;
    }
    Ok(())
}

/// A finding as data, with names instead of pseudonyms.
pub fn row(telling: &Telling<'_>, finding: &BillFinding) -> Value {
    let told = telling.told(finding);
    let mut row = json!(finding);
    if let Some(row) = row.as_object_mut() {
        let inner = [
            "scope",
            "mostly",
            "except",
            "by_project",
            "looks",
            "largest",
            "made_by",
            "made_of",
            "to_set",
            "repair",
            "seen_last",
        ];
        inner.iter().for_each(|field| _ = row.remove(*field));
    }
    row["what"] = json!(told.what);
    row["where"] = json!(told.holds);
    row["advice"] = json!(told.advice);
    row["command"] = json!(told.command);
    row["source"] = json!(told.source);
    row
}

/// The findings as rows.
fn table(telling: &Telling<'_>) -> Table {
    TableBuilder::of(telling.findings().map(|finding| (finding, telling.told(finding))))
        .text("finding", |(finding, _)| finding.id.clone())
        .text("what", |(_, told)| told.what.clone())
        .number("count", |(finding, _)| finding.count.to_string())
        .number("saved_usd", |(finding, _)| format!("{:.2}", finding.saved_usd))
        .number("lower_usd", |(finding, _)| format!("{:.2}", finding.lower_usd))
        .number("upper_usd", |(finding, _)| format!("{:.2}", finding.upper_usd))
        .text("basis", |(finding, _)| finding.basis.into_str().to_owned())
        .text("where", |(_, told)| told.holds.clone())
        .text("do", |(_, told)| told.advice.clone())
        .text("command", |(_, told)| told.command.clone())
        .table()
}

fn document(args: &Args, telling: &Telling<'_>, input: &Input, context: &mut Context<'_>) -> Result<()> {
    let page = telling.page;
    let mut spent = json!(page.spent);
    let by_project = page.spent.by_project.iter().map(|(id, amount)| (telling.names.project(id), json!(amount)));
    // Two directories may have one name on a page.
    let mut named: BTreeMap<String, Value> = BTreeMap::new();
    for (name, amount) in by_project {
        let sum = named.entry(name).or_insert_with(|| json!({ "nano_usd": 0, "unpriced_tokens": 0 }));
        for field in ["nano_usd", "unpriced_tokens"] {
            sum[field] = json!(sum[field].as_u64().unwrap_or_default() + amount[field].as_u64().unwrap_or_default());
        }
    }
    spent["by_project"] = json!(named);
    let own = json!({
        "spent": spent,
        "findings": telling.findings().map(|finding| row(telling, finding)).collect::<Vec<Value>>(),
        "nothing_to_set": page.findings.iter().filter(|one| !one.is_actionable).map(|one| row(telling, one))
            .collect::<Vec<Value>>(),
        "not_worth": page.not_worth.iter().map(|loser| json!({
            "name": loser.name, "change": loser.change, "lower": loser.lower, "upper": loser.upper,
            "sessions": loser.sessions, "command": telling.source(loser),
        })).collect::<Vec<Value>>(),
        "simulation_off_bill": page.off_bill,
        "same_logs": telling.same_logs,
    });
    input.write_json("report", own, (&args.asked.output, args.redact), context)
}
