//! Writes the page to a file for a browser.

use std::path::Path;

use crate::base::error::{Error, Result};
use crate::commands::report::Args;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::page::Page;
use crate::cost::page::html::html;
use crate::cost::page::plots::ToolCost;
use crate::cost::page::words::Telling;
use crate::frames::edge::{Concurrency, Edge, EdgeThresholds, Turns};
use crate::frames::input::Input;
use crate::mine::edges;
use crate::report::table::TableFormat;
use crate::settings::expect_place;
use crate::shell::context::Context;

/// Where the page goes.
pub enum PageTarget<'p> {
    Stdout,
    /// Into a file.
    File(&'p Path),
}

impl<'p> PageTarget<'p> {
    /// The place asked for, before any work is done. An error if no file can be there, or two things would go to
    /// stdout.
    pub fn of(path: &'p Path, args: &Args) -> Result<Self> {
        if path == Path::new("-") {
            if args.asked.output.form() == TableFormat::Table {
                return Ok(Self::Stdout);
            }
            return Err(
                Error::usage("--html - and another form would both go to stdout").hint("name a file: --html page.html")
            );
        }
        expect_place(path)?;
        Ok(Self::File(path))
    }

    /// Writes it, for the user alone to read until they send it. Whether that was all that stdout is to have.
    pub fn write(&self, text: &str, is_quiet: bool, context: &mut Context<'_>) -> Result<bool> {
        match self {
            Self::Stdout => context.out.write_all(text.as_bytes())?,
            Self::File(path) => context.write_file(path, text, is_quiet)?,
        }
        Ok(matches!(self, Self::Stdout))
    }
}

/// The page as a file, if it was made to be drawn.
pub fn text(telling: &Telling<'_>, follow_ups: &[Edge]) -> Option<String> {
    let shown = |tool: &str| telling.names.own("tool", tool);
    let plots = telling.page.plots.as_ref()?;
    let costs = plots.tools.iter().map(|cost| ToolCost { tool: shown(&cost.tool), ..cost.clone() });
    let follow_ups =
        follow_ups.iter().map(|edge| Edge { from: shown(&edge.from), to: shown(&edge.to), ..edge.clone() });
    Some(html(telling, plots, &costs.collect::<Vec<_>>(), &follow_ups.collect::<Vec<_>>()))
}

/// The tools that the file names, those that cost most first.
pub fn tools(page: &Page, follow_ups: &[Edge]) -> Vec<String> {
    let costs = page.plots.iter().flat_map(|plots| &plots.tools).map(|cost| &cost.tool);
    costs.chain(follow_ups.iter().flat_map(|edge| [&edge.from, &edge.to])).cloned().collect()
}

/// What the next step does after a tool, where that is more than chance; the most frequent first.
pub fn follow_ups(input: &mut Input, sheet: &FindingThresholds) -> Result<Vec<Edge>> {
    let sums = edges::sums_of(input, Concurrency::Message, &[1], false, Turns::All)?;
    let thresholds = input.data.parsed::<EdgeThresholds>("edges.toml")?;
    let mut edges = edges::edges(&sums, &thresholds);
    edges.retain(|edge| edge.significant);
    edges.sort_by(|a, b| b.sum.count.cmp(&a.sum.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    edges.truncate(sheet.follow_ups_drawn);
    Ok(edges)
}
