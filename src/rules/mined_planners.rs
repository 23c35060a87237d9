//! The planners that are compared, each with its value models: as published, as configured, and as the earlier sessions
//! teach; which mined links pay: those of the earlier sessions, followed through the later ones; and what the rules say of
//! planners that were judged.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::backtest::{BacktestNumbers, Promise, PromiseCoverage, SessionSplit, cuts};
use crate::base::bootstrap::{TAIL, sum_interval};
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::visible::Shown as _;
use crate::frames::fingerprint::{Observed, ToolCosts};
use crate::frames::input::Input;
use crate::frames::tool_use::tool_stats;
use crate::mine::follow_ups::FollowUps;
use crate::mine::projections::{self, Thresholds, ToldHistory};
use crate::mine::sizes::SizesBySession;
use crate::planner::bound::bound;
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::prefetches::{PlannerLedger, PrefetchEdge, PrefetchEnd, PrefetchTally};
use crate::planner::report::{PlannerArm, by_tool};
use crate::planner::selectivity::backtest::{Learned, backtest};
use crate::planner::selectivity::file::Selectivity;
use crate::planner::selectivity::{SHEET, SelectivityThresholds, examples};
use crate::planner::stage::{
    CONFIGURED, MINED, PUBLISHED, Planner, PlannerKind, PlannerStage, SELECTIVE, Trained, walk,
};
use crate::planner::trail;
use crate::planner::value_models::{LayerPrecedence, ModelLayers, ValueModels};
use crate::replay::Scenario;
use crate::replay::input::ReplayInput;
use crate::rules::prefetching::{Fetched, PrefetchBars, Prefetching, hold_idle, is_on, only_links};
use crate::rules::proposal::{KeyOwners, Proposal, settle};
use crate::rules::{RuleFacts, RuleThresholds, Speaks, judge_all, r6_cost_models, r7_speculation, statistics};
use crate::settings::annotations::Annotations;
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{SettingsFile, View};
use crate::telemetry::log::EventLog;

/// Name of the statistic that the selective planner stands on.
const SELECTIVE_TABLE: &str = "selective table";

/// All planners.
pub fn planners(stage: &PlannerStage, data: &Data) -> Result<Vec<Planner>> {
    let annotations = Annotations::load(data)?;
    let found = mined(stage, data, &annotations)?;
    let selective = mined_models(stage, &annotations, &found)?;
    let numbers = data.read(SHEET, SelectivityThresholds::parse)?;
    let learned = selectivity(stage, &selective, &numbers);
    Ok(vec![
        Planner {
            name: PUBLISHED,
            about: "published annotations, scoring and wiring",
            models: layers(stage, &Annotations::published()?)?.resolve(LayerPrecedence::WholeModel)?,
            kind: PlannerKind::Published,
        },
        configured(stage, data)?,
        mined_planner(stage, &annotations, &found)?,
        Planner {
            name: SELECTIVE,
            about: "mined links, each call by what its result looks like, from the threshold on that the training sessions set",
            models: selective,
            kind: PlannerKind::ByTable { table: learned.selectivity(), learned: Some(Box::new(learned)), numbers },
        },
    ])
}

/// The planner with the mined links.
pub fn mined_planner(stage: &PlannerStage, annotations: &Annotations, found: &[Finding]) -> Result<Planner> {
    Ok(Planner {
        name: MINED,
        about: "links, sizes and projections mined on the training sessions, expected value",
        models: mined_models(stage, annotations, found)?,
        kind: PlannerKind::ByLink,
    })
}

fn mined_models(stage: &PlannerStage, annotations: &Annotations, found: &[Finding]) -> Result<ValueModels> {
    let empty = empty()?;
    let file = SettingsFile::parse(&empty.path, &Proposal::new(&empty, found.to_vec(), annotations)?.text)?;
    let mut layers = layers(stage, annotations)?;
    layers.user(&file);
    layers.resolve(LayerPrecedence::ByField)
}

/// A configuration that says nothing.
fn empty() -> Result<SettingsFile> {
    SettingsFile::parse(Path::new("mined"), "schema_version = 4\n")
}

/// The planner as the file of the user has it.
pub fn configured(stage: &PlannerStage, data: &Data) -> Result<Planner> {
    configured_by(&stage.file, stage, data)
}

fn configured_by(file: &SettingsFile, stage: &PlannerStage, data: &Data) -> Result<Planner> {
    let mut layers = layers(stage, &Annotations::load(data)?)?;
    layers.user(file);
    let numbers = data.read(SHEET, SelectivityThresholds::parse)?;
    let table = Selectivity::from_toml(&file.text, &file.path.shown(), &numbers)?;
    let by_link = table == Selectivity::default();
    Ok(Planner {
        name: CONFIGURED,
        about: "your configuration, and the shipped annotations of tools that it does not name, expected value",
        models: layers.resolve(LayerPrecedence::WholeModel)?,
        kind: if by_link { PlannerKind::ByLink } else { PlannerKind::ByTable { learned: None, table, numbers } },
    })
}

