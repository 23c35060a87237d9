//! `devboy report --finding ID`: what one finding stands on.

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::commands::report::{Args, show};
use crate::cost::findings::FindingBasis;
use crate::cost::findings::search::BillFinding;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::page::Page;
use crate::cost::page::evidence::{self, caption, looks, looks_csv, made_of, sessions};
use crate::cost::page::words::Telling;
use crate::frames::input::Input;
use crate::report::numbers::percent;
use crate::report::table::{TableFormat, paragraph};
use crate::shell::context::Context;

/// The finding of this name; none where there is such a finding and these logs do not have it. An error if there is no
/// such finding; the hint names those that there are.
pub fn chosen<'p>(id: &str, thresholds: &FindingThresholds, page: &'p Page) -> Result<Option<&'p BillFinding>> {
    let found = page.findings.iter().find(|finding| finding.id == id);
    let known = ids(thresholds);
    if found.is_some() || known.iter().any(|known| known == id) {
        return Ok(found);
    }
    let here: Vec<&str> = page.findings.iter().map(|finding| finding.id.as_str()).collect();
    let (there, not_here): (Vec<&str>, Vec<&str>) =
        known.iter().map(String::as_str).partition(|known| here.contains(known));
    let of_logs = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    Err(Error::usage(format!("--finding {id}: there is no such finding"))
        .hint(format!("findings of these logs: {of_logs}; others that there are: {}", not_here.join(", "))))
}

/// All findings that a page can have.
fn ids(thresholds: &FindingThresholds) -> Vec<String> {
    let parts = thresholds.part.iter().map(|one| &one.id);
    let single = [
        &thresholds.unread.id,
        &thresholds.unwritten.id,
        &thresholds.images.id,
        &thresholds.servers.id,
        &thresholds.hooks.id,
        &thresholds.subagents.id,
        &thresholds.old_versions.id,
    ]
    .into_iter();
    let misses =
        thresholds.miss.iter().map(|miss| format!("miss_{}", miss.id.as_deref().unwrap_or(miss.cause.into_str())));
    tried(thresholds).chain(parts).chain(single).cloned().chain(misses).collect()
}

/// Those for which values of a setting are tried.
fn tried(thresholds: &FindingThresholds) -> impl Iterator<Item = &String> {
    let lifetimes = thresholds.lifetime.iter().map(|one| &one.id);
    std::iter::once(&thresholds.window.id).chain(lifetimes).chain(thresholds.result.iter().map(|one| &one.id))
}

/// Says that these logs do not have it.
pub fn show_none(args: &Args, telling: &Telling<'_>, input: &Input, context: &mut Context<'_>) -> Result<()> {
    let form = args.asked.output.form();
    match form {
        TableFormat::Json => {
            let none = json!({ "finding": null, "looks": [], "largest": [], "made_of": [] });
            input.write_json("report", none, (&args.asked.output, args.redact), context)
        }
        TableFormat::Csv => looks_csv(telling, &[]).write(context.out, form, context.width),
        _ => {
            let id = args.finding.as_deref().unwrap_or_default();
            let least = percent(telling.thresholds.share_min);
            let mut told = format!(
                "{id} is no finding of these logs: it did not happen, the last sessions are without it, or it holds nowhere beyond \
                 chance and for {least} of the input."
            );
            if tried(telling.thresholds).any(|one| one == id) {
                let tries = ["tune", "claude-settings", "--dry-run", "--explain"].map(str::to_owned);
                let tries = telling.command(&tries, &telling.places);
                told += &format!(
                    " Values of a setting are judged on later sessions, which may be too few: `{tries}` says so."
                );
            }
            Ok(write!(context.out, "{}", paragraph("", &form.sentence(&told), context.width))?)
        }
    }
}

/// Shows it.
pub fn show(
    args: &Args,
    telling: &Telling<'_>,
    finding: &BillFinding,
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    let form = args.asked.output.form();
    match form {
        TableFormat::Json => {
            let mut own = evidence::json(telling, finding);
            own["finding"] = show::row(telling, finding);
            input.write_json("report", own, (&args.asked.output, args.redact), context)
        }
        TableFormat::Csv => looks_csv(telling, &finding.looks).write(context.out, form, context.width),
        _ => words(args, telling, finding, context),
    }
}

fn words(args: &Args, telling: &Telling<'_>, finding: &BillFinding, context: &mut Context<'_>) -> Result<()> {
    let (form, told) = (args.asked.output.form(), telling.told(finding));
    let (out, width) = (&mut *context.out, context.width);
    for (first, line) in [("", &told.what), ("  ", &told.holds), ("  → ", &told.advice)] {
        write!(out, "{}", paragraph(first, &form.sentence(line), width))?;
    }
    let looked = format!("Everything that was looked at. {}", caption(finding));
    writeln!(out, "\n{}", paragraph("", &looked, width))?;
    looks(telling, finding).write(out, form, width)?;
    if let Some(made_of) = made_of(telling, finding) {
        writeln!(out, "\nWhat it is made of\n")?;
        made_of.write(out, form, width)?;
    }
    // In what is shared sessions are letters, which no command takes.
    let one = telling.command(&["session", "ID"].map(str::to_owned), &telling.same_logs);
    let one = if args.is_shared() { String::new() } else { format!(" ({one} shows one)") };
    writeln!(out, "\n{}\n", form.sentence(&format!("Sessions with most of it{one}")))?;
    sessions(telling, finding).write(out, form, width)?;
    if !finding.source.is_empty() {
        let from = match finding.basis {
            FindingBasis::Replayed => {
                "The same window replayed by itself, on top of the compactions of the log, and without a price for what breaks"
            }
            _ => "More about it",
        };
        write!(out, "\n{}", paragraph("", &format!("{from}: {}", told.source), width))?;
    }
    Ok(())
}
