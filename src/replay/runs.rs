//! Windows of consecutive numbered lines, each with a number of its own: equal numbers, equal lines. A run of lines
//! that two bodies share is a row of equal numbers, so that a replay compares numbers only.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::base::id::IdMap;
use crate::facts::body_facts::{BodyFacts, BodyLine, BodyLines};

/// Stands where no window begins.
pub const NO_WINDOW: u32 = u32::MAX;
/// Base of the rolling hash by which windows are looked up; equality is decided by the lines.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bodies whose windows are looked for at once: enough for all threads, few enough that what is found takes little room.
const BODIES_AT_ONCE: usize = 4096;

/// The windows of all bodies of a tape.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// Lines of a window.
    length: usize,
    /// By line of each body that has some: the window that begins there.
    numbers: Vec<u32>,
    /// Where each body's lines begin; one more than there are bodies.
    starts: Vec<u32>,
    /// By body its lines, unpacked, once somebody asks for them ([`Windows::unpack_lines_of`]); nothing of the others.
    lines: Vec<Box<[BodyLine]>>,
    /// Distinct windows.
    count: u32,
}

impl Windows {
    /// Numbers the windows of `length` lines of all bodies. One line is no window: that two of them follow each
    /// other is seen from the line that they share.
    ///
    /// Only what stands in two places gets a number, a body of which `repeats` says that it is shown twice being two
    /// places: most windows stand in one.
    pub fn new(facts: &[BodyFacts], length: usize, repeats: &[bool]) -> Self {
        let length = length.max(2);
        let mut windows = Self { length, starts: vec![0], ..Self::default() };
        let lines = facts.iter().map(|row| row.lines.len()).sum();
        // Room that is not used is no memory, and a list that grows stands there twice for a moment.
        windows.numbers.reserve_exact(lines);
        let seen = SeenHashes::with_room_for(lines);
        facts.par_iter().zip(repeats).for_each_init(Vec::new, |lines, (row, &repeats)| {
            hashes(row, length, lines, |_, hash| seen.add(hash, repeats));
        });
        let often = seen.into_twice();
        let mut known: IdMap<u64, FirstWindow> = IdMap::default();
        let often_in = |lines: &mut Vec<BodyLine>, row: &BodyFacts| {
            let mut found: Vec<(u32, u64)> = Vec::new();
            hashes(row, length, lines, |at, hash| found.extend(often.has(hash).then_some((at, hash))));
            found
        };
        let mut body = 0;
        for rows in facts.chunks(BODIES_AT_ONCE) {
            let found: Vec<Vec<(u32, u64)>> = rows.par_iter().map_init(Vec::new, often_in).collect();
            for found in found {
                windows.add(facts, body, &found, &mut known);
                body += 1;
            }
        }
        windows
    }

    /// Adds a body by the windows in it that may stand elsewhere, as places and hashes.
    fn add(&mut self, facts: &[BodyFacts], body: u32, found: &[(u32, u64)], known: &mut IdMap<u64, FirstWindow>) {
        let start = self.numbers.len();
        let lines = if found.is_empty() { 0 } else { facts[body as usize].lines.len() };
        self.numbers.resize(start + lines, NO_WINDOW);
        for &(at, hash) in found {
            let here = FirstWindow { body, at, number: self.count };
            let first = *known.entry(hash).or_insert(here);
            // The witness of a line covers its number as well.
            let texts = |known: FirstWindow| facts[known.body as usize].lines.witnesses_of(known.at, self.length);
            // Two windows under one hash: the later one is not referred to, rather than taken for the other.
            if texts(first) == texts(here) {
                self.numbers[start + at as usize] = first.number;
                self.count = self.count.max(first.number + 1);
            }
        }
        self.starts.push(self.numbers.len() as u32);
    }

    /// The lines of a body, if they were unpacked.
    pub fn lines_of(&self, body: u32) -> &[BodyLine] {
        self.lines.get(body as usize).map_or(&[], |lines| lines)
    }

