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
use crate::settings::tool_model::{CostModel, FollowUp, ToolModel};

/// Names the blocks of all tools.
pub const TOOLS: &str = "tools";
/// The block for tools that have none of their own.
const ANY: &str = "*";

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
        let keys = model_keys(&block, &annotation.model).into_iter().filter(|(key, _)| !said.contains(key));
        hidden.extend(keys.map(|(key, value)| (key, value, annotation.clone())));
    }
    hidden
}

/// All keys of a value model below the block of its tool; those of the costs only if a cost is said.
fn model_keys(block: &KeyPath, model: &ToolModel) -> Vec<(KeyPath, Value)> {
    let mut keys = Vec::new();
    for (name, value) in inline(model) {
        let key = block.child(&name);
        match (name.as_str(), value) {
            ("cost_model", _) if model.cost_model == CostModel::default() => {}
            ("cost_model" | "field_groups", Value::InlineTable(parts)) => {
                keys.extend(parts.into_iter().map(|(part, value)| (key.child(&part), value)));
            }
            ("follow_up", _) => keys.push((key, link_list(&model.follow_up))),
            (_, value) => keys.push((key, value)),
        }
    }
    keys
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

/// A part of the schema that is a table, in one line.
fn inline<T: Serialize>(part: &T) -> InlineTable {
    let value = part
        .serialize(toml_edit::ser::ValueSerializer::new())
        .expect("every part of the schema has a spelling in TOML");
    value.as_inline_table().cloned().unwrap_or_default()
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
    line_each(links.iter().map(inline))
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
