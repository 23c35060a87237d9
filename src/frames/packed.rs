//! Rows of a timeline as bytes: columns of small numbers, with every id and every word written once. What is read back is
//! checked, so that bytes of any kind give rows that hold together, or none.

use std::ops::Range;
use std::sync::Arc;

use crate::base::id::{Id, IdMap};
use crate::base::names::{Names, Sym};
use crate::base::tokenizer::Tokens;
use crate::base::varint;
use crate::logs::timeline::requests::{
    Added, BlockKind, Marks, Occurrence, ReferenceKind, Setting, StatedCost, Trigger, Utterance,
};
use crate::logs::timeline::rows::{
    AddedRow, AgentRow, Answer, BlockRow, ClearedRow, CompactedRow, FieldRow, FileTimeline, Parent, RecordKind,
    RecordRow, ReferenceRow, SessionSpan, TimelineRows,
};
use crate::logs::timeline::words::{Numbered, Words};
use crate::logs::trace::{ChainKey, Millis, Place, Usage};

/// Raised whenever the layout changes: rows of another edition are made anew.
const EDITION: u8 = 6;

/// The column in which these bytes stand.
pub const COLUMN: &str = "packed";

/// Where the ids and the hashes stand in what [`pack`] wrote; none in anything else.
pub fn hash_places(bytes: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let mut from = Unpacker { bytes, ..Unpacker::default() };
    if from.byte()? != EDITION {
        return None;
    }
    for _ in 0..from.count(1)? {
        from.text()?;
    }
    let ids = 16 * from.count(16)?;
    let start = bytes.len() - from.bytes.len();
    from.bytes = from.bytes.get(ids..)?;
    let hashes = 8 * from.count(8)?;
    let later = bytes.len() - from.bytes.len();
    Some((start..start + ids, later..later + hashes))
}

/// The rows as bytes.
pub fn pack(file: &FileTimeline) -> Vec<u8> {
    let (mut out, ids) = packed_rows(&file.rows);
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
    out
}

/// The rows, and the ids that their numbers stand for. By what these were numbered takes as much room, and goes.
fn packed_rows(rows: &TimelineRows) -> (Vec<u8>, Vec<Id>) {
    let mut to = Packer::default();
    to.rows(rows);
    (to.out, to.ids)
}

