//! How projects and sessions are called on the page: whoever shows it knows, the page itself has pseudonyms only.

use std::collections::BTreeMap;

/// Names by pseudonym.
#[derive(Clone, Default, Debug)]
pub struct PageNames(pub BTreeMap<String, String>);

/// Where the name of something of a kind stands.
pub fn own_key(kind: &str, name: &str) -> String {
    format!("{kind}: {name}")
}

/// Hex digits of one whose name is not known.
const DIGITS: usize = 8;

impl PageNames {
    /// The name of a project.
    pub fn project(&self, id: &str) -> String {
        self.named(id, "project")
    }

    /// The name of a session: the start of its id, as `claude --resume` lists it.
    pub fn session(&self, id: &str) -> String {
        self.named(id, "session")
    }

    /// The name of something that people may have named themselves: a kind of agent, a server.
    pub fn own(&self, kind: &str, name: &str) -> String {
        self.0.get(&own_key(kind, name)).cloned().unwrap_or_else(|| name.to_owned())
    }

    fn named(&self, id: &str, noun: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| format!("{noun} {}", id.get(..DIGITS).unwrap_or(id)))
    }
}
