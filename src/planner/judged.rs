//! From planners to a report: every planner walks the judged sessions, once as it is and once with random values.

use crate::base::bootstrap::interval;
use crate::base::stats::TargetFigure::{AtLeast, AtMost};
use crate::base::stats::{Share, TargetFigure};
use crate::logs::history::Call;
use crate::planner::bound::{OfferedValue, OfferedValues, bound};
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::Targets;
use crate::planner::opportunities::moments;
use crate::planner::prefetches::PrefetchTally;
use crate::planner::report::{EdgeRow, HIT, Metric, PlannerArm, PlannerBacktest, PlannerReport};
use crate::planner::selectivity::backtest::Learned;
use crate::planner::stage::{CONFIGURED, PUBLISHED, Planner, PlannerKind, PlannerStage, Trained, sum, walk};
use crate::planner::value_models::ValueModels;
use crate::report::numbers::thousands;

/// Judges every planner. What to do about it is for the rules to say.
pub fn report(stage: &PlannerStage, planners: &[Planner]) -> PlannerReport {
    let trained = Trained::new(stage);
    let (told, numbers) = (stage.told(), &stage.numbers);
    let known: Vec<KnownTools<'_>> =
        planners.iter().map(|planner| KnownTools::new(&planner.models, told, numbers)).collect();
    let arms: Vec<PlannerArm> =
        planners.iter().zip(&known).map(|(planner, known)| arm(stage, planner, known, &trained)).collect();
    let configured = planners.iter().find(|planner| planner.name == CONFIGURED);
    let sessions = stage.judged.len() as u64;
    let backtest = PlannerBacktest {
        training_sessions: sessions - stage.split.judged(),
        judged_sessions: stage.split.judged(),
        judged_calls: arms.first().map_or(0, |arm| arm.total.calls),
        judged_from: stage.split.judged_from,
        enabled: stage.settings.enrichment.enabled,
    };
    PlannerReport {
        advice: Vec::new(),
        notes: notes(stage, &backtest, &arms, configured),
        bound: bound(told, &known, numbers, &stage.judged),
        selectivity: planners.iter().find_map(|planner| match &planner.kind {
            PlannerKind::ByTable { learned, numbers, .. } => Some((Learned::clone(learned.as_ref()?), numbers.clone())),
            PlannerKind::Published | PlannerKind::ByLink => None,
        }),
        backtest,
        arms,
    }
}

fn arm(stage: &PlannerStage, planner: &Planner, known: &KnownTools<'_>, trained: &Trained) -> PlannerArm {
    let (told, enrichment) = (stage.told(), &stage.settings.enrichment);
    let ledgers = walk(stage, planner, known, trained, enrichment, None, None);
    let whole = sum(&ledgers);
    let judged = || told.history.sessions.iter().zip(&ledgers).zip(&stage.judged).filter(|(_, judged)| **judged);
    let mut sessions: Vec<(String, PrefetchTally)> =
        judged().map(|((session, ledger), _)| (session.id.to_string()[..16].to_owned(), ledger.total)).collect();
    sessions.sort_by(|(a, _), (b, _)| a.cmp(b));
    // Books by session and edge are as much as the values that the control needs.
    drop(ledgers);
    let offered = moments(told, known, &stage.numbers.judge, &|moment| Some(OfferedValue::of(&moment)));
    let donors = OfferedValues::new(told.history, offered);
    let mut control = PrefetchTally::default();
    walk(stage, planner, known, trained, enrichment, None, Some(&donors)).iter().for_each(|of| control += &of.total);
    let name = |tool| known.names.text(tool).to_owned();
    let edges =
        whole.edges.iter().map(|((from, to), tally)| EdgeRow { from: name(*from), to: name(*to), tally: **tally });
    let mut edges: Vec<EdgeRow> = edges.collect();
    // Symbols are numbered as files are read; names order ties whatever files are called.
    edges.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    let mut arm = PlannerArm {
        name: planner.name.to_owned(),
        about: planner.about.to_owned(),
        total: whole.total,
        control,
        metrics: Vec::new(),
        edges,
        sessions,
    };
    arm.metrics = metrics(stage, &arm);
    arm
}

