//! `--show-content`: what the examples of breaks are about, read from the logs again because somebody asked to see it.

use crate::base::id::{Id, IdSet};
use crate::base::visible::Shown as _;
use crate::frames::input::Input;
use crate::logs::cited;
use crate::whatif::report::PolicyReport;

/// Characters of a record that are shown.
const CHARS: usize = 240;

/// Adds the records behind the examples to each report.
pub fn add(reports: &mut [PolicyReport], input: &mut Input) {
    let examples = |report: &PolicyReport| -> Vec<(&'static str, Id)> {
        let classes = report.breakage.iter().flat_map(|breakage| &breakage.classes);
        let cited =
            classes.flat_map(|class| class.examples.iter().map(|example| (class.class.word(), &example.record)));
        cited.filter_map(|(word, record)| Some((word, Id::from_hex(record)?))).collect()
    };
    let wanted: IdSet<Id> = reports.iter().flat_map(examples).map(|(_, id)| id).collect();
    let jobs = input.jobs();
    let (found, failures) = cited::find(&jobs, &wanted, CHARS, &input.pool);
    for report in reports {
        let lines = examples(report).into_iter().filter_map(|(word, id)| {
            let cited = found.get(&id)?;
            let path = jobs[cited.job].path.shown();
            Some(format!("{word}: {path}:{} ({}) {}", cited.line, cited.uuid, cited.start))
        });
        report.shown = lines.collect();
    }
    input.leave_out(failures);
}
