//! The hard cap: where the caps do not suffice, whole units are dropped, so that no call loses its result.

use std::ops::Range;

use crate::whatif::history_trim::conversation::Message;
use crate::whatif::history_trim::outcome::Role;

/// The units of a conversation, in order: an assistant message that calls tools with the tool messages right after it, a
/// run of other tool messages, or one message.
pub fn units(messages: &[Message]) -> impl Iterator<Item = Range<usize>> {
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

/// What the hard cap is given.
pub(crate) struct HardCap {
    /// Messages from here on are protected.
    pub boundary: usize,
    /// Tokens besides the messages.
    pub other_tokens: u64,
    /// Tokens that may remain.
    pub tokens_max: u64,
    /// Whether protected messages stay, whatever it costs.
    pub spares_protected: bool,
}

impl HardCap {
    /// Drops units, oldest first, until the rest fits: first those without protected messages, then any. `counted` are
    /// the tokens of each message; none of one that is dropped.
    pub fn apply(&self, messages: &[Message], counted: &mut [Option<u32>]) {
        let mut total = self.other_tokens + counted.iter().flatten().copied().map(u64::from).sum::<u64>();
        for spares_protected in [true, self.spares_protected] {
            for unit in units(messages) {
                if total <= self.tokens_max {
                    return;
                }
                if spares_protected && unit.end > self.boundary {
                    continue;
                }
                let gone = counted[unit].iter_mut().filter_map(Option::take);
                total -= gone.map(u64::from).sum::<u64>();
            }
        }
    }
}
