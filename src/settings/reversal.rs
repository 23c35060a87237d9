//! Takes back what a journal entry says was written: exactly where nothing else changed since, else key by key, and
//! never over what a person did in the meantime.

use std::collections::BTreeSet;

use toml_edit::{InlineTable, Value};

use super::journal::text_sha;
use super::schema::SchemaNode;
use super::{SettingsFile, WantedValue, apply};
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::settings::entries::{JournalChange, JournalEntry};
use crate::settings::{schema, values};

/// What taking an entry back comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Reversal {
    /// The new text of the file.
    pub text: String,
    /// The changes that are taken back.
    pub undone: Vec<JournalChange>,
    /// Those that are not.
    pub kept: Vec<KeptKey>,
    /// Whether the text is the one before the entry, byte for byte.
    pub is_exact: bool,
    /// Whether the file is no longer what devboy wrote.
    pub is_edited: bool,
}

/// A key that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKey {
    /// The key, spelled as in TOML.
    pub key: String,
    /// Why, to follow the key: "is marked `# pin`".
    pub reason: String,
}

/// Takes an entry back, in memory. An error if what remains would be no valid configuration.
pub fn reverse(file: &SettingsFile, entry: &JournalEntry) -> Result<Reversal> {
    let (is_edited, before) = text_before(file.existed, &file.text, entry);
    match before {
        Some(text) => {
            let undone = entry.changes.clone();
            Ok(Reversal { text, undone, kept: Vec::new(), is_exact: true, is_edited })
        }
        None => by_key(file, entry, is_edited),
    }
}

/// Whether a file is no longer what devboy wrote; if it is, the text before that, as far as the journal still has it.
pub(super) fn text_before(existed: bool, text: &str, entry: &JournalEntry) -> (bool, Option<String>) {
    let is_edited = !existed || text_sha(text) != entry.after_sha;
    let before = entry.restore.as_ref().filter(|_| !is_edited).and_then(|restore| restore.before(text));
    (is_edited, before.filter(|text| text_sha(text) == entry.before_sha))
}

/// Why a key is kept that does not have the value that devboy wrote.
pub(super) fn changed_since(found: Option<String>, is_old: bool, new: Option<&str>) -> String {
    match (found, new) {
        _ if is_old => "has its old value already".to_owned(),
        (None, _) => "was taken out since".to_owned(),
        (Some(found), Some(new)) => format!("is {found} now, devboy wrote {new}"),
        (Some(found), None) => format!("is {found} now, devboy took it out"),
    }
}

/// One change to take back.
struct ReversalStep<'e> {
    key: KeyPath,
    old: Option<Value>,
    change: &'e JournalChange,
}

fn by_key(file: &SettingsFile, entry: &JournalEntry, is_edited: bool) -> Result<Reversal> {
    let (mut steps, mut kept) = (Vec::new(), Vec::new());
    for change in &entry.changes {
        match step(file, change) {
            Ok(step) => steps.push(step),
            Err(reason) => kept.push(KeptKey { key: change.key.clone(), reason }),
        }
    }
    let taken: BTreeSet<KeyPath> =
        steps.iter().filter(|step| step.old.is_none()).map(|step| step.key.clone()).collect();
    steps.retain(|step| keep(&mut kept, step, need(file, step, &taken)));
    let mut others: Vec<WantedValue> =
        steps.iter().filter(|step| step.key != schema::key()).map(ReversalStep::back).collect();
    others.extend(emptied_entries(file, &taken).into_iter().map(|key| WantedValue { key, value: None }));
    let file_after = changed(file, &others)?;
    let file_after = changed(&file_after, &lost_tables(&file_after, &steps))?;
    steps.retain(|step| keep(&mut kept, step, newer_section(&file_after, step)));
    let of_version: Vec<WantedValue> =
        steps.iter().filter(|step| step.key == schema::key()).map(ReversalStep::back).collect();
    let text = apply(&file_after, &of_version)?;
    let undone = steps.into_iter().map(|step| step.change.clone()).collect();
    let is_exact = text_sha(&text) == entry.before_sha;
    Ok(Reversal { text, undone, kept, is_exact, is_edited })
}

