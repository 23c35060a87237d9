//! The command line: which commands there are, the flags they share, and the way from arguments to an exit code; and what
//! `devboy completions SHELL` and `devboy man` print of it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Parser, Subcommand};

use crate::base::error::{Error, FailureKind, Result};
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::Visible;
use crate::commands::{
    annotate, cost, doctor, encode, ingest, mine, planner, pool, replay, report, session, share, tune, what_if,
};
use crate::report::sharing::Shared;
use crate::report::wrapped::Wrapped;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Reads the Claude Code logs on your disk: what happened in them, and what to change in your configuration.
///
/// Without a command it prints the page of `devboy report`, and takes its flags: `devboy --since 7d`.
#[derive(Parser, Debug)]
#[command(name = "devboy", bin_name = "devboy", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    Report(Box<report::Args>),
    Cost(cost::Args),
    Session(session::Args),
    Tune(tune::Args),
    WhatIf(Box<what_if::Args>),
    Replay(Box<replay::Args>),
    Planner(Box<planner::Args>),
    Mine(mine::Args),
    Share(share::Args),
    Pool(pool::Args),
    Annotate(annotate::Args),
    Encode(encode::Args),
    Decode(encode::DecodeArgs),
    Ingest(ingest::Args),
    Doctor(doctor::Args),
    Completions(CompletionArgs),
    /// Print the manual page.
    Man,
}

/// The command line as clap knows it, for completions and the manual page.
pub fn command() -> clap::Command {
    let command = <Cli as clap::CommandFactory>::command().mut_subcommand("replay", replay::hide_old_spellings);
    command.mut_subcommand("tune", tune::hide_forms)
}

/// Runs one command line. Everything it prints goes through `context`.
pub fn run(arguments: impl IntoIterator<Item = OsString>, context: &mut Context<'_>) -> Exit {
    let parsed = command().try_get_matches_from(with_command(arguments.into_iter().collect())).and_then(|matches| {
        let cli = <Cli as clap::FromArgMatches>::from_arg_matches(&matches)?;
        let command = cli.command.unwrap_or_else(|| Command::Report(Box::default()));
        let lake = innermost(&matches).try_get_one::<PathBuf>("lake").ok().flatten().cloned();
        Ok((command, Kept::of(&matches), lake))
    });
    let Context { now_ms, width, out_is_terminal, err_is_terminal, .. } = *context;
    let (input, env, mut err) = (&mut *context.input, context.env.clone(), Notes(&mut *context.err));
    let mut err = Visible(&mut err);
    let mut err = Wrapped::new(&mut err, width.filter(|_| err_is_terminal));
    let kept = parsed.as_ref().map_or(Kept::Text, |(_, kept, _)| *kept);
    let pseudonyms = match (&env.team_secret, &parsed) {
        (Some(secret), _) => Pseudonyms::of_secret(secret),
        (None, Ok((_, _, Some(lake)))) => Pseudonyms::of_lake(Some(lake.clone())),
        (None, _) => Pseudonyms::of_lake(env.lake_dir()),
    };
    let mut text = Visible(&mut *context.out);
    let (mut shared, mut wrapped);
    let out: &mut dyn Write = match kept {
        Kept::Data if !out_is_terminal => &mut *text.0,
        Kept::Prose => {
            wrapped = Wrapped::new(&mut text, width);
            &mut wrapped
        }
        Kept::Text | Kept::Data => &mut text,
        Kept::Shared { has_pseudonyms } => {
            shared = Shared::new(&mut text, (!has_pseudonyms).then_some(&pseudonyms));
            &mut shared
        }
    };
    let named = pseudonyms.clone();
    // Where both meet on a terminal, what is told beside the answer stands behind it.
    let mut behind = Vec::new();
    let told: &mut dyn Write = if out_is_terminal && err_is_terminal { &mut behind } else { &mut err };
    let mut context =
        Context { out, err: told, input, env, pseudonyms: named, now_ms, width, out_is_terminal, err_is_terminal };
    let exit = match parsed {
        Ok((command, ..)) => execute(command, &mut context),
        Err(refusal) => refuse(&refusal, &mut context),
    };
    if let Some(cause) = pseudonyms.passing() {
        let _unheard = writeln!(
            context.err,
            "# pseudonyms will be others next time: no secret could be kept ({cause}); DEVBOY_TEAM_SECRET gives one"
        );
    }
    let _unheard = context.out.flush();
    let _unheard = err.write_all(&behind);
    exit
}

