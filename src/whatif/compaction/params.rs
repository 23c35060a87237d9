//! What can be set about compaction (policies.md 3.2), and whether an attempt to compact is allowed: the distance to
//! the last one, and the breaker.

use serde::Deserialize;

use crate::base::error::{Error, Result};
use crate::whatif::compaction::outcome::AttemptEnd;
use crate::whatif::compaction::thresholds::{Client, CompactionThresholds};

/// The parameters; defaults stand in `rules/policies/compaction.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Which contexts are made smaller.
    pub tier: Tier,
    /// How the trigger is computed.
    pub mode: Mode,
    /// Context window in tokens.
    pub window: u64,
    /// Tokens kept free for the answer.
    pub reserve_output: Reserve,
    /// Tokens kept free besides.
    pub buffer: u64,
    /// Share of the window at which [`Mode::Pct`] fires.
    pub compact_at_pct: f64,
    /// Least tokens of the newest messages that stay.
    pub tail_keep_tokens: u64,
    /// Tokens of a summary.
    pub summary_tokens: u32,
    /// Tokens of files and reminders that come back.
    pub reattach_tokens: u32,
    /// Least tokens by which a context must shrink.
    pub min_gain_tokens: u64,
    /// Age of a session at which to fire, in minutes; 0: never.
    pub max_age_minutes: u64,
    /// Human turns between two compactions.
    pub min_turns_between: u32,
    /// Failures in a row after which no attempt is made.
    pub max_consecutive_failures: u32,
    /// Every n-th summary fails; 0: none.
    pub fail_every: u32,
    /// Where a tail may begin.
    pub align: Align,
    /// What becomes of the compactions of the log.
    pub real: Real,
    /// Who writes the summary; empty for the same model.
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
    /// A word.
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
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct MicroParams {
    /// Smaller results stay.
    pub min_bytes: u64,
    /// Estimate of all results that stay.
    pub target_tokens: u64,
    /// Least tokens to free at once.
    pub min_saving_tokens: u64,
    /// Newest results that always stay.
    pub protect_last: usize,
    /// Clear only what is not cached.
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

impl Params {
    /// Whether the values make sense together, for every version of the client.
    ///
    /// # Errors
    /// Names the first parameter that does not.
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
    pub fn newest_trigger_tokens(&self, sheet: &CompactionThresholds) -> u64 {
        /// A version later than any.
        const NEWEST: &str = "999999";
        self.trigger_tokens(sheet, NEWEST)
    }

    /// Tokens of the context at which a client of this version compacts.
    pub fn trigger_tokens(&self, sheet: &CompactionThresholds, version: &str) -> u64 {
        self.trigger(match self.reserve_output {
            Reserve::Tokens(tokens) => tokens,
            Reserve::Word(ReserveWord::Observed) => sheet.client.reserve_of(version),
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
