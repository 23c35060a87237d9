//! `devboy planner` (and `replay --planner`): would prefetching have paid? Plans after every answer of the later sessions, judged by what
//! the agent did next.

mod judged;
mod learned;
pub mod paying;
mod sweep;
mod telemetry;

use std::path::PathBuf;

use serde_json::json;

use crate::base::backtest::{BacktestNumbers, Coverage};
use crate::base::error::{Error, Result};
use crate::base::names::Names;
use crate::base::visible::{Shown as _, visible};
use crate::commands::config::{config_path, load_config, warn_unknown};
use crate::commands::input::Input;
use crate::commands::replay::scenarios::Scenarios;
use crate::commands::replay::{Args, emit};
use crate::commands::replay_input::ReplayInput;
use crate::logs::history::History;
use crate::logs::trace::Millis;
use crate::logs::values::CallValues;
use crate::mine::in_progress::Holds;
use crate::mine::quality;
use crate::mine::runnable::Runnable;
use crate::planner::contexts::{Split, Told};
use crate::planner::intents::Intents;
use crate::planner::numbers::Numbers;
use crate::planner::report;
use crate::planner::report::PlannerReport;
use crate::planner::value_models::{Severity, ValueModels};
use crate::replay::Scenario;
use crate::report::envelope;
use crate::report::table::Format;
use crate::settings::{Settings, SettingsFile, what_if, write_private};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::log::EventLog;

/// The file with the numbers of the planner.
const NUMBERS: &str = "planner.toml";

/// How planners are judged.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct PlannerArgs {
    /// Learn from sessions up to this day, judge the later ones. Default: the first 70 % of the sessions.
    #[arg(long, value_name = "WHEN")]
    pub train_until: Option<String>,
    /// The planner whose sessions `--format csv` lists and whose prefetches --emit-telemetry records: published, configured,
    /// mined or selective.
    #[arg(long, value_name = "NAME")]
    pub arm: Option<String>,
    /// Write what the selective planner learned as TOML: the counts of each cell and the threshold.
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub write_selectivity: Option<PathBuf>,
    /// Also read the prompts: calls count for more whose fields the person named. Takes a reading of its own.
    #[arg(long)]
    pub intent: bool,
}

/// Everything that planners are judged on.
struct Stage {
    pub file: SettingsFile,
    pub settings: Settings,
    pub numbers: Numbers,
    pub history: History,
    pub values: CallValues,
    pub tools: Names,
    pub split: Split,
    /// By session: whether it is judged.
    pub judged: Vec<bool>,
    /// What the prompts name, where they were read.
    pub intents: Option<Intents>,
    /// Which calls can run with one argument, as the training sessions show.
    pub runnable: Runnable,
}

impl Stage {
    /// Learns from the sessions that began before `until`, else from the earlier ones.
    fn new(file: SettingsFile, input: &mut Input, until: Option<Millis>) -> Result<Self> {
        let numbers = input.data.read(NUMBERS, Numbers::parse)?;
        let mut history = input.history();
        let mut tools = input.corpus().names.clone();
        input.rename_aliases(&mut history, &mut tools);
        let values = input.values(&history);
        let split = match until {
            Some(until) => Split::by_time(&history, until),
            None => Split::by_share(&history, numbers.backtest.train_share),
        };
        let judged = split.trains.iter().map(|trains| !trains).collect();
        let settings = what_if(&file, &[])?;
        let runnable = Runnable::shipped(&input.data)?.learned(&history, &values, &tools, &split.trains);
        Ok(Self { settings, file, numbers, history, values, tools, split, judged, intents: None, runnable })
    }

    pub fn told(&self) -> Told<'_> {
        Told { history: &self.history, values: &self.values, tools: &self.tools }
    }
}

/// Reads, learns on the earlier sessions, judges on the later ones, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.config.as_ref(), context)?;
    let file = load_config(&path, args.config.is_some())?;
    let grid = sweep::Grid::parse(&args.sweep, &file)?;
    let window = window::of(&args.window, context.now_ms)?;
    // Events tell what answers cost, so that bodies have to be counted.
    let tier = if args.emit_telemetry.is_some() { Scenarios::load(args, context)?.tier() } else { 0 };
    let mut input = Input::read(&args.input, window, tier, &args.output, context)?;
    input.expect_calls(&args.input)?;
    input.report_holds(Holds::Calls)?;
    let until = args.planning.train_until.as_deref();
    let until = until.map(|text| window::end_of("--train-until", text, context.now_ms)).transpose()?;
    let mut stage = Stage::new(file, &mut input, until)?;
    if stage.split.judged() == 0 && !args.input.allow_empty {
        return Err(Error::failed("no session is left to be judged")
            .hint("name an earlier day with --train-until, or read more logs"));
    }
    let planners = learned::planners(&stage, &input.data)?;
    if args.planning.intent {
        let models = planners.iter().flat_map(|planner| planner.models.iter()).map(|(_, known)| &known.model);
        stage.intents = Some(Intents::new(&stage.history, &input.timeline(false)?, models));
    }
    input.tell(&args.output, context)?;
    tell(args, &stage, &planners, context)?;
    for planner in &planners {
        planner.models.accept()?;
    }
    if grid.is_empty() {
        let report = input.pool.install(|| judged::report(&stage, &planners, &input.data))?;
        if let (Some(path), Some((learned, numbers))) = (&args.planning.write_selectivity, &report.selectivity) {
            write_private(path, &learned.selectivity().to_toml(numbers))?;
        }
        if let Some(dir) = &args.emit_telemetry {
            let name = args.planning.arm.as_deref().unwrap_or(learned::CONFIGURED);
            let planner = named(&planners, |planner| planner.name, name)?;
            let scenarios = Scenarios::load(args, context)?;
            let laid = ReplayInput::new(None, &mut input)?;
            let scenario = emit::scenario(&scenarios, &laid);
            let mut log = laid.events(&scenario);
            input.pool.install(|| telemetry::add(&stage, planner, &laid, &scenario, &mut log));
            emit::write_log(dir, &log, &laid, args, context)?;
        }
        show(args, &report, &input, context)?;
    } else {
        let rows = input.pool.install(|| grid.run(&stage, &planners));
        grid.show(args, &rows, &input, context)?;
    }
    Ok(Exit::Done)
}