/// What is told beside the data. Where nobody hears it, the command does all that it was asked for.
struct Notes<'w>(&'w mut dyn Write);

impl Write for Notes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _unheard = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _unheard = self.0.flush();
        Ok(())
    }
}

/// The arguments with the command that is meant where none is named: flags alone are those of the page. `help tune` is
/// `tune --help`, so that a mistyped command is answered alike.
pub fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let first = arguments.get(1).and_then(|first| first.to_str());
    if first == Some("help") {
        arguments.retain(|word| word != "help");
        arguments.push("--help".into());
        return arguments;
    }
    let is_own = |first: &str| ["-h", "--help", "-V", "--version"].contains(&first);
    if first.is_some_and(|first| first.starts_with('-') && first != "--" && !is_own(first)) {
        arguments.insert(1, "report".into());
    }
    arguments
}

/// What becomes of the bytes that a command prints.
#[derive(Clone, Copy)]
enum Kept {
    /// A report for people: hidden characters are written out, and on a terminal long lines are wrapped.
    Prose,
    /// What programs read as well: its lines stay as they are.
    Text,
    /// A file of its own kind, no byte of which may be changed.
    Data,
    /// Markdown: made to be shared, so that names of places and servers are kept back too.
    Shared { has_pseudonyms: bool },
}

/// The arguments of the innermost command.
fn innermost(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches
}

impl Kept {
    fn of(matches: &ArgMatches) -> Self {
        let Some((command, matches)) = matches.subcommand() else { return Self::Prose };
        let below = matches.subcommand_name().unwrap_or_default();
        let matches = innermost(matches);
        let form = matches.try_get_raw("format").ok().flatten().and_then(|mut words| words.next());
        let names = matches.try_get_one::<bool>("names").ok().flatten().is_some_and(|names| *names);
        let is_json = matches.try_get_one::<bool>("json").ok().flatten().is_some_and(|json| *json);
        match (command, form.and_then(OsStr::to_str)) {
            ("encode" | "decode" | "completions" | "man", _) | (_, Some("parquet")) => Self::Data,
            // They are about nobody.
            ("tune", _) if below == "rules" => Self::Text,
            (_, Some("md")) if !names => {
                Self::Shared { has_pseudonyms: ["mine", "cost", "session"].contains(&command) }
            }
            (_, None | Some("table" | "text")) if !is_json && below != "show" => Self::Prose,
            _ => Self::Text,
        }
    }
}

fn execute(command: Command, context: &mut Context<'_>) -> Exit {
    // Those that end with nothing but success or an error.
    let done = |()| Exit::Done;
    let outcome = match command {
        Command::Report(args) => report::run(&args, context).map(done),
        Command::Tune(args) => tune::run(&args, context),
        Command::Session(args) => session::run(&args, context).map(done),
        Command::Cost(args) => cost::run(&args, context).map(done),
        Command::WhatIf(args) => what_if::run(&args, context).map(done),
        Command::Replay(args) => replay::run(&args, context),
        Command::Planner(args) => planner::run(&args, context).map(done),
        Command::Mine(args) => mine::run(&args, context).map(done),
        Command::Share(args) => share::run(&args, context).map(done),
        Command::Pool(args) => pool::run(&args, context).map(done),
        Command::Annotate(args) => annotate::run(&args, context).map(done),
        Command::Encode(args) => encode::run(&args, context).map(done),
        Command::Decode(args) => encode::decode(&args, context).map(done),
        Command::Ingest(args) => ingest::run(&args, context).map(done),
        Command::Doctor(args) => doctor::run(&args, context),
        Command::Completions(args) => completions(&args, context).map(done),
        Command::Man => man(context).map(done),
    };
    match outcome {
        Ok(exit) => {
            let flushed = context.out.flush();
            written(flushed, exit, context)
        }
        Err(error) if error.kind == FailureKind::BrokenPipe => Exit::Done,
        Err(error) => {
            let _unread = context.out.flush();
            let _unheard = writeln!(context.err, "devboy: {error}");
            if error.kind == FailureKind::Usage { Exit::Usage } else { Exit::Failed }
        }
    }
}

