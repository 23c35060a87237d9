//! P3: a data profile for every MCP endpoint that has none yet.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml_edit::Value;

use crate::base::body_shape::BodyShape;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::base::stats::{Share, ToolStats};
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::annotations::{is_plain_name, split_mcp};
use crate::settings::finding::{Basis, Delta, Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "P3",
    file: "p3_data",
    summary: "Adds a data profile under `profiles.data.variants` for every MCP endpoint that no pattern matches and whose answers have one shape.",
    speaks: Speaks::Logs,
    judge,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    answers_min: u64,
    shape_share_min: f64,
    replayed_calls_max: usize,
    replayed_bytes_max: u64,
    format_by_shape: BTreeMap<String, String>,
}

/// How much of the logs a profile is replayed over, at most: calls, and bytes.
///
/// # Errors
/// If its sheet does not fit.
pub fn replayed_max(data: &Data) -> Result<(usize, u64)> {
    let Thresholds { replayed_calls_max, replayed_bytes_max, .. } =
        RuleThresholds::of(RULE.file, data)?.thresholds()?;
    Ok((replayed_calls_max, replayed_bytes_max))
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let variants = KeyPath::from(["profiles", "data", "variants"]);
    let entries: BTreeSet<String> = facts.current.entries(&variants).into_iter().collect();
    let pattern = |entry: &String| {
        let value = facts.current.value(&variants.child(entry).child("endpoint_pattern"))?;
        Some((value.as_str()?.to_owned(), entry.clone()))
    };
    let patterns: BTreeMap<String, String> = entries.iter().filter_map(pattern).collect();
    let mut tools: Vec<&ToolStats> = facts.tools.iter().collect();
    tools.sort_by_key(|stats| facts.names.text(stats.tool));
    let mut findings = Vec::new();
    for stats in tools {
        let endpoint = facts.names.text(stats.tool);
        let Some((server, verb)) = split_mcp(endpoint) else { continue };
        let counts = format!("{} in {}", counted(stats.calls, "call"), counted(stats.sessions, "session"));
        let evidence = Evidence::of(counts, stats.calls);
        let add = |verdict| Finding::new(RULE.id, endpoint, verdict, evidence.clone());
        let name = format!("{server}__{verb}");
        if let Some((_, entry)) = patterns.iter().find(|(pattern, _)| endpoint.starts_with(pattern.as_str())) {
            findings.push(add(Verdict::Skip(format!("matched by `{}`", variants.child(entry)))));
        } else if !is_plain_name(endpoint) {
            findings.push(add(Verdict::Skip("the name cannot stand in a configuration".to_owned())));
        } else if entries.contains(&name) {
            let taken = format!("`{}` has another pattern", variants.child(&name));
            findings.push(add(Verdict::Hold(taken)));
        } else if let Some(longer) = longer_endpoint(endpoint, &patterns, facts) {
            let reason = format!("patterns match by prefix: this one would take over {longer}");
            findings.push(add(Verdict::Hold(reason)));
        } else {
            let key = variants.child(&name);
            let delta = Delta { key: key.child("endpoint_pattern"), from: None, to: Value::from(endpoint) };
            let format = format_finding(&key, endpoint, stats, &thresholds, sheet);
            // A profile without a format does nothing.
            findings.extend(matches!(format.verdict, Verdict::Propose(_)).then(|| add(Verdict::Propose(delta))));
            findings.push(format);
        }
    }
    Ok(findings)
}

/// An endpoint that a pattern equal to `endpoint` would match as well: one with a profile of its own, or one that was
/// called.
fn longer_endpoint(endpoint: &str, patterns: &BTreeMap<String, String>, facts: &RuleFacts<'_>) -> Option<String> {
    let called = facts.tools.iter().map(|stats| facts.names.text(stats.tool));
    let mut all = patterns.keys().map(String::as_str).chain(called);
    all.find(|other| other.len() > endpoint.len() && other.starts_with(endpoint)).map(str::to_owned)
}

fn format_finding(
    key: &KeyPath,
    endpoint: &str,
    stats: &ToolStats,
    thresholds: &Thresholds,
    sheet: &RuleThresholds,
) -> Finding {
    let answers: u64 = stats.shapes.values().sum();
    let dominant = stats.shapes.iter().max_by_key(|(shape, count)| (**count, std::cmp::Reverse(**shape)));
    let (shape, count) = dominant.map_or((BodyShape::Unknown, 0), |(&shape, &n)| (BodyShape::from_number(shape), n));
    let share = Share::new(count, answers);
    let evidence = Evidence {
        counts: format!("{}: {count} of {}", shape.into_str(), counted(answers, "classified answer")),
        share: (answers > 0).then_some(share),
        n: answers,
        threshold: Some(sheet.cite("shape_share_min")),
        basis: Basis::Measured,
    };
    let verdict = match thresholds.format_by_shape.get(shape.into_str()) {
        _ if answers < thresholds.answers_min => {
            Verdict::Skip(format!("too few answers for a format ({})", sheet.cite("answers_min")))
        }
        None => Verdict::Skip(format!("no format follows from the shape {} alone", shape.into_str())),
        Some(_) if share.lower < thresholds.shape_share_min => {
            Verdict::Hold("the shape is not certain enough for a format".to_owned())
        }
        Some(format) => {
            Verdict::Propose(Delta { key: key.child("preferred_format"), from: None, to: Value::from(format.as_str()) })
        }
    };
    Finding::new(RULE.id, endpoint, verdict, evidence)
}
