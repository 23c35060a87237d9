//! The values of one record, drafted until the record around them is known to be whole: only then is it known where
//! relative paths begin. Text ends at [`ValueDraft::commit`].

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::id::IdMap;
use crate::base::names::{Names, Sym};
use crate::logs::path::{is_rooted, normal_path_into};
use crate::logs::value_rules::{ValueRules, is_url, normal_url};
use crate::logs::values::{GivenArgument, List, ListedValue, ValueKind, ValueRows, input_value};
use crate::logs::{leaves, listed};

/// What the record at hand lists and gives.
pub struct ValueDraft<'v> {
    pub(super) rules: &'v ValueRules,
    /// Extractors and arguments of all records.
    pub names: Names,
    /// Relative paths, one after the other.
    texts: Vec<u8>,
    lists: Vec<DraftList>,
    found: Vec<Found>,
    pub(super) given: Vec<DraftGiven>,
    answer_lists: AnswerLists,
    pub(super) scratch: Vec<u8>,
}

struct DraftList {
    /// Place of the answer among those of the record.
    answer: usize,
    list: List,
    /// Whether two spellings of one path may stand in it.
    has_spellings: bool,
}

/// A drafted scalar of an input: of the call at this place in the record. The first of each call stands for the whole
/// input.
#[derive(Default)]
pub(super) struct DraftGiven {
    pub(super) call: usize,
    /// Its name, if it is kept.
    pub(super) name: Option<Sym>,
    pub(super) name_hash: u64,
    pub(super) value: DraftValue,
}

/// A value, or the text of a relative path whose value is not yet known.
#[derive(Clone, Default)]
pub(super) struct DraftValue {
    value: u64,
    parent: u32,
    text: Range<usize>,
}

struct Found {
    /// Its list among those of the answer.
    list: usize,
    kind: ValueKind,
    count: u8,
    value: DraftValue,
}

/// The lists of the answer at hand.
#[derive(Default)]
pub(super) struct AnswerLists {
    heads: Vec<Head>,
    /// By list and raw text: the place in `found`.
    seen: IdMap<u64, usize>,
    kept: usize,
    start: usize,
    flags: u8,
}

#[derive(Default)]
struct Head {
    extractor: Sym,
    cap: u16,
    kept: u16,
    found: u16,
    matches: u32,
    has_spellings: bool,
    /// [`List::TAKEN`].
    is_taken: bool,
}

/// No place: the value came after its list was full.
const BEYOND: usize = usize::MAX;

impl<'v> ValueDraft<'v> {
    /// An empty draft.
    pub fn new(rules: &'v ValueRules) -> Self {
        Self {
            rules,
            names: Names::default(),
            texts: Vec::new(),
            lists: Vec::new(),
            found: Vec::new(),
            given: Vec::new(),
            answer_lists: AnswerLists::default(),
            scratch: Vec::new(),
        }
    }

    /// Forgets the record before.
    pub fn clear(&mut self) {
        self.texts.clear();
        self.lists.clear();
        self.found.clear();
        self.given.clear();
        self.answer_lists.start = 0;
    }

    /// Drafts what an answer lists; `answer` is its place in the record. Where its tool may be one whose answers are taken
    /// apart by lines, these are drafted as well.
    pub fn answer(&mut self, answer: usize, text: &[u8], may_be_listing: bool) {
        self.open_lists();
        if leaves::walk_answer(self, text).is_none() {
            self.open_lists();
            listed::scan(self, text);
        }
        if may_be_listing {
            listed::take(self, text);
        }
        self.close_lists(answer);
    }

    /// Drafts what a call is given; `call` is its place in the record, `input` a JSON value.
    pub fn input(&mut self, call: usize, input: &[u8]) {
        self.given.push(DraftGiven { call, ..DraftGiven::default() });
        leaves::walk_input(self, call, input);
    }

    fn open_lists(&mut self) {
        // A walk that failed has left something.
        self.found.truncate(self.answer_lists.start);
        self.answer_lists.heads.clear();
        self.answer_lists.seen.clear();
        self.answer_lists.flags = 0;
        self.answer_lists.kept = 0;
        self.answer_lists.start = self.found.len();
    }

