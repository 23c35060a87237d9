//! `devboy mine edges`: which tool follows which, how surely, and how soon.

use std::path::PathBuf;

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::commands::mine::export::{CsvLayout, ExportForm, Mined, MinedArgs};
use crate::commands::mine::logs;
use crate::frames::edge::{Concurrency, Edge, EdgeSums, EdgeThresholds, EndSum, Turns};
use crate::logs::overview::Holds;
use crate::mine::{edge_graph, edge_page, edges, tables as mined};
use crate::report::numbers::{counted, thousands};
use crate::report::table;
use crate::report::table::Table;
use crate::settings::write_output;
use crate::shell::arguments;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Print which tool follows which: counts, intervals, lift, dependency, significance, time between.
///
/// Pairs are counted within a context (a chain between compactions). Names of MCP servers are pseudonyms unless --names
/// is given. With --format dot or mermaid the edges are drawn.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// How many messages (with --concurrency flat: calls) later.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 3], value_parser = clap::value_parser!(u32).range(1..=1000))]
    lags: Vec<u32>,
    /// Also count what follows at any time in the context.
    #[arg(long)]
    eventually: bool,
    /// How calls of one message are taken. Default: message; with --layout published flat.
    #[arg(long, value_enum)]
    concurrency: Option<Concurrency>,
    /// Which pairs count with regard to prompts between them.
    #[arg(long, value_enum, default_value = "all", conflicts_with = "eventually")]
    turns: Turns,
    /// Only edges that are more than chance.
    #[arg(long)]
    significant: bool,
    /// Only edges with at least this many pairs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_count: u64,
    /// Print with which tools contexts begin and end instead.
    #[arg(long)]
    ends: bool,
    /// Rows of the table for people. Other forms have all rows.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = arguments::rows)]
    top: u32,
    /// All rows.
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Draw the edges that are more than chance into a file for a browser as well: one file, without scripts, that fetches
    /// nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "ends")]
    html: Option<PathBuf>,
    /// Columns of the CSV.
    #[arg(long, value_enum, default_value_t)]
    layout: CsvLayout,
    #[command(flatten)]
    asked: MinedArgs,
}

impl Args {
    fn concurrency(&self) -> Concurrency {
        let default = if self.layout == CsvLayout::Published { Concurrency::Flat } else { Concurrency::Message };
        self.concurrency.map_or(default, Into::into)
    }

    fn shows(&self, edge: &Edge) -> bool {
        edge.sum.count >= self.min_count && (edge.significant || !self.significant)
    }

    fn rows_max(&self) -> usize {
        if self.all { usize::MAX } else { self.top as usize }
    }

    /// Says how many of so many rows are shown.
    fn tell_top(&self, rows: usize, context: &mut Context<'_>) -> Result<()> {
        if self.asked.export.in_layout(self.layout)?.form() == ExportForm::Table && rows > self.rows_max() {
            let what = if self.ends { "tools" } else { "edges" };
            writeln!(context.err, "# the first {} of {} {what}; --all shows all", self.top, thousands(rows as u64))?;
        }
        Ok(())
    }

    /// Says what the columns and a mark behind an edge mean.
    fn tell(&self, thresholds: &EdgeThresholds, context: &mut Context<'_>) -> Result<()> {
        writeln!(
            context.err,
            "# lag: steps from one call to the next; lift: times more often than by chance; dep.: 1 always in this order, −1 \
             always the other way; gap: median time between; q: chance of it in another order, corrected for all edges"
        )?;
        let EdgeThresholds { q_max, count_min, sessions_min } = thresholds;
        let whole = if self.concurrency() == Concurrency::Flat { "file" } else { "context" };
        writeln!(
            context.err,
            "# * more often than in another order of the messages of each {whole} (q ≤ {q_max} over all edges, {count_min} \
             pairs, {sessions_min} sessions)"
        )?;
        Ok(())
    }
}

