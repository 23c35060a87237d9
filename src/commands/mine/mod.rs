//! `devboy mine`: the aggregates themselves, in every form in which somebody may want them.

mod export;
mod fingerprints;

use crate::cli::Exit;
use crate::context::Context;
use crate::error::Result;

/// Print what devboy mines: endpoint fingerprints.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Fingerprints(fingerprints::Args),
}

/// Runs a subcommand.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    match &args.command {
        Command::Fingerprints(args) => fingerprints::run(args, context),
    }
}
