//! Values that results listed and that calls were given, as hashes: what tells whether a list led to the next call. They stand
//! beside the rows of a file, since only who looks for links between tools reads them; those of every call of a history come
//! from whichever file has the copy that counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::id::{Id, IdMap};
use crate::base::names::{Names, Sym};
use crate::base::order::put_in_place;
use crate::logs::corpus::{Corpus, SourceRows};
use crate::logs::history::{Call, CallIndex, History};
use crate::logs::trace::{CallRow, Status, put_behind};

/// How a value stood in an answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::FromRepr)]
#[repr(u8)]
pub enum ValueKind {
    /// A line of its own.
    Line = 0,
    /// The start of a line, before a colon.
    Head = 1,
    /// A word in running text.
    Token = 2,
    /// A scalar of JSON.
    Leaf = 3,
}

/// One value of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedValue {
    /// XXH3-64 of the value in its one spelling.
    pub value: u64,
    /// Low half of the same of its directory; 0 for what is no path.
    pub parent: u32,
    /// How often it stood there, up to 255.
    pub count: u8,
    /// Where it stood first.
    pub kind: ValueKind,
}

/// What one extractor found in one answer. The values follow in [`ValueRows::listed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct List {
    /// Number of the answering block in its file.
    pub block: u32,
    /// `path`, `url` or `id` in text, else the JSON path, which begins with `$`; [`List::LINE`] or [`List::HEAD`].
    pub extractor: Sym,
    /// Distinct values, those beyond the cap included.
    pub found: u16,
    /// Occurrences of all of them.
    pub matches: u32,
    /// Bits: [`List::JSON`], [`List::CUT`], [`List::CONTEXT`], [`List::FILES`], [`List::TAKEN`].
    pub flags: u8,
    /// Values that were kept.
    pub kept: u16,
}

impl List {
    /// The answer was JSON.
    pub const JSON: u8 = 1;
    /// The answer had more text or more values than were looked at.
    pub const CUT: u8 = 2;
    /// Lines around the matches were shown.
    pub const CONTEXT: u8 = 4;
    /// Every path was a line of its own.
    pub const FILES: u8 = 8;
    /// It is what the published planner takes for paths, whatever it is.
    pub const TAKEN: u8 = 16;

    /// Of these, the first lines, repeats included.
    pub const LINE: &str = "line";
    /// What stands before the colon in the first lines in which that is another.
    pub const HEAD: &str = "head";

    /// Whether the list was found by a path of JSON keys.
    pub fn is_json(&self) -> bool {
        self.flags & Self::JSON != 0
    }

    /// Whether it tells nothing but what the published planner does.
    pub fn is_taken(&self) -> bool {
        self.flags & Self::TAKEN != 0
    }
}

/// One argument of a call; the first of each call stands for the whole input and has the empty name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GivenArgument {
    /// Number of the asking block in its file.
    pub block: u32,
    /// Path of keys in the input: `file_path`, `filter.id`, `items[].id`.
    pub argument: Sym,
    /// XXH3-64 of the value in its one spelling; of the whole input: over names and values of all its scalars.
    pub value: u64,
    /// As in [`ListedValue::parent`].
    pub parent: u32,
    /// Of the whole input: its scalars, up to 255. Otherwise 0.
    pub leaves: u8,
}

/// The value of a whole input: a hash over the hashed names and the values of all its scalars, whatever their order.
pub fn input_value(pairs: &mut [(u64, u64)]) -> u64 {
    pairs.sort_unstable();
    let bytes: Vec<u8> =
        pairs.iter().flat_map(|(name, value)| [name.to_le_bytes(), value.to_le_bytes()]).flatten().collect();
    xxh3_64(&bytes)
}

/// What a name counts as in [`input_value`].
pub fn name_value(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// The values of one file. Symbols refer to a [`Names`] table kept beside them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ValueRows {
    /// Lists, in the order of their blocks.
    pub lists: Vec<List>,
    /// Their values, list after list.
    pub listed: Vec<ListedValue>,
    /// Arguments, call by call.
    pub given: Vec<GivenArgument>,
}

impl ValueRows {
    /// Appends what follows in the file. `names` says where each symbol of `later` went, `blocks` how many blocks came
    /// earlier.
    pub fn append(&mut self, mut later: Self, names: &[Sym], blocks: u32) {
        let name = |sym: Sym| names[sym.0 as usize];
        for row in &mut later.lists {
            *row = List { block: row.block + blocks, extractor: name(row.extractor), ..*row };
        }
        for row in &mut later.given {
            *row = GivenArgument { block: row.block + blocks, argument: name(row.argument), ..*row };
        }
        put_behind(&mut self.lists, later.lists);
        put_behind(&mut self.listed, later.listed);
        put_behind(&mut self.given, later.given);
    }

    /// Gives back the room into which nothing came.
    pub fn shrink_to_fit(&mut self) {
        self.lists.shrink_to_fit();
        self.listed.shrink_to_fit();
        self.given.shrink_to_fit();
    }

