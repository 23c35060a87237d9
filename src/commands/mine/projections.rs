//! `devboy mine projections`: which values pass from the result of one tool to an argument of the next.

use std::io::Write;

use serde_json::json;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::pseudonyms::Pseudonyms;
use crate::commands::mine::export::{ExportForm, MinedArgs};
use crate::frames;
use crate::frames::input::Input;
use crate::frames::projection::{Hold, MinedProjection};
use crate::mine::projections::{self, Thresholds, ToldHistory};
use crate::report::table::TableFormat;
use crate::shell::context::Context;

/// The sheet with the thresholds.
const SHEET: &str = "mined_projections.toml";

/// Print which lists in the results of one tool lead to which argument of the next.
///
/// A link is what stays after chance (lists of other sessions), time (every chain read backwards) and better lists are
/// ruled out. Names of MCP servers are pseudonyms unless --names is given.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Also list what was held, and why.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    asked: MinedArgs,
}

/// Reads, mines, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let mut input = args.asked.read_more(Input::find_values, context)?;
    input.expect_calls(&args.asked.input)?;
    let question = format!("projections {}", about(&input.data, &input)?);
    let mined = input.remember(&question, mine)?;
    let (rows, left_out) = chosen(args, &context.pseudonyms, mined);
    args.asked.export.tell(&input, (left_out, args.asked.kept), context)?;
    let mut fields = input.fields(json!({ "left_out": left_out }));
    fields["projections"] = projections::json(&rows);
    args.asked.export.send_document(context, "mine projections", fields, |form, out, width| match form {
        ExportForm::Csv => projections::table(&rows).write(out, TableFormat::Csv, width),
        ExportForm::Md => projections::table(&rows).write(out, TableFormat::Md, width),
        ExportForm::Parquet => frames::export::write_projections(out, &rows, &[]),
        _ => {
            projections::overview(&rows).write_top(out, TableFormat::Table, width, args.asked.kept.top())?;
            let links = rows.iter().filter(|row| row.held.is_none()).map(projections::words);
            let said = links.chain(rows.iter().filter_map(projections::held));
            said.filter(|_| args.explain).try_for_each(|line| Ok(writeln!(out, "{line}")?))
        }
    })
}

/// What mined projections depend on besides the logs.
pub fn about(data: &Data, input: &Input) -> Result<String> {
    Ok(format!("{} {:?}", data.text(SHEET)?, input.vocabulary.tool_aliases))
}

fn mine(input: &mut Input) -> Result<Vec<MinedProjection>> {
    let (history, names) = input.named_history();
    let values = input.values(&history);
    of_history(input, ToldHistory { history: &history, values: &values, tools: &names })
}

/// Mines a history of the input.
pub fn of_history(input: &Input, told: ToldHistory<'_>) -> Result<Vec<MinedProjection>> {
    let thresholds: Thresholds = input.data.parsed(SHEET)?;
    Ok(input.pool.install(|| projections::mine(told, &thresholds)))
}

/// The rows to show, under the names to show, and how many are left out for being of too few sessions.
fn chosen(args: &Args, names: &Pseudonyms, mined: Vec<MinedProjection>) -> (Vec<MinedProjection>, u64) {
    // Keys that only few sessions have may be data: they are not shown to anybody.
    let is_known = |row: &MinedProjection| {
        row.held != Some(Hold::Sessions) || !(row.extractor.starts_with('$') || row.to.starts_with("mcp__"))
    };
    let wanted = mined.into_iter().filter(|row| row.held.is_none() || args.explain && is_known(row));
    let (rows, left_out) = args.asked.kept.keep(wanted, |row| row.sessions);
    let name = |tool: &str| args.asked.export.shown(names, tool);
    let named = |row: MinedProjection| MinedProjection { from: name(&row.from), to: name(&row.to), ..row };
    (rows.into_iter().map(named).collect(), left_out)
}
