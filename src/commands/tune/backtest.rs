//! `devboy tune backtest`: how often what was known came true.

use std::path::PathBuf;

use serde_json::json;

use crate::base::backtest::Coverage;
use crate::base::error::Result;
use crate::commands::config::{config_path, load_config};
use crate::commands::input::Input;
use crate::commands::replay::planner;
use crate::mine::follow_ups::FollowUps;
use crate::mine::in_progress::Holds;
use crate::mine::quality;
use crate::mine::sizes::Sizes;
use crate::report::envelope;
use crate::report::table::Format;
use crate::rules::{backtest_report, statistics, t1_tools};
use crate::shell::arguments::{Exit, InputArgs, OutputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::backtest;
use crate::whatif::simulation::Simulation;

/// Hold the statistics behind proposals against what came after them, week by week.
///
/// At every week of the logs: what the sessions before it say (bounds of follow-ups, sizes of answers, the learned
/// table of the planner), judged on the sessions behind it. Rules read the same figures: what does not cover is not
/// proposed. Forecasts of the policies (what the cache reads, sizes after compactions) are judged by the week they are
/// for.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration, whose links the planner follows. Default: $DEVBOY_CONFIG, else
    /// ~/.config/devboy/pipeline_config.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Reads, judges, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.config.as_ref(), context)?;
    let file = load_config(&path, args.config.is_some())?;
    let window = window::of(&args.window, context.now_ms)?;
    let mut input = Input::read_for_timeline(&args.input, window, 0, &args.output, context)?;
    input.expect_calls(&args.input)?;
    input.report_holds(Holds::Calls)?;
    let numbers = statistics::numbers(&input.data)?;
    let calls_min = t1_tools::calls_min(&input.data)?;
    let mut history = input.history();
    let mut names = input.corpus().names.clone();
    input.rename_aliases(&mut history, &mut names);
    let follow_ups = FollowUps::of_history(&history, &numbers.links.lags);
    let mut rows = statistics::coverage(&follow_ups, &Sizes::of_history(&history), calls_min, &numbers);
    rows.push(planner::selective_coverage(file, &mut input, &numbers.backtest)?);
    let world = Simulation::new(input.timeline(false)?, None, &input.data, false, true)?;
    rows.extend(input.pool.install(|| backtest::coverage(&world, &input.data, &numbers.backtest))?);
    input.tell(&args.output, context)?;
    show(args, &rows, numbers.backtest.tolerance, &input, context)?;
    Ok(Exit::Done)
}

fn show(args: &Args, rows: &[Coverage], tolerance: f64, input: &Input, context: &mut Context<'_>) -> Result<()> {
    let form = args.output.form();
    if form == Format::Json {
        let fields = json!({
            "window": input.window_json(),
            "inputs": input.json(),
            "data_quality": quality::json(&quality::of(&input.sources)),
            "statistics": backtest_report::json(rows),
        });
        let document = envelope::envelope("tune backtest", args.output.stamp(context), fields);
        return envelope::write(context.out, &document);
    }
    backtest_report::table(rows).write(context.out, form, context.width)?;
    if !args.output.quiet {
        backtest_report::notes(tolerance).iter().try_for_each(|note| writeln!(context.err, "# {note}"))?;
    }
    Ok(())
}
