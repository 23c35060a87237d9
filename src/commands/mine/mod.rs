//! `devboy mine`: the aggregates themselves, in every form of output.

mod compare;
pub mod edges;
pub mod export;
pub mod fields;
mod fingerprints;
mod patterns;
pub mod projections;
mod sessions;
pub mod tools;

use crate::base::error::Result;
use crate::shell::context::Context;

/// Statistics of your logs: which tool follows which, tools, shapes of results, patterns, fields, sessions.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Edges(edges::Args),
    Tools(tools::Args),
    Fingerprints(fingerprints::Args),
    Patterns(patterns::Args),
    Sessions(sessions::Args),
    Compare(compare::Args),
    Projections(projections::Args),
    Fields(fields::Args),
}

/// Runs a subcommand.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    match &args.command {
        Command::Edges(args) => edges::run(args, context),
        Command::Tools(args) => tools::run(args, context),
        Command::Fingerprints(args) => fingerprints::run(args, context),
        Command::Patterns(args) => patterns::run(args, context),
        Command::Sessions(args) => sessions::run(args, context),
        Command::Compare(args) => compare::run(args, context),
        Command::Projections(args) => projections::run(args, context),
        Command::Fields(args) => fields::run(args, context),
    }
}
