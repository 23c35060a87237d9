//! The parameters of the policy, and which values make sense.

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, Result};
use crate::whatif::history_trim::caps::Caps;

/// `[params]` of the sheet, which says what each one does.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Whether anything is done at all.
    pub history_trimming: bool,
    /// The router's old name of `history_trimming`; where it is given, it decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Budget of the conversation in tokens.
    pub max_history_tokens: u32,
    /// Exchanges that stay as they are; with 0 everything is old.
    pub keep_recent_exchanges: u32,
    /// The same on continuations.
    pub keep_recent_user_turns_in_chained_tool_calls: u32,
    /// Whether continuations are treated apart.
    pub skip_router_on_tool_results: bool,
    /// Cap for messages next to the boundary in tokens, 0 for the computed one.
    pub old_message_max_tokens: u32,
    /// Cap for the oldest message.
    pub oldest_message_max_tokens: u32,
    /// Cap for tool results next to the boundary.
    pub old_tool_result_max_tokens: u32,
    /// Cap for the oldest tool result.
    pub oldest_tool_result_max_tokens: u32,
    /// Whether the router's oddities are kept.
    pub fidelity: TrimSource,
    /// Whether old messages lose their thinking.
    pub trim_thinking: bool,
    /// What is kept of a text.
    pub cut: CutStyle,
    /// Whether cuts stay until the segment ends.
    pub sticky: bool,
    /// Exchanges between two times at which new cuts are made, if `sticky`.
    pub sticky_step: u32,
    /// Where a history begins anew.
    pub segment: SegmentRule,
    /// What an exchange is.
    pub exchanges: Exchanges,
    /// Tokens of the static prefix that are instruction messages.
    pub instruction_tokens: u32,
}

/// Whose rule is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrimSource {
    /// The router's.
    Upstream,
    /// The same with its oddities mended.
    Sane,
}

/// What is kept of a text that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CutStyle {
    /// Its head.
    Head,
    /// Its head and its tail. What stood in the tail counts as lost all the same where breaks are looked for.
    HeadTail,
}

/// Where a history begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentRule {
    /// At each compaction.
    RespectCompaction,
}

/// What an exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exchanges {
    /// What the rule takes for one: the router every message with the role of the user, the mended rule a person's.
    ByFidelity,
    /// A message in which a person wrote.
    Human,
    /// Every message with the role of the user.
    UserRole,
}

impl Params {
    /// Whether anything is done at all.
    pub fn is_on(&self) -> bool {
        self.enabled.unwrap_or(self.history_trimming)
    }

    /// Whether every message with the role of the user is an exchange.
    pub fn counts_user_role(&self) -> bool {
        match self.exchanges {
            Exchanges::ByFidelity => self.fidelity == TrimSource::Upstream,
            Exchanges::Human => false,
            Exchanges::UserRole => true,
        }
    }

    /// Whether requests that continue a chain of tool calls have a boundary and a budget of their own.
    pub fn treats_continuations_apart(&self) -> bool {
        self.fidelity == TrimSource::Upstream && self.skip_router_on_tool_results
    }

    /// The caps that are set instead of computed; 0 where none is.
    pub(crate) fn overrides(&self) -> Caps {
        Caps {
            message_near: self.old_message_max_tokens,
            message_oldest: self.oldest_message_max_tokens,
            tool_near: self.old_tool_result_max_tokens,
            tool_oldest: self.oldest_tool_result_max_tokens,
        }
    }

    /// # Errors
    /// If a value makes no sense.
    pub fn check(&self) -> Result<()> {
        if self.max_history_tokens == 0 {
            return Err(Error::usage("max_history_tokens = 0 leaves no room for any message")
                .hint("a budget without limit is 1000000000"));
        }
        if self.sticky && self.sticky_step == 0 {
            return Err(Error::usage("sticky_step = 0: cuts cannot advance every 0 exchanges")
                .hint("1 advances at every exchange; `sticky=false` at every request"));
        }
        Ok(())
    }
}
