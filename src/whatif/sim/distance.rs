//! Where the simulated log is off its bill: every request by model, client version and what stood in the log before it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::bootstrap::{Resampling, interval};
use crate::base::names::Sym;
use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::figures::Portion;
use crate::whatif::sim::run::{Priced, SimulatedRun};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::unforeseen::{Occasion, Where};

/// Versions of one range share all numbers but the last digit of the last one.
const VERSIONS_PER_RANGE: u32 = 10;

/// One request of a run beside its bill.
fn apart(simulator: &Simulator<'_>, priced: &Priced) -> Apart {
    let request = simulator.timeline.request(priced.request);
    let (billed, simulated) = (simulator.billed(request), Spent { output: 0, ..priced.spent() });
    Apart {
        requests: 1,
        differing: u64::from(billed.read != simulated.read),
        read_billed: billed.read,
        read_simulated: simulated.read,
        cost_billed: simulator.tariff.of(request, &billed),
        cost_simulated: simulator.tariff.of(request, &simulated),
    }
}

/// Sums a run up by anything that a request has.
pub fn by<K: Ord>(simulator: &Simulator<'_>, run: &SimulatedRun, key: impl Fn(u32) -> K) -> BTreeMap<K, Apart> {
    let mut sums: BTreeMap<K, Apart> = BTreeMap::new();
    for priced in &run.requests {
        *sums.entry(key(priced.request)).or_default() += apart(simulator, priced);
    }
    sums
}

/// The distance of a run that sees no bill.
pub fn distance(simulator: &Simulator<'_>, blind: &SimulatedRun, resampling: &Resampling) -> Distance {
    let timeline = simulator.timeline;
    let occasions = causes::occasions(simulator);
    let key = |index: u32| {
        let request = timeline.request(index);
        (request.model, request.version, occasions[index as usize])
    };
    let mut ranges: BTreeMap<(Sym, String, Cause), Apart> = BTreeMap::new();
    let mut total = Apart::default();
    for ((model, version, cause), apart) in by(simulator, blind, key) {
        total += apart;
        *ranges.entry((model, range_of(timeline.names.text(version)), cause)).or_default() += apart;
    }
    let part = |((model, versions, cause), apart): ((Sym, String, Cause), Apart)| {
        let model = timeline.names.text(model).to_owned();
        DistanceCause { model, versions, cause, apart }
    };
    let mut parts: Vec<DistanceCause> = ranges.into_iter().map(part).filter(|part| part.apart.units() != 0).collect();
    largest_first(&mut parts, &total.cost_billed);
    Distance { total, parts, losses: losses(simulator, resampling) }
}

/// Orders causes by their share of the bill, as it is told: what has no price is in no dollars, and comes by its tokens.
pub fn largest_first(parts: &mut [DistanceCause], bill: &Cost) {
    parts.sort_by(|a, b| {
        let share = |part: &DistanceCause| part.apart.share_of(bill).abs();
        let units = |part: &DistanceCause| std::cmp::Reverse(part.apart.units().unsigned_abs());
        let rest = |part: &DistanceCause| (units(part), part.model.clone(), part.versions.clone(), part.cause);
        share(b).total_cmp(&share(a)).then_with(|| rest(a).cmp(&rest(b)))
    });
}

/// How often the cache was missed for no reason in the log.
fn losses(simulator: &Simulator<'_>, resampling: &Resampling) -> Vec<UnforeseenLosses> {
    let mut sessions: BTreeMap<(Where, Option<Occasion>), BTreeMap<u32, Portion>> = BTreeMap::new();
    causes::for_pairs(simulator, |before, index| {
        let Some(unforeseen) = simulator.priors[index as usize].unforeseen else { return };
        let [before, request] = [before, index].map(|request| simulator.timeline.request(request));
        if before.chain != request.chain {
            return;
        }
        let session = simulator.timeline.session_of_chain(request.chain);
        for occasion in [None, Some(unforeseen.occasion)] {
            let counts = sessions.entry((unforeseen.place, occasion)).or_default();
            counts.entry(session).or_default().count(2 * request.usage().cache_read < before.cached());
        }
    });
    let one = |((place, occasion), counts): ((Where, Option<Occasion>), BTreeMap<u32, Portion>)| {
        let tallies: Vec<(u64, u64)> = counts.values().map(|count| (count.k, count.n)).collect();
        let count: Portion = counts.values().copied().sum();
        let Share { lower, upper, .. } = Share::new(count.k, count.n);
        let over_sessions = interval(&tallies, resampling).unwrap_or((lower, upper));
        let (lower, upper) = (lower.min(over_sessions.0), upper.max(over_sessions.1));
        UnforeseenLosses { place: place.into_str(), occasion, count, lower, upper }
    };
    sessions.into_iter().map(one).collect()
}

/// `2.1.127` is one of `2.1.120–129`; what is no version stays as it is.
fn range_of(version: &str) -> String {
    let parsed = version.rsplit_once('.').and_then(|(head, last)| Some((head, last.parse::<u32>().ok()?)));
    let Some((head, last)) = parsed else { return version.to_owned() };
    let first = last - last % VERSIONS_PER_RANGE;
    format!("{head}.{first}–{}", first.saturating_add(VERSIONS_PER_RANGE - 1))
}

/// Some requests as billed and as simulated; no output.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Apart {
    pub requests: u64,
    /// Of these, requests whose simulated read is not the billed one.
    pub differing: u64,
    /// Tokens read by the bill.
    pub read_billed: u64,
    /// Tokens read in the simulation.
    pub read_simulated: u64,
    pub cost_billed: Cost,
    pub cost_simulated: Cost,
}

adds_up!(Apart: requests, differing, read_billed, read_simulated, cost_billed, cost_simulated);

impl Apart {
    /// Simulated less billed cost, in units.
    pub fn units(&self) -> i128 {
        self.cost_simulated.units as i128 - self.cost_billed.units as i128
    }

    /// Simulated less billed cost as a share of a bill ([`Cost::beside`]).
    pub fn share_of(&self, whole: &Cost) -> f64 {
        let ((bill, billed), (_, simulated)) = (whole.beside(&self.cost_billed), whole.beside(&self.cost_simulated));
        if bill == 0 { 0.0 } else { (simulated as f64 - billed as f64) / bill as f64 }
    }

    /// The same as a share of its own bill.
    pub fn error(&self) -> f64 {
        self.share_of(&self.cost_billed)
    }
}

/// One cause of the distance in one model and range of client versions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DistanceCause {
    pub model: String,
    /// Client versions, as a range.
    pub versions: String,
    /// What stood in the log before these requests.
    pub cause: Cause,
    pub apart: Apart,
}

/// How often the cache was missed that nothing in the log said would be.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UnforeseenLosses {
    /// Where: `turn`, where something but results of tools came in, or `tools`.
    pub place: &'static str,
    /// What else stood before them; none for all of the place.
    pub occasion: Option<Occasion>,
    /// Requests at which one could be lost, and at which it was.
    pub count: Portion,
    /// Lower end of the 95 % interval of that share: over sessions or over requests (Wilson), whichever is wider.
    pub lower: f64,
    pub upper: f64,
}

/// The distance and its parts.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Distance {
    pub total: Apart,
    /// Largest first.
    pub parts: Vec<DistanceCause>,
    /// What is not foretold but expected at its rate.
    pub losses: Vec<UnforeseenLosses>,
}
