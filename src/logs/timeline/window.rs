//! A part of a timeline: the requests of a window of time, with everything renumbered that refers to them.

use std::ops::Range;

use crate::base::id::{Id, IdSet};
use crate::logs::timeline::requests::{
    Addition, Block, Boundary, Chain, Clearing, Marks, NO_USAGE, NONE, Occurrence, Reference, Request, Segment,
    StatedCost, Timeline, ToolCall,
};
use crate::logs::trace::{Millis, NO_TIME, is_within};

/// Keeps the requests that began within the window, what belongs to them, and what their chains were sent before: marked as
/// what counts nowhere.
pub(crate) fn select(from: Timeline, window: &Range<Millis>) -> Timeline {
    let kept = Kept::of(&from, window);
    let mut out = Timeline { stated_costs: kept.stated_costs(&from), ..Timeline::default() };
    out.sessions = kept.sessions.pick(from.sessions).collect();
    // Maps over what is kept: the rows stay where they are in memory.
    let chains = kept.chains.pick(from.chains).map(|chain| Chain {
        session: kept.sessions.at(chain.session),
        segments: kept.segments.range(&chain.segments),
        // A boundary behind the last request stands at the end of the chain.
        requests: kept.requests.range(&chain.requests),
        ..chain
    });
    out.chains = chains.collect();
    let segments = kept.segments.pick(from.segments).map(|segment| Segment {
        chain: kept.chains.at(segment.chain),
        requests: kept.requests.range(&segment.requests),
        after: kept.requests.kept_or_none(segment.after),
        ..segment
    });
    out.segments = segments.collect();
    let requests = kept.requests.pick(from.requests).map(|request| Request {
        chain: kept.chains.at(request.chain),
        segment: kept.segments.at(request.segment),
        inputs: kept.blocks.range(&request.inputs),
        outputs: kept.blocks.range(&request.outputs),
        marks: if is_within(window, request.start) { request.marks } else { request.marks.and(Marks::UNCOUNTED) },
        ..request
    });
    out.requests = requests.collect();
    let uncounted = out.requests.iter().filter(|request| !request.counts());
    out.uncounted = uncounted.map(|request| request.inputs.start..request.outputs.end).collect();
    let blocks = kept.blocks.pick(from.blocks);
    out.blocks = blocks.map(|block| Block { call: kept.calls.kept_or_none(block.call), ..block }).collect();
    let calls = kept.calls.pick(from.calls).map(|call| ToolCall {
        asked: kept.blocks.at(call.asked),
        answered: kept.blocks.kept_or_none(call.answered),
        ..call
    });
    out.calls = calls.collect();
    let boundaries = from.boundaries.into_iter().filter(|row| kept.holds(row, window));
    let boundaries = boundaries.map(|boundary| Boundary {
        chain: kept.chains.at(boundary.chain),
        request: kept.requests.at(boundary.request),
        summary: kept.blocks.kept_or_none(boundary.summary),
        ..boundary
    });
    out.boundaries = boundaries.collect();
    let clearings =
        from.clearings.into_iter().filter(|row| kept.chains.keeps(row.chain) && kept.requests.has_beside(row.request));
    let clearings = clearings.map(|clearing| Clearing {
        chain: kept.chains.at(clearing.chain),
        request: kept.requests.at(clearing.request),
        ..clearing
    });
    out.clearings = clearings.collect();
    let added = from.added.into_iter().filter(|row| kept.requests.keeps(row.with));
    out.added = added.map(|row| Addition { with: kept.requests.at(row.with), ..row }).collect();
    kept.references(from.references, &from.sources, &mut out);
    out.words = from.words.without_rows();
    for mut utterance in from.utterances.into_iter().filter(|row| kept.blocks.keeps(row.block)) {
        utterance.terms = out.words.take(&from.words, &utterance.terms);
        utterance.words = out.words.take(&from.words, &utterance.words);
        utterance.block = kept.blocks.at(utterance.block);
        out.utterances.push(utterance);
    }
    out.unbilled = from.unbilled.into_iter().filter(|&at| is_within(window, at)).collect();
    out.skipped = from.skipped;
    out.skipped.remove(NO_USAGE);
    if !out.unbilled.is_empty() {
        out.skipped.insert(NO_USAGE.to_owned(), out.unbilled.len() as u64);
    }
    Timeline { names: from.names, ..out }
}

/// Where the rows go that are kept.
struct Kept {
    /// Of the requests, those that count.
    counted: Places,
    requests: Places,
    blocks: Places,
    calls: Places,
    segments: Places,
    chains: Places,
    sessions: Places,
}

impl Kept {
    fn of(from: &Timeline, window: &Range<Millis>) -> Self {
        let counted = Places::of(from.requests.iter().map(|request| is_within(window, request.start)));
        let (requests, blocks) = sent_before(from, &counted);
        let requests = Places::of(requests.into_iter());
        let blocks = Places::of(blocks.into_iter());
        let calls = Places::of(from.calls.iter().map(|call| blocks.keeps(call.asked)));
        let segments = Places::of(from.segments.iter().map(|segment| requests.any(&segment.requests)));
        let chains = Places::of(from.chains.iter().map(|chain| requests.any(&chain.requests)));
        let mut sessions = vec![false; from.sessions.len()];
        for chain in from.chains.iter().filter(|chain| requests.any(&chain.requests)) {
            sessions[chain.session as usize] = true;
        }
        let sessions = Places::of(sessions.into_iter());
        Self { counted, requests, blocks, calls, segments, chains, sessions }
    }

