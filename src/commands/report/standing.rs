//! What the user's own settings say already about what the page would have them set.

use std::collections::BTreeMap;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::visible::Shown as _;
use crate::cost::findings::search::BillFinding;
use crate::cost::page::Page;
use crate::cost::page::words::StandingSetting;
use crate::report::sharing::without_paths;
use crate::rules::claude::goes_as_far;
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::{Levers, SettingsScope};
use crate::shell::context::Context;

/// By finding, of those about whose setting the user's file says something. In what is shared no place is named.
///
/// # Errors
/// If a file of settings or a data file cannot be read.
pub fn of(
    page: &Page,
    data: &Data,
    is_shared: bool,
    context: &Context<'_>,
) -> Result<BTreeMap<String, StandingSetting>> {
    let levers = Levers::load(data)?;
    let places = context.env.claude_places();
    let Some(path) = places.file(SettingsScope::User) else { return Ok(BTreeMap::new()) };
    let layers = SettingsLayers::load(&places, SettingsScope::User, &path)?;
    let mut standing = BTreeMap::new();
    for finding in &page.findings {
        if let Some(mut stands) = one(finding, &layers, &levers)? {
            if let (true, StandingSetting::Off { words, .. }) = (is_shared, &mut stands) {
                *words = without_paths(words).into_owned();
            }
            standing.insert(finding.id.clone(), stands);
        }
    }
    Ok(standing)
}

/// The same where the settings cannot be read: the client leaves such a file out, so nothing that is set there would hold.
pub fn unread(page: &Page, why: &str) -> BTreeMap<String, StandingSetting> {
    let about_settings = page.findings.iter().filter(|finding| !finding.sets.is_empty());
    let words = format!("the settings cannot be read, so the client leaves them out ({why})");
    about_settings
        .map(|finding| (finding.id.clone(), StandingSetting::Off { words: words.clone(), is_own: true }))
        .collect()
}

fn one(finding: &BillFinding, layers: &SettingsLayers, levers: &Levers) -> Result<Option<StandingSetting>> {
    if !finding.spared_by.is_empty() {
        return spared(finding, layers, levers);
    }
    let mut same = !finding.sets.is_empty();
    let mut words: Vec<String> = Vec::new();
    for set in &finding.sets {
        let Some(lever) = levers.named(&set.lever) else { return Ok(None) };
        let Some(key) = lever.key(None) else { return Ok(None) };
        let held = goes_as_far(layers, levers, (&set.lever, &set.value))?;
        if let Some((held, true)) = held {
            words.push(held);
            continue;
        }
        if let Some(obstacle) = layers.overridden(lever, &key, levers)? {
            let words = format!("{} is {}", set.lever, obstacle.why);
            return Ok(Some(StandingSetting::Off { words, is_own: obstacle.is_own }));
        }
        let value = layers.value(&key)?;
        same &= held.is_none() && value.as_ref() == Some(&set.value);
        let value = value.map(|value| format!("{} is {value}", set.lever));
        words.extend(held.map(|(held, _)| held).or(value));
    }
    words.dedup();
    let told = words.join(" and ");
    Ok((!words.is_empty()).then_some(if same { StandingSetting::Same(told) } else { StandingSetting::Other(told) }))
}

/// Whether all is set that spares it by now.
fn spared(finding: &BillFinding, layers: &SettingsLayers, levers: &Levers) -> Result<Option<StandingSetting>> {
    let mut words: Vec<String> = Vec::new();
    for set in &finding.spared_by {
        match goes_as_far(layers, levers, (&set.lever, &set.value))? {
            Some((held, true)) => words.push(held),
            _ => return Ok(None),
        }
    }
    Ok(Some(StandingSetting::Same(words.join(" and "))))
}

/// The user's file of settings as a page names it; in what is shared no place is told.
pub fn file_words(is_shared: bool, context: &Context<'_>) -> String {
    let moved = context.env.places.claude_config_dir.as_ref();
    match moved.and_then(|_| context.env.claude_places().file(SettingsScope::User)) {
        _ if is_shared => "Claude Code's settings.json".to_owned(),
        Some(path) => path.shown(),
        None => "~/.claude/settings.json".to_owned(),
    }
}
