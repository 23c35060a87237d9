//! The page made of an input: what people try is replayed first, and what `tune claude-settings` tries.

use rayon::prelude::*;

use super::Page;
use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::cost::findings::BillEvidence;
use crate::cost::findings::thresholds::{FindingThresholds, TriedSetting};
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::trace::Millis;
use crate::logs::window::ALL;
use crate::settings::claude::levers::Levers;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::client::thresholds::ClientThresholds;
use crate::whatif::client::{LeverStudy, LeverTrials, LeverValue};
use crate::whatif::report::PolicyReport;
use crate::whatif::shipped::ShippedWorkload;
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;

/// Days that the page is about: from the beginning of its window, or of the logs if they begin later, to its last request.
pub fn days(page: &Page, is_cut: bool, input: &mut Input) -> Result<i64> {
    let mut start = input.window.start;
    if start == ALL.start {
        return Ok(page.spent.span_days);
    }
    if !is_cut {
        let asked = std::mem::replace(&mut input.window, ALL);
        let overview = input.overview();
        input.window = asked;
        start = overview?.span_ms.map_or(start, |(first, _)| first.max(start));
    }
    Ok(page.spent.days_from(start).unwrap_or(page.spent.span_days))
}

/// Which of the settings that were tried the rules would write: those that `paying` says of a study.
pub type PayingRule<'r> = &'r (dyn Fn(&LeverStudy, &Resampling, &Data) -> Result<Vec<LeverValue>> + Sync);

/// Replays what the page asks and makes it, to be drawn or not.
pub fn page(input: &mut Input, is_drawn: bool, now_ms: Millis, paying: PayingRule<'_>) -> Result<Page> {
    let sheet = FindingThresholds::load(&input.data)?;
    let levers = Levers::load(&input.data)?;
    let asked = sheet.tried.iter().map(|tried| Stack::parse(&tried.policy)).collect::<Result<Vec<_>>>()?;
    let words = asked.iter().any(Stack::asks_for_tools);
    let timeline = input.timeline(TimelineDetail { tokens: false, words })?;
    let shipped = ShippedWorkload::new(timeline, &input.data)?;
    input.pool.install(|| {
        let (simulation, workload) = (shipped.simulation(), &shipped.workload);
        // As `tune claude-settings` chooses, so that both say the same.
        let simulator = simulation.simulator.clone().counting_answers(true);
        let mut study = LeverTrials::new(&simulator, workload, &input.data, None, &[])?.study();
        let clients = ClientThresholds::load(&input.data)?;
        study.versions = clients.versions(&workload.timeline, None, now_ms);
        let paying = paying(&study, &workload.cells.resampling, &input.data)?;
        // One by one: a thread that took several at once would be the last to end.
        let tried = sheet.tried.par_iter().with_max_len(1);
        let replays: Vec<PolicyReport> =
            tried.map(|tried| replay(&simulation, &shipped.configs, tried)).collect::<Result<_>>()?;
        let evidence = BillEvidence {
            workload,
            simulator: &simulation.simulator,
            billed_usd: simulation.billed.cost.nano_usd as f64 / 1e9,
            apart: &simulation.off_bill.apart,
            replays: &replays,
            levers: &levers,
            study: &study,
            paying: &paying,
            sheet: &sheet,
        };
        let mut page = Page::of(&evidence, &simulation.off_bill.accuracy, is_drawn);
        for project in page.findings.iter().filter_map(|finding| finding.project()) {
            let own = Id::from_hex(project).into_iter().collect();
            page.versions_in.insert(project.clone(), clients.versions(&workload.timeline, Some(&own), now_ms));
        }
        Ok(page)
    })
}

/// One replay, as `devboy what-if` makes it.
fn replay(simulation: &Simulation<'_>, configs: &PolicyConfigs, tried: &TriedSetting) -> Result<PolicyReport> {
    let stack = Stack::parse(&tried.policy)?;
    let settings = tried.set.iter().map(|text| Assigned::parse(text, "findings.toml")).collect::<Result<_>>()?;
    let row = StackRow { name: tried.policy.clone(), stack, settings, is_named: false };
    simulation.report(&configs.with(&row)?, &row.stack, false)
}
