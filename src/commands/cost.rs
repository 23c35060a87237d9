//! `devboy cost`: the bill of the logs, shared out over what caused it.

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::commands::input::Input;
use crate::commands::shown_names::ShownNames;
use crate::cost::attribution::Attribution;
use crate::cost::bill::Bill;
use crate::cost::groups::{By, Label};
use crate::cost::tables;
use crate::mine::in_progress::Holds;
use crate::mine::quality;
use crate::report::table::Format;
use crate::report::{envelope, listing};
use crate::shell::arguments::{Exit, InputArgs, OutputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::chosen::Sheets;
use crate::whatif::simulation::{Simulation, oracle};

/// Rows of a table that nobody asked to be longer.
const TOP: usize = 10;

/// Print what was spent, and on what: each request's bill shared out over the blocks of its context.
///
/// Every block has a first cost (when it came in), a carried cost (each time it was sent again) and a cost of being paid
/// for again (the cache had lost it). Rows add up to the bill, at list prices, for every key. Two keys make a cross table:
/// `--by project,model`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// What to share the bill out by; several keys make a cross table.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "tool", value_name = "KEY,…")]
    by: Vec<By>,
    /// So many rows, the most expensive first; the others are summed up in one row. Tables have 10, CSV and JSON all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// All rows.
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Letters instead of the names of projects, servers and sessions.
    #[arg(long, conflicts_with = "names")]
    redact: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Reads, shares out, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let keys = keys(&args.by)?;
    let window = window::of(&args.window, context.now_ms)?;
    let mut input = Input::read_for_timeline(&args.input, window, 0, &args.output, context)?;
    input.expect_records(&args.input)?;
    input.report_holds(Holds::FirstChunks)?;
    let timeline = input.timeline(false)?;
    if timeline.requests.is_empty() && !args.input.allow_empty {
        return Err(input.nothing_in_window("requests to a model"));
    }
    let cache = oracle(&Sheets::load(&input.data)?)?;
    let world = Simulation::new(timeline, None, &input.data, false, true)?;
    let bill = Bill::new(&world, cache.cache.class_unknown);
    let found = input.pool.install(|| Attribution::new(&bill, &keys));
    let form = args.output.form();
    let labels = || found.rows.iter().flat_map(|row| &row.labels);
    let is_redacted = args.redact || (form == Format::Md && !args.output.names);
    let names = if is_redacted { ShownNames::letters(labels()) } else { ShownNames::real(labels(), &input) };
    let (short, full) = (|label: &Label| names.short(label), |label: &Label| names.full(label));
    input.tell(&args.output, context)?;
    let top = args.top.map_or(TOP, |top| top as usize);
    let top = if args.all { found.rows.len() } else { top };
    match form {
        Format::Json => {
            let fields = json!({
                "window": input.window_json(),
                "inputs": input.json(),
                "data_quality": quality::json(&quality::of(&input.sources)),
                "by": found.keys.iter().map(|key| key.name()).collect::<Vec<_>>(),
                "bill": bill.total(),
                "total": tables::json(&found.total),
                "rows": listing::json(&tables::listing(&found, &full)),
            });
            let document = envelope::envelope("cost", args.output.stamp(context), fields);
            envelope::write(context.out, &document)?;
        }
        Format::Csv => listing::table(&tables::listing(&found, &full)).write(context.out, Format::Csv, None)?,
        form => tables::table(&found, top, &short).write(context.out, form, context.width)?,
    }
    Ok(Exit::Done)
}

/// The keys, each once.
fn keys(asked: &[By]) -> Result<Vec<By>> {
    let mut keys: Vec<By> = Vec::new();
    for &key in asked {
        if keys.contains(&key) {
            return Err(Error::usage(format!("--by names {} twice", key.name())).hint("name each key once"));
        }
        keys.push(key);
    }
    Ok(keys)
}
