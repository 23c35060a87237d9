//! R1: switch the replacement of repeats on where responses repeat, off where they do not.

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::base::stats::Share;
use crate::frames::fingerprint::Fingerprint;
use crate::rules::responses::RecordedSubject;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::View;
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "R1",
    file: "r1_dedup_enable",
    summary: "Switches deduplication per endpoint by the share of its responses that repeat, and asks for the cache that they need.",
    speaks: Speaks::Events,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    calls_min: f64,
    rate_on_min: f64,
    rate_off_max: f64,
    lru_size_max: u32,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    Ok(facts.observed.endpoints.iter().flat_map(|seen| endpoint(facts, sheet, &thresholds, seen)).collect())
}

fn endpoint(
    facts: &RuleFacts<'_>,
    sheet: &RuleThresholds,
    thresholds: &Thresholds,
    seen: &Fingerprint,
) -> Vec<Finding> {
    let recorded = RecordedSubject::of_endpoint(seen);
    let finding = |verdict, evidence| Finding::new(RULE.id, recorded.name(), verdict, evidence);
    let evidence = evidence(seen, &recorded);
    if seen.comparable() < thresholds.calls_min {
        let which = if seen.unhashed_events > 0 { " that can be compared" } else { "" };
        let reason = format!("too few responses{which} ({})", sheet.cite("calls_min"));
        return vec![finding(Verdict::Skip(reason), evidence)];
    }
    let rate = seen.dup_rate();
    let (on, threshold) = if rate >= thresholds.rate_on_min {
        (true, "rate_on_min")
    } else if rate <= thresholds.rate_off_max {
        (false, "rate_off_max")
    } else {
        return vec![finding(Verdict::Skip("between the thresholds; it stays as it is".to_owned()), evidence)];
    };
    let mut evidence = Evidence { threshold: Some(sheet.cite(threshold)), ..evidence };
    if let Some(verdict) = recorded.unnamed() {
        return vec![finding(verdict, evidence)];
    }
    if !on && seen.calls != seen.events as f64 {
        let reason = "only a part of the responses was recorded, and repeats of the others cannot be seen".to_owned();
        return vec![finding(Verdict::Hold(reason), evidence)];
    }
    if !on && seen.unhashed_events > 0 {
        let reason =
            "not every response can be compared (no content hash, or images), and repeats of the others cannot be seen"
                .to_owned();
        return vec![finding(Verdict::Hold(reason), evidence)];
    }
    let name = recorded.name();
    let own = KeyPath::from(["endpoint_overrides", name]);
    let mut wanted = vec![
        (KeyPath::from(["dedup", "enabled_per_endpoint", name]), Value::from(on)),
        (own.child("dedup_enabled"), Value::from(on)),
    ];
    if let Some(distance) = seen.repeat_distance_p90.filter(|_| on) {
        let lru_size = distance.saturating_add(1).min(thresholds.lru_size_max.into()) as i64;
        evidence.counts = format!("{}\n{}", cache_words(facts.current, name, distance, lru_size), evidence.counts);
        wanted.push((own.child("lru_size"), Value::from(lru_size)));
    }
    wanted.into_iter().map(|(key, to)| finding(facts.wants(key, to), evidence.clone())).collect()
}

/// The share that decides; its line comes last, since the interval is printed behind it.
fn evidence(seen: &Fingerprint, recorded: &RecordedSubject<'_>) -> Evidence {
    let Fingerprint { repeat_events, unhashed_events, .. } = *seen;
    let events = seen.events - unhashed_events;
    let verb = if events == 1 { "repeats" } else { "repeat" };
    let mut counts =
        format!("{repeat_events} of {} {verb} one that the same context was shown before", counted(events, "response"));
    if unhashed_events > 0 {
        let are = if unhashed_events == 1 { "is" } else { "are" };
        let unhashed = counted(unhashed_events, "response");
        counts = format!("{unhashed} without a content hash, or with images, {are} left out\n{counts}");
    }
    if seen.calls != seen.events as f64 {
        let rate = 100.0 * seen.dup_rate();
        counts = format!("of these {rate:.1} % or more repeat; not every earlier showing was recorded\n{counts}");
    }
    let evidence = recorded.evidence(&counts);
    let sessions = seen.repeats_of_sessions;
    if sessions.clusters > 0 && sessions.trials as u64 == events {
        return Evidence { n: sessions.clusters, ..evidence.with_share_over_sessions(sessions.over_clusters()) };
    }
    // What a team lends comes without its sessions.
    evidence.with_share(Share::new(repeat_events, events))
}

/// What the change does to the cache that all endpoints of a session share.
fn cache_words(current: &View<'_>, endpoint: &str, distance: u64, lru_size: i64) -> String {
    let overrides = KeyPath::from(["endpoint_overrides"]);
    let integer = |key: &KeyPath| current.value(key).and_then(|value| value.as_integer()).unwrap_or(1);
    let own = |name: &String| integer(&overrides.child(name).child("lru_size"));
    let entries = current.entries(&overrides);
    let global = integer(&KeyPath::from(["dedup", "lru_size"])).max(1);
    let now = entries.iter().map(own).fold(global, i64::max);
    let others = entries.iter().filter(|name| *name != endpoint).map(own).fold(global, i64::max);
    format!(
        "nine repeats in ten lie within {distance} other bodies; the cache of a session is shared by all endpoints and \
         holds {now} responses now, {} with this change alone",
        others.max(lru_size)
    )
}