/// How to take one change back, or why not.
fn step<'e>(file: &SettingsFile, change: &'e JournalChange) -> std::result::Result<ReversalStep<'e>, String> {
    let key: KeyPath = change.key.parse().map_err(|_| "is no key".to_owned())?;
    let parsed = |text: &Option<String>| text.as_ref().map(|text| text.parse::<Value>()).transpose();
    let unreadable = |_| "has values in the journal that cannot be read".to_owned();
    let (old, new) = (parsed(&change.old).map_err(unreadable)?, parsed(&change.new).map_err(unreadable)?);
    let found = file.get(&key);
    if !same(found.as_ref(), new.as_ref()) {
        let is_old = same(found.as_ref(), old.as_ref());
        return Err(changed_since(found.as_ref().map(values::spelled), is_old, change.new.as_deref()));
    }
    if file.touches_pin(&key) {
        return Err("is marked `# pin`".to_owned());
    }
    Ok(ReversalStep { key, old, change })
}

impl ReversalStep<'_> {
    fn back(&self) -> WantedValue {
        WantedValue { key: self.key.clone(), value: self.old.clone() }
    }
}

/// Whether a step is still to be taken; if not, its reason is noted.
fn keep(kept: &mut Vec<KeptKey>, step: &ReversalStep<'_>, reason: Option<String>) -> bool {
    let stays = reason.is_none();
    kept.extend(reason.map(|reason| KeptKey { key: step.change.key.clone(), reason }));
    stays
}

/// Why a key cannot go that its table must have: others of the table stay.
fn need(file: &SettingsFile, step: &ReversalStep<'_>, taken: &BTreeSet<KeyPath>) -> Option<String> {
    let is_required = matches!(SchemaNode::root().find(&step.key), Some(SchemaNode::Leaf { required: true, .. }));
    let table = step.key.parent().filter(|_| is_required && step.old.is_none())?;
    stays(&table, &file.get(&table)?, taken).then(|| format!("is needed by the other keys of `{table}`"))
}

/// Whether anything of a value stays when these keys are taken out.
fn stays(key: &KeyPath, value: &Value, taken: &BTreeSet<KeyPath>) -> bool {
    match value {
        _ if taken.contains(key) => false,
        Value::InlineTable(table) => table.iter().any(|(name, value)| stays(&key.child(name), value, taken)),
        _ => true,
    }
}

/// Entries of maps that keep no key. An entry means something even when it is empty, so a comment does not hold it.
fn emptied_entries(file: &SettingsFile, taken: &BTreeSet<KeyPath>) -> BTreeSet<KeyPath> {
    let tables = taken.iter().flat_map(|key| key.upwards().skip(1).collect::<Vec<_>>());
    let is_emptied = |table: &KeyPath| file.get(table).is_some_and(|value| !stays(table, &value, taken));
    tables.filter(|table| is_entry(table) && is_emptied(table)).collect()
}

fn is_entry(table: &KeyPath) -> bool {
    let map = table.parent().and_then(|map| SchemaNode::root().find(&map));
    let is_named = |node: &SchemaNode| node.names().iter().any(|name| Some(*name) == table.leaf());
    map.is_some_and(|map| matches!(map, SchemaNode::Table { each: Some(_), .. }) && !is_named(map))
}

/// Why the version cannot go down: the file has sections that the older one does not know.
fn newer_section(file: &SettingsFile, step: &ReversalStep<'_>) -> Option<String> {
    let old = step.old.as_ref().filter(|_| step.key == schema::key())?.as_integer()?;
    let sections = file.tree.as_inline_table().into_iter().flatten().map(|(name, _)| KeyPath::from([name]));
    let needed = sections.map(|section| schema::needed_for(&section)).max()?;
    (old < i64::from(needed)).then(|| format!("stays, since a section in the file needs version {needed}"))
}

/// Tables that stood there without any key, and went with the key that devboy gave them.
fn lost_tables(file: &SettingsFile, steps: &[ReversalStep<'_>]) -> Vec<WantedValue> {
    let tables: BTreeSet<KeyPath> =
        steps.iter().filter(|step| step.change.in_empty_table).filter_map(|step| step.key.parent()).collect();
    let lost = tables.into_iter().filter(|table| file.get(table).is_none());
    lost.map(|key| WantedValue { key, value: Some(InlineTable::new().into()) }).collect()
}

fn changed(file: &SettingsFile, changes: &[WantedValue]) -> Result<SettingsFile> {
    if changes.is_empty() { Ok(file.clone()) } else { SettingsFile::parse(&file.path, &apply(file, changes)?) }
}

fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => values::same(left, right),
        (left, right) => left.is_none() && right.is_none(),
    }
}
