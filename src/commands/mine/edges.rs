//! `devboy mine edges`: which tool follows which, how surely, and how soon.

use std::path::PathBuf;

use clap::builder::EnumValueParser;
use serde_json::json;

use crate::base::error::{Error, Result};
use crate::commands::mine::export::{CsvLayout, ExportArgs, ExportForm, Mined, MinedArgs};
use crate::frames::edge::{Concurrency, Edge, EdgeSums, EdgeThresholds, EndSum, Turns};
use crate::frames::input::Input;
use crate::logs::overview::Holds;
use crate::mine::{edge_graph, edges, tables as mined};
use crate::report::numbers::{counted, percent, thousands};
use crate::report::share::interval_95;
use crate::report::table;
use crate::settings::expect_place;
use crate::shell::context::Context;

/// Print which tool follows which: counts, intervals, lift, dependency, significance, time between.
///
/// Pairs are counted within a context (a chain between compactions). Names of MCP servers are pseudonyms unless --names
/// is given. With --format dot or mermaid the edges are drawn.
#[derive(clap::Args, Debug)]
#[command(mut_arg("format", |format| format.value_parser(EnumValueParser::<ExportForm>::new())))]
pub struct Args {
    /// How many messages (with --concurrency flat: calls) later; a comma list.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 3], value_parser = clap::value_parser!(u32).range(1..=1000))]
    lags: Vec<u32>,
    /// Also count what follows at any time in the context.
    #[arg(long, conflicts_with = "ends")]
    eventually: bool,
    /// How calls of one message are taken. Default: message; with --layout published flat.
    #[arg(long, value_enum)]
    concurrency: Option<Concurrency>,
    /// Which pairs count with regard to prompts between them.
    #[arg(long, value_enum, default_value = "all", conflicts_with = "eventually")]
    turns: Turns,
    /// Only edges that are more than chance.
    #[arg(long, conflicts_with = "ends")]
    significant: bool,
    /// Only edges with at least this many pairs.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "ends")]
    min_count: u64,
    /// Print with which tools contexts begin and end instead.
    #[arg(long, conflicts_with_all = ["lags", "turns"])]
    ends: bool,
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

    /// Whether it is known between which calls a person wrote: `flat` knows no turns.
    fn has_turns(&self) -> bool {
        self.concurrency() == Concurrency::Message
    }

    fn shows(&self, edge: &Edge) -> bool {
        edge.sum.count >= self.min_count && (edge.significant || !self.significant)
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
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let export = args.asked.export.in_layout(args.layout)?;
    if args.ends && args.layout == CsvLayout::Published {
        return Err(Error::usage("the published layout is of edges, --ends says nothing about it")
            .hint("leave out --layout or --ends"));
    }
    if args.ends && matches!(export.form(), ExportForm::Dot | ExportForm::Mermaid) {
        return Err(Error::usage("a drawing is of edges, --ends says nothing about it")
            .hint("leave out --ends, or take another --format"));
    }
    if args.turns != Turns::All && !args.has_turns() {
        return Err(Error::usage("--concurrency flat knows no turns: --turns says nothing about it")
            .hint("leave out --turns, or count by message"));
    }
    args.html.as_deref().map_or(Ok(()), expect_place)?;
    let mut input = args.asked.read_more(asked_by(args.concurrency()), context)?;
    if args.concurrency() == Concurrency::Flat {
        input.report_holds(Holds::Nothing)?;
    }
    let shown = |name: &str| export.shown(&context.pseudonyms, name);
    let counted = CountedEdges::of(args, &mut input, &shown)?;
    export.tell(&input, (counted.left_out, args.asked.kept), context)?;
    if !args.ends && !export.quiet && args.layout == CsvLayout::All {
        args.tell(&counted.thresholds, context)?;
    }
    if let Some(path) = &args.html {
        let page = edge_graph::page(&counted.edges, counted.found, &counted.words(args));
        context.write_file(path, page, export.quiet)?;
    }
    counted.send(args, &export, &input, context)
}

/// What was counted, as far as it is shown.
struct CountedEdges {
    lags: Vec<u32>,
    sums: EdgeSums,
    thresholds: EdgeThresholds,
    edges: Vec<Edge>,
    /// How many edges are more than chance, and how many there are, shown or not.
    found: (u64, u64),
    ends: Vec<(String, EndSum)>,
    /// Rows of too few sessions.
    left_out: u64,
}

impl CountedEdges {
    fn of(args: &Args, input: &mut Input, shown: &dyn Fn(&str) -> String) -> Result<Self> {
        let mut lags = args.lags.clone();
        lags.sort_unstable();
        lags.dedup();
        let sums = edges::sums_of(input, args.concurrency(), &lags, args.eventually, args.turns)?;
        if sums.ends.is_empty() && !args.asked.input.allow_empty {
            return Err(input.nothing_in_window("tool calls"));
        }
        let thresholds = input.data.parsed::<EdgeThresholds>("edges.toml")?;
        // What is left out is tested all the same: the rate of false discoveries is that of all edges.
        let all = edges::edges(&sums, &thresholds);
        let found = (all.iter().filter(|edge| edge.significant).count() as u64, all.len() as u64);
        let named = all.into_iter().filter(|edge| args.shows(edge));
        let named = named.map(|edge| Edge { from: shown(&edge.from), to: shown(&edge.to), ..edge });
        let (edges, edges_out) = args.asked.kept.keep(named, |edge| edge.sum.sessions);
        let named = sums.ends.iter().map(|end| (shown(&sums.names[end.tool.0 as usize]), *end));
        let (ends, ends_out) = args.asked.kept.keep(by_calls(named.collect()), |(_, end)| end.sessions);
        let left_out = if args.ends { ends_out } else { edges_out };
        Ok(Self { lags, sums, thresholds, edges, found, ends, left_out })
    }

