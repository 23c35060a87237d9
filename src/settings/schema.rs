//! What may stand in the configuration: the rules of `rules/settings/schema.toml` as a tree that can be walked, which
//! versions of the schema exist, and which sections each of them brought.

use std::path::Path;
use std::sync::LazyLock;

use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::settings::document::at_line;
use crate::settings::values;

static ROOT: LazyLock<SchemaNode> = LazyLock::new(|| {
    let text = include_str!("../../rules/settings/schema.toml");
    let document: DocumentMut = text.parse().expect("the shipped schema is TOML; a test reads it");
    table_node(document.as_table())
});

/// One place in the schema.
#[derive(Debug)]
pub(super) enum SchemaNode {
    /// Named keys in order, and what any other key leads to.
    Table { fields: Vec<(String, Self)>, each: Option<Box<Self>> },
    /// A list of tables.
    List(Box<Self>),
    /// A value; an idle one is accepted and changes nothing.
    Leaf { kind: SettingKind, required: bool, idle: bool },
}

/// What a value may be.
#[derive(Debug)]
pub(super) enum SettingKind {
    Bool,
    Text,
    TextList,
    Int {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
        max: f64,
    },
    /// What is not above 0 counts as another number, and is told.
    PositiveFloat {
        instead: f64,
    },
    OneOf(Vec<String>),
    /// The known words of an open list.
    Word(Vec<String>),
}

impl SchemaNode {
    /// The whole schema.
    pub(super) fn root() -> &'static Self {
        &ROOT
    }

    /// The node one step down; below a list every position leads to its element.
    pub(super) fn child(&self, segment: &str) -> Option<&Self> {
        match self {
            Self::Table { fields, each } => {
                let named = fields.iter().find(|(name, _)| name == segment).map(|(_, node)| node);
                named.or(each.as_deref())
            }
            Self::List(element) => Some(element),
            Self::Leaf { .. } => None,
        }
    }

    /// The node at `path`.
    pub(super) fn find(&self, path: &KeyPath) -> Option<&Self> {
        path.0.iter().try_fold(self, |node, segment| node.child(segment))
    }

    /// The named keys of a table.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Table { fields, .. } => fields.iter().map(|(name, _)| name.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// Where a key stands among its siblings.
    pub(super) fn rank(&self, key: &str) -> usize {
        self.names().iter().position(|name| *name == key).unwrap_or(usize::MAX)
    }

    /// The value as the published schema would hold it: fractions in single precision, and floats even where the file
    /// has an integer.
    pub(super) fn normal(&self, value: &Value) -> Value {
        match (self, value) {
            (Self::Leaf { kind: SettingKind::PositiveFloat { instead }, .. }, _) if is_not_positive(value) => {
                Value::from(*instead)
            }
            (Self::Leaf { kind: SettingKind::Float { .. } | SettingKind::PositiveFloat { .. }, .. }, _) => {
                values::number(value).map_or_else(|| values::plain(value), |number| Value::from(values::single(number)))
            }
            (Self::List(element), Value::Array(list)) => {
                Value::Array(list.iter().map(|value| element.normal(value)).collect())
            }
            (Self::Table { .. }, Value::InlineTable(table)) => {
                let normal =
                    |(key, value)| (key, self.child(key).map_or_else(|| values::plain(value), |n| n.normal(value)));
                Value::InlineTable(table.iter().map(normal).collect())
            }
            _ => values::plain(value),
        }
    }

    /// Full paths of all keys called `name` that need no name of the user's choice.
    pub(super) fn paths_of(&self, name: &str) -> Vec<KeyPath> {
        let mut found = Vec::new();
        self.collect_paths(name, &KeyPath::default(), &mut found);
        found
    }

    fn collect_paths(&self, name: &str, at: &KeyPath, found: &mut Vec<KeyPath>) {
        let Self::Table { fields, .. } = self else { return };
        for (key, node) in fields {
            let path = at.child(key);
            node.collect_paths(name, &path, found);
            if key == name {
                found.push(path);
            }
        }
    }
}

impl SettingKind {
    /// Whether the value is of this kind and in range.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Bool => value.is_bool(),
            Self::Text | Self::Word(_) => value.is_str(),
            Self::TextList => value.as_array().is_some_and(|list| list.iter().all(Value::is_str)),
            Self::Int { min, max } => value.as_integer().is_some_and(|number| (*min..=*max).contains(&number)),
            Self::Float { min, max } => finite(value).is_some_and(|number| (*min..=*max).contains(&number)),
            Self::PositiveFloat { .. } => finite(value).is_some(),
            Self::OneOf(names) => value.as_str().is_some_and(|text| names.iter().any(|name| name == text)),
        }
    }

    /// "a whole number of at least 1", to follow "must be".
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Text | Self::Word(_) => "a string".to_owned(),
            Self::TextList => "a list of strings".to_owned(),
            Self::Int { min, max: i64::MAX } => format!("a whole number of at least {min}"),
            Self::Int { min, max } => format!("a whole number from {min} to {max}"),
            Self::Float { min, max: f64::INFINITY } => format!("a number of at least {min}"),
            Self::Float { min, max } => format!("a number from {min} to {max}"),
            Self::PositiveFloat { .. } => "a number above 0".to_owned(),
            Self::OneOf(names) => format!("one of {}", quoted(names)),
        }
    }
}

