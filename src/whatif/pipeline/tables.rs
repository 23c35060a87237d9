//! The report of the pipeline as a policy.

use std::cmp::Reverse;

use crate::report::numbers::{counted, percent, thousands};
use crate::report::table::Table;
use crate::whatif::pipeline::outcome::{PipelineOutcome, Shortened};

const NOTE: &str =
    "a result is shortened as it comes in, so no prefix breaks; the pipeline's own report is `devboy replay`";

/// What is to be kept in mind. Of `unstudied` results nothing is known but the size.
pub fn notes(unstudied: u64) -> Vec<String> {
    let results = counted(unstudied, "result");
    let gone = (unstudied > 0).then(|| format!("{results} of deleted logs were never studied: sent as they are here"));
    std::iter::once(NOTE.to_owned()).chain(gone).collect()
}

/// What became of the results.
pub fn summary(found: &PipelineOutcome) -> Vec<String> {
    let found = &found.all;
    let mut lines = vec![format!(
        "{} of {} sent in fewer tokens ({} of them as hints): {} of their {} tokens, {}",
        thousands(found.shortened),
        counted(found.results, "result"),
        thousands(found.hints),
        thousands(found.tokens_saved),
        thousands(found.tokens),
        percent(share(found))
    )];
    if found.hints_held > 0 {
        lines.push(format!(
            "{} not sent: what they point at was no longer in the context",
            counted(found.hints_held, "hint")
        ));
    }
    lines
}

/// The same by tool, those first that got shorter by most tokens; at most `rows` tools.
pub fn tools(found: &PipelineOutcome, rows: usize) -> Table {
    let mut table = Table::new(&["tool", "#results", "#shorter", "#hints", "#held", "#tokens", "#saved", "#share"]);
    let mut tools: Vec<(&String, &Shortened)> = found.tools.iter().collect();
    tools.sort_by_key(|(name, tool)| (Reverse(tool.tokens_saved), Reverse(tool.tokens), *name));
    for (name, tool) in tools.into_iter().take(rows) {
        let counts = [tool.results, tool.shortened, tool.hints, tool.hints_held, tool.tokens, tool.tokens_saved];
        let cells = counts.map(thousands).into_iter().chain([percent(share(tool))]);
        table.row(std::iter::once(name.clone()).chain(cells));
    }
    table
}

fn share(of: &Shortened) -> f64 {
    of.tokens_saved as f64 / of.tokens.max(1) as f64
}
