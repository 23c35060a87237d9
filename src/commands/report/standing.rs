//! What settings say already about what the page would have set: the user's own, and those of the projects that it is about.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::error::Result;
use crate::base::files;
use crate::base::id::{Id, IdSet};
use crate::base::key_path::KeyPath;
use crate::base::numbers::{counted, date, thousands};
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::cost::findings::levers::Assignment;
use crate::cost::findings::search::{BillFinding, FindingScope};
use crate::cost::page::words::StandingSetting;
use crate::cost::page::{Page, PageNames};
use crate::frames::input::Input;
use crate::logs::trace::Millis;
use crate::report::sharing::without_paths;
use crate::rules::claude::{HeldLever, held, left_out};
use crate::settings::claude::file::{ClaudeFile, name_of};
use crate::settings::claude::layers::{ClaudePlaces, SettingsLayers, place_of_project};
use crate::settings::claude::levers::{Lever, Levers, SettingsScope};
use crate::settings::claude::reversal::journal_of_all;
use crate::settings::entries::{Journal, JournalEntry};
use crate::shell::context::Context;
use crate::whatif::client::thresholds::{Versions, known};

/// By finding, of those about whose setting some file says something. In what is shared no place is named.
pub fn of(
    page: &Page,
    (names, names_max, is_shared): (&PageNames, usize, bool),
    input: &Input,
    context: &Context<'_>,
) -> Result<BTreeMap<String, StandingSetting>> {
    let levers = Levers::load(&input.data)?;
    let places = places(page, input, context);
    let journal = config_path(None, context).and_then(|config| journal_of_all(&config)).unwrap_or_default();
    let is_alone = page.spent.by_project.len() == 1;
    let mut homes = Vec::new();
    for (place, home) in context.env.all_claude_places().enumerate() {
        let user = layers(page, &home);
        // What is advised is about the first one; another one that cannot be read is left out.
        let Some(user) = (if place == 0 { user? } else { user.ok().flatten() }) else { continue };
        let within = |(project, places): (&String, &ClaudePlaces)| Some((project.clone(), user.in_project(places)?));
        let within = places.iter().filter_map(within).collect();
        homes.push(PageSettings {
            page,
            levers: &levers,
            within,
            user,
            places: &places,
            journal: &journal,
            is_alone,
            names,
            names_max,
        });
    }
    let mut standing = BTreeMap::new();
    for finding in &page.findings {
        let stands = homes.iter().map(|settings| settings.stands(finding)).collect::<Result<Vec<_>>>()?;
        // What is done in one directory is not done in another one.
        let is_open =
            |stands: &Option<StandingSetting>| !matches!(stands, Some(StandingSetting::Same { still: None, .. }));
        let place = stands.iter().position(is_open).unwrap_or_default();
        let stands = stands.into_iter().nth(place).flatten();
        // Where it is set, or something is in the way, it does not matter that it was taken back.
        let stands = match (homes.first().filter(|_| place == 0), stands) {
            (Some(settings), stands @ (None | Some(StandingSetting::Other(_)))) => {
                settings.taken_back(finding).or(stands)
            }
            (_, stands) => stands,
        };
        if let Some(mut stands) = stands {
            if let (true, StandingSetting::Off { words, .. } | StandingSetting::Other(words)) = (is_shared, &mut stands)
            {
                *words = without_paths(words).into_owned();
            }
            standing.insert(finding.id.clone(), stands);
        }
    }
    Ok(standing)
}

/// Where settings are for each project of the page that is on this disk, if a finding is about settings.
pub fn places(page: &Page, input: &Input, context: &Context<'_>) -> BTreeMap<String, ClaudePlaces> {
    let is_asked =
        |finding: &BillFinding| finding.to_set.is_some() || !finding.spared_by.is_empty() || is_of_servers(finding);
    let asked: IdSet<Id> = match page.findings.iter().any(is_asked) {
        true => page.spent.by_project.keys().filter_map(|project| Id::from_hex(project)).collect(),
        false => IdSet::default(),
    };
    let places = context.env.claude_places();
    let of = |path: &str| Some(ClaudePlaces { project: Some(place_of_project(path)?), ..places.clone() });
    let found = input.texts(asked, IdSet::default()).into_iter();
    found.filter_map(|(project, path)| Some((project.to_string(), of(&path)?))).collect()
}

