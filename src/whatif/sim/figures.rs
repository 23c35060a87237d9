//! What a policy comes to against the simulated log: saved, paid for, broken; the same for every policy.
//!
//! Holds a policy's run against the run of the log itself, request by request and summed up every way.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::names::Sym;
use crate::base::sums::adds_up;
use crate::logs::timeline::requests::{Request, Timeline};
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulate::Run;

/// Tokens and cost of all requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Bill {
    /// Tokens by how they are billed.
    pub spent: Spent,
    /// What they cost.
    pub cost: Cost,
}

adds_up!(Bill: spent, cost);

/// Both sides of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Sides {
    /// Requests.
    pub requests: u64,
    /// Of these, requests without a price on one side or the other: their dollars count on neither.
    pub unpriced_requests: u64,
    /// The simulated log.
    pub baseline: Bill,
    /// The policy, its extra calls included.
    pub policy: Bill,
}

adds_up!(Sides: requests, unpriced_requests, baseline, policy);

impl Sides {
    /// Adds other requests.
    pub fn join(&mut self, other: &Self) {
        *self += other;
    }

    /// Cost of the policy over that of the log, less one ([`Cost::change_to`]); none without cost.
    pub fn change(&self) -> Option<f64> {
        self.baseline.cost.change_to(&self.policy.cost)
    }

    /// Tokens without a price, of the side that has more of them.
    pub fn unpriced_tokens(&self) -> u64 {
        self.policy.cost.unpriced_tokens.max(self.baseline.cost.unpriced_tokens)
    }

    /// The same in input-equivalent tokens.
    pub fn iet_change(&self) -> Option<f64> {
        self.baseline.cost.units_change_to(&self.policy.cost)
    }
}

impl Outcome {
    /// Models that have tokens without a price, with both sides of what they did.
    pub fn unpriced(&self) -> impl Iterator<Item = (&str, &Sides)> {
        let models = self.by.get("model").into_iter().flatten();
        models.map(|(model, sides)| (model.as_str(), sides)).filter(|(_, sides)| sides.unpriced_tokens() > 0)
    }
}

/// Extra calls of one cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ExtraCalls {
    /// How many.
    pub calls: u64,
    /// What they come to.
    pub bill: Bill,
}

/// How the change of cost is spread over sessions, in shares of the session's own cost.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Spread {
    /// Sessions with cost.
    pub sessions: u64,
    /// Sessions that would have cost more.
    pub worse: u64,
    /// 5th percentile.
    pub p5: f64,
    /// 25th.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// 75th.
    pub p75: f64,
    /// 95th.
    pub p95: f64,
    /// Smallest: the session that gains most.
    pub best: f64,
    /// Largest.
    pub worst: f64,
}

/// Everything that holds for any policy.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Outcome {
    /// All requests.
    pub total: Sides,
    /// Tokens that contexts had fewer of, over all requests; negative if they grew.
    pub tokens_removed: i128,
    /// Calls besides those of the log, by cause.
    pub extra: BTreeMap<&'static str, ExtraCalls>,
    /// By what it was: `model`, `ttl_class`, `version`, `project`, `session`.
    pub by: BTreeMap<&'static str, BTreeMap<String, Sides>>,
    /// By session (index into the timeline's) and model.
    #[serde(skip)]
    pub by_session: BTreeMap<(u32, Sym), Sides>,
    /// Over sessions.
    pub spread: Spread,
}

/// What a policy comes to.
pub fn outcome(timeline: &Timeline, baseline: &Run, policy: &Run) -> Outcome {
    let [baseline, policy] = Run::priced_alike([baseline, policy]);
    let mut cells = Cells::default();
    let mut out = Outcome::default();
    for priced in &baseline.requests {
        let cell = cells.of(timeline, priced.request);
        cell.requests += 1;
        cell.unpriced_requests += u64::from(priced.cost.unpriced_tokens > 0);
        cell.baseline += Bill { spent: priced.spent, cost: priced.cost };
    }
    for priced in &policy.requests {
        let bill = Bill { spent: priced.spent, cost: priced.cost };
        cells.of(timeline, priced.request).policy += bill;
    }
    let prompts = |run: &Run| run.requests.iter().map(|priced| i128::from(priced.spent.prompt())).sum::<i128>();
    out.tokens_removed = prompts(&baseline) - prompts(&policy);
    for extra in &policy.extra {
        let bill = Bill { spent: extra.spent, cost: extra.cost };
        let calls = out.extra.entry(extra.call.cause).or_insert_with(ExtraCalls::default);
        calls.calls += 1;
        calls.bill += bill;
        cells.of(timeline, extra.request).policy += bill;
    }
    cells.fold(timeline, &mut out);
    out.spread = spread(out.by.get("session"));
    out
}

/// Sums by session, model, version and lifetime: few, so that names are only looked up once for each.
#[derive(Default)]
struct Cells(BTreeMap<(u32, Sym, Sym, &'static str), Sides>);

impl Cells {
    fn of(&mut self, timeline: &Timeline, request: u32) -> &mut Sides {
        let request = &timeline.requests[request as usize];
        let session = timeline.chains[request.chain as usize].session;
        self.0.entry((session, request.model, request.version, class_of(request))).or_default()
    }

    fn fold(self, timeline: &Timeline, out: &mut Outcome) {
        for ((session, model, version, class), cell) in self.0 {
            out.by_session.entry((session, model)).or_default().join(&cell);
            let session = &timeline.sessions[session as usize];
            let groups = [
                ("model", timeline.names.text(model).to_owned()),
                ("project", session.project.to_string()),
                ("session", session.id.to_string()),
                ("ttl_class", class.to_owned()),
                ("version", timeline.names.text(version).to_owned()),
            ];
            out.total.join(&cell);
            for (dimension, group) in groups {
                out.by.entry(dimension).or_default().entry(group).or_default().join(&cell);
            }
        }
    }
}

/// The lifetime that the usage of a request names; old clients name none.
fn class_of(request: &Request) -> &'static str {
    match (request.usage.cache_creation_5m, request.usage.cache_creation_1h) {
        (0, 0) if request.usage.cache_creation > 0 => "not said",
        (0, 0) => "no write",
        (_, 0) => "5m",
        (0, _) => "1h",
        _ => "mixed",
    }
}

fn spread(sessions: Option<&BTreeMap<String, Sides>>) -> Spread {
    let mut changes: Vec<f64> = sessions.into_iter().flat_map(|by| by.values()).filter_map(Sides::change).collect();
    changes.sort_by(f64::total_cmp);
    let (Some(&best), Some(&worst)) = (changes.first(), changes.last()) else { return Spread::default() };
    let at = |share: f64| changes[((share * changes.len() as f64).ceil() as usize).clamp(1, changes.len()) - 1];
    Spread {
        sessions: changes.len() as u64,
        worse: changes.iter().filter(|&&change| change > 0.0).count() as u64,
        p5: at(0.05),
        p25: at(0.25),
        p50: at(0.5),
        p75: at(0.75),
        p95: at(0.95),
        best,
        worst,
    }
}
