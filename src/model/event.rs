//! Tool responses as they are known after the fact, whoever recorded them: the live pipeline in its telemetry, or devboy
//! when it replays the logs. Fingerprints, rules R1 to R7 and their gate are made from these rows alone.

use crate::model::id::Id;
use crate::model::names::{Names, Sym};
use crate::model::savings::LayerId;
use crate::model::trace::Millis;

/// [`Event::format`] when no format was used, or one that devboy does not know.
pub const NO_FORMAT: u8 = u8::MAX;
/// [`Event::step`] when the recorder did not say.
pub const NO_STEP: u32 = u32::MAX;

/// One recorded response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Index into [`EventLog::sessions`].
    pub session: u32,
    /// Who was shown it: number of the main thread or subagent, distinct over all sessions.
    pub chain: u32,
    /// Compactions of that chain before.
    pub partition: u32,
    /// Number of the API message within the chain; [`NO_STEP`] if unknown.
    pub step: u32,
    /// When.
    pub ts: Millis,
    /// First 4 bytes of SHA-256 of the `tool_use` id.
    pub call: u32,
    /// Tool.
    pub tool: Sym,
    /// Endpoint class.
    pub endpoint: Sym,
    /// First 4 bytes of the pseudonym of the file named; 0 without one.
    pub path: u32,
    /// Fingerprint of the content (16 bytes of SHA-256); none if it was not recorded.
    pub body: Id,
    /// Bytes of the response.
    pub bytes: u32,
    /// Number of the [`crate::model::body_shape::BodyShape`].
    pub shape: u8,
    /// Inner formats, one bit each.
    pub inner_formats: u16,
    /// Nesting of JSON containers; 0 if there are none or the recorder did not say.
    pub depth: u16,
    /// Columns of the first Markdown table; 0 if unknown.
    pub columns: u32,
    /// Rows of the same.
    pub rows: u32,
    /// Elements of a JSON array or fields of an object; 0 if unknown.
    pub items: u32,
    /// Mean Jaccard index of the key sets of an array of objects; NaN if unknown.
    pub key_stability: f32,
    /// The layer that decided.
    pub layer: LayerId,
    /// Number of the format that L1 or L2 used; [`NO_FORMAT`] otherwise.
    pub format: u8,
    /// Tokens as it is.
    pub baseline: u32,
    /// Tokens sent.
    pub sent: u32,
    /// Responses that this one stands for: one by the share that was recorded.
    pub weight: f64,
    /// Whether text stood beside images or documents, so that no layer could act.
    pub mixed: bool,
    /// Tokens of the call's name in a hint; 0 if unknown.
    pub handle_tokens: u8,
    /// What the planner recorded.
    pub plan: Plan,
    /// First of the known encodings in [`EventLog::encodings`], and how many there are.
    pub encodings: (u32, u8),
}

impl Event {
    /// Whether the planner did this: fetched a response ahead, or declined to and so got none.
    pub fn is_planned(&self) -> bool {
        self.plan.prefetched || self.plan.declined.is_some() && self.bytes == 0
    }
}

/// What the planner recorded about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Plan {
    /// Whether it was fetched ahead.
    pub prefetched: bool,
    /// Tokens that the planner expected; 0 if it expected nothing.
    pub predicted: u32,
    /// Whether the agent used it; none if nobody looked.
    pub cited: Option<bool>,
    /// Whether the planner declined to fetch it.
    pub declined: Option<Decline>,
}

impl Plan {
    /// Whether a response cost 130 % of what was expected, or more (published definition).
    pub fn is_overrun(&self, tokens: u32) -> bool {
        self.predicted > 0 && u64::from(tokens) * 10 >= u64::from(self.predicted) * 13
    }
}

/// Why the planner declined (published spellings).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decline {
    /// Over the token budget.
    Budget,
    /// Too improbable.
    LowProbability,
    /// Something better took its place.
    Preempted,
    /// A prerequisite was missing.
    PrereqMissing,
}

impl Decline {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Budget, Self::LowProbability, Self::Preempted, Self::PrereqMissing];

    /// The published name.
    pub fn key(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::LowProbability => "low_probability",
            Self::Preempted => "preempted",
            Self::PrereqMissing => "prereq_missing",
        }
    }
}

/// What one format would have cost for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedTokens {
    /// Number of the format.
    pub format: u8,
    /// Recursion depth from which on this cost holds.
    pub depth: u8,
    /// Tokens.
    pub tokens: u32,
}

/// All responses of some sessions, in order: by session, chain, time, and name of the call.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// Texts of tools and endpoints.
    pub names: Names,
    /// Names of the sessions, as they were recorded; several runs may share one.
    pub sessions: Vec<String>,
    /// Responses.
    pub events: Vec<Event>,
    /// What the planner did besides, once it is set aside ([`EventLog::set_aside`]): responses that it fetched ahead, and
    /// what it declined to fetch.
    pub planned: Vec<Event>,
    /// Known encodings; see [`Event::encodings`].
    pub encodings: Vec<EncodedTokens>,
}

impl EventLog {
    /// Puts the events in their order, which does not depend on the files in which they stood.
    pub fn sort(&mut self) {
        let key = |event: &Event| (event.session, event.chain, event.partition, event.ts, event.call, event.body);
        if !self.events.is_sorted_by_key(key) {
            self.events.sort_by_key(key);
        }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.planned.is_empty()
    }

    /// Takes what the planner did out of the responses: nobody asked for it, so it repeats nothing, follows nothing and
    /// is no example of how large an answer is.
    pub fn set_aside(&mut self) {
        if self.events.iter().any(Event::is_planned) {
            self.planned.extend(self.events.iter().filter(|event| event.is_planned()));
            self.events.retain(|event| !event.is_planned());
        }
    }

    /// Gives tools and endpoints other names; names that become equal become one.
    pub fn rename(&mut self, name: impl Fn(&str) -> String) {
        let mut names = Names::default();
        let place: Vec<Sym> = self.names.texts().iter().map(|text| names.intern(&name(text))).collect();
        for event in self.events.iter_mut().chain(&mut self.planned) {
            event.tool = place[event.tool.0 as usize];
            event.endpoint = place[event.endpoint.0 as usize];
        }
        self.names = names;
    }

    /// The encodings known of an event.
    pub fn encodings_of(&self, event: &Event) -> &[EncodedTokens] {
        let (start, count) = event.encodings;
        &self.encodings[start as usize..start as usize + count as usize]
    }
}
