//! The logs laid out for a replay, and the same as recorded responses.

use std::ops::Range;

use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::names::Names;
use crate::base::numbers::saturated;
use crate::base::stats::SessionUse;
use crate::facts::body_facts::{Encoding, SizesAlone};
use crate::facts::encode::{self, FormatFamily};
use crate::frames::input::Input;
use crate::logs::corpus::SourceRows;
use crate::logs::history::{Call, History};
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::logs::vocabulary::Vocabulary;
use crate::mine::{sessions, totals};
use crate::replay::laid_out_calls::LaidOutCalls;
use crate::replay::lines_of_contexts::LinesOfContexts;
use crate::replay::savings::PaperClaim;
use crate::replay::tape::{Endpoint, Response};
use crate::replay::{Decision, Scenario, SentAs, SessionProfile, Tape, TapeEntry, ToolKind, replay_each};
use crate::settings::annotations::Annotations;
use crate::settings::classify_agent;
use crate::telemetry::log::{
    EncodedTokens, EventLog, NO_FORMAT, NO_LATENCY, RecordedAs, RecordedContent, RecordedEvent,
};

/// A history laid out, with what reports need besides.
pub struct ReplayInput {
    pub tape: Tape,
    /// What happened, without calls and messages: what a replay asks of calls stands in the tape.
    pub history: History,
    /// When each of the calls was made.
    pub times: Vec<CallTime>,
    /// By call the message that asks for it, and its id; for whoever asked for them.
    pub ids: Vec<(Id, Id)>,
    /// Project of each session: the directory that it began in, as a pseudonym.
    pub projects: Vec<Id>,
    pub context_tokens: u64,
    /// See [`report::ReplayedInput::plain_repeats`].
    pub plain_repeats: [u64; 3],
    /// Published figures to print beside these.
    pub paper: PaperClaim,
}

/// What is laid out, and what may go meanwhile.
struct LaidOut {
    let_go: fn(&mut Input),
    /// See [`ReplayInput::ids`].
    with_ids: bool,
    /// Whether lines of bodies are asked about.
    with_lines: bool,
}

/// When a call was made.
#[derive(Clone, Copy)]
pub struct CallTime {
    /// When it was asked.
    pub ts: Millis,
    /// Until the result; [`NO_LATENCY`] if that is not known.
    latency_ms: u32,
    /// Number of the API message within its chain.
    pub step: u32,
}

impl CallTime {
    fn of(call: &Call) -> Self {
        Self { ts: call.ts, latency_ms: call.latency_ms.unwrap_or(NO_LATENCY), step: call.step }
    }

    /// When its result came; when it was asked, if that is not known.
    pub fn answered_at(&self) -> Millis {
        let latency_ms = if self.latency_ms == NO_LATENCY { 0 } else { self.latency_ms };
        if self.ts == NO_TIME { NO_TIME } else { self.ts.saturating_add(latency_ms.into()) }
    }
}

/// Results of a file that may be repeats, those that are, and those that a cache of a few entries knows.
fn plain_repeats(file: &SourceRows, window: Range<Millis>) -> [u64; 3] {
    let repeats = totals::repeats(file, window);
    [repeats.eligible_ge200, repeats.repeat_unlimited, repeats.repeat_lru5]
}

impl ReplayInput {
    /// Lays out what the input holds; with a model, as if that one had answered in every session.
    pub fn new(model: Option<&str>, input: &mut Input) -> Result<Self> {
        Self::made(&LaidOut { let_go: Input::let_go_of_rows, with_ids: false, with_lines: true }, model, input)
    }

    /// The same for whoever asks nothing more about calls: without a lake they would be read again.
    pub fn last(model: Option<&str>, input: &mut Input) -> Result<Self> {
        Self::made(&LaidOut { let_go: Input::let_go_of_calls, with_ids: false, with_lines: true }, model, input)
    }

    /// [`ReplayInput::new`] with [`ReplayInput::ids`].
    pub fn with_ids(model: Option<&str>, input: &mut Input) -> Result<Self> {
        Self::made(&LaidOut { let_go: Input::let_go_of_rows, with_ids: true, with_lines: true }, model, input)
    }