/// What of the prefetches of a table that was learned until each week came true after it.
fn coverage_of(stage: &PlannerStage, data: &Data, numbers: &BacktestNumbers) -> Result<PromiseCoverage> {
    let mut layers = layers(stage, &Annotations::load(data)?)?;
    layers.user(&stage.file);
    let models = layers.resolve(LayerPrecedence::WholeModel)?;
    let selectivity = data.read(SHEET, SelectivityThresholds::parse)?;
    let (told, PlannerThresholds { judge, targets, resampling, .. }) = (stage.told(), &stage.numbers);
    let known = KnownTools::new(&models, told, &stage.numbers);
    let examples = examples(told, &known, judge);
    let mut order: Vec<usize> = (0..told.history.sessions.len()).collect();
    order.sort_by_key(|&session| (told.history.sessions[session].ts_first, told.history.sessions[session].id));
    let mut rank = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &session)| rank[session] = place);
    let starts: Vec<i64> = order.iter().map(|&session| told.history.sessions[session].ts_first).collect();
    let judged = |cut: SessionSplit| {
        let is_known = |session: u32| rank[session as usize] < cut.known;
        let found = backtest(&examples, &is_known, targets.hit_min, &selectivity, resampling);
        let held_out = examples.iter().filter(|example| !is_known(example.session));
        let of_session = found.by_session(held_out, &selectivity).into_iter();
        of_session.map(|(session, judged)| (u64::from(session), judged)).collect()
    };
    let promise = Promise::AtLeast(targets.hit_min);
    Ok(PromiseCoverage::of((SELECTIVE_TABLE, "candidates"), promise, &cuts(&starts, numbers), numbers, &judged))
}

fn layers(stage: &PlannerStage, annotations: &Annotations) -> Result<ModelLayers> {
    let mut layers = ModelLayers::default();
    let tools = stage.tools.texts().iter().map(String::as_str);
    layers.annotate_reachable(tools, |tool| {
        annotations.of(tool).map(|annotation| (annotation.model, annotation.origin))
    })?;
    Ok(layers)
}

/// What rule T1 says of the training sessions to somebody who has no configuration.
pub fn mined(stage: &PlannerStage, data: &Data, annotations: &Annotations) -> Result<Vec<Finding>> {
    let [said] = said_to([&empty()?], stage, data, annotations)?;
    Ok(said)
}

/// What rule T1 says of the training sessions to each of some configurations.
fn said_to<const N: usize>(
    files: [&SettingsFile; N],
    stage: &PlannerStage,
    data: &Data,
    annotations: &Annotations,
) -> Result<[Vec<Finding>; N]> {
    let mut said = [const { Vec::new() }; N];
    let history = stage.history.of_sessions(&stage.split.trains);
    if history.calls_of_chains().next().is_none() {
        return Ok(said);
    }
    let thresholds: Thresholds = data.parsed("mined_projections.toml")?;
    let numbers = statistics::numbers(data)?;
    let follow_ups = FollowUps::of_history(&history, &numbers.links.lags);
    let coverage = statistics::coverage(&follow_ups, &SizesBySession::of_history(&history), &numbers);
    let told = ToldHistory { history: &history, ..stage.told() };
    let (tools, follow_ups) = (tool_stats(&history)?, follow_ups.rows(&numbers));
    let projections = projections::mine(told, &thresholds);
    for (file, said) in files.into_iter().zip(&mut said) {
        let view = View::of(file)?;
        let facts = RuleFacts {
            names: &stage.tools,
            tools: &tools,
            follow_ups: &follow_ups,
            projections: &projections,
            runnable: &stage.runnable,
            coverage: &coverage,
            ..RuleFacts::none(&view, annotations, &stage.numbers.projection)
        };
        *said = settle(&view, &KeyOwners::default(), judge_all(&facts, data, &[Speaks::LogsWithTools])?);
    }
    Ok(said)
}

/// Probabilities by what an answer looks like, counted on the training sessions, and the threshold that they set.
fn selectivity(stage: &PlannerStage, models: &ValueModels, numbers: &SelectivityThresholds) -> Learned {
    let told = stage.told();
    let known = KnownTools::new(models, told, &stage.numbers);
    let examples = examples(told, &known, &stage.numbers.judge);
    let PlannerThresholds { targets, resampling, .. } = &stage.numbers;
    Learned::new(&examples, &stage.split.trains, targets.hit_min, numbers, resampling)
}

