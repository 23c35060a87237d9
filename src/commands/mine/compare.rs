//! `devboy mine compare`: two histories, two windows, or a published table side by side.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::pseudonyms::Pseudonyms;
use crate::commands::mine::edges::sums;
use crate::commands::mine::export::{ExportArgs, ExportForm, KeptArgs, Mined};
use crate::commands::mine::logs;
use crate::frames::edge::{Concurrency, Turns};
use crate::frames::input::Input;
use crate::logs::trace::ResultKind;
use crate::mine::compare::{ComparedRow, Side, SizeSide};
use crate::mine::{compare, tables as mined, tools};
use crate::report::numbers::thousands;
use crate::report::sharing::without_paths;
use crate::shell::arguments;
use crate::shell::arguments::{Exit, InputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;

/// Hold two sides against each other: which follow-ups and answer sizes changed beyond chance.
///
/// A side is a directory of logs or a log file; a window of the logs of --input-dir, written SINCE..UNTIL (`2026-09-01..2026-09-30`,
/// `60d..30d`, `30d..`); or a table of edges or volumes in the published layout (.csv). Every difference is tested with
/// Fisher's exact test (two-sided) and Benjamini–Hochberg; tables have no counts below their k.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The first side.
    a: String,
    /// The second side.
    b: String,
    /// Lags of edges.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u32).range(1..=1000))]
    lags: Vec<u32>,
    /// How calls of one message are taken. Default: message; flat if a side is a table.
    #[arg(long, value_enum)]
    concurrency: Option<Concurrency>,
    /// Only what changed beyond chance.
    #[arg(long)]
    changed: bool,
    /// Rows of the table for people. Other forms have all rows.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = arguments::rows)]
    top: u32,
    /// All rows.
    #[arg(long, conflicts_with = "top")]
    all: bool,
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
    let said = ["--since ", "--until "].iter().find_map(|flag| cause.message.strip_prefix(flag));
    let said = said.unwrap_or(&cause.message);
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

/// What can stand as a side.
const SIDES: &str =
    "a side is a folder of logs or a log file, a window as 30d..7d, or a table of edges or volumes (.csv)";

/// Reads both, compares, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let export = &args.export;
    if [&args.a, &args.b].into_iter().any(|side| side == "..") {
        return Err(Error::usage("..: a window without a beginning and an end, or the directory above?")
            .hint("write 30d.. or ..30d for a window, ../ for the directory above"));
    }
    let sides = [Named::of(&args.a, &args.input), Named::of(&args.b, &args.input)];
    let has_table = sides.iter().any(|side| matches!(side, Named::Table(_)));
    let default = if has_table { Concurrency::Flat } else { Concurrency::Message };
    let concurrency = args.concurrency.map_or(default, Into::into);
    let mut thresholds = None;
    let mut read = Vec::new();
    for side in &sides {
        read.push(match side {
            Named::Table(path) => compare::read_published(path, &args.lags)?,
            Named::Logs(input, window) => {
                window::of(window, context.now_ms).map_err(|cause| unreadable(window, &cause))?;
                let opened = logs::read(input, window, 0, export, context);
                let mut input = opened.map_err(|cause| without_logs(window, cause))?;
                input.expect_calls(&args.input)?;
                logs::tell(&input, export, (0, args.kept), context)?;
                thresholds = Some(input.data.parsed::<crate::frames::edge::EdgeThresholds>("edges.toml")?);
                of_logs(&mut input, concurrency, args, &context.pseudonyms)?
            }
        });
    }
    let thresholds = match thresholds {
        Some(thresholds) => thresholds,
        None => crate::base::data::Data::new(args.input.rules_dir.as_deref())?.parsed("edges.toml")?,
    };
    let all = compare::changes(&read[0], &read[1], &thresholds);
    if all.is_empty() && !args.input.allow_empty {
        return Err(Error::failed("the two sides have nothing in common to compare")
            .hint("a table of edges has no sizes and a table of volumes no edges"));
    }
    let shows = |row: &ComparedRow| row.changed || !args.changed;
    let (rows, left_out) = logs::keep_k(all.into_iter().filter(shows).collect(), args.kept, |row: &ComparedRow| {
        row.sessions_min.unwrap_or(u64::MAX)
    });
    if left_out > 0 && !export.quiet {
        writeln!(context.err, "# {left_out} rows left out: fewer than {} sessions", args.kept.k_anonymity)?;
    }
    let top = if args.all { usize::MAX } else { args.top as usize };
    if export.form() == ExportForm::Table && rows.len() > top && !export.quiet {
        writeln!(context.err, "# the first {top} of {} rows; --all shows all", thousands(rows.len() as u64))?;
    }
    if export.form() == ExportForm::Table && !export.quiet {
        writeln!(
            context.err,
            "# an edge: how many of the calls right after the first tool were of the second, of A n and B n; a size: the median; \
             q: chance of such a difference if nothing changed and every pair came by itself, corrected for all rows \
             (pairs of one session hang together, so that random halves of the same logs differ as well); \
             * q ≤ {} and enough observations",
            thresholds.q_max
        )?;
    }
    let side = |text: &str| if export.names { text.to_owned() } else { without_paths(text).into_owned() };
    let fields = json!({
        "a": side(&args.a),
        "b": side(&args.b),
        "concurrency": concurrency.into_str(),
        "lags": args.lags,
        "test": "Fisher's exact test, two-sided (twice the smaller tail); Benjamini-Hochberg over edges and over sizes",
        "thresholds": thresholds,
        "changed": rows.iter().filter(|row| row.changed).count(),
        "left_out": left_out,
    });
    let overview = mined::changes_overview(&rows, top);
    export.send_mined(
        context,
        Mined { overview, fields, ..Mined::listed("mine compare", "changes", mined::changes(&rows)) },
    )?;
    Ok(Exit::Done)
}

/// A side from logs.
fn of_logs(input: &mut Input, concurrency: Concurrency, args: &Args, names: &Pseudonyms) -> Result<Side> {
    let shown = |tool: &str| logs::shown(&args.export, names, tool);
    let sums = sums(input, concurrency, &args.lags, false, Turns::All)?;
    let name = |tool: crate::base::names::Sym| shown(&sums.names[tool.0 as usize]);
    let edges = sums
        .edges
        .iter()
        .filter_map(|sum| Some(((name(sum.from), name(sum.to), sum.lag?), (sum.count, Some(sum.sessions)))));
    let sessions: BTreeMap<String, u64> = sums.ends.iter().map(|end| (name(end.tool), end.sessions)).collect();
    let mut chars: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    if concurrency == Concurrency::Flat {
        let window = input.window.clone();
        let corpus = input.corpus();
        for (tool, (_, sizes)) in tools::sizes(corpus, &window) {
            chars.entry(shown(corpus.names.text(tool))).or_default().extend(sizes);
        }
    } else {
        let (history, names) = input.named_history();
        for call in history.calls.iter().filter(|call| call.ran() && call.kind != ResultKind::NonText) {
            chars.entry(shown(names.text(call.tool))).or_default().push(call.chars);
        }
    }
    let sizes = chars.into_iter().map(|(tool, mut chars)| {
        chars.sort_unstable();
        let side = SizeSide {
            n: chars.len() as u64,
            median: chars[(chars.len() - 1) / 2].into(),
            sessions: sessions.get(&tool).copied(),
            chars: Some(chars),
        };
        (tool, side)
    });
    Ok(Side { edges: edges.collect(), sizes: sizes.collect() })
}
