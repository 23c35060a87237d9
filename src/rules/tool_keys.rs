//! The value model of a tool as keys and values of a configuration, and how its links are measured. The rules that write it
//! must not disagree.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use toml_edit::{Array, InlineTable, Value};

use crate::base::key_path::KeyPath;
use crate::base::stats::{FollowUpCount, Share};
use crate::report::numbers::percent;
use crate::report::share::bounds;
use crate::rules::RuleFacts;
use crate::settings::SettingsFile;
use crate::settings::annotations::{Annotation, Annotations};
use crate::settings::finding::{Basis, Evidence};
use crate::settings::tool_model::{CostModel, FollowUp, SideEffectClass, ToolModel};

/// Names the blocks of all tools.
pub const TOOLS: &str = "tools";
/// The block for tools that have none of their own.
const ANY: &str = "*";

/// What no log can show, as far as a shipped model says it: key below the tool, and value.
fn classes(model: &ToolModel) -> Vec<(Vec<&str>, Value)> {
    let mut keys = vec![(vec!["value_class"], spelled(&model.value_class))];
    if model.side_effect_class != SideEffectClass::default() {
        keys.push((vec!["side_effect_class"], spelled(&model.side_effect_class)));
    }
    if !model.invalidates.is_empty() {
        let tools: Array = model.invalidates.iter().map(String::as_str).collect();
        keys.push((vec!["invalidates"], Value::Array(tools)));
    }
    if let Some(limit) = model.fail_fast_after_n {
        keys.push((vec!["fail_fast_after_n"], i64::from(limit).into()));
    }
    if let Some(host) = &model.rate_limit_host {
        keys.push((vec!["rate_limit_host"], host.as_str().into()));
    }
    if let Some(speculate) = model.speculate {
        keys.push((vec!["speculate"], speculate.into()));
    }
    keys.extend(model.field_groups.iter().map(|(name, group)| (vec!["field_groups", name.as_str()], spelled(group))));
    keys
}

/// What a shipped model says of costs, if anything: key below the tool, and value.
fn costs(model: &ToolModel) -> Vec<(Vec<&str>, Value)> {
    if model.cost_model == CostModel::default() {
        return Vec::new();
    }
    let CostModel { typical_kb, max_kb, latency_ms_p50, dollars, freshness_ttl_s } = model.cost_model;
    let whole = |number: u64| Value::from(number as i64);
    let costs = [
        ("typical_kb", Some(typical_kb.into())),
        ("max_kb", max_kb.map(Value::from)),
        ("latency_ms_p50", latency_ms_p50.map(whole)),
        ("dollars", dollars.map(Value::from)),
        ("freshness_ttl_s", freshness_ttl_s.map(whole)),
    ];
    costs.into_iter().filter_map(|(field, value)| Some((vec!["cost_model", field], value?))).collect()
}

/// The annotation with which a block of a tool would begin; none if it has one, or nothing is shipped. The error is why it
/// must not have one: the block for all others speaks for it.
pub fn of_new_block(facts: &RuleFacts<'_>, tool: &str) -> Result<Option<Annotation>, String> {
    let blocks = facts.current.entries(&KeyPath::from([TOOLS]));
    let has_block = |name: &str| blocks.iter().any(|block| block == name);
    let annotation = facts.annotations.of(tool).filter(|_| !has_block(tool));
    if annotation.is_none() && !has_block(tool) && has_block(ANY) {
        return Err(format!("`{TOOLS}.\"{ANY}\"` speaks for it, and a block of its own would end that"));
    }
    Ok(annotation)
}

/// What is shipped for the tools that get their first block with these keys, and would be hidden by it: a block stands for
/// the whole model, so that it is written whole.
pub fn hidden<'k>(
    file: &SettingsFile,
    keys: impl Iterator<Item = &'k KeyPath>,
    annotations: &Annotations,
) -> Vec<(KeyPath, Value, Annotation)> {
    let mut blocks: BTreeMap<&str, BTreeSet<&KeyPath>> = BTreeMap::new();
    for key in keys.filter(|key| key.0.len() > 2 && key.0[0] == TOOLS) {
        blocks.entry(&key.0[1]).or_default().insert(key);
    }
    let mut hidden = Vec::new();
    for (tool, said) in blocks {
        let block = KeyPath::from([TOOLS, tool]);
        let Some(annotation) = annotations.of(tool).filter(|_| file.get(&block).is_none()) else { continue };
        for (field, value) in model_keys(&annotation.model) {
            let key = field.iter().fold(block.clone(), |key, segment| key.child(*segment));
            if !said.contains(&key) {
                hidden.push((key, value, annotation.clone()));
            }
        }
    }
    hidden
}

