//! Which responses repeat what their context was shown before, and how long ago: from content hashes alone, so that it
//! does not matter what any cache did.

use crate::base::id::IdMap;
use crate::telemetry::log::RecordedEvent;

/// [`distances`] for a response that repeats nothing.
pub const NO_REPEAT: u32 = u32::MAX;

/// For each event of a session, in order, the LRU stack distance of its repeat: the number of distinct other bodies that the same
/// context and partition was shown since it was last shown this one (Mattson et al. 1970). [`NO_REPEAT`] for the first
/// showing, and where no content hash was recorded or images stand beside the text.
pub fn distances(session: &[RecordedEvent]) -> Vec<u32> {
    let context = |event: &RecordedEvent| (event.chain, event.partition);
    session.chunk_by(|a, b| context(a) == context(b)).flat_map(of_context).collect()
}

fn of_context(events: &[RecordedEvent]) -> Vec<u32> {
    let mut shown_at: IdMap<_, usize> = IdMap::with_capacity_and_hasher(events.len(), Default::default());
    // Marks the latest showing of each body.
    let mut latest = MarkCounts::new(events.len());
    let mut distances = Vec::with_capacity(events.len());
    for (place, event) in events.iter().enumerate() {
        if !event.is_comparable() {
            distances.push(NO_REPEAT);
            continue;
        }
        distances.push(match shown_at.insert(event.body, place) {
            None => NO_REPEAT,
            Some(before) => {
                latest.change(before, -1);
                (latest.before(place) - latest.before(before)) as u32
            }
        });
        latest.change(place, 1);
    }
    distances
}

/// Counts marks before a place, in logarithmic time (Fenwick 1994).
struct MarkCounts(Vec<i32>);

impl MarkCounts {
    fn new(places: usize) -> Self {
        Self(vec![0; places + 1])
    }

    fn change(&mut self, place: usize, by: i32) {
        let mut at = place + 1;
        while let Some(sum) = self.0.get_mut(at) {
            *sum += by;
            at += at & at.wrapping_neg();
        }
    }

    fn before(&self, place: usize) -> i32 {
        let mut at = place;
        let mut sum = 0;
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}
