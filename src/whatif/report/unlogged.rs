//! The table of what is in no log.

use crate::report::numbers::thousands;
use crate::report::table::Table;
use crate::whatif::sim::unlogged::Unlogged;

/// Its title.
pub const TITLE: &str = "not in the log, estimated, and in no figure above";

/// Calls, tokens and cost by kind; nothing where there is nothing.
pub fn table(found: &Unlogged) -> Table {
    let mut table = Table::new(&["what", "#calls", "#read", "#written", "#answered", "#input-equivalent", "#dollars"]);
    let kinds = [
        ("forks that cached an answer", found.forks),
        ("summarisers", found.summaries),
        ("answers, beyond their usage", found.answers),
    ];
    for (kind, sum) in kinds.into_iter().filter(|(_, sum)| sum.cost.units > 0) {
        let spent = sum.spent;
        let dollars = sum.cost.usd().map_or_else(|| "–".to_owned(), |usd| format!("{usd:.2}"));
        let figures = [sum.calls, spent.read, spent.write(), spent.output, sum.cost.iet().round() as u64];
        table.row(std::iter::once(kind.to_owned()).chain(figures.map(thousands)).chain([dollars]));
    }
    table
}
