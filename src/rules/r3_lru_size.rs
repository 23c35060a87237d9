//! R3: how many responses the deduplication of a session remembers.

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::base::stats::Share;
use crate::frames::fingerprint::EventProfile;
use crate::report::share::interval_95;
use crate::rules::responses::{EVERYTHING, scaled};
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "R3",
    file: "r3_lru_size",
    summary: "Sizes the cache of a session by how long sessions are and how often they are compacted.",
    speaks: Speaks::Events,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    events_min: u64,
    compaction_rate_max: f64,
    partition_share: f64,
    lru_size_long_min: u32,
    session_events_min: f64,
    lru_size_short: u32,
    lru_size: u32,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let seen = &facts.observed.profile;
    // Nothing can be divided by no responses, whatever the sheet says.
    if seen.events < thresholds.events_min.max(1) {
        let verdict = Verdict::Skip(format!("too few responses ({})", sheet.cite("events_min")));
        let counts = format!("{} responses", seen.events);
        let evidence = Evidence::of(counts, seen.events);
        return Ok(vec![Finding::new(RULE.id, EVERYTHING, verdict, evidence)]);
    }
    let (lru_size, evidence) = size(seen, &thresholds, sheet);
    let verdict = facts.wants(KeyPath::from(["dedup", "lru_size"]), Value::from(lru_size));
    Ok(vec![Finding::new(RULE.id, EVERYTHING, verdict, evidence)])
}

/// The size for such sessions, and why.
fn size(seen: &EventProfile, thresholds: &Thresholds, sheet: &RuleThresholds) -> (i64, Evidence) {
    let per_partition = seen.calls / seen.partitions.max(1) as f64;
    let per_session = seen.calls / seen.sessions.max(1) as f64;
    let responses = counted(seen.calls.round() as u64, "response");
    let compactions = format!("{} in {responses}", counted(seen.compactions, "compaction"));
    let share = compaction_share(seen);
    let evidence = |counts: &str, share, key| Evidence {
        counts: scaled(seen.events, seen.calls, counts),
        share,
        n: seen.events,
        threshold: Some(sheet.cite(key)),
        ..Evidence::default()
    };
    if seen.compactions as f64 / seen.calls > thresholds.compaction_rate_max {
        let counts =
            format!("{per_partition:.1} responses in each of {}\n{compactions}", counted(seen.partitions, "partition"));
        let wanted = (thresholds.partition_share * per_partition).ceil() as i64;
        let evidence = evidence(&counts, share, "compaction_rate_max");
        return (wanted.max(thresholds.lru_size_long_min.into()), evidence);
    }
    let interval = share.map(|share| format!(" ({})", interval_95(share))).unwrap_or_default();
    let sessions = counted(seen.sessions, "session");
    let counts = format!("{compactions}{interval}\n{per_session:.1} responses in each of {sessions}");
    let evidence = evidence(&counts, None, "session_events_min");
    let short = per_session < thresholds.session_events_min;
    (if short { thresholds.lru_size_short } else { thresholds.lru_size }.into(), evidence)
}

/// Compactions are counted whole even of a sample, so their share is that of all responses. None where there are more of
/// them than responses.
fn compaction_share(seen: &EventProfile) -> Option<Share> {
    let responses = seen.calls.round() as u64;
    (seen.compactions <= responses).then(|| Share::new(seen.compactions, responses))
}