    fn close_lists(&mut self, answer: usize) {
        let AnswerLists { heads, start, flags, .. } = &mut self.answer_lists;
        self.found[*start..].sort_by_key(|found| found.list);
        let kept = heads.drain(..).filter(|head| head.kept > 0);
        for Head { extractor, kept, found, matches, has_spellings, is_taken, .. } in kept {
            let values = *start..*start + usize::from(kept);
            *start = values.end;
            let all_lines = self.found[values].iter().all(|found| found.kind == ValueKind::Line);
            let of_answer = *flags | if all_lines { List::FILES } else { 0 };
            let flags = if is_taken { List::TAKEN } else { of_answer };
            let list = List { block: 0, extractor, found, matches, flags, kept };
            self.lists.push(DraftList { answer, list, has_spellings });
        }
    }

    /// A new list of the answer at hand, of which `cap` values are kept.
    pub(super) fn list(&mut self, extractor: &str, cap: u16) -> usize {
        let extractor = self.names.intern(extractor);
        self.answer_lists.heads.push(Head { extractor, cap, ..Head::default() });
        self.answer_lists.heads.len() - 1
    }

    /// The same of what the published planner takes for paths, however often it is told.
    pub(super) fn take<'t>(&mut self, extractor: &str, texts: impl Iterator<Item = &'t [u8]>) {
        let list = self.list(extractor, u16::MAX);
        self.answer_lists.heads[list].is_taken = true;
        for (place, text) in (0..).zip(texts) {
            let value = if self.rules.is_over_long(text) { DraftValue::of(text) } else { self.path(text) };
            self.add(list, place, ValueKind::Line, value);
        }
    }

    /// Lists of the answer at hand.
    pub(super) fn list_count(&self) -> usize {
        self.answer_lists.heads.len()
    }

    /// Sets flags of all lists of the answer at hand.
    pub(super) fn flag(&mut self, flags: u8) {
        self.answer_lists.flags |= flags;
    }

    /// Values kept of the answer at hand.
    pub(super) fn kept(&self) -> usize {
        self.answer_lists.kept
    }

    /// Lists a path.
    pub(super) fn add_path(&mut self, list: usize, path: &[u8], kind: ValueKind) {
        self.answer_lists.heads[list].has_spellings = true;
        let raw = xxh3_64(path);
        if !self.count(list, raw) {
            let value = self.path(path);
            self.add(list, raw, kind, value);
        }
    }

    /// Lists an address.
    pub(super) fn add_url(&mut self, list: usize, url: &[u8]) {
        normal_url(url, &mut self.scratch);
        let value = DraftValue::of(&self.scratch);
        self.add(list, value.value, ValueKind::Token, value);
    }

    /// Lists a word as it stands.
    pub(super) fn add_word(&mut self, list: usize, word: &[u8]) {
        let value = DraftValue::of(word);
        self.add(list, value.value, ValueKind::Token, value);
    }

    /// Counts a text that stands in the list already.
    fn count(&mut self, list: usize, raw: u64) -> bool {
        let Some(place) = self.answer_lists.seen.get(&seen_key(list, raw)) else { return false };
        let head = &mut self.answer_lists.heads[list];
        head.matches = head.matches.saturating_add(1);
        if let Some(found) = self.found.get_mut(*place) {
            found.count = found.count.saturating_add(1);
        }
        true
    }

    fn add(&mut self, list: usize, raw: u64, kind: ValueKind, value: DraftValue) {
        if self.count(list, raw) {
            return;
        }
        let head = &mut self.answer_lists.heads[list];
        head.matches = head.matches.saturating_add(1);
        head.found = head.found.saturating_add(1);
        let fits = head.kept < head.cap;
        self.answer_lists.seen.insert(seen_key(list, raw), if fits { self.found.len() } else { BEYOND });
        if fits {
            head.kept += 1;
            self.answer_lists.kept += 1;
            self.found.push(Found { list, kind, count: 1, value });
        }
    }

    /// The value of a text by its form: an address, a path, or itself.
    pub(super) fn value(&mut self, text: &[u8]) -> DraftValue {
        let has_blank = || text.iter().any(u8::is_ascii_whitespace);
        if is_url(text) && !has_blank() {
            normal_url(text, &mut self.scratch);
            return DraftValue::of(&self.scratch);
        }
        if self.rules.is_path(text) && !has_blank() { self.path(text) } else { DraftValue::of(text) }
    }

    /// Lists a scalar of JSON.
    pub(super) fn add_leaf(&mut self, list: usize, text: &[u8]) {
        let value = self.value(text);
        let raw = xxh3_64(text);
        self.answer_lists.heads[list].has_spellings |= value.value != raw;
        self.add(list, raw, ValueKind::Leaf, value);
    }

    /// The value of a path, which is not known before [`ValueDraft::commit`] if it is relative.
    pub(super) fn path(&mut self, path: &[u8]) -> DraftValue {
        if is_rooted(path) {
            let (value, parent) = path_value(path, None, &mut self.scratch);
            return DraftValue { value, parent, text: 0..0 };
        }
        let start = self.texts.len();
        self.texts.extend_from_slice(path);
        DraftValue { value: 0, parent: 0, text: start..self.texts.len() }
    }

    /// Whether the record lists or gives anything.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.given.is_empty()
    }

    /// Turns the draft into rows. Relative paths begin at `cwd`; `answers` and `calls` number the blocks of the record.
    pub fn commit(&mut self, cwd: Option<&[u8]>, answers: Range<u32>, calls: Range<u32>, rows: &mut ValueRows) {
        let Self { texts, scratch, .. } = self;
        let mut resolve = |value: &mut DraftValue| {
            if !value.text.is_empty() {
                (value.value, value.parent) = path_value(&texts[value.text.clone()], cwd, scratch);
            }
        };
        self.found.iter_mut().for_each(|found| resolve(&mut found.value));
        self.given.iter_mut().for_each(|given| resolve(&mut given.value));
        let mut rest = &self.found[..];
        for DraftList { answer, list, has_spellings } in &self.lists {
            let (found, later) = rest.split_at(usize::from(list.kept));
            rest = later;
            let Some(block) = answers.clone().nth(*answer) else { continue };
            let start = rows.listed.len();
            rows.listed.extend(found.iter().map(|found| {
                let DraftValue { value, parent, .. } = found.value;
                ListedValue { value, parent, count: found.count, kind: found.kind }
            }));
            let doubles = if *has_spellings { merge_spellings(&mut rows.listed, start) } else { 0 };
            rows.lists.push(List { block, kept: list.kept - doubles, found: list.found - doubles, ..*list });
        }
        for call in self.given.chunk_by(|a, b| a.call == b.call) {
            let Some(block) = calls.clone().nth(call[0].call) else { continue };
            let (value, leaves) = whole_input(&call[1..]);
            rows.given.push(GivenArgument { block, argument: Sym(0), value, parent: 0, leaves });
            let kept = call[1..].iter().filter_map(|given| {
                let DraftValue { value, parent, .. } = given.value;
                Some(GivenArgument { block, argument: given.name?, value, parent, leaves: 0 })
            });
            rows.given.extend(kept.take(self.rules.arguments_max));
        }
        self.clear();
    }
}

