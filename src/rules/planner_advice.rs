//! What the rules say of planners that were judged.

use crate::base::data::Data;
use crate::base::error::Result;
use crate::frames::fingerprint::{Observed, ToolCosts};
use crate::planner::prefetches::PrefetchTally;
use crate::planner::report::{PlannerArm, by_tool};
use crate::planner::stage::{CONFIGURED, MINED, PlannerStage, SELECTIVE};
use crate::rules::proposal::{KeyOwners, settle};
use crate::rules::{RuleFacts, RuleThresholds, Speaks, judge_all, r6_cost_models, r7_speculation};
use crate::settings::View;
use crate::settings::annotations::Annotations;
use crate::settings::finding::Verdict;

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
    let found = settle(&view, &KeyOwners::default(), judge_all(&facts, data, &[Speaks::AutoEnrichment])?);
    let changes = found.iter().any(|finding| matches!(finding.verdict, Verdict::Propose(_)));
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
