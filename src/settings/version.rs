//! Which versions of the schema exist and which sections each of them brought.

use std::path::Path;

use super::document::at_line;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;

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
pub(super) fn accept(found: &toml_edit::Value, path: &Path, line: usize) -> Result<u32> {
    let spelled = super::spell::value(found);
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
