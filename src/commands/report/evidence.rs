//! `devboy report --finding ID`: what one finding stands on.

use crate::base::error::{Error, Result};
use crate::commands::report::{Args, show};
use crate::cost::findings::search::BillFinding;
use crate::cost::page::Page;
use crate::cost::page::evidence::{caption, json, looks, looks_csv, made_of, sessions};
use crate::cost::page::words::Telling;
use crate::frames::input::Input;
use crate::report::sharing::hide_places;
use crate::report::table::{TableFormat, paragraph};
use crate::shell::context::Context;

/// The finding of this name.
///
/// # Errors
/// If the page has none; the hint names those that it has.
pub fn chosen<'p>(id: &str, page: &'p Page) -> Result<&'p BillFinding> {
    let found = page.findings.iter().find(|finding| finding.id == id);
    found.ok_or_else(|| {
        let ids: Vec<&str> = page.findings.iter().map(|finding| finding.id.as_str()).collect();
        let hint = if ids.is_empty() {
            "these logs have no finding".to_owned()
        } else {
            format!("findings: {}", ids.join(", "))
        };
        Error::usage(format!("--finding {id}: these logs have no such finding")).hint(hint)
    })
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
            let mut fields = input.fields(json(telling, finding));
            fields["finding"] = show::row(telling, finding);
            if args.redact {
                hide_places(&mut fields);
            }
            args.asked.output.write_json("report", fields, context)
        }
        TableFormat::Csv => looks_csv(telling, finding).write(context.out, form, context.width),
        _ => words(telling, finding, form, context),
    }
}

fn words(telling: &Telling<'_>, finding: &BillFinding, form: TableFormat, context: &mut Context<'_>) -> Result<()> {
    let told = telling.told(finding);
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
    writeln!(out, "\nSessions with most of it (devboy session ID shows one)\n")?;
    sessions(telling, finding).write(out, form, width)?;
    if !finding.source.is_empty() {
        write!(out, "\n{}", paragraph("", &format!("The figures come from: {}", told.source), width))?;
    }
    Ok(())
}
