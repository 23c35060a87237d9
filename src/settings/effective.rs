//! The configuration that really holds: the user's file laid over the built-in tree (maps entry by entry and field by field),
//! with the origin of every value; the same with some values replaced, in memory only and whatever is pinned; and as rules see
//! it: what holds, what a person wrote, what is pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use serde::de::{Deserialize, IntoDeserializer};
use toml_edit::{DocumentMut, InlineTable, Value};

use super::CURRENT_VERSION;
use super::schema::{SchemaNode, is_placeholder};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::visible::Shown as _;
use crate::settings::outline::DocumentOutline;
use crate::settings::resolve::{named, overruled};
use crate::settings::{Settings, SettingsFile, schema, values};

static BUILT_IN: LazyLock<Value> = LazyLock::new(|| shipped(include_str!("../../rules/settings/defaults.toml")));
static FALLBACKS: LazyLock<Value> = LazyLock::new(|| shipped(include_str!("../../rules/settings/fallbacks.toml")));

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The user's file.
    File {
        /// 1-based line.
        line: usize,
    },
}

/// The resolved configuration.
#[derive(Debug, Clone)]
pub struct Effective {
    /// All values, typed.
    pub settings: Settings,
    /// Every value with its key and origin, in the order of the schema, map entries sorted.
    pub leaves: Vec<(KeyPath, Value, Origin)>,
}

impl Effective {
    /// Lays the file over the built-in tree and brings it to the current version, in memory only.
    pub fn resolve(file: &SettingsFile) -> Result<Self> {
        let mut layers = Layers { file, at: KeyPath::default(), leaves: Some(Vec::new()) };
        let sources = Sources { built_in: Some(built_in_tree()), file: Some(&file.tree), fallback: Some(&FALLBACKS) };
        let whole = layers.merge(SchemaNode::root(), sources).unwrap_or_else(|| InlineTable::new().into());
        let settings = Settings::deserialize(whole.into_deserializer()).map_err(|cause| odd(file, &cause))?;
        Ok(Self { settings, leaves: layers.leaves.unwrap_or_default() })
    }

    /// What holds without any file.
    pub fn built_in() -> Self {
        Self::resolve(&SettingsFile::missing(Path::new("")))
            .expect("the shipped defaults fit the schema; a test reads them")
    }
}

/// The same settings as [`Effective::resolve`] finds, sooner: only the sections of the file are laid over the built-in ones.
fn settings_of(file: &SettingsFile) -> Result<Settings> {
    static BUILT_IN_SETTINGS: LazyLock<Settings> = LazyLock::new(|| Effective::built_in().settings);
    let mut layers = Layers { file, at: KeyPath::default(), leaves: None };
    let sources = Sources { built_in: Some(built_in_tree()), file: Some(&file.tree), fallback: Some(&FALLBACKS) };
    let mut settings = BUILT_IN_SETTINGS.clone();
    for (name, _) in file.tree.as_inline_table().into_iter().flatten() {
        let section = SchemaNode::root().child(name).and_then(|node| layers.below(name, node, sources));
        section.map_or(Ok(()), |section| settings.put(name, section)).map_err(|cause| odd(file, &cause))?;
    }
    Ok(settings)
}

fn odd(file: &SettingsFile, cause: &toml_edit::de::Error) -> Error {
    Error::failed(format!("{}: the configuration does not fit together: {cause}", file.path.shown()))
}

/// The built-in tree as one value.
pub(super) fn built_in_tree() -> &'static Value {
    &BUILT_IN
}

/// What an entry is worth that says nothing: `path` with "<id>" as its last segment.
pub(super) fn fallback(path: &KeyPath) -> Option<&'static Value> {
    values::find(&FALLBACKS, path)
}

/// What each layer says about one place.
#[derive(Clone, Copy)]
struct Sources<'v> {
    built_in: Option<&'v Value>,
    file: Option<&'v Value>,
    fallback: Option<&'v Value>,
}

