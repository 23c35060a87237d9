//! The page made of an input: what its findings ask for is replayed first.

use rayon::prelude::*;

use super::Page;
use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::cost::findings::replayed::is_told;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::findings::{BillEvidence, ReplayedSetting};
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::trace::Millis;
use crate::logs::window::ALL;
use crate::settings::claude::levers::Levers;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::client::thresholds::ClientThresholds;
use crate::whatif::client::{LeverStudy, LeverTrials, LeverValue};
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
    let mut sheet = FindingThresholds::load(&input.data)?;
    let levers = Levers::load(&input.data)?;
    let asked =
        sheet.replays(|_, _| true).into_iter().map(|(policy, _)| Stack::parse(&policy)).collect::<Result<Vec<_>>>()?;
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
        sheet.bring_back(study.reattached);
        let paying = paying(&study, &workload.cells.resampling, &input.data)?;
        let is_told = is_told(&paying);
        // A curve has every value.
        let wanted = sheet.replays(|setting, value| is_drawn || is_told(setting, value));
        // One after the other is handed to whoever is free: split in halves, the longest one would come last.
        let numbered = wanted.iter().enumerate().par_bridge();
        let mut replays: Vec<(usize, ReplayedSetting)> = numbered
            .map(|(place, (policy, set))| Ok((place, replay(&simulation, &shipped.configs, policy, set)?)))
            .collect::<Result<_>>()?;
        replays.sort_by_key(|(place, _)| *place);
        let replays: Vec<ReplayedSetting> = replays.into_iter().map(|(_, replay)| replay).collect();
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
fn replay(
    simulation: &Simulation<'_>,
    configs: &PolicyConfigs,
    policy: &str,
    set: &[String],
) -> Result<ReplayedSetting> {
    let stack = Stack::parse(policy)?;
    let settings = set.iter().map(|text| Assigned::parse(text, "findings.toml")).collect::<Result<_>>()?;
    let row = StackRow { name: policy.to_owned(), stack, settings, is_named: false };
    let report = simulation.report(&configs.with(&row)?, &row.stack, false)?;
    Ok(ReplayedSetting { policy: row.stack.0[0].into_str(), set: set.to_vec(), report })
}
