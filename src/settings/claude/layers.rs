//! Which file of settings wins: what an organisation sets over what one person sets for a project, that over what a
//! project sets for all, and that over what a person sets for all projects. Shell variables are no layer; each wins
//! over the keys that give way to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::settings::claude::file::ClaudeFile;
use crate::settings::claude::levers::{Lever, LeverKind, LeverPlace, Levers, SettingsScope};

/// Where the files are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaudePlaces {
    /// The user's directory of Claude Code: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub home: Option<PathBuf>,
    /// The project: the current directory.
    pub project: Option<PathBuf>,
    /// What the organisation sets.
    pub managed: Option<PathBuf>,
    /// Names of the variables that are set, and not to nothing, `0` or `false`.
    pub variables: BTreeSet<String>,
}

impl ClaudePlaces {
    /// The file of a scope; none without a home, or outside of any directory.
    pub fn file(&self, scope: SettingsScope) -> Option<PathBuf> {
        match scope {
            SettingsScope::User => self.home.as_ref().map(|home| home.join("settings.json")),
            SettingsScope::Project => {
                self.project.as_ref().map(|project| project.join(".claude").join("settings.json"))
            }
            SettingsScope::Local => self.root().map(|root| root.join(".claude").join("settings.local.json")),
            SettingsScope::Managed => self.managed.clone(),
        }
    }

    /// The root of the git repository around the project, where Claude Code looks for what one person sets; else the
    /// project itself.
    fn root(&self) -> Option<PathBuf> {
        let project = self.project.as_ref()?;
        Some(project.ancestors().find(|place| place.join(".git").exists()).unwrap_or(project).to_owned())
    }
}

/// What keeps a lever from having any effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Behind the name of the lever: "set by …", "without effect: …".
    pub why: String,
    /// Whether whoever owns the file that is changed can take it away.
    pub is_own: bool,
}

/// The file that is changed, with those that win over it and those that it wins over.
#[derive(Debug)]
pub struct SettingsLayers {
    /// The file that is changed.
    pub file: ClaudeFile,
    above: Vec<ClaudeFile>,
    below: Vec<ClaudeFile>,
    variables: BTreeSet<String>,
}

/// A value, and the file that sets it.
type Set<'l> = (&'l ClaudeFile, Value);

impl SettingsLayers {
    /// Reads the file of a scope (`path`, if it lies elsewhere), those that win over it for everybody whom it concerns, and
    /// those whose settings hold where it says nothing.
    ///
    /// # Errors
    /// If one of them is there and cannot be read.
    pub fn load(places: &ClaudePlaces, scope: SettingsScope, path: &Path) -> Result<Self> {
        use SettingsScope::{Local, Managed, Project, User};
        // What one project sets says nothing about a file for all projects.
        let (above, below): (&[SettingsScope], &[SettingsScope]) = match scope {
            User | Managed => (&[Managed], &[]),
            Local => (&[Managed], &[Project, User]),
            Project => (&[Managed, Local], &[User]),
        };
        let load = |scopes: &[SettingsScope]| {
            let paths = scopes.iter().filter_map(|scope| places.file(*scope).filter(|place| place != path));
            paths.map(|path| ClaudeFile::load(&path)).collect::<Result<Vec<_>>>()
        };
        let (above, below) = (load(above)?, load(below)?);
        Ok(Self { file: ClaudeFile::load(path)?, above, below, variables: places.variables.clone() })
    }

    /// What stands in the file for a key.
    ///
    /// # Errors
    /// As [`ClaudeFile::get`].
    pub fn value(&self, key: &KeyPath) -> Result<Option<Value>> {
        self.file.get(key)
    }

    /// What keeps a lever from having any effect here; none if nothing does.
    ///
    /// # Errors
    /// As [`ClaudeFile::get`].
    pub fn overridden(&self, lever: &Lever, key: &KeyPath, levers: &Levers) -> Result<Option<Obstacle>> {
        for file in &self.above {
            if file.get(key)?.is_some() {
                let why = format!("set by {} and cannot be overridden here", file.path.shown());
                return Ok(Some(Obstacle { why, is_own: false }));
            }
        }
        for other in lever.gives_way_to.iter().filter_map(|name| levers.named(name)) {
            if let Some(obstacle) = self.wins(other)? {
                return Ok(Some(obstacle));
            }
        }
        self.switched_off(lever, levers)
    }

