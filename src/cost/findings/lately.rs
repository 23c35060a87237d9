//! Whether what is told of still happens: what no later session does is over, and what later sessions do is not mended by what was
//! set before them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::cost::findings::thresholds::{Lately, ThreadKind};
use crate::cost::findings::{BillEvidence, Case};
use crate::logs::trace::Millis;
use crate::report::numbers::thousands;
use crate::whatif::prompt_cache::params::CacheLifetime;

/// The last sessions that show a finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeenLast {
    /// When the last one of each project began.
    pub began: BTreeMap<String, Millis>,
    /// What it does, so that what is to be set did not act in it.
    pub does: String,
}

impl Lately {
    /// Whether something is over that sessions, in order, had or not: so many of the last ones are without it that they would seldom
    /// all be last by chance.
    pub fn is_over(&self, had: &[bool]) -> bool {
        let Some(last) = had.iter().rposition(|had| *had) else { return true };
        let (all, with) = (had.len(), had.iter().filter(|had| **had).count());
        let without = all - 1 - last;
        // In how many of all orders of the sessions none of the last ones has it.
        let chance: f64 = (0..without).map(|place| (all - with - place) as f64 / (all - place) as f64).product();
        without as u64 >= self.sessions_min && chance < self.chance_max
    }
}

/// Whether a case is over where it holds.
pub fn is_over(evidence: &BillEvidence<'_>, case: &Case, inside: &[(u32, Sym)]) -> bool {
    if case.is_judged_lately {
        return false;
    }
    let (timeline, lately) = (&evidence.workload.timeline, &evidence.thresholds.lately);
    let with: BTreeSet<u32> = counted(case, inside).collect();
    // What costs there came in elsewhere.
    if with.is_empty() {
        return false;
    }
    let project = |session: u32| timeline.sessions[session as usize].project;
    let projects: BTreeSet<Id> = with.iter().map(|session| project(*session)).collect();
    let mut requests: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, request) in timeline.counted() {
        *requests.entry(timeline.session_of_chain(request.chain)).or_default() += 1;
    }
    let mut sizes: Vec<u64> = with.iter().filter_map(|session| requests.get(session).copied()).collect();
    sizes.sort_unstable();
    // A session that is shorter than those that have it says little.
    let least = sizes.get(sizes.len() / 2).map_or(0.0, |middle| lately.size_share_min * *middle as f64);
    let is_meant = |(session, size): &(&u32, &u64)| {
        projects.contains(&project(**session)) && (with.contains(*session) || **size as f64 >= least)
    };
    let mut sessions: Vec<u32> = requests.iter().filter(is_meant).map(|(session, _)| *session).collect();
    let order =
        |session: &u32| (timeline.sessions[*session as usize].ts_first, timeline.sessions[*session as usize].id);
    sessions.sort_by_key(order);
    let is_over = |sessions: &[u32]| {
        lately.is_over(&sessions.iter().map(|session| with.contains(session)).collect::<Vec<bool>>())
    };
    // What goes on in one project is not over because another one was worked on last. Few sessions, or once, say nothing.
    let goes_on = |of: &Id| {
        let own: Vec<u32> = sessions.iter().copied().filter(|session| project(*session) == *of).collect();
        let had = own.iter().filter(|session| with.contains(session)).count();
        own.len() as u64 >= lately.sessions_min && had > 1 && !is_over(&own)
    };
    is_over(&sessions) && !projects.iter().any(goes_on)
}

/// Sessions in which a case was counted.
fn counted(case: &Case, inside: &[(u32, Sym)]) -> impl Iterator<Item = u32> {
    let count = |key: &&(u32, Sym)| case.counts.get(*key).is_some_and(|count| *count > 0);
    inside.iter().filter(count).map(|(session, _)| *session)
}

/// The last sessions that show that what a finding would have set does not act; none if none does.
pub fn seen_last(evidence: &BillEvidence<'_>, case: &Case, inside: &[(u32, Sym)]) -> Option<SeenLast> {
    let thresholds = evidence.thresholds;
    let lifetime = thresholds.lifetime.iter().find(|one| one.id == case.id).map(|one| (one.of, one.value));
    let spared = || Some((case.spared_of?, CacheLifetime::Hour)).filter(|_| !case.spared_by.is_empty());
    let (sessions, does) = if let Some((of, wanted)) = lifetime.or_else(spared) {
        let does = match wanted {
            CacheLifetime::Hour => "writes for 5 minutes",
            CacheLifetime::FiveMinutes => "writes for an hour",
        };
        (writing_otherwise(evidence, (of, wanted), inside), does.to_owned())
    } else if case.id == thresholds.window.id {
        let size = evidence
            .study
            .trials
            .iter()
            .find(|trial| evidence.paying.contains(&trial.setting) && trial.compacts_at.is_some());
        let size = size.and_then(|trial| trial.compacts_at)?;
        (going_on_above(evidence, size, inside), format!("goes on above {} tokens", thousands(size)))
    } else {
        (counted(case, inside).collect(), "goes on as before".to_owned())
    };
    let mut began: BTreeMap<String, Millis> = BTreeMap::new();
    for session in sessions.iter().map(|&session| &evidence.workload.timeline.sessions[session as usize]) {
        let last = began.entry(session.project.to_string()).or_insert(session.ts_first);
        *last = session.ts_first.max(*last);
    }
    Some(SeenLast { began, does })
}

/// Sessions of which some threads write most of what they write to the cache for another lifetime.
fn writing_otherwise(
    evidence: &BillEvidence<'_>,
    (of, wanted): (ThreadKind, CacheLifetime),
    inside: &[(u32, Sym)],
) -> Vec<u32> {
    let timeline = &evidence.workload.timeline;
    let inside: BTreeSet<&(u32, Sym)> = inside.iter().collect();
    let mut written: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (index, request) in timeline.counted() {
        let (key, usage) = (evidence.key(index), request.usage());
        if ThreadKind::of(timeline.chain(request.chain).place) == of && inside.contains(&key) {
            let sum = written.entry(key.0).or_default();
            *sum = (sum.0 + usage.cache_creation_5m, sum.1 + usage.cache_creation_1h);
        }
    }
    let is_otherwise = |(short, long): (u64, u64)| match wanted {
        CacheLifetime::Hour => short > long,
        CacheLifetime::FiveMinutes => long > short,
    };
    written.into_iter().filter(|(_, written)| is_otherwise(*written)).map(|(session, _)| session).collect()
}

/// Sessions in which a context of such a size was not compacted: the request after it has as much.
fn going_on_above(evidence: &BillEvidence<'_>, size: u64, inside: &[(u32, Sym)]) -> Vec<u32> {
    let timeline = &evidence.workload.timeline;
    let inside: BTreeSet<&(u32, Sym)> = inside.iter().collect();
    let goes_on = |requests: std::ops::Range<u32>| {
        let large = |index: u32| timeline.request(index).context() >= size && inside.contains(&evidence.key(index));
        requests
            .clone()
            .zip(requests.skip(1))
            .filter(move |(one, next)| large(*one) && large(*next))
            .map(|(one, _)| one)
    };
    let counts = |index: &u32| timeline.request(*index).counts();
    let found = timeline.segments.iter().flat_map(|segment| goes_on(segment.requests.clone())).filter(counts);
    found.map(|index| evidence.key(index).0).collect()
}
