//! The configuration file as text, together with where each of its keys stands.

use std::path::{Path, PathBuf};

use toml_edit::{Document, Value};

use super::check::{Warning, check};
use super::outline::DocumentOutline;
use super::resolve::UnknownVariant;
use super::{CURRENT_VERSION, Effective, effective};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::settings::formats::of_no_effect;
use crate::settings::write::read_if_present;
use crate::settings::{lines, outline, schema, values};

/// A read and checked `pipeline_config.toml`. Nothing in it is ever replaced by defaults: a file that cannot be
/// understood is an error.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Where the file is, or would be.
    pub path: PathBuf,
    /// Its bytes; empty when there is no file.
    pub text: String,
    /// Whether there is a file.
    pub existed: bool,
    /// The version that the file states; 4 when it states none.
    pub schema_version: u32,
    /// Keys without effect, or with another one than their author expects, by line.
    pub warnings: Vec<Warning>,
    pub(super) outline: DocumentOutline,
    pub(super) tree: Value,
}

impl SettingsFile {
    /// Reads the file. A missing file is an empty one; an unreadable one is an error.
    pub fn load(path: &Path) -> Result<Self> {
        let Some(bytes) = read_if_present(path)? else { return Ok(Self::missing(path)) };
        let text = String::from_utf8(bytes).map_err(|cause| not_utf8(path, &cause))?;
        let mut file = Self::parse(path, &text)?;
        file.warn_of_names();
        Ok(file)
    }

    /// Names of variants and formats that are not there are no error, since something else holds then; it is told what.
    fn warn_of_names(&mut self) {
        let Ok(effective) = Effective::resolve(self) else { return };
        let told = |UnknownVariant { key, message, instead }| (key, format!("{message}: {instead}"));
        let unresolved = effective.settings.unresolved().into_iter().map(told);
        for (key, message) in unresolved.chain(of_no_effect(&effective)) {
            let line = self.line_of(&key).unwrap_or(1);
            self.warnings.push(Warning { line, key: key.to_string(), message, suggestion: None });
        }
        self.warnings.sort_by_key(|warning| warning.line);
    }

    /// The file that is not there yet.
    pub fn missing(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            text: String::new(),
            existed: false,
            schema_version: CURRENT_VERSION,
            warnings: Vec::new(),
            outline: DocumentOutline::default(),
            tree: Value::InlineTable(toml_edit::InlineTable::new()),
        }
    }

    /// Checks `text` as the content of an existing file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let (outline, tree) = read(path, text)?;
        let schema_version = match values::find(&tree, &schema::key()) {
            Some(found) => schema::accept(found, path, outline.line_of(&schema::key()).unwrap_or(1))?,
            None => CURRENT_VERSION,
        };
        let warnings = check(path, &outline, &tree, effective::built_in_tree())?;
        let (path, text) = (path.to_owned(), text.to_owned());
        Ok(Self { path, text, existed: true, schema_version, warnings, outline, tree })
    }

    /// The value that the file gives to the key: a leaf, or a whole table or list as one value.
    pub fn get(&self, key: &KeyPath) -> Option<Value> {
        values::find(&self.tree, key).cloned()
    }

    /// Whether no key stands in it: there is no file, or one that is empty or holds comments alone.
    pub fn is_bare(&self) -> bool {
        self.outline.sites().is_empty()
    }

    /// The 1-based line where the key, or the first thing below it, is written.
    pub fn line_of(&self, key: &KeyPath) -> Option<usize> {
        self.outline.line_of(key)
    }

    /// Whether replacing the key as a whole would meet a pin: its own, one above it, or one below it.
    pub fn touches_pin(&self, key: &KeyPath) -> bool {
        outline::touches_pin(&self.text, &self.outline, key)
    }
}

/// Parses TOML into the places of its keys and their values, without asking what they mean.
pub(super) fn read(path: &Path, text: &str) -> Result<(DocumentOutline, Value)> {
    let document = Document::parse(text.to_owned()).map_err(|cause| syntax_error(path, text, &cause))?;
    let outline = DocumentOutline::of(&document);
    let tree = values::plain(&Value::InlineTable(document.into_mut().into_table().into_inline_table()));
    Ok((outline, tree))
}

/// `path:line: message`.
pub(super) fn at_line(path: &Path, line: usize, message: &str) -> String {
    format!("{}:{line}: {message}", path.shown())
}

/// The error of a file that is no TOML.
pub fn syntax_error(path: &Path, text: &str, cause: &toml_edit::TomlError) -> Error {
    let line = cause.span().map_or(1, |span| lines::number(text, span.start));
    let what = cause.message().lines().collect::<Vec<_>>().join(", ");
    Error::failed(at_line(path, line, &format!("not valid TOML: {what}")))
        .hint("correct the line and run again; devboy never replaces a file that it cannot read")
}

fn not_utf8(path: &Path, cause: &std::string::FromUtf8Error) -> Error {
    let good = cause.utf8_error().valid_up_to();
    let line = 1 + cause.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count();
    Error::failed(at_line(path, line, "not valid UTF-8")).hint("save the file as UTF-8")
}
