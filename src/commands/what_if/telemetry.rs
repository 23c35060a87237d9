//! Policies over telemetry: what can be said without text and usage is said, the rest is refused.

use crate::base::error::{Error, Result};
use crate::commands::config::settings;
use crate::commands::responses::Wanted;
use crate::commands::what_if::{Args, sheets, show};
use crate::report::numbers::{counted, thousands};
use crate::rules::responses::Responses;
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::chosen::{PolicyConfigs, Stack, StackRow};
use crate::whatif::recorded;
use crate::whatif::report::{Fidelity, PolicyReport, TELEMETRY};
use crate::whatif::simulation::Simulation;
use crate::whatif::tools::Tools;
use crate::whatif::workload::{Workload, cache_rules};

/// Reads what the live pipeline recorded and replays what can be replayed on it.
pub fn run(args: &Args, rows: &[StackRow], context: &mut Context<'_>) -> Result<()> {
    let (told, refused): (Vec<&StackRow>, Vec<&StackRow>) = rows.iter().partition(|row| refusal(&row.stack).is_none());
    if let ([], Some(row)) = (told.as_slice(), refused.first()) {
        let why = refusal(&row.stack).unwrap_or_default();
        return Err(Error::usage(format!("{} says nothing about telemetry: {why}", row.name))
            .hint("leave --from-telemetry out: the logs have what is missing"));
    }
    let settings = settings(context)?;
    let window = window::of(&args.asked.window, context.now_ms)?;
    let wanted = Wanted::of(&args.asked, window, &settings);
    let mut responses = Responses::from_telemetry(&wanted, context)?;
    if responses.log.is_empty() && !args.asked.input.allow_empty {
        return Err(responses.nothing_found());
    }
    responses.tell(&args.asked.output, context)?;
    let sampled = sampled(&responses);
    sampled.iter().try_for_each(|note| context.note(args.asked.output.quiet, note))?;
    let shipped = PolicyConfigs::load(&responses.data)?;
    let sheets = sheets(args, rows, &shipped, &[])?;
    let tools = Tools::read(&args.setting.tool_catalog, &responses.data)?;
    let workload = Workload::new(recorded::timeline(&responses.log), Some("o200k"), &responses.data, false, false)?;
    let cache = cache_rules(&shipped)?;
    let simulation = Simulation::new(&workload, &tools, &cache, None);
    let mut reports = Vec::new();
    for row in told {
        let sheets = sheets.with(row)?;
        let report = simulation.report(&sheets, &row.stack, false)?;
        let mut report = PolicyReport { policy: row.name.clone(), ..report };
        report.notes.extend(sampled.clone());
        reports.push(simulation.framed(report, simulation.workload.counted(0), &sheets)?);
    }
    for row in refused {
        let not_estimated = refusal(&row.stack).map(str::to_owned);
        let fidelity = Fidelity { estimator: TELEMETRY.into(), ..Fidelity::default() };
        reports.push(PolicyReport { policy: row.name.clone(), not_estimated, fidelity, ..PolicyReport::default() });
    }
    show::show(args, &mut reports, None, context)
}

/// That a part of the responses was not recorded; none if all were.
fn sampled(responses: &Responses) -> Option<String> {
    let events = &responses.log.events;
    let stand_for: f64 = events.iter().map(|event| event.weight).sum();
    (stand_for.round() as u64 > events.len() as u64).then(|| {
        format!(
            "{} stand for {} responses (sampled): contexts were larger than shown here",
            counted(events.len() as u64, "event"),
            thousands(stand_for.round() as u64)
        )
    })
}

/// Why a stack cannot be replayed over telemetry.
fn refusal(stack: &Stack) -> Option<&'static str> {
    stack.0.iter().find_map(|policy| policy.entry().without_logs)
}
