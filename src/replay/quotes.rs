//! Later edits that quote what a result showed: is it still shown as it was?
//!
//! Compared are whole lines, by hash, without the white space around them; an edit quotes what was shown if all of its
//! lines were, of which the first and the last may be parts of lines. It is at risk if such a line was sent only in an
//! encoding that does not hold it byte for byte.

use serde::{Deserialize, Serialize};

use crate::base::id::IdMap;
use crate::facts::body_facts::BodyFacts;
use crate::replay::layers::SentAs;
use crate::replay::scenario::Scenario;
use crate::replay::stack::replay_each;
use crate::replay::tape::Tape;

/// Edits that quote what a result of their context showed before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quotes {
    /// Edits of which every line was shown, the first and the last perhaps in part.
    pub edits: u64,
    /// Of these, edits with a line that was sent only in an encoding that does not hold it as it stood.
    pub at_risk: u64,
}

impl Quotes {
    /// Adds an edit: for each of its lines whether it was shown, and then whether it was sent as it stood.
    pub fn add(&mut self, lines: &[Option<bool>]) {
        let inner = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
        let quotes = inner.iter().all(Option::is_some) && lines.iter().any(Option::is_some);
        self.edits += u64::from(quotes);
        self.at_risk += u64::from(quotes && lines.contains(&Some(false)));
    }
}

/// Counts the edits of a tape that quote earlier results of their context, under a configuration.
pub fn quotes(tape: &Tape, scenario: &Scenario) -> Quotes {
    let mut sent = vec![None; tape.responses.len()];
    replay_each(tape, scenario, &mut |index, decision| sent[index as usize] = Some(decision.what));
    let mut quotes = tape.quotes.iter().peekable();
    let mut context = None;
    // Lines that the context was shown, and whether they were sent as they stood.
    let mut shown: IdMap<u32, bool> = IdMap::default();
    let mut counted = Quotes::default();
    for ((index, response), what) in (0..).zip(&tape.responses).zip(sent) {
        if context.replace(response.context()) != Some(response.context()) {
            shown.clear();
        }
        while let Some((_, lines)) = quotes.next_if(|(call, _)| *call <= index) {
            counted.add(&lines.iter().map(|line| shown.get(line).copied()).collect::<Vec<_>>());
        }
        if let Some(what) = what {
            show(tape.facts_of(response), what, &mut shown);
        }
    }
    counted
}

/// Adds the lines of a result. What a reference stands for was sent before; around references to lines the others are
/// sent as they are.
fn show(facts: &BodyFacts, what: SentAs, shown: &mut IdMap<u32, bool>) {
    let is_whole = |lost_in: u32| match what {
        SentAs::AsIs | SentAs::RangeReference => true,
        SentAs::Encoded(format) => lost_in >> format & 1 == 0,
        SentAs::Reference(_) | SentAs::NearReference(_) => false,
    };
    for text in facts.texts.iter() {
        *shown.entry(text.hash).or_default() |= is_whole(text.lost_in);
    }
}
