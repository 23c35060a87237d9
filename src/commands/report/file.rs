//! Writes the page to a file for a browser.

use std::path::Path;

use crate::base::error::Result;
use crate::commands::input::Input;
use crate::commands::mine::edges;
use crate::cost::page::html::{FollowUp, html};
use crate::cost::page::words::Telling;
use crate::frames::edge::{Concurrency, EdgeThresholds, Turns};
use crate::mine::edges as mined;
use crate::settings::write_private;
use crate::shell::context::Context;

/// Writes it, for the user alone to read until they send it.
///
/// # Errors
/// If the file cannot be written.
pub fn write(
    path: &Path,
    telling: &Telling<'_>,
    input: &mut Input,
    is_shared: bool,
    context: &Context<'_>,
) -> Result<()> {
    let shown = |tool: &str| if is_shared { context.pseudonyms.tool(tool) } else { tool.to_owned() };
    let follow_ups = follow_ups(input, telling.sheet.follow_ups_drawn, &shown)?;
    write_private(path, &html(telling, &[], &follow_ups))
}

/// What the next step does after a tool, where that is more than chance; the most frequent first.
fn follow_ups(input: &mut Input, most: usize, shown: &dyn Fn(&str) -> String) -> Result<Vec<FollowUp>> {
    let sums = edges::sums(input, Concurrency::Message, &[1], false, Turns::All)?;
    let thresholds = input.data.parsed::<EdgeThresholds>("edges.toml")?;
    let mut edges = mined::edges(&sums, &thresholds);
    edges.retain(|edge| edge.significant);
    edges.sort_by(|a, b| b.sum.count.cmp(&a.sum.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    edges.truncate(most);
    let one = |edge: &crate::frames::edge::Edge| FollowUp {
        from: shown(&edge.from),
        to: shown(&edge.to),
        count: edge.sum.count,
        percent: 100.0 * edge.confidence.value(),
    };
    Ok(edges.iter().map(one).collect())
}
