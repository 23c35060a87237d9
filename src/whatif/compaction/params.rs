//! What can be set about compaction (policies.md 3.2), and the numbers of `rules/policies/compaction.toml` as types; whether an
//! attempt to compact is allowed: the distance to the last one, and the breaker.

use serde::Deserialize;

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::logs::trace::compare_versions;
use crate::whatif::compaction::outcome::AttemptEnd;

/// The parameters; defaults stand in `rules/policies/compaction.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Params {
    /// Which contexts are made smaller.
    pub tier: Tier,
    pub mode: Mode,
    pub window: u64,
    /// Tokens kept free for the answer.
    pub reserve_output: Reserve,
    /// Tokens kept free besides.
    pub buffer: u64,
    pub compact_at_pct: f64,
    pub tail_keep_tokens: u64,
    pub summary_tokens: u32,
    pub reattach_tokens: u32,
    /// Least tokens by which a context must shrink.
    pub min_gain_tokens: u64,
    pub max_age_minutes: u64,
    pub min_turns_between: u32,
    pub max_consecutive_failures: u32,
    pub fail_every: u32,
    pub align: Align,
    pub real: Real,
    pub summarizer_model: String,
    /// Clearing of tool results.
    pub micro: MicroParams,
}

/// `tier`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Compaction.
    Auto,
    /// Clearing of tool results.
    Micro,
}

/// `mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Window less the reserve less the buffer.
    ClaudeCode,
    /// A share of the window.
    Pct,
}

/// `reserve_output`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "it has to be a number of tokens or \"observed\"")]
pub enum Reserve {
    /// So many tokens.
    Tokens(u64),
    Word(ReserveWord),
}

/// What `reserve_output` may say besides a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReserveWord {
    /// By client version.
    Observed,
}

/// `align`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// Where a person wrote.
    Turn,
    /// At any message.
    Message,
}

/// `real`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Real {
    /// They happen, and the virtual run starts anew.
    Keep,
    /// They do not happen.
    Ignore,
}

/// `micro.*`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "a table")]
pub struct MicroParams {
    pub min_bytes: u64,
    pub target_tokens: u64,
    /// Least tokens to free at once.
    pub min_saving_tokens: u64,
    pub protect_last: usize,
    pub only_uncached: bool,
    /// What stays of a result.
    pub style: Style,
}

/// `micro.style`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Style {
    /// A marker.
    Clear,
    /// A marker and the first so many code points.
    Head(u32),
}

impl TryFrom<String> for Style {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let head = |inner: &str| inner.strip_prefix("head(")?.strip_suffix(')')?.trim().parse().ok().map(Self::Head);
        match text.as_str() {
            "clear" => Ok(Self::Clear),
            other => {
                head(other).ok_or_else(|| format!("style is `{other}`; it can be `clear` or `head(<characters>)`"))
            }
        }
    }
}

/// What makes `what-if compaction` compact as the client does, as words of a command line: see [`Params::as_client`].
pub const AS_CLIENT: [&str; 6] =
    ["--set", "tail_keep_tokens=0", "--set", "align=message", "--set", "min_turns_between=0"];

impl Params {
    /// The same as the client compacts: it keeps no tail and lets no prompts pass.
    #[must_use]
    pub fn as_client(&self, client: &Client) -> Self {
        let tail_keep_tokens = client.tail_keep_tokens;
        Self { tail_keep_tokens, align: Align::Message, min_turns_between: 0, ..self.clone() }
    }

    /// Whether the values make sense together, for every version of the client.
    pub fn check(&self, client: &Client) -> Result<()> {
        let fault = |text: &str, hint: &str| Err(Error::usage(text).hint(hint));
        if !(self.compact_at_pct > 0.0 && self.compact_at_pct <= 1.0) {
            return fault("compact_at_pct is no share", "give a number above 0 and at most 1");
        }
        if self.window == 0 {
            return fault("window is 0", "give the tokens of the context window, for instance 200000");
        }
        let (reserve, whose) = match self.reserve_output {
            Reserve::Tokens(tokens) => (tokens, ""),
            Reserve::Word(ReserveWord::Observed) => (client.reserve_max(), " (the most that was observed)"),
        };
        let (window, buffer) = (self.window, self.buffer);
        match self.mode {
            _ if self.trigger(reserve) > 0 => {}
            Mode::ClaudeCode => {
                return fault(
                    &format!("reserve_output {reserve}{whose} and buffer {buffer} leave nothing of window {window}"),
                    "their sum has to be below window: contexts are compacted at the rest",
                );
            }
            Mode::Pct => {
                return fault(
                    &format!("compact_at_pct {} of window {window} is no token", self.compact_at_pct),
                    "give more of either: contexts are compacted at their product",
                );
            }
        }
        if self.max_consecutive_failures == 0 {
            return fault("max_consecutive_failures is 0", "with 0 nothing is ever tried; give at least 1");
        }
        Ok(())
    }

