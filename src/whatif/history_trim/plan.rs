//! What becomes of every message of one request.

use crate::whatif::history_trim::caps::{Caps, HardCap, cap_at, kept_chars};
use crate::whatif::history_trim::conversation::{TrimMessage, boundary, is_continuation};
use crate::whatif::history_trim::outcome::Role;
use crate::whatif::history_trim::params::{Params, TrimSource};
use crate::whatif::history_trim::thresholds::HistoryTrimThresholds;

/// A budget from which on nothing is dropped, in tokens: the router's own for continuations.
pub(crate) const UNLIMITED: u32 = 1_000_000_000;

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MessageFate {
    /// It is left out.
    pub is_dropped: bool,
    /// Code points of its text that stay; none if all of them do.
    pub kept_chars: Option<u32>,
    /// It loses its thinking.
    pub forgets_thinking: bool,
}

/// What becomes of the messages of a request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrimPlan {
    /// By message.
    pub fates: Vec<MessageFate>,
    /// Messages before it are old.
    pub boundary: usize,
    /// Whether the request continues a chain of tool calls.
    pub is_continuation: bool,
}

impl TrimPlan {
    /// Protected messages that are dropped: there are some where the second pass of the hard cap ran.
    pub fn protected_dropped(&self) -> usize {
        self.fates.iter().skip(self.boundary).filter(|fate| fate.is_dropped).count()
    }
}

/// What became of the old messages of a conversation at the last boundary, on a request of its own and on one that continues a
/// chain of calls. It holds for one rule and as long as the conversation only grows.
#[derive(Clone, Default, Debug)]
pub struct Memory([Option<Vec<MessageFate>>; 2]);

/// The rule: parameters and numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct TrimRule {
    /// Parameters.
    pub params: Params,
    /// Numbers; its own parameters are not looked at.
    pub sheet: HistoryTrimThresholds,
}

impl TrimRule {
    /// What becomes of these messages. `prefix_tokens` are those of tools and system. A message that has a fate already
    /// keeps it, but may still be dropped.
    pub fn plan(
        &self,
        messages: &[TrimMessage],
        prefix_tokens: u64,
        fate: impl Fn(&TrimMessage) -> Option<MessageFate>,
    ) -> TrimPlan {
        self.plan_as(is_continuation(messages), messages, prefix_tokens, fate)
    }

    /// The same as without any fate given. What became of old messages before any was dropped depends on where the boundary
    /// stands and on nothing else in one conversation, so it is remembered from one request to the next.
    pub fn plan_on(&self, memory: &mut Memory, messages: &[TrimMessage], prefix_tokens: u64) -> TrimPlan {
        let is_continuation = is_continuation(messages);
        let (boundary, tokens_max) = self.split(is_continuation, messages);
        let old = &mut memory.0[usize::from(is_continuation)];
        if old.as_ref().is_none_or(|old| old.len() != boundary) {
            let caps = Caps::new(&self.sheet.caps, tokens_max, boundary, self.params.overrides());
            let fates = messages[..boundary].iter().enumerate();
            *old = Some(fates.map(|(place, message)| self.old(message, caps, place, boundary)).collect());
        }
        let mut fates = Vec::with_capacity(messages.len());
        fates.extend_from_slice(old.as_deref().unwrap_or_default());
        fates.resize(messages.len(), MessageFate::default());
        self.dropped(TrimPlan { fates, boundary, is_continuation }, messages, prefix_tokens, tokens_max)
    }

    /// Where the messages begin that stay as they are, and the budget of the conversation.
    fn split(&self, is_continuation: bool, messages: &[TrimMessage]) -> (usize, u32) {
        let apart = is_continuation && self.params.treats_continuations_apart();
        let (keep_recent, tokens_max) = if apart {
            (self.params.keep_recent_user_turns_in_chained_tool_calls, UNLIMITED)
        } else {
            (self.params.keep_recent_exchanges, self.params.max_history_tokens)
        };
        (boundary(messages, keep_recent), tokens_max)
    }

