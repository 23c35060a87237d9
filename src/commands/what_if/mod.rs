//! `devboy what-if POLICY` (and `replay --policy`): what another context policy would have saved, cost and broken.

mod args;
mod show;
mod telemetry;

use std::path::PathBuf;

use rayon::prelude::*;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::commands::config::{usual_file, warn_unknown};
use crate::commands::input::QuestionArgs;
use crate::frames::input::Input;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::logs::overview::Holds;
use crate::logs::timeline::requests::{NO_USAGE, Timeline};
use crate::replay::input::ReplayInput;
use crate::replay::reach::Reaches;
use crate::report::numbers::counted as counted_noun;
use crate::report::table::TableFormat;
use crate::settings::formats::vocabularies;
use crate::settings::{Effective, expect_place};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::chosen::{Policy, PolicyConfigs, StackRow, asked, unread};
use crate::whatif::pipeline::replayed::ReplayedLayers;
use crate::whatif::report::PolicyReport;
use crate::whatif::sim::cells::correct;
use crate::whatif::sim::params::Assigned;
use crate::whatif::sim::sizes::Estimator;
use crate::whatif::simulation::Simulation;
use crate::whatif::sweep::{SweepGrid, cell_configs};
use crate::whatif::tools::Tools;
use crate::whatif::workload::Workload;
use crate::whatif::{arg_check, requests, sweep};

pub use args::PolicyArgs;

/// Simulate the requests of your logs under another policy for contexts: what it saves, costs and breaks. Nothing is sent.
///
/// Policies: prompt-cache, compaction, history-trim, tool-filter, pick-tools, pipeline, arg-check, several joined by `+`,
/// or all.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Which policy: see above.
    #[arg(value_name = "POLICY", default_value = "all")]
    pub policy: String,
    /// A file of parameters.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Replay once for each value; several keys make a grid: `--sweep compaction.window=150000,200000`.
    #[arg(long, value_name = "KEY=A,B,…")]
    pub sweep: Vec<String>,
    /// Of `pipeline`: who runs it, host, hook or gateway (the default).
    #[arg(long, value_name = "NAME")]
    pub reach: Option<String>,
    /// How the policy is set.
    #[command(flatten)]
    pub setting: PolicyArgs,
    /// Which logs, and how results are shown.
    #[command(flatten)]
    pub asked: QuestionArgs,
}

/// Reads, simulates the log, simulates the policies, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let data = Data::new(args.asked.input.rules_dir.as_deref())?;
    let rows = crate::whatif::chosen::rows(&args.policy, &args.setting.compare, &data)?;
    check(args, &rows)?;
    if args.setting.from_telemetry {
        return telemetry::run(args, &rows, context);
    }
    // What makes no sense is refused before anything is read.
    let shipped = PolicyConfigs::load(&data)?;
    let grid = SweepGrid::parse(&args.sweep)?;
    let sheets = sheets(args, &rows, &shipped, &grid.cells[0])?;
    rows.iter().try_for_each(|row| sheets.with(row)?.check(&row.stack.0))?;
    // Only the pipeline needs to know what is in the results.
    let layered = rows.iter().any(|row| row.stack.has(Policy::Pipeline));
    let file = layered.then(|| usual_file(context)).transpose()?;
    if let Some(file) = file.as_ref().filter(|_| !args.asked.output.quiet) {
        warn_unknown(file, context)?;
    }
    let settings = file.as_ref().map(Effective::resolve).transpose()?.map(|effective| effective.settings);
    let detail = detail(args, &rows, &sheets)?;
    let tier = settings.as_ref().map_or(0, |settings| vocabularies(settings, None));
    let mut input = args.asked.read(tier, Some(detail), context)?;
    input.expect_records(&args.asked.input)?;
    input.report_holds(Holds::FirstChunks)?;
    let reach = args.reach.as_deref().map(|id| Reaches::choose(Some(id), &input.data)).transpose()?;
    let reach = reach.map(|reaches| reaches.chosen().clone());
    input.notes.extend(unread_settings(&rows, &grid, &sheets)?);
    let tools = tools(args, &rows, &mut input)?;
    let timeline = if layered { input.timeline(detail)? } else { input.last_timeline(detail)? };
    // Arguments can be checked without any usage.
    let checks_whole_logs = input.window == window::ALL && rows.iter().any(|row| checks_arguments(args, row));
    if timeline.requests.is_empty() && !checks_whole_logs && !args.asked.input.allow_empty {
        return Err(no_requests(&timeline, &mut input));
    }
    // What the layers would have sent: nobody has taken the bodies yet.
    let replayed = match &settings {
        Some(settings) => {
            let source = ReplayInput::with_ids(None, &mut input)?;
            Some(ReplayedLayers::new(&input, &source, &timeline, settings, reach.as_ref()))
        }
        None => None,
    };
    let estimator = args.setting.estimator.as_deref();
    let workload = Workload::new(timeline, estimator, &input.data, args.setting.strict_pricing, true)?;
    let workload = Workload { with_output: args.setting.include_output.is_some(), ..workload };
    let cache = crate::whatif::workload::cache_rules(&shipped)?;
    let simulation = input.pool.install(|| Simulation::new(&workload, &tools, &cache, replayed.as_ref()));
    match args.sweep.is_empty() {
        true => replay_rows(args, &rows, (&simulation, &sheets), &mut input, context),
        false => replay_sweep(args, (&rows, &grid), (&simulation, &sheets), &input, context),
    }
}

