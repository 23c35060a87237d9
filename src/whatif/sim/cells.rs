//! Where a policy wins or loses: the same comparison by project, by model and by size of context, each with its interval over
//! whole sessions (the bootstrap-t, see [`crate::base::bootstrap`]). A part is clear if its change is beyond what the
//! simulation is off there, in the interval as well as in a test that is held to a false discovery rate over everything that
//! was looked at.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{RatioSums, Resampling, TAIL, below, studentised};
use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::base::names::Sym;
use crate::base::significance::benjamini_hochberg;
use crate::base::sums::adds_up;
use crate::logs::timeline::requests::Timeline;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::distance::Apart;
use crate::whatif::sim::figures::{CostVerdict, Sides};
use crate::whatif::sim::outcome::verdict;

/// The sheet `rules/policies/cells.toml`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct CellRules {
    pub context_tokens: Vec<u64>,
    /// Least sessions of a part.
    pub sessions_min: u64,
    pub false_discovery_percent: f64,
    pub resampling: Resampling,
}

impl CellRules {
    /// Reads the sheet; `place` is where it stands, for messages. An error if it does not fit, or borders do not rise.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let rules: Self = fitting(text, place)?;
        if !rules.context_tokens.is_sorted_by(|a, b| a < b) {
            return Err(Error::failed(format!("{place}: context_tokens must rise")));
        }
        Ok(rules)
    }

    /// Ends of the 95 % interval of the change of cost over sessions, each with its cost before and after; none with too few.
    pub fn interval(&self, sessions: &[(Cost, Cost)]) -> Option<(f64, f64)> {
        let in_money = sessions.iter().any(|(before, _)| before.nano_usd > 0);
        let drawn = self.drawn(&measured(sessions.iter().copied(), in_money))?;
        Some((drawn.lower, drawn.upper))
    }

    fn drawn(&self, pairs: &[SessionCosts]) -> Option<Drawn> {
        let enough = pairs.len() as u64 >= self.sessions_min;
        enough.then(|| Drawn::new(pairs, &self.resampling)).flatten()
    }

    /// The range that a size falls into; a border belongs to the lower one.
    fn range_of(&self, tokens: u64) -> String {
        let place = self.context_tokens.partition_point(|&border| border < tokens);
        let thousands = |border: u64| format!("{} k", border / 1_000);
        match (place.checked_sub(1).map(|below| self.context_tokens[below]), self.context_tokens.get(place)) {
            (None, None) => "any".to_owned(),
            (None, Some(&most)) => format!("up to {}", thousands(most)),
            (Some(least), None) => format!("above {}", thousands(least)),
            (Some(least), Some(&most)) => format!("{} to {}", thousands(least), thousands(most)),
        }
    }
}

/// Both sides of a policy, and the simulated log against the bill.
#[derive(Clone, Copy, Default)]
struct Slice {
    sides: Sides,
    apart: Apart,
}

adds_up!(Slice: sides, apart);

/// What of a policy is in one part: together, and of each session what it cost before and after.
#[derive(Default)]
struct Part {
    all: Slice,
    sessions: BTreeMap<u32, (Cost, Cost)>,
}

impl Part {
    fn add(&mut self, session: u32, slice: &Slice) {
        self.all += slice;
        let (before, after) = self.sessions.entry(session).or_default();
        *before += slice.sides.baseline.cost;
        *after += slice.sides.policy.cost;
    }
}

/// By what a change of cost is judged in parts of the logs.
#[derive(Clone, Copy)]
pub struct CellJudge<'a> {
    pub rules: &'a CellRules,
    /// What the simulation is off the bill, by session and model; none of what the bill itself shows.
    pub apart: Option<&'a BTreeMap<(u32, Sym), Apart>>,
    /// The least change that counts, as a share.
    pub least: f64,
}

