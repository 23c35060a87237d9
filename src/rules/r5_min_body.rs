//! R5: from which size on a response is looked up among earlier ones (deduplication).

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::rules::responses::{EVERYTHING, scaled};
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "R5",
    file: "r5_min_body",
    summary: "Sets `dedup.min_body_chars` to the size that three quarters of all responses reach.",
    speaks: Speaks::Events,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    events_min: u64,
    bytes_min: u32,
    bytes_max: u32,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let seen = &facts.observed.profile;
    let finding = |verdict, counts: String, threshold| {
        let evidence = Evidence { counts, n: seen.events, threshold, ..Evidence::default() };
        Ok(vec![Finding::new(RULE.id, EVERYTHING, verdict, evidence)])
    };
    let Some(p25) = seen.bytes_p25.filter(|_| seen.events >= thresholds.events_min) else {
        let reason = format!("too few responses ({})", sheet.cite("events_min"));
        return finding(Verdict::Skip(reason), format!("{} responses", seen.events), None);
    };
    let (least, most) = (u64::from(thresholds.bytes_min), u64::from(thresholds.bytes_max));
    // Not `clamp`: a sheet of the user's own may have the two the wrong way round.
    let (bytes, limit) = match p25 {
        p25 if p25 > most => (most, "bytes_max"),
        p25 => (p25.max(least), "bytes_min"),
    };
    let counts = format!(
        "the 25th percentile of {} is {p25} bytes; values from {least} to {most} may be written",
        counted(seen.events, "response")
    );
    let verdict = facts.wants(KeyPath::from(["dedup", "min_body_chars"]), Value::from(bytes as i64));
    finding(verdict, scaled(seen.events, seen.calls, &counts), Some(sheet.cite(limit)))
}
