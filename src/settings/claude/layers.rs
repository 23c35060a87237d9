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
use crate::settings::claude::levers::{Lever, LeverPlace, Levers, SettingsScope};

/// Where the files are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaudePlaces {
    /// The user's directory of Claude Code: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub home: Option<PathBuf>,
    /// The project: the current directory.
    pub project: Option<PathBuf>,
    /// What the organisation sets.
    pub managed: Option<PathBuf>,
    /// Names of the variables that are set and not empty.
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

/// The file that is changed, and those above it.
#[derive(Debug)]
pub struct SettingsLayers {
    /// The file that is changed.
    pub file: ClaudeFile,
    above: Vec<ClaudeFile>,
    variables: BTreeSet<String>,
}

impl SettingsLayers {
    /// Reads the file of a scope (`path`, if it lies elsewhere) and those that win over it for everybody whom it concerns.
    ///
    /// # Errors
    /// If one of them is there and cannot be read.
    pub fn load(places: &ClaudePlaces, scope: SettingsScope, path: &Path) -> Result<Self> {
        // What one project sets says nothing about a file for all projects.
        let above: &[SettingsScope] = match scope {
            SettingsScope::User | SettingsScope::Local | SettingsScope::Managed => &[SettingsScope::Managed],
            SettingsScope::Project => &[SettingsScope::Managed, SettingsScope::Local],
        };
        let above = above.iter().filter_map(|scope| places.file(*scope).filter(|place| place != path));
        let above = above.map(|path| ClaudeFile::load(&path)).collect::<Result<Vec<_>>>()?;
        Ok(Self { file: ClaudeFile::load(path)?, above, variables: places.variables.clone() })
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
        let own = (lever.place == LeverPlace::Variable).then_some(lever);
        let stronger = lever.gives_way_to.iter().filter_map(|name| levers.named(name));
        for other in own.into_iter().chain(stronger) {
            // A variable of the shell is overwritten by the same one in a file of settings.
            if other.name != lever.name && other.place == LeverPlace::Variable && self.variables.contains(&other.name) {
                let why = format!("set by the variable {} and cannot be overridden here", other.name);
                return Ok(Some(Obstacle { why, is_own: true }));
            }
            let Some(other_key) = other.key(None).filter(|_| other.name != lever.name) else { continue };
            for (file, is_own) in self.all() {
                if file.get(&other_key)?.is_some() {
                    let why = format!("set by {} of {}, which wins over it", other.name, file.path.shown());
                    return Ok(Some(Obstacle { why, is_own }));
                }
            }
        }
        self.switched_off(lever, levers)
    }

    /// All files, and whether each is the one that is written.
    fn all(&self) -> impl Iterator<Item = (&ClaudeFile, bool)> {
        self.above.iter().map(|file| (file, false)).chain([(&self.file, true)])
    }

    /// What switches off all that a lever sets; none if nothing does.
    fn switched_off(&self, lever: &Lever, levers: &Levers) -> Result<Option<Obstacle>> {
        for switch in lever.off_by.iter().filter_map(|name| levers.named(name)) {
            if switch.place == LeverPlace::Variable && self.variables.contains(&switch.name) {
                let why = format!("without effect: the variable {} is set", switch.name);
                return Ok(Some(Obstacle { why, is_own: true }));
            }
            let Some(key) = switch.key(None) else { continue };
            for (file, is_own) in self.all() {
                // A variable switches off unless its text says no; a setting has to be false.
                let is_off = match file.get(&key)? {
                    None => false,
                    Some(Value::Bool(value)) => value == (switch.place == LeverPlace::Variable),
                    Some(Value::String(text)) => !["", "0", "false"].contains(&text.as_str()),
                    Some(_) => switch.place == LeverPlace::Variable,
                };
                if is_off {
                    let why = format!("without effect: see {} in {}", switch.name, file.path.shown());
                    return Ok(Some(Obstacle { why, is_own }));
                }
            }
        }
        Ok(None)
    }
}
