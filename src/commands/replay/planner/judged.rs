//! From planners to a report: every planner walks the judged sessions, once as it is and once as the control.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::bootstrap::interval;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::stats::Share;
use crate::base::verdict::Target;
use crate::commands::replay::planner::Stage;
use crate::commands::replay::planner::learned::{CONFIGURED, Kind, MINED, Planner, SELECTIVE};
use crate::frames::fingerprint::{Observed, ToolCosts};
use crate::logs::history::Call;
use crate::planner::bound::bound;
use crate::planner::control::Donors;
use crate::planner::known_tools::KnownTools;
use crate::planner::latencies::Latencies;
use crate::planner::opportunities::moments;
use crate::planner::plan::Scoring;
use crate::planner::prefetches::{PlannerLedger, Tally, Trace};
use crate::planner::report::{Arm, Backtest, EdgeRow, HIT, Metric, PlannerReport, by_tool};
use crate::planner::selectivity::learned::Learned;
use crate::planner::selectivity::odds::{Named, Selective};
use crate::planner::value_models::ValueModels;
use crate::planner::walk;
use crate::planner::walk::{Policy, Wiring, arguments_seen, judge};
use crate::report::numbers::thousands;
use crate::rules::annotations::Annotations;
use crate::rules::precedence::Precedence;
use crate::rules::proposal::{View, settle};
use crate::rules::{Facts, Sheet, Speaks, judge_all, r6_cost_models, r7_speculation};
use crate::settings::finding::Verdict;
use crate::settings::{Effective, Enrichment};

/// What planners know of the training sessions besides links.
pub struct Trained {
    latencies: Latencies,
    arguments: BTreeMap<String, BTreeSet<String>>,
}

impl Trained {
    pub fn new(stage: &Stage) -> Self {
        let (told, trains) = (stage.told(), &stage.split.trains);
        Self { latencies: Latencies::measure(told, trains), arguments: arguments_seen(told, trains) }
    }
}

/// Lets one planner walk the judged sessions; `None` leaves a parameter where the planner has it.
pub fn walk(
    stage: &Stage,
    planner: &Planner,
    known: &KnownTools<'_>,
    trained: &Trained,
    enrichment: &Enrichment,
    probability_min: Option<f64>,
    control: Option<&Donors>,
) -> Vec<PlannerLedger> {
    let odds = odds(stage, planner, known);
    let policy = Policy {
        models: &planner.models,
        known,
        wiring: wiring(stage, planner, odds.as_ref(), probability_min),
        enrichment,
        latencies: &trained.latencies,
        arguments_seen: &trained.arguments,
        runnable: &stage.runnable,
        intents: stage.intents.as_ref(),
        control,
        numbers: &stage.numbers,
    };
    judge(stage.told(), &policy, &stage.judged)
}

/// What the live host would have recorded of a planner in the judged sessions.
pub fn trail(stage: &Stage, planner: &Planner) -> Vec<Trace> {
    let trained = Trained::new(stage);
    let known = KnownTools::new(&planner.models, stage.told(), &stage.numbers);
    let odds = odds(stage, planner, &known);
    let policy = Policy {
        models: &planner.models,
        known: &known,
        wiring: wiring(stage, planner, odds.as_ref(), None),
        enrichment: &stage.settings.enrichment,
        latencies: &trained.latencies,
        arguments_seen: &trained.arguments,
        runnable: &stage.runnable,
        intents: stage.intents.as_ref(),
        control: None,
        numbers: &stage.numbers,
    };
    walk::trail(stage.told(), &policy, &stage.judged)
}

fn odds<'a>(stage: &'a Stage, planner: &'a Planner, known: &'a KnownTools<'_>) -> Option<Selective<'a>> {
    match &planner.kind {
        Kind::ByTable { table, numbers, .. } => {
            Some(Selective { learned: table, numbers, named: Named::new(stage.told(), known) })
        }
        Kind::Published | Kind::ByLink => None,
    }
}

fn wiring<'a>(
    stage: &Stage,
    planner: &Planner,
    odds: Option<&'a Selective<'_>>,
    probability_min: Option<f64>,
) -> Wiring<'a> {
    let by_link = probability_min.unwrap_or(stage.numbers.candidates.probability_min);
    match odds {
        _ if matches!(planner.kind, Kind::Published) => Wiring::Published { probability_min: by_link },
        None => Wiring::Improved { scoring: Scoring::ExpectedValue, probability_min: by_link, odds: None },
        // The table has its own threshold, below which nothing is left.
        Some(odds) => Wiring::Improved {
            scoring: Scoring::ExpectedValue,
            probability_min: probability_min.unwrap_or(f64::MIN_POSITIVE),
            odds: Some(odds),
        },
    }
}

/// The books of several sessions in one.
pub fn sum(books: &[PlannerLedger]) -> PlannerLedger {
    books.iter().fold(PlannerLedger::default(), |mut sum, books| {
        sum.absorb(books);
        sum
    })
}

