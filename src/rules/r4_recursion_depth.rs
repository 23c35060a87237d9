//! R4: how deep the router takes nested objects apart.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::rules::responses::EVERYTHING;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "R4",
    file: "r4_recursion_depth",
    summary: "Sets the recursion depth of the router by how deep nested objects really are.",
    speaks: Speaks::Events,
    judge,
};

/// The variant that stands in for one that is missing.
const STAND_IN: &str = "default";

#[derive(Deserialize)]
struct Thresholds {
    nested_min: u64,
    depth_p95_min: u64,
    depth_shallow: u32,
    depth: u32,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let nested = facts.observed.profile.nested;
    let finding = |verdict, evidence| Finding::new(RULE.id, EVERYTHING, verdict, evidence);
    let enough = nested >= thresholds.nested_min;
    let Some(p95) = facts.observed.profile.nested_depth_p95.filter(|_| enough) else {
        let reason = format!("too few nested objects with a known depth ({})", sheet.cite("nested_min"));
        let counts = format!("{nested} nested objects");
        return Ok(vec![finding(Verdict::Skip(reason), Evidence::of(counts, nested))]);
    };
    let depth = if p95 < thresholds.depth_p95_min { thresholds.depth_shallow } else { thresholds.depth };
    let evidence = Evidence::of(format!("95 % of {nested} nested objects are nested {p95} deep or less"), nested)
        .by(sheet.cite("depth_p95_min"));
    let keys = [KeyPath::from(["mckp", "recursion_depth"])].into_iter().chain(profile_keys(facts));
    let to = Value::from(i64::from(depth));
    Ok(keys.map(|key| finding(facts.wants(key, to.clone()), evidence.clone())).collect())
}

/// The keys of the agent profiles that override the depth in the recorded sessions.
fn profile_keys(facts: &RuleFacts<'_>) -> impl Iterator<Item = KeyPath> {
    let variants = KeyPath::from(["profiles", "agent", "variants"]);
    let known: BTreeSet<String> = facts.current.entries(&variants).into_iter().collect();
    let chosen = facts.current.chosen("agent");
    let used: Vec<&str> = match &chosen {
        Some(name) => vec![name],
        None => facts.observed.profile.agent_variants.iter().map(|(name, _)| name.as_str()).collect(),
    };
    let resolved = |name: &str| known.get(name).map_or(STAND_IN, String::as_str).to_owned();
    let resolved: BTreeSet<String> = used.into_iter().map(resolved).collect();
    resolved.into_iter().map(move |name| variants.child(name).child("mckp_recursion_depth"))
}
