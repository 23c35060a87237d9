//! The log of tool responses as they are known after the fact, whoever recorded it: the live pipeline in its telemetry, or
//! devboy when it replays the logs. Fingerprints, rules R1 to R7 and their gate are made from these rows alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use crate::base::body_shape::LayerId;
use crate::base::id::Id;
use crate::base::names::{Names, Sym};
use crate::logs::trace::Millis;

/// [`RecordedEvent::format`] when no format was used, or one that devboy does not know.
pub const NO_FORMAT: u8 = u8::MAX;
/// [`RecordedEvent::step`] when the recorder did not say.
pub const NO_STEP: u32 = u32::MAX;

/// [`RecordedEvent::order`] when the recorder did not say.
pub const NO_ORDER: u32 = u32::MAX;

/// [`RecordedEvent::latency_ms`] when nobody measured it.
pub const NO_LATENCY: u32 = u32::MAX;

/// What a record is: a response, or something besides that matters to what later responses may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum RecordedAs {
    /// An answer with text.
    #[default]
    Response,
    /// A call that ran and failed: its text is shown as it is, and what it changed is stale.
    Failed,
    /// A call that was refused or cancelled before it ran.
    Refused,
    /// A call that ran and came back without text.
    Empty,
    /// A call that nothing came back from.
    Unanswered,
    /// A response that was cleared from the context before the call of this order.
    Cleared,
    /// A compaction that no call followed.
    Compacted,
}

impl RecordedAs {
    /// All but a response.
    pub const BESIDE: [Self; 6] =
        [Self::Failed, Self::Refused, Self::Empty, Self::Unanswered, Self::Cleared, Self::Compacted];

    /// Whether it is a call.
    pub fn is_call(self) -> bool {
        !matches!(self, Self::Cleared | Self::Compacted)
    }
}

/// What a response holds, and so who may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum RecordedContent {
    #[default]
    Text,
    /// Text beside images or documents: no layer could act.
    Mixed,
    /// What the client showed of a result that it put into a file: nobody before the client can change it.
    Preview,
}

/// One recorded response. A log holds millions: 120 bytes each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedEvent {
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
    /// From the call to its answer; [`NO_LATENCY`] if unknown.
    pub latency_ms: u32,
    /// First 4 bytes of SHA-256 of the `tool_use` id.
    pub call: u32,
    pub tool: Sym,
    /// Endpoint class.
    pub endpoint: Sym,
    /// First 4 bytes of the pseudonym of the file named; 0 without one.
    pub path: u32,
    /// Fingerprint of the content (16 bytes of SHA-256); none if it was not recorded.
    pub body: Id,
    /// Bytes of the response.
    pub bytes: u32,
    /// Number of the [`crate::base::body_shape::BodyShape`].
    pub shape: u8,
    /// Inner formats, one bit each.
    pub inner_formats: u16,
    /// Nesting of JSON containers, 255 for more; 0 if there are none or the recorder did not say.
    pub depth: u8,
    /// Columns of the first Markdown table, 65,535 for more; 0 if unknown.
    pub columns: u16,
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
    /// What it holds.
    pub content: RecordedContent,
    /// Tokens of the call's name in a hint; 0 if unknown.
    pub handle_tokens: u8,
    /// Number of the call within its chain, from 0 on; [`NO_ORDER`] if unknown.
    pub order: u32,
    /// What it is.
    pub what: RecordedAs,
    /// What the planner recorded.
    pub plan: RecordedPlan,
    /// First of the known encodings in [`EventLog::encodings`].
    pub encodings_start: u32,
    /// How many there are.
    pub encodings_count: u8,
}

const _: () = assert!(size_of::<RecordedEvent>() == 120);

/// Nothing known of a response.
impl Default for RecordedEvent {
    fn default() -> Self {
        Self {
            session: 0,
            chain: 0,
            partition: 0,
            step: NO_STEP,
            ts: 0,
            latency_ms: NO_LATENCY,
            call: 0,
            tool: Sym::default(),
            endpoint: Sym::default(),
            path: 0,
            body: Id::NONE,
            bytes: 0,
            shape: 0,
            inner_formats: 0,
            depth: 0,
            columns: 0,
            rows: 0,
            items: 0,
            key_stability: f32::NAN,
            layer: LayerId::L3,
            format: NO_FORMAT,
            baseline: 0,
            sent: 0,
            weight: 1.0,
            content: RecordedContent::Text,
            handle_tokens: 0,
            order: NO_ORDER,
            what: RecordedAs::Response,
            plan: RecordedPlan::default(),
            encodings_start: 0,
            encodings_count: 0,
        }
    }
}

