//! Learned on earlier sessions, judged on later ones: the only figures that say anything about tomorrow.

use std::collections::BTreeMap;

use crate::base::bootstrap::Resampling;
use crate::planner::selectivity::Numbers;
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

/// Learns on the sessions that `is_training` names, and judges on the rest. `target` is the share of exact calls that the
/// point to work at must reach.
pub fn backtest(
    examples: &[Example],
    is_training: &dyn Fn(u32) -> bool,
    target: f64,
    numbers: &Numbers,
    resampling: &Resampling,
) -> Backtest {
    let (training, held_out): (Vec<&Example>, Vec<&Example>) =
        examples.iter().partition(|example| is_training(example.session));
    let table = Table::learn(training.iter().copied(), numbers);
    let tried = thresholds(numbers.threshold_step);
    let training = curve(&left_out(&training, &table, numbers), &tried, resampling);
    let held_out = judged_by(&table, held_out, numbers);
    let chosen = operating_point(&training, target).cloned();
    Backtest {
        judged: chosen.as_ref().map(|chosen| point(&held_out, chosen.threshold, resampling)),
        held_out: curve(&held_out, &tried, resampling),
        table,
        training,
        chosen,
    }
}

/// Candidates with the scores that a table gives them, which must not have counted them.
pub fn judged_by<'e>(table: &Table, examples: impl IntoIterator<Item = &'e Example>, numbers: &Numbers) -> Vec<Scored> {
    examples.into_iter().map(|example| scored(example, table, &Table::default(), numbers)).collect()
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