/// Whether a finding is about servers, each in a project.
fn is_of_servers(finding: &BillFinding) -> bool {
    finding.made_by.first().is_some_and(|kind| kind == "server")
}

/// What can be set, the clients in use, and what was written.
#[derive(Clone, Copy)]
struct LeversOfClients<'a> {
    levers: &'a Levers,
    versions: &'a Versions,
    journal: &'a Journal,
}

impl LeversOfClients<'_> {
    /// What stands already, by these levers, which a client in use may not know.
    fn same(self, finding: &BillFinding, words: String, by: &[(&SettingsLayers, &Lever)]) -> StandingSetting {
        let update = by.iter().find_map(|(_, lever)| known(&[*lever], self.versions).err());
        StandingSetting::Same { words, update, still: self.still(finding, by) }
    }

    /// That what is set does not act: a session that began later does what it should spare. Where nothing says since when it is set,
    /// nobody knows whether the logs show it. None where it was set behind all that shows the finding.
    fn still(self, finding: &BillFinding, by: &[(&SettingsLayers, &Lever)]) -> Option<String> {
        let seen = finding.seen_last.as_ref()?;
        let began = *seen.began.values().max()?;
        let since: Option<Millis> = by
            .iter()
            .map(|(layers, lever)| self.since(layers, lever))
            .try_fold(Millis::MIN, |last, at| Some(last.max(at?)));
        let Some(since) = since else { return Some("; these logs do not show it yet".to_owned()) };
        let words = || {
            let (since, began, does) = (date(since), date(began), &seen.does);
            format!(" since {since}, but a session that began on {began} {does}: it does not act there")
        };
        (began > since).then(words)
    }

    /// Since when a lever is set at the latest: as the journal has it, else as old as its file is.
    fn since(self, layers: &SettingsLayers, lever: &Lever) -> Option<Millis> {
        let file = layers.file_of(lever).ok()??;
        let key = lever.key(None)?;
        let now = file.get(&key).ok()?.map(|value| value.to_string());
        let journal = self.journal.clone().about(&name_of(&file.path));
        let name = key.to_string();
        let wrote = |entry: &&JournalEntry| entry.change(&name).is_some_and(|change| change.new == now);
        let written = journal.holding().filter(wrote).map(|entry| entry.at_ms).max();
        written.or_else(|| files::modified_ms(&file.path))
    }
}

/// The user's settings, about the models of the page; none without a place for them.
pub fn layers(page: &Page, places: &ClaudePlaces) -> Result<Option<SettingsLayers>> {
    let Some(path) = places.file(SettingsScope::User) else { return Ok(None) };
    let layers = SettingsLayers::load(places, SettingsScope::User, &path)?;
    Ok(Some(layers.about(page.models.clone())))
}

/// Settings as they hold for what the page is about.
struct PageSettings<'a> {
    page: &'a Page,
    levers: &'a Levers,
    /// The user's alone.
    user: SettingsLayers,
    journal: &'a Journal,
    /// Where settings are for each project on this disk.
    places: &'a BTreeMap<String, ClaudePlaces>,
    /// The user's below the files of projects that have some.
    within: BTreeMap<String, SettingsLayers>,
    /// Whether it is about one project alone.
    is_alone: bool,
    names: &'a PageNames,
    /// Names in a line.
    names_max: usize,
}

