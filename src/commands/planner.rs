//! `devboy planner` (and `replay --planner`): would prefetching have paid? Plans after every result of the later sessions,
//! judged by what the agent did next.

use std::path::PathBuf;

use serde_json::json;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::commands::config::{config_path, tell_file, warn_of_models};
use crate::commands::input::QuestionArgs;
use crate::commands::replay::emit;
use crate::frames::input::Input;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::planner::intents::Intents;
use crate::planner::report::{PlannerReport, PlannerSweepRow};
use crate::planner::stage::{CONFIGURED, MINED, PUBLISHED, Planner, PlannerStage, SELECTIVE, SweepGrid};
use crate::planner::value_models::{Level, Severity, ValueModels};
use crate::planner::{judged, report, trail};
use crate::replay::input::ReplayInput;
use crate::replay::scenarios::{ScenarioChanges, Scenarios};
use crate::replay::{ReplayOptions, Scenario};
use crate::report::table::TableFormat;
use crate::rules::mined_planners;
use crate::settings::formats::load_config;
use crate::settings::{expect_directory, expect_place};
use crate::shell::context::Context;
use crate::shell::window;

/// Replay the planner: what would have been prefetched, and would the agent have asked for exactly that?
///
/// It learns from the earlier sessions and is judged on the later ones, by what the agent did next.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration to replay. Default: $DEVBOY_CONFIG, else devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Replay once for each value; several keys make a grid.
    #[arg(long, value_name = "KEY=A,B,…", conflicts_with = "emit_telemetry")]
    pub sweep: Vec<String>,
    /// Write the events that the live pipeline would have recorded, names made anonymous, with what one planner (--arm)
    /// prefetched and declined in the judged sessions.
    #[arg(long, value_name = "DIR")]
    pub emit_telemetry: Option<PathBuf>,
    /// Also what the figures rest on, and all tables.
    #[arg(long)]
    pub explain: bool,
    /// How planners are judged.
    #[command(flatten)]
    pub planning: PlannerArgs,
    /// Which logs, and how results are shown.
    #[command(flatten)]
    pub asked: QuestionArgs,
}

/// How planners are judged.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct PlannerArgs {
    /// Learn from sessions up to this day, judge the later ones. Default: the first 70 % of the sessions.
    #[arg(long, value_name = "WHEN")]
    pub train_until: Option<String>,
    /// The planner whose sessions `--format csv` lists and whose prefetches --emit-telemetry records. Default: configured.
    #[arg(long, value_name = "NAME", value_parser = [PUBLISHED, CONFIGURED, MINED, SELECTIVE])]
    pub arm: Option<String>,
    /// Write what the selective planner learned as TOML: the counts of each cell and the threshold.
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub write_selectivity: Option<PathBuf>,
    /// Also read the prompts: calls count for more whose fields the person named. Takes a reading of its own.
    #[arg(long)]
    pub intent: bool,
}

