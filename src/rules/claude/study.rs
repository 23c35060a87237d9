//! What Claude Code could be set to, tried on the logs and judged: what is proposed, what that does as one configuration,
//! and the settings with it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::base::error::Result;
use crate::base::id::{Id, IdSet};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::cost::bill::Bill;
use crate::cost::findings::subagents;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::server_calls::server_calls;
use crate::frames::input::Input;
use crate::logs::timeline::requests::{Marks, Timeline};
use crate::logs::trace::{Millis, Place};
use crate::rules::claude::{SettingsFacts, Uses, judge_all};
use crate::rules::{Data, claude, effects, report, statistics};
use crate::settings::claude::file::{ClaudeFile, name_of};
use crate::settings::claude::layers::{ClaudePlaces, SettingsLayers, place_of_project, project_id};
use crate::settings::claude::levers::{Levers, SettingsScope};
use crate::settings::entries::{BillForecast, Journal, SettingsReach};
use crate::settings::finding::Finding;
use crate::settings::unified_diff;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::client::thresholds::Versions;
use crate::whatif::client::{LeverPart, LeverStudy, LeverTrials, LeverValue};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::workload::{Workload, cache_rules};

/// How often proposals are looked for that pay only beside others.
const ROUNDS_MAX: usize = 3;

/// Which settings are asked about.
pub struct AskedSettings<'a> {
    pub scope: SettingsScope,
    /// Where settings are.
    pub places: &'a ClaudePlaces,
    pub layers: SettingsLayers,
    /// The projects that they reach; none: all.
    pub projects: Option<BTreeSet<Id>>,
    /// The client versions of the last weeks.
    pub clients: Versions,
}

/// What was found, and what it comes to.
pub struct SettingsStudy {
    pub scope: SettingsScope,
    pub reach: SettingsReach,
    pub layers: SettingsLayers,
    /// What was tried, with what came of it.
    pub study: LeverStudy,
    pub findings: Vec<Finding>,
    /// What all that is proposed does as one configuration, if it is more than one change.
    pub together: Option<BillForecast>,
    /// The settings with what is proposed.
    pub text: String,
    pub diff: String,
}

impl SettingsStudy {
    /// Tries every lever on the requests of a timeline and judges what came of it. What the journal tells of earlier
    /// changes of the same reach is left out where forecasts are held against what came.
    pub fn of(
        asked: AskedSettings<'_>,
        timeline: Timeline,
        input: &Input,
        (reach, journal): (SettingsReach, &Journal),
    ) -> Result<Self> {
        let AskedSettings { scope, places, layers, projects, clients } = asked;
        let projects = projects.as_ref();
        let workload = Workload::new(timeline, None, &input.data, false, true)?;
        let cache = cache_rules(&PolicyConfigs::load(&input.data)?)?;
        let bill = Bill::new(&workload, cache.cache.class_unknown);
        let uses = uses(&workload, &bill, projects, (servers(scope, places)?, &input.data))?;
        let simulator = input.pool.install(|| workload.with_answers(&cache));
        let levers = Levers::load(&input.data)?;
        let standing = claude::standing(&layers, &levers)?;
        let within = within(scope, places, (&workload.timeline, input));
        let own = own(&within, (&layers, &levers));
        let asking = Asking { simulator: &simulator, workload: &workload, input, projects, clients, own };
        let trials = asking.trials(&standing)?;
        let study = asking.study(&trials);
        let resampling = &workload.cells.resampling;
        let of_file = &journal.clone().about(&name_of(&layers.file.path));
        let gateway = claude::behind_gateway(&layers, within.into_values(), &input.data)?;
        let facts = SettingsFacts {
            gateway: gateway.as_deref(),
            study: &study,
            levers: &levers,
            layers: &layers,
            journal: of_file,
            resampling,
            uses: &uses,
        };
        let (findings, together) = asking.settled(&facts, &trials, &effects::changed(journal, reach))?;
        let text = with_proposed(&layers, &findings)?;
        let diff = unified_diff(&layers.file.text, &text, &layers.file.path.shown());
        Ok(Self { scope, reach, layers, study, findings, together, text, diff })
    }
}

/// What values are tried on.
struct Asking<'a> {
    simulator: &'a Simulator<'a>,
    workload: &'a Workload,
    input: &'a Input,
    projects: Option<&'a BTreeSet<Id>>,
    clients: Versions,
    own: BTreeMap<Id, Vec<LeverValue>>,
}

impl<'a> Asking<'a> {
    fn trials(&self, standing: &[LeverValue]) -> Result<LeverTrials<'a>> {
        let Self { simulator, workload, input, projects, .. } = *self;
        input.pool.install(|| LeverTrials::new(simulator, workload, &input.data, projects, standing))
    }

    fn study(&self, trials: &LeverTrials<'_>) -> LeverStudy {
        let study = self.input.pool.install(|| trials.study());
        LeverStudy { versions: self.clients.clone(), ..study }.beside(self.own.clone())
    }

    fn judged(&self, facts: &SettingsFacts<'_>, changed: &[(Millis, LeverPart)]) -> Result<Vec<Finding>> {
        let mut findings = judge_all(facts, &self.input.data)?;
        self.input.pool.install(|| hold_broken(&mut findings, facts.study, &self.input.data, changed))?;
        Ok(findings)
    }

    /// What is proposed as one configuration, and what that does. What pays only beside it is proposed with it: else the next run
    /// would.
    fn settled(
        &self,
        facts: &SettingsFacts<'_>,
        trials: &LeverTrials<'_>,
        changed: &[(Millis, LeverPart)],
    ) -> Result<(Vec<Finding>, Option<BillForecast>)> {
        let settle = |findings: &mut [Finding]| {
            let together = |settings: &[LeverValue]| trials.together(settings);
            self.input.pool.install(|| claude::settle(facts, findings, &self.input.data, together))
        };
        let mut findings = self.judged(facts, changed)?;
        let mut together = settle(&mut findings)?;
        for _ in 0..ROUNDS_MAX {
            let standing = claude::with_proposed(&facts.study.standing, &findings);
            if standing == facts.study.standing {
                break;
            }
            let study = self.study(&self.trials(&standing)?);
            let beside = self.judged(&SettingsFacts { study: &study, ..*facts }, changed)?;
            if !claude::add_beside(facts, &mut findings, beside) {
                break;
            }
            together = settle(&mut findings)?;
        }
        Ok((findings, together))
    }
}