impl PageSettings<'_> {
    /// What stands already of what a finding would have set.
    fn stands(&self, finding: &BillFinding) -> Result<Option<StandingSetting>> {
        if is_of_servers(finding) {
            return self.servers(finding);
        }
        let clients = self.clients(finding);
        if let Some(project) = finding.project() {
            let own = self.places.get(project).and_then(|places| self.user.below_project(places));
            let there = own.and_then(|own| one(finding, &own, clients).ok());
            return there.map_or_else(|| one(finding, &self.user, clients), Ok);
        }
        let user = one(finding, &self.user, clients)?;
        let saved = |project: &str| finding.by_project.get(project).copied().unwrap_or_default();
        // A file of a project that means nothing says nothing.
        let within = self.within.iter().filter(|(project, _)| self.is_alone || saved(project) > 0.0);
        let within =
            within.filter_map(|(project, layers)| Some((project, layers, one(finding, layers, clients).ok()?)));
        let mut apart: Vec<_> = within.filter(|(.., there)| *there != user).collect();
        // Of those that save as much the last one.
        apart.reverse();
        apart.sort_by(|(one, ..), (other, ..)| saved(other).total_cmp(&saved(one)));
        if let Some(stands) = self.decided_everywhere(finding, user.as_ref(), &apart)? {
            return Ok(Some(stands));
        }
        let apart_from: BTreeSet<&String> = apart.iter().map(|(project, ..)| *project).collect();
        match apart.into_iter().next() {
            // What the others show is no sign that the user's own value does not act.
            Some((project, layers, there)) => {
                self.beside((finding, &outside(finding, &apart_from)), user, (project, layers, there))
            }
            None => Ok(user),
        }
    }

    /// What stands where every project that saves anything goes its own way, so that the user's file does nothing about it; none
    /// where one is left over, or there is one alone.
    fn decided_everywhere(
        &self,
        finding: &BillFinding,
        user: Option<&StandingSetting>,
        apart: &[(&String, &SettingsLayers, Option<StandingSetting>)],
    ) -> Result<Option<StandingSetting>> {
        use StandingSetting::{Off, Same};
        let mut saving = finding.by_project.iter().filter(|(_, saved)| **saved > 0.0).map(|(project, _)| project);
        let is_apart = |project: &String| apart.iter().any(|(other, ..)| *other == project);
        let is_about_all = finding.spared_by.is_empty() && !self.is_alone && apart.len() > 1;
        if !is_about_all || matches!(user, Some(Same { .. } | Off { .. })) || !saving.all(is_apart) {
            return Ok(None);
        }
        let mut words = Vec::new();
        for (project, layers, there) in apart {
            // Without a word of its own the user's file holds there.
            let own = match there {
                Some(Same { words, .. } | Off { words, .. } | StandingSetting::Other(words)) => words.clone(),
                _ => return Ok(None),
            };
            let own = in_force(finding, layers, self.levers)?.unwrap_or(own);
            words.push(format!("in {} {own}", self.names.project(project)));
        }
        let rest = words.split_off(words.len().min(self.names_max)).len() as u64;
        words.extend((rest > 0).then(|| format!("and so in {}", counted(rest, "other project"))));
        let words = words.join(", ");
        let is_done = apart.iter().all(|(.., there)| matches!(there, Some(Same { .. })));
        Ok(Some(match is_done {
            true => {
                let told = apart.iter().filter_map(|(.., there)| match there {
                    Some(Same { update, still, .. }) => Some((update.clone(), still.clone())),
                    _ => None,
                });
                let (updates, still): (Vec<_>, Vec<_>) = told.unzip();
                // What was seen last may be of the project that was set last.
                let still = still.into_iter().collect::<Option<Vec<String>>>();
                Same {
                    words,
                    update: updates.into_iter().flatten().next(),
                    still: still.and_then(|still| still.into_iter().next()),
                }
            }
            false => {
                Off { words: format!("every project decides it itself, and its file wins: {words}"), is_own: true }
            }
        }))
    }

    fn clients(&self, finding: &BillFinding) -> LeversOfClients<'_> {
        LeversOfClients { levers: self.levers, versions: self.page.clients(finding), journal: self.journal }
    }

    /// What is said already of servers that nobody calls, as S5 asks of one project.
    fn servers(&self, finding: &BillFinding) -> Result<Option<StandingSetting>> {
        let mut out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let (mut by, mut is_open) = (Vec::new(), false);
        for made in &finding.made_of {
            let [server, project] = &made.names[..] else { continue };
            let layers = self.within.get(project).unwrap_or(&self.user);
            let definition = self.places.get(project).and_then(|places| definition(places, server)).unwrap_or_default();
            match left_out(layers, self.levers, (server, &definition))? {
                Some(lever) => {
                    by.extend(self.levers.named(lever).map(|lever| (layers, lever)));
                    let (server, project) = (self.names.own("server", server), self.names.project(project));
                    out.entry(lever).or_default().push(format!("{server} in {project}"));
                }
                None => is_open = true,
            }
        }
        let told = |(lever, mut servers): (&str, Vec<String>)| {
            let rest = servers.split_off(servers.len().min(self.names_max)).len() as u64;
            servers.extend((rest > 0).then(|| format!("{} more", thousands(rest))));
            format!("{lever} leaves out {}", servers.join(", "))
        };
        let words = out.into_iter().map(told).collect::<Vec<_>>().join(" and ");
        let still = || self.clients(finding).still(finding, &by);
        Ok(match (words.is_empty(), is_open) {
            (true, _) => None,
            (false, true) => Some(StandingSetting::Partly(words)),
            (false, false) => Some(StandingSetting::Same { words, update: None, still: still() }),
        })
    }

    /// That a finding would have set what was set before and taken back, in the file of its project or of all; none if it was
    /// not, or is no longer as it was before. What clients in use have to be updated for was never written.
    fn taken_back(&self, finding: &BillFinding) -> Option<StandingSetting> {
        if finding.update.is_some() {
            return None;
        }
        let own = finding.project().map(|project| self.user.below_project(self.places.get(project)?));
        let layers = own.as_ref().map_or(Some(&self.user), Option::as_ref)?;
        let asked = sets(finding).iter().filter(|_| finding.spared_by.is_empty());
        let levers = asked.filter_map(|set| self.levers.named(&set.lever));
        // Also by the name that the lever has for other clients.
        let mut keys = levers.flat_map(|lever| {
            keys(finding, lever).into_iter().chain(self.levers.deciding(lever).filter_map(|one| one.key(None)))
        });
        let journal = self.journal.clone().about(&name_of(&layers.file.path));
        keys.find_map(|key| {
            let now = layers.value(&key).ok()?.as_ref().map(Value::to_string);
            let undo = journal.taken_back(&key.to_string(), now.as_deref())?;
            let value = undo.taken_back_value(&key.to_string());
            Some(StandingSetting::TakenBack(format!("{value} {}", undo.taken_back_words())))
        })
    }

    /// What is told of the user's settings where something else holds in a project; `elsewhere` is the finding as the projects show it
    /// in which nothing else holds.
    fn beside(
        &self,
        (finding, elsewhere): (&BillFinding, &BillFinding),
        user: Option<StandingSetting>,
        (project, layers, there): (&str, &SettingsLayers, Option<StandingSetting>),
    ) -> Result<Option<StandingSetting>> {
        use StandingSetting::{Off, Other, Same};
        let name = self.names.project(project);
        Ok(match (user, there) {
            // What is told of goes on there.
            (Some(Same { .. }), None) if !finding.spared_by.is_empty() => None,
            (Some(Same { words: set, .. }), Some(Off { words, .. } | Other(words))) => {
                let words = in_force(finding, layers, self.levers)?.unwrap_or(words);
                let state = match one(elsewhere, &self.user, self.clients(finding))? {
                    Some(Same { update: Some(update), .. }) => format!(", but {update}"),
                    Some(Same { still: Some(still), .. }) => still,
                    _ => String::new(),
                };
                Some(Off { words: format!("{set} already{state}; in {name} {words}, which wins there"), is_own: false })
            }
            // What stands in the way everywhere does so there.
            (user @ Some(Off { .. }), Some(Off { .. })) => user,
            (_, there) if self.is_alone => there,
            (None, Some(Off { words, .. })) if in_force(finding, layers, self.levers)?.is_none() => {
                Some(Off { words: format!("in {name} {words}"), is_own: true })
            }
            (None, Some(Same { words, .. } | Off { words, .. } | Other(words))) if finding.spared_by.is_empty() => {
                let words = in_force(finding, layers, self.levers)?.unwrap_or(words);
                Some(Other(format!("in {name}, where it wins, {words}")))
            }
            (user, _) => user,
        })
    }
}

