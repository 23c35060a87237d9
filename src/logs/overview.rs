//! A history in numbers: what ingest and doctor print of it; and of the subagents of which nothing was recorded but
//! what the progress records of their parents repeat, what a report holds of them, in one sentence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::numbers::counted;
use crate::logs::history::{History, Merged};
use crate::logs::message_sums::MessageSums;
use crate::logs::trace::{Millis, Place, Status};

/// Counts after every copy was merged.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// First and last timestamp of all sessions.
    pub span_ms: Option<(Millis, Millis)>,
    /// Earliest record of the newest API message.
    pub newest_message_ms: Option<Millis>,
    pub sessions: u64,
    /// Main threads and subagents with calls.
    pub chains: u64,
    /// Subagents recorded in files of their own.
    pub subagents_in_files: u64,
    /// Subagents recorded as side-chain lines of the main file.
    pub subagents_inline: u64,
    /// Subagents recorded only in progress records of their parent.
    pub subagents_in_progress: u64,
    /// The same, those included that called no tool.
    #[serde(default)]
    pub answering_in_progress: u64,
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
            (status.into_str().to_owned(), count as u64)
        };
        let MessageSums { billed, unfinished, newest, in_progress: mut answering, .. } = history.summed_messages();
        let calling = history.chains.iter().filter(|chain| chain.place == Place::Progress);
        answering.extend(calling.map(|chain| (chain.session, chain.agent)));
        Self {
            span_ms: history.span(),
            newest_message_ms: newest,
            sessions: history.sessions.len() as u64,
            chains: history.chains.len() as u64,
            subagents_in_files: chains(Place::AgentFile),
            subagents_inline: chains(Place::Inline),
            subagents_in_progress: chains(Place::Progress),
            answering_in_progress: answering.len() as u64,
            calls: history.calls.len() as u64,
            status: Status::ALL.into_iter().map(status).collect(),
            messages: billed,
            messages_unfinished: unfinished,
            compactions: history.compactions(),
            evictions: history.evictions.iter().filter(|eviction| !eviction.is_left).count() as u64,
            merged: history.merged,
        }
    }

    /// Subagents, wherever they are recorded.
    pub fn subagents(&self) -> u64 {
        self.subagents_in_files + self.subagents_inline + self.subagents_in_progress
    }
}

/// What a report holds of such subagents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Holds {
    /// Their calls; their usage is unknown.
    Calls,
    /// Their requests, with the usage of a first chunk.
    FirstChunks,
    Nothing,
}

/// How many there are, and what a report holds of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InProgress {
    /// Subagents in progress records only; where a report is about calls, those that made some.
    pub subagents: u64,
    pub holds: Holds,
}

impl InProgress {
    /// The sentence for people; none if there are no such subagents.
    pub fn sentence(&self) -> Option<String> {
        let (has, is, their) = if self.subagents == 1 { ("has", "is", "its") } else { ("have", "are", "their") };
        let they = if self.subagents == 1 { "it" } else { "they" };
        let holds = match self.holds {
            Holds::Calls => format!("{their} calls are counted here, {their} usage is not known"),
            Holds::FirstChunks => {
                format!("{their} output is only counted in part here, so {they} cost more than this")
            }
            Holds::Nothing => format!("{they} {is} not counted here"),
        };
        let subagents = counted(self.subagents, "subagent");
        (self.subagents > 0).then(|| format!("{subagents} {has} no log but progress records: {holds}"))
    }

    /// The same for JSON.
    pub fn json(&self) -> Value {
        json!({ "count": self.subagents, "holds": self.holds.into_str() })
    }
}
