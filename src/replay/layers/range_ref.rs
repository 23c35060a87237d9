//! L0, extended: numbered lines that the context was shown before, with the same numbers and the same text, are answered
//! by a reference per unbroken run; all other lines are sent as they are.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::content::hints;
use crate::model::body_facts::{Line, Size};
use crate::model::id::IdHasher;
use crate::model::savings::LayerId;
use crate::replay::cache::Cache;
use crate::replay::layers::Layer;
use crate::replay::offer::{Decision, Event, Offer, What};

/// Lines by the hash of number and text.
type Lines = HashMap<u32, u32, BuildHasherDefault<IdHasher>>;

/// Remembers which response showed which lines.
pub struct RangeRef {
    enabled: bool,
    run_min: usize,
    shown: Lines,
    /// The lines that the last offer would have sent as they are.
    verbatim: Vec<u32>,
    total: u64,
}

impl RangeRef {
    /// A layer that refers to runs of at least `run_min` lines.
    pub fn new(enabled: bool, run_min: usize) -> Self {
        Self { enabled, run_min, shown: Lines::default(), verbatim: Vec::new(), total: 0 }
    }

    /// Responses answered in this way so far.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The run of lines from the start of `lines` that one response showed; its length and the response.
    fn run(&self, lines: &[Line]) -> Option<(usize, u32)> {
        let shown_by = |line: &Line| self.shown.get(&line.hash).copied().filter(|_| line.number > 0);
        let response = shown_by(lines.first()?)?;
        let follows = |pair: &[Line]| pair[1].number == pair[0].number + 1 && shown_by(&pair[1]) == Some(response);
        let more = lines.windows(2).take_while(|pair| follows(pair)).count();
        Some((more + 1, response))
    }
}

impl Layer for RangeRef {
    fn offer(&mut self, offer: &Offer<'_>, _cache: &mut Cache) -> Option<Decision> {
        self.verbatim.clear();
        if self.shown.is_empty() || !offer.response.body_at_hand.shares_lines {
            return None;
        }
        let lines = &offer.facts().lines;
        let (mut size, mut at, mut referred) = (Size::default(), 0, false);
        while at < lines.len() {
            match self.run(&lines[at..]).filter(|(length, _)| *length >= self.run_min) {
                Some((length, response)) => {
                    let (first, last) = (lines[at].number, lines[at + length - 1].number);
                    let handle = &offer.tape.responses[response as usize].handle;
                    size = size.plus(&hints::range_size(first, last)).plus(&handle.size());
                    at += length;
                    referred = true;
                }
                None => {
                    size = size.plus(&lines[at].size);
                    if lines[at].number > 0 {
                        self.verbatim.push(lines[at].hash);
                    }
                    at += 1;
                }
            }
        }
        let tokens = offer.session.counting.tokens(&size);
        if !referred || tokens >= offer.otherwise {
            return None;
        }
        self.total += 1;
        Some(Decision { layer: LayerId::L0, what: What::RangeReference, tokens })
    }

    fn observe(&mut self, event: &Event<'_>) {
        match event {
            _ if !self.enabled => {}
            Event::Boundary { .. } => self.shown.clear(),
            Event::Evicted(response) => self.shown.retain(|_, by| by != response),
            Event::Sent(offer, _) if !offer.response.body_at_hand.shares_lines => {}
            Event::Sent(offer, decision) => match decision.what {
                What::RangeReference => {
                    let sent = self.verbatim.drain(..).map(|hash| (hash, offer.index));
                    self.shown.extend(sent);
                }
                What::Encoded(_) | What::AsIs => {
                    let lines = offer.facts().lines.iter().filter(|line| line.number > 0);
                    self.shown.extend(lines.map(|line| (line.hash, offer.index)));
                }
                What::Reference(_) | What::NearReference(_) => {}
            },
        }
    }
}
