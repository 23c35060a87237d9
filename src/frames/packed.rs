//! Rows of a timeline as bytes: columns of small numbers, with every id and every word written once. What is read back is
//! checked, so that bytes of any kind give rows that hold together, or none.
//!
//! One walk over the columns serves both ways ([`PackedField`]): whoever writes puts down what stands in a field, whoever reads
//! fills it in.

use std::ops::Range;
use std::sync::Arc;

use crate::base::id::{Id, IdMap};
use crate::base::names::{Names, Sym};
use crate::base::tokenizer::TokenCounts;
use crate::base::varint;
use crate::logs::timeline::requests::{Added, Addition, BlockKind, ReferenceKind, RequestSetting, Trigger, Utterance};
use crate::logs::timeline::rows::{
    AnswerRow, BlockRow, FieldRow, FileTimeline, Parent, RecordKind, ReferenceRow, TimelineRows,
};
use crate::logs::timeline::words::{Numbered, WordIndex};
use crate::logs::trace::{Millis, Place, Usage};

/// Raised whenever the layout changes: rows of another edition are made anew.
const EDITION: u8 = 6;

/// The column in which these bytes stand.
pub const COLUMN: &str = "packed";

/// Where the ids and the hashes stand in what [`pack`] wrote; none in anything else.
pub fn hash_places(bytes: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let mut from = Reading { bytes, ..Reading::default() };
    from.texts()?;
    let ids = 16 * from.count(16)?;
    let start = bytes.len() - from.bytes.len();
    from.bytes = from.bytes.get(ids..)?;
    let hashes = 8 * from.count(8)?;
    let later = bytes.len() - from.bytes.len();
    Some((start..start + ids, later..later + hashes))
}

/// The rows as bytes; they stay as they are.
pub fn pack(file: &mut FileTimeline) -> Vec<u8> {
    let (mut out, ids) = packed_rows(&mut file.rows);
    let mut head = vec![EDITION];
    let texts = &file.names.texts()[1..];
    varint::put(&mut head, texts.len() as u64);
    texts.iter().for_each(|text| put_text(&mut head, text));
    varint::put(&mut head, ids.len() as u64);
    ids.into_iter().for_each(|id| head.extend_from_slice(&id.0));
    let hashes = file.rows.words.hashes();
    varint::put(&mut head, hashes.len() as u64);
    hashes.iter().for_each(|hash| head.extend_from_slice(&hash.to_le_bytes()));
    // Put before what stands there already: a second copy of that would be the most that a long session needs.
    out.splice(0..0, head);
    // The room to grow in would be as much again.
    out.shrink_to_fit();
    out
}

/// The rows, and the ids that their numbers stand for. By what these were numbered takes as much room, and goes.
fn packed_rows(rows: &mut TimelineRows) -> (Vec<u8>, Vec<Id>) {
    let mut to = Writing::default();
    walk(&mut to, rows).expect("rows that hold together can be written");
    (to.out, to.ids)
}

/// The rows that [`pack`] wrote; none if these bytes are not such rows, or those of another edition.
pub fn unpack(bytes: &[u8]) -> Option<FileTimeline> {
    let mut from = Reading { bytes, ..Reading::default() };
    let texts = from.texts()?;
    from.names = texts.len();
    for _ in 0..from.count(16)? {
        let (id, rest) = from.bytes.split_first_chunk()?;
        from.bytes = rest;
        from.ids.push(Id(*id));
    }
    let mut hashes = Vec::new();
    for _ in 0..from.count(8)? {
        let (hash, rest) = from.bytes.split_first_chunk()?;
        from.bytes = rest;
        hashes.push(u64::from_le_bytes(*hash));
    }
    let mut rows = TimelineRows { words: WordIndex::of_parts(hashes, Vec::new())?, ..TimelineRows::default() };
    walk(&mut from, &mut rows)?;
    let names = Names::from_texts(texts);
    (from.bytes.is_empty() && names.texts().len() == from.names).then_some(FileTimeline { names, rows })
}

