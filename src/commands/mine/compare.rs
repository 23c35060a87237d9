//! `devboy mine compare`: two histories, two windows, or a published table side by side.

use std::path::Path;

use serde_json::{Value, json};

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::commands::mine::edges::asked_by;
use crate::commands::mine::export::{ExportArgs, ExportForm, KeptArgs, Mined};
use crate::frames::edge::{Concurrency, EdgeThresholds};
use crate::mine::compare::{ComparedRow, Side};
use crate::mine::{compare, tables as mined};
use crate::report::numbers::{counted, thousands};
use crate::report::sharing::PATH;
use crate::shell::arguments::{InputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;

/// Hold two sides against each other: which follow-ups and sizes of results changed beyond chance.
///
/// A side is a directory of logs or a log file; a window of the logs of --input-dir, written SINCE..UNTIL (`2026-09-01..2026-09-30`,
/// `60d..30d`, `30d..`); or a table of edges or volumes in the published layout (.csv). Every difference is tested over sessions,
/// of which either side needs two; with a table, whose sessions nobody knows, by Fisher's exact test. Benjamini–Hochberg corrects
/// for the number of tests. Tables have no counts below their k.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The first side.
    a: String,
    /// The second side.
    b: String,
    /// Lags of edges; a comma list.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u32).range(1..=1000))]
    lags: Vec<u32>,
    /// How calls of one message are taken. Default: message; flat if a side is a table.
    #[arg(long, value_enum)]
    concurrency: Option<Concurrency>,
    /// Only what changed beyond chance.
    #[arg(long)]
    changed: bool,
    #[command(flatten)]
    export: ExportArgs,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// What a side is.
enum Named<'a> {
    Table(&'a Path),
    Logs(InputArgs, WindowArgs),
}

impl<'a> Named<'a> {
    fn of(text: &'a str, args: &InputArgs) -> Self {
        let path = Path::new(text);
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) {
            return Self::Table(path);
        }
        // "../logs" is a path, "30d..7d" is none.
        match text.split_once("..").filter(|_| !path.exists() && !text.contains(['/', '\\'])) {
            Some((since, until)) => {
                let bound = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                let window = WindowArgs { since: bound(since), until: bound(until), days: None };
                Self::Logs(args.clone(), window)
            }
            None => Self::Logs(InputArgs { input_dir: vec![path.into()], ..args.clone() }, WindowArgs::default()),
        }
    }
}

/// A side that is no window, under its own name: its bounds were given by no flag.
fn unreadable(window: &WindowArgs, cause: &Error) -> Error {
    let bound = |bound: &Option<String>| bound.clone().unwrap_or_default();
    let said = cause.message.replace("--since ", "").replace("--until ", "");
    Error::usage(format!("{}..{} is no window of time: {said}", bound(&window.since), bound(&window.until))).hint(
        "write it as 30d..7d or 2026-01-01..2026-01-31; a path or a table of edges (.csv) can stand there as well",
    )
}

/// A side that is a path without logs, in words of its own: no flag named it.
fn without_logs(window: &WindowArgs, cause: Error) -> Error {
    let is_path = window.since.is_none() && window.until.is_none();
    let Some(hint) = cause.hint.as_deref().filter(|_| is_path) else { return cause };
    let looked =
        hint.lines().filter(|line| line.starts_with("looked at ")).map(|line| line.replace(" (--input-dir)", ""));
    let looked: Vec<String> = looked.chain([SIDES.to_owned()]).collect();
    Error::failed(cause.message).hint(looked.join("\n"))
}

/// A side without calls: no flag gave its window.
fn without_calls(cause: Error) -> Error {
    let hint = cause.hint.map(|hint| hint.replace(window::WIDEN, "widen that side, or pass --allow-empty"));
    Error { hint, ..cause }
}

/// What can stand as a side.
const SIDES: &str =
    "a side is a folder of logs or a log file, a window as 30d..7d, or a table of edges or volumes (.csv)";

