//! The books of a trimmed history.

use crate::whatif::history_trim::conversation::Message;
use crate::whatif::history_trim::outcome::{AgeRow, BreakCause, Role, TrimOutcome};
use crate::whatif::history_trim::plan::Plan;

impl TrimOutcome {
    /// Nothing yet; rows begin at these ages, in exchanges, ascending from 0.
    pub(crate) fn with_ages(ages: &[u32]) -> Self {
        let row = |role, age_from| AgeRow { role, age_from, logged: 0, sent: 0, dropped: 0 };
        let rows = Role::ALL.into_iter().flat_map(|role| ages.iter().map(move |&age| row(role, age)));
        Self { ages: rows.collect(), ..Self::default() }
    }

    /// One more request: its plan, and the tokens of its messages as sent.
    pub(crate) fn count(&mut self, messages: &[Message], plan: &Plan, sent: &[u32]) {
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

    fn count_ages(&mut self, messages: &[Message], plan: &Plan, sent: &[u32]) {
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
