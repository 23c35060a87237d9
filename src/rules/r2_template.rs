//! R2: a fixed format for endpoints whose responses are always of one kind.

use serde::Deserialize;
use toml_edit::Value;

use crate::base::body_shape::BodyShape;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::frames::fingerprint::Fingerprint;
use crate::rules::recorded::RecordedSubject;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::View;
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "R2",
    file: "r2_template",
    summary: "Gives an endpoint the L1 template that suits what its responses are made of.",
    speaks: Speaks::Events,
    judge,
};

/// For tables.
const CSV: &str = "csv_from_md";
/// For logs.
const DEEP: &str = "pipeline_deep_mckp";
/// For diffs.
const DIFF: &str = "mr_diff_fence";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    calls_min: f64,
    columns_min: f64,
    log_formats: Vec<String>,
    diff_formats: Vec<String>,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    Ok(facts.observed.endpoints.iter().map(|seen| endpoint(facts, sheet, &thresholds, seen)).collect())
}

fn endpoint(facts: &RuleFacts<'_>, sheet: &RuleThresholds, thresholds: &Thresholds, seen: &Fingerprint) -> Finding {
    let recorded = RecordedSubject::of_endpoint(seen);
    let finding = |verdict, evidence| Finding::new(RULE.id, recorded.name(), verdict, evidence);
    let evidence = recorded.evidence(&kind_words(seen));
    if seen.calls < thresholds.calls_min {
        let reason = format!("too few responses ({})", sheet.cite("calls_min"));
        return finding(Verdict::Skip(reason), evidence);
    }
    let Some((template, threshold)) = suiting(seen, thresholds) else {
        return finding(Verdict::Skip("no template suits such responses".to_owned()), evidence);
    };
    let evidence = Evidence { threshold: Some(sheet.cite(threshold)), ..evidence };
    finding(recorded.unnamed().unwrap_or_else(|| verdict(facts, recorded.name(), template)), evidence)
}

/// The template for such responses, and the threshold that they meet.
fn suiting(seen: &Fingerprint, thresholds: &Thresholds) -> Option<(&'static str, &'static str)> {
    let tables = seen.shape_dominant.as_deref() == Some(BodyShape::MarkdownTable.into_str());
    let has = |formats: &[String]| formats.iter().all(|format| seen.inner_formats_top3.contains(format));
    if tables && seen.columns_mean.is_some_and(|columns| columns >= thresholds.columns_min) {
        Some((CSV, "columns_min"))
    } else if has(&thresholds.log_formats) {
        Some((DEEP, "log_formats"))
    } else if has(&thresholds.diff_formats) {
        Some((DIFF, "diff_formats"))
    } else {
        None
    }
}

fn kind_words(seen: &Fingerprint) -> String {
    let Some(shape) = &seen.shape_dominant else { return format!("no shape of {} responses is known", seen.events) };
    let share = seen.shape_mix.iter().find(|(name, _)| name == shape).map_or(0.0, |(_, share)| 100.0 * share);
    let mut words = format!("the most frequent shape of {} responses is {shape} ({share:.1} %)", seen.events);
    if let Some(columns) = seen.columns_mean {
        words += &format!(", tables have {columns:.2} columns on average");
    }
    match seen.inner_formats_top3.as_slice() {
        [] => words + ", no inner formats",
        formats => words + ", inner formats " + &formats.join(", "),
    }
}

fn verdict(facts: &RuleFacts<'_>, endpoint: &str, template: &str) -> Verdict {
    let active = facts.current.value(&KeyPath::from(["templates", "active"]));
    let is_active =
        |list: &Value| list.as_array().is_some_and(|list| list.iter().any(|id| id.as_str() == Some(template)));
    if !active.as_ref().is_some_and(is_active) {
        return Verdict::Hold(format!("`templates.active` does not list {template}"));
    }
    match deciding(facts.current, endpoint) {
        Some((key, said)) if said == template => Verdict::Skip(format!("`{key}` says so already")),
        Some((key, said)) => {
            Verdict::Hold(format!("`{key}` says {said} and comes first; it would have to be {template}"))
        }
        None => facts.wants(KeyPath::from(["templates", "endpoint_overrides", endpoint]), Value::from(template)),
    }
}

/// The key that comes before the template of an endpoint, if one speaks, and what it says. The order is the one in which
/// the pipeline resolves a preferred format.
fn deciding(current: &View<'_>, endpoint: &str) -> Option<(KeyPath, String)> {
    let variants = KeyPath::from(["profiles", "data", "variants"]);
    let active = current.chosen("data");
    let pattern = |name: &String| current.text(&variants.child(name).child("endpoint_pattern"));
    let fits = |name: &String| match &active {
        Some(active) => name == active,
        None => pattern(name).is_some_and(|pattern| endpoint.starts_with(&pattern)),
    };
    let profile = current.entries(&variants).into_iter().find(fits);
    let profile = profile.map(|name| variants.child(name).child("preferred_format"));
    let own = KeyPath::from(["endpoint_overrides", endpoint, "template_id"]);
    profile.into_iter().chain([own]).find_map(|key| current.text(&key).map(|said| (key, said)))
}
