//! `devboy tune from-claude-logs`: mine the logs, let the rules speak, write the configuration as a diff.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::{Exit, Format, InputArgs, OutputArgs};
use crate::commands::input::Input;
use crate::commands::tune::config_path;
use crate::commands::tune::proposal::{Proposal, View, warn_unknown, warnings_json};
use crate::context::Context;
use crate::error::Result;
use crate::frames::calls::CallFrame;
use crate::logs::assemble::assemble;
use crate::mine::uses;
use crate::model::finding::Verdict;
use crate::model::history::History;
use crate::model::stats::{FollowUpCount, ModelUse, SessionUse, ToolStats};
use crate::report::numbers::{counted, date, percent, thousands};
use crate::report::{envelope, findings, quality};
use crate::rules::annotations::Annotations;
use crate::rules::{Facts, judge_all, t1_tools};
use crate::settings::{Effective, SettingsFile, classify_agent, write_atomically};

/// Mine the logs, apply rules P1 to P3 (and T1 with --tools), write the configuration and print its diff.
///
/// The diff and the evidence of every change go to stdout, everything else to stderr. The previous file stays beside
/// the new one as pipeline_config.toml.bak. Keys that stand in the file are kept; a key or table marked `# pin` is never
/// touched. Exit code 4 with --check means that changes are pending.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// Also mine a `[tools.<name>]` value model for every tool that was used.
    #[arg(long)]
    tools: bool,
    /// The configuration to read and write. Default: $DEVBOY_CONFIG, else ~/.config/devboy/pipeline_config.toml.
    #[arg(long, short, value_name = "FILE", alias = "config")]
    output: Option<PathBuf>,
    /// Print the same, write no configuration.
    #[arg(long)]
    dry_run: bool,
    /// Write nothing; exit with 4 if something would change.
    #[arg(long)]
    check: bool,
    /// Also print what was held or skipped, and why.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    report: OutputArgs,
}

/// Everything the rules read, mined.
struct Mined {
    models: Vec<ModelUse>,
    sessions: Vec<SessionUse>,
    tools: Vec<ToolStats>,
    follow_ups: Vec<FollowUpCount>,
}

/// Reads, mines, judges, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.output.as_ref(), context)?;
    // A broken configuration ends the command before any work is done.
    let file = SettingsFile::load(&path)?;
    let effective = Effective::resolve(&file)?;
    let input = Input::read(&args.input, &args.report, context)?;
    let history = assemble(&input.corpus).within(&input.window);
    let mined = mine(&input, &history, args.tools)?;
    let view = View::new(&file, &effective);
    let found = judge_all(
        &Facts {
            names: &input.corpus.names,
            models: &mined.models,
            sessions: &mined.sessions,
            tools: &mined.tools,
            follow_ups: &mined.follow_ups,
            annotations: &Annotations::load(&input.data)?,
            families: &input.data.families()?,
            current: &view,
        },
        &input.data,
        args.tools,
    )?;
    let proposal = Proposal::new(&file, &view, found)?;
    show(args, context, &input, &history, &mined, &file, &proposal)?;
    conclude(args, context, &file, &proposal)
}

fn mine(input: &Input, history: &History, tools: bool) -> Result<Mined> {
    let names = &input.corpus.names;
    let mut sessions = uses::sessions(history, names, &input.vocabulary.read_class_tools);
    for session in &mut sessions {
        let read_share = session.read_calls as f64 / session.calls.max(1) as f64;
        session.class = classify_agent(session.calls as f64, session.compactions as f64, read_share).variant();
    }
    let frame = CallFrame::new(history)?;
    let follow_ups = if tools { frame.follow_ups(&t1_tools::lags(&input.data)?)? } else { Vec::new() };
    Ok(Mined { models: uses::models(history, names), sessions, tools: frame.tool_stats()?, follow_ups })
}