/// Adds to the events of the logs what the planner of a configuration would have fetched and declined in the later
/// sessions, judged by what the agent did next; tells how many sessions these are.
///
/// # Errors
/// If a data file or the value models do not fit.
pub fn shadow(
    file: &SettingsFile,
    input: &mut Input,
    laid: &ReplayInput,
    scenario: &Scenario,
    log: &mut EventLog,
) -> Result<u64> {
    let stage = Stage::new(file.clone(), input, None)?;
    let planner = learned::configured(&stage, &input.data)?;
    planner.models.accept()?;
    input.pool.install(|| telemetry::add(&stage, &planner, laid, scenario, log));
    Ok(stage.split.judged())
}

/// How much of what the selective planner would have fetched week by week, over the links of a configuration, was exactly
/// what came next.
///
/// # Errors
/// If a data file or the value models do not fit.
pub fn selective_coverage(file: SettingsFile, input: &mut Input, numbers: &BacktestNumbers) -> Result<Coverage> {
    let stage = Stage::new(file, input, None)?;
    let data = input.data.clone();
    input.pool.install(|| learned::selective_coverage(&stage, &data, numbers))
}

/// Tells which file holds, and what is odd about it and its value models.
fn tell(args: &Args, stage: &Stage, planners: &[learned::Planner], context: &mut Context<'_>) -> Result<()> {
    if args.output.quiet {
        return Ok(());
    }
    let file = &stage.file;
    let state = if file.existed { "" } else { " (does not exist: built-in values)" };
    writeln!(context.err, "# config: {}{state}", file.path.shown())?;
    warn_unknown(file, context)?;
    let configured = planners.iter().find(|planner| planner.name == learned::CONFIGURED);
    configured.map_or(Ok(()), |planner| warn(&planner.models, context))
}

/// Warns about value models of the user; what is odd about shipped ones is known.
fn warn(models: &ValueModels, context: &mut Context<'_>) -> Result<()> {
    use crate::planner::value_models::Level;
    let of_user = models.problems.iter().filter(|problem| {
        let level = problem.source.as_ref().map(|source| source.level);
        problem.severity == Severity::Warning && matches!(level, Some(Level::User | Level::Wildcard))
    });
    for problem in of_user {
        let place = problem.source.as_ref().map(|source| format!("{}: ", source.place)).unwrap_or_default();
        writeln!(context.err, "# warning: {place}`{}` {}", problem.key, visible(&problem.message))?;
    }
    Ok(())
}

/// The planner with this name.
fn named<'p, T>(all: &'p [T], name_of: impl Fn(&'p T) -> &'p str, name: &str) -> Result<&'p T> {
    all.iter().find(|one| name_of(one) == name).ok_or_else(|| {
        let names = all.iter().map(name_of).collect::<Vec<_>>().join(", ");
        Error::usage(format!("there is no planner \"{name}\"")).hint(format!("planners: {names}"))
    })
}

fn show(args: &Args, planned: &PlannerReport, input: &Input, context: &mut Context<'_>) -> Result<()> {
    match args.output.form() {
        Format::Json => {
            let fields = json!({
                "window": input.window_json(),
                "inputs": input.json(),
                "data_quality": quality::json(&quality::of(&input.sources)),
                "planner": report::json(planned),
            });
            let document = envelope::envelope("replay --planner", args.output.stamp(context), fields);
            envelope::write(context.out, &document)
        }
        Format::Csv => {
            let arm =
                named(&planned.arms, |arm| &arm.name, args.planning.arm.as_deref().unwrap_or(learned::CONFIGURED))?;
            report::sessions(arm).write(context.out, Format::Csv, context.width)
        }
        form => {
            if form == Format::Md {
                writeln!(context.out, "## devboy replay --planner\n")?;
            }
            report::write(context.out, planned, form, context.width)
        }
    }
}
