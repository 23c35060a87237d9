//! Windows of consecutive numbered lines, each with a number of its own: equal numbers, equal lines. A run of lines
//! that two bodies share is a row of equal numbers, so that a replay compares numbers only.

use std::ops::Range;

use rayon::prelude::*;

use crate::base::id::{IdMap, IdSet};
use crate::facts::body_facts::{BodyFacts, BodyLine, BodyLines};

/// Stands where no window begins.
pub const NO_WINDOW: u32 = u32::MAX;
/// Stands where a body shares no lines.
const NOT_SHOWN: u32 = u32::MAX;
/// Base of the rolling hash by which windows are looked up; equality is decided by the lines.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

/// One line is no window: that two of them follow each other is seen from the line that they share.
pub const WINDOW_LINES_MIN: usize = 2;

/// Bodies whose windows are looked for at once: enough for all threads, few enough that what is found takes little room.
const BODIES_AT_ONCE: usize = 4096;

/// The windows of the bodies of a tape that share some.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// Lines of a window.
    length: usize,
    /// By body its place in `shown`, or [`NOT_SHOWN`].
    places: Vec<u32>,
    shown: Vec<NumberedLines>,
    /// Distinct windows.
    count: u32,
}

/// The lines of a body, and by line the window that begins there, or [`NO_WINDOW`].
#[derive(Clone, Debug, Default)]
struct NumberedLines {
    lines: Box<[BodyLine]>,
    windows: Box<[u32]>,
}

impl Windows {
    /// Numbers windows of `length` lines, those with a hash in `shared`, of some bodies (indices, in order), and unpacks their
    /// lines. With `is_last`, packed lines are dropped in the end: nobody asks for them again.
    pub fn new(facts: &mut [BodyFacts], length: usize, wanted: &[u32], shared: &IdSet<u64>, is_last: bool) -> Self {
        let length = length.max(WINDOW_LINES_MIN);
        let mut windows = Self { length, places: vec![NOT_SHOWN; facts.len()], ..Self::default() };
        let mut known: IdMap<u64, FirstWindow> = IdMap::default();
        let mut numbers: Vec<Box<[u32]>> = Vec::with_capacity(wanted.len());
        let shared_in = |lines: &mut Vec<BodyLine>, body: &u32| {
            let mut found: Vec<(u32, u64)> = Vec::new();
            let packed = &facts[*body as usize].lines;
            hashes(packed, length, lines, |at, hash| found.extend(shared.contains(&hash).then_some((at, hash))));
            found
        };
        for bodies in wanted.chunks(BODIES_AT_ONCE) {
            let found: Vec<Vec<(u32, u64)>> = bodies.par_iter().map_init(Vec::new, shared_in).collect();
            for (body, found) in bodies.iter().zip(found) {
                windows.places[*body as usize] = numbers.len() as u32;
                numbers.push(windows.number(facts, *body, &found, &mut known));
            }
        }
        drop(known);
        let given = |body: &u32| {
            let lines = &mut facts[*body as usize].lines;
            if is_last { std::mem::take(lines) } else { lines.clone() }
        };
        let given: Vec<BodyLines> = wanted.iter().map(given).collect();
        if is_last {
            facts.iter_mut().for_each(|row| row.lines = BodyLines::default());
        }
        let unpacked = |(lines, numbers): (BodyLines, _)| NumberedLines::new(lines.iter(), numbers, length);
        windows.shown = given.into_par_iter().zip(numbers).map(unpacked).collect();
        windows
    }

    /// Numbers the windows of a body that stand elsewhere, given by place and hash.
    fn number(
        &mut self,
        facts: &[BodyFacts],
        body: u32,
        found: &[(u32, u64)],
        known: &mut IdMap<u64, FirstWindow>,
    ) -> Box<[u32]> {
        let mut numbers = vec![NO_WINDOW; facts[body as usize].lines.len()];
        for &(at, hash) in found {
            let here = FirstWindow { body, at, number: self.count };
            let first = *known.entry(hash).or_insert(here);
            // The witness of a line covers its number as well.
            let texts = |known: FirstWindow| facts[known.body as usize].lines.witnesses_of(known.at, self.length);
            // Two windows under one hash: the later one is not referred to, rather than taken for the other.
            if texts(first) == texts(here) {
                numbers[at as usize] = first.number;
                self.count = self.count.max(first.number + 1);
            }
        }
        numbers.into()
    }

    fn shown(&self, body: u32) -> Option<&NumberedLines> {
        self.shown.get(*self.places.get(body as usize)? as usize)
    }

    /// The lines of a body, if others share some; those that none shares may stand together as one.
    pub fn lines_of(&self, body: u32) -> &[BodyLine] {
        self.shown(body).map_or(&[], |shown| &shown.lines)
    }

