//! Hooks: what their texts cost in contexts, and how long somebody waited for them.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::cost::findings::carried::{CarriedCosts, PartItem};
use crate::cost::findings::parts::Parts;
use crate::cost::findings::{BillEvidence, Waits};
use crate::logs::timeline::requests::{Added, Addition};

/// All of them, by the event at which they run.
pub fn parts(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let (timeline, sheet) = (&evidence.workload.timeline, &evidence.sheet.hooks);
    let per_token = evidence.workload.sizes.rules.chars_per_token.text;
    let mut items: BTreeMap<Sym, PartItem> = BTreeMap::new();
    let mut came = Vec::new();
    for addition in timeline.added.iter().filter(|addition| addition.what == Added::Hook) {
        let names = vec![timeline.names.text(addition.name).to_owned()];
        let item = items.entry(addition.name).or_insert_with(|| carried.item(names));
        came.push((item.item, addition.with, f64::from(addition.chars) / per_token));
        if timeline.request(addition.with).counts() {
            *item.counts.entry(evidence.key(addition.with)).or_default() += 1;
        }
    }
    carried.unlogged(&came);
    let mut parts = Parts::of([&sheet.id, &sheet.what, &sheet.advice], "content", &["hook"], items.into_values());
    parts.case.waits = waits(evidence);
    vec![parts]
}

/// How long hooks ran: those of one run side by side, so that the slowest counts. By session.
fn waits(evidence: &BillEvidence<'_>) -> Option<Waits> {
    let timeline = &evidence.workload.timeline;
    let mut runs: BTreeMap<(u32, Sym, Id), u64> = BTreeMap::new();
    let mut by_session: BTreeMap<u32, u64> = BTreeMap::new();
    let session =
        |addition: &Addition| timeline.chains[timeline.requests[addition.with as usize].chain as usize].session;
    let ran = timeline.added.iter().filter(|addition| addition.what == Added::Hook && addition.millis > 0);
    for addition in ran.filter(|addition| timeline.request(addition.with).counts()) {
        let millis = u64::from(addition.millis);
        if addition.run.is_some() {
            let slowest = runs.entry((session(addition), addition.name, addition.run)).or_default();
            *slowest = millis.max(*slowest);
        } else {
            *by_session.entry(session(addition)).or_default() += millis;
        }
    }
    runs.iter().for_each(|((session, ..), millis)| *by_session.entry(*session).or_default() += millis);
    (!by_session.is_empty()).then_some(Waits { by_session, seconds_a_day_min: evidence.sheet.hooks.seconds_a_day_min })
}