    /// Drops the lists of answers that are not kept for the tool that answered. Whether it was known when an answer was
    /// read depends on how the file was cut, so this is done whenever more of the file is known.
    pub fn drop_lists(&mut self, calls: &[CallRow], is_dropped: impl Fn(Sym, &List) -> bool) {
        if !self.lists.iter().any(|list| list.is_json() || list.is_taken()) {
            return;
        }
        let asked: IdMap<Id, Sym> = calls.iter().filter_map(|row| Some((row.call, row.asked?.tool))).collect();
        let tool_of = |row: &CallRow| row.asked.map(|asked| asked.tool).or_else(|| asked.get(&row.call).copied());
        let answered = calls.iter().filter_map(|row| Some((row.answered?.block, tool_of(row)?)));
        let tools: BTreeMap<u32, Sym> = answered.collect();
        let goes = |list: &List| tools.get(&list.block).is_some_and(|tool| is_dropped(*tool, list));
        if !self.lists.iter().any(goes) {
            return;
        }
        let listed = std::mem::take(&mut self.listed);
        let mut start = 0;
        self.lists.retain(|list| {
            let values = start..start + usize::from(list.kept);
            start = values.end;
            let stays = !goes(list);
            if stays {
                self.listed.extend_from_slice(&listed[values]);
            }
            stays
        });
    }
}

/// Where the values of an answer or an input stand; there are two for every call. They go on as long as rows are of one block.
#[derive(Clone, Copy, Debug)]
struct Place {
    file: u32,
    row: u32,
}

impl Place {
    /// That of a call without values: there is no such file.
    const NOWHERE: Self = Self { file: u32::MAX, row: 0 };
}

/// The values of every call of a history.
#[derive(Clone, Default, Debug)]
pub struct CallValues {
    /// Extractors and arguments.
    pub names: Arc<Names>,
    files: Vec<Arc<ValueRows>>,
    /// With the first listed value of each.
    answers: Vec<(Place, u32)>,
    inputs: Vec<Place>,
}

impl CallValues {
    /// The lists in the answer of a call, each with its values.
    pub fn lists(&self, call: usize) -> impl Iterator<Item = (&List, &[ListedValue])> {
        self.all_lists(call).filter(|(list, _)| !list.is_taken())
    }

    /// What the published planner takes out of the answer of a call.
    pub fn taken(&self, call: usize) -> impl Iterator<Item = (&List, &[ListedValue])> {
        self.all_lists(call).filter(|(list, _)| list.is_taken())
    }

    fn all_lists(&self, call: usize) -> impl Iterator<Item = (&List, &[ListedValue])> {
        let (place, first) = self.answers[call];
        let file = self.files.get(place.file as usize);
        let (lists, listed) = file.map_or((&[][..], &[][..]), |file| {
            (of_one_block(&file.lists, place.row, |list| list.block), &file.listed[first as usize..])
        });
        let mut rest = listed;
        lists.iter().map(move |list| {
            let (values, later) = rest.split_at(usize::from(list.kept));
            rest = later;
            (list, values)
        })
    }

    /// The arguments of a call that were kept.
    pub fn given(&self, call: usize) -> &[GivenArgument] {
        self.rows(call).get(1..).unwrap_or_default()
    }

    /// The whole input of a call.
    pub fn input(&self, call: usize) -> Option<&GivenArgument> {
        self.rows(call).first()
    }

    fn rows(&self, call: usize) -> &[GivenArgument] {
        let place = self.inputs[call];
        let file = self.files.get(place.file as usize);
        file.map_or(&[], |file| of_one_block(&file.given, place.row, |given| given.block))
    }
}

/// The rows from this one on that are of its block.
fn of_one_block<R>(rows: &[R], first: u32, block_of: impl Fn(&R) -> u32) -> &[R] {
    rows[first as usize..].chunk_by(|a, b| block_of(a) == block_of(b)).next().unwrap_or_default()
}

/// Where the values of each block of a file stand, by block, with the first listed value of each.
struct Blocks(Vec<(u32, (Place, u32))>);

impl Blocks {
    /// Where the rows of each block stand; `block_of` tells the block of a row, and how many listed values belong to it.
    fn of<R>(file: u32, rows: &[R], block_of: impl Fn(&R) -> (u32, u16)) -> Self {
        let (mut row, mut listed) = (0, 0);
        let blocks = rows.chunk_by(|a, b| block_of(a).0 == block_of(b).0).map(|own| {
            let place = (Place { file, row }, listed);
            row += own.len() as u32;
            listed += own.iter().map(|one| u32::from(block_of(one).1)).sum::<u32>();
            (block_of(&own[0]).0, place)
        });
        let mut places: Vec<_> = blocks.collect();
        // They stand in order already, but where a file was written by somebody else.
        places.sort_by_key(|(block, _)| *block);
        Self(places)
    }