/// Adds to the events of the logs what the planner of a configuration would have fetched and declined in the later
/// sessions, judged by what the agent did next; tells how many sessions these are.
pub fn shadow(
    file: &SettingsFile,
    input: &mut Input,
    source: &ReplayInput,
    scenario: &Scenario,
    log: &mut EventLog,
) -> Result<u64> {
    let stage = PlannerStage::new(file.clone(), input, None)?;
    let planner = configured(&stage, &input.data)?;
    planner.models.accept()?;
    input.pool.install(|| trail::add(&stage, &planner, source, scenario, log));
    Ok(stage.split.judged())
}

/// How much of what the selective planner would have fetched week by week, over the links of a configuration, was exactly
/// what came next.
pub fn selective_coverage(file: SettingsFile, input: &mut Input, numbers: &BacktestNumbers) -> Result<PromiseCoverage> {
    let stage = PlannerStage::new(file, input, None)?;
    let data = input.data.clone();
    input.pool.install(|| coverage_of(&stage, &data, numbers))
}

/// Mines on the earlier sessions and follows what was mined through the later ones.
pub fn prefetching(stage: &PlannerStage, data: &Data) -> Result<Prefetching> {
    let judge = StageJudge { stage, trained: Trained::new(stage) };
    let judged_on = stage.split.judged();
    let mut found = Prefetching {
        mined_on: stage.judged.len() as u64 - judged_on,
        judged_on,
        judged_min: statistics::numbers(data)?.backtest.later_min as u64,
        bars: PrefetchBars { hit_min: stage.numbers.targets.hit_min, overrun_max: stage.numbers.targets.overrun_max },
        ..Prefetching::default()
    };
    if judged_on < found.judged_min {
        return Ok(found);
    }
    let configured = configured(stage, data)?;
    configured.models.accept()?;
    if is_on(&View::of(&stage.file)?) {
        found.configured = Some(judge.fetched(&judge.ledgers(&configured), None));
    }
    let annotations = Annotations::load(data)?;
    let [said, mut to_file] = said_to([&empty()?, &stage.file], stage, data, &annotations)?;
    let mined = mined_planner(stage, &annotations, &said)?;
    let ledgers = judge.ledgers(&mined);
    found.all = judge.fetched(&ledgers, None);
    let known = [&configured.models, &mined.models].map(|models| KnownTools::new(models, stage.told(), &stage.numbers));
    let limits = bound(stage.told(), &known, &stage.numbers, &stage.judged);
    (found.calls, found.reachable) = (limits.calls, limits.listed_whole);
    let [_, known] = known;
    let mut edges: BTreeMap<PrefetchEdge, (String, String)> = BTreeMap::new();
    for edge in ledgers.iter().flat_map(|ledger| ledger.edges.keys()) {
        let name = |tool| known.names.text(tool).to_owned();
        edges.entry(*edge).or_insert_with(|| (name(edge.0), name(edge.1)));
    }
    for (edge, (from, to)) in edges {
        found.links.entry(from).or_default().insert(to, judge.fetched(&ledgers, Some(edge)));
    }
    let alone = |from: &str, to: &str| {
        let fetched = found.links.get(from).and_then(|links| links.get(to));
        fetched.is_some_and(|fetched| fetched.why_not(&found.bars).is_none())
    };
    // What stands in the file stays, and has its say.
    only_links(&mut to_file, &alone);
    let text = Proposal::new(&stage.file, to_file, &annotations)?.text;
    let written = configured_by(&SettingsFile::parse(&stage.file.path, &text)?, stage, data)?;
    found.paying = judge.fetched(&judge.ledgers(&written), None);
    Ok(found)
}

/// What the planner of a configuration fetches ahead in the later sessions.
pub fn fetched_as_configured(file: &SettingsFile, input: &mut Input) -> Result<Fetched> {
    let stage = PlannerStage::new(file.clone(), input, None)?;
    let data = input.data.clone();
    let planner = configured(&stage, &data)?;
    planner.models.accept()?;
    Ok(input.pool.install(|| {
        let judge = StageJudge { stage: &stage, trained: Trained::new(&stage) };
        judge.fetched(&judge.ledgers(&planner), None)
    }))
}

struct StageJudge<'s> {
    stage: &'s PlannerStage,
    trained: Trained,
}

