//! `devboy tune` alone: everything that concerns this machine, one target after the other.

use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::commands::input::QuestionArgs;
use crate::commands::responses::surroundings;
use crate::commands::tune::writing::WriteArgs;
use crate::commands::tune::{analyze, claude_settings, from_claude_logs};
use crate::logs::trace::Millis;
use crate::report::table::TableFormat;
use crate::settings::claude::levers::SettingsScope;
use crate::settings::formats::load_config;
use crate::settings::{Effective, SettingsFile};
use crate::shell::arguments::{Exit, InputArgs};
use crate::shell::context::Context;
use crate::telemetry;

/// What is tuned, and whether it is written.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub struct Args {
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

/// Tunes what is there.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    if args.asked.output.form() != TableFormat::Table {
        return Err(Error::usage("`devboy tune` alone reports about two files, as text only")
            .hint("name one: devboy tune analyze, devboy tune claude-settings"));
    }
    // Each is written whole and has an entry of its own; what becomes of one does not touch the other.
    let (pipeline, settings) = (pipeline(args, context), settings(args, context));
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
        return analyze::run(&analyze::Args::of_telemetry(write, asked), context);
    }
    if path.exists() {
        return from_claude_logs::run(&from_claude_logs::Args::plain(write, args.asked.clone()), context);
    }
    let place = path.shown();
    let told = format_args!(
        "pipeline: nothing reads a configuration here: no telemetry, and no {place}; `devboy tune from-claude-logs` makes one"
    );
    context.note(args.asked.output.quiet, told)?;
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
        let place = home.as_ref().map_or_else(|| "no home".to_owned(), |home| format!("no {}", home.shown()));
        let told = format_args!(
            "settings: Claude Code was not used here yet ({place}); CLAUDE_CONFIG_DIR says where it keeps its files; `devboy \
             doctor` shows where it was looked for, and `devboy tune claude-settings --input-dir DIR` takes other logs"
        );
        context.note(args.asked.output.quiet, told)?;
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
    let weight = |exit: Exit| match exit {
        Exit::Done => 0,
        Exit::Pending => 1,
        Exit::Gate => 2,
        Exit::Usage => 3,
        Exit::Failed => 4,
    };
    if weight(one) >= weight(other) { one } else { other }
}
