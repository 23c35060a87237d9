//! Notes every written change in the journal beside the configuration, with its evidence and what it is expected to do.

use crate::commands::tune::gate::Gate;
use crate::commands::tune::proposal::Proposal;
use crate::context::Context;
use crate::error::Result;
use crate::model::journal::{Inputs, JournalChange, Predicted};
use crate::settings::{SettingsFile, append_entry, journal_entry, journal_path};

/// Notes a written proposal.
///
/// # Errors
/// If the journal cannot be written; the configuration is written then all the same.
pub fn note(
    command: &str,
    file: &SettingsFile,
    proposal: &Proposal,
    gate: Option<&Gate>,
    inputs: Inputs,
    context: &Context<'_>,
) -> Result<()> {
    let changes = proposal.findings.iter().filter_map(JournalChange::of).collect();
    let mut entry = journal_entry(context.now_ms, command, file, &proposal.text, changes)?;
    entry.inputs = Some(inputs);
    entry.predicted = gate.map(|gate| Predicted {
        baseline: gate.baseline,
        saved_before: gate.saved_before,
        saved_after: gate.saved_after,
    });
    append_entry(&journal_path(&file.path), &entry)
        .map_err(|cause| cause.hint("the configuration is written; only the journal does not know of it"))
}