impl<'v> Sources<'v> {
    fn child(self, segment: &str) -> Self {
        let step = |value: Option<&'v Value>| value.and_then(|value| values::child(value, segment));
        Self {
            built_in: step(self.built_in),
            file: step(self.file),
            fallback: step(self.fallback).or_else(|| self.fallback.and_then(any_entry)),
        }
    }

    /// The keys of both trees that the schema does not name, sorted.
    fn entries(self, named: &[&str]) -> BTreeSet<&'v str> {
        let tables = [self.built_in, self.file].into_iter().flatten().filter_map(Value::as_inline_table);
        tables.flat_map(|table| table.iter().map(|(key, _)| key)).filter(|key| !named.contains(key)).collect()
    }
}

struct Layers<'f> {
    file: &'f SettingsFile,
    /// Where the merge stands.
    at: KeyPath,
    /// Where each value comes from, if somebody asks.
    leaves: Option<Vec<(KeyPath, Value, Origin)>>,
}

impl Layers<'_> {
    fn merge(&mut self, node: &SchemaNode, sources: Sources<'_>) -> Option<Value> {
        let SchemaNode::Table { each, .. } = node else { return self.leaf(node, sources) };
        let names = node.names();
        let entries = if each.is_some() { sources.entries(&names) } else { BTreeSet::new() };
        let mut merged = InlineTable::new();
        for key in names.into_iter().chain(entries) {
            let Some(child) = node.child(key) else { continue };
            if let Some(value) = self.below(key, child, sources) {
                merged.insert(key, value);
            }
        }
        Some(Value::InlineTable(merged))
    }

    fn below(&mut self, key: &str, node: &SchemaNode, sources: Sources<'_>) -> Option<Value> {
        self.at.0.push(key.to_owned());
        let below = self.merge(node, sources.child(key));
        self.at.0.pop();
        below
    }

    fn leaf(&mut self, node: &SchemaNode, sources: Sources<'_>) -> Option<Value> {
        let value = node.normal(sources.file.or(sources.built_in).or(sources.fallback)?);
        if let Some(leaves) = &mut self.leaves {
            let in_file = || Origin::File { line: self.file.line_of(&self.at).unwrap_or(1) };
            let origin = sources.file.map_or(Origin::Default, |_| in_file());
            leaves.push((self.at.clone(), value.clone(), origin));
        }
        // An older file is filled up: what holds is the version of today.
        let is_older = self.file.schema_version < CURRENT_VERSION && self.at == schema::key();
        sources.built_in.filter(|_| is_older).cloned().or(Some(value))
    }
}

fn any_entry(value: &Value) -> Option<&Value> {
    value.as_inline_table()?.iter().find(|(key, _)| is_placeholder(key)).map(|(_, value)| value)
}

fn shipped(text: &str) -> Value {
    let document: DocumentMut = text.parse().expect("the shipped defaults are TOML; a test reads them");
    values::plain(&Value::InlineTable(document.into_table().into_inline_table()))
}

/// The settings that would hold if these keys had these values. An error if a key is unknown or a value does not fit
/// it.
pub fn what_if(file: &SettingsFile, changes: &[(KeyPath, Value)]) -> Result<Settings> {
    let mut tree = file.tree.clone();
    for (key, value) in changes {
        let is_put = |table| values::put(table, &key.0, values::plain(value));
        if !tree.as_inline_table_mut().is_some_and(is_put) {
            return Err(Error::usage(format!("`{key}` is not a key of a table")));
        }
    }
    let outline = DocumentOutline::default();
    let changed = SettingsFile::checked(&file.path, String::new(), outline, tree).map_err(|cause| {
        // Its line is none of the file on disk.
        let said = cause.message.strip_prefix(&file.path.shown()).and_then(|rest| rest.split_once(": "));
        Error::usage(format!("the value does not fit: {}", said.map_or(cause.message.as_str(), |(_, said)| said)))
    })?;
    for (key, _) in changes.iter().filter(|_| !changed.warnings.is_empty()) {
        // The key, or a table that it stands in.
        let name = key.to_string();
        let is_of = |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if let Some(warning) = changed.warnings.iter().find(|warning| is_of(&warning.key)) {
            return Err(Error::usage(warning.message.clone()).hint("`devboy tune show` lists all keys"));
        }
    }
    settings_of(&changed)
}

