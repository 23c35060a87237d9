//! `devboy tune`: propose, show and explain `pipeline_config.toml`.

mod from_claude_logs;
mod proposal;
mod rules;
mod show;
mod warnings;

use crate::cli::Exit;
use crate::context::Context;
use crate::error::Result;

/// Propose, show and explain `pipeline_config.toml`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    FromClaudeLogs(from_claude_logs::Args),
    Show(show::Args),
    Rules(rules::Args),
}

/// Runs a subcommand.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    match &args.command {
        Command::FromClaudeLogs(args) => from_claude_logs::run(args, context),
        Command::Show(args) => show::run(args, context),
        Command::Rules(args) => rules::run(args, context),
    }
}
