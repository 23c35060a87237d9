//! The configuration file, checked against the schema line by line: a wrong value is an error, an unknown key a warning.

use std::path::{Path, PathBuf};

use serde::Serialize;
use toml_edit::{Document, InlineTable, Value};

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::settings::formats::of_no_effect;
use crate::settings::outline::DocumentOutline;
use crate::settings::resolve::UnknownVariant;
use crate::settings::schema::{SchemaNode, SettingKind, is_not_positive, quoted};
use crate::settings::write::read_if_present;
use crate::settings::{CURRENT_VERSION, Effective, effective, lines, outline, schema, values};

/// A read and checked `pipeline_config.toml`. Nothing in it is ever replaced by defaults: a file that cannot be
/// understood is an error.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Where the file is, or would be.
    pub path: PathBuf,
    /// Its bytes; empty when there is no file.
    pub text: String,
    pub existed: bool,
    /// The version that the file states; 4 when it states none.
    pub schema_version: u32,
    /// Keys without effect, or with another one than their author expects, by line.
    pub warnings: Vec<Warning>,
    pub(super) outline: DocumentOutline,
    pub(super) tree: Value,
}

impl SettingsFile {
    /// Reads the file. A missing file is an empty one; an unreadable one is an error.
    pub fn load(path: &Path) -> Result<Self> {
        let Some(bytes) = read_if_present(path)? else { return Ok(Self::missing(path)) };
        let text = String::from_utf8(bytes).map_err(|cause| not_utf8(path, &cause))?;
        let mut file = Self::parse(path, &text)?;
        file.warn_of_names();
        Ok(file)
    }

    /// Names of variants and formats that are not there are no error, since something else holds then; it is told what.
    fn warn_of_names(&mut self) {
        let Ok(effective) = Effective::resolve(self) else { return };
        let told = |UnknownVariant { key, message, instead }| (key, format!("{message}: {instead}"));
        let unresolved = effective.settings.unresolved().into_iter().map(told);
        for (key, message) in unresolved.chain(of_no_effect(&effective)) {
            let line = self.line_of(&key).unwrap_or(1);
            self.warnings.push(Warning { line, key: key.to_string(), message, suggestion: None });
        }
        self.warnings.sort_by_key(|warning| warning.line);
    }

    /// The file that is not there yet.
    pub fn missing(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            text: String::new(),
            existed: false,
            schema_version: CURRENT_VERSION,
            warnings: Vec::new(),
            outline: DocumentOutline::default(),
            tree: Value::InlineTable(InlineTable::new()),
        }
    }

    /// Checks `text` as the content of an existing file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let (outline, tree) = read(path, text)?;
        Self::checked(path, text.to_owned(), outline, tree)
    }

    /// Checks a tree. Of one that no text holds, text and outline are empty: all lines are the first then.
    pub(super) fn checked(path: &Path, text: String, outline: DocumentOutline, tree: Value) -> Result<Self> {
        let schema_version = match values::find(&tree, &schema::key()) {
            Some(found) => schema::accept(found, path, outline.line_of(&schema::key()).unwrap_or(1))?,
            None => CURRENT_VERSION,
        };
        let warnings = check(path, &outline, &tree, effective::built_in_tree())?;
        Ok(Self { path: path.to_owned(), text, existed: true, schema_version, warnings, outline, tree })
    }

    /// The value that the file gives to the key: a leaf, or a whole table or list as one value.
    pub fn get(&self, key: &KeyPath) -> Option<Value> {
        values::find(&self.tree, key).cloned()
    }

    /// Whether no key stands in it: there is no file, or one that is empty or holds comments alone.
    pub fn is_bare(&self) -> bool {
        self.outline.sites().is_empty()
    }

    /// The 1-based line where the key, or the first thing below it, is written.
    pub fn line_of(&self, key: &KeyPath) -> Option<usize> {
        self.outline.line_of(key)
    }

    /// Whether replacing the key as a whole would meet a pin: its own, one above it, or one below it.
    pub fn touches_pin(&self, key: &KeyPath) -> bool {
        outline::touches_pin(&self.text, &self.outline, key)
    }
}

/// Parses TOML into the places of its keys and their values, without asking what they mean.
pub(super) fn read(path: &Path, text: &str) -> Result<(DocumentOutline, Value)> {
    let document = Document::parse(text.to_owned()).map_err(|cause| syntax_error(path, text, &cause))?;
    let outline = DocumentOutline::of(&document);
    let tree = values::plain(&Value::InlineTable(document.into_mut().into_table().into_inline_table()));
    Ok((outline, tree))
}

/// `path:line: message`.
pub(super) fn at_line(path: &Path, line: usize, message: &str) -> String {
    format!("{}:{line}: {message}", path.shown())
}

/// The error of a file that is no TOML.
pub fn syntax_error(path: &Path, text: &str, cause: &toml_edit::TomlError) -> Error {
    let line = cause.span().map_or(1, |span| lines::number(text, span.start));
    let what = cause.message().lines().collect::<Vec<_>>().join(", ");
    Error::failed(at_line(path, line, &format!("not valid TOML: {what}")))
        .hint("correct the line and run again; devboy never replaces a file that it cannot read")
}

fn not_utf8(path: &Path, cause: &std::string::FromUtf8Error) -> Error {
    let good = cause.utf8_error().valid_up_to();
    let line = 1 + cause.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count();
    Error::failed(at_line(path, line, "not valid UTF-8")).hint("save the file as UTF-8")
}

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
