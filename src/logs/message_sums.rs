//! What the messages of a history come to: one by one they may be as much as half of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::logs::history::Message;
use crate::logs::trace::{Millis, NO_TIME, Place};

/// Sums over messages.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct MessageSums {
    /// Those that were billed.
    pub billed: u64,
    /// Of these, those without a `stop_reason`.
    pub unfinished: u64,
    /// The earliest record of the newest that was billed.
    pub newest: Option<Millis>,
    /// Of those that were billed, by model and session (an index into [`crate::logs::history::History::sessions`]): how many,
    /// and the most tokens that went in.
    pub models: BTreeMap<(Sym, u32), (u64, u64)>,
    /// Whose answers stand in progress records: the session and the subagent.
    pub in_progress: BTreeSet<(u32, Id)>,
}

impl MessageSums {
    /// Adds a message.
    pub fn see(&mut self, message: &Message) {
        if message.place == Place::Progress {
            self.in_progress.insert((message.session, message.agent));
        }
        if !message.billed {
            return;
        }
        self.billed += 1;
        self.unfinished += u64::from(!message.finished);
        self.newest = self.newest.max(Some(message.ts).filter(|ts| *ts != NO_TIME));
        let (messages, prompt_tokens_max) = self.models.entry((message.model, message.session)).or_default();
        *messages += 1;
        *prompt_tokens_max = message.prompt_tokens().max(*prompt_tokens_max);
    }

    /// Adds the sums over others.
    pub fn add(&mut self, other: Self) {
        self.billed += other.billed;
        self.unfinished += other.unfinished;
        self.newest = self.newest.max(other.newest);
        for (model, (more, prompt_tokens)) in other.models {
            let (messages, prompt_tokens_max) = self.models.entry(model).or_default();
            *messages += more;
            *prompt_tokens_max = prompt_tokens.max(*prompt_tokens_max);
        }
        self.in_progress.extend(other.in_progress);
    }

    /// Gives sessions the numbers that they have now.
    pub fn renumber_sessions(&mut self, number: impl Fn(u32) -> u32) {
        let known = std::mem::take(&mut self.in_progress);
        self.in_progress = known.into_iter().map(|(session, agent)| (number(session), agent)).collect();
        let known = std::mem::take(&mut self.models);
        self.models = known.into_iter().map(|((model, session), sums)| ((model, number(session)), sums)).collect();
    }
}