/// Every value asked for, each against the log.
fn replay_sweep(
    args: &Args,
    (rows, grid): (&[StackRow], &SweepGrid),
    (simulation, sheets): (&Simulation<'_>, &PolicyConfigs),
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    let counted = simulation.workload.counted(input.sources.len() as u64);
    let mut cells = input.pool.install(|| sweep::run(grid, simulation, sheets, rows, &counted))?;
    correct(cells.iter_mut().flat_map(|cell| &mut cell.report.cells), &simulation.workload.cells);
    check_prices(args, cells.iter().map(|cell| &cell.report))?;
    input.tell(&args.asked.output, context)?;
    show::sweep(args, (&grid.keys, &mut cells), input, context)
}

/// Every policy asked for, once.
fn replay_rows(
    args: &Args,
    rows: &[StackRow],
    (simulation, sheets): (&Simulation<'_>, &PolicyConfigs),
    input: &mut Input,
    context: &mut Context<'_>,
) -> Result<()> {
    let counted = simulation.workload.counted(input.sources.len() as u64);
    let one = |row: &StackRow| {
        let sheets = sheets.with(row)?;
        let report = match row.stack.has(Policy::ArgCheck) {
            true if checks_arguments(args, row) => {
                arg_check::report(input, simulation.workload, &sheets, simulation.tools)?
            }
            true => arg_check::put_off(),
            false => simulation.report(&sheets, &row.stack, row.is_named)?,
        };
        let report = PolicyReport { policy: row.name.clone(), ..report };
        let report = if args.setting.per_session { report } else { report.without_sessions() };
        simulation.framed(report, counted.clone(), &sheets)
    };
    let mut reports: Vec<PolicyReport> =
        input.pool.install(|| rows.par_iter().with_max_len(1).map(one).collect::<Result<_>>())?;
    correct(reports.iter_mut().flat_map(|report| &mut report.cells), &simulation.workload.cells);
    check_prices(args, reports.iter())?;
    if args.setting.show_content {
        requests::add(&mut reports, input);
    }
    if let Some(path) = &args.setting.per_request {
        let names = args.setting.redact.then_some(&context.pseudonyms);
        let lines = requests::lines(simulation, sheets, rows.iter().zip(&reports), names)?;
        context.write_file(path, lines, args.asked.output.quiet)?;
    }
    input.tell(&args.asked.output, context)?;
    show::tell(args, &mut reports, input);
    show::show(args, &mut reports, Some(input), context)
}

/// Definitions of tools, from the logs where a row was asked for that needs them.
fn tools(args: &Args, rows: &[StackRow], input: &mut Input) -> Result<Tools> {
    let mut tools = Tools::read(&args.setting.tool_catalog, &input.data)?;
    tools.provider = args.setting.provider;
    if rows.iter().any(|row| row.is_named && row.stack.asks_for_tools()) {
        tools.look_in(input);
    }
    Ok(tools)
}

/// Whether a row reads the logs for arguments: not as one of many, unless the user brings schemas.
fn checks_arguments(args: &Args, row: &StackRow) -> bool {
    row.stack.has(Policy::ArgCheck) && (row.is_named || !args.setting.tool_catalog.is_empty())
}

/// Args of which nothing would come.
fn check(args: &Args, rows: &[StackRow]) -> Result<()> {
    let asks = rows.iter().any(|row| row.stack.asks_for_tools());
    let about_tools =
        [("--tool-catalog", !args.setting.tool_catalog.is_empty()), ("--provider", args.setting.provider.is_some())];
    if let Some((flag, _)) = about_tools.iter().find(|(_, is_given)| *is_given && !asks) {
        return Err(Error::usage(format!("{flag} says something about tools, which no policy here looks at"))
            .hint("add tool-filter, pick-tools or arg-check, or leave it out"));
    }
    if args.reach.is_some() && !rows.iter().any(|row| row.stack.has(Policy::Pipeline)) {
        return Err(Error::usage("--reach says who runs the pipeline, which no policy here looks at")
            .hint("add pipeline, or leave it out"));
    }
    let policy = &args.setting;
    policy.per_request.as_deref().map_or(Ok(()), expect_place)?;
    let of_logs = [
        ("--sweep", !args.sweep.is_empty()),
        ("--per-request", policy.per_request.is_some()),
        ("--include-output", policy.include_output.is_some()),
        ("--strict-pricing", policy.strict_pricing),
        ("--estimator", policy.estimator.is_some()),
        ("--alias", policy.alias.is_some()),
    ];
    if let Some((flag, _)) = of_logs.iter().find(|(_, is_given)| *is_given && policy.from_telemetry) {
        return Err(Error::usage(format!("{flag} works with logs only")).hint("leave it or --from-telemetry out"));
    }
    let of_runs = [
        ("--per-request", policy.per_request.is_some()),
        ("--per-session", policy.per_session),
        ("--alias", policy.alias.is_some()),
        ("--explain", policy.explain),
        ("--show-content", policy.show_content),
    ];
    if let Some((flag, _)) = of_runs.iter().find(|(_, is_given)| *is_given && !args.sweep.is_empty()) {
        return Err(Error::usage(format!("{flag} is about one run, --sweep makes many"))
            .hint("sweep first, then replay the value that you like"));
    }
    if policy.alias.is_none() {
        return Ok(());
    }
    if !rows.iter().any(|row| row.is_named && row.stack.has(Policy::PromptCache)) {
        return Err(Error::usage("--alias tells figures of the cache").hint("ask for `prompt-cache`"));
    }
    match args.asked.output.form() {
        TableFormat::Csv | TableFormat::Md => Err(Error::usage("--alias prints JSON").hint("leave out --format")),
        TableFormat::Json | TableFormat::Table => Ok(()),
    }
}

/// With --strict-pricing every token of every run must have a price.
fn check_prices<'r>(args: &Args, reports: impl Iterator<Item = &'r PolicyReport>) -> Result<()> {
    if !args.setting.strict_pricing {
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
        Some(count) => {
            Error::failed(format!("none of the {} in the window has usage", counted_noun(*count, "message")))
                .hint("nothing can be priced without it; arg-check needs none; --allow-empty makes this no error")
        }
        None => input.nothing_in_window("requests to a model"),
    }
}

/// What the rows need: tokens of blocks for their sizes or to hold tokenizers against the bill, words to choose tools.
fn detail(args: &Args, rows: &[StackRow], sheets: &PolicyConfigs) -> Result<TimelineDetail> {
    let estimator = args.setting.estimator.as_deref().map(crate::whatif::workload::estimator_of).transpose()?;
    let by_vocabulary = matches!(estimator, Some(Estimator::Cl100k | Estimator::O200k));
    let tokens = by_vocabulary || rows.iter().any(|row| row.is_named && row.stack.has(Policy::PromptCache));
    let mut words = TextWords::None;
    for row in rows {
        words = words.max(row.stack.words(&sheets.with(row)?)?);
    }
    // What is swept may ask for more than its first value.
    let is_swept = !args.sweep.is_empty() && rows.iter().any(|row| row.stack.asks_for_tools());
    Ok(TimelineDetail { tokens, words: if is_swept { TextWords::All } else { words }, values: false })
}

/// The sheets with everything that was set; what is `swept` is set in no other way.
fn sheets(args: &Args, rows: &[StackRow], shipped: &PolicyConfigs, swept: &[Assigned]) -> Result<PolicyConfigs> {
    let (mut sheets, asked) = (shipped.clone(), asked(rows));
    for setting in
        args.config.as_ref().map_or_else(|| Ok(Vec::new()), |path| crate::whatif::chosen::settings_of(path))?
    {
        sheets.set_from_file(&setting, &asked)?;
    }
    let mut settings = Vec::new();
    let short = [("prompt-cache.ttl", &args.setting.ttl, "--ttl"), ("compaction.tier", &args.setting.tier, "--tier")];
    for (key, value, flag) in short {
        if let Some(value) = value {
            settings.push(Assigned::parse(&format!("{key}={value}"), flag)?);
        }
    }
    for text in &args.setting.set {
        settings.push(Assigned::parse(text, format!("--set {text}"))?);
    }
    let given: Vec<&Assigned> = settings.iter().chain(swept).collect();
    for (at, later) in given.iter().enumerate() {
        // The name of the policy may be left out.
        let is_same = |one: &&&Assigned| one.key.ends_with(&later.key) || later.key.ends_with(&one.key);
        if let Some(first) = given[..at].iter().find(is_same) {
            return Err(
                Error::usage(format!("{} and {} are both given", later.place, first.place)).hint("leave one out")
            );
        }
    }
    for setting in &settings {
        sheets.set(setting, &asked)?;
    }
    Ok(sheets)
}

/// What was set and is read in no run.
fn unread_settings(rows: &[StackRow], grid: &SweepGrid, sheets: &PolicyConfigs) -> Result<Vec<String>> {
    unread(rows.iter().flat_map(|row| {
        grid.cells.iter().map(move |cell| Ok((&row.stack, cell_configs(cell, &sheets.with(row)?, rows)?)))
    }))
}