/// Reads, learns on the earlier sessions, judges on the later ones, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    args.planning.write_selectivity.as_deref().map_or(Ok(()), expect_place)?;
    args.emit_telemetry.as_deref().map_or(Ok(()), expect_directory)?;
    let path = config_path(args.config.as_ref(), context)?;
    let file = load_config(&path, args.config.is_some())?;
    let grid = SweepGrid::parse(&args.sweep, &file)?;
    // Events tell what answers cost, so that bodies have to be counted.
    let data = || Data::new(args.asked.input.rules_dir.as_deref());
    let scenarios = || Scenarios::new(vec![file.clone()], &ScenarioChanges::default(), &data()?);
    let tier = if args.emit_telemetry.is_some() { scenarios()?.tier() } else { 0 };
    let detail = (tier > 0).then_some(TimelineDetail::VALUES);
    // Events are laid out of a history with its messages.
    let says = if args.emit_telemetry.is_some() { Input::find_values } else { PlannerStage::prepare };
    let mut input = args.asked.read_calls(tier, detail, says, context)?;
    // The published planner is one of those that are compared.
    input.find_taken();
    args.emit_telemetry.as_deref().map_or(Ok(()), |dir| input.expect_outside(dir))?;
    let until = args.planning.train_until.as_deref();
    let until = until.map(|text| window::end_of("--train-until", text, context.now_ms)).transpose()?;
    let mut stage = PlannerStage::new(file.clone(), &mut input, until)?;
    if stage.split.judged() == 0 && !args.asked.input.allow_empty {
        return Err(Error::failed("no session is left to be judged")
            .hint("name an earlier day with --train-until, or read more logs"));
    }
    let planners = input.pool.install(|| mined_planners::planners(&stage, &input.data))?;
    if args.planning.intent {
        let models = planners.iter().flat_map(|planner| planner.models.iter()).map(|(_, known)| &known.model);
        let detail = TimelineDetail { words: TextWords::OfPeople, ..TimelineDetail::default() };
        stage.intents = Some(Intents::new(&stage.history, &input.timeline(detail)?, models));
    }
    input.tell(&args.asked.output, context)?;
    tell(args, &stage, &planners, context)?;
    let chosen = named(&planners, |planner| planner.name, args.planning.arm.as_deref().unwrap_or(CONFIGURED))?;
    for planner in &planners {
        planner.models.accept()?;
    }
    if grid.is_empty() {
        let mut report = input.pool.install(|| judged::report(&stage, &planners));
        report.advice = mined_planners::advice(&stage, &report.arms, &input.data)?;
        if let (Some(path), Some((learned, numbers))) = (&args.planning.write_selectivity, &report.selectivity) {
            context.write_file(path, learned.selectivity().to_toml(numbers), args.asked.output.quiet)?;
        }
        if let Some(dir) = &args.emit_telemetry {
            let scenarios = scenarios()?;
            let source = ReplayInput::without_lines(&mut input)?;
            let scenario = Scenario::new(&scenarios.cells[0].settings, &source.tape, ReplayOptions::arm(false));
            let mut log = source.events(&scenario);
            input.pool.install(|| trail::add(&stage, chosen, &source, &scenario, &mut log));
            emit(dir, log, &source, stage.numbers.counted_by(), &args.asked, context)?;
        }
        show(args, &report, &input, context)?;
    } else {
        let rows = input.pool.install(|| grid.run(&stage, &planners));
        show_sweep(args, &grid.keys, &rows, &input, context)?;
    }
    Ok(())
}

/// Tells which file holds, and what is odd about it and its value models.
fn tell(args: &Args, stage: &PlannerStage, planners: &[Planner], context: &mut Context<'_>) -> Result<()> {
    if args.asked.output.quiet {
        return Ok(());
    }
    tell_file(&stage.file, context)?;
    let configured = planners.iter().find(|planner| planner.name == CONFIGURED);
    configured.map_or(Ok(()), |planner| warn(&planner.models, context))
}

/// Warns about value models of the user; what is odd about shipped ones is known.
fn warn(models: &ValueModels, context: &mut Context<'_>) -> Result<()> {
    let of_user = models.problems.iter().filter(|problem| {
        let level = problem.source.as_ref().map(|source| source.level);
        problem.severity == Severity::Warning && matches!(level, Some(Level::User | Level::Wildcard))
    });
    warn_of_models(of_user, context)
}

fn named<'p, T>(all: &'p [T], name_of: impl Fn(&'p T) -> &'p str, name: &str) -> Result<&'p T> {
    all.iter().find(|one| name_of(one) == name).ok_or_else(|| Error::usage(format!("there is no planner \"{name}\"")))
}

fn show(args: &Args, planned: &PlannerReport, input: &Input, context: &mut Context<'_>) -> Result<()> {
    match args.asked.output.form() {
        TableFormat::Json => {
            let own = json!({ "planner": report::json(planned) });
            input.write_json("replay --planner", own, (&args.asked.output, false), context)
        }
        TableFormat::Csv => {
            let arm = named(&planned.arms, |arm| &arm.name, args.planning.arm.as_deref().unwrap_or(CONFIGURED))?;
            report::sessions(arm).write(context.out, TableFormat::Csv, context.width)
        }
        form => {
            if form == TableFormat::Md {
                writeln!(context.out, "## devboy planner\n")?;
            }
            report::write(context.out, planned, args.explain, form, context.width)
        }
    }
}

/// Shows one row per cell and planner.
fn show_sweep(
    args: &Args,
    keys: &[String],
    rows: &[PlannerSweepRow],
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    if args.asked.output.form() == TableFormat::Json {
        let own = json!({ "keys": keys, "cells": report::sweep_json(keys, rows) });
        return input.write_json("replay --planner", own, (&args.asked.output, false), context);
    }
    report::sweep(keys, rows).write(context.out, args.asked.output.form(), context.width)?;
    if args.asked.output.form() != TableFormat::Csv {
        writeln!(context.out, "\n{}", report::SWEPT)?;
        for arm in rows.chunk_by(|a, b| a.arm == b.arm).filter(|arm| arm.len() > 1) {
            if arm.windows(2).all(|pair| pair[0].tally == pair[1].tally) {
                writeln!(context.out, "{}: no effect", arm[0].arm)?;
            }
        }
    }
    Ok(())
}
