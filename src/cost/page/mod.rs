//! The first page: what was spent, what stops the waste, what does not pay.

pub mod evidence;
pub mod html;
pub mod plots;
pub mod replays;
pub mod spent;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::cost::findings::BillEvidence;
use crate::cost::findings::losers::{Loser, losers};
use crate::cost::findings::search::{BillFinding, findings};
use crate::cost::page::plots::Plots;
use crate::cost::page::spent::PageSpent;
use crate::logs::timeline::requests::UsedModel;
use crate::whatif::client::thresholds::Versions;
use crate::whatif::report::SimulationAccuracy;

/// All that the page says, without any name of a person's: projects are pseudonyms.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Page {
    pub spent: PageSpent,
    /// What would save money, the most valuable first.
    pub findings: Vec<BillFinding>,
    /// Client versions of the last weeks, each with its last request: in what it was made of, and once it is settled those in use.
    pub versions: Versions,
    /// The same of each project that a finding is told of alone; once it is settled, those of them that are in use.
    pub versions_in: BTreeMap<String, Versions>,
    /// The models in use.
    pub models: BTreeSet<UsedModel>,
    /// What would cost more, the most expensive first.
    pub not_worth: Vec<Loser>,
    /// Simulated cost of the log over its bill, less one: what replays are off.
    pub off_bill: f64,
    /// The most that may be, either way.
    pub bar: f64,
    /// Figures of the plots, where the page is drawn: they take more replays than the words.
    pub plots: Option<Plots>,
}

impl Page {
    /// Makes the page, to be drawn or not.
    pub fn of(evidence: &BillEvidence<'_>, accuracy: &SimulationAccuracy, is_drawn: bool) -> Self {
        let (spent, (findings, not_worth)) =
            rayon::join(|| PageSpent::of(evidence), || rayon::join(|| findings(evidence), || losers(evidence)));
        let (off_bill, bar) = (accuracy.cost_error.share().unwrap_or_default(), accuracy.cost_bar);
        let (versions, versions_in) = (evidence.study.versions.clone(), BTreeMap::new());
        let (models, plots) = (evidence.workload.timeline.models(None), is_drawn.then(|| Plots::of(evidence)));
        Self { spent, findings, versions, versions_in, models, not_worth, off_bill, bar, plots }
    }

    /// The clients that what a finding says is to be set for.
    pub fn clients(&self, finding: &BillFinding) -> &Versions {
        finding.project().and_then(|project| self.versions_in.get(project)).unwrap_or(&self.versions)
    }
}

/// How projects and sessions are called: whoever shows the page knows, the page itself has pseudonyms only.
#[derive(Clone, Default, Debug)]
pub struct PageNames(pub BTreeMap<String, String>);

/// Where the name of something of a kind stands.
pub fn own_key(kind: &str, name: &str) -> String {
    format!("{kind}: {name}")
}

/// Hex digits of one whose name is not known.
const DIGITS: usize = 8;

impl PageNames {
    /// The name of a project.
    pub fn project(&self, id: &str) -> String {
        self.named(id, "project")
    }

    /// The name of a session: the start of its id, as `claude --resume` lists it.
    pub fn session(&self, id: &str) -> String {
        self.named(id, "session")
    }

    /// The name of something that people may have named themselves: a kind of agent, a server.
    pub fn own(&self, kind: &str, name: &str) -> String {
        self.0.get(&own_key(kind, name)).cloned().unwrap_or_else(|| name.to_owned())
    }

    fn named(&self, id: &str, noun: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| format!("{noun} {}", id.get(..DIGITS).unwrap_or(id)))
    }
}