    /// [`ReplayInput::new`] for whoever replays published formats only and asks nothing about quotes: without lines, of which
    /// only references to lines and quotes ask, and which are half of what is known of bodies.
    pub fn without_lines(input: &mut Input) -> Result<Self> {
        Self::made(&LaidOut { let_go: Input::let_go_of_rows, with_ids: false, with_lines: false }, None, input)
    }

    /// Says what a replay asks behind the history: reading rows again takes its time.
    pub fn prepare(input: &mut Input) {
        input.count(plain_repeats);
    }

    fn made(of: &LaidOut, model: Option<&str>, input: &mut Input) -> Result<Self> {
        Self::prepare(input);
        let (mut history, names) = input.named_history();
        let plain_repeats = input.counted(plain_repeats);
        (of.let_go)(input);
        let profiles = profiles(&history, &names, model, &input.vocabulary);
        let context_tokens = sessions::tokens_entered(&history);
        // Nothing else is asked of them, and what comes next needs the room.
        history.messages = Vec::new();
        let annotations = Annotations::load(&input.data)?;
        let endpoint_of = |tool: &str, class: &str| endpoint(&input.vocabulary, &annotations, tool, class);
        let calls = input.pool.install(|| LaidOutCalls::new(&history, &names, &endpoint_of));
        let times = history.calls.iter().map(CallTime::of).collect();
        let ids = history.calls.iter().filter(|_| of.with_ids).map(|call| (call.message, call.id)).collect();
        (history.calls, history.details) = Default::default();
        let lines_min = input.formats.range_lines_min;
        let bodies = if of.with_lines {
            let asked_for = input.pool.install(|| LinesOfContexts::new(&calls, lines_min));
            input.bodies(&asked_for)
        } else {
            input.bodies(&SizesAlone)
        };
        let mut evictions: Vec<(u32, u32)> =
            history.evictions.iter().map(|eviction| (eviction.before as u32, eviction.call as u32)).collect();
        evictions.sort_unstable();
        let tape = input.pool.install(|| Tape::new(calls, bodies, evictions, &profiles, lines_min));
        Ok(Self {
            tape,
            projects: history.sessions.iter().map(|session| session.project).collect(),
            context_tokens,
            plain_repeats,
            paper: crate::replay::savings::paper_claim(&input.data)?,
            history,
            times,
            ids,
        })
    }

    /// The responses as the live pipeline would have recorded them under this scenario. Calls that failed bypass the
    /// pipeline, so they are no responses, and neither is an answer without text: they stand beside, since what they
    /// changed is stale. What whoever runs the pipeline never sees is not recorded.
    pub fn events(&self, scenario: &Scenario) -> EventLog {
        let mut names = Names::default();
        let sessions = self.history.sessions.iter().map(|session| session.id.to_string()[..16].to_owned());
        let is_recorded = |response: &Response| {
            matches!(response.outcome, TapeEntry::Answer | TapeEntry::Mixed) && scenario.meets(response)
        };
        // A list that grows may have room for twice as many.
        let count = self.tape.responses.iter().filter(|response| is_recorded(response)).count();
        let (mut events, mut encodings) = (Vec::with_capacity(count), Vec::new());
        replay_each(&self.tape, scenario, &mut |index, decision| {
            if is_recorded(&self.tape.responses[index as usize]) {
                let known = self.encoded_tokens(scenario, index);
                let (start, count) = (encodings.len() as u32, known.len() as u8);
                encodings.extend(known);
                let event = self.event(&mut names, scenario, index, decision);
                events.push(RecordedEvent { encodings_start: start, encodings_count: count, ..event });
            }
        });
        let beside = self.beside(&mut names, scenario);
        let (names, sessions, encodings) = (names.into(), sessions.collect(), encodings.into());
        let subagents = (0..).zip(&self.history.chains).map(|(chain, _)| self.subagent(chain)).collect();
        let mut log = EventLog { names, sessions, subagents, events, encodings, beside, ..EventLog::default() };
        log.sort();
        log
    }

