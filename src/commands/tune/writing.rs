//! How a proposal becomes a file, or does not: the flags that decide, the writing, and the note in the journal.

use std::path::PathBuf;

use crate::base::error::Result;
use crate::base::files::one_name;
use crate::base::visible::Shown as _;
use crate::logs::trace::Millis;
use crate::report::numbers::{counted, thousands};
use crate::report::table::TableFormat;
use crate::rules::proposal::Proposal;
use crate::rules::report as findings;
use crate::settings::entries::{JournalChange, JournalEntry, Predicted, RuleInputs};
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{SettingsFile, expect_writable, journal_entry, write_noted};
use crate::shell::arguments::{Exit, OutputArgs};
use crate::shell::context::Context;

/// Which configuration is written, and whether.
#[derive(clap::Args, Debug, Default)]
pub struct WriteArgs {
    /// The configuration to read and write. Default: $DEVBOY_CONFIG, else devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, short, value_name = "FILE", visible_alias = "config")]
    pub output: Option<PathBuf>,
    /// Print the same, write no configuration.
    #[arg(long)]
    pub dry_run: bool,
    /// Write no configuration; exit with 4 if something would change.
    #[arg(long)]
    pub check: bool,
    /// Also print what was held or skipped, and why.
    #[arg(long)]
    pub explain: bool,
}

impl WriteArgs {
    /// Whether the configuration may be written.
    pub fn writes(&self) -> bool {
        !self.dry_run && !self.check
    }

    /// Whether the change could be written, before it is told of. An error if the disk refuses it.
    pub fn expect_writable(&self, file: &SettingsFile, proposal: &Proposal) -> Result<()> {
        if self.writes() && proposal.is_change() { expect_writable(&file.place()) } else { Ok(()) }
    }

    /// What to say behind the place of the configuration.
    pub fn state(&self) -> &'static str {
        if self.writes() { "" } else { " (not written)" }
    }
}

/// The answer: how much changes in a file and what that is worth, or that nothing changes and why.
pub fn answer(args: &WriteArgs, file: &SettingsFile, proposal: &Proposal, why: &str) -> String {
    let (path, aside) = (file.path.shown(), aside(args.explain, &proposal.findings));
    let what = match proposal.count() as u64 {
        0 => format!("Nothing to change in {path}"),
        changes => format!("{} to {path}{}", counted(changes, "change"), args.state()),
    };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!("{what}{why}{aside}.")
}

/// Prints the answer where a person reads it: before everything else, notes included; beside data, as a note. With
/// `has_more`, changes or tables stand below it; a quiet run that has nothing more has no answer.
pub fn tell_first(report: &OutputArgs, answer: &str, has_more: bool, context: &mut Context<'_>) -> Result<()> {
    let form = report.form();
    if !matches!(form, TableFormat::Table | TableFormat::Md) {
        return context.note(report.quiet, answer);
    }
    if report.quiet && !has_more {
        return Ok(());
    }
    writeln!(context.out, "{}", form.sentence(answer))?;
    if has_more || form == TableFormat::Md {
        writeln!(context.out)?;
    }
    Ok(context.out.flush()?)
}

/// Prints the diff and the evidence, or the changes as a table.
pub fn show(args: &WriteArgs, report: &OutputArgs, proposal: &Proposal, context: &mut Context<'_>) -> Result<()> {
    if report.form() != TableFormat::Table {
        return findings::table(&proposal.findings).write(context.out, report.form(), context.width);
    }
    if proposal.is_change() {
        let colored = context.colored(report.color);
        findings::write_diff(context.out, &proposal.diff, colored)?;
        writeln!(context.out, "\n# why, {} changed:", counted(proposal.count() as u64, "key"))?;
    }
    findings::write(context.out, &proposal.findings, args.explain)?;
    if proposal.diff.lines().any(|line| line.starts_with("+schema_version")) {
        writeln!(context.out, "# schema_version: the version of the file's format, written into every new file")?;
    }
    Ok(())
}

/// A proposal that is settled, and what goes into the journal with it.
pub struct SettledProposal<'a> {
    pub command: &'a str,
    pub file: &'a SettingsFile,
    pub proposal: &'a Proposal,
    /// What a replay of it said.
    pub predicted: Option<Predicted>,
    pub inputs: RuleInputs,
}

/// Writes the file, if it is to be written, and notes it in the journal. An error if the file changed meanwhile.
pub fn conclude(
    args: &WriteArgs,
    quiet: bool,
    settled: SettledProposal<'_>,
    context: &mut Context<'_>,
) -> Result<Exit> {
    let SettledProposal { file, proposal, .. } = settled;
    if !proposal.is_change() {
        return Ok(Exit::Done);
    }
    if let Some(other) = context.env.of_hosts().filter(|other| one_name(other) != one_name(&file.path)) {
        let told =
            format!("note: hosts read {} (DEVBOY_PIPELINE_CONFIG), not this file: --output names it", other.shown());
        context.note(quiet, told)?;
    }
    if !args.writes() {
        return Ok(if args.check { Exit::Pending } else { Exit::Done });
    }
    let entry = entry(&settled, context.now_ms)?;
    write_noted(&file.place(), &proposal.text, &entry)?;
    let changes = counted(proposal.count() as u64, "change");
    context.note(quiet, format_args!("tuned config → {}: {changes} written", file.path.shown()))?;
    Ok(Exit::Done)
}

/// How many proposals were held, if that was not printed.
pub fn aside(is_explained: bool, findings: &[Finding]) -> String {
    let is_held = |finding: &&Finding| matches!(finding.verdict, Verdict::Hold(_) | Verdict::TakenBack { .. });
    let held = findings.iter().filter(is_held).count() as u64;
    if held > 0 && !is_explained { format!("; {} not proposed, see --explain", thousands(held)) } else { String::new() }
}

/// What the journal beside the configuration says about the proposal.
fn entry(settled: &SettledProposal<'_>, now_ms: Millis) -> Result<JournalEntry> {
    let SettledProposal { command, file, proposal, predicted, inputs } = settled;
    let changes = proposal.findings.iter().filter_map(JournalChange::of).collect();
    let mut entry = journal_entry(now_ms, command, file, &proposal.text, changes)?;
    entry.inputs = Some(inputs.clone());
    entry.predicted = *predicted;
    Ok(entry)
}