/// Judges every planner.
///
/// # Errors
/// If a data file does not fit.
pub fn report(stage: &Stage, planners: &[Planner], data: &Data) -> Result<PlannerReport> {
    let trained = Trained::new(stage);
    let arms: Vec<Arm> = planners.iter().map(|planner| arm(stage, planner, &trained)).collect();
    let (told, numbers) = (stage.told(), &stage.numbers);
    let configured = planners.iter().find(|planner| planner.name == CONFIGURED);
    let bound = configured.map(|planner| {
        let known = KnownTools::new(&planner.models, told, numbers);
        bound(told, &known, &stage.settings.enrichment, numbers, &stage.judged)
    });
    let sessions = stage.judged.len() as u64;
    let backtest = Backtest {
        training_sessions: sessions - stage.split.judged(),
        judged_sessions: stage.split.judged(),
        judged_calls: arms.first().map_or(0, |arm| arm.total.calls),
        judged_from: stage.split.judged_from,
        enabled: stage.settings.enrichment.enabled,
    };
    Ok(PlannerReport {
        advice: advice(stage, &arms, data)?,
        notes: notes(stage, &backtest, &arms, configured),
        bound: bound.unwrap_or_default(),
        selectivity: planners.iter().find_map(|planner| match &planner.kind {
            Kind::ByTable { learned, numbers, .. } => Some((Learned::clone(learned.as_ref()?), numbers.clone())),
            Kind::Published | Kind::ByLink => None,
        }),
        backtest,
        arms,
    })
}

fn arm(stage: &Stage, planner: &Planner, trained: &Trained) -> Arm {
    let (told, enrichment) = (stage.told(), &stage.settings.enrichment);
    let known = KnownTools::new(&planner.models, told, &stage.numbers);
    let donors = Donors::new(told.history, &moments(told, &known, &stage.numbers.judge, &[]));
    let books = walk(stage, planner, &known, trained, enrichment, None, None);
    let control = sum(&walk(stage, planner, &known, trained, enrichment, None, Some(&donors)));
    let whole = sum(&books);
    let judged = || told.history.sessions.iter().zip(&books).zip(&stage.judged).filter(|(_, judged)| **judged);
    let mut sessions: Vec<(String, Tally)> =
        judged().map(|((session, books), _)| (session.id.to_string()[..16].to_owned(), books.total)).collect();
    sessions.sort_by(|(a, _), (b, _)| a.cmp(b));
    let name = |tool| known.names.text(tool).to_owned();
    let edges =
        whole.edges.iter().map(|((from, to), tally)| EdgeRow { from: name(*from), to: name(*to), tally: *tally });
    let mut edges: Vec<EdgeRow> = edges.collect();
    // Symbols are numbered as files are read; names order ties whatever files are called.
    edges.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    let mut arm = Arm {
        name: planner.name.to_owned(),
        about: planner.about.to_owned(),
        always_runs: planner.always_runs(),
        total: whole.total,
        control: control.total,
        metrics: Vec::new(),
        edges,
        sessions,
    };
    arm.metrics = metrics(stage, &arm);
    arm
}

/// The target metrics with their intervals over sessions.
fn metrics(stage: &Stage, arm: &Arm) -> Vec<Metric> {
    let targets = &stage.numbers.targets;
    let always_runs = arm.always_runs;
    let saved = move |tally: &Tally| {
        let of_session = Arm { total: *tally, always_runs, ..Arm::default() };
        (of_session.calls_saved(), tally.calls)
    };
    type Count<'c> = Box<dyn Fn(&Tally) -> (u64, u64) + 'c>;
    let wanted: [(&'static str, &str, Option<Target>, Count<'_>); 4] = [
        (HIT, "hit", Some(Target::AtLeast(targets.hit_min)), Box::new(|tally| (tally.near.exact, tally.sent()))),
        (
            "exact_recall_loss",
            "recall loss",
            Some(Target::AtMost(targets.recall_loss_max)),
            Box::new(|tally| (tally.declined_needed(), tally.declined())),
        ),
        (
            "cost_overrun",
            "overrun",
            Some(Target::AtMost(targets.overrun_max)),
            Box::new(|tally| (tally.overruns, tally.answers_known)),
        ),
        ("calls_not_run", "calls not run", None, Box::new(saved)),
    ];
    wanted
        .into_iter()
        .map(|(key, name, target, count)| {
            let (k, n) = count(&arm.total);
            let sessions: Vec<(u64, u64)> = arm.sessions.iter().map(|(_, tally)| count(tally)).collect();
            Metric {
                key,
                name: name.to_owned(),
                share: Share::new(k, n),
                sessions: interval(&sessions, &stage.numbers.resampling),
                target,
            }
        })
        .collect()
}

