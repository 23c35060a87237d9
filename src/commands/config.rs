//! Where the configuration is, and how a command reads it.

use std::path::{Path, PathBuf};

use toml_edit::Value;

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::tokenizer::Bpe;
use crate::base::visible::{Shown as _, visible};
use crate::facts::encode;
use crate::report::numbers;
use crate::settings::{AgentClass, Effective, Origin, Settings, SettingsFile};
use crate::shell::context::Context;

/// The configuration file: the one named, else `DEVBOY_CONFIG`, else the default.
pub fn config_path(named: Option<&PathBuf>, context: &Context<'_>) -> Result<PathBuf> {
    named.cloned().or_else(|| context.env.config_file()).ok_or_else(|| {
        Error::failed("no place for the configuration: HOME is not set").hint("name the file, or set DEVBOY_CONFIG")
    })
}

/// Reads a configuration whose formats all exist.
///
/// # Errors
/// If it is broken, names a format that does not exist, or is missing although it must exist.
pub fn load_config(path: &Path, must_exist: bool) -> Result<SettingsFile> {
    let file = SettingsFile::load(path)?;
    if !file.existed && must_exist {
        return Err(Error::failed(format!("{} does not exist", path.shown()))
            .hint("without --config, the built-in values are replayed"));
    }
    check_formats(&file)?;
    Ok(file)
}

/// Every format that a file names must exist: a template that nobody knows would silently do nothing.
fn check_formats(file: &SettingsFile) -> Result<()> {
    for (key, value, origin) in Effective::resolve(file)?.leaves() {
        let Origin::File { line } = origin else { continue };
        if !names_formats(&key) {
            continue;
        }
        let listed = value.as_array().map(|list| list.iter().filter_map(Value::as_str).collect());
        let named: Vec<&str> = listed.unwrap_or_else(|| value.as_str().into_iter().collect());
        if let Some(unknown) = named.into_iter().find(|id| !is_format(id)) {
            let place = format!("{}:{line}", file.path.shown());
            return Err(unknown_format(unknown, &format!("{place}: `{key}`")));
        }
    }
    Ok(())
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
pub fn is_format(id: &str) -> bool {
    encode::find(id).is_some()
}

/// The error about a format that devboy does not know.
pub fn unknown_format(id: &str, place: &str) -> Error {
    Error::failed(format!("{place} names the unknown format \"{id}\""))
        .hint(format!("formats: {}", encode::ids().join(", ")))
}

/// The vocabularies that some session may be counted in, one bit each; at least one, since all facts are made together.
/// With a model, as if that one had answered in every session.
pub fn vocabularies(settings: &Settings, model: Option<&str>) -> u8 {
    let of = |model: Option<&str>| settings.for_session(model, AgentClass::Default).tokenizer.profile.bpe;
    let used: Vec<Bpe> = match model {
        Some(model) => vec![of(Some(model))],
        None => settings.profiles.llm.variants.keys().map(|name| of(Some(name))).chain([of(None)]).collect(),
    };
    used.into_iter().filter_map(Bpe::place).fold(0, |bits, place| bits | 1 << place).max(1)
}

/// Warnings that are told one by one; the rest is counted.
const TOLD_MAX: usize = 20;

/// Tells about keys of the file that mean nothing to devboy.
pub fn warn_unknown(file: &SettingsFile, context: &mut Context<'_>) -> Result<()> {
    for warning in file.warnings.iter().take(TOLD_MAX) {
        writeln!(context.err, "# warning: {}:{}: {}", file.path.shown(), warning.line, visible(&warning.message))?;
    }
    if let Some(more) = file.warnings.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
        let more = numbers::counted(more as u64, "more warning");
        writeln!(context.err, "# warning: {more} about {}; its JSON report lists them all", file.path.shown())?;
    }
    Ok(())
}
