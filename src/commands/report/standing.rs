//! What the user's own settings say already about what the page would have them set.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::cost::findings::levers::Assignment;
use crate::cost::findings::search::{BillFinding, FindingScope};
use crate::cost::page::Page;
use crate::cost::page::words::StandingSetting;
use crate::report::sharing::without_paths;
use crate::rules::claude::{HeldLever, held};
use crate::settings::claude::layers::{SettingsLayers, project_id};
use crate::settings::claude::levers::{Lever, LeverUse, Levers, SettingsScope};
use crate::shell::context::Context;
use crate::whatif::client::thresholds::{Versions, known};

/// By finding, of those about whose setting the user's file says something. In what is shared no place is named.
pub fn of(
    page: &Page,
    data: &Data,
    is_shared: bool,
    context: &Context<'_>,
) -> Result<BTreeMap<String, StandingSetting>> {
    let levers = Levers::load(data)?;
    let clients = LeversOfClients { levers: &levers, versions: &page.versions };
    let Some(layers) = layers(page, context)? else { return Ok(BTreeMap::new()) };
    let places = context.env.claude_places();
    let project = places.project.as_deref().map(|project| project_id(project).to_string()).unwrap_or_default();
    let is_all = page.spent.by_project.keys().all(|other| *other == project);
    // Of another project nothing is told.
    let is_here = page.spent.by_project.contains_key(&project);
    let files = SettingsLayers::of_project(&places).filter(|_| is_here).map(|files| files.about_those_of(&layers));
    let own = ProjectFiles { project, layers: files, user: &layers, is_all };
    let mut standing = BTreeMap::new();
    for finding in &page.findings {
        if let Some(mut stands) = own.beside(finding, clients, one(finding, &layers, clients)?) {
            if let (true, StandingSetting::Off { words, .. }) = (is_shared, &mut stands) {
                *words = without_paths(words).into_owned();
            }
            standing.insert(finding.id.clone(), stands);
        }
    }
    Ok(standing)
}

/// What can be set, and the clients in use.
#[derive(Clone, Copy)]
struct LeversOfClients<'a> {
    levers: &'a Levers,
    versions: &'a Versions,
}

impl LeversOfClients<'_> {
    /// What stands already, by these levers, which a client in use may not know.
    fn same(self, words: String, by: &[&Lever]) -> StandingSetting {
        let update = by.iter().find_map(|lever| known(&[lever], self.versions).err());
        StandingSetting::Same { words, update }
    }
}

/// The user's settings, about the models of the page; none without a place for them.
pub fn layers(page: &Page, context: &Context<'_>) -> Result<Option<SettingsLayers>> {
    let places = context.env.claude_places();
    let Some(path) = places.file(SettingsScope::User) else { return Ok(None) };
    let layers = SettingsLayers::load(&places, SettingsScope::User, &path)?;
    Ok(Some(layers.about(page.spent.by_model.keys().map(String::as_str))))
}

/// The settings of the project that the current directory is.
struct ProjectFiles<'a> {
    /// The project, as the page knows it.
    project: String,
    /// None outside of any directory, and where the page has no request of it.
    layers: Option<SettingsLayers>,
    /// The user's settings, whose variables win over settings of the project.
    user: &'a SettingsLayers,
    /// Whether the page is about this project alone.
    is_all: bool,
}

