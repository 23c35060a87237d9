//! A timeline out of telemetry: which tools gave back how many tokens, and where contexts were compacted. There is no
//! usage, no text of people or the model and no tool list, so only some policies can say something about it. Results that
//! no request was sent any more stand behind the last request of their partition.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::id::Id;
use crate::base::tokenizer::VOCABULARIES;
use crate::logs::timeline::requests::{
    Block, BlockKind, Boundary, Chain, Marks, NONE, Request, Segment, SegmentCause, Session, Timeline, ToolCall,
    Trigger,
};
use crate::logs::trace::{Millis, NO_TIME, Place, Usage};
use crate::telemetry::log::{EventLog, NO_STEP, RecordedEvent};

/// Lays recorded responses out as requests: every step asked for its tools, and the step after it was sent their answers
/// as the pipeline shortened them. Sizes are those of tool responses alone; nothing counts as billed.
pub fn timeline(log: &EventLog) -> Timeline {
    let mut draft = TimelineDraft {
        timeline: Timeline { names: (*log.names).clone(), ..Timeline::default() },
        mains: BTreeSet::new(),
    };
    // What was only prefetched was never shown to anybody.
    let shown: Vec<RecordedEvent> = log.events.iter().filter(|event| !event.plan.prefetched).copied().collect();
    for events in shown.chunk_by(|a, b| (a.session, a.chain) == (b.session, b.chain)) {
        draft.chain(log, events);
    }
    draft.timeline
}

struct TimelineDraft {
    timeline: Timeline,
    /// Sessions whose main thread has been seen: the first of their chains.
    mains: BTreeSet<u32>,
}

impl TimelineDraft {
    fn chain(&mut self, log: &EventLog, events: &[RecordedEvent]) {
        let number = self.timeline.chains.len() as u32;
        let session = self.session(log, &events[0]);
        let start = (self.timeline.requests.len() as u32, self.timeline.segments.len() as u32);
        let mut answers: Vec<Block> = Vec::new();
        let mut before: Option<(u32, u64)> = None;
        for step in events.chunk_by(|a, b| a.step == b.step && a.step != NO_STEP && a.partition == b.partition) {
            let first = &step[0];
            let opens = before.is_none_or(|(partition, _)| partition != first.partition);
            if opens {
                self.segment(number, before.is_some());
                // What was answered before a compaction is in its summary.
                self.timeline.blocks.append(&mut answers);
            }
            let carried = before.filter(|_| !opens).map_or(0, |(_, context)| context);
            let context = self.request(number, step, std::mem::take(&mut answers), carried, &mut answers);
            before = Some((first.partition, context));
        }
        self.timeline.blocks.append(&mut answers);
        let requests = start.0..self.timeline.requests.len() as u32;
        let segments = start.1..self.timeline.segments.len() as u32;
        let is_main = self.mains.insert(session);
        let agent = if is_main { Id::NONE } else { Id::of(&number.to_le_bytes()) };
        let place = if agent.is_some() { Place::AgentFile } else { Place::Main };
        let (agent_type, names_model) = Default::default();
        self.timeline.chains.push(Chain { session, agent, place, agent_type, names_model, requests, segments });
    }

    fn session(&mut self, log: &EventLog, event: &RecordedEvent) -> u32 {
        // Events are in order of their sessions.
        while self.timeline.sessions.len() as u32 <= event.session {
            let name = &log.sessions[self.timeline.sessions.len()];
            let id = Id::pseudonym(name.as_bytes());
            self.timeline.sessions.push(Session { id, project: Id::NONE, ts_first: event.ts, is_background: false });
        }
        event.session
    }

    fn segment(&mut self, chain: u32, compacted: bool) {
        let request = self.timeline.requests.len() as u32;
        let cause = if compacted { SegmentCause::Compaction } else { SegmentCause::Start };
        self.timeline.segments.push(Segment { chain, requests: request..request, after: NONE, cause });
        if compacted {
            self.timeline.boundaries.push(Boundary {
                chain,
                request,
                ts: NO_TIME,
                trigger: Trigger::Unknown,
                pre_tokens: None,
                summary: NONE,
            });
        }
    }

    /// Adds a request that was sent `answers` besides `carried` tokens and asked for the calls of `step`; their answers
    /// go to `next`. Gives the tokens of its context.
    fn request(
        &mut self,
        chain: u32,
        step: &[RecordedEvent],
        answers: Vec<Block>,
        carried: u64,
        next: &mut Vec<Block>,
    ) -> u64 {
        let timeline = &mut self.timeline;
        let number = timeline.requests.len() as u32;
        let start = timeline.blocks.len() as u32;
        let grown: u64 = answers.iter().map(|block| u64::from(block.tokens[0])).sum();
        for block in answers {
            timeline.calls[block.call as usize].answered = timeline.blocks.len() as u32;
            timeline.blocks.push(block);
        }
        let middle = timeline.blocks.len() as u32;
        for event in step {
            let call = timeline.calls.len() as u32;
            let record = Id::of(&event.call.to_le_bytes());
            timeline.calls.push(ToolCall {
                id: record,
                tool: event.tool,
                path: event.path.checked_sub(1).unwrap_or(NONE),
                asked: timeline.blocks.len() as u32,
                answered: NONE,
                text: NONE,
                is_error: false,
                file: 0,
                file_kind: timeline.names.intern(""),
            });
            let block = Block {
                kind: BlockKind::ToolUsage,
                chars: 0,
                bytes: 0,
                tokens: [0; VOCABULARIES.len()],
                call,
                is_string: false,
                media: 0,
                record,
            };
            timeline.blocks.push(block);
            let tokens = [event.sent; VOCABULARIES.len()];
            let (chars, bytes) = (event.bytes, event.bytes);
            next.push(Block { kind: BlockKind::ToolResult, chars, bytes, tokens, is_string: true, ..block });
        }
        let end = timeline.blocks.len() as u32;
        let segment = timeline.segments.len() as u32 - 1;
        timeline.segments[segment as usize].requests.end = number + 1;
        let (first, last): (Millis, Millis) = (step[0].ts, step[step.len() - 1].ts);
        timeline.requests.push(Request {
            id: Id::of(&[chain.to_le_bytes(), number.to_le_bytes()].concat()),
            chain,
            segment,
            turn: 0,
            model: timeline.names.intern(""),
            version: timeline.names.intern(""),
            setting: timeline.requests.last().map_or_else(Arc::default, |before| Arc::clone(&before.setting)),
            start: first,
            end: last,
            // What a person asked is not recorded. A token stands for it where nothing else does: a request without any
            // context would count as one without usage.
            tokens: Usage {
                input: u64::from(carried + grown == 0),
                cache_read: carried,
                cache_creation: grown,
                ..Usage::default()
            }
            .into(),
            inputs: start..middle,
            outputs: middle..end,
            marks: Marks::default(),
        });
        carried + grown
    }
}
