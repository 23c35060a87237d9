//! What trimming did to the contexts of a history, and whether it paid; and which changes of mind break a prefix: what
//! was sent before is now sent in another way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::whatif::history_trim::conversation::TrimMessage;
use crate::whatif::history_trim::plan::TrimPlan;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::figures::CostVerdict;
use crate::whatif::sim::view::Item;

/// Who speaks in a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person or the client.
    #[default]
    User = 0,
    /// The model.
    Assistant = 1,
    Tool = 2,
}

impl Role {
    /// All roles, by number.
    pub const ALL: [Self; 3] = [Self::User, Self::Assistant, Self::Tool];
}

/// Why a prefix that the log would have kept was changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum BreakCause {
    /// A message became old, or was old and no longer is.
    BoundaryMoved,
    /// A message was old already and got another cap.
    CapsChanged,
    /// The first request of a turn and its continuations have different histories.
    FirstVsContinuation,
    /// A message was dropped, or came back.
    Dropped,
}

/// Breaks of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct BreakCount {
    /// Requests.
    pub events: u64,
    /// Tokens of messages that had been sent and stood at or behind the change.
    pub tokens: u64,
}

/// Tokens of the messages of one role and age, summed over requests: a message counts in every request that sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MessageAgeRow {
    pub role: Role,
    /// Least age of the row, in exchanges that came after.
    pub age_from: u32,
    /// Tokens in the log.
    pub logged: u64,
    /// Tokens that were sent. Marks of cuts are in it, so that it can exceed `logged` by a few.
    pub sent: u64,
    /// Of `logged`, those of messages that were dropped.
    pub dropped: u64,
}

/// What trimming did, summed over requests.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct TrimOutcome {
    pub requests: u64,
    /// Of these, continuations of a chain of tool calls.
    pub continuations: u64,
    /// Requests of which anything was cut or dropped.
    pub requests_changed: u64,
    /// Tokens of all contexts in the log, prefix included.
    pub logged: u64,
    /// Tokens of all contexts as they were sent.
    pub sent: u64,
    /// Messages that were cut, once per request.
    pub messages_trimmed: u64,
    /// Messages that were dropped, once per request.
    pub messages_dropped: u64,
    /// Requests for which the second pass of the hard cap dropped protected messages.
    pub protected_lost_requests: u64,
    /// Those messages, once per request.
    pub protected_lost_messages: u64,
    /// Requests that lost the first user message of their segment.
    pub first_user_lost_requests: u64,
    /// By role, then age.
    pub ages: Vec<MessageAgeRow>,
    /// Prefix breaks that the log does not have, by cause.
    pub breaks: BTreeMap<BreakCause, BreakCount>,
}

/// The cost of the log and of a policy, by the same simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TrimCosts {
    /// Without the policy.
    pub baseline: Cost,
    pub policy: Cost,
    pub verdict: CostVerdict,
}

/// Numbers of the formulas of caps (`[caps]` of the sheet). Budgets and caps are in tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CapNumbers {
    /// Least budget that counts.
    pub budget_min: u32,
    /// Largest budget that counts.
    pub budget_max: u32,
    /// Base per token of the budget.
    pub base_per_budget: f64,
    /// Least base.
    pub base_min: u32,
    pub base_max: u32,
    pub crowd_messages: u32,
    /// Share of the base that is left in the largest crowd.
    pub crowd_floor: f64,
    /// Share that is added to it where nothing is crowded.
    pub crowd_weight: f64,
    /// Least cap next to the boundary.
    pub message_near_min: u32,
    /// Cap of the oldest message per cap next to the boundary.
    pub message_oldest_share: f64,
    /// Least cap of the oldest message.
    pub message_oldest_min: u32,
    pub tool_share: f64,
    /// Least cap of a result next to the boundary.
    pub tool_near_min: u32,
    /// Least cap of the oldest result.
    pub tool_oldest_min: u32,
}

/// Edits under a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Edits {
    /// Those whose source was cut or dropped.
    pub lost: u64,
    /// All that had a source in the context of the log.
    pub all: u64,
}

/// Everything that is said about a trimmed history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TrimReport {
    pub name: String,
    /// What the same settings cost in other logs, in per cent: writes for 5 minutes / for an hour.
    pub elsewhere: Option<String>,
    pub outcome: TrimOutcome,
    /// With the provider's cache.
    pub cached: TrimCosts,
    /// Tokens with the policy and the cache, as billed.
    pub spent: Spent,
    /// Edits that were looked at, and those whose source was no longer in the context.
    pub edits: Edits,
    /// Without any, for users of providers that have none.
    pub uncached: TrimCosts,
}

impl TrimOutcome {
    /// Nothing yet; rows begin at these ages, in exchanges, ascending from 0.
    pub(crate) fn with_ages(ages: &[u32]) -> Self {
        let row = |role, age_from| MessageAgeRow { role, age_from, logged: 0, sent: 0, dropped: 0 };
        let rows = Role::ALL.into_iter().flat_map(|role| ages.iter().map(move |&age| row(role, age)));
        Self { ages: rows.collect(), ..Self::default() }
    }

    /// Breaks of all causes.
    pub fn breaks_total(&self) -> u64 {
        self.breaks.values().map(|count| count.events).sum()
    }

    /// One more request, with what it comes to alone; breaks are counted apart.
    pub(crate) fn add(&mut self, one: &Self) {
        self.requests += one.requests;
        self.continuations += one.continuations;
        self.requests_changed += one.requests_changed;
        self.logged += one.logged;
        self.sent += one.sent;
        self.messages_trimmed += one.messages_trimmed;
        self.messages_dropped += one.messages_dropped;
        self.protected_lost_requests += one.protected_lost_requests;
        self.protected_lost_messages += one.protected_lost_messages;
        self.first_user_lost_requests += one.first_user_lost_requests;
        for (row, one) in self.ages.iter_mut().zip(&one.ages) {
            row.logged += one.logged;
            row.sent += one.sent;
            row.dropped += one.dropped;
        }
    }

    /// The same request with more messages behind the newest exchange, which are sent as they are.
    pub(crate) fn extend(&mut self, messages: &[TrimMessage]) {
        let rows = self.ages.len() / Role::ALL.len();
        for message in messages {
            let row = &mut self.ages[message.role as usize * rows];
            row.logged += u64::from(message.tokens);
            row.sent += u64::from(message.tokens);
        }
    }

    /// Counts a request: its plan, and the tokens of its messages as sent.
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
#[derive(Clone)]
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
        as_before: impl FnOnce() -> TrimPlan,
    ) -> Option<(BreakCause, u64)> {
        let same = self.items.iter().zip(items).take_while(|(before, now)| before == now).count();
        if same == self.items.len() {
            return None;
        }
        let tokens = self.items[same..].iter().map(|item| u64::from(item.tokens)).sum();
        Some((self.cause(plan, as_before)?, tokens))
    }

    /// Why the first message whose fate changed has another one.
    fn cause(&self, plan: &TrimPlan, as_before: impl FnOnce() -> TrimPlan) -> Option<BreakCause> {
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
