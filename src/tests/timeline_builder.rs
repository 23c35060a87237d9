//! Hand-made [`Timeline`]s: a story told step by step, with a clock that moves only when it is told to.
//!
//! ```ignore
//! let mut log = Story::new();
//! log.session("a", "/project").hour();          // a main thread whose writes live an hour
//! log.human(40).ask(0, 27_979, 8);              // (read, write, input) of the first request
//! log.says(120).calls("Read", "/a.md", 30);     // what it answered
//! log.wait(5).result(900).ask(27_979, 876, 1);  // five seconds later, with the answer of the call
//! let timeline = log.done();
//! ```

#![allow(dead_code, reason = "a vocabulary: not every test needs every word")]

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::logs::timeline::requests::{
    Block, BlockKind, Boundary, Chain, Clearing, Marks, NONE, Occurrence, Reference, ReferenceKind, Request,
    RequestSetting, Segment, SegmentCause, Session, Timeline, ToolCall, Trigger, Utterance,
};
use crate::logs::timeline::words::{Word, WordList};
use crate::logs::trace::{Millis, NO_TIME, Place, Usage};

/// Which lifetime the writes have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    FiveMinutes,
    Hour,
}

/// A timeline in the making. Chains are told one after the other.
pub struct Story {
    timeline: Timeline,
    now: Millis,
    took: Millis,
    lifetime: Lifetime,
    model: Sym,
    version: Sym,
    /// First block of what came in since the last request.
    pending: u32,
    marks: Marks,
    cause: Option<SegmentCause>,
    human_since: bool,
    /// What the next segment goes on from, if that is not the request before.
    base: Option<u32>,
    /// Calls that wait for their results.
    open: Vec<u32>,
    messages: u32,
    words: WordList,
}

/// Makes another word of one.
pub fn change_word(timeline: &mut Timeline, place: usize, change: impl Fn(&mut Word)) {
    let mut words: Vec<Word> = timeline.words.of(0..timeline.words.rows().len() as u32).collect();
    change(&mut words[place]);
    let mut list = WordList::default();
    words.into_iter().for_each(|word| list.push(word));
    timeline.words = list.finish();
}

/// The model of a story that names none.
pub const MODEL: &str = "claude-opus-4-5-20251101";
/// Where the clock of a story starts: 1 February 2026, 12:00 UTC.
pub const NOON: Millis = 1_769_947_200_000;

impl Default for Story {
    fn default() -> Self {
        Self::new()
    }
}

impl Story {
    /// Nothing yet.
    pub fn new() -> Self {
        let mut timeline = Timeline::default();
        let (model, version) = (timeline.names.intern(MODEL), timeline.names.intern("2.1.30"));
        Self {
            timeline,
            words: WordList::default(),
            now: NOON,
            took: 1_000,
            lifetime: Lifetime::FiveMinutes,
            model,
            version,
            pending: 0,
            marks: Marks::default(),
            cause: None,
            human_since: false,
            base: None,
            open: Vec::new(),
            messages: 0,
        }
    }

    /// A session with its main thread begins. Sessions must come in order of their first record.
    pub fn session(&mut self, name: &str, project: &str) -> &mut Self {
        let session = Session {
            id: Id::pseudonym(name.as_bytes()),
            project: Id::pseudonym(project.as_bytes()),
            ts_first: self.now,
            is_background: false,
        };
        self.timeline.sessions.push(session);
        self.chain(Id::NONE, Place::Main)
    }

    /// A subagent of the session begins; the main thread is over.
    pub fn agent(&mut self, name: &str) -> &mut Self {
        self.chain(Id::of(name.as_bytes()), Place::AgentFile)
    }

    fn chain(&mut self, agent: Id, place: Place) -> &mut Self {
        let session = self.timeline.sessions.len() as u32 - 1;
        let (requests, segments) = (self.timeline.requests.len() as u32, self.timeline.segments.len() as u32);
        let chain = Chain {
            session,
            agent,
            place,
            agent_type: Sym::default(),
            names_model: false,
            requests: requests..requests,
            segments: segments..segments,
        };
        self.timeline.chains.push(chain);
        (self.cause, self.human_since, self.marks) = (Some(SegmentCause::Start), false, Marks::default());
        self.open.clear();
        self
    }

    /// Writes live five minutes from here on (as at the start).
    pub fn five_minutes(&mut self) -> &mut Self {
        self.lifetime = Lifetime::FiveMinutes;
        self
    }

    /// Writes live an hour from here on.
    pub fn hour(&mut self) -> &mut Self {
        self.lifetime = Lifetime::Hour;
        self
    }

    /// Another model answers from here on.
    pub fn model(&mut self, id: &str) -> &mut Self {
        self.model = self.timeline.names.intern(id);
        self
    }

    /// The client has another version from here on.
    pub fn version(&mut self, version: &str) -> &mut Self {
        self.version = self.timeline.names.intern(version);
        self
    }

    /// Seconds pass (negative: the clock was set back).
    pub fn wait(&mut self, seconds: i64) -> &mut Self {
        self.now += seconds * 1_000;
        self
    }