    /// Sends the edges, or with which tools contexts begin and end.
    fn send(&self, args: &Args, export: &ExportArgs, input: &Input, context: &mut Context<'_>) -> Result<()> {
        let (concurrency, turns) = (args.concurrency().into_str(), args.turns.into_str());
        let mut fields = input.fields(json!({ "left_out": self.left_out }));
        fields["concurrency"] = json!(concurrency);
        fields["lags"] = json!(self.lags);
        fields["turns"] = json!(turns);
        fields["cases"] = json!(self.sums.cases);
        fields["sessions"] = json!(self.sums.sessions);
        fields["thresholds"] = json!(self.thresholds);
        let ends = mined::ends(&self.ends);
        let about = vec![("concurrency", concurrency.to_owned()), ("turns", turns.to_owned())];
        let (command, top) = ("mine edges", args.asked.kept.top());
        if args.ends {
            let rows = Mined { top, fields, about, ..Mined::listed(command, "ends", ends) };
            return export.send_mined(context, rows);
        }
        fields["ends"] = table::json(&ends);
        let all: Vec<&Edge> = self.edges.iter().collect();
        let draw =
            |form: ExportForm| if form == ExportForm::Dot { edge_graph::dot(&all) } else { edge_graph::mermaid(&all) };
        let is_published = args.layout == CsvLayout::Published;
        let listing = if is_published {
            mined::edges_published(&self.edges)
        } else {
            mined::edges(&self.edges, args.has_turns())
        };
        let overview = mined::edges_overview(&self.edges);
        let answer = self.answer();
        let rows = Mined { command, rows: "edges", listing, answer, overview, top, fields, graph: Some(&draw), about };
        export.send_mined(context, rows)
    }

    /// How much follows more than by chance, and what most surely.
    fn answer(&self) -> String {
        let (found, all) = self.found;
        let count = format!("{} of {} come more often than by chance (*)", thousands(found), counted(all, "edge"));
        let surer =
            |a: &&Edge, b: &&Edge| a.confidence.lower.total_cmp(&b.confidence.lower).then_with(|| b.to.cmp(&a.to));
        let next = self.edges.iter().filter(|edge| edge.sum.lag == Some(1) && edge.from != edge.to);
        let surest = next.filter(|edge| edge.significant).max_by(surer);
        surest.map_or_else(
            || format!("{count}."),
            |Edge { from, to, confidence, .. }| {
                let share = percent(confidence.value());
                let (of, interval) = (thousands(confidence.n), interval_95(*confidence));
                format!("{count}; most surely {to} comes right after {from}: {share} of {of} times ({interval}).")
            },
        )
    }

    /// How the edges of a page were counted.
    fn words(&self, args: &Args) -> Vec<String> {
        let EdgeThresholds { q_max, count_min, sessions_min } = &self.thresholds;
        let (cases, sessions) = (counted(self.sums.cases, "context"), counted(self.sums.sessions, "session"));
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
}

/// What is asked for behind the history: files are looked at as they are.
pub fn asked_by(concurrency: Concurrency) -> fn(&mut Input) {
    match concurrency {
        Concurrency::Message => Input::sum_messages,
        Concurrency::Flat => Input::keep_calls,
    }
}

fn by_calls(mut ends: Vec<(String, EndSum)>) -> Vec<(String, EndSum)> {
    ends.sort_by(|(a, x), (b, y)| y.calls.cmp(&x.calls).then_with(|| a.cmp(b)));
    ends
}
