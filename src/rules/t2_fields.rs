//! T2: groups of fields of JSON answers, by what the model took up of them.

use toml_edit::{Array, InlineTable, Value};

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::stats::Share;
use crate::mine::fields::{FieldUse, Group, GroupNumbers};
use crate::rules::annotations::is_plain_name;
use crate::rules::{Facts, Rule, Sheet, Speaks};
use crate::settings::finding::{Delta, Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "T2",
    file: "t2_fields",
    summary: "Sorts the fields of JSON answers into `field_groups` by how often they were taken up (`--fields`).",
    docs: DOCS,
    speaks: Speaks::LogsWithFields,
    judge,
};

const DOCS: &str = r#"
Speaks with `--tools --fields` only.

### What it looks at
Answers in JSON, field by field (`items[].id`): whether the model wrote a value of the field later in the same chain, in an
argument, an edit or a text (`devboy mine fields --explain` has the counts). Echoes of what was written before the answer do
not count, and what cannot be followed (texts, single words, yes and no) is not judged and is in no group: it stays as it is.

`must_have` are fields that surely (lower end of the 95 % Wilson interval) are used often, `debug` those that surely (upper end)
are used next to never, `nice_to_have` those in between. `estimated_value` is the share of answers of the group in which the
field was used. Only `debug` is left out by default.

### Why
A host that trims answers by groups needs to know which fields an agent reads. The published pipeline does not trim: its only
reader of these keys is the score of a prefetch, which rises with the values of groups that are left out by default when a field
is named by an intent keyword, and its host never gives it one. So nobody acts on what this rule writes yet, and it writes nothing
unless asked.

### When it stays quiet
Too few answers or sessions; fields whose keys are no identifiers; answers of shells, whose fields depend on the command; tools
whose shipped annotation has groups; a group that stands in the file.

### Example
```toml
[tools.mcp__tracker__list_issues]
field_groups.must_have = { fields = ["items[].id"], estimated_value = 0.81, default_include = true }
field_groups.debug = { fields = ["items[].etag"], estimated_value = 0.0, default_include = false }
```
"#;

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let numbers: GroupNumbers = sheet.thresholds()?;
    // Fields stand tool by tool.
    let tools = facts.fields.chunk_by(|a, b| a.tool == b.tool).filter(|fields| is_plain_name(&fields[0].tool));
    Ok(tools.flat_map(|fields| of_tool(facts, sheet, &numbers, fields)).collect())
}

fn of_tool(facts: &Facts<'_>, sheet: &Sheet, numbers: &GroupNumbers, fields: &[FieldUse]) -> Vec<Finding> {
    let tool = &fields[0].tool;
    let judged = |group: Group| fields.iter().filter(move |field| numbers.group(field) == Some(group));
    let seen = fields.iter().map(|field| field.followed).max().unwrap_or_default();
    let plain = |reason: String| {
        let counts = format!("{} fields, at most {seen} answers with one that can be followed", fields.len());
        vec![Finding::new(RULE.id, tool, Verdict::Skip(reason), Evidence { counts, n: seen, ..Evidence::default() })]
    };
    if facts.annotations.of(tool).is_some_and(|annotation| !annotation.model.field_groups.is_empty()) {
        return plain("its shipped annotation has groups of fields".to_owned());
    }
    let groups = [Group::MustHave, Group::NiceToHave, Group::Debug];
    let found: Vec<Finding> =
        groups.iter().filter_map(|&group| finding(facts, sheet, tool, group, judged(group))).collect();
    if found.is_empty() {
        let cited = ["responses_min", "sessions_min"].map(|key| sheet.cite(key)).join(", ");
        return plain(format!("no field was followed often enough ({cited})"));
    }
    found
}

/// The finding of one group; none of an empty one.
fn finding<'f>(
    facts: &Facts<'_>,
    sheet: &Sheet,
    tool: &str,
    group: Group,
    fields: impl Iterator<Item = &'f FieldUse>,
) -> Option<Finding> {
    let mut fields: Vec<&FieldUse> = fields.collect();
    fields.sort_by(|a, b| a.field.cmp(&b.field));
    let (used, followed) = fields.iter().fold((0, 0), |sum, field| (sum.0 + field.used, sum.1 + field.followed));
    let share = Share::new(used, followed);
    let words = |field: &&FieldUse| {
        let Share { k, n, lower, upper } = field.share();
        format!(
            "{} used in {k} of {n} answers ({lower:.2}–{upper:.2}), {} sessions",
            field.field, field.sessions_followed
        )
    };
    let key = match group {
        Group::MustHave => "must_have_lower_min",
        Group::Debug => "debug_upper_max",
        Group::NiceToHave => "responses_min",
    };
    let evidence = Evidence {
        counts: fields.iter().map(words).collect::<Vec<_>>().join("\n"),
        share: Some(share),
        n: fields.iter().map(|field| field.followed).min()?,
        threshold: Some(sheet.cite(key)),
        ..Evidence::default()
    };
    let names: Array = fields.iter().map(|field| field.field.as_str()).collect();
    let mut table = InlineTable::new();
    table.insert("fields", Value::Array(names));
    table.insert("estimated_value", ((share.value() * 100.0).round() / 100.0).into());
    table.insert("default_include", (group != Group::Debug).into());
    let key = KeyPath::from(["tools", tool, "field_groups", group.key()]);
    let verdict = match facts.current.line(&key) {
        Some(line) => Verdict::Skip(format!("`{key}` stands in line {line} and is kept")),
        None => Verdict::Propose(Delta { key, from: None, to: table.into() }),
    };
    Some(Finding::new(RULE.id, tool, verdict, evidence))
}
