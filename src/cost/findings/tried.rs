//! What people try and what does not pay, for the line of what is not worth it.

use serde::{Deserialize, Serialize};

use crate::cost::findings::Evidence;

/// Something that costs more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loser {
    /// In plain words.
    pub name: String,
    /// Cost of it over that of the log, less one.
    pub change: f64,
    /// Arguments of the command that shows it.
    pub evidence: Vec<String>,
}

/// What would have cost more, beyond the error of the simulation; the most expensive first.
pub fn losers(evidence: &Evidence<'_>) -> Vec<Loser> {
    let one = |tried: &crate::cost::findings::sheet::Tried| {
        let replay = evidence.replays.iter().find(|replay| replay.policy == tried.policy && replay.set == tried.set)?;
        let report = &replay.report;
        let change = report.outcome.as_ref().filter(|_| report.not_estimated.is_none())?.total.change()?;
        let set = tried.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]);
        let evidence = ["what-if".to_owned(), tried.policy.clone()].into_iter().chain(set).collect();
        (change > 0.0 && !report.is_unsure()).then(|| Loser { name: tried.name.clone(), change, evidence })
    };
    let mut losers: Vec<Loser> = evidence.sheet.tried.iter().filter_map(one).collect();
    losers.sort_by(|a, b| b.change.total_cmp(&a.change));
    losers
}
