//! A history in numbers: what ingest and doctor print of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::logs::history::{History, Merged};
use crate::logs::trace::{Millis, Place, Status};

/// Counts after every copy was merged.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// First and last timestamp of all sessions.
    pub span_ms: Option<(Millis, Millis)>,
    /// Sessions.
    pub sessions: u64,
    /// Main threads and subagents with calls.
    pub chains: u64,
    /// Subagents recorded in files of their own.
    pub subagents_in_files: u64,
    /// Subagents recorded as side-chain lines of the main file.
    pub subagents_inline: u64,
    /// Subagents recorded only in progress records of their parent.
    pub subagents_in_progress: u64,
    /// Tool calls, each once.
    pub calls: u64,
    /// The same by how they ended.
    pub status: BTreeMap<String, u64>,
    /// API messages, each once.
    pub messages: u64,
    /// Of these, without a `stop_reason`: their output is a lower bound.
    pub messages_unfinished: u64,
    /// Compactions, each once.
    pub compactions: u64,
    /// Results cleared by micro-compactions.
    pub evictions: u64,
    /// What was merged or set aside.
    pub merged: Merged,
}

impl Overview {
    /// Counts a history.
    pub fn of(history: &History) -> Self {
        let chains = |place| history.chains.iter().filter(|chain| chain.place == place).count() as u64;
        let status = |status: Status| {
            let count = history.calls.iter().filter(|call| call.status == status).count();
            (status.key().to_owned(), count as u64)
        };
        let billed = || history.messages.iter().filter(|message| message.billed);
        Self {
            span_ms: history.span(),
            sessions: history.sessions.len() as u64,
            chains: history.chains.len() as u64,
            subagents_in_files: chains(Place::AgentFile),
            subagents_inline: chains(Place::Inline),
            subagents_in_progress: chains(Place::Progress),
            calls: history.calls.len() as u64,
            status: Status::ALL.into_iter().map(status).collect(),
            messages: billed().count() as u64,
            messages_unfinished: billed().filter(|message| !message.finished).count() as u64,
            compactions: history.chains.iter().map(|chain| chain.compactions.len() as u64).sum(),
            evictions: history.evictions.len() as u64,
            merged: history.merged,
        }
    }

    /// Subagents, wherever they are recorded.
    pub fn subagents(&self) -> u64 {
        self.subagents_in_files + self.subagents_inline + self.subagents_in_progress
    }
}
