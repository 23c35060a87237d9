//! What the published accounting would have said about the same logs: shown beside the truth, never used.
//!
//! The published pipeline keeps one cache per session whoever speaks, fills it even from failed calls that it should
//! not have seen, counts text that its encoders delete as saved, and divides what encoders save by all tokens.

use crate::content::hints::{self, Shown, Wording};
use crate::model::savings::{PublishedClaim, share};
use crate::replay::cache::{Cache, Entry};
use crate::replay::scenario::Scenario;
use crate::replay::tape::{Outcome, Tape, ToolKind};

/// Replays the published accounting.
pub fn published_claim(tape: &Tape, scenario: &Scenario) -> PublishedClaim {
    let mut cache = Cache::new(scenario.lru_size);
    let (mut session, mut partition) = (None, 0);
    let (mut events, mut hits, mut baseline, mut by_hints, mut by_encoders, mut missed) = (0, 0, 0, 0, 0, 0);
    for (index, response) in (0..).zip(&tape.responses) {
        if session != Some(response.session) || partition != response.partition {
            cache.clear();
            (session, partition) = (Some(response.session), response.partition);
        }
        let endpoint = &tape.endpoints[response.endpoint as usize];
        if endpoint.kind == ToolKind::FileMutate && response.path.is_some() {
            cache.drop_if(|entry| tape.is_read_of(entry.response, response.path));
        }
        if !matches!(response.outcome, Outcome::Answer | Outcome::Mixed) {
            continue;
        }
        let facts = tape.facts_of(response);
        let counting = scenario.sessions[response.session as usize].counting;
        let tokens = counting.tokens(&facts.raw);
        events += 1;
        baseline += tokens;
        if facts.raw.bytes < scenario.endpoints[response.endpoint as usize].body_bytes_min {
            missed += tokens;
            continue;
        }
        if let Some(entry) = cache.touch(response.body) {
            let handle = tape.responses[entry.response as usize].handle.size();
            let hint = hints::reference_size(Shown::AsIs, Wording::Standard).plus(&handle);
            hits += 1;
            by_hints += tokens.saturating_sub(counting.tokens(&hint));
            continue;
        }
        missed += tokens;
        cache.insert(Entry { body: response.body, response: index, shown: Shown::AsIs });
        by_encoders += facts.published.map_or(0, |size| tokens.saturating_sub(counting.tokens(&size)));
    }
    let (p, e) = (share(hits, events), share(by_encoders, missed));
    PublishedClaim {
        hits: p,
        dedup: share(by_hints, baseline),
        encoder: share(by_encoders, baseline),
        total: share(by_hints + by_encoders, baseline),
        formula: p.zip(e).map(|(p, e)| p + (1.0 - p) * e),
    }
}