/// Prints clap's answer: help and version on stdout, a mistake on stderr.
fn refuse(answer: &clap::Error, context: &mut Context<'_>) -> Exit {
    let text = answer.render().to_string() + &tip(answer);
    let (sink, exit) =
        if answer.use_stderr() { (&mut context.err, Exit::Usage) } else { (&mut context.out, Exit::Done) };
    let outcome = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
    written(outcome, exit, context)
}

/// How a command ends by what came of writing its output, of which a failure is told.
fn written(outcome: io::Result<()>, exit: Exit, context: &mut Context<'_>) -> Exit {
    match outcome {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            let _unheard = writeln!(context.err, "devboy: {}", Error::from(cause));
            Exit::Failed
        }
        // A reader that went away does not change what the command found.
        _ => exit,
    }
}

/// Commands that a tip names.
const TIPPED: usize = 3;

/// Which commands have a flag that the one at hand does not know; nothing where none has.
fn tip(answer: &clap::Error) -> String {
    let flag = match answer.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if answer.kind() == ErrorKind::UnknownArgument => flag,
        // Flags of the old spellings `replay --policy` and `replay --planner`.
        Some(ContextValue::Strings(needed)) if needed.iter().any(|flag| flag.starts_with("--policy")) => {
            return "\n  tip: such flags are those of `devboy what-if POLICY`\n".to_owned();
        }
        Some(ContextValue::Strings(needed)) if needed.iter().any(|flag| flag.starts_with("--planner")) => {
            return "\n  tip: such flags are those of `devboy planner`\n".to_owned();
        }
        Some(ContextValue::String(flag)) if answer.kind() == ErrorKind::ArgumentConflict => {
            let other = answer.get(ContextKind::PriorArg).map(ToString::to_string).unwrap_or_default();
            let is_both = |one: &str, two: &str| one.starts_with("--finding") && two == "--explain";
            return match is_both(flag, &other) || is_both(&other, flag) {
                true => "\n  tip: --finding says by itself what its figures stand on: leave --explain out\n".to_owned(),
                false => String::new(),
            };
        }
        _ => return String::new(),
    };
    let Some(name) = flag.strip_prefix("--").and_then(|flag| flag.split(['=', ' ']).next()) else {
        return String::new();
    };
    let has = |command: &clap::Command| {
        command.get_arguments().any(|flag| flag.get_long() == Some(name) && !flag.is_hide_set())
    };
    let root = command();
    let named = root.get_subcommands().flat_map(|command| {
        let below =
            command.get_subcommands().map(move |below| (format!("{} {}", command.get_name(), below.get_name()), below));
        std::iter::once((command.get_name().to_owned(), command)).chain(below)
    });
    let named = named.filter(|(_, command)| has(command)).map(|(name, _)| format!("`devboy {name}`"));
    let found: Vec<String> = named.collect();
    let (told, rest) = found.split_at(found.len().min(TIPPED));
    let among = if rest.is_empty() { "" } else { ", among others" };
    if told.is_empty() { String::new() } else { format!("\n  tip: --{name} is a flag of {}{among}\n", told.join(", ")) }
}

/// Print a completion script for a shell.
#[derive(clap::Args, Debug)]
struct CompletionArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Prints the script.
fn completions(args: &CompletionArgs, context: &mut Context<'_>) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "devboy", &mut script);
    Ok(context.out.write_all(&script)?)
}

/// Prints the manual page, the subcommands' flags included.
fn man(context: &mut Context<'_>) -> Result<()> {
    let mut page = Vec::new();
    let mut command = command();
    command.build();
    render(&command, &mut page)?;
    Ok(context.out.write_all(&page)?)
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    let mut own = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut own)?;
    page.extend_from_slice(with_help(&String::from_utf8_lossy(&own), command).as_bytes());
    // `help` has every command once more.
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        render(sub, page)?;
    }
    Ok(())
}

/// The text of a command with what prints the page of each subcommand in place of the name of a page of its own, as
/// `devboy-report(1)`, which nobody installs.
fn with_help(text: &str, command: &clap::Command) -> String {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    command.get_subcommands().fold(text.to_owned(), |text, sub| {
        let page = format!("{name}-{}(1)", sub.get_name()).replace('-', r"\-");
        let words = sub.get_bin_name().unwrap_or_default().replacen("devboy", "devboy help", 1).replace('-', r"\-");
        text.replace(&format!("\n{page}\n"), &format!("\n{words}\n"))
    })
}
