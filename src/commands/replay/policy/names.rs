//! Projects and sessions in a report under the names that people know; in what is shared by letters.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::commands::replay::policy::Flags;
use crate::commands::shown_names::ShownNames;
use crate::cost::groups::Label;
use crate::frames::input::Input;
use crate::report::table::Format;
use crate::whatif::report::PolicyReport;

/// Puts names in place of pseudonyms. Data keeps these: what is joined by them has them too.
pub fn tell(flags: &Flags<'_>, reports: &mut [PolicyReport], input: &Input) {
    let form = flags.output.form();
    if matches!(form, Format::Json | Format::Csv) {
        return;
    }
    let projects = reports.iter().flat_map(|report| &report.cells).filter(|cell| cell.by == "project");
    let sessions = reports.iter().filter(|_| flags.policy.per_session).filter_map(|report| report.outcome.as_ref());
    let sessions = sessions.filter_map(|outcome| outcome.by.get("session")).flat_map(BTreeMap::keys);
    let labels: BTreeMap<String, Label> = projects
        .map(|cell| (&cell.name, Label::Project as fn(Id) -> Label))
        .chain(sessions.map(|id| (id, Label::Session as fn(Id) -> Label)))
        .filter_map(|(id, label)| Some((id.clone(), label(Id::from_hex(id)?))))
        .collect();
    let is_shared = flags.policy.redact || (form == Format::Md && !flags.output.names);
    let names = if is_shared { ShownNames::letters(labels.values()) } else { ShownNames::real(labels.values(), input) };
    for report in reports {
        for cell in report.cells.iter_mut().filter(|cell| cell.by == "project") {
            if let Some(label) = labels.get(&cell.name) {
                cell.name = names.short(label);
            }
        }
        let by = report.outcome.as_mut().and_then(|outcome| outcome.by.get_mut("session"));
        let Some(by) = by.filter(|_| flags.policy.per_session) else { continue };
        for (id, sides) in std::mem::take(by) {
            by.insert(labels.get(&id).map_or(id, |label| names.full(label)), sides);
        }
    }
}
