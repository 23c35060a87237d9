//! The books of a trimmed history, and which changes of mind break a prefix: what was sent before is now sent in
//! another way.

use crate::whatif::history_trim::conversation::TrimMessage;
use crate::whatif::history_trim::outcome::{BreakCause, MessageAgeRow, Role, TrimOutcome};
use crate::whatif::history_trim::plan::TrimPlan;
use crate::whatif::sim::view::Item;

impl TrimOutcome {
    /// Nothing yet; rows begin at these ages, in exchanges, ascending from 0.
    pub(crate) fn with_ages(ages: &[u32]) -> Self {
        let row = |role, age_from| MessageAgeRow { role, age_from, logged: 0, sent: 0, dropped: 0 };
        let rows = Role::ALL.into_iter().flat_map(|role| ages.iter().map(move |&age| row(role, age)));
        Self { ages: rows.collect(), ..Self::default() }
    }

    /// One more request: its plan, and the tokens of its messages as sent.
    pub(crate) fn count(&mut self, messages: &[TrimMessage], plan: &TrimPlan, sent: &[u32]) {
        let (mut trimmed, mut dropped) = (0, 0);
        for fate in &plan.fates {
            dropped += u64::from(fate.is_dropped);
            trimmed += u64::from(!fate.is_dropped && (fate.kept_chars.is_some() || fate.forgets_thinking));
        }
        self.requests += 1;
        self.continuations += u64::from(plan.is_continuation);
        self.requests_changed += u64::from(trimmed + dropped > 0);
        self.messages_trimmed += trimmed;
        self.messages_dropped += dropped;
        let protected = if dropped > 0 { plan.protected_dropped() as u64 } else { 0 };
        self.protected_lost_requests += u64::from(protected > 0);
        self.protected_lost_messages += protected;
        let first_user = messages.iter().position(|message| message.role == Role::User);
        self.first_user_lost_requests += u64::from(first_user.is_some_and(|first| plan.fates[first].is_dropped));
        self.count_ages(messages, plan, sent);
    }

    fn count_ages(&mut self, messages: &[TrimMessage], plan: &TrimPlan, sent: &[u32]) {
        let rows = self.ages.len() / Role::ALL.len();
        // Ages rise from the newest message on, so rows are passed one after the other.
        let (mut age, mut row) = (0, 0);
        for ((message, fate), &sent) in messages.iter().zip(&plan.fates).zip(sent).rev() {
            while row + 1 < rows && self.ages[row + 1].age_from <= age {
                row += 1;
            }
            let row = &mut self.ages[message.role as usize * rows + row];
            row.logged += u64::from(message.tokens);
            row.sent += u64::from(sent);
            row.dropped += if fate.is_dropped { u64::from(message.tokens) } else { 0 };
            age += u32::from(message.is_exchange);
        }
    }

    /// One more break, which hit so many tokens.
    pub(crate) fn count_break(&mut self, cause: BreakCause, tokens: u64) {
        let count = self.breaks.entry(cause).or_default();
        count.events += 1;
        count.tokens += tokens;
    }
}

/// How the request before was sent.
pub(crate) struct Before {
    /// What was decided.
    pub plan: TrimPlan,
    /// What was sent.
    pub items: Vec<Item>,
}

impl Before {
    /// The break between the request before and this one: its cause, and the tokens that were sent before and stood there
    /// or behind. None if all of them are sent again. `as_before` is what the plan would have been if this request had
    /// continued a chain of tool calls like the one before, or not.
    pub fn break_to(
        &self,
        plan: &TrimPlan,
        items: &[Item],
        as_before: impl Fn() -> TrimPlan,
    ) -> Option<(BreakCause, u64)> {
        if items.starts_with(&self.items) {
            return None;
        }
        let same = self.items.iter().zip(items).take_while(|(before, now)| before == now).count();
        let tokens = self.items[same..].iter().map(|item| u64::from(item.tokens)).sum();
        Some((self.cause(plan, as_before)?, tokens))
    }

    /// Why the first message whose fate changed has another one.
    fn cause(&self, plan: &TrimPlan, as_before: impl Fn() -> TrimPlan) -> Option<BreakCause> {
        let mut both = self.plan.fates.iter().zip(&plan.fates);
        let place = both.position(|(before, now)| before != now)?;
        let (before, now) = (self.plan.fates[place], plan.fates[place]);
        let switched = self.plan.is_continuation != plan.is_continuation;
        Some(if switched && as_before().fates[place] != now {
            BreakCause::FirstVsContinuation
        } else if before.is_dropped != now.is_dropped {
            BreakCause::Dropped
        } else if (place < self.plan.boundary) != (place < plan.boundary) {
            BreakCause::BoundaryMoved
        } else {
            BreakCause::CapsChanged
        })
    }
}
