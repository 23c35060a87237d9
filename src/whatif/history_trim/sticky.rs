//! The cache-friendly variant: what was cut stays as it was cut, and new cuts come in batches.
//!
//! Cuts advance at the first request of an exchange, when enough exchanges went by since the last time and the plain
//! rule would have broken a prefix in between. So every break here has one there, and there are never more of them.

use std::collections::BTreeMap;

use crate::whatif::history_trim::conversation::TrimMessage;
use crate::whatif::history_trim::plan::{MessageFate, TrimPlan, TrimRule};

/// What holds until the context begins with nothing again; going back to an earlier place changes no cut.
#[derive(Default)]
pub(crate) struct Sticky {
    /// By [`TrimMessage::id`]; messages that are as they were are missing.
    fates: BTreeMap<u32, MessageFate>,
    /// Boundary at the last advance.
    boundary: usize,
    /// Exchanges at the last advance.
    exchanges: usize,
    /// Whether the plain rule broke a prefix since the last advance.
    plain_broke: bool,
}

impl Sticky {
    /// What becomes of these messages. `plain` is what the plain rule would do, `plain_breaks` whether that would break a
    /// prefix.
    pub fn plan(
        &mut self,
        rule: &TrimRule,
        messages: &[TrimMessage],
        prefix_tokens: u64,
        plain: &TrimPlan,
        plain_breaks: bool,
    ) -> TrimPlan {
        self.plain_broke |= plain_breaks;
        let exchanges = messages.iter().filter(|message| message.is_exchange).count();
        // After a rewind there are fewer.
        self.exchanges = self.exchanges.min(exchanges);
        let is_due = exchanges >= self.exchanges + rule.params.sticky_step as usize;
        if is_due && self.plain_broke && !plain.is_continuation {
            return self.advance(rule, messages, prefix_tokens, exchanges);
        }
        let held = |message: &TrimMessage| self.fates.get(&message.id).copied().unwrap_or_default();
        TrimPlan {
            fates: messages.iter().map(held).collect(),
            boundary: self.boundary.min(messages.len()),
            is_continuation: plain.is_continuation,
        }
    }

    fn advance(&mut self, rule: &TrimRule, messages: &[TrimMessage], prefix_tokens: u64, exchanges: usize) -> TrimPlan {
        // A message that only lost its thinking can still be cut.
        let held = |message: &TrimMessage| {
            self.fates.get(&message.id).copied().filter(|fate| fate.is_dropped || fate.kept_chars.is_some())
        };
        let plan = rule.plan(messages, prefix_tokens, held);
        let changed = messages.iter().zip(&plan.fates).filter(|(_, fate)| **fate != MessageFate::default());
        self.fates.extend(changed.map(|(message, &fate)| (message.id, fate)));
        (self.boundary, self.exchanges, self.plain_broke) = (plan.boundary, exchanges, false);
        plan
    }
}
