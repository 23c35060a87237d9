//! `--per-request FILE`: every request under every policy as one JSON line. And `--show-content`: what the examples of
//! breaks are about, read from the logs again because somebody asked to see it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::id::{Id, IdSet};
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::Shown as _;
use crate::frames::input::Input;
use crate::logs::named;
use crate::report::sharing::hide_servers;
use crate::whatif::chosen::{Policy, PolicyConfigs, StackRow};
use crate::whatif::pick_tools::outcome::{self, Pick};
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::report::PolicyReport;
use crate::whatif::sim::bill;
use crate::whatif::sim::run::{Priced, SimulatedRun};
use crate::whatif::simulation::Simulation;

/// The lines, policy by policy in the order of the requests. Ids are hashes, and servers and
/// kinds of agents have the names that `hidden` gives them. What a report withholds is no figure here either.
pub fn lines<'r>(
    simulation: &Simulation<'_>,
    configs: &PolicyConfigs,
    rows: impl Iterator<Item = (&'r StackRow, &'r PolicyReport)>,
    hidden: Option<&Pseudonyms>,
) -> Result<String> {
    let mut text = String::new();
    for (row, report) in rows.filter(|(row, _)| !row.stack.has(Policy::ArgCheck)) {
        let configs = configs.with(row)?;
        let (run, held_against) = simulation.run_stack(&configs, &row.stack)?;
        let own = PolicyFields::new(simulation, &configs, row, &run)?;
        for (priced, log) in run.requests.iter().zip(&held_against.requests) {
            let simulated = Some(priced).filter(|_| report.not_estimated.is_none());
            let mut line = line(simulation, row, simulated, (&run, log));
            own.add(&mut line, simulation.workload.timeline.request(priced.request).id);
            if let Some(names) = hidden {
                hide_servers(&mut line, names);
                line["agent_type"] = json!(names.agent(line["agent_type"].as_str().unwrap_or_default()));
            }
            writeln!(text, "{line}").expect("a String takes everything");
        }
    }
    Ok(text)
}

/// What every policy says about a request.
fn line(
    simulation: &Simulation<'_>,
    row: &StackRow,
    simulated: Option<&Priced>,
    (run, log): (&SimulatedRun, &Priced),
) -> Value {
    let timeline = &simulation.workload.timeline;
    let request = timeline.request(log.request);
    json!({
        "policy": row.name,
        "session": timeline.session_of(request).id.to_string(),
        "request": request.id.to_string(),
        "model": timeline.names.text(request.model),
        "version": timeline.names.text(request.version),
        "agent_type": timeline.names.text(timeline.chain(request.chain).agent_type),
        "effort": timeline.names.text(request.setting.effort),
        "speed": timeline.names.text(request.setting.speed),
        "branch": request.setting.branch.is_some().then(|| request.setting.branch.to_string()),
        "miss_reason": timeline.names.text(request.setting.miss_reason),
        "billed": {
            "read": request.usage().cache_read,
            "write": request.usage().cache_creation,
            "uncached": request.usage().input,
        },
        "baseline": log.spent(),
        "simulated": simulated.map(Priced::spent),
        "shared": simulated.map(Priced::shared),
        "iet": simulated.map(|priced| run.cost_of(priced).iet()),
    })
}

/// What only some policies say about a request.
struct PolicyFields {
    /// Why the bill shows a cache miss, by request.
    causes: Option<BTreeMap<Id, Option<Cause>>>,
    /// Which tools were picked, and by which of their words.
    picks: Option<BTreeMap<Id, Vec<Pick>>>,
}

impl PolicyFields {
    fn new(simulation: &Simulation<'_>, configs: &PolicyConfigs, row: &StackRow, run: &SimulatedRun) -> Result<Self> {
        let causes = || bill::causes(&simulation.simulator, run).collect();
        let picker = row.stack.has(Policy::PickTools).then(|| outcome::policy(simulation, configs)).transpose()?;
        Ok(Self {
            causes: row.stack.has(Policy::PromptCache).then(causes),
            picks: picker.map(|picker| picker.picks_by_request(&simulation.workload.timeline)),
        })
    }

    fn add(&self, line: &mut Value, request: Id) {
        if let Some(causes) = &self.causes {
            line["cause"] = json!(causes.get(&request).copied().flatten());
        }
        // Where nothing was to be picked there is no field; an empty list is a turn that no tool fitted.
        if let Some(picks) = self.picks.as_ref().and_then(|picks| picks.get(&request)) {
            line["picks"] = json!(picks);
        }
    }
}

/// Characters of a record that are shown.
const CHARS: usize = 240;

/// Adds the records behind the examples to each report.
pub fn add(reports: &mut [PolicyReport], input: &mut Input) {
    let examples = |report: &PolicyReport| -> Vec<(&'static str, Id)> {
        let classes = report.breakage.iter().flat_map(|breakage| &breakage.classes);
        let cited =
            classes.flat_map(|class| class.examples.iter().map(|example| (class.class.into_str(), &example.record)));
        cited.filter_map(|(word, record)| Some((word, Id::from_hex(record)?))).collect()
    };
    let wanted: IdSet<Id> = reports.iter().flat_map(examples).map(|(_, id)| id).collect();
    let jobs = input.jobs();
    let (found, failures) = named::find_records(&jobs, &wanted, CHARS, &input.pool);
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
