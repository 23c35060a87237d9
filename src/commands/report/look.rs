//! Reads what the page is made of, and makes it.

use rayon::prelude::*;

use crate::base::error::Result;
use crate::commands::clients;
use crate::commands::report::{Args, standing};
use crate::cost::findings::replayed::is_told;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::findings::{BillEvidence, ReplayedSetting, levers};
use crate::cost::page::Page;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::trace::Millis;
use crate::rules::claude;
use crate::settings::claude::levers::{Lever, Levers};
use crate::shell::context::Context;
use crate::shell::window;
use crate::shell::window::ALL;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::client::study;
use crate::whatif::sim::params::Assigned;
use crate::whatif::simulation::Simulation;
use crate::whatif::tools::Tools;
use crate::whatif::workload::{Workload, oracle};

/// Opens the logs.
///
/// # Errors
/// If there is none; the error lists the places looked at.
pub fn input(args: &Args, context: &mut Context<'_>) -> Result<Input> {
    let input = args.asked.read(0, Some(TimelineDetail::default()), context)?;
    input.expect_records(&args.asked.input)?;
    Ok(input)
}

/// Cuts the page to its last days if no window was asked for and there are more: up to the newest request, or up to now if a
/// clock ran ahead. Whether it was cut.
///
/// # Errors
/// None of its own.
pub fn cut(args: &Args, sheet: &FindingThresholds, input: &mut Input, now_ms: Millis) -> Result<bool> {
    let is_asked =
        args.asked.window.since.is_some() || args.asked.window.until.is_some() || args.asked.window.days.is_some();
    if is_asked {
        return Ok(false);
    }
    let overview = input.overview()?;
    let Some((first, last)) = overview.span_ms else { return Ok(false) };
    let last = overview.newest_message_ms.unwrap_or(last);
    let start = window::days_before(last.min(now_ms), sheet.days);
    if start <= first || start > last {
        return Ok(false);
    }
    input.window = start..ALL.end;
    Ok(true)
}

/// Days that the page is about: from the beginning of its window, or of the logs if they begin later, to its last request.
///
/// # Errors
/// None of its own.
pub fn days(page: &Page, is_cut: bool, input: &mut Input) -> Result<i64> {
    let mut start = input.window.start;
    if start == ALL.start {
        return Ok(page.spent.span_days);
    }
    // Where logs were left out for being older, they begin before it.
    if !is_cut && input.tally.pruned == 0 {
        let asked = std::mem::replace(&mut input.window, ALL);
        let overview = input.overview();
        input.window = asked;
        start = overview?.span_ms.map_or(start, |(first, _)| first.max(start));
    }
    Ok(page.spent.days_from(start).unwrap_or(page.spent.span_days))
}

/// Replays what the page asks and makes it, to be drawn or not.
///
/// # Errors
/// If a data file does not fit.
pub fn page(input: &mut Input, is_drawn: bool, now_ms: Millis) -> Result<Page> {
    let sheet = FindingThresholds::load(&input.data)?;
    let levers = Levers::load(&input.data)?;
    let asked =
        sheet.replays(|_, _| true).into_iter().map(|(policy, _)| Stack::parse(&policy)).collect::<Result<Vec<_>>>()?;
    let words = asked.iter().any(Stack::asks_for_tools);
    let timeline = input.timeline(TimelineDetail { tokens: false, words })?;
    let configs = PolicyConfigs::load(&input.data)?;
    let tools = Tools::read(&[], &input.data)?;
    let workload = Workload::new(timeline, None, &input.data, false, true)?;
    let cache = oracle(&configs)?;
    input.pool.install(|| {
        let simulation = Simulation::new(&workload, &tools, &cache, None);
        let mut study = study(&simulation.simulator, &workload, &input.data, None, &[])?;
        study.versions = clients::of(&workload.timeline, None, &input.data, now_ms)?;
        let paying = claude::paying(&study, &workload.cells.resampling, &input.data)?;
        let is_told = is_told(&paying);
        // A curve has every value.
        let wanted = sheet.replays(|setting, value| is_drawn || is_told(setting, value));
        // One after the other is handed to whoever is free: split in halves, the longest one would come last.
        let numbered = wanted.iter().enumerate().par_bridge();
        let mut replays: Vec<(usize, ReplayedSetting)> = numbered
            .map(|(place, (policy, set))| Ok((place, replay(&simulation, &configs, policy, set)?)))
            .collect::<Result<_>>()?;
        replays.sort_by_key(|(place, _)| *place);
        let replays: Vec<ReplayedSetting> = replays.into_iter().map(|(_, replay)| replay).collect();
        let evidence = BillEvidence {
            workload: &workload,
            simulator: &simulation.simulator,
            billed_usd: simulation.billed.cost.nano_usd as f64 / 1e9,
            apart: &simulation.apart,
            replays: &replays,
            levers: &levers,
            study: &study,
            paying: &paying,
            sheet: &sheet,
        };
        Ok(Page::of(&evidence, &simulation.accuracy, is_drawn))
    })
}

/// Says what is to be set, as far as the clients in use know it, and where the user's file decides already. A file that cannot
/// be read decides nothing.
///
/// # Errors
/// If a data file does not fit.
pub fn settle(page: &mut Page, args: &Args, input: &Input, context: &mut Context<'_>) -> Result<()> {
    if page.findings.iter().all(|finding| finding.to_set.is_none()) {
        return Ok(());
    }
    let versions = clients::in_use(&args.asked, (input, page.versions.clone()), None, context)?;
    let layers = standing::layers(page, context).ok().flatten();
    let holds = |lever: &Lever| layers.as_ref().is_some_and(|layers| layers.holds(lever).unwrap_or_default());
    levers::settle(&mut page.findings, &Levers::load(&input.data)?, &versions, holds);
    Ok(())
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
