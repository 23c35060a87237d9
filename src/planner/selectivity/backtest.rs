//! Learned on earlier sessions, judged on later ones: the only figures that say anything about tomorrow.

use std::collections::BTreeMap;

use crate::planner::selectivity::Numbers;
use crate::planner::selectivity::bootstrap::Resampling;
use crate::planner::selectivity::curve::{Point, Scored, curve, operating_point, point, thresholds};
use crate::planner::selectivity::table::{Example, Table};

/// What was learned and how it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Backtest {
    /// Counted on the training sessions.
    pub table: Table,
    /// The training sessions, each judged by all others.
    pub training: Vec<Point>,
    /// The other sessions, judged by all training sessions.
    pub held_out: Vec<Point>,
    /// The point to work at, chosen on the training sessions alone; none if the target is out of reach.
    pub chosen: Option<Point>,
    /// The same threshold on the other sessions.
    pub judged: Option<Point>,
}

impl Backtest {
    /// From which score on a candidate is fetched; none if none is.
    pub fn threshold(&self) -> Option<f64> {
        self.chosen.as_ref().map(|point| point.threshold)
    }
}

/// Learns on the sessions that `is_training` names, and judges on the rest.
pub fn backtest(
    examples: &[Example],
    is_training: &dyn Fn(u32) -> bool,
    numbers: &Numbers,
    resampling: &Resampling,
) -> Backtest {
    let (training, held_out): (Vec<&Example>, Vec<&Example>) =
        examples.iter().partition(|example| is_training(example.session));
    let table = Table::learn(training.iter().copied(), numbers);
    let tried = thresholds(numbers.threshold_step);
    let training = curve(&left_out(&training, &table, numbers), &tried, resampling);
    let by_all = |example: &&Example| scored(example, &table, &Table::default(), numbers);
    let held_out: Vec<Scored> = held_out.iter().map(by_all).collect();
    let chosen = operating_point(&training, numbers.target).cloned();
    Backtest {
        judged: chosen.as_ref().map(|chosen| point(&held_out, chosen.threshold, resampling)),
        held_out: curve(&held_out, &tried, resampling),
        table,
        training,
        chosen,
    }
}

/// Every session judged by what the others counted: judged by its own counts, each would look better than it is.
fn left_out(examples: &[&Example], table: &Table, numbers: &Numbers) -> Vec<Scored> {
    let mut sessions: BTreeMap<u32, Vec<&Example>> = BTreeMap::new();
    examples.iter().for_each(|example| sessions.entry(example.session).or_default().push(example));
    let of_session = |examples: &Vec<&Example>| {
        let own = Table::learn(examples.iter().copied(), numbers);
        examples.iter().map(|example| scored(example, table, &own, numbers)).collect::<Vec<_>>()
    };
    sessions.values().flat_map(of_session).collect()
}

fn scored(example: &Example, table: &Table, own: &Table, numbers: &Numbers) -> Scored {
    let estimate = table.estimate_beside(own, &example.link, &example.features, numbers);
    Scored {
        session: example.session,
        trigger: example.trigger,
        score: estimate.map(|estimate| estimate.score()),
        exact: example.exact,
        target: example.target,
    }
}

/// The sessions to learn from: the earliest by start, as many as the share says, rounded up. `starts` are the sessions
/// with the times at which they began; equal times stand in the order of the sessions.
pub fn earliest(starts: &[(u32, i64)], share: f64) -> std::collections::BTreeSet<u32> {
    let mut order: Vec<(i64, u32)> = starts.iter().map(|(session, start)| (*start, *session)).collect();
    order.sort_unstable();
    let count = (order.len() as f64 * share).ceil() as usize;
    order.into_iter().take(count).map(|(_, session)| session).collect()
}
