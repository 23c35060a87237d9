//! L0, extended: numbered lines that the context was shown before, with the same numbers and the same text, are replaced
//! by a reference per unbroken run; all other lines are sent as they are.
//!
//! Runs are found as in LZ77: what was shown stands in one long row, every place knows the one before it that shows the
//! same, and the longest run of the latest few is taken.

use crate::base::body_shape::LayerId;
use crate::base::tokenizer::Size;
use crate::facts::body_facts::BodyLine;
use crate::facts::hints;
use crate::replay::layers::{Decision, Offer, SentAs};
use crate::replay::runs::{LineRun, NO_WINDOW, Windows};

/// Places that are looked at for the longest run: work per line stays bounded whatever the logs hold.
const PLACES_MAX: usize = 16;

/// A line that was shown as it is.
#[derive(Clone, Copy)]
struct ShownLine {
    /// The window that begins with it, as far as all of it was shown by the same response.
    window: u32,
    /// The position before this one at which the same window was shown.
    before: u32,
    response: u32,
}

/// Remembers which response showed which lines.
pub struct RangeRef<'t> {
    windows: &'t Windows,
    /// By window: the last position at which it was shown; positions below `base` belong to other contexts.
    last: Vec<u32>,
    /// What the context was shown; the first one has the position `base`.
    shown: Vec<ShownLine>,
    base: u32,
    /// What the last offer would have referred to.
    runs: Vec<LineRun>,
}

impl<'t> RangeRef<'t> {
    /// A layer that refers to runs of at least one window. It takes nothing unless it is told what was sent
    /// ([`Self::sent`]), which makes no sense if it is not enabled.
    pub fn new(enabled: bool, windows: &'t Windows) -> Self {
        let last = if enabled { vec![0; windows.count()] } else { Vec::new() };
        Self { windows, last, shown: Vec::new(), base: 1, runs: Vec::new() }
    }

    /// What the last response that was taken refers to.
    pub fn runs(&self) -> &[LineRun] {
        &self.runs
    }

    /// A response that is not offered refers to nothing.
    pub fn pass(&mut self) {
        self.runs.clear();
    }

    /// The longest run with which some lines begin, given by their windows: its length and the response that showed it.
    /// Of equal ones the latest.
    fn longest(&self, windows: &[u32]) -> Option<(usize, u32)> {
        let first = *windows.first().filter(|window| **window != NO_WINDOW)?;
        let mut position = self.last[first as usize];
        let mut best: Option<(usize, u32)> = None;
        for _ in 0..PLACES_MAX {
            let Some(start) = position.checked_sub(self.base) else { break };
            let shown = &self.shown[start as usize..];
            let same = shown.iter().zip(windows).take_while(|(shown, window)| shown.window == **window);
            let equal = same.take_while(|(_, window)| **window != NO_WINDOW).count();
            #[cfg(test)]
            (0..=equal).for_each(|_| crate::base::id::work::step());
            if equal > 0 && best.is_none_or(|(longest, _)| equal > longest) {
                best = Some((equal, shown[0].response));
            }
            position = shown[0].before;
        }
        best.map(|(equal, response)| (equal + self.windows.length() - 1, response))
    }

    /// Notes that a response showed its lines as they are, apart from the runs that it only referred to.
    fn note(&mut self, windows: &[u32], response: u32, runs: &[LineRun]) {
        let mut runs = runs.iter().peekable();
        for (at, &window) in windows.iter().enumerate() {
            while runs.next_if(|run| run.lines.end <= at).is_some() {}
            let whole = runs.peek().is_none_or(|run| at + self.windows.length() <= run.lines.start);
            let window = if whole { window } else { NO_WINDOW };
            self.push(window, response);
        }
        // No run goes on in the next response.
        self.push(NO_WINDOW, response);
    }

    fn push(&mut self, window: u32, response: u32) {
        let position = self.base + self.shown.len() as u32;
        let before = self.last.get_mut(window as usize).map_or(0, |last| std::mem::replace(last, position));
        self.shown.push(ShownLine { window, before, response });
    }

    /// Nothing of this context can be referred to any more.
    pub fn forget(&mut self) {
        match self.base.checked_add(self.shown.len() as u32).filter(|base| *base < u32::MAX / 2) {
            Some(base) => self.base = base,
            None => {
                self.base = 1;
                self.last.fill(0);
            }
        }
        self.shown.clear();
    }

    /// What a response showed is gone.
    pub fn evict(&mut self, response: u32) {
        let start = self.shown.partition_point(|shown| shown.response < response);
        let gone = self.shown[start..].iter_mut().take_while(|shown| shown.response == response);
        gone.for_each(|shown| shown.window = NO_WINDOW);
    }

    /// Takes the response, or passes it on to the next layer.
    pub fn offer(&mut self, offer: &Offer<'_>) -> Option<Decision> {
        self.runs.clear();
        if self.shown.is_empty() || !offer.response.body_at_hand.shares_lines {
            return None;
        }
        let (body, counting) = (offer.response.body, offer.session.counting);
        let (lines, windows) = (self.windows.lines_of(body), self.windows.of(body));
        let (mut size, mut at) = (Size::default(), 0);
        while at < lines.len() {
            let found = self.longest(&windows[at..]).and_then(|(length, response)| {
                let (first, last) = (lines[at].number, lines[at + length - 1].number);
                let handle = &offer.tape.responses[response as usize].handle;
                let hint = hints::range_size(first, last).plus(&handle.size());
                // A hint that is no cheaper than its lines only hides them.
                let pays = counting.tokens(&hint) < counting.tokens(&size_of(&lines[at..at + length]));
                pays.then_some((length, response, hint))
            });
            if let Some((length, shown_by, hint)) = found {
                self.runs.push(LineRun { lines: at..at + length, shown_by });
                size = size.plus(&hint);
                at += length;
            } else {
                size = size.plus(&lines[at].size);
                at += 1;
            }
        }
        let tokens = counting.tokens(&size);
        if self.runs.is_empty() || tokens >= offer.otherwise {
            self.runs.clear();
            return None;
        }
        Some(Decision { layer: LayerId::L0, what: SentAs::RangeReference, tokens })
    }

    /// A response was sent, in full or in part.
    pub fn sent(&mut self, offer: &Offer<'_>, what: SentAs) {
        if !offer.response.body_at_hand.shares_lines {
            return;
        }
        let windows = self.windows.of(offer.response.body);
        match what {
            SentAs::RangeReference => {
                let runs = std::mem::take(&mut self.runs);
                self.note(windows, offer.index, &runs);
                self.runs = runs;
            }
            SentAs::Encoded(_) | SentAs::AsIs => self.note(windows, offer.index, &[]),
            SentAs::Reference(_) | SentAs::NearReference(_) => {}
        }
    }
}

fn size_of(lines: &[BodyLine]) -> Size {
    lines.iter().fold(Size::default(), |sum, line| sum.plus(&line.size))
}
