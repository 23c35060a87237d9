//! Checks a parsed file against the schema: a wrong value is an error with its line, an unknown key a warning.

use std::path::Path;

use serde::Serialize;
use toml_edit::{InlineTable, Value};

use super::document::at_line;
use super::outline::DocumentOutline;
use super::schema::{SchemaNode, SettingKind, is_not_positive, quoted};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::settings::values;

/// Unknown keys for which a similar one is looked for; a bound of work, not a rule's threshold.
const SUGGESTIONS_MAX: usize = 100;

/// Something in the file that has no effect, or not the effect its author expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// 1-based line.
    pub line: usize,
    /// The key, spelled as in TOML.
    pub key: String,
    /// What is odd about it.
    pub message: String,
    /// The key that was probably meant.
    pub suggestion: Option<String>,
}

struct OutlineCheck<'f> {
    outline: &'f DocumentOutline,
    /// By line.
    problems: Vec<(usize, String)>,
    warnings: Vec<Warning>,
}

/// Checks the whole file; the first problem by line is the error, the others are named in its hint.
pub(super) fn check(path: &Path, outline: &DocumentOutline, file: &Value, built_in: &Value) -> Result<Vec<Warning>> {
    let mut check = OutlineCheck { outline, problems: Vec::new(), warnings: Vec::new() };
    check.value(SchemaNode::root(), file, Some(built_in), &KeyPath::default());
    check.problems.sort_by_key(|(line, _)| *line);
    check.warnings.sort_by_key(|warning| warning.line);
    let mut problems = check.problems.iter();
    let Some((line, message)) = problems.next() else { return Ok(check.warnings) };
    let error = Error::failed(at_line(path, *line, message));
    let others: Vec<_> = problems.map(|(line, message)| format!("also line {line}: {message}")).collect();
    Err(if others.is_empty() { error } else { error.hint(others.join("\n")) })
}

impl OutlineCheck<'_> {
    fn value(&mut self, node: &SchemaNode, value: &Value, built_in: Option<&Value>, at: &KeyPath) {
        match (node, value) {
            (SchemaNode::Table { .. }, Value::InlineTable(table)) => self.table(node, table, built_in, at),
            (SchemaNode::Table { .. }, _) => self.problem(at, "a table", value),
            (SchemaNode::List(element), Value::Array(list)) => {
                for (position, value) in list.iter().enumerate() {
                    self.value(element, value, None, &at.child(position.to_string()));
                }
            }
            (SchemaNode::List(_), _) => self.problem(at, "a list of tables", value),
            (SchemaNode::Leaf { kind, .. }, _) if !kind.accepts(value) => self.problem(at, &kind.describe(), value),
            (SchemaNode::Leaf { kind: SettingKind::Word(known), .. }, _) => self.word(known, value, at),
            (SchemaNode::Leaf { kind: SettingKind::PositiveFloat { instead }, .. }, _) if is_not_positive(value) => {
                let message = format!("`{at}` is {}, which is not above 0: {instead} holds", values::spelled(value));
                self.warnings.push(Warning { line: self.line(at), key: at.to_string(), message, suggestion: None });
            }
            (SchemaNode::Leaf { .. }, _) => {}
        }
    }

    fn table(&mut self, node: &SchemaNode, table: &InlineTable, built_in: Option<&Value>, at: &KeyPath) {
        for (key, value) in table {
            let below = at.child(key);
            match node.child(key) {
                Some(child) => self.value(child, value, built_in.and_then(|tree| values::child(tree, key)), &below),
                None => self.unknown(node, key, &below),
            }
        }
        for name in required(node).into_iter().filter(|name| !table.contains_key(name)) {
            self.missing(name, built_in.and_then(|tree| values::child(tree, name)), at);
        }
    }

    fn problem(&mut self, at: &KeyPath, expected: &str, found: &Value) {
        let message = format!("`{at}` must be {expected}, found {}", values::spelled(found));
        self.problems.push((self.line(at), message));
    }

    /// A word of an open list: one that is not known is no error, others may know it.
    fn word(&mut self, known: &[String], value: &Value, at: &KeyPath) {
        if value.as_str().is_some_and(|word| known.iter().any(|name| name == word)) {
            return;
        }
        let message =
            format!("`{at}` is {}, which is none of {}: it allows nothing", values::spelled(value), quoted(known));
        self.warnings.push(Warning { line: self.line(at), key: at.to_string(), message, suggestion: None });
    }

    fn missing(&mut self, name: &str, built_in: Option<&Value>, at: &KeyPath) {
        let line = self.line(at);
        let Some(inherited) = built_in else {
            let message = format!("`{at}` needs the key `{name}`");
            return self.problems.push((line, message));
        };
        self.warnings.push(Warning {
            line,
            key: at.child(name).to_string(),
            message: format!(
                "`{name}` comes from the built-in entry here, but other readers of this file insist on it; add `{}`",
                values::assignment(&KeyPath::from([name]), inherited)
            ),
            suggestion: None,
        });
    }

    fn unknown(&mut self, node: &SchemaNode, key: &str, at: &KeyPath) {
        // Whoever has so many unknown keys holds another file in hand; looking for what each was meant to be takes long.
        let suggestion = (self.warnings.len() < SUGGESTIONS_MAX).then(|| suggest(node, key)).flatten();
        let meant = suggestion.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let message = format!("unknown key `{at}` has no effect{meant}");
        self.warnings.push(Warning { line: self.line(at), key: at.to_string(), message, suggestion });
    }

    fn line(&self, at: &KeyPath) -> usize {
        self.outline.line_of(at).unwrap_or(1)
    }
}

fn required(node: &SchemaNode) -> Vec<&str> {
    let is_required = |name: &&str| matches!(node.child(name), Some(SchemaNode::Leaf { required: true, .. }));
    node.names().into_iter().filter(is_required).collect()
}

/// A sibling of similar spelling, else the one place in the schema where a key of this name belongs.
fn suggest(node: &SchemaNode, key: &str) -> Option<String> {
    const SIMILAR_ENOUGH: f32 = 0.7;
    if let Some(name) = similar::get_close_matches(key, &node.names(), 1, SIMILAR_ENOUGH).first() {
        return Some((*name).to_owned());
    }
    match SchemaNode::root().paths_of(key).as_slice() {
        [only] => Some(only.to_string()),
        _ => None,
    }
}
