//! Formats that a configuration names; which vocabularies it counts in.

use std::path::Path;

use toml_edit::Value;

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::tokenizer::Bpe;
use crate::base::visible::Shown as _;
use crate::facts::encode;
use crate::settings::{Effective, Origin, Settings, SettingsFile};

/// Reads a configuration. An error if it is broken, or is missing although it must exist.
pub fn load_config(path: &Path, must_exist: bool) -> Result<SettingsFile> {
    let file = SettingsFile::load(path)?;
    if !file.existed && must_exist {
        return Err(Error::failed(format!("{} does not exist", path.shown()))
            .hint("name a file that is there, or leave the option out: then the built-in values hold"));
    }
    Ok(file)
}

/// Keys of a file that name formats which nobody knows, and what that comes to: the pipeline passes over them.
pub(super) fn of_no_effect(effective: &Effective) -> Vec<(KeyPath, String)> {
    let of_file = effective.leaves.iter().filter(|(.., origin)| matches!(origin, Origin::File { .. }));
    let unknown = of_file.flat_map(|(key, value, _)| unknown_formats(key, value).into_iter().map(move |id| (key, id)));
    let known = encode::ids().join(", ");
    let words = |key: &KeyPath, id: String| {
        format!("`{key}` names {id:?}, which no format is called ({known}): it does nothing")
    };
    unknown.map(|(key, id)| (key.clone(), words(key, id))).collect()
}

/// The formats that a value of a key names and nobody knows.
pub fn unknown_formats(key: &KeyPath, value: &Value) -> Vec<String> {
    if !names_formats(key) {
        return Vec::new();
    }
    let listed = value.as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
    let named: Vec<&str> = listed.unwrap_or_else(|| value.as_str().into_iter().collect());
    named.into_iter().filter(|id| !is_format(id)).map(str::to_owned).collect()
}

fn names_formats(key: &KeyPath) -> bool {
    let segments: Vec<&str> = key.0.iter().map(String::as_str).collect();
    matches!(
        segments.as_slice(),
        ["templates", "active"]
            | ["templates", "endpoint_overrides", _]
            | ["mckp", "formats_enabled"]
            | ["endpoint_overrides", _, "template_id"]
            | ["profiles", "data", "variants", _, "preferred_format"]
    )
}

/// Whether devboy knows a format.
fn is_format(id: &str) -> bool {
    encode::find(id).is_some()
}

/// Whether the router may choose formats that the published pipeline does not know.
pub fn lists_extended(settings: &Settings) -> bool {
    let extended =
        |id: &String| encode::find(id).is_some_and(|(_, format)| format.family == encode::FormatFamily::Extended);
    settings.mckp.formats_enabled.iter().any(extended)
}

/// The error about a format that devboy does not know.
pub fn unknown_format(id: &str, place: &str) -> Error {
    Error::failed(format!("{place} names the unknown format \"{id}\""))
        .hint(format!("formats: {}", encode::ids().join(", ")))
}

/// The vocabularies that some session may be counted in, one bit each; at least one, since all facts are made together.
/// With a model, as if that one had answered in every session.
pub fn vocabularies(settings: &Settings, model: Option<&str>) -> u8 {
    let of = |model: Option<&str>| settings.tokenizer_for(model).bpe;
    let used: Vec<Bpe> = match model {
        Some(model) => vec![of(Some(model))],
        None => settings.profiles.llm.variants.keys().map(|name| of(Some(name))).chain([of(None)]).collect(),
    };
    used.into_iter().filter_map(Bpe::place).fold(0, |bits, place| bits | 1 << place).max(1)
}
