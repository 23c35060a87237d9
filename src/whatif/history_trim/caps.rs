//! How many tokens an old message may have: four caps that follow from the budget and from how many messages are old,
//! its own between them by its place, and how much of its text stays when it exceeds that. Where the caps do not
//! suffice, the hard cap drops whole units, so that no call loses its result.

use std::ops::Range;

use serde::Deserialize;

use crate::whatif::history_trim::conversation::TrimMessage;
use crate::whatif::history_trim::outcome::{CapNumbers, Role};

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
#[serde(deny_unknown_fields)]
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

/// Code points of a text that are kept; none if it fits its cap and stays whole. `tokens_of` counts the first so many code
/// points of the text.
///
/// The first try keeps the cap's share of the characters, but not less than a minimum; then it shrinks until it fits, if
/// need be to nothing: a text of characters with several tokens each cannot always fit.
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