impl RecordedEvent {
    /// Whether it can be told what repeats it: its content hash was recorded, and is that of all that it holds.
    pub fn is_comparable(&self) -> bool {
        self.body.is_some() && self.content != RecordedContent::Mixed
    }

    /// Whether the planner did this: fetched a response ahead, or declined to and so got none.
    pub fn is_planned(&self) -> bool {
        self.plan.prefetched || self.plan.declined.is_some() && self.bytes == 0
    }

    /// The order of a log: by context, then as the calls were made, or where nobody said so by time.
    pub fn key(&self) -> (u32, u32, u32, u32, Millis, u32, Id) {
        (self.session, self.chain, self.partition, self.order, self.ts, self.call, self.body)
    }
}

/// What the planner recorded about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RecordedPlan {
    /// Whether it was prefetched.
    pub prefetched: bool,
    /// Tokens that the planner expected; 0 if it expected nothing.
    pub predicted: u32,
    /// Whether the agent used it; none if nobody looked.
    pub cited: Option<bool>,
    /// Whether the planner declined to fetch it.
    pub declined: Option<Decline>,
    /// How its race against the agent ended; none if nobody timed it.
    pub race: Option<RaceWord>,
}

impl RecordedPlan {
    /// Whether the planner fetched it, or expected anything of it.
    pub fn is_foreseen(&self) -> bool {
        self.prefetched || self.predicted > 0
    }

    /// Whether a response cost 130 % of what was expected, or more (published definition). Both are tokens by the ratio of
    /// the planner ([`foreseeable_tokens`]).
    pub fn is_overrun(&self, tokens: u64) -> bool {
        self.predicted > 0 && tokens * 10 >= u64::from(self.predicted) * 13
    }
}

/// Tokens of an answer as the planner foresees them: it knows bytes only, so that what a vocabulary counts of the same text
/// is no measure of how well it did.
pub fn foreseeable_tokens(bytes: u64, bytes_per_token: u32) -> u64 {
    bytes / u64::from(bytes_per_token.max(1))
}

/// How the race of a prefetch against the agent ended (Paper 3's terms).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::EnumString)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum RaceWord {
    /// There before the agent asked.
    Won,
    /// Asked for before it was there.
    Late,
    /// Never asked for, or failed.
    Wasted,
}

/// Why the planner declined (published spellings).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Decline {
    /// Over the token budget.
    Budget,
    /// Too improbable.
    LowProbability,
    /// Something better took its place.
    Preempted,
    /// A prerequisite was missing.
    PrereqMissing,
    /// A reason that devboy does not know: the list of reasons is open.
    Other,
}

impl Decline {
    /// All reasons that have a published word.
    pub const KNOWN: [Self; 4] = [Self::Budget, Self::LowProbability, Self::Preempted, Self::PrereqMissing];
}

/// What one format would have cost for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedTokens {
    /// Number of the format.
    pub format: u8,
    /// Recursion depth from which on this cost holds.
    pub depth: u8,
    pub tokens: u32,
}

/// The first response of a session, and the session.
pub type Start = (Millis, u32);

/// All responses of some sessions, in the order of [`RecordedEvent::key`].
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    /// Texts of tools and endpoints. These, the sessions, the subagents and the encodings are shared by all parts of a log.
    pub names: Arc<Names>,
    /// Names of the sessions, as they were recorded; several runs may share one.
    pub sessions: Arc<[String]>,
    /// Of logs of the client, by the number of the chain: the subagent, or none of a main thread.
    pub subagents: Arc<[Option<Id>]>,
    /// Responses.
    pub events: Vec<RecordedEvent>,
    /// What the planner did besides, once it is set aside ([`EventLog::set_aside`]): responses that it prefetched, and
    /// what it declined to fetch.
    pub planned: Vec<RecordedEvent>,
    /// What else happened in the contexts, once it is set aside, in the same order.
    pub beside: Vec<RecordedEvent>,
    /// Known encodings; see [`RecordedEvent::encodings_start`].
    pub encodings: Arc<Vec<EncodedTokens>>,
}

