//! Timelines of which none knows of the others, joined to one in the order of all sessions.

use std::ops::Range;

use rayon::prelude::*;

use crate::base::allocator;
use crate::base::id::Id;
use crate::logs::timeline::requests::{NONE, Timeline};
use crate::logs::timeline::words::{WordIndex, WordList};
use crate::logs::trace::{Millis, count_under};

/// The tables in which the rows of a session stand one behind the other.
#[derive(Clone, Copy)]
enum Table {
    Sessions,
    Chains,
    Segments,
    Requests,
    Blocks,
    Calls,
    Boundaries,
    Clearings,
    References,
    Sources,
    Utterances,
    Added,
}

/// A place in each table.
type Places = [u32; Table::Added as usize + 1];

/// How much of a table is free before it is given back: it would else be held twice.
const FREE_BYTES_MAX: usize = 2 << 20;
/// The same of small blocks: they lie between others still in use, so that the allocator has to be asked.
const FREE_SMALL_BYTES_MAX: usize = 16 << 20;

/// All of them but their names, which are one table already.
pub(super) fn join(mut timelines: Vec<Timeline>) -> Timeline {
    if timelines.len() < 2 {
        return timelines.pop().unwrap_or_default();
    }
    let mut parts: Vec<Part> = timelines.into_iter().map(Part::new).collect();
    let sessions = parts.iter().enumerate().flat_map(|(part, Part { from, .. })| {
        (0..).zip(&from.sessions).map(move |(place, session)| (session.ts_first, session.id, part, place))
    });
    let mut order: Vec<(Millis, Id, usize, usize)> = sessions.collect();
    order.sort_unstable();
    let order: Vec<(usize, usize)> = order.into_iter().map(|(_, _, part, session)| (part, session)).collect();
    let mut end = Places::default();
    order.iter().for_each(|&(part, session)| parts[part].place(session, &mut end));
    let words = words(&mut parts, &order);
    parts.par_iter_mut().for_each(Part::renumber);
    let mut joining = Joining { parts, order, end };
    let mut out = Timeline { words, ..joining.tables() };
    for Timeline { mut stated_costs, mut unbilled, skipped, .. } in joining.parts.into_iter().map(|part| part.from) {
        out.stated_costs.append(&mut stated_costs);
        out.unbilled.append(&mut unbilled);
        skipped.iter().for_each(|(reason, count)| count_under(&mut out.skipped, reason, *count));
    }
    out.stated_costs.sort_unstable_by_key(|row| (row.session, row.model));
    out.unbilled.sort_unstable();
    out
}

/// The words of all parts, in the order of their first sessions.
fn words(parts: &mut [Part], order: &[(usize, usize)]) -> WordIndex {
    let mut words = WordList::default();
    words.reserve(parts.iter().map(|part| part.from.words.rows().len()).sum());
    let mut freed = Freed::default();
    for &(part, _) in order.iter().filter(|(_, session)| *session == 0) {
        let own = std::mem::take(&mut parts[part].from.words);
        parts[part].words = words.end();
        freed.add(size_of_val(own.rows()));
        words.append(own);
    }
    words.finish()
}

/// What is handed over.
struct Joining {
    parts: Vec<Part>,
    /// All sessions in their order: which part, which session of it.
    order: Vec<(usize, usize)>,
    /// How many rows there are.
    end: Places,
}

impl Joining {
    /// One table after the other, so that of no other any row is held twice.
    fn tables(&mut self) -> Timeline {
        Timeline {
            sessions: self.table(Table::Sessions, |from| &mut from.sessions),
            chains: self.table(Table::Chains, |from| &mut from.chains),
            segments: self.table(Table::Segments, |from| &mut from.segments),
            requests: self.table(Table::Requests, |from| &mut from.requests),
            blocks: self.table(Table::Blocks, |from| &mut from.blocks),
            calls: self.table(Table::Calls, |from| &mut from.calls),
            boundaries: self.table(Table::Boundaries, |from| &mut from.boundaries),
            clearings: self.table(Table::Clearings, |from| &mut from.clearings),
            references: self.table(Table::References, |from| &mut from.references),
            sources: self.table(Table::Sources, |from| &mut from.sources),
            utterances: self.table(Table::Utterances, |from| &mut from.utterances),
            added: self.table(Table::Added, |from| &mut from.added),
            ..Timeline::default()
        }
    }

    /// The rows of a table, from the last one to the first: behind what is not yet handed over, room is given back, as
    /// far as the allocator does that.
    fn table<T>(&mut self, table: Table, rows: fn(&mut Timeline) -> &mut Vec<T>) -> Vec<T> {
        let mut all = Vec::with_capacity(self.end[table as usize] as usize);
        let mut freed = Freed::default();
        for &(part, session) in self.order.iter().rev() {
            let Part { from, begins, .. } = &mut self.parts[part];
            let from = rows(from);
            all.extend(from.drain(begins[session][table as usize] as usize..).rev());
            let free = (from.capacity() - from.len()) * size_of::<T>();
            if free > FREE_BYTES_MAX || from.is_empty() {
                from.shrink_to_fit();
                freed.add(free);
            }
        }
        all.reverse();
        all
    }
}

/// Bytes that were freed and not yet given back.
#[derive(Default)]
struct Freed(usize);

impl Freed {
    fn add(&mut self, bytes: usize) {
        self.0 += bytes;
        if self.0 > FREE_SMALL_BYTES_MAX {
            allocator::give_back_small_blocks();
            self.0 = 0;
        }
    }
}