/// The target metrics with their intervals over sessions.
fn metrics(stage: &PlannerStage, arm: &PlannerArm) -> Vec<Metric> {
    let Targets { hit_min, recall_loss_max, overrun_max } = stage.numbers.targets;
    // Successes and trials.
    type Count = fn(&PrefetchTally) -> (u64, u64);
    let (hit, loss, overrun) = (AtLeast(hit_min), AtMost(recall_loss_max), AtMost(overrun_max));
    let wanted: [(&'static str, &'static str, Option<TargetFigure>, Count); 4] = [
        (HIT, "hit", Some(hit), |tally| (tally.near.exact, tally.sent())),
        ("exact_recall_loss", "recall loss", Some(loss), |tally| (tally.declined_needed(), tally.declined())),
        ("cost_overrun", "overrun", Some(overrun), |tally| (tally.overruns, tally.answers_known)),
        ("calls_not_run", "calls not run", None, |tally| (tally.calls_saved(), tally.calls)),
    ];
    wanted
        .into_iter()
        .map(|(key, name, target, count)| {
            let (k, n) = count(&arm.total);
            let sessions: Vec<(u64, u64)> = arm.sessions.iter().map(|(_, tally)| count(tally)).collect();
            let share = Share::new(k, n);
            let wider = |(lower, upper): (f64, f64)| (lower.min(share.lower), upper.max(share.upper));
            let sessions = interval(&sessions, &stage.numbers.resampling).map(wider);
            Metric { key, name, share, sessions, target }
        })
        .collect()
}

/// What the prompts changed.
fn intent_note(stage: &PlannerStage, arms: &[PlannerArm]) -> String {
    if stage.intents.is_none() {
        return "intent keywords: n/a, since prompts are no facts; `--intent` reads them".to_owned();
    }
    let changed = arms.iter().filter(|arm| arm.name != PUBLISHED).map(|arm| {
        let PrefetchTally { plans_with_intent, plans_by_intent, .. } = arm.total;
        format!("{} {plans_by_intent} of {plans_with_intent}", arm.name)
    });
    let changed = changed.collect::<Vec<_>>().join(", ");
    format!(
        "intent keywords: plans that they changed, of those whose prompt names a field: {changed}; as published: n/a"
    )
}

/// For how much of the calls any value model speaks.
fn coverage_note(stage: &PlannerStage, models: &ValueModels) -> String {
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

fn notes(
    stage: &PlannerStage,
    backtest: &PlannerBacktest,
    arms: &[PlannerArm],
    configured: Option<&Planner>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !backtest.enabled {
        notes.push("enrichment is off in the configuration: this is what it would do if it were on".to_owned());
    }
    let fixed = [
        "times: the clock of the log; latencies are medians of the training sessions, waits for permission included; limits \
         hold within a context, so subagents that run beside each other are not counted together",
        "a hit ends where the file is edited, a tool that invalidates it is called, or the context is compacted; a shell may \
         change anything, which is counted apart and ends no hit",
        "what the context has read before is not fetched again: a repeat is left to deduplication (`devboy replay`)",
        "a prefetch saves a call, not tokens: its result enters the context either way; unused results stay outside of it, \
         so waste costs executions",
        "tokens are bytes of the result by 4, as predictions are; overruns are known only where the agent got the result",
        "the logs show every tool; an MCP server sees only its own calls, and could fetch none of the built-in ones",
        "hosts of addresses: n/a, since only their hashes are known, so only `rate_limit_host` limits calls per host",
        "as published, the agent's own call runs although its result is there, and one call may credit several prefetches",
    ];
    notes.extend(fixed.map(str::to_owned));
    notes.push(intent_note(stage, arms));
    notes.extend(configured.map(|planner| coverage_note(stage, &planner.models)));
    notes
}