/// What R7 says of the planner as it is configured, with hits that know arguments.
fn advice(stage: &Stage, arms: &[Arm], data: &Data) -> Result<Vec<String>> {
    let Some(arm) = arms.iter().find(|arm| arm.name == CONFIGURED) else { return Ok(Vec::new()) };
    let tools = by_tool(&arm.edges).into_iter().filter(|(_, tally)| tally.sent() > 0);
    let costs = |(tool, tally): (String, Tally)| ToolCosts {
        key: Some(tool.clone()),
        tool,
        events: tally.sent(),
        calls: tally.sent() as f64,
        predictions: tally.answers_known,
        overruns: tally.overruns,
        prefetches: tally.sent(),
        prefetches_judged: tally.sent(),
        prefetches_cited: tally.near.exact,
        ..ToolCosts::default()
    };
    let observed = Observed { tools: tools.map(costs).collect(), ..Observed::default() };
    let effective = Effective::resolve(&stage.file)?;
    let view = View::new(&stage.file, &effective);
    let facts = Facts {
        names: &stage.tools,
        models: &[],
        sessions: &[],
        tools: &[],
        follow_ups: &[],
        projections: &[],
        projecting: &stage.numbers.projection,
        runnable: &stage.runnable,
        coverage: &[],
        calibration: &[],
        fields: &[],
        annotations: &Annotations::load(data)?,
        families: &[],
        observed: &observed,
        current: &view,
    };
    let found = settle(&view, &Precedence::default(), judge_all(&facts, data, &[Speaks::AutoEnrichment])?);
    let changes = found.iter().any(|finding| matches!(finding.verdict, Verdict::Propose(_)));
    let mut lines = r7_speculation::lines(&found);
    lines.extend(tighten(&facts, data)?);
    if lines.is_empty() {
        lines.push("R7: nothing was prefetched, so there is nothing to judge".to_owned());
    }
    if changes {
        lines.push(
            "`devboy tune analyze --from-claude-logs --auto-enrichment` judges the configured planner in the same way and \
             writes this into the configuration"
                .to_owned(),
        );
    }
    let hit = |arm: &Arm| arm.hit().value();
    let best = arms.iter().filter(|other| other.total.sent() > 0).max_by(|a, b| hit(a).total_cmp(&hit(b)));
    if let Some(best) = best.filter(|best| best.name != CONFIGURED && hit(best) > hit(arm)) {
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
fn tighten(facts: &Facts<'_>, data: &Data) -> Result<Vec<String>> {
    let rule = &r6_cost_models::RULE;
    let found = (rule.judge)(facts, &Sheet::of(rule, data)?)?;
    let flagged = found.iter().filter_map(|finding| match &finding.verdict {
        Verdict::Hold(reason) => Some(format!("R6 hold: {}: {reason} ({})", finding.subject, finding.evidence.counts)),
        Verdict::Propose(_) | Verdict::Skip(_) | Verdict::Hint(_) => None,
    });
    Ok(flagged.collect())
}

/// What the prompts changed.
fn intent_note(stage: &Stage, arms: &[Arm]) -> String {
    if stage.intents.is_none() {
        return "intent keywords: n/a, since prompts are no facts; `--intent` reads them".to_owned();
    }
    let changed = arms.iter().filter(|arm| !arm.always_runs).map(|arm| {
        let Tally { plans_with_intent, plans_by_intent, .. } = arm.total;
        format!("{} {plans_by_intent} of {plans_with_intent}", arm.name)
    });
    let changed = changed.collect::<Vec<_>>().join(", ");
    format!(
        "intent keywords: plans that they changed, of those whose prompt names a field: {changed}; as published: n/a"
    )
}

/// For how much of the calls any value model speaks.
fn coverage_note(stage: &Stage, models: &ValueModels) -> String {
    let judged = |call: &&Call| stage.judged[stage.history.chains[call.chain as usize].session as usize];
    let calls = || stage.history.calls.iter().filter(judged);
    let known = calls().filter(|call| models.get(stage.tools.text(call.tool)).is_some()).count() as u64;
    format!(
        "value models speak for the tools of {} of {} calls; all others have the defaults of the schema and are never \
         called ahead",
        thousands(known),
        thousands(calls().count() as u64),
    )
}

fn notes(stage: &Stage, backtest: &Backtest, arms: &[Arm], configured: Option<&Planner>) -> Vec<String> {
    let mut notes = Vec::new();
    if !backtest.enabled {
        notes.push("enrichment is off in the configuration: this is what it would do if it were on".to_owned());
    }
    let fixed = [
        "times: the clock of the log; latencies are medians of the training sessions, waits for permission included; limits \
         hold within a context, so subagents that run beside each other are not counted together",
        "a hit ends where the file is edited, a tool that invalidates it is called, or the context is compacted; a shell may \
         change anything, which is counted apart and ends no hit",
        "what the context has read before is not fetched again: a repeat is the business of L0 (`devboy replay`)",
        "a prefetch saves a call, not tokens: its answer enters the context either way; unused answers stay outside of it, \
         so waste costs executions",
        "tokens are bytes of the answer by 4, as predictions are; overruns are known only where the agent got the answer",
        "the logs show every tool; an MCP server sees only its own calls, and could fetch none of the built-in ones",
        "hosts of addresses: n/a, since only their hashes are known, so only `rate_limit_host` limits calls per host",
        "as published, the agent's own call runs although its answer is there, and one call may credit several prefetches",
    ];
    notes.extend(fixed.map(str::to_owned));
    notes.push(intent_note(stage, arms));
    notes.extend(configured.map(|planner| coverage_note(stage, &planner.models)));
    notes
}