    /// The clock is set, in seconds after [`NOON`].
    pub fn at(&mut self, seconds: i64) -> &mut Self {
        self.now = NOON + seconds * 1_000;
        self
    }

    /// Requests take so many milliseconds from here on (one second at first).
    pub fn takes(&mut self, millis: Millis) -> &mut Self {
        self.took = millis;
        self
    }

    fn block(&mut self, kind: BlockKind, chars: u32, call: u32) -> u32 {
        let at = self.timeline.blocks.len() as u32;
        let record = Id::of(format!("record {} {at}", self.messages).as_bytes());
        // A plausible count for both vocabularies; tests that care set their own.
        let tokens = [chars.div_ceil(4); 2];
        let is_string = kind == BlockKind::Human;
        self.timeline.blocks.push(Block { kind, chars, bytes: chars, tokens, call, is_string, media: 0, record });
        at
    }

    /// A person writes.
    pub fn human(&mut self, chars: u32) -> &mut Self {
        self.block(BlockKind::Human, chars, NONE);
        self.marks.set(Marks::HUMAN);
        self.human_since = true;
        self
    }

    /// Text that no person wrote comes in.
    pub fn injected(&mut self, chars: u32) -> &mut Self {
        self.block(BlockKind::Injected, chars, NONE);
        self
    }

    /// An image comes in.
    pub fn media(&mut self) -> &mut Self {
        self.block(BlockKind::Media, 0, NONE);
        self
    }

    /// The oldest open call is answered.
    pub fn result(&mut self, chars: u32) -> &mut Self {
        let call = self.open.remove(0);
        let at = self.block(BlockKind::ToolResult, chars, call);
        let call = &mut self.timeline.calls[call as usize];
        // Texts of one size are taken for the same.
        (call.answered, call.text) = (at, chars);
        self
    }

    /// The oldest open call fails.
    pub fn error(&mut self, chars: u32) -> &mut Self {
        let call = self.open[0];
        self.timeline.calls[call as usize].is_error = true;
        self.result(chars)
    }

    /// Something happens before the next request.
    pub fn mark(&mut self, marks: Marks) -> &mut Self {
        self.marks.set(marks);
        self
    }

    /// The context is compacted; a summary stands for it.
    pub fn compaction(&mut self, trigger: Trigger, pre_tokens: Option<u64>, summary_chars: u32) -> &mut Self {
        let (chain, request) = self.place();
        let summary = self.block(BlockKind::Summary, summary_chars, NONE);
        self.timeline.boundaries.push(Boundary { chain, request, ts: NO_TIME, trigger, pre_tokens, summary });
        self.cause = Some(SegmentCause::Compaction);
        self.open.clear();
        self.mark(Marks::COMPACTION)
    }

    /// The client clears the results of these calls (indices into [`Timeline::calls`]).
    pub fn clearing(&mut self, pre_tokens: u64, tokens_saved: u64, calls: &[u32]) -> &mut Self {
        let (chain, request) = self.place();
        let id = Id::of(format!("clearing {request}").as_bytes());
        let calls = calls.iter().map(|&call| self.timeline.calls[call as usize].id).collect();
        let (pre_tokens, tokens_saved) = (Some(pre_tokens), Some(tokens_saved));
        self.timeline.clearings.push(Clearing {
            id,
            chain,
            request,
            pre_tokens,
            tokens_saved,
            calls,
            arrived: Default::default(),
        });
        self.mark(Marks::MICROCOMPACTION)
    }

    /// The next request opens a segment for this reason.
    pub fn segment(&mut self, cause: SegmentCause) -> &mut Self {
        self.cause = Some(cause);
        if cause == SegmentCause::Rewind { self.mark(Marks::REWIND) } else { self }
    }

    /// The conversation goes back to where that request (counted over the whole story) had been answered; as the first
    /// thing of a chain: it is forked off there.
    pub fn back_to(&mut self, request: u32) -> &mut Self {
        self.base = Some(request);
        let forks = self.cause == Some(SegmentCause::Start);
        if forks { self } else { self.segment(SegmentCause::Rewind) }
    }

    fn place(&self) -> (u32, u32) {
        (self.timeline.chains.len() as u32 - 1, self.timeline.requests.len() as u32)
    }

    /// A request goes out with all that came in: tokens read, written and neither. The clock then stands at its end.
    pub fn ask(&mut self, read: u64, write: u64, input: u64) -> &mut Self {
        let mut usage = Usage { input, cache_creation: write, cache_read: read, output: 0, ..Usage::default() };
        match self.lifetime {
            Lifetime::FiveMinutes => usage.cache_creation_5m = write,
            Lifetime::Hour => usage.cache_creation_1h = write,
        }
        self.ask_with(usage)
    }

