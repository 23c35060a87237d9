//! What no cache could do better: exact references with hindsight.
//!
//! Both bounds keep the rules of a hint (same context and partition, only what was shown and not cleared since, real
//! costs, only answers in reach); they lift what a live cache is limited by.

use std::collections::BTreeSet;

use crate::base::id::IdMap;
use crate::facts::hints;
use crate::facts::hints::{ShownAs, Wording};
use crate::replay::reach::WithinReach;
use crate::replay::savings::Bounds;
use crate::replay::scenario::Scenario;
use crate::replay::tape::{Tape, TapeEntry};

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
    let answers: Vec<(usize, u32)> = range
        .filter(|&index| tape.responses[index].outcome != TapeEntry::Unstudied)
        .filter_map(|index| {
            let response = &tape.responses[index];
            let text = response.outcome != TapeEntry::Silent;
            if text {
                let counting = scenario.session(response).counting;
                bounds.baseline += counting.tokens(&tape.facts_of(response).raw);
            }
            let known = scenario.endpoints[response.endpoint as usize].reached != WithinReach::Misses;
            (response.outcome == TapeEntry::Answer && known).then_some((index, response.body))
        })
        .collect();
    // The next use of each answer's body, by place in `answers`; behind the end if there is none.
    let mut next = vec![usize::MAX; answers.len()];
    let mut last: IdMap<u32, usize> = IdMap::default();
    for (place, &(_, body)) in answers.iter().enumerate() {
        if let Some(earlier) = last.insert(body, place) {
            next[earlier] = place;
        }
    }
    let mut first_shown: IdMap<u32, usize> = IdMap::default();
    // Cached bodies by their next use.
    let mut cached: BTreeSet<(usize, u32)> = BTreeSet::new();
    for (place, &(index, body)) in answers.iter().enumerate() {
        let known = first_shown.get(&body).copied();
        let alive = known.filter(|&shown| cleared.get(&(shown as u32)).is_none_or(|&before| before > index as u32));
        let saved = alive.map_or(0, |shown| saved(tape, scenario, index, shown));
        bounds.repeats += u64::from(known.is_some());
        bounds.unlimited += saved;
        if cached.remove(&(place, body)) {
            bounds.clairvoyant += saved;
        }
        if alive.is_none() {
            first_shown.insert(body, index);
        }
        if next[place] != usize::MAX {
            cached.insert((next[place], body));
            if cached.len() > scenario.lru_size {
                cached.pop_last();
            }
        }
    }
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