/// The configuration as rules see it.
pub struct View<'a> {
    file: &'a SettingsFile,
    leaves: BTreeMap<KeyPath, (Value, Origin)>,
    /// What devboy wrote last, by key.
    written: BTreeMap<String, String>,
    /// The tool of each endpoint class.
    tools: BTreeMap<String, String>,
}

impl<'a> View<'a> {
    /// A view of a file laid over the built-in tree.
    pub fn of(file: &'a SettingsFile) -> Result<Self> {
        let leaves = Effective::resolve(file)?.leaves.into_iter();
        let leaves = leaves.map(|(key, value, origin)| (key, (value, origin))).collect();
        Ok(Self { file, leaves, written: BTreeMap::new(), tools: BTreeMap::new() })
    }

    /// The same of a file of which is known what devboy wrote there ([`crate::settings::entries::Journal::written`]).
    #[must_use]
    pub fn after(self, written: BTreeMap<String, String>) -> Self {
        Self { written, ..self }
    }

    /// The same of which is known whose answers an endpoint class has: what is said of a tool holds for its classes.
    #[must_use]
    pub fn knowing(self, tools: BTreeMap<String, String>) -> Self {
        Self { tools, ..self }
    }

    /// The value that holds for a key, from the file or built in.
    pub fn value(&self, key: &KeyPath) -> Option<Value> {
        self.leaves.get(key).map(|(value, _)| value.clone()).or_else(|| self.file.get(key))
    }

    /// The same of a key that holds a text.
    pub fn text(&self, key: &KeyPath) -> Option<String> {
        self.value(key)?.as_str().map(str::to_owned)
    }

    /// The same of a key that holds a number.
    pub fn number(&self, key: &KeyPath) -> Option<f64> {
        self.value(key).as_ref().and_then(values::number)
    }

    /// The variant of an axis of `[profiles]` that is chosen for all sessions; none if each session decides.
    pub fn chosen(&self, axis: &str) -> Option<String> {
        self.text(&KeyPath::from(["profiles", axis, "active"])).filter(|active| named(active).is_some())
    }

    /// The model variant of a family: the one of its name, else the first by name that is another spelling of it.
    pub fn llm_variant(&self, family: &str) -> Option<String> {
        let names = self.entries(&KeyPath::from(["profiles", "llm", "variants"]));
        let named = names.iter().find(|name| *name == family);
        named.or_else(|| names.iter().find(|name| normalise(name) == family)).cloned()
    }

    /// The line of the file in which the key stands; none when the value is built in or absent.
    pub fn line(&self, key: &KeyPath) -> Option<usize> {
        self.file.line_of(key)
    }

    /// The same of a value that devboy did not write: whoever set it keeps it.
    pub fn line_by_hand(&self, key: &KeyPath) -> Option<usize> {
        let spelled = self.file.get(key).map(|value| value.to_string().trim().to_owned());
        let is_written = spelled.is_some() && self.written.get(&key.to_string()) == spelled.as_ref();
        self.line(key).filter(|_| !is_written)
    }

    /// Whether the key, or a table around it, is marked `# pin`.
    pub fn pinned(&self, key: &KeyPath) -> bool {
        self.file.touches_pin(key)
    }

    /// The pinned key because of which a key may not be written: itself, or one that it would overrule.
    pub fn pin_against(&self, key: &KeyPath) -> Option<KeyPath> {
        [key.clone()].into_iter().chain(overruled(key, &self.tools)).find(|key| self.pinned(key))
    }

    /// The names of the entries below a table, built-in ones included, sorted.
    pub fn entries(&self, table: &KeyPath) -> Vec<String> {
        let below = self.leaves.keys().filter(|key| *key != table && key.starts_with(table));
        let names: BTreeSet<String> = below.filter_map(|key| key.below(table).0.into_iter().next()).collect();
        names.into_iter().collect()
    }
}
