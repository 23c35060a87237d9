//! What picking tools by keywords would have found, and what it would have broken; and `pick-tools` itself: a few tools
//! by keywords, how often they would have been the right ones, and the report of it: the plain verdict first, then the curve.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use crate::base::error::Result;
use crate::base::id::Id;
use crate::report::numbers::{counted, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::pick_tools::{Params, PickPolicy, Rules};
use crate::whatif::sim::figures::Portion;
use crate::whatif::sim::params::ReadOnlyWith;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};
use crate::whatif::tool_filter::result::CatalogFacts;
use crate::whatif::tool_filter::tables::share;
use crate::whatif::tools::stage::ToolStage;

/// Bins of scores: none or 0, up to 10 %, …, up to 100 %.
pub const SCORE_BINS: usize = 11;

/// How much of what was used the first K picks hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RecallAt {
    /// Distinct used tools of turns that were among the picks, of all.
    pub recall: Portion,
    /// Tool-using turns all of whose tools were.
    pub turns_covered: Portion,
}

/// All of it. Turns are those that used tools.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PickTools {
    pub catalog: CatalogFacts,
    pub stop_version: u32,
    /// Why there are no savings, if there are none to speak of.
    pub not_estimated: Option<String>,
    /// Turns of main threads, and those that used tools.
    pub turns: Portion,
    /// Subagents: nobody types there, so they keep their tools.
    pub chains_left_alone: u64,
    /// Turns without a pick.
    pub empty: Portion,
    /// By number of picks.
    pub recall: BTreeMap<usize, RecallAt>,
    /// The same among tools of MCP servers alone, for turns that used such.
    pub recall_mcp: BTreeMap<usize, RecallAt>,
    /// With the parameters as they are: always shown and picked.
    pub shown: RecallAt,
    /// Turns by the score of their best pick.
    pub scores: [u64; SCORE_BINS],
    /// Distinct tools of turns that were used and may not be picked because they are not safe.
    pub unsafe_needed: u64,
    /// Turns whose catalog was larger than `budget_tools`: the first tools were taken unscored.
    pub budget_fallbacks: u64,
    /// What the reader should know, the verdict first.
    pub notes: Vec<String>,
}

/// One pick, for the record.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pick {
    pub tool: String,
    /// Its score, 0 to 1.
    pub score: f64,
    /// The same as a fraction, not reduced; for `cosine` the square of it.
    pub numerator: u64,
    /// See `numerator`.
    pub denominator: u64,
    /// Whether the fraction is the square of the score.
    #[serde(skip)]
    pub is_squared: bool,
    /// Words of the tool that occur in the query, in order; empty where it was taken unscored.
    pub matched: Vec<String>,
}

/// Picks of one turn or request.
#[derive(Clone, PartialEq, Debug)]
pub struct Picks {
    /// `message.id` of the request, as a hash.
    pub request: Id,
    /// Best first.
    pub picks: Vec<Pick>,
    /// Whether the catalog was larger than the budget.
    pub budget_fallback: bool,
}

/// The policy as it is set.
pub fn policy(simulation: &Simulation<'_>, configs: &PolicyConfigs) -> Result<PickPolicy> {
    let workload = simulation.workload;
    let sheet = configs.sheet(Policy::PickTools);
    let params: Params = sheet.params()?;
    params.check()?;
    let rules: Rules = sheet.read()?;
    Ok(PickPolicy::new(&workload.timeline, &params, &rules, simulation.tools, workload.prefixes()))
}

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/pick_tools.toml",
    check: |sheet| sheet.params::<Params>()?.check(),
    read_only_with: &[
        ReadOnlyWith { parameters: &["unsafe_default"], only: "allow_unsafe=false", is: |allowed| allowed == "false" },
        // Within a turn only the messages since can change a pick.
        ReadOnlyWith { parameters: &["scope"], only: "query_context above 0", is: |messages| messages != "0" },
    ],
    without_logs: Some("it has no text, so there are no words to pick by"),
    ready,
};

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let policy = Arc::new(policy(simulation, configs)?);
    let stage = ToolStage::new(policy.clone());
    let conclude = move |finished: &Finished<'_>| {
        let timeline = &finished.simulation.workload.timeline;
        let found = policy.outcome(timeline);
        PolicyShare {
            summary: summary(&found),
            tables: vec![
                ("used tools that the first K picks hold".to_owned(), recall(&found)),
                ("best scores of turns".to_owned(), scores(&found)),
            ],
            formulas: formulas(&policy.params, policy.example(timeline).as_ref()),
            notes: found.notes.clone(),
            not_estimated: found.not_estimated.clone(),
            catalog: Some(found.catalog.source.clone()),
            details: json!(found),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

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
            if *bin == 0 {
                "no pick, or no score".to_owned()
            } else {
                format!("up to {} %", 100 * bin / (SCORE_BINS - 1))
            }
        })
        .count("turns", |(_, turns)| **turns)
        .table()
}
