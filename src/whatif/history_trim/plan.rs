//! What becomes of every message of one request.
//!
//! How many tokens an old one may have are four caps that follow from the budget and from how many messages are old, its own
//! between them by its place, and how much of its text stays when it exceeds that. Where the caps do not suffice, the hard cap
//! drops whole units, so that no call loses its result.

use std::ops::Range;
use std::rc::Rc;

use serde::Deserialize;

use crate::base::id::IdMap;
use crate::whatif::history_trim::conversation::{TrimMessage, boundary, is_continuation};
use crate::whatif::history_trim::outcome::{CapNumbers, Role};
use crate::whatif::history_trim::params::{HistoryTrimThresholds, Params, TrimSource};

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
    pub thresholds: HistoryTrimThresholds,
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
        let is_continuation = is_continuation(messages);
        let (boundary, tokens_max) = self.split(is_continuation, messages);
        let caps = Caps::new(&self.thresholds.caps, tokens_max, boundary, self.params.overrides());
        let decide = |(place, message): (usize, &TrimMessage)| match fate(message) {
            Some(fate) => fate,
            None if place < boundary => self.old(message, caps, place, boundary),
            None => MessageFate::default(),
        };
        let fates = messages.iter().enumerate().map(decide).collect();
        self.dropped(TrimPlan { fates, boundary, is_continuation }, messages, prefix_tokens, tokens_max)
    }

    /// The same as without any fate given. What became of old messages before any was dropped depends on where the boundary
    /// stands and on nothing else in one conversation, so it is remembered from one request to the next.
    pub fn plan_on(&self, memory: &mut Memory, messages: &[TrimMessage], prefix_tokens: u64) -> TrimPlan {
        self.plan_as(is_continuation(messages), memory, messages, prefix_tokens)
    }

    /// The same, whether the request continues a chain of tool calls or not.
    pub(crate) fn plan_as(
        &self,
        is_continuation: bool,
        memory: &mut Memory,
        messages: &[TrimMessage],
        prefix_tokens: u64,
    ) -> TrimPlan {
        let (boundary, tokens_max) = self.split(is_continuation, messages);
        let old = &mut memory.0[usize::from(is_continuation)];
        if old.as_ref().is_none_or(|old| old.len() != boundary) {
            let caps = Caps::new(&self.thresholds.caps, tokens_max, boundary, self.params.overrides());
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
        let (keep_recent, tokens_max) = self.limits(is_continuation);
        (boundary(messages, keep_recent), tokens_max)
    }

    /// Whether a plan for the first `known` messages is the one for all of them, with what came as it is: no boundary moves, and
    /// nothing is dropped.
    pub(crate) fn stands(&self, plan: &TrimPlan, messages: &[TrimMessage], known: usize) -> bool {
        if messages[known..].iter().any(|message| message.is_exchange) {
            return false;
        }
        let is_continuation = is_continuation(messages);
        let (keep_recent, tokens_max) = self.limits(is_continuation);
        let is_bound = keep_recent == 0 || tokens_max < UNLIMITED;
        !self.params.is_on() || !is_bound && plan.is_continuation == is_continuation
    }

    /// Exchanges that stay as they are, and the budget of the conversation.
    fn limits(&self, is_continuation: bool) -> (u32, u32) {
        let apart = is_continuation && self.params.treats_continuations_apart();
        if apart {
            (self.params.keep_recent_user_turns_in_chained_tool_calls, UNLIMITED)
        } else {
            (self.params.keep_recent_exchanges, self.params.max_history_tokens)
        }
    }

    /// What becomes of an old message that is not dropped.
    fn old(&self, message: &TrimMessage, caps: Caps, place: usize, old_messages: usize) -> MessageFate {
        let (near, far) = match message.role {
            Role::Tool => (caps.tool_near, caps.tool_oldest),
            Role::User | Role::Assistant => (caps.message_near, caps.message_oldest),
        };
        let cap = cap_at(near, far, place, old_messages);
        let kept = message.is_string.then(|| {
            kept_chars(&self.thresholds.cutting, message.text_chars, cap, |kept_chars| message.tokens_of(kept_chars))
        });
        MessageFate {
            is_dropped: false,
            kept_chars: kept.flatten(),
            forgets_thinking: self.params.trim_thinking && message.has_thinking,
        }
    }

    /// The plan with the hard cap: units are dropped, oldest first, until the rest fits: first those without protected
    /// messages, then any.
    fn dropped(&self, mut plan: TrimPlan, messages: &[TrimMessage], prefix_tokens: u64, tokens_max: u32) -> TrimPlan {
        if tokens_max >= UNLIMITED {
            return plan;
        }
        let is_sane = self.params.fidelity == TrimSource::Sane;
        let instructions = if is_sane { 0 } else { u64::from(self.params.instruction_tokens).min(prefix_tokens) };
        let count =
            |(message, fate): (&TrimMessage, &MessageFate)| (!fate.is_dropped).then(|| self.counted(message, *fate));
        let mut counted: Vec<Option<u32>> = messages.iter().zip(&plan.fates).map(count).collect();
        let held = counted.iter().flatten().copied().map(u64::from).sum::<u64>();
        let mut total = u64::from(self.thresholds.counting.reply_tokens) + instructions + held;
        for spares_protected in [true, is_sane] {
            for unit in units(messages) {
                if total <= tokens_max.into() {
                    return plan;
                }
                if spares_protected && unit.end > plan.boundary {
                    continue;
                }
                for at in unit {
                    plan.fates[at] = MessageFate { is_dropped: true, ..MessageFate::default() };
                    total -= counted[at].take().map_or(0, u64::from);
                }
            }
        }
        plan
    }

    /// Tokens of a message by the router's count, once it is cut.
    pub fn counted(&self, message: &TrimMessage, fate: MessageFate) -> u32 {
        let counting = &self.thresholds.counting;
        let text = fate.kept_chars.map_or(message.text_tokens, |kept| self.cut_tokens(message, kept));
        let calls = if self.params.fidelity == TrimSource::Sane { message.call_tokens } else { 0 };
        counting.message_tokens + counting.role_tokens + text + calls
    }

    /// Tokens of a text that was cut, its mark included.
    pub fn cut_tokens(&self, message: &TrimMessage, kept_chars: u32) -> u32 {
        message.tokens_of(kept_chars) + self.thresholds.cutting.suffix_tokens
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

/// The cache-friendly variant: what was cut stays as it was cut until the context begins with nothing again, and new cuts come
/// in batches: at the first request of an exchange, when enough exchanges went by and the plain rule would have broken a prefix
/// in between. So there are never more breaks than there.
#[derive(Clone, Default)]
pub(crate) struct Sticky {
    /// By [`TrimMessage::id`]; messages that are as they were are missing.
    /// Shared with what is forked off, until cuts advance.
    fates: Rc<IdMap<u32, MessageFate>>,
    /// Boundary at the last advance.
    boundary: usize,
    /// Exchanges at the last advance.
    exchanges: usize,
    /// Whether the plain rule broke a prefix since the last advance.
    pub plain_broke: bool,
}

impl Sticky {
    /// Whether one of these messages was changed before.
    pub fn knows(&self, messages: &[TrimMessage]) -> bool {
        messages.iter().any(|message| self.fates.contains_key(&message.id))
    }

    /// Whether cuts may advance: enough exchanges went by, and no chain of tool calls goes on.
    pub fn is_due(&self, rule: &TrimRule, messages: &[TrimMessage]) -> bool {
        let exchanges = exchanges(messages);
        // After a rewind there are fewer.
        exchanges >= self.exchanges.min(exchanges) + rule.params.sticky_step as usize && !is_continuation(messages)
    }

    /// What becomes of these messages; `is_due` says [`Sticky::is_due`].
    pub fn plan(&mut self, rule: &TrimRule, messages: &[TrimMessage], prefix_tokens: u64, is_due: bool) -> TrimPlan {
        if self.plain_broke && is_due {
            self.advance(rule, messages, prefix_tokens);
        }
        self.exchanges = self.exchanges.min(exchanges(messages));
        let held = |message: &TrimMessage| self.fates.get(&message.id).copied().unwrap_or_default();
        TrimPlan {
            fates: messages.iter().map(held).collect(),
            boundary: self.boundary,
            is_continuation: is_continuation(messages),
        }
    }

    fn advance(&mut self, rule: &TrimRule, messages: &[TrimMessage], prefix_tokens: u64) {
        // A message that only lost its thinking can still be cut.
        let held = |message: &TrimMessage| {
            self.fates.get(&message.id).copied().filter(|fate| fate.is_dropped || fate.kept_chars.is_some())
        };
        let plan = rule.plan(messages, prefix_tokens, held);
        let changed = messages.iter().zip(&plan.fates).filter(|(_, fate)| **fate != MessageFate::default());
        Rc::make_mut(&mut self.fates).extend(changed.map(|(message, &fate)| (message.id, fate)));
        (self.boundary, self.exchanges, self.plain_broke) = (plan.boundary, exchanges(messages), false);
    }
}

fn exchanges(messages: &[TrimMessage]) -> usize {
    messages.iter().filter(|message| message.is_exchange).count()
}

/// Caps in tokens at both ends of what is old. What lies between gets a cap between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Caps {
    /// For messages next to the boundary.
    pub message_near: u32,
    /// For the oldest message; never above `message_near`.
    pub message_oldest: u32,
    /// For tool results next to the boundary.
    pub tool_near: u32,
    /// For the oldest tool result; never above `tool_near`.
    pub tool_oldest: u32,
}

impl Caps {
    /// The caps for a budget of tokens and a number of old messages (policies.md 4.1, in its order of operations). A cap of
    /// `overrides` that is not 0 replaces the computed one.
    pub fn new(numbers: &CapNumbers, budget_tokens: u32, old_messages: usize, overrides: Self) -> Self {
        let thinned = part(base(numbers, budget_tokens).1, crowd_share(numbers, old_messages));
        let message_near = thinned.max(numbers.message_near_min);
        let message_oldest = part(message_near, numbers.message_oldest_share).max(numbers.message_oldest_min);
        let tool_near = part(message_near, numbers.tool_share).max(numbers.tool_near_min);
        let tool_oldest = part(message_oldest, numbers.tool_share).max(numbers.tool_oldest_min);
        let computed = Self { message_near, message_oldest, tool_near, tool_oldest };
        computed.replaced(overrides)
    }

    fn replaced(self, overrides: Self) -> Self {
        let or = |own: u32, computed: u32| if own > 0 { own } else { computed };
        let message_near = or(overrides.message_near, self.message_near);
        let tool_near = or(overrides.tool_near, self.tool_near);
        Self {
            message_near,
            message_oldest: or(overrides.message_oldest, self.message_oldest).min(message_near),
            tool_near,
            tool_oldest: or(overrides.tool_oldest, self.tool_oldest).min(tool_near),
        }
    }
}

/// The budget that counts and the base that follows from it, in tokens.
pub(crate) fn base(numbers: &CapNumbers, budget_tokens: u32) -> (u32, u32) {
    let budget = budget_tokens.clamp(numbers.budget_min, numbers.budget_max);
    (budget, part(budget, numbers.base_per_budget).clamp(numbers.base_min, numbers.base_max))
}

/// Share of the base that is left where so many messages are old.
pub(crate) fn crowd_share(numbers: &CapNumbers, old_messages: usize) -> f64 {
    let crowd = (f64::from(numbers.crowd_messages) / old_messages.max(1) as f64).min(1.0);
    numbers.crowd_floor + numbers.crowd_weight * crowd
}

/// A share of a whole, truncated.
fn part(whole: u32, share: f64) -> u32 {
    (f64::from(whole) * share) as u32
}

/// Cap in tokens of the old message at `place` (0 is the oldest) of `old_messages`, where the oldest may have `far` tokens
/// and the newest `near`.
pub fn cap_at(near: u32, far: u32, place: usize, old_messages: usize) -> u32 {
    if old_messages <= 1 || near <= far {
        return near;
    }
    let (near, far) = (f64::from(near), f64::from(far));
    (far + (near - far) * place as f64 / (old_messages - 1) as f64) as u32
}

/// Numbers of the cut (`[cutting]` of the sheet).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CutNumbers {
    chars_min: u32,
    shrink_to_pct: u32,
    /// Tokens of the mark behind a cut, which come on top of the cap.
    pub suffix_tokens: u32,
}

