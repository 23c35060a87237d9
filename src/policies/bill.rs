//! The bill of the log, and how far a simulated run is from it.

use crate::model::policy::cost::{Spent, Total};
use crate::model::policy::prompt_cache::{AgainstBill, Prediction};
use crate::model::timeline::{Marks, Request, Timeline};
use crate::policies::cache_knobs::Class;
use crate::policies::causes;
use crate::policies::drive::{Ground, Priced, Run};

/// How a request was billed (no output); `unknown` is the lifetime of writes whose usage does not say it.
pub fn spent(request: &Request, unknown: Class) -> Spent {
    let usage = &request.usage;
    let (mut write_5m, mut write_1h) = (usage.cache_creation_5m, usage.cache_creation_1h);
    let rest = usage.cache_creation.saturating_sub(write_5m + write_1h);
    match unknown {
        Class::FiveMinutes => write_5m += rest,
        Class::Hour => write_1h += rest,
    }
    Spent { read: usage.cache_read, write_5m, write_1h, uncached: usage.input, output: 0 }
}

/// The bill of all requests.
pub fn total(ground: &Ground<'_>) -> Total {
    let mut total = Total::default();
    for request in ground.timeline.requests.iter().filter(|request| request.context() > 0) {
        let spent = spent(request, ground.oracle.cache.class_unknown);
        total.add(1, spent, ground.tariff.cost(request.model, request.start, &spent));
    }
    total
}

/// What the same input would have been billed if nothing were cached.
pub fn total_uncached(ground: &Ground<'_>) -> Total {
    let mut total = Total::default();
    for request in ground.timeline.requests.iter().filter(|request| request.context() > 0) {
        let spent = Spent { uncached: request.context(), ..Spent::default() };
        total.add(1, spent, ground.tariff.cost(request.model, request.start, &spent));
    }
    total
}

/// Holds a run against the bill, over the requests that `counts` picks.
pub fn compare(ground: &Ground<'_>, run: &Run, counts: impl Fn(&Request) -> bool) -> AgainstBill {
    let mut found = AgainstBill::default();
    for (pair, priced) in paired(ground.timeline, run) {
        let (before, request) = pair;
        if !counts(request) {
            continue;
        }
        let billed = spent(request, ground.oracle.cache.class_unknown);
        found.requests += 1;
        found.read_billed += billed.read;
        found.read_simulated += priced.spent.read;
        found.read_error += billed.read.abs_diff(priced.spent.read);
        found.cost_billed += ground.tariff.cost(request.model, request.start, &billed);
        found.cost_simulated += priced.cost;
        let Some(before) = before else { continue };
        let exact = billed.read == priced.spent.read;
        if request.marks.has(Marks::HUMAN) {
            found.human_turns_exact.add(exact);
            let off = billed.read.abs_diff(priced.spent.read);
            found.human_turns_close.add(off * CLOSE <= request.context());
        } else if is_warm(ground, before, priced.request) {
            found.warm_tool_turns.add(exact);
            let late = before.usage.cache_creation > 0 && billed.read == before.usage.cache_read;
            found.late_writes += u64::from(!exact && late);
        }
    }
    found
}

/// A read is close if the context is at least so many times what it is off (2 %, policies.md 2.3).
const CLOSE: u64 = 50;

/// Whether nothing is known that could have broken the prefix.
fn is_warm(ground: &Ground<'_>, before: &Request, index: u32) -> bool {
    let request = &ground.timeline.requests[index as usize];
    let known = [Marks::COMPACTION, Marks::MICROCOMPACTION, Marks::MODEL_CHANGE];
    let alive = ground.priors[index as usize].idle <= Class::FiveMinutes.millis();
    alive && before.model == request.model && !known.iter().any(|&mark| request.marks.has(mark))
}

/// Requests of a run, each with the one before in its chain.
fn paired<'t>(
    timeline: &'t Timeline,
    run: &'t Run,
) -> impl Iterator<Item = ((Option<&'t Request>, &'t Request), &'t Priced)> {
    let mut before: Option<&Request> = None;
    run.requests.iter().map(move |priced| {
        let request = &timeline.requests[priced.request as usize];
        let last = before.replace(request).filter(|last| last.chain == request.chain);
        ((last, request), priced)
    })
}

/// Request by request.
pub fn predictions(ground: &Ground<'_>, run: &Run) -> Vec<Prediction> {
    let predict = |((before, request), priced): ((Option<&Request>, &Request), &Priced)| {
        let cause = before.and_then(|before| causes::of(ground, before, priced.request));
        Prediction {
            id: request.id,
            context: priced.spent.prompt(),
            shared: priced.shared,
            read: priced.spent.read,
            read_billed: request.usage.cache_read,
            write: priced.spent.write(),
            write_billed: request.usage.cache_creation,
            cause,
        }
    };
    paired(ground.timeline, run).map(predict).collect()
}
