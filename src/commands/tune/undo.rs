//! `devboy tune undo`: takes back what devboy wrote, and nothing that a person did since.

use std::path::PathBuf;

use serde_json::json;

use super::history::tell_damaged;
use crate::base::error::Result;
use crate::base::visible::{Shown as _, visible};
use crate::commands::config::config_path;
use crate::report::numbers::{counted, date};
use crate::report::table::{Table, TableFormat};
use crate::rules::report as findings;
use crate::settings::entries::{JournalChange, JournalEntry};
use crate::settings::undo::UndoTarget;
use crate::settings::{Reversal, unified_diff};
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;

/// Take back the last change that devboy wrote, or the one named, and print the diff.
///
/// Both targets are known: the configuration of the pipeline and Claude Code's settings. Each key goes back to its value before. A key that was changed since, and one that is marked `# pin`, is kept and
/// named. The previous file stays beside the new one as pipeline_config.toml.bak. The undo is a change of its own in
/// the journal, and can be undone by its id.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The change to take back, as `devboy tune history` names it; the start of its id will do. Default: the last one.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// The configuration, or the settings, to read and write. Default: what the change is about.
    #[arg(long, short, value_name = "FILE", visible_alias = "config")]
    output: Option<PathBuf>,
    /// Print the same, write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    report: OutputArgs,
}

/// Chooses an entry, takes it back, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let path = config_path(args.output.as_ref(), context)?;
    let id = args.id.as_deref();
    let target = UndoTarget::load(&path, &config_path(None, context)?, id, args.output.as_deref())?;
    if !args.report.quiet {
        tell_damaged(&target.journal, &target.place, context)?;
    }
    let entry = target.chosen(id)?;
    let reversal = target.reverse(entry)?;
    let undo = Undo { args, target: &target, entry, reversal };
    context.show(|context| undo.show(context))?;
    if !args.dry_run {
        target.write(entry, &undo.reversal, context.now_ms)?;
    }
    if !args.report.quiet {
        undo.conclude(context)?;
    }
    Ok(())
}

/// An entry that is taken back.
struct Undo<'u> {
    args: &'u Args,
    target: &'u UndoTarget,
    entry: &'u JournalEntry,
    reversal: Reversal,
}

impl Undo<'_> {
    fn show(&self, context: &mut Context<'_>) -> Result<()> {
        let Self { args, target, entry, reversal } = self;
        let diff = unified_diff(target.file().text, &reversal.text, &target.path.shown());
        match args.report.form() {
            TableFormat::Json => {
                let undone =
                    |change: &JournalChange| json!({ "key": change.key, "from": change.new, "to": change.old });
                let fields = json!({
                    "config": target.path.shown(),
                    "undoes": entry.id,
                    "written": !args.dry_run,
                    "byte_identical": reversal.is_exact,
                    "edited_since": reversal.is_edited,
                    "undone": reversal.undone.iter().map(undone).collect::<Vec<_>>(),
                    "kept": reversal.kept.iter().map(|kept| json!({ "key": kept.key, "reason": kept.reason }))
                        .collect::<Vec<_>>(),
                    "diff": diff,
                });
                args.report.write_json("tune undo", fields, context)
            }
            TableFormat::Table => {
                let colored = context.colored(args.report.color);
                findings::write_diff(context.out, &diff, colored)?;
                let keys = counted(reversal.undone.len() as u64, "key");
                writeln!(context.out, "\n# {keys} of {} back as before {}:", entry.id, date(entry.at_ms))?;
                for change in &reversal.undone {
                    let words = format!("{}: {} → {}", change.key, side(&change.new), side(&change.old));
                    writeln!(context.out, "# {}", visible(&words))?;
                }
                for kept in &reversal.kept {
                    writeln!(context.out, "# kept: {}", visible(&format!("`{}` {}", kept.key, kept.reason)))?;
                }
                Ok(())
            }
            form => table(reversal).write(context.out, form, context.width),
        }
    }

    /// What there is to say besides the changes.
    fn conclude(&self, context: &mut Context<'_>) -> Result<()> {
        let Self { args, target, entry, reversal } = self;
        let (err, id, path) = (&mut context.err, &entry.id, target.path.shown());
        match reversal {
            Reversal { text, .. } if ["", "{}"].contains(&text.trim()) => {
                writeln!(err, "# nothing is left in the file; it stays, empty")?;
            }
            Reversal { is_exact: true, .. } => {
                let is = if args.dry_run { "would be" } else { "is" };
                writeln!(err, "# the file {is} byte for byte what it was before {id}")?;
            }
            Reversal { is_edited: true, .. } => {
                writeln!(err, "# the file was edited since {id}; all else in it stays")?;
            }
            Reversal { .. } => {
                writeln!(err, "# the file means what it did before {id}, but not every byte is the same")?;
            }
        }
        let keys = counted(reversal.undone.len() as u64, "key");
        match args.dry_run {
            true => writeln!(err, "# {keys} to undo, nothing written")?,
            false => writeln!(err, "# {keys} undone → {path}")?,
        }
        Ok(())
    }
}

fn side(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("nothing")
}

fn table(reversal: &Reversal) -> Table {
    let mut table = Table::new(&["key", "outcome", "from", "to", "why"]);
    for change in &reversal.undone {
        let sides = [&change.new, &change.old].map(|side| side.clone().unwrap_or_default());
        let [from, to] = sides;
        table.row([change.key.clone(), "undone".to_owned(), from, to, String::new()]);
    }
    for kept in &reversal.kept {
        table.row([kept.key.clone(), "kept".to_owned(), String::new(), String::new(), kept.reason.clone()]);
    }
    table
}