impl CutNumbers {
    /// Whether shrinking ends.
    pub(crate) fn ends(&self) -> bool {
        self.shrink_to_pct < 100
    }
}

/// Code points of a text that are kept; none if it fits its cap and stays whole. `tokens_of` counts the first so many of them.
/// The first try keeps the cap's share of the characters, at least a minimum; then it shrinks until it fits, if need be to
/// nothing.
pub fn kept_chars(numbers: &CutNumbers, chars: u32, cap: u32, tokens_of: impl Fn(u32) -> u32) -> Option<u32> {
    let tokens = tokens_of(chars);
    if tokens <= cap || chars == 0 {
        return None;
    }
    let share = u64::from(chars) * u64::from(cap) / u64::from(tokens);
    let mut kept = u32::try_from(share).unwrap_or(chars).max(numbers.chars_min).min(chars);
    while kept > 0 && tokens_of(kept) > cap {
        let shrunk = u64::from(kept) * u64::from(numbers.shrink_to_pct) / 100;
        kept = u32::try_from(shrunk).unwrap_or(0).min(kept - 1);
    }
    Some(kept)
}

/// The units of a conversation, in order: an assistant message that calls tools with the tool messages right after it, a
/// run of other tool messages, or one message.
pub fn units(messages: &[TrimMessage]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = messages.get(start)?;
        let takes_results = first.role == Role::Tool || first.calls_tools;
        let results = messages[start + 1..].iter().take_while(|message| takes_results && message.role == Role::Tool);
        let unit = start..start + 1 + results.count();
        start = unit.end;
        Some(unit)
    })
}