impl ProjectFiles<'_> {
    /// What stands for a finding where the project sets something itself, which wins over the user's file here: something else is
    /// told where that file says the same already, or would do nothing; the same where there is no other project.
    fn beside(
        &self,
        finding: &BillFinding,
        clients: LeversOfClients<'_>,
        stands: Option<StandingSetting>,
    ) -> Option<StandingSetting> {
        if let FindingScope::Parts(by, names) = &finding.scope
            && by == "project"
        {
            let is_here = names.len() == 1 && names[0] == self.project;
            return self.set(&finding.part_sets, clients).filter(|_| is_here).or(stands);
        }
        let Some(words) = self.other(finding, clients.levers) else {
            let wanted = if finding.sets.is_empty() { &finding.spared_by } else { &finding.sets };
            let is_same = |set: &StandingSetting| matches!(set, StandingSetting::Same { .. });
            let is_open = self.is_all && matches!(stands, None | Some(StandingSetting::Other(_)));
            return self.set(wanted, clients).filter(is_same).filter(|_| is_open).or(stands);
        };
        match stands {
            // What is told of goes on here.
            Some(StandingSetting::Same { .. }) if !finding.spared_by.is_empty() => None,
            Some(StandingSetting::Same { words: set, .. }) => {
                let words = format!("{set} already; in this project {words}, which wins here");
                Some(StandingSetting::Off { words, is_own: false })
            }
            None if self.is_all && !finding.sets.is_empty() => {
                let words = format!("in this project {words}, which wins over the user's settings");
                Some(StandingSetting::Off { words, is_own: true })
            }
            None if !finding.sets.is_empty() => {
                Some(StandingSetting::Other(format!("in this project, where it wins, {words}")))
            }
            stands => stands,
        }
    }

    /// What the project sets itself of what a lever sets; none where that is nothing, or the user's variables win over it.
    fn held<'l>(&self, set: &Assignment, levers: &'l Levers) -> Option<HeldLever<'l>> {
        let (layers, lever) = (self.layers.as_ref()?, levers.named(&set.lever)?);
        if !layers.decide(lever, levers, self.user).ok()? {
            return None;
        }
        if lever.fate() != LeverUse::Hint {
            return held(layers, levers, (&set.lever, &set.value)).ok()?;
        }
        // No rule asks what holds of it.
        let value = layers.resolved(lever).ok()?.filter(|value| lever.taken(value).is_some())?;
        Some(HeldLever { lever, words: format!("{} is {value}", lever.name), is_same: value == set.value })
    }

    /// What the project sets itself of what a finding would have it set; none where that is nothing.
    fn set(&self, wanted: &[Assignment], clients: LeversOfClients<'_>) -> Option<StandingSetting> {
        let held: Vec<HeldLever<'_>> = wanted.iter().filter_map(|set| self.held(set, clients.levers)).collect();
        let words: Vec<&str> = held.iter().map(|held| held.words.as_str()).collect();
        let told = format!("{} in this project", words.join(" and "));
        let is_same = held.len() == wanted.len() && held.iter().all(|held| held.is_same);
        let by: Vec<&Lever> = held.iter().map(|held| held.lever).collect();
        (!held.is_empty()).then(|| if is_same { clients.same(told, &by) } else { StandingSetting::Other(told) })
    }

    /// What the project sets itself to something else than a finding would, in words.
    fn other(&self, finding: &BillFinding, levers: &Levers) -> Option<String> {
        let layers = self.layers.as_ref()?;
        let wanted = finding.sets.iter().chain(&finding.spared_by);
        // In other projects the user's file acts.
        let obstacle = |name: &str| {
            let lever = levers.named(name).filter(|_| self.is_all)?;
            let obstacle = layers.overridden(lever, &lever.key(None)?, levers).ok()??;
            Some((format!("{name} is {}", obstacle.why), false))
        };
        let mut own = wanted.filter_map(|set| {
            let held = self.held(set, levers);
            held.map(|held| (held.words, held.is_same)).or_else(|| obstacle(&set.lever))
        });
        own.find(|(_, is_same)| !is_same).map(|(words, _)| words)
    }
}

/// The same where the settings cannot be read: nobody can say what the client makes of them.
pub fn unread(page: &Page, why: &str) -> BTreeMap<String, StandingSetting> {
    let about_settings = page.findings.iter().filter(|finding| !finding.sets.is_empty());
    let words = format!("the settings cannot be read as they stand ({why})");
    about_settings
        .map(|finding| (finding.id.clone(), StandingSetting::Off { words: words.clone(), is_own: true }))
        .collect()
}

