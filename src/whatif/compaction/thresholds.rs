//! The numbers of `rules/policies/compaction.toml` as types.

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::Result;
use crate::logs::trace::compare_versions;
use crate::whatif::compaction::params::Params;

/// All numbers of the policy; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionThresholds {
    /// Defaults.
    pub params: Params,
    /// What is known of the client.
    pub client: Client,
    /// Lifetime of the summariser's cache.
    pub warm: WarmThresholds,
    /// What is pointed out.
    pub report: ReportNumbers,
    /// What is swept.
    pub sweep: SweepNumbers,
    /// What real logs are held against.
    pub bars: CompactionBars,
}

/// `[client]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Tokens of the fixed answer to a summary.
    pub acknowledgement_tokens: u32,
    /// Newest tokens that the client keeps word for word.
    pub tail_keep_tokens: u64,
    /// Tokens of what stands for a cleared result.
    pub marker_tokens: u32,
    /// Tools whose results are counted and cleared.
    pub micro_tools: Vec<String>,
    /// Characters per token in the estimate of a result.
    pub chars_per_token: u32,
    /// Smallest result that is cleared, in bytes.
    pub micro_min_bytes: u64,
    /// Newest results that are never cleared.
    pub micro_protect_last: usize,
    /// What it puts back after a compaction.
    pub reattach: Reattach,
    /// Tokens kept free for the answer, by first version, ascending.
    pub reserve: Vec<Reserved>,
    /// Estimate of what is not counted yet.
    pub growth: GrowthThresholds,
}

/// `[[client.reserve]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// First version it holds for.
    pub from_version: String,
    /// Tokens.
    pub tokens: u64,
}

/// `[client.reattach]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reattach {
    /// Files that were worked on last.
    pub files_max: usize,
    /// Most tokens of each.
    pub file_tokens_max: u64,
    /// Tools whose results are files.
    read_tools: Vec<String>,
    /// Tools whose inputs are files.
    write_tools: Vec<String>,
    /// Most tokens that a chain begins with besides tools, system prompt and first prompt.
    pub memory_tokens_max: u64,
    /// Tokens of whatever else comes back, before a compaction was seen.
    pub rest_tokens: u64,
    /// From so many compactions on it is measured what comes back after one.
    pub known_min: usize,
    /// How often the interval of a prediction promises to hold, in percent.
    pub interval_percent: f64,
    /// How far off a prediction may be, as a share of it, before enough compactions were seen.
    pub unknown_off: f64,
    /// The least that any may be off.
    pub least_off: f64,
}

impl Reattach {
    /// Whether results of that tool are files.
    pub fn reads(&self, tool: &str) -> bool {
        self.read_tools.iter().any(|name| name == tool)
    }

    /// Whether inputs of that tool are.
    pub fn writes(&self, tool: &str) -> bool {
        self.write_tools.iter().any(|name| name == tool)
    }
}

/// `[client.growth]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowthThresholds {
    /// Tokens of a character.
    pub tokens_per_char: f64,
    /// Tokens of framing per tool result.
    pub tokens_per_result: u64,
}

/// `[warm]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmThresholds {
    /// By how much a lifetime is exceeded in logs.
    pub slack_seconds: i64,
}

/// `[report]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportNumbers {
    /// Fewer requests between compactions at the median are thrashing.
    pub thrash_requests: u64,
}

/// `[sweep]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepNumbers {
    /// Contexts at which to compact, ascending.
    pub triggers: Vec<u64>,
    /// Tokens that a compaction leaves besides the static prefix.
    pub carries: Vec<u32>,
}

/// `[bars]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompactionBars {
    /// Least share of automatic compactions that are placed, in percent.
    pub placed_percent: f64,
    /// Requests by which a placement may miss.
    pub placed_within_requests: u32,
    /// Largest share of false firings, in percent of the requests.
    pub false_firings_percent: f64,
    /// Distance from a size that still counts, in percent of it.
    pub after_size_tolerance_percent: u64,
    /// Least share of sizes within it, in percent.
    pub after_size_percent: f64,
    /// Least share of clearings with equal sets, in percent.
    pub clearings_percent: f64,
    /// Reads after a compaction that repeat an earlier one, as measured on the reference corpus, in percent.
    pub rereads_elsewhere_percent: f64,
    /// Compactions with such a read, as measured there, in percent.
    pub with_reread_elsewhere_percent: f64,
}

impl CompactionThresholds {
    /// Reads the file.
    ///
    /// # Errors
    /// If a key is missing, unknown or of another type, or a parameter makes no sense; `place` is how the file
    /// is cited.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let sheet: Self = fitting(text, place)?;
        sheet.params.check(&sheet.client)?;
        Ok(sheet)
    }
}

impl Client {
    /// Tokens that a version keeps free for its answer.
    pub fn reserve_of(&self, version: &str) -> u64 {
        let fits = |entry: &&Reserved| compare_versions(&entry.from_version, version).is_le();
        self.reserve.iter().rev().find(fits).or(self.reserve.first()).map_or(0, |entry| entry.tokens)
    }

    /// The most that any version keeps free.
    pub fn reserve_max(&self) -> u64 {
        self.reserve.iter().map(|entry| entry.tokens).max().unwrap_or(0)
    }

    /// The client's estimate of a result's tokens: a half is rounded up.
    pub fn estimate(&self, chars: u32) -> u64 {
        let each = u64::from(self.chars_per_token.max(1));
        (2 * u64::from(chars) + each) / (2 * each)
    }

    /// Whether the client clears results of that tool.
    pub fn clears(&self, tool: &str) -> bool {
        self.micro_tools.iter().any(|name| name == tool)
    }
}