fn show(
    args: &Args,
    context: &mut Context<'_>,
    input: &Input,
    history: &History,
    mined: &Mined,
    file: &SettingsFile,
    proposal: &Proposal,
) -> Result<()> {
    input.tell(&args.report, context)?;
    if !args.report.quiet {
        warn_unknown(file, context)?;
        summarise(args, context, input, history, mined, file)?;
    }
    if args.report.form() == Format::Json {
        let reproducible = args.report.reproducible || context.env.reproducible;
        let document = envelope::envelope(
            "tune from-claude-logs",
            (!reproducible).then_some(context.now_ms),
            json!({
                "window": input.window_json(),
                "inputs": input.json(),
                "data_quality": quality::json(&quality::of(&input.corpus)),
                "config": file.path.display().to_string(),
                "warnings": warnings_json(file),
                "findings": findings::json(&proposal.findings),
                "changes": proposal.count(),
                "diff": proposal.diff,
            }),
        );
        return envelope::write(context.out, &document);
    }
    if proposal.is_change() {
        write!(context.out, "{}", proposal.diff)?;
        writeln!(context.out, "\n# why, {} changed:", counted(proposal.count() as u64, "key"))?;
    }
    findings::write(context.out, &proposal.findings, args.explain)
}

/// What was read, in the order and with the labels of the published tool.
fn summarise(
    args: &Args,
    context: &mut Context<'_>,
    input: &Input,
    history: &History,
    mined: &Mined,
    file: &SettingsFile,
) -> Result<()> {
    let err = &mut context.err;
    for root in &input.roots {
        writeln!(err, "# input:   {} ({})", root.path.display(), root.origin)?;
    }
    if let Some(project) = &args.input.project {
        writeln!(err, "# project: {project}")?;
    }
    let dry = if args.dry_run || args.check { " (not written)" } else { "" };
    writeln!(err, "# output:  {}{dry}", file.path.display())?;
    let records: u64 = input.corpus.files.iter().map(|file| file.source.counters.records).sum();
    writeln!(err, "# read {} records in {}", thousands(records), counted(input.corpus.files.len() as u64, "file"))?;
    writeln!(err, "# claude logs scanned:")?;
    if let Some((first, last)) = history.span() {
        writeln!(err, "#   span:        {} … {}", date(first), date(last))?;
    }
    writeln!(err, "#   sessions:    {}", thousands(history.sessions.len() as u64))?;
    let calls: u64 = mined.sessions.iter().map(|session| session.calls).sum();
    let reads: u64 = mined.sessions.iter().map(|session| session.read_calls).sum();
    let share = percent(reads as f64 / calls.max(1) as f64);
    writeln!(err, "#   tools:       {} calls ({} read-class, {share})", thousands(calls), thousands(reads))?;
    let compactions: u64 = mined.sessions.iter().map(|session| session.compactions).sum();
    writeln!(err, "#   compactions: {}", thousands(compactions))?;
    let mut models: Vec<&ModelUse> = mined.models.iter().collect();
    models.sort_by_key(|model| (std::cmp::Reverse(model.messages), model.id.clone()));
    writeln!(err, "#   models (API messages, each once):")?;
    for model in models.iter().take(8) {
        writeln!(err, "#     {:<35} {:>8}", model.id, thousands(model.messages))?;
    }
    let damaged = quality::of(&input.corpus);
    if !damaged.is_empty() {
        let words = damaged.iter().map(|(reason, row)| format!("{} {}", thousands(row.count), reason.key()));
        writeln!(err, "#   odd input:   {} (`devboy doctor` says where)", words.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

/// Writes the file, or says why not.
fn conclude(args: &Args, context: &mut Context<'_>, file: &SettingsFile, proposal: &Proposal) -> Result<Exit> {
    let told = !args.report.quiet;
    let held = proposal.findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Hold(_))).count() as u64;
    let aside =
        if held > 0 && !args.explain { format!("; {} held, see --explain", thousands(held)) } else { String::new() };
    if !proposal.is_change() {
        if told {
            writeln!(context.err, "# nothing to change{aside}")?;
        }
        return Ok(Exit::Done);
    }
    let changes = counted(proposal.count() as u64, "change");
    if args.check || args.dry_run {
        if told {
            writeln!(context.err, "# {changes} pending, nothing written{aside}")?;
        }
        return Ok(if args.check { Exit::Pending } else { Exit::Done });
    }
    // Whoever reads the diff should have it before the file changes.
    context.out.flush()?;
    write_atomically(&file.path, file.existed.then_some(file.text.as_str()), &proposal.text)?;
    if told {
        writeln!(context.err, "# {changes} written → {}{aside}", file.path.display())?;
    }
    Ok(Exit::Done)
}
