//! `devboy mine fields`: which fields of JSON results the model took up later.

use std::io::Write as _;

use serde_json::json;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::commands::mine::export::{ExportForm, MinedArgs};
use crate::frames::export as parquet_listing;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::mine::fields::{self, CallFields, FieldUses, GroupNumbers};
use crate::report::numbers::counted;
use crate::report::table::{self, TableFormat};
use crate::shell::context::Context;

/// The sheet with the thresholds of groups.
const SHEET: &str = "t2_fields.toml";

/// Print which fields of JSON results were taken up later, and the tokens of those that never were.
///
/// A field is used if one of its values is written again by the model: in an argument of a later call, in an edit, in its
/// answer. --explain lists the fields of each tool. Names of fields are shown if they are identifiers; names of MCP servers
/// are pseudonyms unless --names is given.
#[derive(clap::Args, Debug)]
#[command(mut_arg("top", |top| top.default_value("10")))]
pub struct Args {
    /// List the fields, and say what the columns mean.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    asked: MinedArgs,
}

/// Reads, sums up, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let mut input = args.asked.read((0, Some(TimelineDetail::COUNTED)), context)?;
    input.expect_calls(&args.asked.input)?;
    let numbers = numbers(&input.data)?;
    let mut uses = of_input(&mut input)?;
    let name = |tool: &str| args.asked.export.shown(&context.pseudonyms, tool);
    uses.tools.iter_mut().for_each(|row| row.tool = name(&row.tool));
    uses.fields.iter_mut().for_each(|row| row.tool = name(&row.tool));
    let summary = fields::summary(&uses);
    let (tools, tools_out) = args.asked.kept.keep(uses.tools, |row| row.sessions);
    let (rows, rows_out) = args.asked.kept.keep(uses.fields, |row| row.sessions);
    let left_out = if args.explain { rows_out } else { tools_out };
    args.asked.export.tell(&input, (left_out, args.asked.kept), context)?;
    let (of_tools, of_fields) = (fields::tools(&tools), fields::fields(&rows, &numbers));
    let shown = if args.explain { &of_fields } else { &of_tools };
    let mut fields = input.fields(json!({ "left_out": tools_out + rows_out }));
    fields["answers"] = json!(uses.answers);
    fields["sessions"] = json!(uses.sessions);
    fields["tools"] = table::json(&of_tools);
    fields["fields"] = table::json(&of_fields);
    let top = args.asked.kept.top();
    args.asked.export.send_document(context, "mine fields", fields, |form, out, width| match form {
        ExportForm::Csv => table::table(shown).write(out, TableFormat::Csv, width),
        ExportForm::Md => table::rounded(shown).write(out, TableFormat::Md, width),
        ExportForm::Parquet => parquet_listing::write_listing(out, shown, &[]),
        _ => {
            summary.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            if tools.is_empty() {
                return Ok(());
            }
            writeln!(out)?;
            fields::tools_overview(&tools).write_top(out, TableFormat::Table, width, top)?;
            if args.explain {
                writeln!(out)?;
                fields::fields_overview(&rows, &numbers).write_top(out, TableFormat::Table, width, top)?;
                writeln!(out)?;
                fields::legend(&numbers).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
            Ok(())
        }
    })
}

/// When a field is judged.
pub fn numbers(data: &Data) -> Result<GroupNumbers> {
    data.parsed(SHEET)
}

/// Sums up the fields of an input that was read for its timeline.
pub fn of_input(input: &mut Input) -> Result<FieldUses> {
    let words = format!("{:?}", input.vocabulary.tool_aliases);
    let rules = input.data.text("timeline.toml")?;
    let uses = input.remember(&format!("fields {words} {rules}"), |input| {
        let found = CallFields::of(input.counted_files()?);
        let (history, names) = input.named_history();
        Ok(fields::uses(&history, &names, &found))
    })?;
    if uses.unread > 0 {
        let results = counted(uses.unread, "result");
        let why = "nobody looked for fields in them before the logs were deleted";
        input.notes.push(format!("{results} of deleted logs left out: {why} (`devboy mine fields` does)"));
    }
    Ok(uses)
}
