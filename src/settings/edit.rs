//! Changes single keys of a configuration and leaves every other byte where it is: the changes, and the one function that
//! makes them.

use toml_edit::{Table, Value};

use super::SettingsFile;
use super::draft::Draft;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;

/// One wanted value.
#[derive(Debug, Clone)]
pub struct Change {
    /// The key to set.
    pub key: KeyPath,
    /// What it shall be.
    pub value: NewValue,
}

/// What a key shall be.
#[derive(Debug, Clone)]
pub enum NewValue {
    /// One value. A list of tables (`follow_up`) is a value too; its elements are matched by their `tool`.
    Scalar(Value),
    /// A whole table: added as a block where there is none, else set key by key; keys it does not name stay.
    Table(Table),
    /// Nothing: the key, and all below it, is taken out, and with it a table that this leaves empty.
    Absent,
}

/// The text of `file` after the changes. Making the same changes again changes nothing.
///
/// A change that would alter a pinned key is an error; callers ask [`SettingsFile::touches_pin`] first. A value that already holds is left alone, pinned or not.
pub fn apply(file: &SettingsFile, changes: &[Change]) -> Result<String> {
    let is_absent = |change: &Change| matches!(change.value, NewValue::Absent);
    if changes.is_empty() || (!file.existed && changes.iter().all(is_absent)) {
        return Ok(file.text.clone());
    }
    let mut draft = Draft::of(file)?;
    draft.change_all(changes)?;
    SettingsFile::parse(&file.path, draft.text()).map_err(|cause| {
        Error::failed(format!("the change does not fit: {}", cause.message)).hint("the file was not touched")
    })?;
    Ok(draft.text().to_owned())
}
