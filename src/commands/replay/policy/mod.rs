//! `devboy what-if POLICY` (and `replay --policy`): what another context policy would have saved, cost and broken.

mod args;
mod show;
mod telemetry;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::commands::input::QuestionArgs;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::logs::timeline::requests::Timeline;
use crate::replay::input::ReplayInput;
use crate::replay::reach::{Reach, Reaches};
use crate::report::numbers::counted as counted_noun;
use crate::settings::formats::{load_config, vocabularies};
use crate::settings::{Effective, Settings};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::arg_check::checked as arg_check;
use crate::whatif::chosen::{Policy, PolicyConfigs, StackRow, asked};
use crate::whatif::pipeline::replayed::ReplayedLayers;
use crate::whatif::report::PolicyReport;
use crate::whatif::sim::cells::correct;
use crate::whatif::sim::params::Assigned;
use crate::whatif::sim::sizes::Estimator;
use crate::whatif::simulation::Simulation;
use crate::whatif::tools::Tools;
use crate::whatif::workload::{NO_USAGE, Workload};
use crate::whatif::{requests, sweep};

pub use args::PolicyArgs;

/// The flags of `devboy replay` that a policy looks at.
pub struct Flags<'a> {
    /// Which policy, several joined by `+`, or `all`.
    pub name: &'a str,
    /// Its own.
    pub policy: &'a PolicyArgs,
    /// A file of parameters.
    pub config: Option<&'a PathBuf>,
    /// Who runs the pipeline; none: whoever can change everything.
    pub reach: Option<&'a str>,
    /// `KEY=A,B,…`
    pub sweep: &'a [String],
    /// Which logs, and how results are shown.
    pub asked: &'a QuestionArgs,
}

/// Reads, simulates the log, simulates the policies, shows.
pub fn run(flags: &Flags<'_>, context: &mut Context<'_>) -> Result<Exit> {
    let data = Data::new(flags.asked.input.rules_dir.as_deref())?;
    let rows = crate::whatif::chosen::rows(flags.name, &flags.policy.compare, &data)?;
    check(flags, &rows)?;
    if flags.policy.from_telemetry {
        return telemetry::run(flags, &rows, context);
    }
    // What makes no sense is refused before anything is read.
    let shipped = PolicyConfigs::load(&data)?;
    let sheets = sheets(flags, &rows, &shipped)?;
    rows.iter().try_for_each(|row| sheets.with(row)?.check(&row.stack.0))?;
    // Only the pipeline needs to know what is in the results.
    let layered = rows.iter().any(|row| row.stack.has(Policy::Pipeline));
    let settings = layered.then(|| settings(context)).transpose()?;
    let detail = detail(flags, &rows)?;
    let tier = settings.as_ref().map_or(0, |settings| vocabularies(settings, None));
    let mut input = flags.asked.read_for_timeline(tier, detail, context)?;
    input.expect_records(&flags.asked.input)?;
    input.report_holds(Holds::FirstChunks)?;
    let reach = flags.reach.map(|id| Reaches::choose(Some(id), &input.data)).transpose()?;
    let reach = reach.map(|reaches| reaches.chosen().clone());
    let tools = tools(flags, &rows, &mut input)?;
    let timeline = input.timeline(detail)?;
    // Arguments can be checked without any usage.
    let checks_whole_logs = input.window == window::ALL && rows.iter().any(|row| checks_arguments(flags, row));
    if timeline.requests.is_empty() && !checks_whole_logs && !flags.asked.input.allow_empty {
        return Err(no_requests(&timeline, &mut input));
    }
    if let Some(path) = &flags.policy.per_request {
        check_output(path, &input)?;
    }
    let replayed = settings.map(|settings| replayed(&mut input, &timeline, &settings, reach.as_ref())).transpose()?;
    let estimator = flags.policy.estimator.as_deref();
    let workload = Workload::new(timeline, estimator, &input.data, flags.policy.strict_pricing, true)?;
    let workload = Workload { with_output: flags.policy.include_output.is_some(), ..workload };
    let cache = crate::whatif::workload::oracle(&shipped)?;
    let simulation = input.pool.install(|| Simulation::new(&workload, &tools, &cache, replayed.as_ref()));
    match flags.sweep.is_empty() {
        true => replay_rows(flags, &rows, (&simulation, &sheets), &mut input, context),
        false => replay_sweep(flags, &rows, (&simulation, &sheets), &input, context),
    }
}