    /// A running total cannot be cut in time: it stands where all of its session does.
    fn stated_costs(&self, from: &Timeline) -> Vec<StatedCost> {
        let mut is_whole = vec![true; from.sessions.len()];
        for chain in &from.chains {
            is_whole[chain.session as usize] &= self.counted.all(&chain.requests);
        }
        let sessions = from.sessions.iter().zip(is_whole).filter(|(_, is_whole)| *is_whole);
        let whole: IdSet<Id> = sessions.map(|(session, _)| session.id).collect();
        from.stated_costs.iter().copied().filter(|row| whole.contains(&row.session)).collect()
    }

    /// Whether a compaction is one of the window: by its own time, if it has one.
    fn holds(&self, boundary: &Boundary, window: &Range<Millis>) -> bool {
        let is_counted = match boundary.ts {
            NO_TIME => self.counted.has_beside(boundary.request),
            ts => is_within(window, ts),
        };
        is_counted && self.chains.keeps(boundary.chain)
    }

    /// References with those of their sources that are kept; one that has lost all of them goes.
    fn references(&self, references: Vec<Reference>, sources: &[Occurrence], out: &mut Timeline) {
        for mut reference in references.into_iter().filter(|row| self.requests.keeps(row.request)) {
            let sources = &sources[reference.sources.start as usize..reference.sources.end as usize];
            let start = out.sources.len() as u32;
            let kept = sources.iter().filter(|source| self.blocks.keeps(source.block));
            out.sources.extend(kept.map(|source| Occurrence { block: self.blocks.at(source.block), ..*source }));
            reference.sources = start..out.sources.len() as u32;
            if reference.sources.is_empty() && !sources.is_empty() {
                continue;
            }
            reference.request = self.requests.at(reference.request);
            reference.call = self.calls.kept_or_none(reference.call);
            out.references.push(reference);
        }
    }
}

/// The requests, and their blocks, up to the last one of each chain that counts: what a chain was sent before stood in its
/// context, or in the cache. So did what a fork was forked off.
fn sent_before(from: &Timeline, counted: &Places) -> (Vec<bool>, Vec<bool>) {
    let mut requests = vec![false; from.requests.len()];
    let mut blocks = vec![false; from.blocks.len()];
    let last_of = |chain: &Chain| chain.requests.clone().rev().find(|&request| counted.keeps(request));
    let mut ends: Vec<u32> = from.chains.iter().filter_map(last_of).collect();
    while let Some(end) = ends.pop() {
        let chain = from.chain(from.request(end).chain);
        for request in (chain.requests.start..=end).rev() {
            if requests[request as usize] {
                break;
            }
            let Request { inputs, outputs, .. } = from.request(request);
            requests[request as usize] = true;
            blocks[inputs.start as usize..outputs.end as usize].fill(true);
        }
        let segments = &from.segments[chain.segments.start as usize..chain.segments.end as usize];
        let sent = segments.iter().take_while(|segment| segment.requests.start <= end);
        let bases = sent.map(|segment| segment.after).filter(|&after| after != NONE && !requests[after as usize]);
        ends.extend(bases);
    }
    (requests, blocks)
}

/// Where each row of a list goes when only some are kept.
struct Places {
    /// By row how many kept ones come before it; the last entry is their number.
    before: Vec<u32>,
}

impl Places {
    fn of(keep: impl Iterator<Item = bool>) -> Self {
        let mut before = vec![0];
        let mut count = 0;
        for keep in keep {
            count += u32::from(keep);
            before.push(count);
        }
        Self { before }
    }

    fn at(&self, row: u32) -> u32 {
        self.before[row as usize]
    }

    fn keeps(&self, row: u32) -> bool {
        self.before.get(row as usize + 1).is_some_and(|&behind| behind > self.before[row as usize])
    }

    /// Whether a row or the one before it is kept.
    fn has_beside(&self, row: u32) -> bool {
        self.keeps(row) || row.checked_sub(1).is_some_and(|before| self.keeps(before))
    }

    fn any(&self, rows: &Range<u32>) -> bool {
        self.at(rows.end) > self.at(rows.start)
    }

    fn all(&self, rows: &Range<u32>) -> bool {
        self.at(rows.end) - self.at(rows.start) == rows.end - rows.start
    }

    fn range(&self, rows: &Range<u32>) -> Range<u32> {
        self.at(rows.start)..self.at(rows.end)
    }

    fn kept_or_none(&self, row: u32) -> u32 {
        if row != NONE && self.keeps(row) { self.at(row) } else { NONE }
    }

    fn pick<T>(&self, rows: Vec<T>) -> impl Iterator<Item = T> {
        rows.into_iter().enumerate().filter(|(row, _)| self.keeps(*row as u32)).map(|(_, row)| row)
    }
}
