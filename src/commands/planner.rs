//! `devboy planner`: would prefetching have paid?

use std::path::PathBuf;

use crate::base::error::Result;
use crate::commands::input::QuestionArgs;
use crate::commands::replay;
use crate::commands::replay::planner::PlannerArgs;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Replay the planner: what would have been prefetched, and would the agent have asked for exactly that?
///
/// It learns from the earlier sessions and is judged on the later ones, by what the agent did next.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration to replay. Default: $DEVBOY_CONFIG, else ~/.config/devboy/pipeline_config.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replay once for each value; several keys make a grid.
    #[arg(long, value_name = "KEY=A,B,…", conflicts_with = "emit_telemetry")]
    sweep: Vec<String>,
    /// Write the events that the live pipeline would have recorded, names made anonymous, with what one planner (--arm)
    /// prefetched and declined in the judged sessions.
    #[arg(long, value_name = "DIR")]
    emit_telemetry: Option<PathBuf>,
    #[command(flatten)]
    planning: PlannerArgs,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, learns, judges, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let Args { config, sweep, emit_telemetry, planning, asked } = args;
    let args = replay::Args::for_planner(
        (config.clone(), sweep.clone(), emit_telemetry.clone()),
        planning.clone(),
        asked.clone(),
    );
    replay::run(&args, context)
}