/// The rows that [`pack`] wrote; none if these bytes are not such rows, or those of another edition.
pub fn unpack(bytes: &[u8]) -> Option<FileTimeline> {
    let mut from = Unpacker { bytes, ..Unpacker::default() };
    if from.byte()? != EDITION {
        return None;
    }
    let mut texts = vec![String::new()];
    for _ in 0..from.count(1)? {
        texts.push(from.text()?);
    }
    from.names = texts.len();
    for _ in 0..from.count(16)? {
        let (id, rest) = from.bytes.split_first_chunk()?;
        from.bytes = rest;
        from.ids.push(Id(*id));
    }
    for _ in 0..from.count(8)? {
        let (hash, rest) = from.bytes.split_first_chunk()?;
        from.bytes = rest;
        from.hashes.push(u64::from_le_bytes(*hash));
    }
    let rows = from.rows()?;
    let names = Names::from_texts(texts);
    (from.bytes.is_empty() && names.texts().len() == from.names).then_some(FileTimeline { names, rows })
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    varint::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

#[derive(Default)]
struct Packer {
    out: Vec<u8>,
    ids: Vec<Id>,
    known_ids: IdMap<Id, u64>,
}

impl Packer {
    fn number(&mut self, number: impl Into<u64>) {
        varint::put(&mut self.out, number.into());
    }

    /// The number of an id, 0 for none.
    fn id(&mut self, id: Id) {
        let next = self.ids.len() as u64 + 1;
        let number = if id.is_some() { *self.known_ids.entry(id).or_insert(next) } else { 0 };
        if number == next {
            self.ids.push(id);
        }
        self.number(number);
    }

    fn optional(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    /// A time as the step from the one before; steps wrap, so any two times have one.
    fn time(&mut self, before: &mut Millis, now: Millis) {
        let step = now.wrapping_sub(std::mem::replace(before, now));
        self.number(((step << 1) ^ (step >> 63)) as u64);
    }

    fn length(&mut self, range: &Range<u32>) {
        self.number(range.end - range.start);
    }

    fn column<T>(&mut self, rows: &[T], mut each: impl FnMut(&mut Self, &T)) {
        rows.iter().for_each(|row| each(self, row));
    }

    fn rows(&mut self, rows: &TimelineRows) {
        let TimelineRows {
            chains,
            sessions,
            agents,
            stated_costs,
            records,
            outside,
            blocks,
            cleared,
            references,
            sources,
            fields,
            utterances,
            words,
            added,
            skipped,
        } = rows;
        let lengths = [chains.len(), sessions.len(), records.len(), blocks.len(), cleared.len()];
        lengths.iter().for_each(|&length| self.number(length as u64));
        let lengths = [references.len(), sources.len(), utterances.len(), words.rows().len(), skipped.len()];
        lengths.iter().for_each(|&length| self.number(length as u64));
        [agents.len(), stated_costs.len(), fields.len(), added.len()]
            .iter()
            .for_each(|&length| self.number(length as u64));
        self.column(chains, |to, row| {
            to.id(row.session);
            to.id(row.agent);
            to.number(row.place as u8);
        });
        let mut time = 0;
        self.column(sessions, |to, row| {
            to.id(row.session);
            to.id(row.project);
            to.time(&mut time, row.ts_first);
            to.number(row.is_background);
        });
        self.column(agents, |to, row| {
            to.id(row.session);
            to.id(row.agent);
            to.number(row.kind.0);
        });
        self.column(stated_costs, |to, row| {
            to.id(row.session);
            to.number(row.model.0);
            to.usage(&row.usage);
            to.number(row.nanodollars);
        });
        self.records(records, outside);
        self.blocks(blocks);
        self.column(cleared, |to, id| to.id(*id));
        self.column(references, |to, row| to.number(row.kind as u8));
        self.column(references, |to, row| to.number(row.block));
        self.column(references, |to, row| to.length(&row.sources));
        self.column(references, |to, row| to.number(row.cut));
        self.column(sources, |to, row| to.number(row.block));
        self.column(sources, |to, row| to.number(row.end_chars));
        self.column(fields, |to, row| to.number(row.block));
        self.column(fields, |to, row| to.number(row.name.0));
        self.column(fields, |to, row| row.tokens.into_iter().for_each(|tokens| to.number(tokens)));
        self.column(fields, |to, row| to.number(row.values));
        self.column(fields, |to, row| to.number(row.used));
        self.column(fields, |to, row| to.number(row.how));
        self.column(utterances, |to, row| to.number(row.block));
        self.column(utterances, |to, row| to.length(&row.terms));
        self.column(utterances, |to, row| to.length(&row.words));
        self.column(words.rows(), |to, row| to.number(row.number));
        self.column(words.rows(), |to, row| to.number(row.count));
        self.column(words.rows(), |to, row| to.number(row.position));
        self.column(added, |to, row| to.number(row.record));
        self.column(added, |to, row| to.number(row.what as u8));
        self.column(added, |to, row| to.number(row.name.0));
        self.column(added, |to, row| to.id(row.run));
        self.column(added, |to, row| to.number(row.chars));
        self.column(added, |to, row| to.number(row.millis));
        for (reason, &count) in skipped {
            put_text(&mut self.out, reason);
            self.number(count);
        }
    }

    fn records(&mut self, records: &[RecordRow], outside: &[Id]) {
        let mut time = 0;
        self.column(records, |to, row| to.id(row.id));
        self.column(records, |to, row| to.number(row.chain));
        self.column(records, |to, row| to.time(&mut time, row.ts));
        self.column(records, |to, row| to.number(row.version.0));
        self.column(records, |to, row| to.number(row.marks.0));
        self.column(records, |to, row| to.length(&row.blocks));
        for (index, row) in records.iter().enumerate() {
            match row.parent {
                Parent::Nothing => self.number(0_u8),
                Parent::Unknown => self.number(1_u8),
                Parent::Outside(place) => {
                    self.number(2_u8);
                    self.id(outside[place as usize]);
                }
                // Nearly always the record before.
                Parent::Record(parent) => self.number(2 + index as u64 - u64::from(parent)),
            }
        }
        self.column(records, |to, row| match &row.kind {
            RecordKind::Said => to.number(0_u8),
            RecordKind::Noted => to.number(1_u8),
            RecordKind::Answer(answer) => to.answer(answer),
            RecordKind::Compacted(compacted) => {
                to.number(4_u8);
                to.number(compacted.trigger as u8);
                to.optional(compacted.pre_tokens);
            }
            RecordKind::Cleared(cleared) => {
                to.number(5_u8);
                to.optional(cleared.pre_tokens);
                to.optional(cleared.tokens_saved);
                to.length(&cleared.calls);
            }
        });
    }

    fn answer(&mut self, answer: &Answer) {
        self.number(2 + u8::from(answer.is_request));
        self.id(answer.message);
        self.number(answer.model.0);
        self.usage(&answer.usage);
        let Setting { effort, speed, branch, miss_reason } = answer.setting;
        [effort, speed, miss_reason].into_iter().for_each(|word| self.number(word.0));
        self.id(branch);
    }

    fn usage(&mut self, usage: &Usage) {
        let Usage { input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h } = *usage;
        for tokens in [input, output, cache_creation, cache_read, cache_creation_5m, cache_creation_1h] {
            self.number(tokens);
        }
    }

    fn blocks(&mut self, blocks: &[BlockRow]) {
        self.column(blocks, |to, row| to.number(row.kind as u8));
        self.column(blocks, |to, row| {
            to.number(u8::from(row.is_string) | u8::from(row.is_error) << 1 | row.file << 2 | row.media << 4);
        });
        self.column(blocks, |to, row| to.number(row.chars));
        self.column(blocks, |to, row| to.number(row.bytes));
        self.column(blocks, |to, row| row.tokens.into_iter().for_each(|tokens| to.number(tokens)));
        self.column(blocks, |to, row| to.id(row.call));
        self.column(blocks, |to, row| to.number(row.tool.0));
        self.column(blocks, |to, row| to.id(row.path));
        self.column(blocks, |to, row| to.number(row.file_kind.0));
    }
}

#[derive(Default)]
struct Unpacker<'b> {
    bytes: &'b [u8],
    ids: Vec<Id>,
    hashes: Vec<u64>,
    /// How many names there are.
    names: usize,
}

impl Unpacker<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        varint::take(&mut self.bytes)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// How many rows follow, of which each takes at least some bytes.
    fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count: usize = self.small()?;
        (count <= self.bytes.len() / bytes_each).then_some(count)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count(1)?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn id(&mut self) -> Option<Id> {
        match self.small::<usize>()? {
            0 => Some(Id::NONE),
            number => self.ids.get(number - 1).copied(),
        }
    }

    fn sym(&mut self) -> Option<Sym> {
        let number: u32 = self.small()?;
        ((number as usize) < self.names).then_some(Sym(number))
    }

    fn below(&mut self, limit: usize) -> Option<u32> {
        let number: u32 = self.small()?;
        ((number as usize) < limit).then_some(number)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn optional(&mut self) -> Option<Option<u64>> {
        let is_some = self.flag()?;
        let number = self.number()?;
        Some(is_some.then_some(number))
    }

    fn time(&mut self, before: &mut Millis) -> Option<Millis> {
        let folded = self.number()?;
        let step = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        *before = before.wrapping_add(step);
        Some(*before)
    }

    /// Rows that are made of one column.
    fn column<T>(&mut self, count: usize, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            rows.push(each(self)?);
        }
        Some(rows)
    }

    /// Fills in a further column, where the rows are: beside each other, columns would take more than all rows.
    fn fill<T, V>(
        &mut self,
        rows: &mut [T],
        field: impl Fn(&mut T) -> &mut V,
        mut read: impl FnMut(&mut Self) -> Option<V>,
    ) -> Option<()> {
        for row in rows {
            *field(row) = read(self)?;
        }
        Some(())
    }

    /// The range that follows one that ended at `end`.
    fn range(&mut self, end: &mut u32) -> Option<Range<u32>> {
        let start = std::mem::replace(end, end.checked_add(self.small()?)?);
        Some(start..*end)
    }

    fn rows(&mut self) -> Option<TimelineRows> {
        let mut lengths = [0; 10];
        for length in &mut lengths {
            *length = self.count(1)?;
        }
        let (agents, stated_costs) = (self.count(1)?, self.count(1)?);
        let (fields, added) = (self.count(1)?, self.count(1)?);
        let [chains, sessions, records, blocks, cleared, references, sources, utterances, words, skipped] = lengths;
        let chains = self.column(chains, |from| {
            let (session, agent) = (from.id()?, from.id()?);
            Some(ChainKey { session, agent, place: Place::from_number(from.small()?)? })
        })?;
        let mut time = 0;
        let sessions = self.column(sessions, |from| {
            let (session, project, ts_first) = (from.id()?, from.id()?, from.time(&mut time)?);
            Some(SessionSpan { session, project, ts_first, is_background: from.flag()? })
        })?;
        let agents =
            self.column(agents, |from| Some(AgentRow { session: from.id()?, agent: from.id()?, kind: from.sym()? }))?;
        let stated_costs = self.column(stated_costs, |from| {
            let (session, model) = (from.id()?, from.sym()?);
            Some(StatedCost { session, model, usage: from.usage()?, nanodollars: from.number()? })
        })?;
        let (records, outside) = self.records(records, chains.len(), blocks, cleared)?;
        let blocks = self.blocks(blocks)?;
        let cleared = self.column(cleared, Self::id)?;
        let references = self.references(references, blocks.len(), sources)?;
        let sources = self.sources(sources, blocks.len())?;
        let fields = self.fields(fields, blocks.len())?;
        let (utterances, words) = self.utterances(utterances, blocks.len(), words)?;
        let added = self.added(added, records.len())?;
        let skipped = self.column(skipped, |from| Some((from.text()?, from.number()?)))?.into_iter().collect();
        Some(TimelineRows {
            chains,
            sessions,
            agents,
            stated_costs,
            records,
            outside,
            blocks,
            cleared,
            references,
            sources,
            fields,
            utterances,
            words,
            added,
            skipped,
        })
    }

    fn records(
        &mut self,
        count: usize,
        chains: usize,
        blocks: usize,
        cleared: usize,
    ) -> Option<(Vec<RecordRow>, Vec<Id>)> {
        let mut rows = self.column(count, |from| Some(RecordRow { id: from.id()?, ..RecordRow::default() }))?;
        let (mut time, mut end, mut calls, mut answered) = (0, 0, 0, None);
        self.fill(&mut rows, |row| &mut row.chain, |from| from.below(chains))?;
        self.fill(&mut rows, |row| &mut row.ts, |from| from.time(&mut time))?;
        self.fill(&mut rows, |row| &mut row.version, Self::sym)?;
        self.fill(&mut rows, |row| &mut row.marks, |from| Some(Marks(from.small()?)))?;
        self.fill(&mut rows, |row| &mut row.blocks, |from| from.range(&mut end))?;
        let mut outside = Vec::new();
        for (index, row) in (2_u64..).zip(&mut rows) {
            row.parent = match self.number()? {
                0 => Parent::Nothing,
                1 => Parent::Unknown,
                2 => {
                    outside.push(self.id()?);
                    Parent::Outside(outside.len() as u32 - 1)
                }
                back => Parent::Record(u32::try_from(index.checked_sub(back)?).ok()?),
            };
        }
        self.fill(&mut rows, |row| &mut row.kind, |from| from.record_kind(&mut calls, &mut answered))?;
        (end as usize == blocks && calls as usize == cleared).then_some((rows, outside))
    }

    fn record_kind(&mut self, calls: &mut u32, answered: &mut Option<Arc<Answer>>) -> Option<RecordKind> {
        Some(match self.number()? {
            0 => RecordKind::Said,
            1 => RecordKind::Noted,
            kind @ (2 | 3) => {
                let (message, model) = (self.id()?, self.sym()?);
                let usage = self.usage()?;
                let (effort, speed, miss_reason) = (self.sym()?, self.sym()?, self.sym()?);
                let setting = Setting { effort, speed, miss_reason, branch: self.id()? };
                let is_request = kind == 3;
                RecordKind::Answer(Answer { message, model, usage, setting, is_request }.shared(answered))
            }
            4 => {
                let trigger = Trigger::from_number(self.small()?)?;
                RecordKind::Compacted(Box::new(CompactedRow { trigger, pre_tokens: self.optional()? }))
            }
            5 => {
                let (pre_tokens, tokens_saved) = (self.optional()?, self.optional()?);
                RecordKind::Cleared(Box::new(ClearedRow { pre_tokens, tokens_saved, calls: self.range(calls)? }))
            }
            _ => return None,
        })
    }

    fn usage(&mut self) -> Option<Usage> {
        Some(Usage {
            input: self.number()?,
            output: self.number()?,
            cache_creation: self.number()?,
            cache_read: self.number()?,
            cache_creation_5m: self.number()?,
            cache_creation_1h: self.number()?,
        })
    }

    fn blocks(&mut self, count: usize) -> Option<Vec<BlockRow>> {
        let kind = |from: &mut Self| BlockKind::from_number(from.small()?);
        let mut rows = self.column(count, |from| Some(BlockRow { kind: kind(from)?, ..BlockRow::default() }))?;
        for row in &mut rows {
            let flags: u8 = self.small()?;
            (row.is_string, row.is_error) = (flags & 1 == 1, flags & 2 == 2);
            (row.file, row.media) = (flags >> 2 & 3, flags >> 4);
        }
        self.fill(&mut rows, |row| &mut row.chars, Self::small)?;
        self.fill(&mut rows, |row| &mut row.bytes, Self::small)?;
        self.fill(&mut rows, |row| &mut row.tokens, Self::tokens)?;
        self.fill(&mut rows, |row| &mut row.call, Self::id)?;
        self.fill(&mut rows, |row| &mut row.tool, Self::sym)?;
        self.fill(&mut rows, |row| &mut row.path, Self::id)?;
        self.fill(&mut rows, |row| &mut row.file_kind, Self::sym)?;
        Some(rows)
    }

    fn tokens(&mut self) -> Option<Tokens> {
        let mut tokens = Tokens::default();
        for count in &mut tokens {
            *count = self.small()?;
        }
        Some(tokens)
    }

    fn fields(&mut self, count: usize, blocks: usize) -> Option<Vec<FieldRow>> {
        let mut rows =
            self.column(count, |from| Some(FieldRow { block: from.below(blocks)?, ..FieldRow::default() }))?;
        self.fill(&mut rows, |row| &mut row.name, Self::sym)?;
        self.fill(&mut rows, |row| &mut row.tokens, Self::tokens)?;
        self.fill(&mut rows, |row| &mut row.values, Self::small)?;
        self.fill(&mut rows, |row| &mut row.used, Self::small)?;
        self.fill(&mut rows, |row| &mut row.how, Self::small)?;
        Some(rows)
    }

    fn added(&mut self, count: usize, records: usize) -> Option<Vec<AddedRow>> {
        let mut rows =
            self.column(count, |from| Some(AddedRow { record: from.below(records)?, ..AddedRow::default() }))?;
        self.fill(&mut rows, |row| &mut row.what, |from| Added::from_number(from.small()?))?;
        self.fill(&mut rows, |row| &mut row.name, Self::sym)?;
        self.fill(&mut rows, |row| &mut row.run, Self::id)?;
        self.fill(&mut rows, |row| &mut row.chars, Self::small)?;
        self.fill(&mut rows, |row| &mut row.millis, Self::small)?;
        Some(rows)
    }

    fn references(&mut self, count: usize, blocks: usize, sources: usize) -> Option<Vec<ReferenceRow>> {
        let kind = |from: &mut Self| ReferenceKind::from_number(from.small()?);
        let mut rows =
            self.column(count, |from| Some(ReferenceRow { kind: kind(from)?, block: 0, sources: 0..0, cut: false }))?;
        let mut end = 0;
        self.fill(&mut rows, |row| &mut row.block, |from| from.below(blocks))?;
        self.fill(&mut rows, |row| &mut row.sources, |from| from.range(&mut end))?;
        self.fill(&mut rows, |row| &mut row.cut, Self::flag)?;
        (end as usize == sources).then_some(rows)
    }

    fn sources(&mut self, count: usize, blocks: usize) -> Option<Vec<Occurrence>> {
        let mut rows = self.column(count, |from| Some(Occurrence { block: from.below(blocks)?, end_chars: 0 }))?;
        self.fill(&mut rows, |row| &mut row.end_chars, Self::small)?;
        Some(rows)
    }

    fn utterances(&mut self, count: usize, blocks: usize, words: usize) -> Option<(Vec<Utterance>, Words)> {
        let mut rows =
            self.column(count, |from| Some(Utterance { block: from.below(blocks)?, terms: 0..0, words: 0..0 }))?;
        self.fill(&mut rows, |row| &mut row.terms.end, Self::small)?;
        // Terms and words of one utterance stand one behind the other.
        let mut end = 0_u32;
        for row in &mut rows {
            let middle = end.checked_add(row.terms.end)?;
            row.terms = end..middle;
            end = middle;
            row.words = self.range(&mut end)?;
        }
        if end as usize != words {
            return None;
        }
        let mut words = self.column(words, |from| Some(Numbered { number: from.small()?, count: 0, position: 0 }))?;
        for word in &mut words {
            word.count = self.small()?;
        }
        for word in &mut words {
            word.position = self.small()?;
        }
        Some((rows, Words::of_parts(std::mem::take(&mut self.hashes), words)?))
    }
}