impl EventLog {
    /// Puts the events in their order, which does not depend on the files in which they stood.
    pub fn sort(&mut self) {
        for events in [&mut self.events, &mut self.beside] {
            if !events.is_sorted_by_key(RecordedEvent::key) {
                events.sort_by_key(RecordedEvent::key);
            }
        }
    }

    /// Compactions of each session: of each of its chains the largest partition.
    pub fn compactions(&self) -> Vec<u64> {
        let largest_of = |chain: &[RecordedEvent]| {
            let partition = chain.iter().map(|event| event.partition).max().unwrap_or_default();
            ((chain[0].session, chain[0].chain), partition)
        };
        let mut largest: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for events in [&self.events, &self.beside] {
            let chains = events.par_chunk_by(|a, b| (a.session, a.chain) == (b.session, b.chain));
            for (chain, partition) in chains.map(largest_of).collect::<Vec<_>>() {
                let known = largest.entry(chain).or_default();
                *known = partition.max(*known);
            }
        }
        let mut compactions = vec![0; self.sessions.len()];
        largest.into_iter().for_each(|((session, _), count)| compactions[session as usize] += u64::from(count));
        compactions
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.planned.is_empty()
    }

    /// Takes what the planner did out of the responses: nobody asked for it, so it repeats nothing, follows nothing and
    /// is no example of how large an answer is. And what is no response.
    pub fn set_aside(&mut self) {
        let is_beside = |event: &RecordedEvent| event.what != RecordedAs::Response;
        if !self.events.par_iter().any(|event| is_beside(event) || event.is_planned()) {
            return;
        }
        self.beside.extend(self.events.iter().filter(|event| is_beside(event)));
        self.events.retain(|event| !is_beside(event));
        self.planned.extend(self.events.iter().filter(|event| event.is_planned()));
        self.events.retain(|event| !event.is_planned());
    }

    /// Gives tools and endpoints other names; names that become equal become one.
    pub fn rename(&mut self, name: impl Fn(&str) -> String) {
        let mut names = Names::default();
        let place: Vec<Sym> = self.names.texts().iter().map(|text| names.intern(&name(text))).collect();
        for event in self.events.iter_mut().chain(&mut self.planned).chain(&mut self.beside) {
            event.tool = place[event.tool.0 as usize];
            event.endpoint = place[event.endpoint.0 as usize];
        }
        self.names = Arc::new(names);
    }

    /// The log of some sessions, as [`Self::starts`] lists them; the others stay as names without events.
    #[must_use]
    pub fn part(&self, sessions: &[Start]) -> Self {
        let mut kept: Vec<u32> = sessions.iter().map(|(_, session)| *session).collect();
        kept.sort_unstable();
        let of =
            |events: &[RecordedEvent]| kept.iter().flat_map(|session| of_session(events, *session)).copied().collect();
        Self {
            names: Arc::clone(&self.names),
            sessions: Arc::clone(&self.sessions),
            subagents: Arc::clone(&self.subagents),
            events: of(&self.events),
            // In the order in which the planner came to them.
            planned: self.planned.iter().filter(|event| kept.binary_search(&event.session).is_ok()).copied().collect(),
            beside: of(&self.beside),
            encodings: Arc::clone(&self.encodings),
        }
    }