/// What the symbols of rows mean that [`pack`] wrote; none of anything else.
pub fn names(bytes: &[u8]) -> Option<Names> {
    Reading { bytes, ..Reading::default() }.texts().map(Names::from_texts)
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    varint::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// To bytes or from them, field by field. None where bytes are not what was written.
trait PackedField {
    fn whole(&mut self, number: u64) -> Option<u64>;
    fn id(&mut self, id: &mut Id) -> Option<()>;
    fn text(&mut self, text: &mut String) -> Option<()>;
    /// How many rows there are; of what is read each takes a byte at least.
    fn length(&mut self, rows: usize) -> Option<usize>;
    /// A name.
    fn sym(&mut self, sym: &mut Sym) -> Option<()>;

    fn lengths<const N: usize>(&mut self, mut rows: [usize; N]) -> Option<[usize; N]> {
        for rows in &mut rows {
            *rows = self.length(*rows)?;
        }
        Some(rows)
    }

    /// A number of its own size; what stands in the field from now on.
    fn small<T: Into<u64> + TryFrom<u64>>(&mut self, number: T) -> Option<T> {
        T::try_from(self.whole(number.into())?).ok()
    }

    fn number<T: Copy + Into<u64> + TryFrom<u64>>(&mut self, number: &mut T) -> Option<()> {
        *number = self.small(*number)?;
        Some(())
    }

    /// A number of something of which there are so many.
    fn place(&mut self, place: &mut u32, count: usize) -> Option<()> {
        self.number(place)?;
        ((*place as usize) < count).then_some(())
    }

    fn flag(&mut self, flag: &mut bool) -> Option<()> {
        let number = self.whole((*flag).into())?;
        *flag = number == 1;
        (number < 2).then_some(())
    }

    /// Something that a number stands for.
    fn coded<T: Copy>(&mut self, value: &mut T, number: fn(T) -> u8, known: fn(u8) -> Option<T>) -> Option<()> {
        *value = known(self.small(number(*value))?)?;
        Some(())
    }

    fn optional(&mut self, number: &mut Option<u64>) -> Option<()> {
        let mut is_some = number.is_some();
        self.flag(&mut is_some)?;
        let value = self.whole(number.unwrap_or(0))?;
        *number = is_some.then_some(value);
        Some(())
    }

    /// A time as the step from the one before; steps wrap, so any two times have one.
    fn time(&mut self, before: &mut Millis, now: &mut Millis) -> Option<()> {
        let step = now.wrapping_sub(*before);
        let folded = self.whole(((step << 1) ^ (step >> 63)) as u64)?;
        *before = before.wrapping_add((folded >> 1) as i64 ^ -((folded & 1) as i64));
        *now = *before;
        Some(())
    }

    /// The range that follows one that ended at `end`.
    fn range(&mut self, end: &mut u32, range: &mut Range<u32>) -> Option<()> {
        let length = self.small(range.end - range.start)?;
        let start = std::mem::replace(end, end.checked_add(length)?);
        *range = start..*end;
        Some(())
    }

    fn usage(&mut self, usage: &mut Usage) -> Option<()> {
        let Usage { input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h } = usage;
        let tokens = [input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h];
        tokens.into_iter().try_for_each(|tokens| self.number(tokens))
    }

    fn tokens(&mut self, tokens: &mut TokenCounts) -> Option<()> {
        tokens.iter_mut().try_for_each(|count| self.number(count))
    }

    fn setting(&mut self, setting: &mut RequestSetting) -> Option<()> {
        let RequestSetting { effort, speed, branch, miss_reason } = setting;
        [effort, speed, miss_reason].into_iter().try_for_each(|word| self.sym(word))?;
        self.id(branch)
    }
}

/// One column of some rows.
fn column<W: PackedField, T>(
    way: &mut W,
    rows: &mut [T],
    mut each: impl FnMut(&mut W, &mut T) -> Option<()>,
) -> Option<()> {
    rows.iter_mut().try_for_each(|row| each(way, row))
}

/// Rows to be filled in column by column: beside each other, columns would take more than all rows.
fn room_for<T: Clone + Default>(rows: &mut Vec<T>, count: usize) {
    rows.resize(count, T::default());
}

/// All tables in their order, behind their lengths.
fn walk<W: PackedField>(way: &mut W, rows: &mut TimelineRows) -> Option<()> {
    let (hashes, mut words) = std::mem::take(&mut rows.words).into_parts();
    let mut skipped: Vec<(String, u64)> = std::mem::take(&mut rows.skipped).into_iter().collect();
    let [chains, sessions, records] = way.lengths([rows.chains.len(), rows.sessions.len(), rows.records.len()])?;
    let [blocks, cleared, references] = way.lengths([rows.blocks.len(), rows.cleared.len(), rows.references.len()])?;
    let [sources, utterances] = way.lengths([rows.sources.len(), rows.utterances.len()])?;
    let [word_count, reasons] = way.lengths([words.len(), skipped.len()])?;
    let [agents, stated_costs] = way.lengths([rows.agents.len(), rows.stated_costs.len()])?;
    let [fields, added] = way.lengths([rows.fields.len(), rows.added.len()])?;

    room_for(&mut rows.chains, chains);
    column(way, &mut rows.chains, |way, row| {
        way.id(&mut row.session)?;
        way.id(&mut row.agent)?;
        way.coded(&mut row.place, |place| place as u8, Place::from_repr)
    })?;
    room_for(&mut rows.sessions, sessions);
    let mut time = 0;
    column(way, &mut rows.sessions, |way, row| {
        way.id(&mut row.id)?;
        way.id(&mut row.project)?;
        way.time(&mut time, &mut row.ts_first)?;
        way.flag(&mut row.is_background)
    })?;
    room_for(&mut rows.agents, agents);
    column(way, &mut rows.agents, |way, row| {
        way.id(&mut row.session)?;
        way.id(&mut row.agent)?;
        way.sym(&mut row.kind)?;
        way.flag(&mut row.names_model)
    })?;
    room_for(&mut rows.stated_costs, stated_costs);
    column(way, &mut rows.stated_costs, |way, row| {
        way.id(&mut row.session)?;
        way.sym(&mut row.model)?;
        way.usage(&mut row.usage)?;
        way.number(&mut row.nanodollars)
    })?;
    room_for(&mut rows.records, records);
    walk_records(way, rows, [blocks, cleared])?;
    room_for(&mut rows.blocks, blocks);
    walk_blocks(way, &mut rows.blocks)?;
    room_for(&mut rows.cleared, cleared);
    column(way, &mut rows.cleared, |way, id| way.id(id))?;
    room_for(&mut rows.references, references);
    walk_references(way, &mut rows.references, [blocks, sources])?;
    room_for(&mut rows.sources, sources);
    column(way, &mut rows.sources, |way, row| way.place(&mut row.block, blocks))?;
    column(way, &mut rows.sources, |way, row| way.number(&mut row.end_chars))?;
    room_for(&mut rows.fields, fields);
    walk_fields(way, &mut rows.fields, blocks)?;
    room_for(&mut rows.utterances, utterances);
    walk_utterances(way, &mut rows.utterances, [blocks, word_count])?;
    room_for(&mut words, word_count);
    walk_words(way, &mut words)?;
    rows.words = WordIndex::of_parts(hashes, words)?;
    room_for(&mut rows.added, added);
    walk_added(way, &mut rows.added, records)?;
    room_for(&mut skipped, reasons);
    column(way, &mut skipped, |way, (reason, count)| {
        way.text(reason)?;
        way.number(count)
    })?;
    rows.skipped = skipped.into_iter().collect();
    Some(())
}

fn walk_records<W: PackedField>(way: &mut W, rows: &mut TimelineRows, [blocks, cleared]: [usize; 2]) -> Option<()> {
    let TimelineRows { records, outside, chains, .. } = rows;
    let (mut time, mut end, mut calls, mut answered) = (0, 0, 0, None);
    column(way, records, |way, row| way.id(&mut row.id))?;
    column(way, records, |way, row| way.place(&mut row.chain, chains.len()))?;
    column(way, records, |way, row| way.time(&mut time, &mut row.ts))?;
    column(way, records, |way, row| way.sym(&mut row.version))?;
    column(way, records, |way, row| way.number(&mut row.marks.0))?;
    column(way, records, |way, row| way.range(&mut end, &mut row.blocks))?;
    let mut ids = 0;
    for (index, row) in (2_u64..).zip(&mut *records) {
        let code = match row.parent {
            Parent::Nothing => 0,
            Parent::Unknown => 1,
            Parent::Outside(_) => 2,
            // Nearly always the record before.
            Parent::Record(above) => index - u64::from(above),
        };
        row.parent = match way.whole(code)? {
            0 => Parent::Nothing,
            1 => Parent::Unknown,
            2 => {
                outside.resize(outside.len().max(ids + 1), Id::NONE);
                way.id(&mut outside[ids])?;
                ids += 1;
                Parent::Outside(ids as u32 - 1)
            }
            back => Parent::Record(u32::try_from(index.checked_sub(back)?).ok()?),
        };
    }
    column(way, records, |way, row| walk_kind(way, &mut row.kind, &mut calls, &mut answered))?;
    (end as usize == blocks && calls as usize == cleared).then_some(())
}

/// What a record is. Answers that are equal and follow each other are one.
fn walk_kind<W: PackedField>(
    way: &mut W,
    kind: &mut RecordKind,
    calls: &mut u32,
    answered: &mut Option<Arc<AnswerRow>>,
) -> Option<()> {
    let code = match kind {
        RecordKind::Said => 0,
        RecordKind::Noted => 1,
        RecordKind::Answer(answer) => 2 + u64::from(answer.is_request),
        RecordKind::Compacted(_) => 4,
        RecordKind::Cleared(_) => 5,
    };
    let code = way.whole(code)?;
    match code {
        0 => *kind = RecordKind::Said,
        1 => *kind = RecordKind::Noted,
        2 | 3 => {
            let mut answer = if let RecordKind::Answer(answer) = kind { **answer } else { AnswerRow::default() };
            answer.is_request = code == 3;
            way.id(&mut answer.message)?;
            way.sym(&mut answer.model)?;
            way.usage(&mut answer.usage)?;
            way.setting(&mut answer.setting)?;
            *kind = RecordKind::Answer(answer.shared(answered));
        }
        4 => {
            let mut row = if let RecordKind::Compacted(row) = kind { std::mem::take(row) } else { Box::default() };
            way.coded(&mut row.trigger, |trigger| trigger as u8, Trigger::from_repr)?;
            way.optional(&mut row.pre_tokens)?;
            *kind = RecordKind::Compacted(row);
        }
        5 => {
            let mut row = if let RecordKind::Cleared(row) = kind { std::mem::take(row) } else { Box::default() };
            way.optional(&mut row.pre_tokens)?;
            way.optional(&mut row.tokens_saved)?;
            way.range(calls, &mut row.calls)?;
            *kind = RecordKind::Cleared(row);
        }
        _ => return None,
    }
    Some(())
}

fn walk_blocks<W: PackedField>(way: &mut W, blocks: &mut [BlockRow]) -> Option<()> {
    column(way, blocks, |way, row| way.coded(&mut row.kind, |kind| kind as u8, BlockKind::from_repr))?;
    column(way, blocks, |way, row| {
        let flags = u8::from(row.is_string) | u8::from(row.is_error) << 1 | row.file << 2 | row.media << 4;
        let flags = way.small(flags)?;
        (row.is_string, row.is_error) = (flags & 1 == 1, flags & 2 == 2);
        (row.file, row.media) = (flags >> 2 & 3, flags >> 4);
        Some(())
    })?;
    column(way, blocks, |way, row| way.number(&mut row.chars))?;
    column(way, blocks, |way, row| way.number(&mut row.bytes))?;
    column(way, blocks, |way, row| way.tokens(&mut row.tokens))?;
    column(way, blocks, |way, row| way.id(&mut row.call))?;
    column(way, blocks, |way, row| way.sym(&mut row.tool))?;
    column(way, blocks, |way, row| way.id(&mut row.named))?;
    column(way, blocks, |way, row| way.sym(&mut row.file_kind))
}

fn walk_references<W: PackedField>(
    way: &mut W,
    rows: &mut [ReferenceRow],
    [blocks, sources]: [usize; 2],
) -> Option<()> {
    let mut end = 0;
    column(way, rows, |way, row| way.coded(&mut row.kind, |kind| kind as u8, ReferenceKind::from_repr))?;
    column(way, rows, |way, row| way.place(&mut row.block, blocks))?;
    column(way, rows, |way, row| way.range(&mut end, &mut row.sources))?;
    column(way, rows, |way, row| way.flag(&mut row.cut))?;
    (end as usize == sources).then_some(())
}

fn walk_fields<W: PackedField>(way: &mut W, rows: &mut [FieldRow], blocks: usize) -> Option<()> {
    column(way, rows, |way, row| way.place(&mut row.block, blocks))?;
    column(way, rows, |way, row| way.sym(&mut row.name))?;
    column(way, rows, |way, row| way.tokens(&mut row.tokens))?;
    column(way, rows, |way, row| way.number(&mut row.values))?;
    column(way, rows, |way, row| way.number(&mut row.used))?;
    column(way, rows, |way, row| way.number(&mut row.how))
}

fn walk_utterances<W: PackedField>(way: &mut W, rows: &mut [Utterance], [blocks, words]: [usize; 2]) -> Option<()> {
    column(way, rows, |way, row| way.place(&mut row.block, blocks))?;
    // Terms and words of one utterance stand one behind the other.
    column(way, rows, |way, row| way.range(&mut 0, &mut row.terms))?;
    let mut end = 0_u32;
    column(way, rows, |way, row| {
        let middle = end.checked_add(row.terms.end - row.terms.start)?;
        row.terms = end..middle;
        end = middle;
        way.range(&mut end, &mut row.words)
    })?;
    (end as usize == words).then_some(())
}

fn walk_words<W: PackedField>(way: &mut W, words: &mut [Numbered]) -> Option<()> {
    // The fields of a packed row have no address.
    column(way, words, |way, row| {
        row.number = way.small(row.number)?;
        Some(())
    })?;
    column(way, words, |way, row| {
        row.count = way.small(row.count)?;
        Some(())
    })?;
    column(way, words, |way, row| way.number(&mut row.position))
}

fn walk_added<W: PackedField>(way: &mut W, rows: &mut [Addition], records: usize) -> Option<()> {
    column(way, rows, |way, row| way.place(&mut row.with, records))?;
    column(way, rows, |way, row| way.coded(&mut row.what, |what| what as u8, Added::from_repr))?;
    column(way, rows, |way, row| way.sym(&mut row.name))?;
    column(way, rows, |way, row| way.id(&mut row.run))?;
    column(way, rows, |way, row| way.number(&mut row.chars))?;
    column(way, rows, |way, row| way.number(&mut row.millis))
}

/// To bytes.
#[derive(Default)]
struct Writing {
    out: Vec<u8>,
    ids: Vec<Id>,
    known_ids: IdMap<Id, u64>,
}

impl PackedField for Writing {
    fn whole(&mut self, number: u64) -> Option<u64> {
        varint::put(&mut self.out, number);
        Some(number)
    }

    fn length(&mut self, rows: usize) -> Option<usize> {
        self.whole(rows as u64)?;
        Some(rows)
    }

    /// The number of an id, 0 for none.
    fn id(&mut self, id: &mut Id) -> Option<()> {
        let next = self.ids.len() as u64 + 1;
        let number = if id.is_some() { *self.known_ids.entry(*id).or_insert(next) } else { 0 };
        if number == next {
            self.ids.push(*id);
        }
        self.whole(number).map(drop)
    }

    fn sym(&mut self, sym: &mut Sym) -> Option<()> {
        self.whole(sym.0.into()).map(drop)
    }

    fn text(&mut self, text: &mut String) -> Option<()> {
        put_text(&mut self.out, text);
        Some(())
    }
}

/// From bytes.
#[derive(Default)]
struct Reading<'b> {
    bytes: &'b [u8],
    ids: Vec<Id>,
    /// How many names there are.
    names: usize,
}

