//! A configuration that nobody wrote: the file with some values replaced, in memory only. Pins do not hold here, since
//! nothing is written.

use toml_edit::{DocumentMut, Item, Table, Value};

use super::{Effective, Settings, SettingsFile};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;

/// The settings that would hold if these keys had these values.
///
/// # Errors
/// If a key is unknown or a value does not fit it.
pub fn what_if(file: &SettingsFile, changes: &[(KeyPath, Value)]) -> Result<Settings> {
    let text = if file.existed { file.text.as_str() } else { "" };
    let mut document: DocumentMut = text
        .trim_start_matches('\u{feff}')
        .parse()
        .map_err(|cause| Error::failed(format!("{}: {cause}", file.path.shown())))?;
    for (key, value) in changes {
        set(document.as_item_mut(), key, value)?;
    }
    let changed = SettingsFile::parse(&file.path, &document.to_string())
        .map_err(|cause| Error::usage(format!("the value does not fit: {}", cause.message)))?;
    for (key, _) in changes {
        let name = key.to_string();
        if let Some(warning) = changed.warnings.iter().find(|warning| warning.key == name) {
            return Err(Error::usage(warning.message.clone()).hint("`devboy tune show` lists all keys"));
        }
    }
    Ok(Effective::resolve(&changed)?.settings)
}

fn set(mut at: &mut Item, key: &KeyPath, value: &Value) -> Result<()> {
    let odd = || Error::usage(format!("`{key}` is not a key of a table"));
    let (last, tables) = key.0.split_last().ok_or_else(odd)?;
    for segment in tables {
        let table = at.as_table_like_mut().ok_or_else(odd)?;
        if !table.contains_key(segment) {
            let mut implicit = Table::new();
            implicit.set_implicit(true);
            table.insert(segment, Item::Table(implicit));
        }
        at = table.get_mut(segment).ok_or_else(odd)?;
    }
    at.as_table_like_mut().ok_or_else(odd)?.insert(last, Item::Value(value.clone()));
    Ok(())
}
