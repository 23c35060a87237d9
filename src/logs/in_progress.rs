//! Subagents of which nothing was recorded but what the progress records of their parents repeat: what a report holds of
//! them, in one sentence.

use serde_json::{Value, json};

use crate::base::numbers::counted;

/// What a report holds of such subagents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// Their calls; their usage is unknown.
    Calls,
    /// Their requests, with the usage of a first chunk.
    FirstChunks,
    /// Nothing.
    Nothing,
}

/// How many there are, and what a report holds of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InProgress {
    /// Subagents with calls in progress records only.
    pub subagents: u64,
    /// What the report holds of them.
    pub holds: Holds,
}

impl InProgress {
    /// The sentence for people; none if there are no such subagents.
    pub fn sentence(&self) -> Option<String> {
        let holds = match self.holds {
            Holds::Calls => "their calls are counted here, their usage is not known",
            Holds::FirstChunks => "their requests are counted here, with the usage of a first chunk",
            Holds::Nothing => "they are not counted here",
        };
        let subagents = counted(self.subagents, "subagent");
        (self.subagents > 0).then(|| format!("{subagents} known from progress records only: {holds}"))
    }

    /// The same for JSON.
    pub fn json(&self) -> Value {
        let holds = match self.holds {
            Holds::Calls => "calls",
            Holds::FirstChunks => "first_chunks",
            Holds::Nothing => "nothing",
        };
        json!({ "count": self.subagents, "holds": holds })
    }
}
