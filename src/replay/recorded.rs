//! A tape made from recorded responses: content hashes, sizes and what the layers did are enough to replay L0 exactly, and
//! L1 and L2 as far as the record tells what a format costs. It is laid out once, for any number of configurations.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use rayon::prelude::*;

use crate::base::body_shape::{BodyShape, KeptLines, LayerId, Showing};
use crate::base::id::{Id, IdHasher, IdMap};
use crate::base::names::Sym;
use crate::base::tokenizer::{Counting, Size, VOCABULARIES};
use crate::facts::body_facts::{BodyFacts, Encoding};
use crate::facts::encode;
use crate::facts::shape::Description;
use crate::logs::trace::Handle;
use crate::replay::tape::{BodyAtHand, Endpoint, Response, SessionProfile, SessionProfiles, Tape, TapeEntry};
use crate::replay::{HistoryPiece, ReplayOptions, Scenario};
use crate::settings::Settings;
use crate::telemetry::log::{EventLog, NO_FORMAT, RecordedAs, RecordedContent, RecordedEvent};

/// Responses of a piece, apart from the rest of its last session: enough pieces for all threads, few enough tables of endpoints.
const PIECE_EVENTS: usize = 10_000;

/// Bytes of a call's name in a hint: its id's last eight characters.
const HANDLE_BYTES: u8 = 8;

/// Where the encodings of a body from an endpoint are in [`Tape::encodings`].
type EncodingPlaces = IdMap<(Id, u32), (u32, u32)>;

/// A log of recorded responses, ready to be laid out piece by piece.
pub struct RecordedLog<'l> {
    log: &'l EventLog,
    endpoints: Vec<Endpoint>,
    sessions: SessionProfiles,
    number: HashMap<(Sym, Sym), u32, BuildHasherDefault<IdHasher>>,
    /// Tokens of a call's name in a hint where the recorder did not say.
    handle_tokens: u8,
}

impl<'l> RecordedLog<'l> {
    /// Prepares a sorted log. `endpoint_of` makes an endpoint of a tool and a class, `handle_tokens` is assumed where the
    /// recorder does not say what the name of a call costs.
    pub fn new(
        log: &'l EventLog,
        sessions: Vec<SessionProfile>,
        endpoint_of: &dyn Fn(&str, &str) -> Endpoint,
        handle_tokens: u8,
    ) -> Self {
        let mut number = HashMap::default();
        let mut endpoints = Vec::new();
        for event in log.events.iter().chain(&log.beside) {
            number.entry((event.tool, event.endpoint)).or_insert_with(|| {
                endpoints.push(endpoint_of(log.names.text(event.tool), log.names.text(event.endpoint)));
                endpoints.len() as u32 - 1
            });
        }
        Self { log, endpoints, sessions: SessionProfiles::new(&sessions), number, handle_tokens }
    }

    /// All of it, in pieces of whole sessions.
    pub fn input(&self) -> RecordedInput {
        let mut counts = vec![0; self.log.sessions.len()];
        self.log.events.iter().chain(&self.log.beside).for_each(|event| counts[event.session as usize] += 1);
        let (mut pieces, mut start, mut held) = (Vec::new(), 0, 0);
        for (session, count) in (0..).zip(&counts) {
            held += count;
            if held >= PIECE_EVENTS || session as usize + 1 == counts.len() {
                pieces.push(start..session + 1);
                (start, held) = (session + 1, 0);
            }
        }
        let piece = |sessions: Range<u32>| {
            let (tape, weights) = self.lay(sessions);
            HistoryPiece { tape, weights }
        };
        let skeleton = Tape { sessions: self.sessions.clone(), ..self.lay(0..0).0 };
        RecordedInput { pieces: pieces.into_par_iter().map(piece).collect(), skeleton }
    }