/// Every value asked for, each against the log.
fn replay_sweep(
    flags: &Flags<'_>,
    rows: &[StackRow],
    (simulation, sheets): (&Simulation<'_>, &PolicyConfigs),
    input: &Input,
    context: &mut Context<'_>,
) -> Result<Exit> {
    let counted = simulation.workload.counted(input.sources.len() as u64);
    let mut swept = input.pool.install(|| sweep::run(flags.sweep, simulation, sheets, rows, &counted))?;
    correct(swept.cells.iter_mut().flat_map(|cell| &mut cell.report.cells), &simulation.workload.cells);
    check_prices(flags, swept.cells.iter().map(|cell| &cell.report))?;
    input.tell(&flags.asked.output, context)?;
    show::sweep(flags, &swept, input, context)?;
    Ok(Exit::Done)
}

/// Every policy asked for, once.
fn replay_rows(
    flags: &Flags<'_>,
    rows: &[StackRow],
    (simulation, sheets): (&Simulation<'_>, &PolicyConfigs),
    input: &mut Input,
    context: &mut Context<'_>,
) -> Result<Exit> {
    let counted = simulation.workload.counted(input.sources.len() as u64);
    let one = |row: &StackRow| {
        let sheets = sheets.with(row)?;
        let report = match row.stack.has(Policy::ArgCheck) {
            true if checks_arguments(flags, row) => {
                arg_check::report(input, simulation.workload, &sheets, simulation.tools)?
            }
            true => arg_check::put_off(),
            false => simulation.report(&sheets, &row.stack, row.is_named)?,
        };
        let report = PolicyReport { policy: row.name.clone(), ..report };
        let report = if flags.policy.per_session { report } else { report.without_sessions() };
        simulation.framed(report, counted.clone(), &sheets)
    };
    let mut reports: Vec<PolicyReport> =
        input.pool.install(|| rows.par_iter().with_max_len(1).map(one).collect::<Result<_>>())?;
    correct(reports.iter_mut().flat_map(|report| &mut report.cells), &simulation.workload.cells);
    check_prices(flags, reports.iter())?;
    if flags.policy.show_content {
        requests::add(&mut reports, input);
    }
    if let Some(path) = &flags.policy.per_request {
        requests::write(path, simulation, sheets, rows.iter().zip(&reports))?;
    }
    input.tell(&flags.asked.output, context)?;
    show::tell(flags, &mut reports, input);
    show::show(flags, &reports, Some(input), context)?;
    Ok(Exit::Done)
}

/// Definitions of tools, from the logs where a row was asked for that needs them.
fn tools(flags: &Flags<'_>, rows: &[StackRow], input: &mut Input) -> Result<Tools> {
    let mut tools = Tools::read(&flags.policy.tool_catalog, &input.data)?;
    tools.provider = flags.policy.provider;
    if rows.iter().any(|row| row.is_named && row.stack.asks_for_tools()) {
        tools.look_in(input);
    }
    Ok(tools)
}

/// The configuration of the pipeline.
fn settings(context: &Context<'_>) -> Result<Settings> {
    Ok(Effective::resolve(&load_config(&config_path(None, context)?, false)?)?.settings)
}

/// Whether a row reads the logs for arguments: not as one of many, unless the user brings schemas.
fn checks_arguments(flags: &Flags<'_>, row: &StackRow) -> bool {
    row.stack.has(Policy::ArgCheck) && (row.is_named || !flags.policy.tool_catalog.is_empty())
}

/// Flags of which nothing would come.
fn check(flags: &Flags<'_>, rows: &[StackRow]) -> Result<()> {
    let asks = rows.iter().any(|row| row.stack.asks_for_tools());
    let about_tools =
        [("--tool-catalog", !flags.policy.tool_catalog.is_empty()), ("--provider", flags.policy.provider.is_some())];
    if let Some((flag, _)) = about_tools.iter().find(|(_, is_given)| *is_given && !asks) {
        return Err(Error::usage(format!("{flag} says something about tools, which no policy here looks at"))
            .hint("add tool-filter, pick-tools or arg-check, or leave it out"));
    }
    if flags.reach.is_some() && !rows.iter().any(|row| row.stack.has(Policy::Pipeline)) {
        return Err(Error::usage("--reach says who runs the pipeline, which no policy here looks at")
            .hint("add pipeline, or leave it out"));
    }
    let policy = flags.policy;
    let of_logs = [
        ("--sweep", !flags.sweep.is_empty()),
        ("--per-request", policy.per_request.is_some()),
        ("--include-output", policy.include_output.is_some()),
        ("--strict-pricing", policy.strict_pricing),
        ("--estimator", policy.estimator.is_some()),
    ];
    if let Some((flag, _)) = of_logs.iter().find(|(_, is_given)| *is_given && policy.from_telemetry) {
        return Err(Error::usage(format!("{flag} works with logs only")).hint("leave it or --from-telemetry out"));
    }
    let of_runs = [
        ("--per-request", policy.per_request.is_some()),
        ("--per-session", policy.per_session),
        ("--explain", policy.explain),
        ("--show-content", policy.show_content),
    ];
    match of_runs.iter().find(|(_, is_given)| *is_given && !flags.sweep.is_empty()) {
        Some((flag, _)) => Err(Error::usage(format!("{flag} is about one run, --sweep makes many"))
            .hint("sweep first, then replay the value that you like")),
        None => Ok(()),
    }
}

/// A file that requests can be written to: not one of the logs, and nothing but a file.
fn check_output(path: &Path, input: &Input) -> Result<()> {
    let place = path.shown();
    let same = |log: &Path| path.canonicalize().is_ok_and(|path| log.canonicalize().is_ok_and(|log| log == path));
    if input.sources.iter().filter_map(|source| source.path.as_deref()).any(same) {
        return Err(Error::usage(format!("--per-request {place}: that is one of the logs")).hint("name another file"));
    }
    let is_odd = path == Path::new("-") || path.metadata().is_ok_and(|found| !found.is_file());
    if is_odd {
        return Err(Error::usage(format!("--per-request {place}: that is no file")).hint("name a file to be written"));
    }
    Ok(())
}

/// With --strict-pricing every token of every run must have a price.
fn check_prices<'r>(flags: &Flags<'_>, reports: impl Iterator<Item = &'r PolicyReport>) -> Result<()> {
    if !flags.policy.strict_pricing {
        return Ok(());
    }
    for report in reports.filter(|report| report.not_estimated.is_none()) {
        let Some((model, sides)) = report.outcome.as_ref().and_then(|outcome| outcome.unpriced().next()) else {
            continue;
        };
        let tokens = counted_noun(sides.unpriced_tokens(), "token");
        let message = format!("{}: no price for {tokens} of {model}", report.policy);
        return Err(Error::failed(message)
            .hint("add the price to a prices.toml of your own (--rules-dir), or leave --strict-pricing out"));
    }
    Ok(())
}

fn no_requests(timeline: &Timeline, input: &mut Input) -> Error {
    match timeline.skipped.get(NO_USAGE) {
        Some(count) => Error::failed(format!("none of the {} in the window has usage", counted_noun(*count, "answer")))
            .hint("nothing can be priced without it; arg-check needs none; --allow-empty makes this no error"),
        None => input.nothing_in_window("requests to a model"),
    }
}

/// What the rows need: tokens of blocks for their sizes or to hold tokenizers against the bill, words to choose tools.
fn detail(flags: &Flags<'_>, rows: &[StackRow]) -> Result<TimelineDetail> {
    let estimator = flags.policy.estimator.as_deref().map(crate::whatif::workload::estimator_of).transpose()?;
    let by_vocabulary = matches!(estimator, Some(Estimator::Cl100k | Estimator::O200k));
    let tokens = by_vocabulary || rows.iter().any(|row| row.is_named && row.stack.has(Policy::PromptCache));
    Ok(TimelineDetail { tokens, words: rows.iter().any(|row| row.stack.asks_for_tools()) })
}

/// The sheets with everything that was set.
fn sheets(flags: &Flags<'_>, rows: &[StackRow], shipped: &PolicyConfigs) -> Result<PolicyConfigs> {
    let (mut sheets, asked) = (shipped.clone(), asked(rows));
    for setting in flags.config.map_or_else(|| Ok(Vec::new()), |path| crate::whatif::chosen::settings_of(path))? {
        sheets.set_from_file(&setting, &asked)?;
    }
    let mut settings = Vec::new();
    let short = [("prompt-cache.ttl", &flags.policy.ttl, "--ttl"), ("compaction.tier", &flags.policy.tier, "--tier")];
    for (key, value, flag) in short {
        if let Some(value) = value {
            settings.push(Assigned::parse(&format!("{key}={value}"), flag)?);
        }
    }
    for text in &flags.policy.set {
        settings.push(Assigned::parse(text, format!("--set {text}"))?);
    }
    for setting in &settings {
        sheets.set(setting, &asked)?;
    }
    Ok(sheets)
}

/// What the layers would have sent, from an input whose bodies nobody has taken yet.
fn replayed(
    input: &mut Input,
    timeline: &Timeline,
    settings: &Settings,
    reach: Option<&Reach>,
) -> Result<ReplayedLayers> {
    let laid = ReplayInput::new(None, input)?;
    Ok(ReplayedLayers::new(input, &laid, timeline, settings, reach))
}