/// All keys of a value model.
fn model_keys(model: &ToolModel) -> Vec<(Vec<&str>, Value)> {
    let links = (!model.follow_up.is_empty()).then(|| (vec!["follow_up"], link_list(&model.follow_up)));
    classes(model).into_iter().chain(costs(model)).chain(links).collect()
}

/// What stands behind a key of such a block.
pub fn shipped(annotation: &Annotation) -> Evidence {
    Evidence {
        counts: "shipped annotation, which a block without it would hide".to_owned(),
        threshold: Some(annotation.origin.clone()),
        basis: Basis::Shipped,
        ..Evidence::default()
    }
}

/// The spelling of a part of the schema: a class, or a group of fields.
fn spelled<T: Serialize>(part: &T) -> Value {
    part.serialize(toml_edit::ser::ValueSerializer::new()).expect("classes are strings in TOML, groups are tables")
}

/// KiB with three significant digits.
pub fn kib(bytes: f64) -> f64 {
    in_kib(bytes, f64::round)
}

/// The same of a bound, never below it.
pub fn kib_at_least(bytes: f64) -> f64 {
    // A size of so many digits has no exact binary form: without the slack it would be rounded up though it just fits.
    in_kib(bytes, |scaled| (scaled * (1.0 - 1e-12)).ceil())
}

fn in_kib(bytes: f64, whole: fn(f64) -> f64) -> f64 {
    let kib = bytes / 1024.0;
    if kib <= 0.0 {
        return 0.0;
    }
    let digits = (2.0 - kib.log10().floor()).clamp(0.0, 6.0);
    let scale = 10_f64.powf(digits);
    whole(kib * scale) / scale
}

/// A bound as a probability; rounded down, so that it stays a bound.
pub fn rounded_down(lower: f64) -> f64 {
    (lower * 1_000.0).floor() / 1_000.0
}

/// Links as the value of `follow_up`.
pub fn link_list(links: &[FollowUp]) -> Value {
    let table = |link: &FollowUp| {
        let mut table = InlineTable::new();
        table.insert("tool", link.tool.as_str().into());
        table.insert("probability", link.probability.into());
        for (key, value) in [("projection", &link.projection), ("projection_arg", &link.projection_arg)] {
            if let Some(value) = value {
                table.insert(key, value.as_str().into());
            }
        }
        table
    };
    line_each(links.iter().map(table))
}

/// Tables as a list with one line for each.
pub fn line_each(tables: impl Iterator<Item = InlineTable>) -> Value {
    let mut list: Array = tables.map(Value::InlineTable).collect();
    for link in list.iter_mut() {
        link.decor_mut().set_prefix("\n    ");
    }
    if !list.is_empty() {
        list.set_trailing("\n");
        list.set_trailing_comma(true);
    }
    Value::Array(list)
}

/// Of the follow-ups of one pair of tools, the lag with the highest lower bound; the smaller lag on a tie.
pub fn strongest_lag<'e>(edges: impl IntoIterator<Item = &'e FollowUpCount>) -> Option<(&'e FollowUpCount, Share)> {
    let shares = edges.into_iter().map(|edge| (edge, edge.share()));
    shares.max_by(|(a, x), (b, y)| x.lower.total_cmp(&y.lower).then_with(|| b.lag.cmp(&a.lag)))
}

/// "Read after 120 of 400 steps at lag 1 (30.0 %, 95 % 25.7–34.7)"
pub fn link_words(tool: &str, share: &Share, lag: &str) -> String {
    let Share { k, n, .. } = *share;
    format!("{tool} after {k} of {n} steps at {lag} ({}, 95 % {})", percent(share.value()), bounds(*share))
}
