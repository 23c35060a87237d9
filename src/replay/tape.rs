//! The history as the pipeline would have met it: one response after the other, context by context.

use std::sync::{Arc, LazyLock};

use rayon::prelude::*;

use crate::base::allocator;
use crate::base::body_shape::Showing;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::tokenizer::Size;
use crate::facts::body_facts::{BodyFacts, Encoding};
use crate::logs::trace::Handle;
use crate::replay::laid_out_calls::LaidOutCalls;
use crate::replay::runs::{self, Windows};
use crate::settings::tool_model::ToolModel;

/// Facts about a body of which nothing is recorded but its size.
static NOTHING: LazyLock<BodyFacts> = LazyLock::new(BodyFacts::default);

/// What a tool does with files (published classes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum ToolKind {
    /// Answers come from files.
    FileRead,
    /// Changes a file.
    FileMutate,
    /// Neither.
    Other,
}

/// What there is to a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapeEntry {
    /// The answer of a tool, as text only.
    Answer,
    /// The text of a failed, refused or cancelled call: shown as it is.
    Failure,
    /// Text beside images or documents: shown as it is, since the rest cannot be compared.
    Mixed,
    /// No text: nothing to send.
    Silent,
    /// Text of which no facts are known (a log deleted before it was studied).
    Unstudied,
}

/// One call as the pipeline meets it.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Names the body and is its index into [`Tape::facts`]; of no meaning for [`TapeEntry::Silent`] and
    /// [`TapeEntry::Unstudied`].
    pub body: u32,
    /// Index into [`Tape::endpoints`].
    pub endpoint: u32,
    /// Index into [`crate::logs::history::History::sessions`].
    pub session: u32,
    /// Index into [`crate::logs::history::History::chains`]: with the partition, the context.
    pub chain: u32,
    /// Number of the context partition within the chain.
    pub partition: u32,
    /// Pseudonym of the file named, or none.
    pub path: Id,
    /// What came.
    pub outcome: TapeEntry,
    /// Whether the tool was started at all.
    pub ran: bool,
    /// Name in hints.
    pub handle: Handle,
    /// How the result shows the text of files, as far as the call tells.
    pub showing: Showing,
    /// What every decision asks about the body, at hand; see [`Tape::new`].
    pub body_at_hand: BodyAtHand,
}

impl Response {
    /// Session, chain and partition: what one reader has before it.
    pub fn context(&self) -> (u32, u32, u32) {
        (self.session, self.chain, self.partition)
    }
}

/// A copy of the facts that every decision needs: a replay is bound by how far it jumps about in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyAtHand {
    /// Size as it stands.
    pub raw: Size,
    /// Number of the shape.
    pub shape: u8,
    /// How the text of files stands in it, by call and look: only encodings that suit it are sent.
    pub showing: Showing,
    /// Whether another response of its context shows a window of lines that it shows. To all others references to lines
    /// cannot come, nor go from them: they are passed over, which changes nothing but the time.
    pub shares_lines: bool,
    /// Whether it is a preview of a result that stands in a file.
    pub preview: bool,
    /// Where its encodings are in [`Tape::encodings`].
    pub(super) encodings: (u32, u32),
}

/// A tool and the class of what is called with it.
#[derive(Clone, PartialEq, Debug)]
pub struct Endpoint {
    /// Tool name.
    pub tool: String,
    /// Endpoint class; the tool name itself for most tools.
    pub class: String,
    /// What the tool does with files.
    pub kind: ToolKind,
    /// The shipped value model of the tool, which holds where a configuration has none for it.
    pub shipped: Option<ToolModel>,
}

impl Endpoint {
    /// Keys under which a configuration may speak of this endpoint, most specific first.
    pub fn keys(&self) -> [String; 3] {
        [format!("{}:{}", self.tool, self.class), self.class.clone(), self.tool.clone()]
    }

    /// The name in reports.
    pub fn name(&self) -> String {
        if self.class == self.tool { self.tool.clone() } else { format!("{}:{}", self.tool, self.class) }
    }
}

/// What decides which profiles a session gets.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionProfile {
    /// Its way of working. Compared first: texts take longer.
    pub class: crate::settings::AgentClass,
    /// The model that answered most often; empty if none is known.
    pub model: String,
}

/// The profiles of all sessions, each different one once: most sessions share a handful.
#[derive(Clone, Default)]
pub struct SessionProfiles {
    /// What differs.
    pub profiles: Vec<SessionProfile>,
    /// By session, the index of its profile.
    pub profile_of: Arc<[u32]>,
}

impl SessionProfiles {
    /// The profiles of sessions, in their order.
    pub fn new(profiles: &[SessionProfile]) -> Self {
        let mut known: Vec<SessionProfile> = Vec::new();
        let mut numbers = Vec::with_capacity(profiles.len());
        for same in profiles.chunk_by(|before, next| before == next) {
            let number = known.iter().position(|profile| *profile == same[0]).unwrap_or_else(|| {
                known.push(same[0].clone());
                known.len() - 1
            });
            numbers.extend(std::iter::repeat_n(number as u32, same.len()));
        }
        Self { profiles: known, profile_of: numbers.into() }
    }
}