/// Reads, counts, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let export = args.asked.export.in_layout(args.layout)?;
    if args.ends && args.layout == CsvLayout::Published {
        return Err(Error::usage("the published layout is of edges, --ends says nothing about it")
            .hint("leave out --layout or --ends"));
    }
    let mut input = logs::read(&args.asked.input, &args.asked.window, 0, &export, context)?;
    let mut lags = args.lags.clone();
    lags.sort_unstable();
    lags.dedup();
    if args.concurrency() == Concurrency::Flat {
        input.report_holds(Holds::Nothing)?;
    }
    let sums = edges::sums_of(&mut input, args.concurrency(), &lags, args.eventually, args.turns)?;
    if sums.ends.is_empty() && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("tool calls"));
    }
    let thresholds = input.data.parsed::<EdgeThresholds>("edges.toml")?;
    let shown = |name: &str| logs::shown(&export, &context.pseudonyms, name);
    // What is left out is tested all the same: the rate of false discoveries is that of all edges.
    let all = edges::edges(&sums, &thresholds).into_iter().filter(|edge| args.shows(edge));
    let named = all.map(|edge| Edge { from: shown(&edge.from), to: shown(&edge.to), ..edge });
    let (rows, edges_out) = logs::keep_k(named.collect(), args.asked.kept, |edge: &Edge| edge.sum.sessions);
    let named = sums.ends.iter().map(|end| (shown(&sums.names[end.tool.0 as usize]), *end));
    let (ends, ends_out) = logs::keep_k(by_calls(named.collect()), args.asked.kept, |(_, end)| end.sessions);
    let left_out = if args.ends { ends_out } else { edges_out };
    logs::tell(&input, &export, (left_out, args.asked.kept), context)?;
    if !export.quiet {
        args.tell_top(if args.ends { ends.len() } else { rows.len() }, context)?;
    }
    if !args.ends && !export.quiet {
        args.tell(&thresholds, context)?;
    }
    let ends_overview = table::table(&mined::ends(&ends[..ends.len().min(args.rows_max())]));
    let (mut fields, ends) = (logs::fields(&input, left_out), mined::ends(&ends));
    fields["concurrency"] = json!(args.concurrency().into_str());
    fields["lags"] = json!(lags);
    fields["turns"] = json!(args.turns.into_str());
    fields["cases"] = json!(sums.cases);
    fields["sessions"] = json!(sums.sessions);
    fields["thresholds"] = json!(thresholds);
    if !args.ends {
        fields["ends"] = table::json(&ends);
    }
    if let Some(path) = &args.html {
        write_output(path, edge_page::page(&rows, &words_about(args, &sums, &thresholds)))?;
    }
    let all: Vec<&Edge> = rows.iter().collect();
    let draw =
        |form: ExportForm| if form == ExportForm::Dot { edge_graph::dot(&all) } else { edge_graph::mermaid(&all) };
    let about =
        vec![("concurrency", args.concurrency().into_str().to_owned()), ("turns", args.turns.into_str().to_owned())];
    let of_edges =
        if args.layout == CsvLayout::Published { mined::edges_published(&rows) } else { mined::edges(&rows) };
    let overview: Table = if args.ends { ends_overview } else { mined::edges_overview(&rows, args.rows_max()) };
    export.send_mined(
        context,
        Mined {
            command: "mine edges",
            rows: if args.ends { "ends" } else { "edges" },
            listing: if args.ends { ends } else { of_edges },
            overview,
            fields,
            graph: if args.ends { None } else { Some(&draw) },
            about,
        },
    )?;
    Ok(Exit::Done)
}

/// How the edges of a page were counted.
fn words_about(args: &Args, sums: &EdgeSums, thresholds: &EdgeThresholds) -> Vec<String> {
    let EdgeThresholds { q_max, count_min, sessions_min } = thresholds;
    let (cases, sessions) = (counted(sums.cases, "context"), counted(sums.sessions, "session"));
    let how = match args.concurrency() {
        Concurrency::Message => "calls of one message are concurrent, a context ends where it was compacted",
        Concurrency::Flat => "calls are one sequence, file by file",
    };
    vec![
        format!("Counted in {cases} of {sessions}; {how}."),
        format!(
            "More than chance: more often than in another order of the messages (q ≤ {q_max} over all edges, {count_min} pairs, \
             {sessions_min} sessions). Lift: times as often as the tool comes anywhere."
        ),
    ]
}

fn by_calls(mut ends: Vec<(String, EndSum)>) -> Vec<(String, EndSum)> {
    ends.sort_by(|(a, x), (b, y)| y.calls.cmp(&x.calls).then_with(|| a.cmp(b)));
    ends
}
