//! Which file of settings wins: what an organisation sets over what one person sets for a project, that over what a
//! project sets for all, and that over what a person sets for all projects. Shell variables are no layer; each wins over the
//! keys that give way to it.
//!
//! One file of settings as text: read, checked, asked for values.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::settings::claude::levers::{Lever, Levers, Place, Scope};
use crate::settings::claude::reversal;
use crate::settings::claude::strict::{Site, at, check, find};
use crate::settings::journal;

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
    pub fn file(&self, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::User => self.home.as_ref().map(|home| home.join("settings.json")),
            Scope::Project => self.project.as_ref().map(|project| project.join(".claude").join("settings.json")),
            Scope::Local => self.root().map(|root| root.join(".claude").join("settings.local.json")),
            Scope::Managed => self.managed.clone(),
        }
    }

    /// The root of the git repository around the project, where Claude Code looks for what one person sets; else the
    /// project itself.
    fn root(&self) -> Option<PathBuf> {
        let project = self.project.as_ref()?;
        Some(project.ancestors().find(|place| place.join(".git").exists()).unwrap_or(project).to_owned())
    }
}

/// The file that is changed, and those above it.
#[derive(Debug)]
pub struct Layers {
    /// The file that is changed.
    pub file: ClaudeFile,
    above: Vec<(Scope, ClaudeFile)>,
    variables: BTreeSet<String>,
}

impl Layers {
    /// Reads the file of a scope (`path`, if it lies elsewhere) and those that win over it for everybody whom it concerns.
    /// Errors: if one of them is there and cannot be read.
    pub fn load(places: &ClaudePlaces, scope: Scope, path: &Path) -> Result<Self> {
        // What one project sets says nothing about a file for all projects.
        let above: &[Scope] = match scope {
            Scope::User | Scope::Local | Scope::Managed => &[Scope::Managed],
            Scope::Project => &[Scope::Managed, Scope::Local],
        };
        let file = |scope: &Scope| Some((*scope, places.file(*scope).filter(|place| place != path)?));
        let read = |(scope, path): (Scope, PathBuf)| Ok((scope, ClaudeFile::load(&path)?));
        let above = above.iter().filter_map(file).map(read).collect::<Result<Vec<_>>>()?;
        Ok(Self { file: ClaudeFile::load(path)?, above, variables: places.variables.clone() })
    }

    /// What stands in the file for a key.
    /// Errors: as [`ClaudeFile::get`].
    pub fn value(&self, key: &KeyPath) -> Result<Option<Value>> {
        self.file.get(key)
    }

    /// What keeps a lever from having any effect here: "set by …"; none if nothing does.
    /// Errors: as [`ClaudeFile::get`].
    pub fn overridden(&self, lever: &Lever, key: &KeyPath, levers: &Levers) -> Result<Option<String>> {
        for (_, file) in &self.above {
            if file.get(key)?.is_some() {
                return Ok(Some(format!("set by {} and cannot be overridden here", file.path.shown())));
            }
        }
        let own = (lever.place == Place::Variable).then_some(lever);
        let stronger = lever.gives_way_to.iter().filter_map(|name| levers.named(name));
        for other in own.into_iter().chain(stronger) {
            // A variable of the shell is overwritten by the same one in a file of settings.
            if other.name != lever.name && other.place == Place::Variable && self.variables.contains(&other.name) {
                return Ok(Some(format!("set by the variable {} and cannot be overridden here", other.name)));
            }
            let Some(other_key) = other.key(None).filter(|_| other.name != lever.name) else { continue };
            let files = self.above.iter().map(|(_, file)| file).chain([&self.file]);
            for file in files {
                if file.get(&other_key)?.is_some() {
                    return Ok(Some(format!("set by {} of {}, which wins over it", other.name, file.path.shown())));
                }
            }
        }
        Ok(None)
    }
}

/// A file of settings. Nothing in it is ever replaced by defaults: one that cannot be understood is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaudeFile {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What stands in it; empty when there is no file.
    pub text: String,
    /// Whether there is a file.
    pub existed: bool,
}

impl ClaudeFile {
    /// Reads a file; one that is missing is empty.
    /// Errors: with line and column, if it is no strict JSON; or whatever the disk says.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = match files::read(path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), text: String::new(), existed: false });
            }
            Err(cause) => return Err(Error::io("reading", path, &cause)),
        };
        let text = String::from_utf8(bytes).map_err(|cause| {
            let good = cause.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&cause.as_bytes()[..good]).into_owned();
            Error::failed(format!("{}: not valid UTF-8", at(path, &before, good))).hint("save the file as UTF-8")
        })?;
        check(path, &text)?;
        Ok(Self { path: path.to_owned(), text, existed: true })
    }

    /// The value of a key; none where there is none.
    /// Errors: if the key stands twice, or under something that is no object.
    pub fn get(&self, key: &KeyPath) -> Result<Option<Value>> {
        if !self.existed {
            return Ok(None);
        }
        let root = check(&self.path, &self.text)?;
        let Site::Found { members, position, .. } = find(&self.path, &self.text, root, key)? else { return Ok(None) };
        let text = &self.text[members[position].value.clone()];
        serde_json::from_str(text).map(Some).map_err(|cause| {
            let place = at(&self.path, &self.text, members[position].value.start);
            Error::failed(format!("{place}: `{key}` cannot be read: {cause}"))
        })
    }

    /// The text with these values set.
    /// Errors: as [`reversal::set`].
    pub fn with<'c>(&self, changes: impl IntoIterator<Item = (&'c KeyPath, &'c Value)>) -> Result<String> {
        changes
            .into_iter()
            .try_fold(self.text.clone(), |text, (key, value)| reversal::set(&self.path, &text, key, value))
    }

    /// The same file with another text.
    #[must_use]
    pub fn holding(&self, text: String) -> Self {
        Self { text, existed: true, ..self.clone() }
    }

    /// Where it is written, and where that is noted: beside devboy's own configuration, since the directory of the settings
    /// may be a repository.
    pub fn place(&self, journal: &Path) -> journal::Place<'_> {
        journal::Place {
            path: &self.path,
            text: &self.text,
            existed: self.existed,
            journal: journal.to_owned(),
            name: name_of(&self.path),
            lock: Some(journal.with_file_name("claude-settings.lock")),
        }
    }
}

/// The name under which a file of settings stands in the journal.
pub fn name_of(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}
