//! `devboy mine`: the aggregates themselves, in every form in which somebody may want them.

mod export;
mod fingerprints;
pub mod projections;

use crate::cli::Exit;
use crate::context::Context;
use crate::error::Result;

/// Print what devboy mines: endpoint fingerprints, projections.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Fingerprints(fingerprints::Args),
    Projections(projections::Args),
}

/// Runs a subcommand.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    match &args.command {
        Command::Fingerprints(args) => fingerprints::run(args, context),
        Command::Projections(args) => projections::run(args, context),
    }
}