    fn dropped(&self, mut plan: TrimPlan, messages: &[TrimMessage], prefix_tokens: u64, tokens_max: u32) -> TrimPlan {
        if tokens_max < UNLIMITED {
            self.drop_units(messages, prefix_tokens, tokens_max, &mut plan);
        }
        plan
    }

    /// The same, whether the request continues a chain of tool calls or not.
    pub(crate) fn plan_as(
        &self,
        is_continuation: bool,
        messages: &[TrimMessage],
        prefix_tokens: u64,
        fate: impl Fn(&TrimMessage) -> Option<MessageFate>,
    ) -> TrimPlan {
        let (boundary, tokens_max) = self.split(is_continuation, messages);
        let caps = Caps::new(&self.sheet.caps, tokens_max, boundary, self.params.overrides());
        let decide = |(place, message): (usize, &TrimMessage)| match fate(message) {
            Some(fate) => fate,
            None if place < boundary => self.old(message, caps, place, boundary),
            None => MessageFate::default(),
        };
        let fates = messages.iter().enumerate().map(decide).collect();
        self.dropped(TrimPlan { fates, boundary, is_continuation }, messages, prefix_tokens, tokens_max)
    }

    /// What becomes of an old message that is not dropped.
    fn old(&self, message: &TrimMessage, caps: Caps, place: usize, old_messages: usize) -> MessageFate {
        let (near, far) = match message.role {
            Role::Tool => (caps.tool_near, caps.tool_oldest),
            Role::User | Role::Assistant => (caps.message_near, caps.message_oldest),
        };
        let cap = cap_at(near, far, place, old_messages);
        let kept = message.is_string.then(|| {
            kept_chars(&self.sheet.cutting, message.text_chars, cap, |kept_chars| message.tokens_of(kept_chars))
        });
        MessageFate {
            is_dropped: false,
            kept_chars: kept.flatten(),
            forgets_thinking: self.params.trim_thinking && message.has_thinking,
        }
    }

    fn drop_units(&self, messages: &[TrimMessage], prefix_tokens: u64, tokens_max: u32, plan: &mut TrimPlan) {
        let is_sane = self.params.fidelity == TrimSource::Sane;
        let instructions = u64::from(self.params.instruction_tokens).min(prefix_tokens);
        let cap = HardCap {
            boundary: plan.boundary,
            other_tokens: u64::from(self.sheet.counting.reply_tokens) + if is_sane { 0 } else { instructions },
            tokens_max: tokens_max.into(),
            spares_protected: is_sane,
        };
        let count =
            |(message, fate): (&TrimMessage, &MessageFate)| (!fate.is_dropped).then(|| self.counted(message, *fate));
        let mut counted: Vec<Option<u32>> = messages.iter().zip(&plan.fates).map(count).collect();
        cap.apply(messages, &mut counted);
        for (fate, counted) in plan.fates.iter_mut().zip(counted) {
            if counted.is_none() {
                *fate = MessageFate { is_dropped: true, ..MessageFate::default() };
            }
        }
    }

    /// Tokens of a message by the router's count, once it is cut.
    pub fn counted(&self, message: &TrimMessage, fate: MessageFate) -> u32 {
        let counting = &self.sheet.counting;
        let text = fate.kept_chars.map_or(message.text_tokens, |kept| self.cut_tokens(message, kept));
        let calls = if self.params.fidelity == TrimSource::Sane { message.call_tokens } else { 0 };
        counting.message_tokens + counting.role_tokens + text + calls
    }

    /// Tokens of a text that was cut, its mark included.
    pub fn cut_tokens(&self, message: &TrimMessage, kept_chars: u32) -> u32 {
        message.tokens_of(kept_chars) + self.sheet.cutting.suffix_tokens
    }
}

impl TrimMessage {
    /// Tokens of the first so many code points of its text, as if they were spread evenly.
    pub fn tokens_of(&self, kept_chars: u32) -> u32 {
        if kept_chars >= self.text_chars {
            return self.text_tokens;
        }
        let scaled = u64::from(self.text_tokens) * u64::from(kept_chars);
        scaled.div_ceil(u64::from(self.text_chars)) as u32
    }
}
