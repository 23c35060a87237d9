//! Telemetry names MCP servers by pseudonyms; a configuration must call them by their names. Names that stand in the
//! configuration or in the lake tell which pseudonym is whose.

use std::collections::BTreeMap;
use std::path::Path;

use crate::base::pseudonyms::{Pseudonyms, is_pseudonym, published_tool};
use crate::frames::manifest::Manifest;
use crate::settings::Settings;
use crate::telemetry::log::EventLog;

/// Gives tools and endpoints their names back, as far as somebody knows them.
pub fn restore(log: &mut EventLog, settings: &Settings, pseudonyms: &Pseudonyms, lake: Option<&Path>) {
    if !log.names.texts().iter().any(|name| is_pseudonym(name)) {
        return;
    }
    // What cannot be read is simply not known.
    let of_lake =
        lake.and_then(|dir| Manifest::load(dir).ok()).map(|(manifest, _)| manifest.mcp_tools).unwrap_or_default();
    let recorded = log.names.texts().iter().filter(|name| name.starts_with("mcp__") && !is_pseudonym(name)).cloned();
    let known: BTreeMap<String, String> = recorded
        .chain(of_lake)
        .chain(of_settings(settings))
        .filter(|name| name.starts_with("mcp__"))
        .flat_map(|name| [published_tool(&name), pseudonyms.tool(&name)].map(|hidden| (hidden, name.clone())))
        .collect();
    log.rename(|name| known.get(name).cloned().unwrap_or_else(|| name.to_owned()));
}

/// Every name of an endpoint or tool that a configuration mentions.
fn of_settings(settings: &Settings) -> Vec<String> {
    let patterns = settings.profiles.data.variants.values().map(|profile| &profile.endpoint_pattern);
    patterns
        .chain(settings.tools.keys())
        .chain(settings.endpoint_overrides.keys())
        .chain(settings.dedup.enabled_per_endpoint.keys())
        .chain(settings.templates.endpoint_overrides.keys())
        .cloned()
        .collect()
}
