//! The report of a policy, in one shape for all of them: what it saves, what it costs, what it breaks, always together.

pub mod data;
mod tables;
mod text;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::pseudonyms::Pseudonyms;
use crate::report::sharing::servers_hidden;
use crate::report::table::Table;
use crate::whatif::sim::breakage::rows::Breakage;
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::distance::Distance;
use crate::whatif::sim::figures::{Deviation, Outcome, RunBill};

pub use crate::whatif::report::data::json;
pub use tables::{by_cost, clear_parts, comparison, is_cheaper, money, sessions, sweep};
pub use text::{
    CLEAR_PARTS, basis, examples, explained, first_line, formulas, headline, off_the_bar, together, unpriced_of_all,
    write,
};

/// How much of a report is told.
#[derive(Clone, Copy, Debug)]
pub struct ReportDetail {
    /// Whether formulas and causes are told.
    pub explain: bool,
    /// Most rows of a table for people.
    pub rows: usize,
    /// Most tables of the policy's own.
    pub tables: usize,
}

/// The estimator of sizes that telemetry recorded: there is no usage then.
pub const TELEMETRY: &str = "telemetry";

/// Everything that a policy says.
#[derive(Default)]
pub struct PolicyReport {
    /// Its name; several joined by `+`.
    pub policy: String,
    pub params: Value,
    /// What was set about the cache that prices it.
    pub cache: Vec<String>,
    /// What it was asked about.
    pub input: Counted,
    /// On what its figures rest.
    pub fidelity: Fidelity,
    /// What the log was billed.
    pub billed: RunBill,
    /// How the simulated log compares with that.
    pub accuracy: Option<SimulationAccuracy>,
    /// Where that is off.
    pub distance: Option<Distance>,
    /// All of the logs, with its interval over sessions.
    pub whole: Option<Cell>,
    /// Parts of the logs by themselves.
    pub cells: Vec<Cell>,
    /// What the policy comes to; none where nothing can be said about tokens.
    pub outcome: Option<Outcome>,
    /// What it breaks; none where nobody can know that it is nothing.
    pub breakage: Option<Breakage>,
    /// What writing lost readings to the cache again would cost.
    pub reread: Cost,
    /// Cost of the policy over that of the log, less one, where the provider caches nothing.
    pub uncached_change: Option<f64>,
    /// Least difference that is called one, as a share.
    pub winner_min: f64,
    /// Of a stack: units of input tokens by which it differs from the sum of its parts.
    pub interaction_units: Option<i128>,
    /// What only this policy says, in sentences.
    pub summary: Vec<String>,
    /// The same as data.
    pub details: BTreeMap<String, Value>,
    /// And as tables with their titles.
    pub tables: Vec<(String, Table)>,
    /// Formulas with the numbers put in.
    pub formulas: Vec<String>,
    /// Where its approximations lean.
    pub bias: Vec<String>,
    /// Records behind the examples of breaks, if asked for.
    pub shown: Vec<String>,
    /// The first line, where the policy has a better one than the usual comparison.
    pub headline: Option<String>,
    /// What is to be kept in mind.
    pub notes: Vec<String>,
    /// Why there are no savings, where there are none to be had.
    pub not_estimated: Option<String>,
}

impl PolicyReport {
    /// The report without what it holds of each session, once its sums are made: of many sessions that is most of it.
    #[must_use]
    pub fn without_sessions(mut self) -> Self {
        if let Some(outcome) = &mut self.outcome {
            outcome.by_session.clear();
            outcome.by.remove("session");
        }
        self
    }

    /// Puts pseudonyms in place of the names of MCP servers in what people read.
    pub fn hide_servers(&mut self, names: &Pseudonyms) {
        let hide = |text: &mut String| *text = servers_hidden(text, names);
        let lists = [&mut self.summary, &mut self.formulas, &mut self.bias, &mut self.shown, &mut self.notes];
        lists.into_iter().flatten().chain(&mut self.headline).chain(&mut self.not_estimated).for_each(hide);
        self.tables.iter_mut().for_each(|(_, table)| table.change_cells(hide));
    }

    /// What the policy comes to, where that is estimated: what is not is no zero.
    pub fn told(&self) -> Option<&Outcome> {
        self.outcome.as_ref().filter(|_| self.not_estimated.is_none())
    }

    /// Whether the difference is within what the simulation itself is off, less than the least that is called one, or may
    /// be none at all by its interval over sessions.
    pub fn is_unsure(&self) -> bool {
        let change = self.outcome.as_ref().and_then(|outcome| outcome.total.change());
        let error = self.accuracy.map_or(0.0, |accuracy| accuracy.cost_error.size());
        change.is_some_and(|change| change.abs() <= error.max(self.winner_min)) || self.may_be_nothing()
    }

    /// Whether the 95 % interval of the difference includes zero, or there are too few sessions for one.
    pub fn may_be_nothing(&self) -> bool {
        let ends = self.whole.as_ref().map(|whole| whole.lower.zip(whole.upper));
        ends.is_some_and(|ends| ends.is_none_or(|(lower, upper)| lower <= 0.0 && upper >= 0.0))
    }
}

/// What a policy was asked about.
#[derive(Clone, Default, serde::Serialize)]
pub struct Counted {
    pub files: u64,
    pub sessions: u64,
    pub requests: u64,
    /// First and last day of a request, in local time; none without a time.
    pub days: Option<(String, String)>,
    /// What was left out, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// On what figures rest.
#[derive(Clone, Default, serde::Serialize)]
pub struct Fidelity {
    /// Where sizes of blocks come from.
    pub estimator: String,
    /// Share of requests whose increment was measured.
    pub anchored_share: Option<f64>,
    /// Where the size of tools and system comes from.
    pub static_prefix_source: String,
    /// Where tool definitions come from.
    pub tool_catalog_source: String,
    /// Where lifetimes come from.
    pub ttl_source: String,
}

/// How well the simulated log foretells what was billed.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct SimulationAccuracy {
    /// Sum of absolute errors of the tokens read, over all tokens read.
    pub wape_read: Deviation,
    /// Share of warm tool turns whose read is exact; none without such turns.
    pub exact_share: Option<f64>,
    /// Sum of the errors over all tokens read; above 0 the simulation reads too much.
    pub bias: Deviation,
    /// Simulated cost over billed cost, less one.
    pub cost_error: Deviation,
    /// Largest distance of the cost from the bill that is no miss, either way.
    pub cost_bar: f64,
    /// The same of the reads, one by one.
    pub read_bar: f64,
    /// The same of the reads in sum.
    pub bias_bar: f64,
}

impl SimulationAccuracy {
    /// Whether the cost is further off the bill than it may be.
    pub fn misses_bar(&self) -> bool {
        self.cost_error.size() > self.cost_bar
    }
}
