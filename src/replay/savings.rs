//! What was saved, by whom: tallies by layer, the three figures made from them, the books of a replay, for everything and for
//! every endpoint, shape and session, and the figures to read them against.
//! And the effects of changes that are made together, as shares of the whole that they have together.
//!
//! Alone, each of several changes may do what one of them suffices for. A share is the mean of what a change does alone
//! and what it does as the last one (for two, the Shapley value); what is left of the whole goes to each by how far the
//! two are apart, so that what shares nothing with others keeps its effect, and all shares add up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::data::Data;
use crate::base::error::Result;
use crate::facts::encode;
use crate::replay::layers::{Decision, SentAs};
use crate::replay::tape::{Response, Tape, TapeEntry};

/// Sums over some responses, by layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    pub responses: [u64; 4],
    /// Tokens as they are.
    pub baseline: [u64; 4],
    /// Tokens sent.
    pub sent: [u64; 4],
}

/// The three figures, as shares of 1. They are undefined (none) where their denominator is 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Savings {
    /// Saved by L0, of all baseline tokens.
    pub dedup: Option<f64>,
    /// Saved by L1 and L2, of the baseline tokens of responses that missed L0.
    pub encoder: Option<f64>,
    /// Saved by all layers, of all baseline tokens.
    pub combined: Option<f64>,
}

impl Tally {
    /// Adds one response.
    pub fn add(&mut self, layer: LayerId, baseline: u64, sent: u64) {
        let layer = layer as usize;
        self.responses[layer] += 1;
        self.baseline[layer] += baseline;
        self.sent[layer] += sent;
    }

    /// Adds another tally.
    pub fn absorb(&mut self, other: &Self) {
        for layer in 0..4 {
            self.responses[layer] += other.responses[layer];
            self.baseline[layer] += other.baseline[layer];
            self.sent[layer] += other.sent[layer];
        }
    }

    /// Responses with text.
    pub fn count(&self) -> u64 {
        self.responses.iter().sum()
    }

    /// Their tokens as they are.
    pub fn baseline(&self) -> u64 {
        self.baseline.iter().sum()
    }

    /// Their tokens as sent.
    pub fn sent(&self) -> u64 {
        self.sent.iter().sum()
    }

    /// Tokens saved by one layer.
    pub fn saved_by(&self, layer: LayerId) -> u64 {
        self.baseline[layer as usize].saturating_sub(self.sent[layer as usize])
    }

    /// Tokens saved by the encoders.
    pub fn saved_by_encoders(&self) -> u64 {
        self.saved_by(LayerId::L1) + self.saved_by(LayerId::L2)
    }

    /// Tokens saved.
    pub fn saved(&self) -> u64 {
        self.baseline().saturating_sub(self.sent())
    }

    /// Tokens of the responses that missed L0.
    pub fn missed(&self) -> u64 {
        self.baseline() - self.baseline[LayerId::L0 as usize]
    }

    /// The three figures (Paper 2, "Reporting rule").
    pub fn savings(&self) -> Savings {
        Savings {
            dedup: share(self.saved_by(LayerId::L0), self.baseline()),
            encoder: share(self.saved_by_encoders(), self.missed()),
            combined: share(self.saved(), self.baseline()),
        }
    }

    /// Whether the books balance: what came in is what was sent and what was saved, layer by layer; nothing grew; the
    /// last layer saved nothing; and the three figures compose, `combined = d + (1 − d′)·e` with d′ the baseline share
    /// of L0 hits. In tokens that is a sum of whole numbers, so it is checked without rounding.
    pub fn balances(&self) -> bool {
        let grew = (0..4).any(|layer| self.sent[layer] > self.baseline[layer]);
        let last = LayerId::L3 as usize;
        let composed = self.saved_by(LayerId::L0) + self.saved_by_encoders();
        let figures = self.savings();
        let hit_share = share(self.baseline[LayerId::L0 as usize], self.baseline()).unwrap_or_default();
        let combined = figures.dedup.unwrap_or_default() + (1.0 - hit_share) * figures.encoder.unwrap_or_default();
        let same = (combined - figures.combined.unwrap_or_default()).abs() < 1e-9;
        !grew && self.sent[last] == self.baseline[last] && composed == self.saved() && same
    }
}

/// Everything that was decided in one replay.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Ledger {
    pub total: Tally,
    /// By endpoint of the tape.
    pub endpoints: Vec<Tally>,
    /// By number of the shape.
    pub shapes: Vec<Tally>,
    /// By session of the tape.
    pub sessions: Vec<Tally>,
    /// By number of the format, for what L1 and L2 sent.
    pub formats: Vec<Tally>,
    /// Answers by exact references.
    pub references: u64,
    /// Answers by near-references.
    pub near_refs: u64,
    /// Answers by references to lines.
    pub range_refs: u64,
    /// Responses of which no facts are known; they are in no other figure.
    pub unstudied: u64,
}

