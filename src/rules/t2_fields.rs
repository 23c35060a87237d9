//! T2: groups of fields of JSON results, by what the model took up of them.

use toml_edit::{Array, InlineTable, Value};

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::base::stats::Share;
use crate::mine::fields::{FieldUse, FieldWorth, GroupNumbers};
use crate::rules::tool_keys::of_new_block;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::annotations::is_plain_name;
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "T2",
    file: "t2_fields",
    summary: "Sorts the fields of JSON results into `field_groups` by how often they were taken up (`--fields`).",
    speaks: Speaks::LogsWithFields,
    judge,
};

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let numbers: GroupNumbers = sheet.thresholds()?;
    // Fields stand tool by tool.
    let tools = facts.fields.chunk_by(|a, b| a.tool == b.tool).filter(|fields| is_plain_name(&fields[0].tool));
    Ok(tools.flat_map(|fields| of_tool(facts, sheet, &numbers, fields)).collect())
}

fn of_tool(facts: &RuleFacts<'_>, sheet: &RuleThresholds, numbers: &GroupNumbers, fields: &[FieldUse]) -> Vec<Finding> {
    let tool = &fields[0].tool;
    let judged = |group: FieldWorth| fields.iter().filter(move |field| numbers.group(field) == Some(group));
    let seen = fields.iter().map(|field| field.followed).max().unwrap_or_default();
    let plain = |verdict: Verdict| {
        let counts = format!(
            "{}, at most {} with one that can be followed",
            counted(fields.len() as u64, "field"),
            counted(seen, "result")
        );
        vec![Finding::new(RULE.id, tool, verdict, Evidence::of(counts, seen))]
    };
    if facts.annotations.of(tool).is_some_and(|annotation| !annotation.model.field_groups.is_empty()) {
        return plain(Verdict::Skip("its shipped annotation has groups of fields".to_owned()));
    }
    if let Err(reason) = of_new_block(facts, tool) {
        return plain(Verdict::Hold(reason));
    }
    let groups = [FieldWorth::MustHave, FieldWorth::NiceToHave, FieldWorth::Debug];
    let found: Vec<Finding> =
        groups.iter().filter_map(|&group| finding(facts, sheet, tool, group, judged(group))).collect();
    if found.is_empty() {
        let cited = ["responses_min", "sessions_min"].map(|key| sheet.cite(key)).join(", ");
        return plain(Verdict::Skip(format!("no field was followed often enough ({cited})")));
    }
    found
}

/// The finding of one group; none of an empty one.
fn finding<'f>(
    facts: &RuleFacts<'_>,
    sheet: &RuleThresholds,
    tool: &str,
    group: FieldWorth,
    fields: impl Iterator<Item = &'f FieldUse>,
) -> Option<Finding> {
    let mut fields: Vec<&FieldUse> = fields.collect();
    fields.sort_by(|a, b| a.field.cmp(&b.field));
    let (used, followed) = fields.iter().fold((0, 0), |sum, field| (sum.0 + field.used, sum.1 + field.followed));
    let share = Share::new(used, followed);
    let words = |field: &&FieldUse| {
        let Share { k, n, lower, upper } = field.share();
        format!(
            "{} used in {k} of {} ({lower:.2}–{upper:.2}), {}",
            field.field,
            counted(n, "result"),
            counted(field.sessions_followed, "session")
        )
    };
    let key = match group {
        FieldWorth::MustHave => "must_have_lower_min",
        FieldWorth::Debug => "debug_upper_max",
        FieldWorth::NiceToHave => "responses_min",
    };
    let (counts, n) =
        (fields.iter().map(words).collect::<Vec<_>>().join("\n"), fields.iter().map(|f| f.followed).min()?);
    let evidence = Evidence::of(counts, n).with_share(share).by(sheet.cite(key));
    let names: Array = fields.iter().map(|field| field.field.as_str()).collect();
    let mut table = InlineTable::new();
    table.insert("fields", Value::Array(names));
    table.insert("estimated_value", ((share.value() * 100.0).round() / 100.0).into());
    table.insert("default_include", (group != FieldWorth::Debug).into());
    let key = KeyPath::from(["tools", tool, "field_groups", group.into_str()]);
    Some(Finding::new(RULE.id, tool, facts.fills(key, table.into()), evidence))
}
