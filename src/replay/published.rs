//! What the published accounting would have said about the same logs: shown beside the truth, never used.
//!
//! The published pipeline keeps one cache per session, in which the results of all threads meet in the order of time; a
//! compaction of any reader empties it. It counts text that its encoders delete as saved, and divides what encoders
//! save by all tokens. Results flagged as errors pass it by: they are no events, and not cached.
//!
//! And what no cache could do better: exact references with hindsight.
//!
//! Both bounds keep the rules of a hint (same context and partition, only what was shown and not cleared since, real
//! costs, only results in reach). One lifts what a live cache cannot know, the other its size and what it is told to
//! leave alone as well.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use crate::base::id::IdMap;
use crate::facts::hints::{self, ShownAs, Wording};
use crate::logs::trace::{Millis, NO_TIME};
use crate::replay::layers::exact_dedup::{DedupCache, ShownBody, wording};
use crate::replay::savings::{Bounds, PublishedClaim, share};
use crate::replay::scenario::Scenario;
use crate::replay::tape::{Tape, TapeEntry};

/// Replays the published accounting; `answered` tells when each response came.
pub fn published_claim(tape: &Tape, scenario: &Scenario, answered: &[Millis]) -> PublishedClaim {
    let mut sums = PublishedSums::default();
    let mut host = Host { tape, scenario, cache: DedupCache::new(scenario.lru_size) };
    let (mut session, mut partitions) = (None, IdMap::default());
    for index in in_order_of_time(tape, answered) {
        let response = &tape.responses[index as usize];
        if session.replace(response.session) != Some(response.session) {
            host.cache.clear();
            partitions.clear();
        }
        let partition = partitions.insert(response.chain, response.partition);
        if partition.is_some_and(|partition| partition != response.partition) {
            host.cache.clear();
        }
        host.meet(index, &mut sums);
    }
    let (p, e) = (share(sums.hits, sums.events), share(sums.by_encoders, sums.missed));
    PublishedClaim {
        hits: p,
        dedup: share(sums.by_hints, sums.baseline),
        encoder: share(sums.by_encoders, sums.baseline),
        total: share(sums.by_hints + sums.by_encoders, sums.baseline),
        formula: p.zip(e).map(|(p, e)| p + (1.0 - p) * e),
    }
}

/// The responses session by session, in the order in which they came. One without a time came with the one before it.
fn in_order_of_time(tape: &Tape, answered: &[Millis]) -> Vec<u32> {
    let mut came = Vec::with_capacity(tape.responses.len());
    let mut last = (None, NO_TIME);
    for (index, (response, &at)) in (0_u32..).zip(tape.responses.iter().zip(answered)) {
        let before = if last.0 == Some(response.chain) { last.1 } else { NO_TIME };
        let at = if at == NO_TIME { before } else { at };
        last = (Some(response.chain), at);
        came.push((response.session, at, index));
    }
    came.sort_unstable();
    came.into_iter().map(|(_, _, index)| index).collect()
}

#[derive(Default)]
struct PublishedSums {
    events: u64,
    hits: u64,
    baseline: u64,
    missed: u64,
    by_hints: u64,
    by_encoders: u64,
}

/// The published pipeline in front of one session.
struct Host<'t> {
    tape: &'t Tape,
    scenario: &'t Scenario,
    cache: DedupCache,
}

impl Host<'_> {
    fn meet(&mut self, index: u32, sums: &mut PublishedSums) {
        let response = &self.tape.responses[index as usize];
        let policy = &self.scenario.endpoints[response.endpoint as usize];
        // Before the call is made, so that it makes no difference how it ends.
        if policy.mutates_files && response.path.is_some() && response.ran {
            self.cache.drop_if(|entry| self.tape.is_read_of(entry.response, response.path));
        }
        if !matches!(response.outcome, TapeEntry::Answer | TapeEntry::Mixed) {
            return;
        }
        let facts = self.tape.facts_of(response);
        let counting = self.scenario.session(response).counting;
        let tokens = counting.tokens(&facts.raw);
        sums.events += 1;
        sums.baseline += tokens;
        if facts.raw.bytes < policy.body_bytes_min.max(1) {
            sums.missed += tokens;
            return;
        }
        if let Some(entry) = if policy.dedup { self.cache.touch(response.body) } else { None } {
            let kind = self.tape.endpoints[response.endpoint as usize].kind;
            let frame = hints::reference_size(ShownAs::AsIs, wording(self.scenario.verbosity, kind));
            let hint = frame.plus(&self.tape.responses[entry.response as usize].handle.size());
            sums.hits += 1;
            sums.by_hints += tokens.saturating_sub(counting.tokens(&hint));
            return;
        }
        sums.missed += tokens;
        sums.by_encoders += facts.forms.published.map_or(0, |size| tokens.saturating_sub(counting.tokens(&size)));
        // Endpoints without L0 fill the cache all the same.
        self.cache.insert(ShownBody { body: response.body, response: index, shown: ShownAs::AsIs });
        self.scenario.drop_invalidated(self.tape, response, &mut self.cache);
    }
}