    /// What happened in the contexts besides the responses.
    fn beside(&self, names: &mut Names, scenario: &Scenario) -> Vec<RecordedEvent> {
        let order = |chain: u32, call: usize| (call - self.history.chains[chain as usize].calls.start) as u32;
        let bare = |names: &mut Names, index: usize| {
            let nothing = Decision { layer: LayerId::L3, what: SentAs::AsIs, tokens: 0 };
            let event = self.event(names, scenario, index as u32, &nothing);
            let RecordedEvent { session, chain, partition, step, ts, call, tool, endpoint, path, .. } = event;
            let RecordedEvent { baseline, bytes, handle_tokens, order, what, .. } = event;
            let known = RecordedEvent {
                session,
                chain,
                partition,
                step,
                ts,
                call,
                tool,
                endpoint,
                path,
                ..RecordedEvent::default()
            };
            RecordedEvent { baseline, sent: baseline, bytes, handle_tokens, order, what, ..known }
        };
        let mut beside = Vec::new();
        for (index, response) in self.tape.responses.iter().enumerate().filter(|(_, it)| scenario.meets(it)) {
            let is_shown = response.outcome == TapeEntry::Failure;
            let what = match (response.outcome, response.ran) {
                (TapeEntry::Answer | TapeEntry::Mixed, _) => continue,
                (TapeEntry::Failure, true) => RecordedAs::Failed,
                (TapeEntry::Failure, false) => RecordedAs::Refused,
                (_, true) => RecordedAs::Empty,
                (_, false) => RecordedAs::Unanswered,
            };
            let event = bare(names, index);
            let event = if is_shown { event } else { RecordedEvent { baseline: 0, sent: 0, bytes: 0, ..event } };
            beside.push(RecordedEvent { what, ..event });
        }
        for eviction in &self.history.evictions {
            let event = bare(names, eviction.call);
            let (order, what) = (order(event.chain, eviction.before), RecordedAs::Cleared);
            beside.push(RecordedEvent { order, what, baseline: 0, sent: 0, bytes: 0, ..event });
        }
        for (number, chain) in (0..).zip(&self.history.chains) {
            let last = chain.calls.clone().last();
            let partition = chain.compactions.iter().map(|compaction| compaction.partition).max().unwrap_or(0);
            if partition > last.map_or(0, |call| self.tape.responses[call].partition) {
                let (order, what) = (chain.calls.len() as u32, RecordedAs::Compacted);
                let (session, ts) = (chain.session, last.map_or(0, |call| time(self.times[call].ts)));
                beside.push(RecordedEvent {
                    session,
                    chain: number,
                    partition,
                    ts,
                    order,
                    what,
                    ..RecordedEvent::default()
                });
            }
        }
        beside
    }

    /// A response as it is, as if nobody had shown it before; none without text.
    pub fn plain_event(&self, names: &mut Names, scenario: &Scenario, index: u32) -> Option<RecordedEvent> {
        let response = &self.tape.responses[index as usize];
        let is_text = matches!(response.outcome, TapeEntry::Answer | TapeEntry::Mixed);
        let counting = scenario.session(response).counting;
        let tokens = counting.tokens(&self.tape.facts_of(response).raw);
        let decision = Decision { layer: LayerId::L3, what: SentAs::AsIs, tokens };
        is_text.then(|| self.event(names, scenario, index, &decision))
    }