/// A finding as the sessions of other projects than these show it.
fn outside(finding: &BillFinding, projects: &BTreeSet<&String>) -> BillFinding {
    let mut finding = finding.clone();
    finding.seen_last.iter_mut().for_each(|seen| seen.began.retain(|project, _| !projects.contains(project)));
    finding
}

/// How a project starts or reaches a server, as far as its `.mcp.json` says so.
fn definition(places: &ClaudePlaces, server: &str) -> Option<Value> {
    let file = ClaudeFile::load(&places.project.as_ref()?.join(".mcp.json")).ok()?;
    file.get(&KeyPath::from(["mcpServers", server])).ok()?
}

/// What is to be set.
fn sets(finding: &BillFinding) -> &[Assignment] {
    if finding.sets.is_empty() { &finding.part_sets } else { &finding.sets }
}

/// What is in force of what a finding would have set, in words; none where that is nothing.
fn in_force(finding: &BillFinding, layers: &SettingsLayers, levers: &Levers) -> Result<Option<String>> {
    let held = sets(finding).iter().map(|set| held(layers, levers, (&set.lever, &set.value)));
    let words: Vec<String> =
        held.filter_map(|held| held.transpose()).map(|held| Ok(held?.words)).collect::<Result<_>>()?;
    Ok((!words.is_empty()).then(|| words.join(" and ")))
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
    let sets = sets(finding);
    let mut same = !sets.is_empty();
    let (mut words, mut by): (Vec<String>, Vec<(&SettingsLayers, &Lever)>) = (Vec::new(), Vec::new());
    for set in sets {
        let Some(lever) = levers.named(&set.lever) else { return Ok(None) };
        if let Some(obstacle) = layers.left_out(lever, &set.value, levers)? {
            let words = format!("{} of {} is {}", set.value, set.lever, obstacle.why);
            return Ok(Some(StandingSetting::Off { words, is_own: obstacle.is_own }));
        }
        let held = held(layers, levers, (&set.lever, &set.value))?;
        by.push((layers, held.as_ref().map_or(lever, |held| held.lever)));
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
        let values = keys.iter().map(|key| layers.value(key)).collect::<Result<Vec<_>>>()?;
        // The client ignores what it does not take.
        let taken: Vec<Value> = values.iter().flatten().filter(|value| lever.taken(value).is_some()).cloned().collect();
        same &= held.is_none() && taken.len() == values.len() && taken.iter().all(|value| *value == set.value);
        let value = taken.first().map(|value| format!("{} is {value}", set.lever));
        words.extend(held.map(|held| held.words).or(value));
    }
    words.dedup();
    let told = words.join(" and ");
    Ok(match same {
        _ if words.is_empty() => None,
        true => Some(clients.same(finding, told, &by)),
        false => Some(StandingSetting::Other(told)),
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
    let by: Vec<(&SettingsLayers, &Lever)> = all.iter().map(|held| (layers, held.lever)).collect();
    let words: Vec<String> = all.into_iter().map(|held| held.words).collect();
    Ok(Some(clients.same(finding, words.join(" and "), &by)))
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