    /// The tape of some sessions, and the responses that each one on it stands for. Bodies of which more is recorded than
    /// their size come first.
    pub fn lay(&self, sessions: Range<u32>) -> (Tape, Vec<f64>) {
        let within = |events: &'l [RecordedEvent]| {
            let place = |session: u32| events.partition_point(|event| event.session < session);
            &events[place(sessions.start)..place(sessions.end)]
        };
        let (events, beside) = (within(&self.log.events), within(&self.log.beside));
        let mut rows: Vec<&RecordedEvent> = beside.iter().filter(|event| event.what.is_call()).collect();
        rows.extend(events);
        rows.sort_by_key(|event| event.key());
        let mut tape = Tape {
            responses: Vec::with_capacity(rows.len()),
            evictions: evictions(&rows, beside),
            endpoints: self.endpoints.clone(),
            range_lines_min: usize::MAX,
            ..Tape::default()
        };
        let (bodies, encoded) = self.encoded(events, &mut tape);
        let mut fresh = tape.facts.len() as u32;
        let mut numbers: IdMap<Id, u32> = IdMap::default();
        for event in &rows {
            let mut next = || {
                fresh += 1;
                fresh - 1
            };
            let body = match bodies.get(&event.body) {
                Some(&number) => number,
                None if event.body.is_some() => *numbers.entry(event.body).or_insert_with(next),
                None => next(),
            };
            let endpoint = self.endpoint(event);
            let is_told = tells_formats(event) || event.layer == LayerId::L0;
            let encodings = if is_told { encoded.get(&(event.body, endpoint)) } else { None };
            tape.responses.push(self.response(event, (body, endpoint), encodings.copied().unwrap_or_default()));
        }
        (tape, rows.iter().map(|event| event.weight).collect())
    }

    /// The numbers of bodies with a known encoding, and where their encodings are, by body and endpoint; the tape gets
    /// both. What an endpoint shows of a file has to stay quotable, while the same text from another one need not. A hint
    /// tells nothing about formats, but another showing of the body there may.
    fn encoded(&self, events: &[RecordedEvent], tape: &mut Tape) -> (IdMap<Id, u32>, EncodingPlaces) {
        let mut numbers: IdMap<Id, u32> = IdMap::default();
        let mut places = EncodingPlaces::default();
        for event in events.iter().filter(|event| event.body.is_some() && tells_formats(event)) {
            let Entry::Vacant(place) = places.entry((event.body, self.endpoint(event))) else { continue };
            let found = self.encodings(event);
            if !found.is_empty() {
                numbers.entry(event.body).or_insert_with(|| {
                    tape.facts.push(body_facts(event));
                    tape.facts.len() as u32 - 1
                });
                place.insert((tape.encodings.len() as u32, found.len() as u32));
                tape.encodings.extend(found);
            }
        }
        (numbers, places)
    }

    fn endpoint(&self, event: &RecordedEvent) -> u32 {
        self.number[&(event.tool, event.endpoint)]
    }

    fn response(&self, event: &RecordedEvent, (body, endpoint): (u32, u32), encodings: (u32, u32)) -> Response {
        let tokens = if event.handle_tokens > 0 { event.handle_tokens } else { self.handle_tokens };
        let mut path = Id::NONE;
        path.0[..4].copy_from_slice(&event.path.to_be_bytes());
        let (outcome, ran) = match event.what {
            // Without its hash nobody can tell what it repeats, or what repeats it: like what cannot be compared.
            RecordedAs::Response if event.content == RecordedContent::Mixed || !event.body.is_some() => {
                (TapeEntry::Mixed, true)
            }
            RecordedAs::Response => (TapeEntry::Answer, true),
            RecordedAs::Failed => (TapeEntry::Failure, true),
            RecordedAs::Refused => (TapeEntry::Failure, false),
            RecordedAs::Empty => (TapeEntry::Silent, true),
            RecordedAs::Unanswered | RecordedAs::Cleared | RecordedAs::Compacted => (TapeEntry::Silent, false),
        };
        Response {
            body,
            endpoint,
            session: event.session,
            chain: event.chain,
            partition: event.partition,
            path,
            outcome,
            ran,
            handle: Handle { short: event.call, bytes: HANDLE_BYTES, tokens: [tokens; VOCABULARIES.len()] },
            showing: Showing::Nothing,
            body_at_hand: BodyAtHand {
                raw: raw(event),
                shape: event.shape,
                // What was recorded was eligible.
                showing: Showing::Nothing,
                shares_lines: false,
                preview: event.content == RecordedContent::Preview,
                encodings,
            },
        }
    }

    fn encodings(&self, event: &RecordedEvent) -> Vec<Encoding> {
        let encoding = |format: u8, depth: u8, tokens: u32| {
            let size = Size { bytes: 0, tokens: [tokens; VOCABULARIES.len()] };
            Encoding { format, depth, size, kept: KeptLines::Nothing }
        };
        let listed = self.log.encodings_of(event).iter();
        let mut encodings: Vec<Encoding> = listed
            .filter(|row| usize::from(row.format) < encode::REGISTER.len())
            .map(|row| encoding(row.format, row.depth, row.tokens))
            .collect();
        if encodings.is_empty() && matches!(event.layer, LayerId::L1 | LayerId::L2) {
            encodings.extend(recorded_format(event).map(|format| encoding(format, 0, event.sent)));
        }
        encodings.sort_by_key(|row| (row.format, row.depth));
        encodings
    }
}

