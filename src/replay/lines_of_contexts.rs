//! Which lines of bodies a replay asks about: numbered ones of which the same context is shown a stretch twice, and those that a
//! call of the context quotes. Lines are most of what is known of bodies, and most of them stand in one place; so they are
//! looked at once before they are kept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::base::id::{Id, IdMap, IdSet};
use crate::facts::body_facts::{BodyFacts, BodyLines, LineHashes, WantedFacts};
use crate::replay::laid_out_calls::LaidOutCalls;
use crate::replay::runs::{JoinedLines, NO_WINDOW, WINDOW_LINES_MIN};

/// Bytes of a numbered line, to guess how many there are. If lines are longer, there is more room than is needed.
const LINE_BYTES: u64 = 32;
/// Bytes of a packed witness.
const WITNESS_BYTES: usize = 8;

/// What the contexts of a history ask of the bodies that they are shown.
pub struct LinesOfContexts<'c> {
    calls: &'c LaidOutCalls,
    /// By call the number of its context.
    contexts: Vec<u32>,
    window_lines: usize,
    /// Windows of lines, each with its context.
    windows: RepeatedHashes,
    /// What calls quote, by the name of the quote: where two are told under one name, either may be asked for.
    quotes: Mutex<IdMap<Id, Vec<LineHashes>>>,
    /// The same by context, once all were seen.
    quoted: OnceLock<IdSet<(u32, u32)>>,
}

impl<'c> LinesOfContexts<'c> {
    /// `window_lines` is what a reference to lines stands for at least.
    pub fn new(calls: &'c LaidOutCalls, window_lines: usize) -> Self {
        let contexts =
            calls.contexts().flat_map(|(context, calls)| std::iter::repeat_n(context, calls.len())).collect();
        let windows = RepeatedHashes::with_room_for((calls.numbered_bytes / LINE_BYTES) as usize);
        let window_lines = window_lines.max(WINDOW_LINES_MIN);
        Self { calls, contexts, window_lines, windows, quotes: Mutex::default(), quoted: OnceLock::new() }
    }

    /// The number of the context of a call that was shown a body.
    fn context(&self, (_, call): &(Id, u32)) -> u32 {
        self.contexts[*call as usize]
    }

    /// The hashes of the windows of some lines in a context. Lines between which a number is missing make no window for a replay;
    /// here they do, so that some lines are kept for nothing.
    fn windows(&self, lines: &BodyLines, context: u32) -> impl Iterator<Item = u64> {
        let windows = lines.witnesses().windows(self.window_lines.saturating_mul(WITNESS_BYTES)).step_by(WITNESS_BYTES);
        windows.map(move |window| xxh3_64_with_seed(window, context.into()))
    }

    /// Joins the lines of a body that stand in no window which comes twice in one of its contexts: most lines of most bodies. Where
    /// no other one is left, all go.
    fn keep_repeated(&self, lines: &mut BodyLines, shown: &[(Id, u32)]) {
        let mut repeats = vec![false; lines.len()];
        for calls in shown.chunk_by(|one, next| self.context(one) == self.context(next)) {
            let windows = self.windows(lines, self.context(&calls[0]));
            repeats.iter_mut().zip(windows).for_each(|(repeats, window)| *repeats |= self.windows.has(window));
        }
        if !repeats.contains(&true) {
            *lines = BodyLines::default();
            return;
        }
        // Where the last of these windows ends.
        let mut end = 0;
        for (at, repeats) in repeats.iter_mut().enumerate() {
            end = if *repeats { at + self.window_lines } else { end };
            *repeats = at < end;
        }
        if repeats.contains(&false) {
            let mut joined = JoinedLines::default();
            lines.iter().zip(repeats).for_each(|(line, repeats)| joined.push(line, NO_WINDOW, !repeats));
            *lines = joined.lines.into_iter().map(|(line, _)| line).collect();
        }
    }

    /// What calls quote, each with its context. Whoever asks first says that all facts were seen, and what was needed for that
    /// alone is dropped.
    fn quoted(&self) -> &IdSet<(u32, u32)> {
        self.quoted.get_or_init(|| {
            self.windows.close();
            let quotes = self.quotes.lock().unwrap_or_else(PoisonError::into_inner);
            let calls = self.contexts.iter().zip(&self.calls.quotes);
            let quotes = calls.filter_map(|(&context, name)| Some((context, quotes.get(name)?)));
            let texts = quotes.flat_map(|(context, quotes)| quotes.iter().map(move |texts| (context, texts)));
            texts.flat_map(|(context, texts)| texts.hashes().iter().map(move |hash| (context, *hash))).collect()
        })
    }
}

impl WantedFacts for LinesOfContexts<'_> {
    fn see(&self, facts: &BodyFacts) {
        if facts.is_quote() {
            let mut quotes = self.quotes.lock().unwrap_or_else(PoisonError::into_inner);
            quotes.entry(facts.body).or_default().push(facts.texts.clone());
        } else if !facts.lines.is_empty() {
            for shown in self.calls.shown(facts.body).chunk_by(|one, next| self.context(one) == self.context(next)) {
                let repeats = shown.len() > 1;
                self.windows.add(self.windows(&facts.lines, self.context(&shown[0])), repeats);
            }
        }
    }

    fn keep(&self, facts: &mut BodyFacts) -> bool {
        if facts.is_quote() {
            return true;
        }
        let (quoted, shown) = (self.quoted(), self.calls.shown(facts.body));
        if !facts.lines.is_empty() {
            self.keep_repeated(&mut facts.lines, shown);
        }
        facts.texts.keep(|hash| shown.iter().any(|call| quoted.contains(&(self.context(call), hash))));
        !shown.is_empty()
    }
}

/// Which hashes came twice, in whatever order they come: some that did not may be among them, none that did is missing.
struct RepeatedHashes {
    /// Dropped once all have come: it takes most of the room. What comes then all the same counts as come before.
    once: RwLock<Option<HashSketch>>,
    twice: HashSketch,
}

impl RepeatedHashes {
    /// Sixteen bits for each hash; few come twice.
    fn with_room_for(hashes: usize) -> Self {
        let once = RwLock::new(Some(HashSketch::of_words(hashes / 4)));
        Self { once, twice: HashSketch::of_words(hashes / 16) }
    }

    /// With `repeats` they come twice at once.
    fn add(&self, hashes: impl Iterator<Item = u64>, repeats: bool) {
        let once = self.once.read().unwrap_or_else(PoisonError::into_inner);
        for hash in hashes {
            if once.as_ref().is_none_or(|once| once.add(hash)) || repeats {
                self.twice.add(hash);
            }
        }
    }

    /// All have come.
    fn close(&self) {
        *self.once.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn has(&self, hash: u64) -> bool {
        self.twice.has(hash)
    }
}

/// A Bloom filter in which all bits of a hash stand in one word (B. Bloom, 1970; F. Putze et al., 2007).
struct HashSketch(Vec<AtomicU64>);

impl HashSketch {
    fn of_words(words: usize) -> Self {
        Self((0..words.next_power_of_two()).map(|_| AtomicU64::new(0)).collect())
    }

    /// The word of a hash, and four bits in it.
    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let bits = (0..4).fold(0, |bits, number| bits | 1 << (hash >> (6 * number) & 63));
        (&self.0[(hash >> 24) as usize & (self.0.len() - 1)], bits)
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