/// Everything that a replay reads.
#[derive(Clone, Default)]
pub struct Tape {
    /// Every call once, context by context in order; index by index the calls of the history.
    pub responses: Vec<Response>,
    /// Results that went out of their context: (index of the next response, index of the one cleared), in order.
    pub evictions: Vec<(u32, u32)>,
    /// Facts about bodies, in the order of their first use.
    pub facts: Vec<BodyFacts>,
    pub endpoints: Vec<Endpoint>,
    pub sessions: SessionProfiles,
    /// Lines that a reference to lines stands for at least.
    pub range_lines_min: usize,
    /// The encodings of all bodies, in the order of the facts; see [`Tape::new`].
    pub encodings: Vec<Encoding>,
    /// Runs of lines of the bodies that share some in a context; see [`Tape::new`].
    pub windows: Windows,
    /// What calls quote of earlier results: index of the response of the call, hashes of the lines; in order.
    pub quotes: Vec<(u32, Vec<u32>)>,
}

impl Tape {
    /// Lays calls out with the facts about what they were shown; `evictions` and `range_lines_min` see the fields.
    pub fn new(
        mut calls: LaidOutCalls,
        mut facts: Vec<BodyFacts>,
        evictions: Vec<(u32, u32)>,
        sessions: &[SessionProfile],
        range_lines_min: usize,
    ) -> Self {
        let quotes = quotes(&calls, &facts);
        calls.name_bodies(&mut facts);
        let LaidOutCalls { responses, endpoints, .. } = calls;
        // What comes next is in large blocks.
        allocator::give_back_small_blocks();
        let (encodings, windows) = (Vec::new(), Windows::default());
        let sessions = SessionProfiles::new(sessions);
        let mut tape =
            Self { responses, evictions, facts, endpoints, sessions, range_lines_min, encodings, windows, quotes };
        tape.work_out(true);
        tape
    }

    /// Fills in what follows from the rest again, as long as packed lines are there: not on what [`Tape::new`] gives.
    #[cfg(test)]
    pub fn derive(&mut self) {
        self.work_out(false);
    }

    /// Fills in what follows from the rest. With `is_last`, lines as they are packed are dropped, and those of bodies that share
    /// none: no replay asks for them, and they are most of what is known of bodies.
    fn work_out(&mut self, is_last: bool) {
        let mut place = Vec::with_capacity(self.facts.len());
        self.encodings.clear();
        for facts in &self.facts {
            place.push((self.encodings.len() as u32, facts.forms.encodings.len() as u32));
            self.encodings.extend_from_slice(&facts.forms.encodings);
        }
        let (shares, shared) = self.shared_lines();
        let sharing = self.responses.iter().zip(&shares).filter(|(_, shares)| **shares);
        let mut wanted: Vec<u32> = sharing.map(|(response, _)| response.body).collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.windows = Windows::new(&mut self.facts, self.range_lines_min, &wanted, &shared, is_last);
        for (response, shares_lines) in self.responses.iter_mut().zip(shares) {
            if let Some(facts) = self.facts.get(response.body as usize) {
                let encodings = place[response.body as usize];
                let BodyFacts { raw, shape, preview, look, .. } = *facts;
                let showing = response.showing.min(look);
                response.body_at_hand = BodyAtHand { raw, shape, showing, shares_lines, preview, encodings };
            }
        }
    }

    /// The proven encodings of a response's body.
    pub fn encodings_of(&self, response: &Response) -> &[Encoding] {
        let (start, count) = response.body_at_hand.encodings;
        &self.encodings[start as usize..(start + count) as usize]
    }

    /// For each response whether another one of its context shows a window of lines that it shows, and the hashes of those
    /// windows. Most do not.
    fn shared_lines(&self) -> (Vec<bool>, IdSet<u64>) {
        let contexts: Vec<&[Response]> = self.responses.chunk_by(|a, b| a.context() == b.context()).collect();
        let lines = |response: &Response| match response.outcome {
            TapeEntry::Answer => &self.facts_of(response).lines,
            _ => &NOTHING.lines,
        };
        let shared = |context: &&[Response]| runs::shared(context.iter().map(lines), self.range_lines_min);
        let shared: Vec<(Vec<bool>, Vec<u64>)> = contexts.par_iter().map(shared).collect();
        let (shares, hashes): (Vec<Vec<bool>>, Vec<Vec<u64>>) = shared.into_iter().unzip();
        (shares.concat(), hashes.into_iter().flatten().collect())
    }

    /// Whether a response shows what a tool read from this file.
    pub fn is_read_of(&self, response: u32, path: Id) -> bool {
        let response = &self.responses[response as usize];
        response.path == path && self.endpoints[response.endpoint as usize].kind == ToolKind::FileRead
    }

    /// The facts about the body of a response. A record that has none is silent about all of them.
    pub fn facts_of(&self, response: &Response) -> &BodyFacts {
        self.facts.get(response.body as usize).unwrap_or(&NOTHING)
    }
}

/// What calls quote.
fn quotes(calls: &LaidOutCalls, facts: &[BodyFacts]) -> Vec<(u32, Vec<u32>)> {
    let quotes = facts.iter().filter(|facts| facts.is_quote());
    let quotes: IdMap<Id, &BodyFacts> = quotes.map(|facts| (facts.body, facts)).collect();
    let calls = (0..).zip(&calls.quotes);
    calls.filter_map(|(index, name)| Some((index, quotes.get(name)?.texts.hashes().to_vec()))).collect()
}
