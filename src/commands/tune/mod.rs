//! `devboy tune`: propose, show and explain `pipeline_config.toml`.

mod analyze;
mod backtest;
mod from_claude_logs;
mod gate;
pub mod history;
mod lenders;
mod realised;
mod rules;
mod search;
mod show;
mod undo;
mod warnings;
mod writing;

use crate::base::error::Result;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Propose, show and explain `pipeline_config.toml`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Analyze(analyze::Args),
    FromClaudeLogs(from_claude_logs::Args),
    Backtest(backtest::Args),
    Search(search::Args),
    Show(show::Args),
    History(history::Args),
    Undo(undo::Args),
    Rules(rules::Args),
}

/// Runs a subcommand.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    match &args.command {
        Command::Analyze(args) => analyze::run(args, context),
        Command::FromClaudeLogs(args) => from_claude_logs::run(args, context),
        Command::Backtest(args) => backtest::run(args, context),
        Command::Search(args) => search::run(args, context),
        Command::Show(args) => show::run(args, context),
        Command::History(args) => realised::history(args, context),
        Command::Undo(args) => undo::run(args, context),
        Command::Rules(args) => rules::run(args, context),
    }
}