impl CellJudge<'_> {
    /// The parts of a timeline, each without a correction for the others. Parts that are the whole are left out.
    pub fn cells(&self, timeline: &Timeline, sides: &BTreeMap<(u32, Sym), Sides>) -> Vec<Cell> {
        let places = RequestParts::of(timeline, self.rules);
        let mut parts: BTreeMap<(&'static str, String), Part> = BTreeMap::new();
        for ((session, model), slice) in self.slices(sides) {
            for name in places.names(session, model) {
                parts.entry(name).or_default().add(session, &slice);
            }
        }
        let mut kinds: BTreeMap<&'static str, u32> = BTreeMap::new();
        parts.keys().for_each(|(by, _)| *kinds.entry(by).or_default() += 1);
        let divided = parts.into_iter().filter(|((by, _), _)| kinds[by] > 1);
        divided.filter_map(|((by, name), part)| self.cell(by, name, &part)).collect()
    }

    /// All of the logs as one part; none without cost.
    pub fn whole(&self, sides: &BTreeMap<(u32, Sym), Sides>) -> Option<Cell> {
        let mut part = Part::default();
        self.slices(sides).for_each(|((session, _), slice)| part.add(session, &slice));
        let whole = self.cell("all", String::new(), &part)?;
        let margin = whole.off_bill.abs().max(self.least);
        Some(Cell { verdict: verdict(whole.change, margin, whole.lower.zip(whole.upper)), ..whole })
    }

    fn slices(&self, sides: &BTreeMap<(u32, Sym), Sides>) -> impl Iterator<Item = ((u32, Sym), Slice)> {
        let apart = |key| self.apart.and_then(|apart| apart.get(key)).copied().unwrap_or_default();
        sides.iter().map(move |(key, sides)| (*key, Slice { sides: *sides, apart: apart(key) }))
    }

    fn cell(&self, by: &'static str, name: String, Part { all, sessions }: &Part) -> Option<Cell> {
        let change = all.sides.change()?;
        let in_money = all.sides.baseline.cost.nano_usd > 0;
        let pairs = measured(sessions.values().copied(), in_money);
        let off_bill = all.apart.error();
        let margin = off_bill.abs().max(self.least);
        let drawn = self.rules.drawn(&pairs);
        let beyond = drawn.as_ref().is_some_and(|drawn| drawn.lower > margin || drawn.upper < -margin);
        let verdict = match change {
            _ if !beyond => CostVerdict::NoClearWinner,
            change if change < 0.0 => CostVerdict::Cheaper,
            _ => CostVerdict::MoreExpensive,
        };
        let p = drawn.as_ref().map_or(1.0, |drawn| drawn.p_beyond(change.abs() - margin));
        let (lower, upper) = drawn.as_ref().map(|drawn| (drawn.lower, drawn.upper)).unzip();
        Some(Cell {
            by,
            name,
            sessions: pairs.len() as u64,
            requests: all.sides.requests,
            change,
            before: all.sides.baseline.cost,
            in_money,
            lower,
            upper,
            off_bill,
            p,
            q: p,
            verdict,
        })
    }
}

/// Which parts requests belong to.
pub struct RequestParts<'t> {
    timeline: &'t Timeline,
    rules: &'t CellRules,
    /// Tokens of the largest context of each session.
    largest: Vec<u64>,
}

impl<'t> RequestParts<'t> {
    /// Looks once at every request.
    pub fn of(timeline: &'t Timeline, rules: &'t CellRules) -> Self {
        let mut largest = vec![0; timeline.sessions.len()];
        for (_, request) in timeline.counted() {
            let most: &mut u64 = &mut largest[timeline.chains[request.chain as usize].session as usize];
            *most = request.context().max(*most);
        }
        Self { timeline, rules, largest }
    }

    /// The parts of a session and model: their kinds and names.
    pub fn names(&self, session: u32, model: Sym) -> [(&'static str, String); 3] {
        [
            ("project", self.timeline.sessions[session as usize].project.to_string()),
            ("model", self.timeline.names.text(model).to_owned()),
            ("context", self.rules.range_of(self.largest[session as usize])),
        ]
    }

    /// What belongs to parts of one kind.
    pub fn within(
        &self,
        sides: &BTreeMap<(u32, Sym), Sides>,
        (by, parts): (&str, &[String]),
    ) -> BTreeMap<(u32, Sym), Sides> {
        let is_inside = |&(session, model): &(u32, Sym)| {
            self.names(session, model).iter().any(|(kind, name)| *kind == by && parts.contains(name))
        };
        sides.iter().filter(|(key, _)| is_inside(key)).map(|(key, sides)| (*key, *sides)).collect()
    }
}

/// Corrects for everything that was looked at: what is no discovery has no clear winner.
pub fn correct<'c>(cells: impl Iterator<Item = &'c mut Cell>, rules: &CellRules) {
    let mut cells: Vec<&mut Cell> = cells.collect();
    let p: Vec<f64> = cells.iter().map(|cell| cell.p).collect();
    for (cell, q) in cells.iter_mut().zip(benjamini_hochberg(&p)) {
        cell.q = q;
        if q > rules.false_discovery_percent / 100.0 {
            cell.verdict = CostVerdict::NoClearWinner;
        }
    }
}