/// `"a", "b"`
pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// The name that stands for any key of the user's choice.
pub(super) fn is_placeholder(name: &str) -> bool {
    name.starts_with('<')
}

/// Whether it is a number that is not above 0.
pub(super) fn is_not_positive(value: &Value) -> bool {
    finite(value).is_some_and(|number| number <= 0.0)
}

fn finite(value: &Value) -> Option<f64> {
    values::number(value).filter(|number| number.is_finite())
}

fn table_node(table: &dyn TableLike) -> SchemaNode {
    let (each, fields): (Vec<_>, Vec<_>) = table.iter().partition(|(name, _)| is_placeholder(name));
    SchemaNode::Table {
        fields: fields.into_iter().map(|(name, item)| (name.to_owned(), item_node(item))).collect(),
        each: each.first().map(|(_, item)| Box::new(item_node(item))),
    }
}

fn item_node(item: &Item) -> SchemaNode {
    if let Some(element) = item.as_array_of_tables().and_then(|list| list.get(0)) {
        return SchemaNode::List(Box::new(table_node(element)));
    }
    match item.as_table_like() {
        Some(table) => table_node(table),
        None => leaf(item.as_str().expect("a rule of the shipped schema is a string; a test reads it")),
    }
}

fn leaf(rule: &str) -> SchemaNode {
    let (rule, idle) = marked(rule, "idle ");
    let (rule, required) = marked(rule, "required ");
    SchemaNode::Leaf { kind: kind(rule), required, idle }
}

/// The rule without a mark in front, and whether it had it.
fn marked<'r>(rule: &'r str, mark: &str) -> (&'r str, bool) {
    rule.strip_prefix(mark).map_or((rule, false), |rest| (rest, true))
}

fn kind(rule: &str) -> SettingKind {
    let (name, range) = rule.split_once(' ').unwrap_or((rule, ".."));
    let (min, max) = range.split_once("..").unwrap_or_default();
    match name {
        "bool" => SettingKind::Bool,
        "string" => SettingKind::Text,
        "strings" => SettingKind::TextList,
        "int" => SettingKind::Int { min: min.parse().unwrap_or(i64::MIN), max: max.parse().unwrap_or(i64::MAX) },
        "u32" => SettingKind::Int { min: 0, max: i64::from(u32::MAX) },
        "float" => {
            SettingKind::Float { min: min.parse().unwrap_or(f64::MIN), max: max.parse().unwrap_or(f64::INFINITY) }
        }
        "positive" => {
            let instead = range.trim_start_matches("float or ").parse();
            SettingKind::PositiveFloat { instead: instead.expect("the shipped schema names a number; a test reads it") }
        }
        "word" => SettingKind::Word(names_in(rule.trim_start_matches("word of "))),
        _ => SettingKind::OneOf(names_in(rule.trim_start_matches("one of "))),
    }
}

fn names_in(list: &str) -> Vec<String> {
    list.split(", ").map(str::to_owned).collect()
}

/// Whether a key is accepted and changes nothing, here or in the published system.
pub fn is_idle(key: &KeyPath) -> bool {
    matches!(SchemaNode::root().find(key), Some(SchemaNode::Leaf { idle: true, .. }))
}

/// The version that devboy writes.
pub const CURRENT_VERSION: u32 = 4;

/// The oldest version that devboy reads.
pub const OLDEST_VERSION: u32 = 1;

/// The key that holds the version.
pub(super) fn key() -> KeyPath {
    KeyPath::from(["schema_version"])
}

/// The first version that knows the section of `key`.
pub(super) fn needed_for(key: &KeyPath) -> u32 {
    match key.0.first().map(String::as_str) {
        Some("profiles" | "hints") => 2,
        Some("tools") => 3,
        Some("enrichment") => 4,
        _ => OLDEST_VERSION,
    }
}

/// The version as a number, or why devboy does not read the file.
pub(super) fn accept(found: &Value, path: &Path, line: usize) -> Result<u32> {
    let spelled = values::spelled(found);
    let accepted = u32::try_from(found.as_integer().unwrap_or_default()).unwrap_or_default();
    if (OLDEST_VERSION..=CURRENT_VERSION).contains(&accepted) {
        return Ok(accepted);
    }
    let newer = found.as_integer().is_some_and(|version| version > i64::from(CURRENT_VERSION));
    let hint = match newer {
        true => "the file was written by a newer version: update devboy".to_owned(),
        false => format!("set `schema_version = {CURRENT_VERSION}`, or remove the line, which means the same"),
    };
    let what = format!("schema_version {spelled} is not supported (accepted: {OLDEST_VERSION} to {CURRENT_VERSION})");
    Err(Error::failed(at_line(path, line, &what)).hint(hint))
}