struct Part {
    from: Timeline,
    /// Where the rows of each session begin, and where those of the last one end.
    begins: Vec<Places>,
    /// Where they begin in the whole.
    goes: Vec<Places>,
    /// Words of the parts that were begun before.
    words: u32,
}

impl Part {
    fn new(from: Timeline) -> Self {
        let begins = (0..=from.sessions.len() as u32).map(|session| begin(&from, session)).collect();
        Self { from, begins, goes: Vec::new(), words: 0 }
    }

    /// Finds room for a session behind what has its place.
    fn place(&mut self, session: usize, end: &mut Places) {
        self.goes.push(*end);
        let [from, to] = [session, session + 1].map(|session| self.begins[session]);
        end.iter_mut().zip(from.iter().zip(to)).for_each(|(end, (from, to))| *end += to - from);
    }

    /// Gives all that refers to rows their numbers in the whole.
    fn renumber(&mut self) {
        let Self { from, begins, goes, words } = self;
        let numbers = NewNumbers { begins, goes };
        (0..goes.len()).for_each(|session| numbers.give_session(session, from));
        for row in &mut from.utterances {
            for range in [&mut row.terms, &mut row.words] {
                *range = range.start + *words..range.end + *words;
            }
        }
        from.blocks.iter_mut().for_each(|row| numbers.give(Table::Calls, &mut row.call));
        from.sources.iter_mut().for_each(|row| numbers.give(Table::Blocks, &mut row.block));
    }
}

/// What the rows of a part are in the whole.
struct NewNumbers<'p> {
    begins: &'p [Places],
    goes: &'p [Places],
}

impl NewNumbers<'_> {
    /// To a row of a session, or the end of its rows.
    fn give_own(&self, session: usize, table: Table, row: &mut u32) {
        *row = self.goes[session][table as usize] + (*row - self.begins[session][table as usize]);
    }

    fn give_range(&self, session: usize, table: Table, rows: &mut Range<u32>) {
        self.give_own(session, table, &mut rows.start);
        self.give_own(session, table, &mut rows.end);
    }

    /// To a row of any session, if it is one.
    fn give(&self, table: Table, row: &mut u32) {
        if *row != NONE {
            let behind = self.begins.partition_point(|begin| begin[table as usize] <= *row);
            self.give_own(behind.saturating_sub(1), table, row);
        }
    }

    /// To all that refers to rows of its own session.
    fn give_session(&self, session: usize, from: &mut Timeline) {
        let [start, end] = [session, session + 1].map(|session| &self.begins[session]);
        let rows = |table: Table| start[table as usize] as usize..end[table as usize] as usize;
        let own = |table: Table, row: &mut u32| self.give_own(session, table, row);
        let range = |table: Table, rows: &mut Range<u32>| self.give_range(session, table, rows);
        for row in &mut from.chains[rows(Table::Chains)] {
            own(Table::Sessions, &mut row.session);
            range(Table::Requests, &mut row.requests);
            range(Table::Segments, &mut row.segments);
        }
        for row in &mut from.segments[rows(Table::Segments)] {
            own(Table::Chains, &mut row.chain);
            range(Table::Requests, &mut row.requests);
            self.give(Table::Requests, &mut row.after);
        }
        for row in &mut from.requests[rows(Table::Requests)] {
            own(Table::Chains, &mut row.chain);
            own(Table::Segments, &mut row.segment);
            range(Table::Blocks, &mut row.inputs);
            range(Table::Blocks, &mut row.outputs);
        }
        for row in &mut from.calls[rows(Table::Calls)] {
            own(Table::Blocks, &mut row.asked);
            self.give(Table::Blocks, &mut row.answered);
        }
        for row in &mut from.boundaries[rows(Table::Boundaries)] {
            own(Table::Chains, &mut row.chain);
            own(Table::Requests, &mut row.request);
            self.give(Table::Blocks, &mut row.summary);
        }
        for row in &mut from.clearings[rows(Table::Clearings)] {
            own(Table::Chains, &mut row.chain);
            own(Table::Requests, &mut row.request);
        }
        for row in &mut from.references[rows(Table::References)] {
            own(Table::Requests, &mut row.request);
            self.give(Table::Calls, &mut row.call);
            range(Table::Sources, &mut row.sources);
        }
        from.utterances[rows(Table::Utterances)].iter_mut().for_each(|row| own(Table::Blocks, &mut row.block));
        from.added[rows(Table::Added)].iter_mut().for_each(|row| own(Table::Requests, &mut row.with));
    }
}

/// Where the rows of a session begin.
fn begin(from: &Timeline, session: u32) -> Places {
    let chain = from.chains.partition_point(|row| row.session < session);
    let ends = || (from.segments.len() as u32, from.requests.len() as u32);
    let (segment, request) = from.chains.get(chain).map_or_else(ends, |row| (row.segments.start, row.requests.start));
    let chain = chain as u32;
    let block = from.requests.get(request as usize).map_or(from.blocks.len() as u32, |row| row.inputs.start);
    let reference = from.references.partition_point(|row| row.request < request);
    let source = from.references.get(reference).map_or(from.sources.len() as u32, |row| row.sources.start);
    [
        session,
        chain,
        segment,
        request,
        block,
        from.calls.partition_point(|row| row.asked < block) as u32,
        from.boundaries.partition_point(|row| row.chain < chain) as u32,
        from.clearings.partition_point(|row| row.chain < chain) as u32,
        reference as u32,
        source,
        from.utterances.partition_point(|row| row.block < block) as u32,
        from.added.partition_point(|row| row.with < request) as u32,
    ]
}