/// Cost of one session: the log, the policy.
pub type SessionCosts = (f64, f64);

/// Costs of sessions as numbers, in money or in tokens; those of nothing on both sides say nothing.
fn measured(costs: impl Iterator<Item = (Cost, Cost)>, in_money: bool) -> Vec<SessionCosts> {
    let measure = |cost: Cost| if in_money { cost.nano_usd } else { cost.units } as f64;
    let pairs = costs.map(|(before, after)| (measure(before), measure(after)));
    pairs.filter(|(before, after)| *before > 0.0 || *after > 0.0).collect()
}

/// What samples of sessions say about a change of cost.
pub struct Drawn {
    /// Lower end of the 95 % interval of the change.
    pub lower: f64,
    pub upper: f64,
    /// Standard error.
    error: f64,
    freedom: f64,
}

impl Drawn {
    /// Draws; none with fewer than two sessions.
    pub fn new(pairs: &[SessionCosts], resampling: &Resampling) -> Option<Self> {
        let seen = change_over(pairs.iter());
        let (change, error) = (seen.ratio()?, seen.error()?);
        let mut state = resampling.seed;
        let (n, mut count, mut squares) = (pairs.len() as f64, 0.0, 0.0);
        let samples = (0..resampling.samples).filter_map(|_| {
            let drawn = change_over(pairs.iter().map(|_| &pairs[below(pairs.len(), &mut state)]));
            let distance = drawn.ratio()? - change;
            (count, squares) = (count + 1.0, squares + distance * distance);
            Some((change + distance, drawn.error()))
        });
        let (lower, upper) = studentised(change, error, samples, TAIL)?;
        // Nothing costs less than nothing.
        let (lower, upper) = (lower.clamp(-1.0, change.max(-1.0)), upper.max(change));
        // Drawing from n sessions varies as if there were one fewer.
        let freedom = n - 1.0;
        let drawn_error = (squares / count * n / freedom).sqrt();
        Some(Self { lower, upper, error: error.max(drawn_error), freedom })
    }

    /// Chance of an estimate that lies so far beyond a margin if the truth lies within it, on either side.
    fn p_beyond(&self, distance: f64) -> f64 {
        match (distance > 0.0, self.error > 0.0) {
            (false, _) => 1.0,
            (true, false) => 0.0,
            (true, true) => (2.0 * normal_tail(normal_of_student(distance / self.error, self.freedom))).min(1.0),
        }
    }
}

/// The change of cost: how much more sessions cost after than before, over what they cost before.
fn change_over<'p>(pairs: impl Iterator<Item = &'p SessionCosts>) -> RatioSums {
    RatioSums::sum(pairs.map(|(before, after)| (after - before, *before)))
}

/// Probability of more than `z` under the normal distribution (Abramowitz and Stegun 26.2.17; error below 1e-7).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series =
        t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series;
    if z < 0.0 { 1.0 - tail } else { tail }
}

/// The normal deviate with the tail of Student's `t` (Wallace 1959; within a few thousandths from three degrees on).
fn normal_of_student(t: f64, freedom: f64) -> f64 {
    (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (t * t / freedom).ln_1p()).sqrt()
}

/// What a policy comes to in one part of the logs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// What the part is by: `project`, `model`, `context`; `all` for the whole.
    pub by: &'static str,
    /// Which one: a pseudonym, a model, a range of tokens.
    pub name: String,
    pub sessions: u64,
    pub requests: u64,
    /// Cost of the policy over that of the log, less one.
    pub change: f64,
    /// Cost of the log.
    #[serde(skip)]
    pub before: Cost,
    /// Whether that is of money; else of input-equivalent tokens, because nothing in this part has a price.
    pub in_money: bool,
    /// Lower end of its 95 % interval over sessions; none where there are too few of them.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// What the simulation is off the bill in this part, as a share.
    pub off_bill: f64,
    /// Chance of a change as large if it were no more than the least that counts; 1 where there are too few sessions.
    pub p: f64,
    /// Smallest false discovery rate at which it is a discovery, over all parts that were looked at.
    pub q: f64,
    pub verdict: CostVerdict,
}

impl Cell {
    /// Dollars that a change of the cost here saves.
    pub fn saved_usd(&self, change: f64) -> f64 {
        -change * self.before.nano_usd as f64 / 1e9
    }
}
