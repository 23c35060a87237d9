//! The names under which things of a user may leave the machine: what is made to be shared has no others. A pseudonym is keyed:
//! whoever does not know the secret can neither guess a name nor check a guess. People who share a secret
//! (`DEVBOY_TEAM_SECRET`) have the same pseudonyms; else it is that of the lake.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use crate::base::id::Id;
use crate::base::seal::{SECRET_BYTES, Seal, Way, drawn, kept_secret};

/// Hex digits of a pseudonym: 48 bits, so that names of millions of servers stay different.
const DIGITS: usize = 12;
/// Hex digits of a published one.
const PUBLISHED_DIGITS: usize = 6;

/// Where the secret comes from.
#[derive(Clone, Debug, Default)]
enum Source {
    /// Drawn for this run.
    #[default]
    Random,
    /// Beside this lake.
    Lake(PathBuf),
    /// Given.
    Text(Vec<u8>),
}

/// The pseudonyms of one secret, which is looked up when the first of them is asked for.
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms {
    source: Source,
    made: Arc<OnceLock<MadeSeal>>,
}

#[derive(Debug)]
struct MadeSeal {
    /// None on a system without a source of chance: then all names are one, rather than such as can be guessed.
    seal: Option<Seal>,
    /// Why they are others in the next run.
    passing: Option<String>,
}

impl Pseudonyms {
    /// Those of a lake; of no lake, some that are others in every run.
    pub fn of_lake(lake: Option<PathBuf>) -> Self {
        Self { source: lake.map_or(Source::Random, Source::Lake), made: Arc::default() }
    }

    /// Those of a secret that people share.
    pub fn of_secret(secret: &[u8]) -> Self {
        Self { source: Source::Text(secret.to_owned()), made: Arc::default() }
    }

    fn made(&self) -> &MadeSeal {
        self.made.get_or_init(|| {
            let kept = match &self.source {
                Source::Text(text) => Ok(Sha256::digest(text).into()),
                Source::Lake(dir) => kept_secret(dir).map_err(|cause| cause.to_string()),
                Source::Random => Err("there is no place for a lake".to_owned()),
            };
            let (secret, passing) = match kept {
                Ok(secret) => (Some(secret), None),
                Err(cause) => (drawn().ok(), Some(cause)),
            };
            // Another use of the same secret, so that no name is its own place in the lake.
            let own = |secret| Sha256::new().chain_update(b"devboy names").chain_update(secret).finalize();
            MadeSeal { seal: secret.map(|secret: [u8; SECRET_BYTES]| Seal::new(&own(secret).into())), passing }
        })
    }

    /// Why the pseudonyms that were given out will be others next time, if they will.
    pub fn passing(&self) -> Option<&str> {
        self.made.get()?.passing.as_deref()
    }

    /// The name of a tool without the name of its MCP server: `mcp__gitlab__get_issue` becomes `mcp__p9d96d90c1a2b__get_issue`,
    /// `mcp__gitlab` becomes `mcp__p9d96d90c1a2b`. The verb stays, since it says what the tool does. A server whose name looks
    /// like a pseudonym gets one like any other.
    pub fn tool(&self, tool: &str) -> String {
        renamed(tool, |server| format!("p{}", self.digits(server)))
    }

    /// The name of a project without its directory, which mostly holds the name of a user: `project-9d96d90c1a2b`.
    pub fn project(&self, directory: &str) -> String {
        format!("project-{}", self.digits(directory))
    }

    /// The name of a kind of agent, which people may have named themselves: `agent-9d96d90c1a2b`; none of none.
    pub fn agent(&self, kind: &str) -> String {
        if kind.is_empty() { String::new() } else { format!("agent-{}", self.digits(kind)) }
    }

    /// The pseudonym of what has an id: a session, a project, a content.
    pub fn id(&self, id: Id) -> Id {
        self.made().seal.as_ref().map_or(Id::NONE, |seal| seal.id(Way::ToDisk, id))
    }

    /// The pseudonym of what has a short id: a path.
    pub fn short(&self, id: u32) -> u32 {
        self.made().seal.as_ref().map_or(0, |seal| seal.hash_32(Way::ToDisk, id))
    }

    /// Tells the pseudonyms of one secret from those of another, and gives nothing away.
    pub fn check(&self) -> String {
        format!("{:016x}", self.made().seal.as_ref().map_or(0, Seal::check))
    }

    fn digits(&self, name: &str) -> String {
        self.id(Id::pseudonym(name.as_bytes())).to_string()[..DIGITS].to_owned()
    }
}

/// The name that a published recorder gives a tool: six digits of a plain hash, which can be guessed. It is made to
/// recognise names in telemetry, never to be shown.
pub fn published_tool(tool: &str) -> String {
    renamed(tool, |server| format!("p{}", &Id::pseudonym(server.as_bytes()).to_string()[..PUBLISHED_DIGITS]))
}

/// Whether the name of a tool may be a pseudonym. It can be asked of names that somebody recorded; in a log such a name is
/// the server's own.
pub fn is_pseudonym(tool: &str) -> bool {
    server_and_verb(tool).is_some_and(|(server, _)| {
        let digits = server.strip_prefix('p').unwrap_or_default();
        [DIGITS, PUBLISHED_DIGITS].contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

fn renamed(tool: &str, name: impl Fn(&str) -> String) -> String {
    match server_and_verb(tool) {
        None => tool.to_owned(),
        Some((server, "")) if !tool.ends_with("__") => format!("mcp__{}", name(server)),
        Some((server, verb)) => format!("mcp__{}__{verb}", name(server)),
    }
}

/// The verb is empty where there is none.
fn server_and_verb(tool: &str) -> Option<(&str, &str)> {
    let name = tool.strip_prefix("mcp__").filter(|name| !name.is_empty())?;
    Some(name.rsplit_once("__").unwrap_or((name, "")))
}
