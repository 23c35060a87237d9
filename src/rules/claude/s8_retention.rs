//! S8: how long the client keeps its logs.

use serde::Deserialize;

use crate::base::error::Result;
use crate::report::numbers::date;
use crate::rules::Sheet;
use crate::rules::claude::judge::{hint, key_of};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S8",
    file: "s8_retention",
    summary: "Tells where logs are deleted before a change could be held against what came after it; never written, since it saves nothing by itself.",
    docs: include_str!("../../../rules/docs/s8_retention.md"),
    judge,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    days_min: i64,
}

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let lever = "cleanupPeriodDays";
    let Some(key) = key_of(facts, lever) else { return Ok(Vec::new()) };
    let held = facts.layers.value(&key)?.and_then(|value| value.as_i64());
    let default = facts.levers.named(lever).map(|lever| lever.default_words()).unwrap_or_default();
    let days = held.map_or(default, |days| days.to_string());
    let first = facts
        .study
        .sessions
        .first()
        .map_or_else(String::new, |seen| format!("; the first session here is of {}", date(seen.first)));
    let evidence =
        Evidence::of(format!("logs are deleted after {days} days{first}"), facts.study.sessions.len() as u64)
            .by(sheet.cite("days_min"));
    if held.is_some_and(|days| days >= thresholds.days_min) {
        let verdict = Verdict::Skip(format!("`{key}` is {days}, which is enough"));
        return Ok(vec![Finding::new(RULE.id, "retention of logs", verdict, evidence)]);
    }
    let words = format!(
        "\"{lever}\": 365 keeps logs for a year: what a change brought can only be told from logs of before and after"
    );
    Ok(vec![hint(facts, RULE.id, "retention of logs", lever, words, evidence)])
}
