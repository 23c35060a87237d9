//! Two runs of the simulator side by side: what each costs where both have a price, by how much that may differ in other
//! sessions, and whether one of them is clearly cheaper.

use std::collections::BTreeMap;

use crate::whatif::sim::cells::CellRules;
use crate::whatif::sim::cost::{Cost, Total};
use crate::whatif::sim::figures::CostVerdict;
use crate::whatif::sim::simulator::{SimulatedRun, Simulator};

/// A variant beside the baseline, in the money of the requests that have a price both ways.
pub struct CostComparison {
    /// The baseline.
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
        let [base, run] = SimulatedRun::priced_alike([baseline, variant]);
        let (before, after) = (by_session(simulator, &base), by_session(simulator, &run));
        let cost = |side: &BTreeMap<u32, Total>, session| side.get(session).map(|total| total.cost).unwrap_or_default();
        let sessions: Vec<_> = before.keys().map(|session| (cost(&before, session), cost(&after, session))).collect();
        let interval = cells.interval(&sessions);
        Self { before: base.cost(), after: run.total(), sessions, interval }
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
pub fn by_session(simulator: &Simulator<'_>, run: &SimulatedRun) -> BTreeMap<u32, Total> {
    run.by(simulator.timeline, |request| simulator.timeline.session_of_chain(request.chain))
}
