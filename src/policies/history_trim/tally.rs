//! The books of a trimmed history.

use crate::model::policy::history_trim::{AgeRow, BreakCause, Role, TrimOutcome};
use crate::policies::history_trim::conversation::Message;
use crate::policies::history_trim::plan::{Fate, Plan};

impl TrimOutcome {
    /// Nothing yet; rows begin at these ages, in exchanges, ascending from 0.
    pub(super) fn with_ages(ages: &[u32]) -> Self {
        let row = |role, age_from| AgeRow { role, age_from, logged: 0, sent: 0, dropped: 0 };
        let rows = Role::ALL.into_iter().flat_map(|role| ages.iter().map(move |&age| row(role, age)));
        Self { ages: rows.collect(), ..Self::default() }
    }

    /// One more request: its plan, and the tokens of its messages in the log and as sent.
    pub(super) fn count(&mut self, messages: &[Message], plan: &Plan, logged: &[u32], sent: &[u32]) {
        let trimmed = |fate: &&Fate| !fate.is_dropped && (fate.kept_chars.is_some() || fate.forgets_thinking);
        self.requests += 1;
        self.continuations += u64::from(plan.is_continuation);
        self.requests_changed += u64::from(plan.fates.iter().any(|fate| *fate != Fate::default()));
        self.messages_trimmed += plan.fates.iter().filter(trimmed).count() as u64;
        self.messages_dropped += plan.fates.iter().filter(|fate| fate.is_dropped).count() as u64;
        let protected = plan.protected_dropped() as u64;
        self.protected_lost_requests += u64::from(protected > 0);
        self.protected_lost_messages += protected;
        let first_user = messages.iter().position(|message| message.role == Role::User);
        self.first_user_lost_requests += u64::from(first_user.is_some_and(|first| plan.fates[first].is_dropped));
        self.count_ages(messages, plan, logged, sent);
    }

    fn count_ages(&mut self, messages: &[Message], plan: &Plan, logged: &[u32], sent: &[u32]) {
        let rows = self.ages.len() / Role::ALL.len();
        let mut age = 0;
        for (place, message) in messages.iter().enumerate().rev() {
            let of_role = &mut self.ages[message.role as usize * rows..][..rows];
            let reached = of_role.partition_point(|row| row.age_from <= age);
            let row = &mut of_role[reached - 1];
            row.logged += u64::from(logged[place]);
            row.sent += u64::from(sent[place]);
            row.dropped += if plan.fates[place].is_dropped { u64::from(logged[place]) } else { 0 };
            age += u32::from(message.is_exchange);
        }
    }

    /// One more break, which hit so many tokens.
    pub(super) fn count_break(&mut self, cause: BreakCause, tokens: u64) {
        let count = self.breaks.entry(cause).or_default();
        count.events += 1;
        count.tokens += tokens;
    }
}
