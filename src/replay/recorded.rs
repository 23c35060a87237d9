//! A tape made from recorded responses: content hashes, sizes and what the layers did are enough to replay L0 exactly, and
//! L1 and L2 as far as the record tells what a format costs.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::content::encode;
use crate::model::body_facts::{BodyFacts, Encoding, Size};
use crate::model::body_shape::BodyShape;
use crate::model::event::{Event, EventLog, NO_FORMAT};
use crate::model::id::{Id, IdMap};
use crate::model::names::Sym;
use crate::model::savings::LayerId;
use crate::model::tokenizer::VOCABULARIES;
use crate::model::trace::Handle;
use crate::replay::tape::{BodyAtHand, Endpoint, Outcome, Response, SessionProfile, Tape, ToolKind};

/// A log of recorded responses, ready to be laid out piece by piece.
pub struct Recorded<'l> {
    log: &'l EventLog,
    endpoints: Vec<Endpoint>,
    sessions: Vec<SessionProfile>,
    number: BTreeMap<(Sym, Sym), u32>,
    /// Tokens of a call's name in a hint where the recorder did not say.
    handle_tokens: u8,
}

impl<'l> Recorded<'l> {
    /// Prepares a sorted log. `kind_of` classifies tools, `handle_tokens` is assumed where the recorder does not say what
    /// the name of a call costs.
    pub fn new(
        log: &'l EventLog,
        sessions: Vec<SessionProfile>,
        kind_of: &dyn Fn(&str) -> ToolKind,
        handle_tokens: u8,
    ) -> Self {
        let mut number = BTreeMap::new();
        let mut endpoints = Vec::new();
        for event in &log.events {
            number.entry((event.tool, event.endpoint)).or_insert_with(|| {
                let tool = log.names.text(event.tool).to_owned();
                let class = log.names.text(event.endpoint).to_owned();
                endpoints.push(Endpoint { kind: kind_of(&tool), class, tool });
                endpoints.len() as u32 - 1
            });
        }
        Self { log, endpoints, sessions, number, handle_tokens }
    }

    /// A tape without responses, from which scenarios are made.
    pub fn skeleton(&self) -> Tape {
        Tape { sessions: self.sessions.clone(), ..self.lay(0..0) }
    }

    /// The tape of some events, whole sessions.
    pub fn lay(&self, events: Range<usize>) -> Tape {
        let mut facts: Vec<BodyFacts> = Vec::new();
        let mut known: IdMap<Id, u32> = IdMap::default();
        let mut responses = Vec::with_capacity(events.len());
        for event in &self.log.events[events] {
            let fresh = facts.len() as u32;
            let body = if event.body.is_some() { *known.entry(event.body).or_insert(fresh) } else { fresh };
            if body == fresh {
                facts.push(body_facts(event));
            }
            // An event that a hint answered tells nothing about formats; another one of the same body may.
            let row = &mut facts[body as usize];
            if row.encodings.is_empty() {
                row.encodings = self.encodings(event);
            }
            responses.push(self.response(event, body));
        }
        let endpoints = self.endpoints.clone();
        let mut tape = Tape {
            responses,
            evictions: Vec::new(),
            facts,
            endpoints,
            sessions: Vec::new(),
            range_lines_min: usize::MAX,
            encodings: Vec::new(),
        };
        tape.derive();
        tape
    }

    fn response(&self, event: &Event, body: u32) -> Response {
        let tokens = if event.handle_tokens > 0 { event.handle_tokens } else { self.handle_tokens };
        let mut path = Id::NONE;
        path.0[..4].copy_from_slice(&event.path.to_be_bytes());
        Response {
            body,
            endpoint: self.number[&(event.tool, event.endpoint)],
            session: event.session,
            chain: event.chain,
            partition: event.partition,
            path,
            outcome: if event.mixed { Outcome::Mixed } else { Outcome::Answer },
            ran: true,
            handle: Handle { short: event.call, bytes: 0, tokens: [tokens; VOCABULARIES.len()] },
            body_at_hand: BodyAtHand::default(),
        }
    }

    fn encodings(&self, event: &Event) -> Vec<Encoding> {
        let size = |tokens: u32| Size { bytes: 0, tokens: [tokens; VOCABULARIES.len()] };
        let listed = self.log.encodings_of(event).iter();
        let mut encodings: Vec<Encoding> = listed
            .filter(|row| usize::from(row.format) < encode::REGISTER.len())
            .map(|row| Encoding { format: row.format, depth: row.depth, size: size(row.tokens) })
            .collect();
        if encodings.is_empty() && matches!(event.layer, LayerId::L1 | LayerId::L2) {
            encodings.extend(recorded_format(event).map(|format| Encoding { format, depth: 0, size: size(event.sent) }));
        }
        encodings.sort_by_key(|row| (row.format, row.depth));
        encodings
    }
}

/// The format that was used. The published event does not name the one that the router chose; the published router table
/// does.
fn recorded_format(event: &Event) -> Option<u8> {
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
fn body_facts(event: &Event) -> BodyFacts {
    let items = if event.items > 0 { event.items } else { u32::MAX };
    BodyFacts {
        body: event.body,
        sha: event.body,
        raw: Size { bytes: event.bytes, tokens: [event.baseline; VOCABULARIES.len()] },
        shape: event.shape,
        inner_formats: event.inner_formats,
        depth: event.depth,
        items,
        fields: items,
        columns: if event.columns > 0 { event.columns } else { u32::MAX },
        rows: event.rows,
        key_stability: if event.key_stability.is_nan() { 1.0 } else { event.key_stability },
        ..BodyFacts::default()
    }
}
