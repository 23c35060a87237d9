//! `devboy tune`: propose, show and explain changes of `pipeline_config.toml` and of Claude Code's settings.

mod all;
mod analyze;
mod backtest;
mod claude_settings;
mod from_claude_logs;
pub mod history;
mod lenders;
mod realised;
mod rules;
mod search;
mod show;
mod undo;
mod writing;

use crate::base::error::Result;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Propose, show and explain changes: of `pipeline_config.toml`, and of Claude Code's own settings.
///
/// Without a subcommand both are tuned that concern this machine: the configuration of the pipeline if anything reads it
/// (there is telemetry, or the file), Claude Code's settings if Claude Code is there. Each is written whole, with an entry of
/// its own in the journal.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    all: all::Args,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Analyze(analyze::Args),
    ClaudeSettings(claude_settings::Args),
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
    let Some(command) = &args.command else { return all::run(&args.all, context) };
    let done = |()| Exit::Done;
    match command {
        Command::Analyze(args) => analyze::run(args, context),
        Command::ClaudeSettings(args) => claude_settings::run(args, context),
        Command::FromClaudeLogs(args) => from_claude_logs::run(args, context),
        Command::Backtest(args) => backtest::run(args, context).map(done),
        Command::Search(args) => search::run(args, context),
        Command::Show(args) => show::run(args, context).map(done),
        Command::History(args) => history::run(args, context).map(done),
        Command::Undo(args) => undo::run(args, context).map(done),
        Command::Rules(args) => rules::run(args, context).map(done),
    }
}
