//! Whether the hints of a replay are right: each is expanded over what was really sent before it, and compared with the
//! body that it stands for. Shares nothing with the layers that wrote it.

use crate::base::id::IdMap;
use crate::facts::body_facts::{BodyFacts, BodyLine, NearField, NearSignature};
use crate::replay::layers::{Decision, SentAs};
use crate::replay::runs::LineRun;
use crate::replay::savings::Expanded;
use crate::replay::tape::Tape;

/// What stands in the context now, by response.
pub struct Expansion<'t> {
    tape: &'t Tape,
    sent: IdMap<u32, SentForm>,
    counts: Expanded,
}

enum SentForm {
    AsIs,
    Encoded,
    /// The lines apart from those that hints stood for.
    Lines(Vec<LineRun>),
}

impl<'t> Expansion<'t> {
    /// An empty context.
    pub fn new(tape: &'t Tape) -> Self {
        Self { tape, sent: IdMap::default(), counts: Expanded::default() }
    }

    /// Another context, or another partition: nothing stands in it.
    pub fn enter(&mut self) {
        self.sent.clear();
    }

    /// A result is gone.
    pub fn evict(&mut self, response: u32) {
        self.sent.remove(&response);
    }

    /// Something was sent for a response; `runs` are the lines that it refers to.
    pub fn send(&mut self, response: u32, decision: &Decision, runs: &[LineRun]) {
        let holds = match decision.what {
            SentAs::AsIs => return self.show(response, SentForm::AsIs),
            SentAs::Encoded(_) => return self.show(response, SentForm::Encoded),
            SentAs::Reference(to) => self.is_same(response, to),
            SentAs::NearReference(to) => self.is_near(response, to),
            SentAs::RangeReference => {
                let holds = self.gives_lines_back(response, runs);
                self.show(response, SentForm::Lines(runs.to_vec()));
                holds
            }
        };
        let counted = if holds { &mut self.counts.same } else { &mut self.counts.different };
        *counted += 1;
    }

    /// How many hints were expanded, and how many of these did not give the body back.
    pub fn finish(self) -> Expanded {
        self.counts
    }

    fn show(&mut self, response: u32, sent: SentForm) {
        self.sent.insert(response, sent);
    }

    fn facts(&self, response: u32) -> &'t BodyFacts {
        self.tape.facts_of(&self.tape.responses[response as usize])
    }

    fn lines(&self, response: u32) -> &'t [BodyLine] {
        self.tape.windows.lines_of(self.tape.responses[response as usize].body)
    }

    fn is_same(&self, response: u32, to: u32) -> bool {
        let (here, there) = (self.facts(response), self.facts(to));
        let stands = matches!(self.sent.get(&to), Some(SentForm::AsIs | SentForm::Encoded));
        let one_body = self.tape.responses[response as usize].body == self.tape.responses[to as usize].body;
        stands && one_body && here.sha == there.sha
    }

    fn is_near(&self, response: u32, to: u32) -> bool {
        let stands = matches!(self.sent.get(&to), Some(SentForm::AsIs));
        let signatures = self.facts(to).near.as_deref().zip(self.facts(response).near.as_deref());
        stands && signatures.is_some_and(|(there, here)| changed(there, here).as_ref() == Some(here))
    }

    /// Writes the list of lines anew, taking from other responses what hints say, and compares.
    fn gives_lines_back(&self, response: u32, runs: &[LineRun]) -> bool {
        let own = self.lines(response);
        let mut lines: Vec<BodyLine> = Vec::with_capacity(own.len());
        let mut known: IdMap<u32, Option<ShownLines<'t>>> = IdMap::default();
        for run in runs {
            let (Some(before), Some(said)) = (own.get(lines.len()..run.lines.start), own.get(run.lines.clone())) else {
                return false;
            };
            lines.extend_from_slice(before);
            let (Some(first), Some(last)) = (said.first(), said.last()) else { return false };
            let shown = known.entry(run.shown_by).or_insert_with(|| self.shown(run.shown_by)).as_ref();
            let Some(shown) = shown.and_then(|shown| shown.between(first.number, last.number)) else { return false };
            lines.extend_from_slice(shown);
        }
        lines.extend_from_slice(own.get(lines.len()..).unwrap_or_default());
        lines == own
    }

    /// The lines of a response; none if it does not stand in the context.
    fn shown(&self, response: u32) -> Option<ShownLines<'t>> {
        let runs = match self.sent.get(&response)? {
            SentForm::AsIs | SentForm::Encoded => &[][..],
            SentForm::Lines(runs) => runs,
        };
        Some(ShownLines::of(self.lines(response), runs))
    }
}

/// The lines of a response, made once for all hints of another one.
struct ShownLines<'t> {
    lines: &'t [BodyLine],
    /// Where each number stands first.
    places: IdMap<u32, usize>,
    /// How many lines that hints stood for come before each place; the last entry is their number.
    hidden: Vec<usize>,
}

impl<'t> ShownLines<'t> {
    fn of(lines: &'t [BodyLine], runs: &[LineRun]) -> Self {
        let mut places = IdMap::default();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.number > 0) {
            places.entry(line.number).or_insert(place);
        }
        let mut is_hidden = vec![false; lines.len()];
        for run in runs {
            is_hidden.get_mut(run.lines.clone()).into_iter().flatten().for_each(|hidden| *hidden = true);
        }
        let mut hidden = vec![0];
        hidden.extend(is_hidden.iter().scan(0, |count, hidden| {
            *count += usize::from(*hidden);
            Some(*count)
        }));
        Self { lines, places, hidden }
    }

    /// The lines with these numbers, if all of them are shown.
    fn between(&self, first: u32, last: u32) -> Option<&'t [BodyLine]> {
        let start = *self.places.get(&first)?;
        let end = start + last.checked_sub(first)? as usize + 1;
        let found = self.lines.get(start..end)?;
        let numbers = found.iter().map(|line| line.number).eq(first..=last);
        (numbers && self.hidden[start] == self.hidden[end]).then_some(found)
    }
}

/// An earlier object with the changes of a near-reference to a later one made in it; none if the hint cannot tell them.
fn changed(earlier: &NearSignature, later: &NearSignature) -> Option<NearSignature> {
    if earlier.fields.len() != later.fields.len() {
        return None;
    }
    // Where the values are the same, whatever else is known of them is that of the same text.
    let field =
        |(old, new): (&NearField, &NearField)| (old.value == new.value || old.plain && new.plain).then_some(*new);
    let fields = earlier.fields.iter().zip(&later.fields).map(field).collect::<Option<Vec<_>>>()?;
    Some(NearSignature { skeleton: earlier.skeleton, fields })
}
