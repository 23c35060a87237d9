//! One file of settings as text: read, checked, asked for values.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::key_path::KeyPath;
use crate::settings::claude::edit;
use crate::settings::claude::strict::{KeySearch, at, check, find};
use crate::settings::journal;
use crate::settings::write::read_if_present;

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
    ///
    /// # Errors
    /// With line and column, if it is no strict JSON; or whatever the disk says.
    pub fn load(path: &Path) -> Result<Self> {
        let Some(bytes) = read_if_present(path)? else {
            return Ok(Self { path: path.to_owned(), text: String::new(), existed: false });
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
    ///
    /// # Errors
    /// If the key stands twice, or under something that is no object.
    pub fn get(&self, key: &KeyPath) -> Result<Option<Value>> {
        if !self.existed {
            return Ok(None);
        }
        let root = check(&self.path, &self.text)?;
        let KeySearch { members, found, .. } = find(&self.path, &self.text, root, key)?;
        let Some(value) = found.map(|position| members[position].value.clone()) else { return Ok(None) };
        serde_json::from_str(&self.text[value.clone()]).map(Some).map_err(|cause| {
            let place = at(&self.path, &self.text, value.start);
            Error::failed(format!("{place}: `{key}` cannot be read: {cause}"))
        })
    }

    /// The text with these values set.
    ///
    /// # Errors
    /// As [`edit::set`].
    pub fn with<'c>(&self, changes: impl IntoIterator<Item = (&'c KeyPath, &'c Value)>) -> Result<String> {
        changes.into_iter().try_fold(self.text.clone(), |text, (key, value)| edit::set(&self.path, &text, key, value))
    }

    /// The same file with another text.
    #[must_use]
    pub fn holding(&self, text: String) -> Self {
        Self { text, existed: true, ..self.clone() }
    }

    /// Where it is written, and where that is noted: beside devboy's own configuration, since the directory of the settings
    /// may be a repository.
    pub fn place(&self, journal: &Path) -> journal::WrittenFile<'_> {
        journal::WrittenFile {
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
    files::one_name(path).to_string_lossy().into_owned()
}