    /// All of it, as what is summed up.
    pub fn whole(&self) -> LogPart<'_> {
        LogPart { log: self, is_kept: vec![true; self.sessions.len()] }
    }

    /// Some sessions, as what is summed up, with all that the planner did.
    pub fn within(&self, sessions: &[Start]) -> LogPart<'_> {
        let mut is_kept = vec![false; self.sessions.len()];
        sessions.iter().for_each(|(_, session)| is_kept[*session as usize] = true);
        LogPart { log: self, is_kept }
    }

    /// The last of some sessions, in order, with no more than so many responses together, and so many sessions at least.
    pub fn latest<'s>(&self, sessions: &'s [Start], responses_max: usize, sessions_min: usize) -> &'s [Start] {
        let mut responses = 0;
        let fits = |&&(_, session): &&Start| {
            responses += of_session(&self.events, session).len();
            responses <= responses_max
        };
        let fitting = sessions.iter().rev().take_while(fits).count();
        &sessions[sessions.len() - fitting.max(sessions_min).min(sessions.len())..]
    }

    /// The sessions with responses, earliest first, each with its first response.
    pub fn starts(&self) -> Vec<Start> {
        let start = |session: &[RecordedEvent]| {
            (session.iter().map(|event| event.ts).min().unwrap_or(Millis::MAX), session[0].session)
        };
        let sessions: Vec<&[RecordedEvent]> = sessions_of(&self.events).collect();
        let mut starts: Vec<Start> = sessions.into_par_iter().map(start).collect();
        // Sessions are numbered as files are read; names order ties whatever files are called.
        starts.sort_by_key(|(start, session)| (*start, &self.sessions[*session as usize]));
        starts
    }

    /// How many sessions have responses.
    pub fn session_count(&self) -> usize {
        sessions_of(&self.events).count()
    }

    /// The responses of each session, by its number: looked for one by one they take as long as counting them.
    pub fn by_session(&self) -> Vec<&[RecordedEvent]> {
        let mut responses = vec![&[][..]; self.sessions.len()];
        sessions_of(&self.events).for_each(|session| responses[session[0].session as usize] = session);
        responses
    }

    /// The calls of a session that are no responses.
    pub fn calls_beside(&self, session: u32) -> impl Iterator<Item = &RecordedEvent> {
        of_session(&self.beside, session).iter().filter(|event| event.what.is_call())
    }

    /// The encodings known of an event.
    pub fn encodings_of(&self, event: &RecordedEvent) -> &[EncodedTokens] {
        encodings_of(event, &self.encodings)
    }
}

/// The encodings known of an event, among those of all.
pub(super) fn encodings_of<'e>(event: &RecordedEvent, encodings: &'e [EncodedTokens]) -> &'e [EncodedTokens] {
    &encodings[event.encodings_start as usize..][..event.encodings_count.into()]
}

/// The events of a session, among those of all in order.
fn of_session(events: &[RecordedEvent], session: u32) -> &[RecordedEvent] {
    let start = events.partition_point(|event| event.session < session);
    let length = events[start..].partition_point(|event| event.session == session);
    &events[start..start + length]
}

/// The events of each session, among those of all in order. The end is looked for in steps that double: looking at each event
/// takes as long as reading it.
fn sessions_of(events: &[RecordedEvent]) -> impl Iterator<Item = &[RecordedEvent]> {
    let mut rest = events;
    std::iter::from_fn(move || {
        let session = rest.first()?.session;
        let is_within = |event: &RecordedEvent| event.session == session;
        let mut step = 1;
        while rest.get(step).is_some_and(is_within) {
            step *= 2;
        }
        let (known, next) = (step / 2, step.min(rest.len()));
        let found;
        (found, rest) = rest.split_at(known + rest[known..next].partition_point(is_within));
        Some(found)
    })
}

/// Some sessions of a log, where they stand: a copy of most of a log takes as much memory again.
pub struct LogPart<'l> {
    pub log: &'l EventLog,
    is_kept: Vec<bool>,
}

impl<'l> LogPart<'l> {
    /// All other sessions.
    #[must_use]
    pub fn others(&self) -> Self {
        Self { log: self.log, is_kept: self.is_kept.iter().map(|is_kept| !is_kept).collect() }
    }

    /// Whether a session is in it.
    pub fn has(&self, session: u32) -> bool {
        self.is_kept[session as usize]
    }

    /// Whether the planner did anything in it.
    pub fn is_foreseen(&self) -> bool {
        let is_foreseen = |event: &RecordedEvent| event.plan.is_foreseen() && self.has(event.session);
        self.log.events.par_iter().any(is_foreseen) || self.log.planned.iter().any(is_foreseen)
    }

    /// Its responses, session by session.
    pub fn sessions(&self) -> impl Iterator<Item = &'l [RecordedEvent]> {
        sessions_of(&self.log.events).filter(|session| self.has(session[0].session))
    }
}
