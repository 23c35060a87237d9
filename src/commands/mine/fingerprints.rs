//! `devboy mine fingerprints`: what the results of each endpoint look like, over a window.

use serde_json::json;

use crate::base::error::Result;
use crate::commands::config::settings;
use crate::commands::mine::export::{ExportForm, MinedArgs};
use crate::commands::responses::Wanted;
use crate::frames::export::write_endpoints;
use crate::frames::fingerprint::Fingerprint;
use crate::mine::fingerprint_tables as fingerprints;
use crate::report::numbers::counted;
use crate::report::table::TableFormat;
use crate::rules::responses::Responses;
use crate::shell::context::Context;
use crate::shell::window;

/// Print the fingerprint of every endpoint: sizes, shapes, formats, repeats.
///
/// Made from the logs, or with --from-telemetry from what the live pipeline recorded; both give the same figures. Names of
/// MCP servers are pseudonyms unless --names is given.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Read the telemetry of the live pipeline; --input-dir then names telemetry.
    #[arg(long)]
    from_telemetry: bool,
    #[command(flatten)]
    asked: MinedArgs,
}

/// Reads, sums up, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let settings = settings(context)?;
    let window = window::of(&args.asked.window, context.now_ms)?;
    let output = args.asked.export.shared();
    let wanted = Wanted { input: &args.asked.input, window, settings: &settings, output: &output, planner: None };
    let mut responses = if args.from_telemetry {
        Responses::from_telemetry(&wanted, context)?
    } else {
        Responses::from_logs(&wanted, context)?
    };
    responses.observe(&context.pseudonyms)?;
    if responses.log.is_empty() && !args.asked.input.allow_empty {
        return Err(responses.nothing_found());
    }
    responses.tell(&output, context)?;
    if let Some(span) = responses.span_words() {
        let events = counted(responses.observed.profile.events, "event");
        context.note(output.quiet, format_args!("{span}: {events}, {}", responses.basis()))?;
    }
    let (rows, left_out) = chosen(args, &responses);
    if left_out > 0 {
        let k = args.asked.kept.k_anonymity;
        context.note(output.quiet, format_args!("{left_out} endpoints left out: fewer than {k} sessions"))?;
    }
    let fields = responses.fields(json!({
        "profile": fingerprints::profile_json(&responses.observed.profile),
        "left_out": left_out,
        "fingerprints": fingerprints::json(&rows),
    }));
    args.asked.export.send_document(context, "mine fingerprints", fields, |form, out, width| match form {
        ExportForm::Csv => fingerprints::csv(&rows).write(out, TableFormat::Csv, width),
        ExportForm::Md => fingerprints::markdown(&rows).write(out, TableFormat::Md, width),
        ExportForm::Parquet => write_endpoints(out, &rows, &responses.about()),
        _ => fingerprints::overview(&rows).write_top(out, TableFormat::Table, width, args.asked.kept.top()),
    })
}

/// The rows to show, under the names to show, and how many are left out.
fn chosen(args: &Args, responses: &Responses) -> (Vec<Fingerprint>, u64) {
    let all = &responses.observed.endpoints;
    let named = |row: &Fingerprint| {
        let live = row.key.clone().filter(|_| args.asked.export.names);
        Fingerprint { endpoint: live.unwrap_or_else(|| row.endpoint.clone()), ..row.clone() }
    };
    let mut rows: Vec<Fingerprint> = all.iter().map(named).collect();
    // Pseudonyms differ from machine to machine: the order is that of the names that are shown.
    rows.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    args.asked.kept.keep(rows, |row| row.sessions)
}
