//! The first page: what was spent, what stops the waste, what does not pay. What people try is replayed first.

pub mod evidence;
pub mod html;
pub mod plots;
pub mod spent;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::cost::findings::losers::{Loser, losers};
use crate::cost::findings::search::{BillFinding, findings};
use crate::cost::findings::thresholds::{FindingThresholds, TriedSetting};
use crate::cost::findings::{BillEvidence, uncached};
use crate::cost::page::plots::Plots;
use crate::cost::page::spent::PageSpent;
use crate::frames::input::Input;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::logs::timeline::requests::UsedModel;
use crate::logs::trace::Millis;
use crate::logs::window::ALL;
use crate::settings::claude::levers::Levers;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::client::thresholds::{ClientThresholds, Versions};
use crate::whatif::client::{LeverStudy, LeverTrials, LeverValue};
use crate::whatif::prompt_cache::causes;
use crate::whatif::report::SimulationAccuracy;
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;
use crate::whatif::workload::ShippedWorkload;

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
    /// The page made of what was found, to be drawn or not.
    fn of(evidence: &BillEvidence<'_>, accuracy: &SimulationAccuracy, is_drawn: bool) -> Self {
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

/// Where the days of the page begin: with its window, or with the logs if they begin later.
pub fn start(is_cut: bool, input: &mut Input) -> Result<Millis> {
    let start = input.window.start;
    if start == ALL.start || is_cut {
        return Ok(start);
    }
    let asked = std::mem::replace(&mut input.window, ALL);
    let overview = input.overview();
    input.window = asked;
    Ok(overview?.span_ms.map_or(start, |(first, _)| first.max(start)))
}

/// Days that the page is about: from [`start`] to its last request.
pub fn days(page: &Page, start: Millis) -> i64 {
    let from_start = if start == ALL.start { None } else { page.spent.days_from(start) };
    from_start.unwrap_or(page.spent.span_days)
}

/// Which of the settings that were tried the rules would write: those that `paying` says of a study.
pub type PayingRule<'r> = &'r (dyn Fn(&LeverStudy, &Resampling, &Data) -> Result<Vec<LeverValue>> + Sync);

/// Replays what the page asks and makes it, to be drawn or not.
pub fn page(input: &mut Input, is_drawn: bool, now_ms: Millis, paying: PayingRule<'_>) -> Result<Page> {
    let thresholds = FindingThresholds::load(&input.data)?;
    let levers = Levers::load(&input.data)?;
    let asked = thresholds.tried.iter().map(|tried| Stack::parse(&tried.policy)).collect::<Result<Vec<_>>>()?;
    let words = if asked.iter().any(Stack::asks_for_tools) { TextWords::All } else { TextWords::None };
    let timeline = input.last_timeline(TimelineDetail { words, ..TimelineDetail::default() })?;
    let shipped = ShippedWorkload::new(timeline, &input.data)?;
    input.pool.install(|| {
        let workload = &shipped.workload;
        // As `tune claude-settings` chooses, so that both say the same; before the log is simulated, since either takes room.
        let simulator = workload.with_answers(&shipped.cache);
        let mut study = LeverTrials::new(&simulator, workload, &input.data, None, &[])?.study();
        let clients = ClientThresholds::load(&input.data)?;
        study.versions = clients.versions(&workload.timeline, None, now_ms);
        let paying = paying(&study, &workload.cells.resampling, &input.data)?;
        // From here on it is asked by model only.
        study.trials.iter_mut().for_each(|trial| trial.sessions = Vec::new());
        let simulation = shipped.simulation();
        // One by one: a thread that took several at once would be the last to end.
        let tried = thresholds.tried.par_iter().with_max_len(1);
        let tried = tried.map(|tried| replay(&simulation, &shipped.configs, tried));
        let lost = || {
            let losses = || causes::losses(&simulation.simulator);
            rayon::join(losses, || uncached::unread_threads(&simulation.simulator, &thresholds.unread))
        };
        let (replays, (losses, unread)) = rayon::join(|| tried.collect::<Result<Vec<Option<Cell>>>>(), lost);
        let replays = replays?;
        let evidence = BillEvidence {
            workload,
            simulator: &simulation.simulator,
            losses: &losses,
            unread: &unread,
            billed_usd: simulation.billed.cost.nano_usd as f64 / 1e9,
            apart: &simulation.off_bill.apart,
            replays: &replays,
            levers: &levers,
            study: &study,
            paying: &paying,
            thresholds: &thresholds,
        };
        let mut page = Page::of(&evidence, &simulation.off_bill.accuracy, is_drawn);
        for project in page.findings.iter().filter_map(|finding| finding.project()) {
            let own = Id::from_hex(project).into_iter().collect();
            page.versions_in.insert(project.clone(), clients.versions(&workload.timeline, Some(&own), now_ms));
        }
        Ok(page)
    })
}

/// What one replay, as `devboy what-if` makes it, comes to over all of the logs; none where nothing is estimated.
fn replay(simulation: &Simulation<'_>, configs: &PolicyConfigs, tried: &TriedSetting) -> Result<Option<Cell>> {
    let stack = Stack::parse(&tried.policy)?;
    let settings = tried.set.iter().map(|text| Assigned::parse(text, "findings.toml")).collect::<Result<_>>()?;
    let row = StackRow { name: tried.policy.clone(), stack, settings, is_named: false };
    let report = simulation.report(&configs.with(&row)?, &row.stack, false)?;
    Ok(report.whole.filter(|_| report.not_estimated.is_none()))
}
