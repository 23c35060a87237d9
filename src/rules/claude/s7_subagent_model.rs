//! S7: what subagents take of the bill, and with which models.

use serde::Deserialize;

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::hint;
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::{Evidence, Finding, Verdict};
use crate::whatif::sim::cost::Cost;

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S7",
    file: "s7_subagent_model",
    summary: "Tells what subagents take of the bill and with which models; never written, since what another one would have answered is in no log.",
    docs: include_str!("../../../rules/docs/s7_subagent_model.md"),
    judge,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    of_bill_percent_min: f64,
}

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let mut all = Cost::default();
    let mut subagents = Cost::default();
    for seen in &facts.study.sessions {
        all += seen.cost;
        subagents += seen.subagents;
    }
    let (whole, part) = all.beside(&subagents);
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    let models = facts.uses.subagent_models.iter().map(|(model, requests)| format!("{model} {requests}"));
    let models = models.collect::<Vec<_>>().join(", ");
    let evidence = Evidence::of(
        format!("{percent:.1} % of the bill is of subagents; their requests by model: {models}"),
        facts.uses.subagent_models.values().sum(),
    )
    .by(sheet.cite("of_bill_percent_min"));
    let subject = "model of subagents";
    if percent < thresholds.of_bill_percent_min || part == 0 {
        let verdict = Verdict::Skip("subagents take little of the bill".to_owned());
        return Ok(vec![Finding::new(RULE.id, subject, verdict, evidence)]);
    }
    let words = "CLAUDE_CODE_SUBAGENT_MODEL in \"env\" names one for agents that name none; whether it answers as well is in no log";
    Ok(vec![hint(facts, RULE.id, subject, "CLAUDE_CODE_SUBAGENT_MODEL", words.to_owned(), evidence)])
}