impl Reading<'_> {
    /// How many of something follow, of which each takes at least some bytes.
    fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count = usize::try_from(varint::take(&mut self.bytes)?).ok()?;
        (count <= self.bytes.len() / bytes_each).then_some(count)
    }

    fn string(&mut self) -> Option<String> {
        let length = self.count(1)?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    /// The names, behind the edition; none of another edition.
    fn texts(&mut self) -> Option<Vec<String>> {
        let (edition, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        if *edition != EDITION {
            return None;
        }
        let names = (0..self.count(1)?).map(|_| self.string());
        std::iter::once(Some(String::new())).chain(names).collect()
    }
}

impl PackedField for Reading<'_> {
    fn whole(&mut self, _number: u64) -> Option<u64> {
        varint::take(&mut self.bytes)
    }

    fn length(&mut self, _rows: usize) -> Option<usize> {
        self.count(1)
    }

    fn id(&mut self, id: &mut Id) -> Option<()> {
        let number = usize::try_from(self.whole(0)?).ok()?;
        *id = if number == 0 { Id::NONE } else { *self.ids.get(number - 1)? };
        Some(())
    }

    fn sym(&mut self, sym: &mut Sym) -> Option<()> {
        self.place(&mut sym.0, self.names)
    }

    fn text(&mut self, text: &mut String) -> Option<()> {
        *text = self.string()?;
        Some(())
    }
}
