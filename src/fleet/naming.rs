//! The names under which tools and endpoints leave: those that say nothing of a user as they are, all others keyed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::pseudonyms::Pseudonyms;
use crate::frames::contribution::TEXT_BYTES_MAX;
use crate::logs::endpoint::Endpoints;

/// Hex digits of a keyed name.
const DIGITS: usize = 16;
/// What stands for the secret where names are as they are: what a provider publishes of its own server.
pub const PLAIN: &str = "plain";

/// The names in a file of annotations.
#[derive(Deserialize)]
#[serde(rename = "part")]
struct AnnotatedTools {
    tools: BTreeMap<String, IgnoredAny>,
}

/// How names leave.
pub struct FleetNaming {
    public: BTreeSet<String>,
    /// None where names stay as they are.
    names: Option<Pseudonyms>,
}

impl FleetNaming {
    /// Names keyed by the secret of a team, or with `None` names as they are. Public are the tools of Claude Code that
    /// devboy ships an annotation of, and the endpoint classes of the shipped lists.
    pub fn new(names: Option<Pseudonyms>) -> Result<Self> {
        let data = Data::default();
        let AnnotatedTools { tools } = data.parsed("annotations/claude_code.toml")?;
        let endpoints = data.read("endpoints.toml", Endpoints::parse)?;
        Ok(Self { public: tools.into_keys().chain(endpoints.classes().map(str::to_owned)).collect(), names })
    }

    /// Tells the secret from others.
    pub fn secret(&self) -> String {
        self.names.as_ref().map_or_else(|| PLAIN.to_owned(), Pseudonyms::check)
    }

    /// The name that leaves. Where names are as they are, one that no tool can have in a file is a digest.
    pub fn of(&self, name: &str) -> String {
        let stays = self.is_public(name) || self.names.is_none() && is_plain(name);
        if stays { name.to_owned() } else { format!("k{}", self.mark(name)) }
    }

    /// Whether a name says nothing of a user.
    pub fn is_public(&self, name: &str) -> bool {
        self.public.contains(name)
    }

    /// Whether a name can have come from [`FleetNaming::of`].
    pub fn is_possible(&self, name: &str) -> bool {
        self.is_public(name) || name.strip_prefix('k').is_some_and(is_mark) || self.names.is_none() && is_plain(name)
    }

    /// The mark of something with an id of its own, such as a session.
    pub fn mark(&self, text: &str) -> String {
        let plain = Id::pseudonym(text.as_bytes());
        let id = self.names.as_ref().map_or(plain, |names| names.id(plain));
        id.to_string()[..DIGITS].to_owned()
    }
}

/// Whether a name can stand in a file as it is.
fn is_plain(name: &str) -> bool {
    (1..=TEXT_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'))
}

/// Whether a text can have come from [`FleetNaming::mark`].
pub fn is_mark(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether somebody may be called so: small letters, digits and dashes, so that a directory can have the name anywhere.
pub fn is_user(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
}
