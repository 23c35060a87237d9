//! What people try and what does not pay, for the line of what is not worth it.

use serde::{Deserialize, Serialize};

use crate::cost::findings::BillEvidence;
use crate::cost::findings::thresholds::TriedSetting;
use crate::whatif::sim::cells::{Cell, correct};
use crate::whatif::sim::figures::CostVerdict;

/// Something that costs more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loser {
    /// In plain words.
    pub name: String,
    /// Cost of it over that of the log, less one.
    pub change: f64,
    /// Lower end of its 95 % interval over sessions.
    pub lower: f64,
    pub upper: f64,
    pub sessions: u64,
    /// Arguments of the command that its figures come from.
    pub source: Vec<String>,
}

/// What would have cost more, beyond chance and the error of the simulation; the most expensive first.
pub fn losers(evidence: &BillEvidence<'_>) -> Vec<Loser> {
    let replays = evidence.thresholds.tried.iter().zip(evidence.replays);
    let mut tried: Vec<(&TriedSetting, Cell)> =
        replays.filter_map(|(tried, whole)| Some((tried, whole.clone()?))).collect();
    correct(tried.iter_mut().map(|(_, cell)| cell), &evidence.workload.cells);
    // What has no price on either side is no money that somebody loses.
    let lost = tried.iter().filter(|(_, cell)| cell.in_money && cell.verdict == CostVerdict::MoreExpensive);
    let mut losers: Vec<Loser> = lost.filter_map(|(tried, cell)| loser(tried, cell)).collect();
    losers.sort_by(|a, b| b.change.total_cmp(&a.change));
    losers
}

fn loser(tried: &TriedSetting, cell: &Cell) -> Option<Loser> {
    Some(Loser {
        name: tried.name.clone(),
        change: cell.change,
        lower: cell.lower?,
        upper: cell.upper?,
        sessions: cell.sessions,
        source: source(tried),
    })
}

/// The command that replays it.
fn source(tried: &TriedSetting) -> Vec<String> {
    let words = ["what-if", &tried.policy].map(str::to_owned).into_iter();
    words.chain(tried.set.iter().flat_map(|one| ["--set".to_owned(), one.clone()])).collect()
}