/// Reads both, compares, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    if [&args.a, &args.b].into_iter().any(|side| side == "..") {
        return Err(Error::usage("..: a window without a beginning and an end, or the directory above?")
            .hint("write 30d.. or ..30d for a window, ../ for the directory above"));
    }
    let sides = [Named::of(&args.a, &args.input), Named::of(&args.b, &args.input)];
    let has_table = sides.iter().any(|side| matches!(side, Named::Table(_)));
    let default = if has_table { Concurrency::Flat } else { Concurrency::Message };
    let concurrency = args.concurrency.map_or(default, Into::into);
    let [a, b] = &sides;
    let (a, b) = (read(a, args, concurrency, context)?, read(b, args, concurrency, context)?);
    let thresholds = Data::new(args.input.rules_dir.as_deref())?.parsed::<EdgeThresholds>("edges.toml")?;
    let all = compare::changes(&a, &b, &thresholds);
    if all.is_empty() && !args.input.allow_empty {
        return Err(Error::failed("the two sides have nothing in common to compare")
            .hint("a table of edges has no sizes and a table of volumes no edges"));
    }
    let changed = all.iter().filter(|row| row.changed).count() as u64;
    let answer = format!("{} of {} changed.", thousands(changed), counted(all.len() as u64, "row"));
    let shows = |row: &ComparedRow| row.changed || !args.changed;
    let (rows, left_out) = args.kept.keep(all.into_iter().filter(shows), |row| row.sessions_min.unwrap_or(u64::MAX));
    if !args.export.quiet {
        tell(args, left_out, thresholds.q_max, context)?;
    }
    let fields = fields(args, concurrency, &thresholds, (&rows, left_out));
    let (overview, top) = (mined::changes_overview(&rows), args.kept.top());
    let rows =
        Mined { overview, top, fields, answer, ..Mined::listed("mine compare", "changes", mined::changes(&rows)) };
    args.export.send_mined(context, rows)
}

fn read(side: &Named<'_>, args: &Args, concurrency: Concurrency, context: &mut Context<'_>) -> Result<Side> {
    let (input, window) = match side {
        Named::Table(path) => return compare::read_published(path, &args.lags),
        Named::Logs(input, window) => (input, window),
    };
    window::of(window, context.now_ms).map_err(|cause| unreadable(window, &cause))?;
    let opened = args.export.read((input, window), (0, None), asked_by(concurrency), context);
    let mut input = opened.map_err(|cause| without_logs(window, cause))?;
    input.expect_calls(&args.input).map_err(without_calls)?;
    args.export.tell(&input, (0, args.kept), context)?;
    Side::of_logs(&mut input, concurrency, &args.lags, &|tool| args.export.shown(&context.pseudonyms, tool))
}

/// Says what is left out, and what the columns mean.
fn tell(args: &Args, left_out: u64, q_max: f64, context: &mut Context<'_>) -> Result<()> {
    if left_out > 0 {
        writeln!(context.err, "# {left_out} rows left out: fewer than {} sessions", args.kept.k_anonymity)?;
    }
    if args.export.form() != ExportForm::Table {
        return Ok(());
    }
    writeln!(
        context.err,
        "# an edge: how many of the calls right after the first tool were of the second, of A n and B n; a size: the median; \
         q: chance of such a difference if nothing changed, over sessions (with a table: as if every pair came by itself, which \
         finds changes where there are none), corrected for all rows; – where a side has one session; \
         * q ≤ {q_max} and enough observations",
    )?;
    Ok(())
}

fn fields(
    args: &Args,
    concurrency: Concurrency,
    thresholds: &EdgeThresholds,
    (rows, left_out): (&[ComparedRow], u64),
) -> Value {
    let side = |text: &str| match Named::of(text, &args.input) {
        Named::Table(_) | Named::Logs(_, WindowArgs { since: None, until: None, .. }) if !args.export.names => {
            PATH.to_owned()
        }
        _ => text.to_owned(),
    };
    json!({
        "a": side(&args.a),
        "b": side(&args.b),
        "concurrency": concurrency.into_str(),
        "lags": args.lags,
        "test": "Student's t over sessions, with a table Fisher's exact test, two-sided; Benjamini-Hochberg over edges and over sizes",
        "thresholds": thresholds,
        "changed": rows.iter().filter(|row| row.changed).count(),
        "left_out": left_out,
    })
}
