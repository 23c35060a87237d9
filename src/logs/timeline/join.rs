//! Timelines of which none knows of the others, joined to one in the order of all sessions.

use std::ops::Range;

use crate::base::allocator;
use crate::base::id::Id;
use crate::logs::timeline::requests::{
    Addition, Block, Boundary, Chain, Clearing, NONE, Occurrence, Reference, Request, Segment, Timeline, ToolCall,
    Utterance,
};
use crate::logs::timeline::words::WordList;
use crate::logs::trace::{Millis, count_under};

/// The tables in which the rows of a session stand one behind the other.
#[derive(Clone, Copy)]
enum Table {
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

/// How often freed memory is given back while sessions are handed over: it lies between blocks still in use, and would else
/// be held twice.
const TIMES_GIVEN_BACK: usize = 8;

/// All of them but their names, which are one table already. Each is dropped once its last session is handed over.
pub(super) fn join(mut timelines: Vec<Timeline>) -> Timeline {
    if timelines.len() < 2 {
        return timelines.pop().unwrap_or_default();
    }
    let mut parts: Vec<Part> = timelines.into_iter().map(Part::new).collect();
    let sessions = parts.iter().enumerate().flat_map(|(part, Part { from, .. })| {
        (0..).zip(&from.sessions).map(move |(place, session)| (session.ts_first, session.id, part, place))
    });
    let mut order: Vec<(Millis, Id, usize, u32)> = sessions.collect();
    order.sort_unstable();
    let mut end = Places::default();
    order.iter().for_each(|&(_, _, part, session)| parts[part].place(session, &mut end));
    let (mut out, mut words) = (with_room(&end), WordList::default());
    words.reserve(parts.iter().map(|part| part.from.words.rows().len()).sum());
    let some = order.len().div_ceil(TIMES_GIVEN_BACK);
    for (number, (_, _, part, session)) in (0..).zip(order) {
        let part = &mut parts[part];
        if session == 0 {
            part.words = words.end();
            words.append(std::mem::take(&mut part.from.words));
        }
        part.hand_over(session, number, &mut out);
        if session as usize + 1 == part.from.sessions.len() {
            part.finish(&mut out);
        }
        if (number as usize + 1).is_multiple_of(some) {
            allocator::give_back_small_blocks();
        }
    }
    // What no session was made of was left out all the same.
    parts.iter_mut().for_each(|part| part.finish(&mut out));
    out.words = words.finish();
    out.stated_costs.sort_unstable_by_key(|row| (row.session, row.model));
    out.unbilled.sort_unstable();
    out
}

fn with_room(rows: &Places) -> Timeline {
    let room = |table: Table| rows[table as usize] as usize;
    Timeline {
        chains: Vec::with_capacity(room(Table::Chains)),
        segments: Vec::with_capacity(room(Table::Segments)),
        requests: Vec::with_capacity(room(Table::Requests)),
        blocks: Vec::with_capacity(room(Table::Blocks)),
        calls: Vec::with_capacity(room(Table::Calls)),
        references: Vec::with_capacity(room(Table::References)),
        sources: Vec::with_capacity(room(Table::Sources)),
        utterances: Vec::with_capacity(room(Table::Utterances)),
        added: Vec::with_capacity(room(Table::Added)),
        ..Timeline::default()
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

    /// Finds room for the next session behind what has its place.
    fn place(&mut self, session: u32, end: &mut Places) {
        self.goes.push(*end);
        let [from, to] = [session, session + 1].map(|session| self.begins[session as usize]);
        end.iter_mut().zip(from.iter().zip(to)).for_each(|(end, (from, to))| *end += to - from);
    }

    /// Where a row of a session, or the end of its rows, goes.
    fn own(&self, session: u32, table: Table, row: u32) -> u32 {
        let [begin, goes] = [&self.begins, &self.goes].map(|places| places[session as usize][table as usize]);
        goes + (row - begin)
    }

    /// Where a row of any session goes, if it is one.
    fn any(&self, table: Table, row: u32) -> u32 {
        if row == NONE {
            return NONE;
        }
        let behind = self.begins.partition_point(|begin| begin[table as usize] <= row);
        self.own(behind.saturating_sub(1) as u32, table, row)
    }

    fn hand_over(&self, session: u32, number: u32, out: &mut Timeline) {
        let from = &self.from;
        let [begin, end] = [session, session + 1].map(|session| &self.begins[session as usize]);
        let rows = |table: Table| begin[table as usize] as usize..end[table as usize] as usize;
        let own = |table: Table, row: u32| self.own(session, table, row);
        let range = |table: Table, rows: &Range<u32>| own(table, rows.start)..own(table, rows.end);
        let words = |rows: &Range<u32>| self.words + rows.start..self.words + rows.end;
        out.sessions.push(from.sessions[session as usize].clone());
        out.chains.extend(from.chains[rows(Table::Chains)].iter().map(|row| Chain {
            session: number,
            requests: range(Table::Requests, &row.requests),
            segments: range(Table::Segments, &row.segments),
            ..row.clone()
        }));
        out.segments.extend(from.segments[rows(Table::Segments)].iter().map(|row| Segment {
            chain: own(Table::Chains, row.chain),
            requests: range(Table::Requests, &row.requests),
            after: self.any(Table::Requests, row.after),
            ..*row
        }));
        out.requests.extend(from.requests[rows(Table::Requests)].iter().map(|row| Request {
            chain: own(Table::Chains, row.chain),
            segment: own(Table::Segments, row.segment),
            inputs: range(Table::Blocks, &row.inputs),
            outputs: range(Table::Blocks, &row.outputs),
            ..*row
        }));
        let blocks = from.blocks[rows(Table::Blocks)].iter();
        out.blocks.extend(blocks.map(|row| Block { call: self.any(Table::Calls, row.call), ..*row }));
        out.calls.extend(from.calls[rows(Table::Calls)].iter().map(|row| ToolCall {
            asked: own(Table::Blocks, row.asked),
            answered: self.any(Table::Blocks, row.answered),
            ..*row
        }));
        out.boundaries.extend(from.boundaries[rows(Table::Boundaries)].iter().map(|row| Boundary {
            chain: own(Table::Chains, row.chain),
            request: own(Table::Requests, row.request),
            summary: self.any(Table::Blocks, row.summary),
            ..*row
        }));
        out.clearings.extend(from.clearings[rows(Table::Clearings)].iter().map(|row| Clearing {
            chain: own(Table::Chains, row.chain),
            request: own(Table::Requests, row.request),
            ..row.clone()
        }));
        out.references.extend(from.references[rows(Table::References)].iter().map(|row| Reference {
            request: own(Table::Requests, row.request),
            call: self.any(Table::Calls, row.call),
            sources: range(Table::Sources, &row.sources),
            ..*row
        }));
        let sources = from.sources[rows(Table::Sources)].iter();
        out.sources.extend(sources.map(|row| Occurrence { block: self.any(Table::Blocks, row.block), ..*row }));
        out.utterances.extend(from.utterances[rows(Table::Utterances)].iter().map(|row| Utterance {
            block: own(Table::Blocks, row.block),
            terms: words(&row.terms),
            words: words(&row.words),
        }));
        let added = from.added[rows(Table::Added)].iter();
        out.added.extend(added.map(|row| Addition { with: own(Table::Requests, row.with), ..*row }));
    }

    /// Hands over what belongs to no session, and drops all of it.
    fn finish(&mut self, out: &mut Timeline) {
        let Timeline { mut stated_costs, mut unbilled, skipped, .. } = std::mem::take(&mut self.from);
        out.stated_costs.append(&mut stated_costs);
        out.unbilled.append(&mut unbilled);
        skipped.iter().for_each(|(reason, count)| count_under(&mut out.skipped, reason, *count));
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