    fn event(&self, names: &mut Names, scenario: &Scenario, index: u32, decision: &Decision) -> RecordedEvent {
        let response = &self.tape.responses[index as usize];
        let facts = self.tape.facts_of(response);
        let call = &self.times[index as usize];
        let endpoint = &self.tape.endpoints[response.endpoint as usize];
        let counting = scenario.session(response).counting;
        let [a, b, c, d, ..] = response.path.0;
        let is_array = facts.shape == BodyShape::ArrayOfObjects as u8;
        RecordedEvent {
            session: response.session,
            chain: response.chain,
            partition: response.partition,
            step: call.step,
            ts: time(call.ts),
            latency_ms: call.latency_ms,
            call: response.handle.short,
            tool: names.intern(&endpoint.tool),
            endpoint: names.intern(&endpoint.class),
            path: u32::from_be_bytes([a, b, c, d]),
            body: facts.sha,
            bytes: facts.raw.bytes,
            shape: facts.shape,
            inner_formats: facts.inner_formats,
            depth: facts.forms.measures.depth.try_into().unwrap_or(u8::MAX),
            columns: facts.forms.measures.columns.try_into().unwrap_or(u16::MAX),
            rows: facts.forms.measures.rows,
            items: facts.forms.measures.items.max(facts.forms.measures.fields),
            key_stability: if is_array { facts.forms.measures.key_stability } else { f32::NAN },
            layer: decision.layer,
            format: if let SentAs::Encoded(format) = decision.what { format } else { NO_FORMAT },
            baseline: saturated(counting.tokens(&facts.raw)),
            sent: saturated(decision.tokens),
            content: match response.outcome {
                TapeEntry::Mixed => RecordedContent::Mixed,
                _ if facts.preview => RecordedContent::Preview,
                _ => RecordedContent::Text,
            },
            handle_tokens: counting.tokens(&response.handle.size()).try_into().unwrap_or(u8::MAX),
            order: index - self.history.chains[response.chain as usize].calls.start as u32,
            ..RecordedEvent::default()
        }
    }

    /// What each format would cost for a response; rules ask for those, too, that the pipeline does not use yet.
    fn encoded_tokens(&self, scenario: &Scenario, index: u32) -> Vec<EncodedTokens> {
        let response = &self.tape.responses[index as usize];
        let counting = scenario.session(response).counting;
        let is_format = |format: u8| encode::REGISTER[format as usize].family != FormatFamily::Baseline;
        let showing = response.body_at_hand.showing;
        let eligible = |row: &&Encoding| is_format(row.format) && row.kept.suits(showing);
        let rows = self.tape.encodings_of(response).iter().filter(eligible).take(u8::MAX.into());
        rows.map(|row| EncodedTokens {
            format: row.format,
            depth: row.depth,
            tokens: saturated(counting.tokens(&row.size)),
        })
        .collect()
    }

    /// Whether a response was shown to a subagent, and by what name that one is known.
    pub fn subagent(&self, chain: u32) -> Option<Id> {
        let chain = &self.history.chains[chain as usize];
        (chain.place != Place::Main).then_some(chain.agent)
    }
}

/// By session the model that answered most often, or the one asked for, and how it was worked in.
fn profiles(history: &History, names: &Names, model: Option<&str>, words: &Vocabulary) -> Vec<SessionProfile> {
    let models = match model {
        Some(model) => vec![model.to_owned(); history.sessions.len()],
        None => sessions::models_of_sessions(history, names),
    };
    let profile = |(model, session): (String, SessionUse)| {
        let class = classify_agent(session.calls, session.read_calls, session.compactions);
        SessionProfile { model, class }
    };
    let uses = sessions::session_uses(history, names, &words.read_class_tools);
    models.into_iter().zip(uses).map(profile).collect()
}

/// An endpoint with what is known of its tool before anything is configured.
pub fn endpoint(words: &Vocabulary, annotations: &Annotations, tool: &str, class: &str) -> Endpoint {
    let shipped = annotations.of(tool).map(|annotation| annotation.model);
    Endpoint { tool: tool.to_owned(), class: class.to_owned(), kind: tool_kind(words, tool), shipped }
}

/// What a tool does with files.
fn tool_kind(words: &Vocabulary, tool: &str) -> ToolKind {
    if words.file_read_tools.contains(tool) {
        ToolKind::FileRead
    } else if words.file_mutate_tools.contains(tool) {
        ToolKind::FileMutate
    } else {
        ToolKind::Other
    }
}

/// The time of a call; 0 where none is known.
fn time(ts: Millis) -> Millis {
    if ts == NO_TIME { 0 } else { ts }
}
