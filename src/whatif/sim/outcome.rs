//! Compares a policy's run with the run of the log itself, request by request and summed up every way; and two runs of the
//! simulator: what each costs where both have a price, and whether one of them is clearly cheaper.

use std::collections::BTreeMap;

use crate::base::backtest::at_share;
use crate::base::names::Sym;
use crate::logs::timeline::requests::{Request, Timeline};
use crate::whatif::sim::cells::CellRules;
use crate::whatif::sim::cost::{Cost, Total};
use crate::whatif::sim::figures::{CostVerdict, Outcome, RunBill, Sides, Spread, UnloggedCalls};
use crate::whatif::sim::run::{Extra, PricedAlike, SimulatedRun};
use crate::whatif::sim::simulator::Simulator;

/// What a policy comes to.
pub fn outcome(timeline: &Timeline, baseline: &SimulatedRun, policy: &SimulatedRun) -> Outcome {
    let alike = SimulatedRun::priced_alike(&[baseline, policy]);
    let mut cells = OutcomeCells::default();
    let mut out = Outcome::default();
    // Of a cache that is kept alive the log has calls besides its requests, too.
    for (request, Total { requests, spent, cost }) in alike[0].parts() {
        let cell = cells.of(timeline, request);
        cell.requests += requests;
        cell.unpriced_requests += u64::from(requests > 0 && cost.unpriced_tokens > 0);
        cell.baseline += RunBill { spent, cost };
    }
    for (request, Total { spent, cost, .. }) in alike[1].parts() {
        cells.of(timeline, request).policy += RunBill { spent, cost };
    }
    for Extra { call, spent, cost, .. } in alike[1].extra() {
        *out.extra.entry(call.cause).or_default() += UnloggedCalls { calls: 1, spent, cost };
    }
    let prompts =
        |run: &SimulatedRun| run.requests.iter().map(|priced| i128::from(priced.spent().prompt())).sum::<i128>();
    out.tokens_removed = prompts(baseline) - prompts(policy);
    cells.fold(timeline, &mut out);
    out.spread = spread(out.by.get("session"));
    out
}

/// Sums by session, model, version and lifetime: few, so that names are only looked up once for each.
#[derive(Default)]
struct OutcomeCells(BTreeMap<(u32, Sym, Sym, &'static str), Sides>);

impl OutcomeCells {
    fn of(&mut self, timeline: &Timeline, request: u32) -> &mut Sides {
        let request = timeline.request(request);
        let session = timeline.session_of_chain(request.chain);
        self.0.entry((session, request.model, request.version, class_of(request))).or_default()
    }

    fn fold(self, timeline: &Timeline, out: &mut Outcome) {
        for ((session, model, version, class), cell) in self.0 {
            *out.by_session.entry((session, model)).or_default() += cell;
            let session = &timeline.sessions[session as usize];
            let groups = [
                ("model", timeline.names.text(model).to_owned()),
                ("project", session.project.to_string()),
                ("session", session.id.to_string()),
                ("ttl_class", class.to_owned()),
                ("version", timeline.names.text(version).to_owned()),
            ];
            out.total += cell;
            for (dimension, group) in groups {
                *out.by.entry(dimension).or_default().entry(group).or_default() += cell;
            }
        }
    }
}

/// The lifetime that the usage of a request names; old clients name none.
fn class_of(request: &Request) -> &'static str {
    match (request.usage().cache_creation_5m, request.usage().cache_creation_1h) {
        (0, 0) if request.usage().cache_creation > 0 => "not said",
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
    let at = |share| at_share(&changes, share).unwrap_or_default();
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

/// A variant beside the baseline, in the money of the requests that have a price both ways.
pub struct CostComparison {
    pub before: Cost,
    /// All requests of the variant.
    pub after: Total,
    /// Both costs of each session.
    sessions: Vec<(Cost, Cost)>,
    /// Ends of the 95 % interval of the change, over sessions; none with too few.
    pub interval: Option<(f64, f64)>,
}

impl CostComparison {
    /// Holds a variant against the baseline.
    pub fn new(simulator: &Simulator<'_>, baseline: &SimulatedRun, variant: &SimulatedRun, cells: &CellRules) -> Self {
        let alike = SimulatedRun::priced_alike(&[baseline, variant]);
        let (before, after) = (by_session(simulator, &alike[0]), by_session(simulator, &alike[1]));
        let cost = |side: &BTreeMap<u32, Total>, session| side.get(session).map(|total| total.cost).unwrap_or_default();
        let sessions: Vec<_> = before.keys().map(|session| (cost(&before, session), cost(&after, session))).collect();
        let interval = cells.interval(&sessions);
        Self { before: alike[0].total().cost, after: alike[1].total(), sessions, interval }
    }

    /// Whether the variant costs more or less; `error` is what the simulation is off the bill, or the least that counts.
    pub fn verdict(&self, error: f64) -> CostVerdict {
        verdict(self.before.change_to(&self.after.cost).unwrap_or_default(), error, self.interval)
    }

    /// Sessions of which this holds of the change.
    pub fn sessions_with(&self, holds: impl Fn(f64) -> bool) -> u64 {
        let changes = self.sessions.iter().map(|(before, after)| before.change_to(after).unwrap_or_default());
        changes.filter(|change| holds(*change)).count() as u64
    }
}

/// Whether a change is one: more than `error`, and by its interval over sessions not nothing. Without an interval there are
/// too few sessions to tell.
pub fn verdict(change: f64, error: f64, interval: Option<(f64, f64)>) -> CostVerdict {
    let is_told = interval.is_some_and(|(lower, upper)| lower > 0.0 || upper < 0.0);
    match change {
        change if change.abs() <= error || !is_told => CostVerdict::NoClearWinner,
        change if change < 0.0 => CostVerdict::Cheaper,
        _ => CostVerdict::MoreExpensive,
    }
}

/// What a run costs, session by session.
pub fn by_session(simulator: &Simulator<'_>, run: &PricedAlike<'_>) -> BTreeMap<u32, Total> {
    run.by(simulator.timeline, |request| simulator.timeline.session_of_chain(request.chain))
}