    /// As [`Story::ask`], with any usage.
    pub fn ask_with(&mut self, usage: Usage) -> &mut Self {
        let (chain, index) = self.place();
        if let Some(cause) = self.cause.take() {
            let after = match cause {
                SegmentCause::Start | SegmentCause::Compaction => NONE,
                SegmentCause::Rewind | SegmentCause::Shrink => index - 1,
            };
            let segment = Segment { chain, requests: index..index, cause, after };
            self.timeline.segments.push(segment);
            self.timeline.chains[chain as usize].segments.end += 1;
        }
        let before = self.timeline.requests_of(chain).last();
        let turn = before.map_or(0, |before| before.turn + u32::from(self.human_since));
        if before.is_some_and(|before| before.model != self.model) {
            self.marks.set(Marks::MODEL_CHANGE);
        }
        if before.is_some_and(|before| before.version != self.version) {
            self.marks.set(Marks::VERSION_CHANGE);
        }
        let blocks = self.timeline.blocks.len() as u32;
        self.messages += 1;
        let request = Request {
            id: Id::of(format!("message {index}").as_bytes()),
            chain,
            segment: self.timeline.segments.len() as u32 - 1,
            turn,
            model: self.model,
            version: self.version,
            setting: RequestSetting::default().into(),
            start: self.now,
            end: self.now + self.took,
            tokens: usage.into(),
            inputs: self.pending..blocks,
            outputs: blocks..blocks,
            marks: self.marks,
        };
        self.timeline.requests.push(request);
        self.timeline.chains[chain as usize].requests.end += 1;
        self.timeline.segments.last_mut().expect("a segment was opened").requests.end += 1;
        self.now += self.took;
        (self.pending, self.marks, self.human_since) = (blocks, Marks::default(), false);
        if let Some(base) = self.base.take() {
            self.timeline.segments.last_mut().expect("a segment was opened").after = base;
        }
        self
    }

    fn answer(&mut self, kind: BlockKind, chars: u32, call: u32) -> u32 {
        let at = self.block(kind, chars, call);
        let request = self.timeline.requests.last_mut().expect("something was asked");
        assert_eq!(request.outputs.end, at, "answers come before the next inputs");
        request.outputs.end += 1;
        self.pending = at + 1;
        at
    }

    /// The last request is answered with text.
    pub fn says(&mut self, chars: u32) -> &mut Self {
        self.answer(BlockKind::Text, chars, NONE);
        self
    }

    /// The last request is answered with thinking.
    pub fn thinks(&mut self, chars: u32) -> &mut Self {
        self.answer(BlockKind::Thinking, chars, NONE);
        self
    }

    /// The last request is answered with a call. An empty path is none.
    pub fn calls(&mut self, tool: &str, path: &str, chars: u32) -> &mut Self {
        let call = self.timeline.calls.len() as u32;
        let asked = self.answer(BlockKind::ToolUsage, chars, call);
        let is_markdown = path.ends_with(".md");
        let is_workspace = path.ends_with("CLAUDE.md") || path.ends_with("AGENTS.md") || path.contains(".claude/");
        let file = u8::from(is_markdown) * ToolCall::MARKDOWN + u8::from(is_workspace) * ToolCall::WORKSPACE;
        let [tool, file_kind] =
            [tool, if path.is_empty() { "" } else { "other" }].map(|name| self.timeline.names.intern(name));
        let path = if path.is_empty() { NONE } else { self.timeline.names.intern(path).0 };
        let id = Id::of(format!("toolu {call}").as_bytes());
        self.timeline.calls.push(ToolCall {
            id,
            tool,
            path,
            asked,
            answered: NONE,
            text: NONE,
            is_error: false,
            file,
            file_kind,
        });
        self.open.push(call);
        self
    }

    /// The last answer took up something that stood in these places (block, end in code points) before.
    pub fn refers(&mut self, kind: ReferenceKind, call: u32, places: &[(u32, u32)]) -> &mut Self {
        let first = self.timeline.sources.len() as u32;
        let found = places.iter().map(|&(block, end_chars)| Occurrence { block, end_chars });
        self.timeline.sources.extend(found);
        let sources = first..self.timeline.sources.len() as u32;
        let request = self.timeline.requests.len() as u32 - 1;
        self.timeline.references.push(Reference { kind, request, call, sources, cut: false });
        self
    }

    /// The words of the newest block, each once; terms and words are the same.
    pub fn words(&mut self, words: &[&str]) -> &mut Self {
        let first = self.words.end();
        for word in words {
            let hash = xxhash_rust::xxh3::xxh3_64(word.to_lowercase().as_bytes());
            self.words.push(Word { hash, count: 1, position: 0 });
        }
        let range = first..self.words.end();
        let block = self.last_block();
        self.timeline.utterances.push(Utterance { block, terms: range.clone(), words: range });
        self
    }

    /// Index of the newest block.
    pub fn last_block(&self) -> u32 {
        self.timeline.blocks.len() as u32 - 1
    }

    /// Index of the newest call.
    pub fn last_call(&self) -> u32 {
        self.timeline.calls.len() as u32 - 1
    }

    /// The timeline so far, for changes that the story has no words for.
    pub fn timeline(&mut self) -> &mut Timeline {
        &mut self.timeline
    }

    /// The timeline. What came in after the last request of all is not part of it.
    pub fn done(mut self) -> Timeline {
        let used = self.timeline.requests.last().map_or(0, |request| request.outputs.end);
        self.timeline.blocks.truncate(used as usize);
        self.timeline.words = self.words.finish();
        self.timeline
    }
}
