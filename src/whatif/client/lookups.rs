//! What a limit on results keeps back and a later step names: nothing else in the context says it, so the model has to look
//! it up where the client stored the rest, and has it in its context from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::logs::timeline::requests::{NONE, Reference, ReferenceKind, Timeline};
use crate::whatif::client::capped::ResultLimit;
use crate::whatif::sim::breakage::rows::{Break, BreakClass};
use crate::whatif::sim::breakage::shown::ShownBlocks;

/// The rest of a result, looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookUp {
    /// Index of the first request whose answer needs it.
    pub request: u32,
    /// Index of the result.
    pub block: u32,
    /// Tokens that had been kept back.
    pub tokens: u32,
}

impl LookUp {
    /// The later requests of the chain whose context in the log has the result, segment by segment.
    fn carried(self, timeline: &Timeline) -> impl Iterator<Item = Range<u32>> {
        let own = timeline.request(self.request).segment;
        let chain = timeline.segments[own as usize].chain;
        let later = (own..).zip(&timeline.segments[own as usize..]).take_while(move |(_, later)| later.chain == chain);
        // The contexts of a segment only grow.
        let has_result = move |requests: &Range<u32>| {
            !requests.is_empty() && ShownBlocks::to(timeline, requests.start).contains(self.block)
        };
        let having = later.filter(move |(index, later)| *index == own || has_result(&later.requests));
        having.map(move |(_, later)| later.requests.start.max(self.request + 1)..later.requests.end)
    }
}

/// Tokens that later requests have to read because they had been looked up, by request.
pub fn carried(timeline: &Timeline, looked_up: &[LookUp]) -> Vec<(u32, u64)> {
    let mut steps: BTreeMap<u32, i64> = BTreeMap::new();
    for one in looked_up {
        for requests in one.carried(timeline).filter(|requests| !requests.is_empty()) {
            *steps.entry(requests.start).or_default() += i64::from(one.tokens);
            *steps.entry(requests.end).or_default() -= i64::from(one.tokens);
        }
    }
    let mut carried = Vec::new();
    let (mut tokens, mut from) = (0_i64, 0);
    for (at, step) in steps {
        if tokens > 0 {
            carried.extend((from..at).map(|request| (request, tokens.unsigned_abs())));
        }
        (tokens, from) = (tokens + step, at);
    }
    carried
}

/// The results that are looked up under some limits, each once; `tokens` are the sizes of [`Timeline::blocks`].
pub fn lookups(timeline: &Timeline, limits: &[ResultLimit], tokens: &[u32], breaks: &[Break]) -> Vec<LookUp> {
    if limits.is_empty() {
        return Vec::new();
    }
    // A file that is read again is paid for as a reading.
    let is_unpaid = |one: &&Break| {
        one.class == BreakClass::RefLost || one.class == BreakClass::RereadPredicted && one.reading == NONE
    };
    let unpaid: BTreeSet<(u32, u32)> = breaks.iter().filter(is_unpaid).map(|one| (one.request, one.call)).collect();
    let mut found: BTreeMap<u32, LookUp> = BTreeMap::new();
    for reference in timeline.references.iter().filter(|known| unpaid.contains(&(known.request, known.call))) {
        if let Some(lost) = kept_back(timeline, limits, tokens, reference) {
            let known = found.entry(lost.block).or_insert(lost);
            known.request = known.request.min(lost.request);
        }
    }
    found.into_values().collect()
}

/// The latest result that says what is referred to, if it stands in the context only where a limit keeps it back.
fn kept_back(timeline: &Timeline, limits: &[ResultLimit], tokens: &[u32], reference: &Reference) -> Option<LookUp> {
    if reference.kind == ReferenceKind::EditSource {
        return None;
    }
    let context = ShownBlocks::to(timeline, reference.request);
    let sources = &timeline.sources[reference.sources.start as usize..reference.sources.end as usize];
    let mut latest = None;
    for source in sources.iter().filter(|source| context.contains(source.block)) {
        let whole = tokens[source.block as usize];
        let (shown, kept) = limits.iter().find_map(|limit| limit.cut(timeline, source.block, whole))?;
        if source.end_chars <= kept {
            return None;
        }
        latest = Some(LookUp { request: reference.request, block: source.block, tokens: whole - shown });
    }
    latest
}
