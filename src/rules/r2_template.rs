//! R2: a fixed format for endpoints whose responses are always of one kind.

use serde::Deserialize;
use toml_edit::Value;

use crate::base::body_shape::BodyShape;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::frames::fingerprint::Fingerprint;
use crate::rules::responses::RecordedSubject;
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
    let columns = TableColumns::of(facts.current, seen);
    let evidence = recorded.evidence(&kind_words(seen, columns));
    if seen.calls < thresholds.calls_min {
        let reason = format!("too few responses ({})", sheet.cite("calls_min"));
        return finding(Verdict::Skip(reason), evidence);
    }
    let Some((template, threshold)) = suiting(seen, columns, thresholds) else {
        let reason = match columns {
            TableColumns::Unknown if is_of_tables(seen) => "nobody recorded how many columns its tables have",
            _ => "no template suits such responses",
        };
        return finding(Verdict::Skip(reason.to_owned()), evidence);
    };
    let evidence = Evidence { threshold: Some(sheet.cite(threshold)), ..evidence };
    finding(recorded.unnamed().unwrap_or_else(|| verdict(facts, recorded.name(), template)), evidence)
}

/// How many columns the tables of an endpoint have.
#[derive(Clone, Copy)]
enum TableColumns {
    /// So many on average.
    Mean(f64),
    /// So many or more: the router encodes no others.
    AtLeast(f64),
    Unknown,
}

impl TableColumns {
    fn of(current: &View<'_>, seen: &Fingerprint) -> Self {
        let routed_min = || current.value(&KeyPath::from(["mckp", "shape_thresholds", "markdown_table_min_cols"]));
        match seen.columns_mean {
            Some(columns) => Self::Mean(columns),
            None if seen.routed_tables > 0.0 => {
                routed_min().and_then(|min| min.as_integer()).map_or(Self::Unknown, |min| Self::AtLeast(min as f64))
            }
            None => Self::Unknown,
        }
    }

    fn least(self) -> f64 {
        match self {
            Self::Mean(columns) | Self::AtLeast(columns) => columns,
            Self::Unknown => 0.0,
        }
    }
}

fn is_of_tables(seen: &Fingerprint) -> bool {
    seen.shape_dominant.as_deref() == Some(BodyShape::MarkdownTable.into_str())
}

/// The template for such responses, and the threshold that they meet.
fn suiting(seen: &Fingerprint, columns: TableColumns, thresholds: &Thresholds) -> Option<(&'static str, &'static str)> {
    let has = |formats: &[String]| formats.iter().all(|format| seen.inner_formats_top3.contains(format));
    if is_of_tables(seen) && columns.least() >= thresholds.columns_min {
        Some((CSV, "columns_min"))
    } else if has(&thresholds.log_formats) {
        Some((DEEP, "log_formats"))
    } else if has(&thresholds.diff_formats) {
        Some((DIFF, "diff_formats"))
    } else {
        None
    }
}

fn kind_words(seen: &Fingerprint, columns: TableColumns) -> String {
    let Some(shape) = &seen.shape_dominant else {
        return format!("no shape of {} is known", counted(seen.events, "response"));
    };
    let share = seen.shape_mix.iter().find(|(name, _)| name == shape).map_or(0.0, |(_, share)| 100.0 * share);
    let mut words =
        format!("the most frequent shape of {} is {shape} ({share:.1} %)", counted(seen.events, "response"));
    match columns {
        TableColumns::Mean(columns) => words += &format!(", tables have {columns:.2} columns on average"),
        TableColumns::AtLeast(columns) => {
            words += &format!(", tables that the router encoded have {columns} columns or more");
        }
        TableColumns::Unknown => {}
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