    /// Makes a line of a body another one, as if its window had been numbered before.
    #[cfg(test)]
    pub fn change_line_of(&mut self, body: usize, line: usize, text: u64) {
        self.lines[body][line].text = text;
    }

    /// Unpacks the lines of some bodies. With `is_last`, packed lines are dropped as they go by: nobody asks for them again.
    pub fn unpack_lines_of(&mut self, facts: &mut [BodyFacts], wanted: &[bool], is_last: bool) {
        let lines = |(row, &wanted): (&mut BodyFacts, &bool)| {
            let lines = if wanted { row.lines.iter().collect() } else { Box::default() };
            if is_last {
                row.lines = BodyLines::default();
            }
            lines
        };
        self.lines = facts.par_iter_mut().zip(wanted).map(lines).collect();
    }

    /// Lines of a window.
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many different windows there are: their numbers are smaller.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// By line of a body: the number of the window that begins there, or [`NO_WINDOW`].
    pub fn of(&self, body: u32) -> &[u32] {
        let bounds = self.starts.get(body as usize).zip(self.starts.get(body as usize + 1));
        let range = bounds.map_or(0..0, |(start, end)| *start as usize..*end as usize);
        &self.numbers[range]
    }

    /// For each of the responses of one context (as what windows they show) whether another one shows one of
    /// its windows: all others can neither refer to lines nor be referred to. `seen` has room for every window;
    /// `base` is the index of the first response and grows from context to context.
    pub fn shared<'w>(
        &self,
        responses: impl Iterator<Item = &'w [u32]>,
        base: usize,
        seen: &mut [u32],
        shares: &mut [bool],
    ) {
        for (index, windows) in (base..).zip(responses) {
            for &window in windows.iter().filter(|window| **window != NO_WINDOW) {
                let first = &mut seen[window as usize];
                match (*first as usize).checked_sub(base + 1) {
                    Some(earlier) if earlier != index - base => (shares[earlier], shares[index - base]) = (true, true),
                    Some(_) => {}
                    None => *first = index as u32 + 1,
                }
            }
        }
    }
}

/// Which hashes came once, and which twice.
struct SeenHashes {
    once: HashSketch,
    twice: HashSketch,
}

impl SeenHashes {
    fn with_room_for(hashes: usize) -> Self {
        Self { once: HashSketch::with_room_for(hashes), twice: HashSketch::with_room_for(hashes) }
    }

    /// Whoever comes second finds the first, in whatever order they come.
    fn add(&self, hash: u64, repeats: bool) {
        if self.once.add(hash) || repeats {
            self.twice.add(hash);
        }
    }

    /// Those that came twice; the others are dropped.
    fn into_twice(self) -> HashSketch {
        self.twice
    }
}

/// Hashes: some that were not added may be among them, none that was added is missing.
struct HashSketch(Vec<AtomicU64>);

impl HashSketch {
    /// Eight bits for each hash.
    fn with_room_for(hashes: usize) -> Self {
        Self((0..(hashes / 8).next_power_of_two()).map(|_| AtomicU64::new(0)).collect())
    }

    /// The word of a hash, and two bits in it: of one alone, every tenth hash would be there by chance.
    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let place = hash.wrapping_mul(BASE) >> 14;
        (&self.0[(place >> 12) as usize & (self.0.len() - 1)], 1 << (place & 63) | 1 << (place >> 6 & 63))
    }

    /// Whether it was there before.
    fn add(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.fetch_or(bits, Ordering::Relaxed) & bits == bits
    }

    fn has(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }
}

/// Where a window was first met.
#[derive(Clone, Copy)]
struct FirstWindow {
    body: u32,
    at: u32,
    number: u32,
}

/// Hands on where windows begin in a body, with the hash of each. `lines` has room for its lines.
fn hashes(row: &BodyFacts, length: usize, lines: &mut Vec<BodyLine>, mut each: impl FnMut(u32, u64)) {
    lines.clear();
    lines.extend(row.lines.iter());
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
    /// Places among the lines of the body.
    pub lines: Range<usize>,
    /// Index of the response that showed them.
    pub shown_by: u32,
}