impl DraftValue {
    /// A text that is nothing but itself.
    pub(super) fn of(text: &[u8]) -> Self {
        Self { value: xxh3_64(text), ..Self::default() }
    }
}

/// The same text may stand in several lists.
fn seen_key(list: usize, raw: u64) -> u64 {
    raw ^ (list as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The value of a path, and that of its directory.
fn path_value(path: &[u8], cwd: Option<&[u8]>, scratch: &mut Vec<u8>) -> (u64, u32) {
    normal_path_into(path, cwd, scratch);
    let directory = memchr::memrchr(b'/', scratch).unwrap_or(0);
    (xxh3_64(scratch), xxh3_64(&scratch[..directory]) as u32)
}

/// Joins values that turned out to be one, as `a` and `./a`; returns how many went.
fn merge_spellings(listed: &mut Vec<ListedValue>, start: usize) -> u16 {
    let mut kept = start;
    for index in start..listed.len() {
        let value = listed[index];
        match listed[start..kept].iter().position(|known| known.value == value.value) {
            Some(known) => {
                let known = &mut listed[start + known];
                known.count = known.count.saturating_add(value.count);
            }
            None => {
                listed[kept] = value;
                kept += 1;
            }
        }
    }
    let doubles = listed.len() - kept;
    listed.truncate(kept);
    doubles as u16
}

/// The hash of all scalars of an input whatever their order, and their number.
fn whole_input(scalars: &[DraftGiven]) -> (u64, u8) {
    let pairs = scalars.iter().map(|given| (given.name_hash, given.value.value));
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    (input_value(&mut pairs), u8::try_from(pairs.len()).unwrap_or(u8::MAX))
}