impl Ledger {
    pub(super) fn new(tape: &Tape) -> Self {
        Self {
            endpoints: vec![Tally::default(); tape.endpoints.len()],
            shapes: vec![Tally::default(); BodyShape::COUNT],
            sessions: vec![Tally::default(); tape.sessions.profile_of.len()],
            formats: vec![Tally::default(); encode::REGISTER.len()],
            ..Self::default()
        }
    }

    /// Books what was decided for a response; nothing for one without text.
    pub(super) fn note(&mut self, response: &Response, baseline: u64, decision: Option<&Decision>) {
        let Some(&Decision { layer, what, tokens }) = decision else {
            self.unstudied += u64::from(response.outcome == TapeEntry::Unstudied);
            return;
        };
        let session = &mut self.sessions[response.session as usize];
        let endpoint = &mut self.endpoints[response.endpoint as usize];
        let shape = &mut self.shapes[response.body_at_hand.shape as usize % BodyShape::COUNT];
        // The total is that of all shapes: it is added up at the end.
        for tally in [session, endpoint, shape] {
            tally.add(layer, baseline, tokens);
        }
        match what {
            SentAs::Encoded(format) => self.formats[format as usize].add(layer, baseline, tokens),
            SentAs::Reference(_) => self.references += 1,
            SentAs::NearReference(_) => self.near_refs += 1,
            SentAs::RangeReference => self.range_refs += 1,
            SentAs::AsIs => {}
        }
    }

    /// Adds up and checks the books.
    ///
    /// # Panics
    /// If they do not balance, which is a fault of the replay.
    pub(super) fn close(&mut self) {
        let mut sums = [Tally::default(); 2];
        self.endpoints.iter().for_each(|tally| sums[0].absorb(tally));
        self.sessions.iter().for_each(|tally| sums[1].absorb(tally));
        self.total = Tally::default();
        self.shapes.iter().for_each(|tally| self.total.absorb(tally));
        assert!(self.total.balances(), "the books of the replay balance");
        assert!(sums.iter().all(|sum| *sum == self.total), "every response is in one endpoint, shape and session");
    }
}

/// Hints that were expanded back to the body for which they stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Expanded {
    /// Gave the body back.
    pub same: u64,
    /// Did not: a fault of the replay.
    pub different: u64,
}

/// A share of 1; none of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Tokens that exact references alone would save.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// All tokens.
    pub baseline: u64,
    /// With as many entries as configured: of the largest references as many as evicting what is needed last gives
    /// (Belady 1966).
    pub clairvoyant: u64,
    /// With room for everything.
    pub unlimited: u64,
    /// Repeats, whatever their size.
    pub repeats: u64,
}

/// The published figures, as shares of 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PublishedClaim {
    /// Events answered by a hint, of all events.
    pub hits: Option<f64>,
    /// Saved by hints, of all tokens.
    pub dedup: Option<f64>,
    /// "Saved" by encoders, of all tokens.
    pub encoder: Option<f64>,
    /// The sum of both.
    pub total: Option<f64>,
    /// The formula of the paper: `p + (1 − p)·e`, with p the share of events that hit.
    pub formula: Option<f64>,
}

/// Published figures about other logs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PaperClaim {
    pub source: String,
    pub hits: f64,
    pub saved: f64,
}

/// Published figures to print beside devboy's own.
pub fn paper_claim(data: &Data) -> Result<PaperClaim> {
    data.parsed::<Claims>("claims.toml").map(|claims| claims.paper_2)
}

#[derive(Deserialize)]
struct Claims {
    paper_2: PaperClaim,
}

/// Tokens saved more, by session; sessions without a difference may be left out.
pub type SavedBySession = BTreeMap<u32, f64>;

/// Everything of it.
pub fn total(effect: &SavedBySession) -> f64 {
    effect.values().sum()
}

/// The shares of changes in `whole`, by what each does alone and as the last one.
pub fn shares(alone: &[SavedBySession], last: &[SavedBySession], whole: &SavedBySession) -> Vec<SavedBySession> {
    let means: Vec<SavedBySession> =
        alone.iter().zip(last).map(|(alone, last)| combined(alone, last, 0.5, 0.5)).collect();
    let apart: Vec<f64> = alone.iter().zip(last).map(|(alone, last)| (total(alone) - total(last)).abs()).collect();
    let all_apart: f64 = apart.iter().sum();
    let left = means.iter().fold(whole.clone(), |left, mean| combined(&left, mean, 1.0, -1.0));
    let part = |apart: f64| if all_apart > 0.0 { apart / all_apart } else { 1.0 / means.len() as f64 };
    means.iter().zip(&apart).map(|(mean, &apart)| combined(mean, &left, 1.0, part(apart))).collect()
}

/// A weighted sum of two effects.
fn combined(a: &SavedBySession, b: &SavedBySession, weight_a: f64, weight_b: f64) -> SavedBySession {
    let mut sum: SavedBySession = a.iter().map(|(&session, effect)| (session, weight_a * effect)).collect();
    b.iter().for_each(|(&session, effect)| *sum.entry(session).or_default() += weight_b * effect);
    sum
}