/// What was cleared from contexts, by the index of the next response and of the one cleared.
fn evictions(rows: &[&RecordedEvent], beside: &[RecordedEvent]) -> Vec<(u32, u32)> {
    let cleared: Vec<&RecordedEvent> = beside.iter().filter(|event| event.what == RecordedAs::Cleared).collect();
    if cleared.is_empty() {
        return Vec::new();
    }
    let chain = |event: &RecordedEvent| (event.session, event.chain);
    let shown: HashMap<_, u32> = (0..).zip(rows).map(|(index, event)| ((chain(event), event.call), index)).collect();
    let next = |event: &RecordedEvent| {
        rows.partition_point(|row| (chain(row), row.order) < (chain(event), event.order)) as u32
    };
    let known = |event: &&RecordedEvent| Some((next(event), *shown.get(&(chain(event), event.call))?));
    let mut evictions: Vec<(u32, u32)> = cleared.iter().filter_map(known).collect();
    evictions.sort_unstable();
    evictions
}

/// Whether an event says by which formats its body can be sent: all others were sent as they are because there is none, or
/// were answered by a hint.
fn tells_formats(event: &RecordedEvent) -> bool {
    event.encodings_count > 0 || matches!(event.layer, LayerId::L1 | LayerId::L2)
}

fn raw(event: &RecordedEvent) -> Size {
    Size { bytes: event.bytes, tokens: [event.baseline; VOCABULARIES.len()] }
}

/// The format that was used. The published event does not name the one that the router chose; the published router table
/// does.
fn recorded_format(event: &RecordedEvent) -> Option<u8> {
    if event.format != NO_FORMAT {
        return Some(event.format);
    }
    let id = match BodyShape::from_number(event.shape) {
        BodyShape::MarkdownTable => "csv_from_md",
        BodyShape::ArrayOfObjects => "csv",
        BodyShape::FlatObject => "kv",
        _ => "json_compact",
    };
    encode::find(id).map(|(number, _)| number)
}

/// What the router asks about a body. Where the recorder did not say how large a value is, what it recorded shows that
/// the value was large enough.
fn body_facts(event: &RecordedEvent) -> BodyFacts {
    let items = if event.items > 0 { event.items } else { u32::MAX };
    let mut facts = BodyFacts {
        body: event.body,
        sha: event.body,
        raw: raw(event),
        shape: event.shape,
        inner_formats: event.inner_formats,
        ..BodyFacts::default()
    };
    facts.forms.measures = Description {
        depth: event.depth.into(),
        items,
        fields: items,
        columns: if event.columns > 0 { event.columns.into() } else { u32::MAX },
        rows: event.rows,
        key_stability: if event.key_stability.is_nan() { 1.0 } else { event.key_stability },
    };
    facts
}

/// Responses laid out for a replay.
pub struct RecordedInput {
    pub pieces: Vec<HistoryPiece>,
    /// What configurations of them are resolved for: their endpoints and sessions, without any response.
    pub skeleton: Tape,
}

impl RecordedInput {
    /// A configuration for these responses. The recorder counted their tokens; those of hints are counted as it says.
    pub fn scenario(&self, settings: &Settings) -> Scenario {
        let options = ReplayOptions { extended: false, invalidate: true, counting: Some(Counting::Exact(0)) };
        Scenario::new(settings, &self.skeleton, options)
    }
}