    /// The last place of a block.
    fn get(&self, block: u32) -> Option<(Place, u32)> {
        let until = self.0.partition_point(|(other, _)| *other <= block);
        self.0[..until].last().filter(|(other, _)| *other == block).map(|(_, place)| *place)
    }
}

/// The copy of a call that counts, smaller is better: a record of its own before a progress record; then whatever does not
/// depend on the order of files: the place of its file by key, and its block there.
type Copied = (bool, u32, u32);

/// Which blocks ask and answer the calls of a history: what has to be known of rows to find values.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct CallBlocks {
    /// The files, by key.
    keys: Vec<Id>,
    answers: Vec<Option<Copied>>,
    inputs: Vec<Option<Copied>>,
}

impl CallBlocks {
    /// Finds the copies of each call.
    pub fn of(corpus: &Corpus, history: &History) -> Self {
        let logs: Vec<&SourceRows> = corpus.files.iter().filter(|file| !file.source.is_sidecar()).collect();
        let (mut blocks, ranks) = Self::without_calls(&logs);
        blocks.append(Self::among(logs.into_iter().zip(ranks), &history.calls));
        blocks
    }

    /// Of these logs, before anything is known of their calls; and the place of each by its key.
    pub fn without_calls(logs: &[&SourceRows]) -> (Self, Vec<u32>) {
        let mut keys: Vec<Id> = logs.iter().map(|log| log.source.key).collect();
        keys.sort_unstable();
        let ranks = logs.iter().map(|log| keys.partition_point(|key| *key < log.source.key) as u32).collect();
        (Self { keys, ..Self::default() }, ranks)
    }

    /// Where the values of some calls stand, of which these logs have all copies, each log with its place. Calls without an id
    /// have none: nobody can tell which answer is theirs.
    pub fn among<'l>(logs: impl Iterator<Item = (&'l SourceRows, u32)>, calls: &[Call]) -> Self {
        let index = CallIndex::of(calls);
        let (mut answers, mut inputs) = (vec![None; calls.len()], vec![None; calls.len()]);
        for (log, rank) in logs {
            for row in log.rows.calls.iter().filter(|row| row.call.is_some()) {
                let CallRow { asked, answered, progress, .. } = *row;
                let Some(call) = index.find(row.call, asked.map_or(Id::NONE, |asked| asked.message)) else { continue };
                if let Some(asked) = asked {
                    better(&mut inputs[call], (progress, rank, asked.block));
                }
                // Another answer to the call may have been given up for the one that counts.
                let body = calls[call].body;
                if let Some(answered) = answered.filter(|half| half.body == body && half.status == Status::Ok) {
                    better(&mut answers[call], (progress, rank, answered.block));
                }
            }
        }
        Self { keys: Vec::new(), answers, inputs }
    }

    /// Adds what is known of further calls in the same logs.
    pub fn append(&mut self, mut further: Self) {
        self.answers.append(&mut further.answers);
        self.inputs.append(&mut further.inputs);
    }

    /// Brings the calls into another order: each goes to one of these places.
    pub fn reorder(&mut self, places: &[u32]) {
        put_in_place(&mut self.answers, places.to_vec());
        put_in_place(&mut self.inputs, places.to_vec());
    }

    /// How many calls are known.
    pub fn calls(&self) -> usize {
        self.answers.len()
    }

    /// The values of each call. `values` has those of each file by its key, `names` what their symbols mean.
    pub fn gather(&self, names: Arc<Names>, values: &IdMap<Id, Arc<ValueRows>>) -> CallValues {
        let files: Vec<_> = self.keys.iter().map(|key| values.get(key).cloned().unwrap_or_default()).collect();
        let numbered = || (0..files.len() as u32).into_par_iter().zip(&files);
        let lists_of =
            |(file, rows): (u32, &Arc<ValueRows>)| Blocks::of(file, &rows.lists, |list| (list.block, list.kept));
        let given_of = |(file, rows): (u32, &Arc<ValueRows>)| Blocks::of(file, &rows.given, |given| (given.block, 0));
        let answers = places(&self.answers, numbered().map(lists_of).collect(), |place| place);
        let inputs = places(&self.inputs, numbered().map(given_of).collect(), |(place, _)| place);
        CallValues { names, files, answers, inputs }
    }
}

/// What `keep` keeps of where the values stand of those blocks that count.
fn places<P: Send>(counts: &[Option<Copied>], files: Vec<Blocks>, keep: impl Fn((Place, u32)) -> P + Sync) -> Vec<P> {
    let find = |best: &Option<Copied>| best.and_then(|(_, file, block)| files[file as usize].get(block));
    counts.par_iter().map(|best| keep(find(best).unwrap_or((Place::NOWHERE, 0)))).collect()
}

fn better(best: &mut Option<Copied>, copy: Copied) {
    if best.is_none_or(|known| copy < known) {
        *best = Some(copy);
    }
}
