//! The report of picking by keywords: the plain verdict first, then the curve.

use crate::report::numbers::{counted, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::pick_tools::Params;
use crate::whatif::pick_tools::outcome::{Pick, PickTools, RecallAt, SCORE_BINS};
use crate::whatif::tool_filter::tables::share;

/// What was picked and what was not.
pub fn summary(found: &PickTools) -> Vec<String> {
    let mut lines = vec![
        format!(
            "as set: {} of used tools shown, {} of {} covered",
            share(found.shown.recall),
            share(found.shown.turns_covered),
            counted(found.shown.turns_covered.n, "turn")
        ),
        format!("no pick in {} of {}", share(found.empty), counted(found.empty.n, "turn")),
        format!(
            "{} used and not picked because they are not safe; stop list {}",
            counted(found.unsafe_needed, "tool"),
            found.stop_version
        ),
    ];
    if found.budget_fallbacks > 0 {
        lines.push(format!("over budget, first tools taken unscored: {}", counted(found.budget_fallbacks, "turn")));
    }
    if found.chains_left_alone > 0 {
        lines
            .push(format!("every tool stays for {}: nobody types there", counted(found.chains_left_alone, "subagent")));
    }
    lines.extend(found.not_estimated.iter().map(|reason| format!("savings not estimated: {reason}")));
    lines
}

/// How tools are picked, with the numbers of the first pick.
pub fn formulas(params: &Params, first: Option<&Pick>) -> Vec<String> {
    let (overlap, formula) = params.overlap.words();
    let none = || "no turn has a pick with a score that could stand for the others".to_owned();
    vec![
        format!(
            "score of a tool (overlap={overlap}) = {formula}; Q: words of the prompt, T: words of the tool's name, description \
             and tags, both without stop words"
        ),
        format!(
            "picks = the {} with the best score that is at least min_score = {}; ties: more shared words, then catalog order",
            counted(params.max_candidates as u64, "tool"),
            params.min_score
        ),
        first.map_or_else(none, example),
    ]
}

fn example(pick: &Pick) -> String {
    let fraction = format!("{} / {}", thousands(pick.numerator), thousands(pick.denominator));
    let fraction = if pick.is_squared { format!("√({fraction})") } else { fraction };
    format!(
        "the best pick of the first turn that has one: {} with {fraction} = {:.3} (shared: {})",
        pick.tool,
        pick.score,
        pick.matched.join(", ")
    )
}

/// Recall by number of picks; tools of MCP servers on their own beside it.
pub fn recall(found: &PickTools) -> Table {
    let mut table =
        Table::new(&["#picks", "#of used tools", "#turns covered", "#of used MCP tools", "#their turns covered"]);
    for (picks, at) in &found.recall {
        let mcp = found.recall_mcp.get(picks).copied().unwrap_or_default();
        let cells = |at: &RecallAt| [share(at.recall), share(at.turns_covered)];
        table.row([picks.to_string()].into_iter().chain(cells(at)).chain(cells(&mcp)));
    }
    table
}

/// Turns by score.
pub fn scores(found: &PickTools) -> Table {
    TableBuilder::of(found.scores.iter().enumerate())
        .text("score", |(bin, _)| {
            if *bin == 0 { "no pick".to_owned() } else { format!("up to {} %", 100 * bin / (SCORE_BINS - 1)) }
        })
        .count("turns", |(_, turns)| **turns)
        .table()
}
