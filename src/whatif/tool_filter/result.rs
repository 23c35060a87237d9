//! What showing fewer tools would have saved and broken.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::whatif::sim::figures::Portion;

/// The tools that the policy chose from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct CatalogFacts {
    /// Where definitions come from: `given`, `logged`, `inferred`, `names`.
    pub source: String,
    pub tools: u64,
    /// Tools that were used and stand in no catalog.
    pub unlisted: u64,
    /// Tools whose size is known.
    pub sized: u64,
    /// Tokens of those.
    pub tokens: u64,
}

/// How well proposals met what was used: distinct tools of turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ProposalAccuracy {
    /// Of what was shown when a turn began, what the turn used.
    pub precision: Portion,
    /// Of what turns used, what was shown when they began.
    pub recall: Portion,
    /// The same without tools that are always shown.
    pub precision_rest: Portion,
    /// The same without tools that are always shown.
    pub recall_rest: Portion,
}

/// What hiding one tool came to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ToolRegret {
    pub tool: String,
    /// Tokens of its definition, where known.
    pub tokens: Option<u64>,
    pub calls: u64,
    /// Turns that used it.
    pub turns: u64,
    /// Turns in which it was missed.
    pub misses: u64,
    /// Requests without its definition at their head.
    pub requests_hidden: u64,
    pub missed_context_tokens: u64,
}

/// How rare misses must be for hidden definitions to pay, in twentieths of an uncached input token (policies.md 1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct BreakEven {
    /// Tokens that the definitions of a request are smaller by, mean: those of the tool for asking are among them.
    pub removed_tokens: u64,
    /// Tokens of a context, mean over all requests.
    pub context_tokens: u64,
    /// Tokens of the definitions that a request with a miss lacks, mean.
    pub definition_tokens: u64,
    /// Price of a token that is read from the cache.
    pub read_u20: u64,
    /// Price of a token that is written to it.
    pub write_u20: u64,
    /// Requests of the log for each one with a miss.
    pub requests_per_miss: Option<u64>,
}

impl BreakEven {
    /// What hidden definitions save at each request: they stand in the cached prefix.
    pub fn saved_per_request_u20(&self) -> u64 {
        self.read_u20 * self.removed_tokens
    }

    /// What a request with a miss costs beyond the extra one where the prefix is rebuilt: the whole context is written,
    /// not read.
    pub fn rebuild_u20(&self) -> u64 {
        self.write_u20.saturating_sub(self.read_u20) * self.context_tokens
    }

    /// What it costs where definitions are appended: one more reading of the context, and their writing.
    pub fn append_u20(&self) -> u64 {
        self.read_u20 * self.context_tokens + self.write_u20 * self.definition_tokens
    }

    /// Requests per miss from which on rebuilding pays; none if nothing is saved.
    pub fn rebuild_pays_from(&self) -> Option<u64> {
        pays_from(self.rebuild_u20(), self.saved_per_request_u20())
    }

    /// Requests per miss from which on appending pays.
    pub fn append_pays_from(&self) -> Option<u64> {
        pays_from(self.append_u20(), self.saved_per_request_u20())
    }

    /// Tokens that must be removed for appending to pay at the log's own rate of misses.
    pub fn append_pays_from_tokens(&self) -> Option<u64> {
        let requests = self.requests_per_miss.filter(|requests| *requests > 0 && self.read_u20 > 0)?;
        Some(self.append_u20().div_ceil(requests * self.read_u20))
    }
}

fn pays_from(cost: u64, saved: u64) -> Option<u64> {
    (saved > 0).then(|| cost.div_ceil(saved))
}

/// How far the static prefix is from the definitions of the catalog, over chains: |S − (Σ definitions + system
/// prompt)|.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Unexplained {
    /// Chains with a known prefix.
    pub chains: u64,
    /// Least, median (the lower one) and greatest difference, in tokens.
    pub min: u64,
    /// See `min`.
    pub median: u64,
    /// See `min`.
    pub max: u64,
    /// Chains whose prefix is smaller than the definitions alone: they cannot all have been sent.
    pub too_small: u64,
    /// Tokens of the system prompt, where the user said so; else the difference includes it.
    pub system_tokens: Option<u64>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ToolFilter {
    pub catalog: CatalogFacts,
    /// Why there are no savings, if there are none to speak of.
    pub not_estimated: Option<String>,
    pub requests: u64,
    /// Turns, and those that used tools.
    pub turns: Portion,
    pub calls: u64,
    /// Tools shown: sum over requests.
    pub visible: Portion,
    /// Tokens of definitions that heads are smaller by: sum over requests.
    pub removed_tokens: Option<u64>,
    /// Changes of the shown set from one request of a chain to the next: each is a new prefix.
    pub set_changes: u64,
    /// First calls of a turn to tools that were not shown, of all calls.
    pub misses: Portion,
    /// Tool-using turns with a miss.
    pub turns_missed: Portion,
    /// Extra requests.
    pub retries: u64,
    /// Misses that nothing made good.
    pub unrecovered: u64,
    pub accuracy: ProposalAccuracy,
    /// By tool, most missed first, then by calls and name.
    pub regret: Vec<ToolRegret>,
    /// What it takes to pay, for the price class of most writes.
    pub break_even: Option<BreakEven>,
    /// How well the catalog explains the prefix.
    pub unexplained: Option<Unexplained>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// How a fixed list, with the tools of the last turns added, covers what was used (policies.md 5.3).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ListCoverage {
    /// Distinct tools.
    pub tools: u64,
    /// Calls covered by the list alone.
    pub calls: Portion,
    /// Tool-using turns covered by it.
    pub turns: Portion,
    /// By number of turns looked back on ([`ALL_TURNS`]: all): turns with a miss, and first misses of turns per calls.
    #[serde(serialize_with = "by_turns")]
    pub recency: BTreeMap<u32, RecencyCoverage>,
}

/// Looked back on without limit.
pub const ALL_TURNS: u32 = u32::MAX;

/// The key of a number of turns looked back on: `3`, `all`.
pub fn turns_key(turns: u32) -> String {
    if turns == ALL_TURNS { "all".to_owned() } else { turns.to_string() }
}

fn by_turns<S: Serializer>(rows: &BTreeMap<u32, RecencyCoverage>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(rows.iter().map(|(turns, row)| (turns_key(*turns), row)))
}

/// The same as measured on other logs, in per cent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CoverageElsewhere {
    /// Calls covered by the list alone.
    pub calls_pct: f64,
    pub turns_pct: f64,
    /// Tool-using turns with a miss, by [`turns_key`].
    pub turns_missed_pct: BTreeMap<String, f64>,
}

/// See [`ListCoverage::recency`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RecencyCoverage {
    /// Tool-using turns with a miss.
    pub turns_missed: Portion,
    /// First misses of turns, of all calls.
    pub misses: Portion,
}