    /// That a stronger lever is set; none if it is not.
    fn wins(&self, other: &Lever) -> Result<Option<Obstacle>> {
        Ok(match self.set(other)? {
            // An empty variable in a file takes that of the shell away.
            Some((_, value)) if is_unset(other, &value) => None,
            Some((file, _)) => {
                let why = format!("set by {} of {}, which wins over it", other.name, file.path.shown());
                Some(Obstacle { why, is_own: self.is_own(file) })
            }
            None if other.place == LeverPlace::Variable && self.variables.contains(&other.name) => {
                let why = format!("set by the variable {} and cannot be overridden here", other.name);
                Some(Obstacle { why, is_own: true })
            }
            None => None,
        })
    }

    /// What the strongest file that says anything about a lever sets it to.
    fn set(&self, lever: &Lever) -> Result<Option<Set<'_>>> {
        let Some(key) = lever.key(None) else { return Ok(None) };
        for file in self.above.iter().chain([&self.file]).chain(&self.below) {
            if let Some(value) = file.get(&key)? {
                return Ok(Some((file, value)));
            }
        }
        Ok(None)
    }

    /// Whether whoever changes the file may change this one, too.
    fn is_own(&self, file: &ClaudeFile) -> bool {
        !self.above.iter().any(|above| above.path == file.path)
    }

    /// Of levers that do the same, the one that holds here, with its value: the strongest that is set, if the client takes
    /// the value, no other lever wins over it, and nothing switches it off. None where only a variable of the shell is set,
    /// whose value nobody knows here.
    ///
    /// # Errors
    /// As [`ClaudeFile::get`].
    pub fn in_force<'v>(&self, alike: &[&'v Lever], levers: &Levers) -> Result<Option<(&'v Lever, Value)>> {
        let wins_over = |one: &Lever, other: &Lever| other.gives_way_to.contains(&one.name);
        let mut strongest = alike.to_vec();
        strongest.sort_by_key(|lever| alike.iter().filter(|other| wins_over(other, lever)).count());
        let is_alike = |name: &String| alike.iter().any(|lever| lever.name == *name);
        for lever in strongest {
            let others = lever.gives_way_to.iter().filter(|name| !is_alike(name));
            for other in others.filter_map(|name| levers.named(name)) {
                if self.wins(other)?.is_some() {
                    return Ok(None);
                }
            }
            match self.set(lever)? {
                Some((_, value)) if is_unset(lever, &value) => {}
                Some((_, value)) => {
                    let is_taken = lever.accepts(&value) && self.switched_off(lever, levers)?.is_none();
                    return Ok(is_taken.then_some((lever, value)));
                }
                None if lever.place == LeverPlace::Variable && self.variables.contains(&lever.name) => {
                    return Ok(None);
                }
                None => {}
            }
        }
        Ok(None)
    }

    /// What switches off all that a lever sets; none if nothing does.
    fn switched_off(&self, lever: &Lever, levers: &Levers) -> Result<Option<Obstacle>> {
        for switch in lever.off_by.iter().filter_map(|name| levers.named(name)) {
            let is_variable = switch.place == LeverPlace::Variable;
            let Some((file, value)) = self.set(switch)? else {
                if is_variable && self.variables.contains(&switch.name) {
                    let why = format!("without effect: the variable {} is set", switch.name);
                    return Ok(Some(Obstacle { why, is_own: true }));
                }
                continue;
            };
            // A variable switches off unless its text says no; a setting has to be false.
            let is_off = match value {
                Value::Bool(value) => value == is_variable,
                Value::String(text) => !["", "0", "false"].contains(&text.as_str()),
                _ => is_variable,
            };
            if is_off {
                let why = format!("without effect: see {} in {}", switch.name, file.path.shown());
                return Ok(Some(Obstacle { why, is_own: self.is_own(file) }));
            }
        }
        Ok(None)
    }
}

/// Whether a value says that a lever is not set: an empty variable, and a switch that is a variable and says no.
fn is_unset(lever: &Lever, value: &Value) -> bool {
    let is_switch = lever.kind == LeverKind::Boolean;
    lever.place == LeverPlace::Variable
        && match value {
            Value::String(text) => text.is_empty() || is_switch && ["0", "false"].contains(&text.as_str()),
            Value::Bool(value) => is_switch && !value,
            _ => false,
        }
}
