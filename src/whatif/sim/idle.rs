//! How long a chain lay idle before each of its requests, from clocks that cannot always be trusted.
//!
//! Clocks are set back, and a session that is taken up again may be written anew with one time for all that was said
//! before. So a time counts only if it is not that of several answers, and the time since the request before is counted
//! from the newest earlier time that is not later than the request.

use std::collections::BTreeMap;

use crate::logs::timeline::requests::{Chain, Timeline};
use crate::logs::trace::{Millis, NO_TIME};

/// By request: milliseconds between the end of the one before in its chain and its start; 0 where that is not known.
pub fn idle(timeline: &Timeline) -> Vec<Millis> {
    let mut idle = vec![0; timeline.requests.len()];
    for chain in &timeline.chains {
        measure(timeline, chain, &mut idle);
    }
    idle
}

fn measure(timeline: &Timeline, chain: &Chain, idle: &mut [Millis]) {
    let mut ends: BTreeMap<Millis, u32> = BTreeMap::new();
    for index in chain.requests.clone() {
        *ends.entry(timeline.requests[index as usize].end).or_default() += 1;
    }
    let trusted = |time: Millis| time != NO_TIME && ends.get(&time).is_none_or(|&answers| answers == 1);
    // In order, almost always by growing at the end.
    let mut earlier: Vec<Millis> = Vec::new();
    for index in chain.requests.clone() {
        let request = &timeline.requests[index as usize];
        let after = earlier.partition_point(|&time| time <= request.start);
        if trusted(request.start) && after > 0 {
            idle[index as usize] = request.start.saturating_sub(earlier[after - 1]);
        }
        for time in [request.start, request.end].into_iter().filter(|&time| trusted(time)) {
            let place = earlier.partition_point(|&held| held <= time);
            earlier.insert(place, time);
        }
    }
}