    /// Makes a line of a body another one, as if its window had been numbered before.
    #[cfg(test)]
    pub fn change_line_of(&mut self, body: usize, line: usize, text: u64) {
        self.shown[self.places[body] as usize].lines[line].text = text;
    }

    /// Lines of a window.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many different windows there are: their numbers are smaller.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// By line of [`Windows::lines_of`]: the number of the window that begins there, or [`NO_WINDOW`].
    pub fn of(&self, body: u32) -> &[u32] {
        self.shown(body).map_or(&[], |shown| &shown.windows)
    }
}

impl NumberedLines {
    /// Lines that stand in no window that counts are never referred to, so neighbours become one: they are most lines.
    fn new(lines: impl Iterator<Item = BodyLine>, windows: Box<[u32]>, length: usize) -> Self {
        let mut kept = JoinedLines::default();
        // Where the last window that counts ends.
        let mut end = 0;
        for (at, (line, window)) in lines.zip(windows).enumerate() {
            if window != NO_WINDOW {
                end = at + length;
            }
            kept.push(line, window, at >= end);
        }
        let (lines, windows): (Vec<BodyLine>, Vec<u32>) = kept.lines.into_iter().unzip();
        Self { lines: lines.into(), windows: windows.into() }
    }
}

/// Lines with the windows that begin there, neighbours that none shares as one. The text of these depends on how they were joined:
/// nobody compares it.
#[derive(Default)]
pub struct JoinedLines {
    pub lines: Vec<(BodyLine, u32)>,
    /// Whether the line before is shared by none.
    is_alone: bool,
}

impl JoinedLines {
    /// Adds a line; says whether none shares it.
    pub fn push(&mut self, line: BodyLine, window: u32, is_alone: bool) {
        let was_alone = std::mem::replace(&mut self.is_alone, is_alone);
        match self.lines.last_mut() {
            Some((before, _)) if was_alone && is_alone => {
                let text = before.text.wrapping_mul(BASE).wrapping_add(line.text);
                *before = BodyLine { number: 0, text, size: before.size.plus(&line.size) };
            }
            _ => self.lines.push((line, window)),
        }
    }
}

/// For each of the responses of one context, given by the lines that they show, whether another one shows a window of lines that it
/// shows: all others can neither refer to lines nor be referred to. Also the hashes of those windows; two windows under one hash
/// pass for one, which costs nothing but time.
pub fn shared<'f>(responses: impl Iterator<Item = &'f BodyLines>, length: usize) -> (Vec<bool>, Vec<u64>) {
    let length = length.max(WINDOW_LINES_MIN);
    let responses: Vec<&BodyLines> = responses.collect();
    let (mut shares, mut shared) = (vec![false; responses.len()], Vec::new());
    if responses.iter().filter(|lines| !lines.is_empty()).nth(1).is_none() {
        return (shares, shared);
    }
    let (mut first, mut unpacked) = (IdMap::default(), Vec::new());
    for (place, lines) in responses.iter().enumerate() {
        hashes(lines, length, &mut unpacked, |_, hash| {
            let earlier = *first.entry(hash).or_insert(place);
            if earlier != place {
                (shares[earlier], shares[place]) = (true, true);
                shared.push(hash);
            }
        });
    }
    shared.sort_unstable();
    shared.dedup();
    (shares, shared)
}

/// Where a window was first met.
#[derive(Clone, Copy)]
struct FirstWindow {
    body: u32,
    at: u32,
    number: u32,
}

/// Hands on where windows begin in a body, with the hash of each. `lines` has room for its lines.
fn hashes(packed: &BodyLines, length: usize, lines: &mut Vec<BodyLine>, mut each: impl FnMut(u32, u64)) {
    lines.clear();
    lines.extend(packed.iter());
    let drop = (0..length).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let (mut run, mut sum, mut last) = (0, 0_u64, 0);
    for (at, line) in lines.iter().enumerate() {
        if run > 0 && line.number != last + 1 {
            (run, sum) = (0, 0);
        }
        if line.number == 0 {
            (run, sum) = (0, 0);
            continue;
        }
        last = line.number;
        run += 1;
        sum = sum.wrapping_mul(BASE).wrapping_add(line.text);
        if run > length {
            sum = sum.wrapping_sub(drop.wrapping_mul(lines[at - length].text));
        }
        if run >= length {
            each((at + 1 - length) as u32, sum);
        }
    }
}

/// A run of lines that a hint stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineRun {
    /// Places among the lines of the body, as [`Windows::lines_of`] has them.
    pub lines: Range<usize>,
    /// Index of the response that showed them.
    pub shown_by: u32,
}
