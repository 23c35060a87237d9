//! `devboy tune`: propose, show and explain changes of `pipeline_config.toml` and of Claude Code's settings.

mod analyze;
mod backtest;
mod claude_settings;
mod from_claude_logs;
pub mod history;
mod lenders;
mod rules;
mod search;
mod show;
mod undo;
mod writing;

use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::commands::input::QuestionArgs;
use crate::commands::responses::surroundings;
use crate::commands::tune::writing::WriteArgs;
use crate::logs::trace::Millis;
use crate::report::table::TableFormat;
use crate::settings::claude::levers::SettingsScope;
use crate::settings::formats::load_config;
use crate::settings::{Effective, SettingsFile};
use crate::shell::arguments::{Exit, InputArgs};
use crate::shell::context::Context;
use crate::telemetry;

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
    /// Print the same, write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write nothing; exit with 4 if something would change.
    #[arg(long)]
    check: bool,
    /// Also print what was held or skipped, and why.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    asked: QuestionArgs,
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

/// Without a subcommand there is text alone: the help names no other form.
pub fn hide_forms(command: clap::Command) -> clap::Command {
    command.mut_arg("format", |flag| flag.hide(true)).mut_arg("json", |flag| flag.hide(true))
}

/// Runs a subcommand; without one everything that concerns this machine, one target after the other.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let Some(command) = &args.command else { return both(args, context) };
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

/// Tunes what is there.
fn both(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    if args.asked.output.form() != TableFormat::Table {
        return Err(Error::usage("`devboy tune` alone reports about two files, as text only")
            .hint("name one: devboy tune analyze, devboy tune claude-settings"));
    }
    // Each is written whole and has an entry of its own; what becomes of one does not touch the other.
    let (pipeline, settings) = (pipeline(args, context), settings(args, context));
    if let (Err(first), Err(second)) = (&pipeline, &settings)
        && first.to_string() != second.to_string()
    {
        // The first one ends the command, which tells of that alone.
        writeln!(context.err, "devboy: {second}")?;
    }
    Ok(worse(pipeline?, settings?))
}

/// The configuration of the pipeline, if anything reads it.
fn pipeline(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(None, context)?;
    let write = WriteArgs { output: None, dry_run: args.dry_run, check: args.check, explain: args.explain };
    if has_telemetry(&load_config(&path, false)?, context)? {
        // The logs that were named are not telemetry.
        let input = InputArgs { input_dir: Vec::new(), project: None, ..args.asked.input.clone() };
        let asked = QuestionArgs { input, ..args.asked.clone() };
        return analyze::run(&analyze::Args { write, asked, ..analyze::Args::default() }, context);
    }
    if path.exists() {
        let args = from_claude_logs::Args { write, asked: args.asked.clone(), ..from_claude_logs::Args::default() };
        return from_claude_logs::run(&args, context);
    }
    let (place, logs) = (path.shown(), args.asked.same_logs(None, None, args.asked.output.is_shared()));
    let makes = format!("devboy tune from-claude-logs {logs}");
    let told = format!(
        "Pipeline: nothing reads a configuration here: no telemetry, and no {place}; `{}` makes one.",
        makes.trim_end()
    );
    writing::tell_first(&args.asked.output, &told, false, context)?;
    Ok(Exit::Done)
}

/// Whether a live pipeline recorded anything.
fn has_telemetry(file: &SettingsFile, context: &Context<'_>) -> Result<bool> {
    let settings = Effective::resolve(file)?.settings;
    let found = telemetry::places(&[], &surroundings(&settings, context));
    Ok(!telemetry::TelemetryListing::new(found, Millis::MIN).is_empty())
}

/// Claude Code's own settings, if it is there.
fn settings(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let home = context.env.claude_places().home;
    if !home.as_ref().is_some_and(|home| home.is_dir()) {
        let place = home.as_ref().map_or_else(|| "HOME is not set".to_owned(), |home| format!("no {}", home.shown()));
        let told = format!(
            "Settings: Claude Code was not used here yet ({place}); CLAUDE_CONFIG_DIR says where it keeps its files; `devboy \
             doctor` shows where it was looked for, and `devboy tune claude-settings --input-dir DIR` takes other logs."
        );
        writing::tell_first(&args.asked.output, &told, false, context)?;
        return Ok(Exit::Done);
    }
    let args = claude_settings::Args {
        scope: SettingsScope::User,
        output: None,
        dry_run: args.dry_run,
        check: args.check,
        explain: args.explain,
        asked: args.asked.clone(),
    };
    claude_settings::run(&args, context)
}

/// The exit code that says more.
fn worse(one: Exit, other: Exit) -> Exit {
    let told = [Exit::Failed, Exit::Usage, Exit::Gate, Exit::Pending];
    told.into_iter().find(|exit| [one, other].contains(exit)).unwrap_or(Exit::Done)
}