/// Computes the bounds over a tape; `scenario` gives the size of the cache and the way to count.
pub fn bounds(tape: &Tape, scenario: &Scenario) -> Bounds {
    let mut bounds = Bounds::default();
    let cleared: IdMap<u32, u32> = tape.evictions.iter().map(|&(before, evicted)| (evicted, before)).collect();
    let mut start = 0;
    for context in tape.responses.chunk_by(|a, b| a.context() == b.context()) {
        one_context(tape, scenario, start..start + context.len(), &cleared, &mut bounds);
        start += context.len();
    }
    bounds
}

fn one_context(
    tape: &Tape,
    scenario: &Scenario,
    range: std::ops::Range<usize>,
    cleared: &IdMap<u32, u32>,
    bounds: &mut Bounds,
) {
    let answers: Vec<AnsweredBody> = range
        .filter(|&index| tape.responses[index].outcome != TapeEntry::Unstudied)
        .filter_map(|index| {
            let response = &tape.responses[index];
            let text = response.outcome != TapeEntry::Silent;
            if text {
                let counting = scenario.session(response).counting;
                bounds.baseline += counting.tokens(&tape.facts_of(response).raw);
            }
            (response.outcome == TapeEntry::Answer && scenario.meets(response)).then_some((index, response.body))
        })
        .collect();
    let bodies: BTreeSet<u32> = answers.iter().map(|&(_, body)| body).collect();
    bounds.repeats += (answers.len() - bodies.len()) as u64;
    bounds.unlimited += savings(tape, scenario, &answers, cleared).iter().sum::<u64>();
    let taken: Vec<AnsweredBody> = answers.into_iter().filter(|&(index, _)| is_cached(tape, scenario, index)).collect();
    let mut saved = savings(tape, scenario, &taken, cleared);
    let hits = hits_max(&taken, &saved, scenario.lru_size);
    // Belady gives the most hits, not those that save most: as many of the largest are more than any cache gets.
    saved.sort_unstable_by_key(|&tokens| Reverse(tokens));
    bounds.clairvoyant += saved.iter().take(hits).sum::<u64>();
}

/// Index of an answer, and its body.
type AnsweredBody = (usize, u32);

/// Whether L0 keeps an answer.
fn is_cached(tape: &Tape, scenario: &Scenario, index: usize) -> bool {
    let response = &tape.responses[index];
    let policy = &scenario.endpoints[response.endpoint as usize];
    policy.dedup && tape.facts_of(response).raw.bytes >= policy.body_bytes_min.max(1)
}

/// What each answer saves as a reference to the first showing of its body that is still there.
fn savings(tape: &Tape, scenario: &Scenario, answers: &[AnsweredBody], cleared: &IdMap<u32, u32>) -> Vec<u64> {
    let mut showings: IdMap<u32, VecDeque<usize>> = IdMap::default();
    let of_answer = |&(index, body): &AnsweredBody| {
        let shown = showings.entry(body).or_default();
        let is_gone = |&shown: &usize| cleared.get(&(shown as u32)).is_some_and(|&before| before <= index as u32);
        while shown.front().is_some_and(is_gone) {
            shown.pop_front();
        }
        let saved = shown.front().map_or(0, |&shown| saved(tape, scenario, index, shown));
        shown.push_back(index);
        saved
    };
    answers.iter().map(of_answer).collect()
}

/// The most references that a cache of so many entries can give, of those that save something: what is needed last makes
/// room (Belady 1966).
fn hits_max(answers: &[AnsweredBody], saved: &[u64], entries: usize) -> usize {
    // The next use of each answer's body, by place in `answers`.
    let mut next = vec![None; answers.len()];
    let mut last: IdMap<u32, usize> = IdMap::default();
    for (place, &(_, body)) in answers.iter().enumerate() {
        if let Some(earlier) = last.insert(body, place).filter(|_| saved[place] > 0) {
            next[earlier] = Some(place);
        }
    }
    let (mut cached, mut hits) = (BTreeSet::new(), 0);
    for (place, next) in next.into_iter().enumerate() {
        hits += usize::from(cached.remove(&place));
        cached.extend(next);
        if cached.len() > entries {
            cached.pop_last();
        }
    }
    hits
}

/// What a reference from one answer to an earlier one saves.
fn saved(tape: &Tape, scenario: &Scenario, index: usize, shown: usize) -> u64 {
    let response = &tape.responses[index];
    if !scenario.reaches(response) {
        return 0;
    }
    let counting = scenario.session(response).counting;
    let frame = hints::reference_size(ShownAs::AsIs, Wording::Terse);
    let hint = counting.tokens(&frame.plus(&tape.responses[shown].handle.size()));
    counting.tokens(&tape.facts_of(response).raw).saturating_sub(hint)
}