    /// Tokens of the context at which the newest client compacts.
    pub fn newest_trigger_tokens(&self, thresholds: &CompactionThresholds) -> u64 {
        /// A version later than any.
        const NEWEST: &str = "999999";
        self.trigger_tokens(thresholds, NEWEST)
    }

    /// Tokens of the context at which a client of this version compacts.
    pub fn trigger_tokens(&self, thresholds: &CompactionThresholds, version: &str) -> u64 {
        self.trigger(match self.reserve_output {
            Reserve::Tokens(tokens) => tokens,
            Reserve::Word(ReserveWord::Observed) => thresholds.client.reserve_of(version),
        })
    }

    /// The same of a client that keeps so much free for its answer. The share is held in millionths, so that 0.57 is 57 of 100.
    fn trigger(&self, reserve: u64) -> u64 {
        match self.mode {
            Mode::Pct => {
                let ppm = (self.compact_at_pct * 1e6).round() as u128;
                (u128::from(self.window) * ppm / 1_000_000) as u64
            }
            Mode::ClaudeCode => self.window.saturating_sub(reserve).saturating_sub(self.buffer),
        }
    }
}

/// What is remembered of earlier attempts in a chain.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AttemptGate {
    turn: Option<u32>,
    failures: u32,
    calls: u32,
}

impl AttemptGate {
    /// What keeps a compaction from being tried in this human turn; none if it may be.
    pub fn refusal(&self, params: &Params, turn: u32) -> Option<AttemptEnd> {
        if self.failures >= params.max_consecutive_failures {
            return Some(AttemptEnd::BreakerOpen);
        }
        let is_held = self.turn.is_some_and(|last| turn.saturating_sub(last) < params.min_turns_between);
        is_held.then_some(AttemptEnd::Held)
    }

    /// Calls the summariser in this human turn; says whether it succeeded.
    pub fn call(&mut self, params: &Params, turn: u32) -> bool {
        self.calls += 1;
        let is_failure = params.fail_every > 0 && self.calls.is_multiple_of(params.fail_every);
        if is_failure {
            self.failures += 1;
        } else {
            self.failures = 0;
            self.turn = Some(turn);
        }
        !is_failure
    }
}

/// All numbers of the policy; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CompactionThresholds {
    pub params: Params,
    pub client: Client,
    pub warm: WarmThresholds,
    /// What is pointed out.
    pub report: ReportNumbers,
    pub sweep: SweepNumbers,
    /// What real logs are held against.
    pub bars: CompactionBars,
}

/// `[client]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Client {
    pub acknowledgement_tokens: u32,
    pub tail_keep_tokens: u64,
    pub marker_tokens: u32,
    pub micro_tools: Vec<String>,
    pub chars_per_token: u32,
    pub micro_min_bytes: u64,
    /// Newest results that are never cleared.
    pub micro_protect_last: usize,
    pub reattach: Reattach,
    /// Tokens kept free for the answer, by first version, ascending.
    pub reserve: Vec<Reserved>,
    pub growth: GrowthThresholds,
}

/// `[[client.reserve]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Reserved {
    /// First version it holds for.
    pub from_version: String,
    pub tokens: u64,
}

/// `[client.reattach]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Reattach {
    pub files_max: usize,
    pub file_tokens_max: u64,
    read_tools: Vec<String>,
    write_tools: Vec<String>,
    /// Most tokens that a chain begins with besides tools, system prompt and first prompt.
    pub memory_tokens_max: u64,
    /// Tokens of whatever else comes back, before a compaction was seen.
    pub rest_tokens: u64,
    pub known_min: usize,
    pub interval_percent: f64,
    /// How far off a prediction may be, as a share of it, before enough compactions were seen.
    pub unknown_off: f64,
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
pub struct GrowthThresholds {
    /// Tokens of a character.
    pub tokens_per_char: f64,
    pub tokens_per_result: u64,
}

/// `[warm]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WarmThresholds {
    /// By how much a lifetime is exceeded in logs.
    pub slack_seconds: i64,
}

/// `[report]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ReportNumbers {
    pub thrash_requests: u64,
}

/// `[sweep]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SweepNumbers {
    /// Contexts at which to compact, ascending.
    pub triggers: Vec<u64>,
    /// Tokens that a compaction leaves besides the static prefix.
    pub carries: Vec<u32>,
}

/// `[bars]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CompactionBars {
    pub placed_percent: f64,
    /// Requests by which a placement may miss.
    pub placed_within_requests: u32,
    pub false_firings_percent: f64,
    /// Distance from a size that still counts, in percent of it.
    pub after_size_tolerance_percent: u64,
    /// Least share of sizes within it, in percent.
    pub after_size_percent: f64,
    /// Least share of clearings with equal sets, in percent.
    pub clearings_percent: f64,
    pub rereads_elsewhere_percent: f64,
    pub with_reread_elsewhere_percent: f64,
}

impl CompactionThresholds {
    /// Reads the file. An error if a key is missing, unknown or of another type, or a parameter makes no sense; `place`
    /// is how the file is cited.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let thresholds: Self = fitting(text, place)?;
        thresholds.params.check(&thresholds.client)?;
        Ok(thresholds)
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