impl StageJudge<'_> {
    /// What it does, session by session.
    fn ledgers(&self, planner: &Planner) -> Vec<PlannerLedger> {
        let known = KnownTools::new(&planner.models, self.stage.told(), &self.stage.numbers);
        walk(self.stage, planner, &known, &self.trained, &self.stage.settings.enrichment, None, None)
    }

    /// What one link, or everything, came to.
    fn fetched(&self, ledgers: &[PlannerLedger], edge: Option<PrefetchEdge>) -> Fetched {
        let mut sum = Fetched::default();
        let mut nets = Vec::new();
        let judged = ledgers.iter().zip(&self.stage.judged).filter(|(_, is_judged)| **is_judged);
        for (ledger, _) in judged {
            let tally = edge.map_or(Some(&ledger.total), |edge| ledger.edges.get(&edge).map(Box::as_ref));
            let Some(tally) = tally.filter(|tally| tally.sent() > 0) else { continue };
            add(&mut sum, tally);
            nets.push((2 * tally.ends[PrefetchEnd::Won]) as f64 - tally.sent() as f64);
        }
        let sessions = self.stage.split.judged() as usize;
        sum.net_95 = sum_interval(&nets, sessions, &self.stage.numbers.resampling, TAIL);
        sum
    }
}

fn add(sum: &mut Fetched, tally: &PrefetchTally) {
    sum.sent += tally.sent();
    sum.exact += tally.near.exact;
    sum.won += tally.ends[PrefetchEnd::Won];
    sum.overruns.0 += tally.overruns;
    sum.overruns.1 += tally.answers_known;
}

/// What R7 says of the planner as it is configured, with hits that know arguments.
pub fn advice(stage: &PlannerStage, arms: &[PlannerArm], data: &Data) -> Result<Vec<String>> {
    let Some(arm) = arms.iter().find(|arm| arm.name == CONFIGURED) else { return Ok(Vec::new()) };
    let tools = by_tool(&arm.edges).into_iter().filter(|(_, tally)| tally.sent() > 0);
    let costs = |(tool, tally): (String, PrefetchTally)| ToolCosts {
        key: Some(tool.clone()),
        tool,
        events: tally.sent(),
        calls: tally.sent() as f64,
        predictions: tally.answers_known,
        overruns: tally.overruns,
        prefetches: tally.sent(),
        prefetches_judged: tally.sent(),
        prefetches_cited: tally.near.exact,
        prefetches_raced: tally.sent(),
        prefetches_won: tally.ends[PrefetchEnd::Won],
        ..ToolCosts::default()
    };
    let observed = Observed { tools: tools.map(costs).collect(), ..Observed::default() };
    let view = View::of(&stage.file)?;
    let annotations = Annotations::load(data)?;
    let facts = RuleFacts {
        names: &stage.tools,
        runnable: &stage.runnable,
        observed: &observed,
        ..RuleFacts::none(&view, &annotations, &stage.numbers.projection)
    };
    let mut found = settle(&view, &KeyOwners::default(), judge_all(&facts, data, &[Speaks::AutoEnrichment])?);
    // As the command does that is told of.
    hold_idle(&mut found, &view);
    let changes = found.iter().any(|finding| finding.proposed().is_some());
    let mut lines = r7_speculation::lines(&found);
    lines.extend(tighten(&facts, data)?);
    if lines.is_empty() {
        lines.push("R7: nothing was prefetched, so there is nothing to judge".to_owned());
    }
    if changes {
        lines.push(
            "`devboy tune analyze --from-claude-logs --auto-enrichment` judges the configured planner over its own sessions and \
             writes such a change into the configuration"
                .to_owned(),
        );
    }
    let hit = |arm: &PlannerArm| arm.hit().value();
    let best = arms.iter().filter(|other| other.total.sent() > 0).max_by(|a, b| hit(a).total_cmp(&hit(b)));
    if let Some(best) = best.filter(|best| best.name != CONFIGURED && best.hit().lower > arm.hit().upper) {
        let how = match best.name.as_str() {
            MINED => "; `devboy tune from-claude-logs --tools` mines such links",
            SELECTIVE => "; `--write-selectivity FILE` writes its table for your configuration",
            _ => "",
        };
        lines.push(format!("planner \"{}\" has the best hit rate: {}{how}", best.name, best.about));
    }
    Ok(lines)
}

/// What R6 flags: tools whose links promise more than they keep. Its other judgements need recorded responses.
fn tighten(facts: &RuleFacts<'_>, data: &Data) -> Result<Vec<String>> {
    let rule = &r6_cost_models::RULE;
    let found = (rule.judge)(facts, &RuleThresholds::of(rule.file, data)?)?;
    let flagged = found.iter().filter_map(|finding| match &finding.verdict {
        Verdict::Hold(reason) => Some(format!("R6 hold: {}: {reason} ({})", finding.subject, finding.evidence.counts)),
        _ => None,
    });
    Ok(flagged.collect())
}
