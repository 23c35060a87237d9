//! `devboy cost`: the bill of the logs, shared out over what caused it.

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::commands::input::{BilledLogs, QuestionArgs};
use crate::cost::attribution::Attribution;
use crate::cost::groups::{CostKey, Label};
use crate::cost::page::spent::{web_searches, web_searches_words};
use crate::cost::shown_names::ShownNames;
use crate::cost::summary::Summary;
use crate::cost::tables;
use crate::report::table::{self, TableFormat, paragraph};
use crate::shell::arguments;
use crate::shell::context::Context;

/// Rows of a table that nobody asked to be longer.
const TOP: u32 = 10;

/// Print what was spent, and on what: each request's bill shared out over the blocks of its context.
///
/// Every block has a first cost (when it came in), a carried cost (each time it was sent again) and a cost of being paid
/// for again (the cache had lost it). Rows add up to the bill, at list prices, for every key. Two keys make a cross table:
/// `--by project,model`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to share the bill out by; several keys make a cross table.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "tool", value_name = "KEY,…")]
    by: Vec<CostKey>,
    /// So many rows of a table, the most expensive first; the others are summed up in one. CSV and JSON have all rows.
    #[arg(long, value_name = "N", default_value_t = TOP, value_parser = arguments::rows)]
    top: u32,
    /// All rows.
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Letters instead of the names of projects, servers and sessions; each report gives its own.
    #[arg(long, conflicts_with = "names")]
    redact: bool,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, shares out, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let keys = keys(&args.by)?;
    let logs = BilledLogs::open(&args.asked, context)?;
    let (input, bill) = (&logs.input, logs.bill());
    let (found, summary) = input.pool.install(|| rayon::join(|| Attribution::new(&bill, &keys), || Summary::of(&bill)));
    let form = args.asked.output.form();
    let sessions = tables::sessions(&logs.workload.timeline);
    let projects =
        || found.rows.iter().flat_map(|row| &row.labels).filter_map(|label| Some(&sessions.get(label)?.project));
    let labels = || found.rows.iter().flat_map(|row| &row.labels).chain(projects());
    let is_redacted = args.redact || args.asked.output.is_shared();
    let names = ShownNames::of(labels(), is_redacted, input);
    let (short, full) = (|label: &Label| names.short(label), |label: &Label| names.full(label));
    let price = logs.workload.prices.web_search.as_ref();
    let searches = price.map(|price| web_searches(&logs.workload.timeline, price));
    input.tell(&args.asked.output, context)?;
    let top = if args.all { found.rows.len() } else { args.top as usize };
    match form {
        TableFormat::Json => {
            let own = json!({
                "by": found.keys.iter().map(|key| key.into_str()).collect::<Vec<_>>(),
                "summary": summary,
                "total": tables::json(&found.total),
                "web_searches": searches.map(|(searches, _)| searches),
                "web_searches_nano_usd": searches.map(|(_, nano_usd)| nano_usd),
                "rows": table::json(&tables::listing(&found, &full)),
            });
            input.write_json("cost", own, (&args.asked.output, is_redacted), context)?;
        }
        TableFormat::Csv => table::table(&tables::listing(&found, &full)).write(context.out, TableFormat::Csv, None)?,
        form => {
            let searches = searches
                .and_then(web_searches_words)
                .map(|words| format!("Not in the bill: {words}, billed by number."));
            for line in summary.lines().into_iter().chain(searches) {
                let width = context.width.filter(|_| form == TableFormat::Table);
                write!(context.out, "{}", paragraph("", &form.sentence(&line), width))?;
            }
            writeln!(context.out)?;
            tables::table(&found, top, &short, &sessions).write(context.out, form, context.width)?;
        }
    }
    Ok(())
}

/// The keys, each once.
fn keys(asked: &[CostKey]) -> Result<Vec<CostKey>> {
    let mut keys: Vec<CostKey> = Vec::new();
    for &key in asked {
        if keys.contains(&key) {
            return Err(Error::usage(format!("--by names {} twice", key.into_str())).hint("name each key once"));
        }
        keys.push(key);
    }
    Ok(keys)
}