fn one(
    finding: &BillFinding,
    layers: &SettingsLayers,
    clients: LeversOfClients<'_>,
) -> Result<Option<StandingSetting>> {
    if !finding.spared_by.is_empty() {
        return spared(finding, layers, clients);
    }
    let levers = clients.levers;
    let sets = if finding.sets.is_empty() { &finding.part_sets } else { &finding.sets };
    let mut same = !sets.is_empty();
    let (mut words, mut by): (Vec<String>, Vec<&Lever>) = (Vec::new(), Vec::new());
    for set in sets {
        let Some(lever) = levers.named(&set.lever) else { return Ok(None) };
        let held = held(layers, levers, (&set.lever, &set.value))?;
        by.push(held.as_ref().map_or(lever, |held| held.lever));
        if let Some(HeldLever { words: held, is_same: true, .. }) = held {
            words.push(held);
            continue;
        }
        let keys = keys(finding, lever);
        for key in &keys {
            if let Some(obstacle) = layers.overridden(lever, key, levers)? {
                let words = format!("{} is {}", set.lever, obstacle.why);
                return Ok(Some(StandingSetting::Off { words, is_own: obstacle.is_own }));
            }
        }
        let values = match lever.is_for_one_model() {
            true => keys.iter().map(|key| layers.value(key)).collect::<Result<Vec<_>>>()?,
            false => vec![layers.resolved(lever)?],
        };
        // The client ignores what it does not take.
        let taken: Vec<Value> = values.iter().flatten().filter(|value| lever.taken(value).is_some()).cloned().collect();
        same &= held.is_none() && taken.len() == values.len() && taken.iter().all(|value| *value == set.value);
        let value = taken.first().map(|value| format!("{} is {value}", set.lever));
        words.extend(held.map(|held| held.words).or(value));
    }
    words.dedup();
    let told = words.join(" and ");
    // What a project sets wins over the user's file.
    let is_of_project = matches!(&finding.scope, FindingScope::Parts(by, _) if by == "project");
    Ok(match same {
        _ if words.is_empty() => None,
        true => Some(clients.same(told, &by)),
        false => Some(StandingSetting::Other(told)).filter(|_| !is_of_project),
    })
}

/// Where a lever stands for a finding: of one that is set by model once for each of its models.
fn keys(finding: &BillFinding, lever: &Lever) -> Vec<KeyPath> {
    match &finding.scope {
        FindingScope::Parts(by, models) if by == "model" && lever.is_for_one_model() => {
            models.iter().filter_map(|model| lever.key(Some(model))).collect()
        }
        _ => lever.key(None).into_iter().collect(),
    }
}

/// Whether all is set that spares it by now.
fn spared(
    finding: &BillFinding,
    layers: &SettingsLayers,
    clients: LeversOfClients<'_>,
) -> Result<Option<StandingSetting>> {
    let mut all: Vec<HeldLever<'_>> = Vec::new();
    for set in &finding.spared_by {
        match held(layers, clients.levers, (&set.lever, &set.value))? {
            Some(held) if held.is_same => all.push(held),
            _ => return Ok(None),
        }
    }
    let by: Vec<&Lever> = all.iter().map(|held| held.lever).collect();
    let words: Vec<String> = all.into_iter().map(|held| held.words).collect();
    Ok(Some(clients.same(words.join(" and "), &by)))
}

/// The user's file of settings as a page names it; in what is shared no place is told.
pub fn file_words(is_shared: bool, context: &Context<'_>) -> String {
    let moved = context.env.claude_config_dirs().count();
    match context.env.claude_places().file(SettingsScope::User).filter(|_| moved > 0) {
        _ if is_shared => "Claude Code's settings.json".to_owned(),
        Some(path) if moved > 1 => format!("{} (and in that of each other directory)", path.shown()),
        Some(path) => path.shown(),
        None => "~/.claude/settings.json".to_owned(),
    }
}
