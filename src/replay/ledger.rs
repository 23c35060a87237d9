//! The books: baseline and sent tokens by layer, for everything and for every endpoint, shape and session.

use crate::base::body_shape::BodyShape;
use crate::facts::encode;
use crate::replay::layers::{Decision, SentAs};
use crate::replay::savings::Tally;
use crate::replay::tape::{Response, Tape, TapeEntry};

/// Everything that was decided in one replay.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Ledger {
    /// All responses.
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
    /// Places that were looked at for lines: the work of these references, which has a bound.
    #[cfg(test)]
    pub range_looks: u64,
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
