//! How long a chain lay idle before each of its requests, from clocks that cannot always be trusted.
//!
//! Clocks are set back, and a session that is taken up again may be written anew with one time for all that was said
//! before. So a time counts only if it is not that of several answers, and the time since the request before is counted
//! from the newest earlier time that is not later than the request.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::logs::timeline::requests::{Chain, Timeline};
use crate::logs::trace::{Millis, NO_TIME};

/// By request: milliseconds between the end of the one before in its chain and its start; 0 where that is not known.
pub fn idle(timeline: &Timeline) -> Vec<Millis> {
    let mut idle = vec![0; timeline.requests.len()];
    let found: Vec<Vec<Millis>> = timeline.chains.par_iter().map(|chain| of_chain(timeline, chain)).collect();
    for (chain, found) in timeline.chains.iter().zip(found) {
        idle[chain.requests.start as usize..chain.requests.end as usize].copy_from_slice(&found);
    }
    idle
}

fn of_chain(timeline: &Timeline, chain: &Chain) -> Vec<Millis> {
    let mut idle = vec![0; chain.requests.len()];
    let mut ends: BTreeMap<Millis, u32> = BTreeMap::new();
    for index in chain.requests.clone() {
        *ends.entry(timeline.requests[index as usize].end).or_default() += 1;
    }
    let trusted = |time: Millis| time != NO_TIME && ends.get(&time).is_none_or(|&answers| answers == 1);
    // In order, almost always by growing at the end.
    let mut earlier: Vec<Millis> = Vec::new();
    for (place, index) in chain.requests.clone().enumerate() {
        let request = &timeline.requests[index as usize];
        let after = earlier.partition_point(|&time| time <= request.start);
        if trusted(request.start) && after > 0 {
            idle[place] = request.start.saturating_sub(earlier[after - 1]);
        }
        for time in [request.start, request.end].into_iter().filter(|&time| trusted(time)) {
            let place = earlier.partition_point(|&held| held <= time);
            earlier.insert(place, time);
        }
    }
    idle
}
