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
    /// Mine the logs, apply rules P1 to P3 (and T1 with --tools), write the configuration and print its diff.
    FromClaudeLogs(from_claude_logs::Args),
    /// Print the effective configuration and where each value comes from.
    Show(show::Args),
    /// Print what each rule looks at, why, and its numbers.
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
