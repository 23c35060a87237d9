//! The parts of a timeline while records are still added to them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::base::id::{Id, IdMap};
use crate::logs::timeline::requests::{Marks, Request, SegmentCause};
use crate::logs::trace::{Millis, Place};

/// A record, its copies merged.
#[derive(Clone, Copy)]
pub(super) struct RecordNode {
    pub(super) file: u32,
    pub(super) record: u32,
    /// Node of its parent, or [`NONE`].
    pub(super) parent: u32,
    /// The request up to whose answer the context goes that this record stands in; [`NONE`] before the first one.
    pub(super) tip: u32,
    /// Node of the next part of the same answer, or [`NONE`].
    pub(super) next: u32,
}

impl RecordNode {
    /// Whether this is the record of the copy that counts.
    pub(super) fn is_of(&self, file: u32, record: u32) -> bool {
        (self.file, self.record) == (file, record)
    }
}

/// A request that is being put together.
pub(super) struct RequestDraft {
    /// What is known of it. Instead of a chain it has a track; what went in is a range of [`Assembly::members`], and what came
    /// out begins and ends with the first and the last part of the answer: the others are found one by one
    /// ([`RecordNode::next`]).
    pub(super) request: Request,
    pub(super) is_progress: bool,
    /// Why a segment begins here, and what it goes on from.
    pub(super) opens: Option<(SegmentCause, u32)>,
    /// Nodes with what came in beside the conversation: a range of [`Assembly::members`].
    pub(super) added: Range<u32>,
}

/// Session, whether it is a subagent, which one, and where it was recorded.
pub(super) type ChainId = (Id, bool, Id, Place);

/// A chain that is being put together.
#[derive(Default)]
pub(super) struct Track {
    /// Where it was recorded.
    pub(super) place: Place,
    pub(super) requests: Vec<u32>,
    /// Nodes since the last request began.
    pub(super) pending: Vec<u32>,
    /// Nodes with something beside the conversation, since the last request began.
    pub(super) added: Vec<u32>,
    pub(super) marks: Marks,
    /// Time of the last record in the user's role since the last request began.
    pub(super) spoken: Option<Millis>,
    /// Compactions and clearings (nodes), with how many requests came before.
    pub(super) compactions: Vec<(u32, u32)>,
    pub(super) clearings: Vec<(u32, u32)>,
    /// What was pending at each clearing: a range of `arrived`.
    pub(super) arrived_at: Vec<Range<usize>>,
    /// Nodes that were pending at clearings, each once.
    pub(super) arrived: Vec<u32>,
    /// How many of those that are pending stand there.
    pub(super) known_pending: usize,
}

impl Track {
    pub(super) fn take_pending(&mut self) -> Vec<u32> {
        self.known_pending = 0;
        std::mem::take(&mut self.pending)
    }

    /// Takes down what is pending at a clearing: until the next request it only grows.
    pub(super) fn note_arrived(&mut self) {
        self.arrived.extend_from_slice(&self.pending[self.known_pending..]);
        self.known_pending = self.pending.len();
        self.arrived_at.push(self.arrived.len() - self.pending.len()..self.arrived.len());
    }
}

/// Which request made which call.
#[derive(Default)]
pub(super) struct CallsMade {
    latest: IdMap<Id, (u32, u32)>,
    /// Calls of one id: other makers' models number them anew in each conversation, or in each answer.
    again: IdMap<Id, CallsOfOneId>,
}

#[derive(Default)]
struct CallsOfOneId {
    requests: BTreeSet<u32>,
    latest_of_track: BTreeMap<u32, u32>,
}

impl CallsMade {
    pub(super) fn add(&mut self, call: Id, request: u32, track: u32) {
        let Some(before) = self.latest.insert(call, (request, track)).filter(|before| before.0 != request) else {
            return;
        };
        let again = self.again.entry(call).or_default();
        for (request, track) in [before, (request, track)] {
            again.requests.insert(request);
            again.latest_of_track.insert(track, request);
        }
    }

    pub(super) fn has(&self, call: Id, request: u32) -> bool {
        self.latest.get(&call).is_some_and(|latest| latest.0 == request)
            || self.again.get(&call).is_some_and(|again| again.requests.contains(&request))
    }

    /// The request whose call a result in a track is for; a fork may answer one of another track, if there is only one.
    pub(super) fn asker(&self, call: Id, track: u32) -> Option<u32> {
        let (latest, _) = *self.latest.get(&call)?;
        self.again.get(&call).map_or(Some(latest), |again| again.latest_of_track.get(&track).copied())
    }
}
