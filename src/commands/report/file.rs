//! Writes the page to a file for a browser.

use std::path::Path;

use crate::base::error::Result;
use crate::commands::input::Input;
use crate::commands::mine::edges;
use crate::commands::report::show::tool_label;
use crate::cost::findings::sheet::Sheet;
use crate::cost::groups::Label;
use crate::cost::page::Page;
use crate::cost::page::html::html;
use crate::cost::page::plots::ToolCost;
use crate::cost::page::words::Telling;
use crate::frames::edge::{Concurrency, Edge, EdgeThresholds, Turns};
use crate::mine::edge_page::FollowUp;
use crate::mine::edges as mined;
use crate::settings::write_private;

/// Writes it, for the user alone to read until they send it. `shown` names a tool.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, telling: &Telling<'_>, follow_ups: &[Edge], shown: &dyn Fn(&str) -> String) -> Result<()> {
    let costs = telling.page.plots.tools.iter().map(|cost| ToolCost { tool: shown(&cost.tool), ..cost.clone() });
    let follow_ups = follow_ups.iter().map(|edge| FollowUp {
        from: shown(&edge.from),
        to: shown(&edge.to),
        count: edge.sum.count,
        percent: 100.0 * edge.confidence.value(),
    });
    write_private(path, &html(telling, &costs.collect::<Vec<_>>(), &follow_ups.collect::<Vec<_>>()))
}

/// The tools that the file names, those that cost most first.
pub fn tools(page: &Page, follow_ups: &[Edge]) -> Vec<Label> {
    let costs = page.plots.tools.iter().map(|cost| &cost.tool);
    costs.chain(follow_ups.iter().flat_map(|edge| [&edge.from, &edge.to])).map(|tool| tool_label(tool)).collect()
}

/// What the next step does after a tool, where that is more than chance; the most frequent first.
///
/// # Errors
/// If a data file does not fit.
pub fn follow_ups(input: &mut Input, sheet: &Sheet) -> Result<Vec<Edge>> {
    let sums = edges::sums(input, Concurrency::Message, &[1], false, Turns::All)?;
    let thresholds = input.data.parsed::<EdgeThresholds>("edges.toml")?;
    let mut edges = mined::edges(&sums, &thresholds);
    edges.retain(|edge| edge.significant);
    edges.sort_by(|a, b| b.sum.count.cmp(&a.sum.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    edges.truncate(sheet.follow_ups_drawn);
    Ok(edges)
}
