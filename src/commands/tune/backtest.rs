//! `devboy tune backtest`: how often what was known came true.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;

use crate::base::backtest::{BacktestNumbers, ForecastWeek, PromiseCoverage};
use crate::base::error::Result;
use crate::commands::config::config_path;
use crate::commands::input::QuestionArgs;
use crate::commands::responses::Wanted;
use crate::commands::tune::search;
use crate::commands::tune::writing::tell_first;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::trace::Millis;
use crate::mine::follow_ups::FollowUps;
use crate::mine::sizes::SizesBySession;
use crate::report::table::TableFormat;
use crate::rules::responses::Responses;
use crate::rules::{effects, mined_planners, statistics};
use crate::settings::Effective;
use crate::settings::claude::reversal::journal_of_all;
use crate::settings::entries::SettingsReach;
use crate::settings::formats::{load_config, vocabularies};
use crate::shell::context::Context;
use crate::whatif::backtest;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::client::{LeverPart, LeverTrials};
use crate::whatif::workload::{Workload, cache_rules};

/// Hold the statistics behind proposals against what came after them, week by week.
///
/// At every week of the logs: what the sessions before it say (bounds of follow-ups, sizes of results, the learned
/// table of the planner), judged on the sessions behind it. And what the rules would have written then, with the effect that
/// it was predicted to have, held against the next weeks. Rules read the same figures: a rule whose statistic fails proposes nothing.
/// Forecasts of the policies (what the cache reads, sizes after compactions) are judged by the week they are for.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration, whose links the planner follows. Default: $DEVBOY_CONFIG, else
    /// devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, judges, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let path = config_path(args.config.as_ref(), context)?;
    let file = load_config(&path, args.config.is_some())?;
    let settings = Effective::resolve(&file)?.settings;
    let detail = TimelineDetail { values: true, ..TimelineDetail::default() };
    let tier = vocabularies(&settings, None);
    let mut input = args.asked.read_calls(tier, Some(detail), Input::find_values, context)?;
    let numbers = statistics::numbers(&input.data)?;
    let (history, _) = input.named_history();
    let follow_ups = input.pool.install(|| FollowUps::of_history(&history, &numbers.links.lags));
    let sizes = SizesBySession::of_history(&history);
    let mut rows = input.pool.install(|| statistics::coverage(&follow_ups, &sizes, &numbers));
    rows.push(mined_planners::selective_coverage(file.clone(), &mut input, &numbers.backtest)?);
    let workload = Workload::new(input.timeline(detail)?, None, &input.data, false, true)?;
    rows.extend(input.pool.install(|| backtest::coverage(&workload, &input.data, &numbers.backtest))?);
    let effects = statistics::effects(&input.data)?;
    let changed = effects::changed(&journal_of_all(&path)?, SettingsReach::All);
    let of_settings = of_settings(&workload, &mut input, &numbers.backtest, &changed, context)?;
    drop(workload);
    rows.extend(input.pool.install(|| effects::rows(&of_settings, &numbers.backtest, &effects)));
    let responses = Responses::of_logs(&Wanted::of(&args.asked, input.window.clone(), &settings), input)?;
    rows.extend(effects::of_pipeline(&file, &responses, &context.pseudonyms)?);
    show(args, &rows, numbers.backtest.tolerance, &responses, context)
}

/// What the rules about Claude Code's settings would have predicted, and what came.
fn of_settings(
    workload: &Workload,
    input: &mut Input,
    numbers: &BacktestNumbers,
    changed: &[(Millis, LeverPart)],
    context: &Context<'_>,
) -> Result<BTreeMap<String, Vec<ForecastWeek>>> {
    if workload.timeline.requests.is_empty() {
        return Ok(BTreeMap::new());
    }
    let standing = search::standing(input, workload.timeline.models(None), context)?;
    let cache = cache_rules(&PolicyConfigs::load(&input.data)?)?;
    let simulator = workload.with_answers(&cache);
    let trials = || LeverTrials::new(&simulator, workload, &input.data, None, &standing).map(|trials| trials.study());
    let study = input.pool.install(trials)?;
    effects::attempts(&study, &input.data, numbers, changed)
}

fn show(
    args: &Args,
    rows: &[PromiseCoverage],
    tolerance: f64,
    responses: &Responses,
    context: &mut Context<'_>,
) -> Result<()> {
    let form = args.asked.output.form();
    if form == TableFormat::Json {
        responses.tell(&args.asked.output, context)?;
        let own = json!({ "statistics": statistics::json(rows) });
        return args.asked.output.write_json("tune backtest", responses.fields(own), context);
    }
    tell_first(&args.asked.output, &statistics::answer(rows, tolerance), true, context)?;
    responses.tell(&args.asked.output, context)?;
    statistics::table(rows).write(context.out, form, context.width)?;
    statistics::notes(tolerance).iter().try_for_each(|note| context.note(args.asked.output.quiet, note))
}
