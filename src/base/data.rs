//! The data files of `rules/`: compiled in, or read from `--rules-dir`. Whoever needs one reads it through [`Data`], and
//! cites it by the path that it was read from.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use include_dir::{Dir, File, include_dir};
use serde::de::DeserializeOwned;

use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::visible::Shown as _;
use crate::base::{files, toml};

/// The annotations that the published planner came with.
pub const PUBLISHED_ANNOTATIONS: &str = "annotations/claude_code_published.toml";

/// Everything in `rules/`; the build script has it compiled anew when a file comes or goes.
static RULES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/rules");

/// The text of every data file by its name.
static SHIPPED: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let files = std::iter::once(&RULES).chain(RULES.dirs()).flat_map(Dir::files);
    let texts = files.filter_map(|file| Some((file.path().to_str()?, file.contents_utf8()?)));
    texts.filter(|(name, _)| name.ends_with(".toml")).collect()
});

/// Whether a directory cannot override a file: what a configuration means is the same for everybody, and what was
/// published stays as it was.
fn is_fixed(name: &str) -> bool {
    name.starts_with("settings/") || name == PUBLISHED_ANNOTATIONS
}

/// Where data files are taken from.
#[derive(Debug, Clone, Default)]
pub struct Data {
    dir: Option<PathBuf>,
}

/// A data file as it was read.
pub struct DataFile {
    /// Where it was read from, as it is cited: the path, or "rules/p1_model.toml" for a shipped one.
    pub place: String,
    pub text: Cow<'static, str>,
}

impl Data {
    /// The shipped files, overridden one by one by those in `dir`. An error if `dir` is given and is no directory,
    /// holds no data file, or another version of one that cannot be overridden.
    pub fn new(dir: Option<&Path>) -> Result<Self> {
        let Some(dir) = dir else { return Ok(Self::default()) };
        let place = dir.shown();
        if !dir.is_dir() {
            let what = if dir.exists() { "is a file, not a directory" } else { "does not exist" };
            return Err(Error::failed(format!("--rules-dir {place} {what}"))
                .hint("name a directory with data files, or leave the option out: then the built-in ones hold"));
        }
        let differs = |name: &str, text: &str| std::fs::read_to_string(dir.join(name)).is_ok_and(|own| own != text);
        if let Some((name, _)) = SHIPPED.iter().find(|(name, text)| is_fixed(name) && differs(name, text)) {
            return Err(Error::failed(format!("--rules-dir {place}: {name} cannot be overridden"))
                .hint("take it out of the directory; a configuration changes what it sets"));
        }
        if !Self::names().any(|name| dir.join(name).exists()) {
            let names = Self::names().collect::<Vec<_>>().join(", ");
            return Err(Error::failed(format!("--rules-dir {place} holds no data file"))
                .hint(format!("files that are read: {names}")));
        }
        Ok(Self { dir: Some(dir.to_owned()) })
    }

    /// The data files of the directory that nobody reads, in order: no shipped one is called so.
    pub fn unread(&self) -> Vec<String> {
        let Some(dir) = &self.dir else { return Vec::new() };
        let folders: BTreeSet<PathBuf> =
            Self::names().filter_map(|name| Some(dir.join(name).parent()?.into())).collect();
        let found = folders.iter().flat_map(|folder| files::list(folder).unwrap_or_default());
        let names = found.filter_map(|path| Some(path.strip_prefix(dir).ok()?.to_str()?.replace('\\', "/")));
        names.filter(|name| name.ends_with(".toml") && !SHIPPED.contains_key(name.as_str())).collect()
    }

    /// Names the files that override shipped ones; [`Id::NONE`] if there is no directory of them.
    pub fn overrides(&self) -> Result<Id> {
        let Some(dir) = &self.dir else { return Ok(Id::NONE) };
        let names = Self::names().filter(|name| dir.join(name).exists());
        let texts = names.map(|name| {
            let text = self.file(name)?.text;
            Ok(format!("{name} {} {text}", text.len()))
        });
        Ok(Id::pseudonym(texts.collect::<Result<String>>()?.as_bytes()))
    }

    /// The names of all files that a directory can override, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.keys().copied().filter(|name| !is_fixed(name))
    }

    /// A data file with the place that it was read from.
    pub fn file(&self, name: &str) -> Result<DataFile> {
        if let Some(path) = self.dir.as_ref().map(|dir| dir.join(name)).filter(|path| path.exists()) {
            let text = files::read_to_string(&path).map_err(|cause| Error::io("reading", &path, &cause))?;
            return Ok(DataFile { place: path.shown(), text: Cow::Owned(text) });
        }
        SHIPPED
            .get(name)
            .map(|text| DataFile { place: format!("rules/{name}"), text: Cow::Borrowed(*text) })
            .ok_or_else(|| Error::failed(format!("there is no data file {name}")))
    }

    /// What `parse` makes of the text of a data file and of its place.
    pub fn read<T>(&self, name: &str, parse: impl FnOnce(&str, &str) -> Result<T>) -> Result<T> {
        let file = self.file(name)?;
        parse(&file.text, &file.place)
    }

    /// A data file as a type.
    pub fn parsed<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.file(name)?.parsed()
    }

    /// The text of a data file, for who asks whether it changed.
    pub fn text(&self, name: &str) -> Result<Cow<'static, str>> {
        self.file(name).map(|file| file.text)
    }

    /// What a rule says of itself, by the name of its files: Markdown. An error if it says nothing.
    pub fn rule_page(rule: &str) -> Result<&'static str> {
        let page = RULES.get_file(format!("docs/{rule}.md")).and_then(File::contents_utf8);
        page.ok_or_else(|| Error::failed(format!("there is no page rules/docs/{rule}.md")))
    }

    /// The names of all files in a directory of `rules/` that a directory can override, in order.
    pub fn names_in(dir: &str) -> impl Iterator<Item = &'static str> {
        Self::names().filter(move |name| name.split_once('/').is_some_and(|(parent, _)| parent == dir))
    }
}

impl DataFile {
    /// The file as a type.
    pub fn parsed<T: DeserializeOwned>(&self) -> Result<T> {
        fitting(&self.text, &self.place)
    }
}

/// TOML as a type; `place` is where it stands.
pub fn typed<T: DeserializeOwned>(text: &str, place: &str) -> Result<T> {
    toml::parsed(text).map_err(|fault| Error::failed(fault.at(place)))
}

/// The same, with advice for a data file.
pub fn fitting<T: DeserializeOwned>(text: &str, place: &str) -> Result<T> {
    typed(text, place).map_err(|fault| fault.hint("compare it with the file that devboy ships"))
}