/// Holds what is proposed where forecasts of the past did not come true.
fn hold_broken(
    findings: &mut [Finding],
    study: &LeverStudy,
    data: &Data,
    changed: &[(Millis, LeverPart)],
) -> Result<()> {
    let (numbers, promised) = (statistics::numbers(data)?.backtest, statistics::effects(data)?);
    let attempts = effects::attempts(study, data, &numbers, changed)?;
    effects::hold_broken(findings, &effects::rows(&attempts, &numbers, &promised));
    Ok(())
}

fn with_proposed(layers: &SettingsLayers, findings: &[Finding]) -> Result<String> {
    let changes: Vec<(KeyPath, Value)> = findings
        .iter()
        .filter_map(Finding::proposed)
        .map(|delta| (delta.key.clone(), report::plain(&delta.to)))
        .collect();
    layers.file.with(changes.iter().map(|(key, value)| (key, value)))
}

/// Where projects have files of their own, where a file for all projects is asked about: those of the logs that are on this disk,
/// and the current one.
fn within(
    scope: SettingsScope,
    places: &ClaudePlaces,
    (timeline, input): (&Timeline, &Input),
) -> BTreeMap<Id, ClaudePlaces> {
    if scope != SettingsScope::User {
        return BTreeMap::new();
    }
    let known = timeline.sessions.iter().map(|session| session.project).collect();
    let named = input.texts(known, IdSet::default()).into_iter();
    let here = named.filter_map(|(project, path)| Some((project, place_of_project(&path)?)));
    let current = places.project.iter().map(|path| (project_id(path), path.clone()));
    let of = |(project, path)| (project, ClaudePlaces { project: Some(path), ..places.clone() });
    here.chain(current).map(of).collect()
}

/// What they decide themselves.
fn own(
    within: &BTreeMap<Id, ClaudePlaces>,
    (layers, levers): (&SettingsLayers, &Levers),
) -> BTreeMap<Id, Vec<LeverValue>> {
    let decided = |places: &ClaudePlaces| {
        let files = SettingsLayers::of_project(places)?;
        // The client leaves a broken file out.
        claude::decided(&files.about_those_of(layers), levers, layers).ok()
    };
    let own = within.iter().filter_map(|(project, places)| Some((*project, decided(places)?)));
    own.filter(|(_, settings)| !settings.is_empty()).collect()
}

/// The servers of the project's `.mcp.json`; none where no project is asked about.
fn servers(scope: SettingsScope, places: &ClaudePlaces) -> Result<Option<Map<String, Value>>> {
    let Some(project) = places.project.as_ref().filter(|_| scope != SettingsScope::User) else { return Ok(None) };
    let listed = ClaudeFile::load(&project.join(".mcp.json"))?.get(&KeyPath::from(["mcpServers"]))?;
    Ok(Some(listed.as_ref().and_then(Value::as_object).cloned().unwrap_or_default()))
}

/// What was used in some projects, or in all.
fn uses(
    workload: &Workload,
    bill: &Bill<'_>,
    projects: Option<&BTreeSet<Id>>,
    (servers, data): (Option<Map<String, Value>>, &Data),
) -> Result<Uses> {
    let (timeline, thresholds) = (&workload.timeline, FindingThresholds::load(data)?);
    let mut uses = Uses { servers, ..Uses::default() };
    let is_asked = |project: Id| projects.is_none_or(|asked| asked.contains(&project));
    let again = timeline.skipped.get("attachment:invoked_skills").filter(|_| projects.is_none());
    uses.skills_again = again.copied().unwrap_or_default();
    for (_, request) in timeline.counted().filter(|(_, request)| is_asked(timeline.session_of(request).project)) {
        uses.skills += u64::from(request.marks.has(Marks::SKILL));
        if timeline.chain(request.chain).place != Place::Main {
            *uses.subagent_models.entry(timeline.names.text(request.model).to_owned()).or_default() += 1;
            let is_movable = subagents::is_movable(workload, bill, &thresholds.subagents, request);
            uses.subagents_movable += u64::from(is_movable);
        }
    }
    let called = server_calls(timeline, &thresholds.servers.resource_tools);
    for (_, called) in called.into_iter().filter(|(project, _)| is_asked(*project)) {
        uses.resource_calls += called.resources.values().sum::<u64>();
        for (tool, calls) in called.tools {
            *uses.mcp_calls.entry(timeline.names.text(tool).to_owned()).or_default() += calls;
        }
    }
    Ok(uses)
}
