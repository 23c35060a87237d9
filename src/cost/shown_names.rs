//! The names under which projects, branches, servers and sessions are shown: to their owner as people write them, in what is
//! shared by letters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::base::id::{Id, IdSet};
use crate::base::names::mcp_server;
use crate::base::visible::visible;
use crate::cost::groups::Label;
use crate::frames::input::Input;

/// Characters of a session's id that tell the sessions of one person apart.
const ID_CHARS: usize = 8;
/// Letters of the alphabet.
const LETTERS: usize = 26;

/// Names by label.
pub struct ShownNames {
    names: BTreeMap<Label, String>,
    is_redacted: bool,
}

impl ShownNames {
    /// Names for these labels: letters in what is shared.
    pub fn of<'l>(labels: impl Iterator<Item = &'l Label>, is_shared: bool, input: &Input) -> Self {
        if is_shared { Self::letters(labels) } else { Self::real(labels, input) }
    }

    /// Names for these labels, as the logs have them.
    pub fn real<'l>(labels: impl Iterator<Item = &'l Label>, input: &Input) -> Self {
        let labels: BTreeSet<&Label> = labels.collect();
        let ids = |is: fn(&Label) -> Option<Id>| -> IdSet<Id> {
            labels.iter().filter_map(|label| is(label)).filter(|id| id.is_some()).collect()
        };
        let at_the_head = ids(|label| match label {
            Label::Project(id) | Label::Session(id) => Some(*id),
            _ => None,
        });
        let anywhere = ids(|label| if let Label::Branch(id) = label { Some(*id) } else { None });
        let texts = input.texts(at_the_head, anywhere);
        let projects = labels.iter().filter_map(|label| match label {
            Label::Project(id) => texts.get(id).map(|path| (*id, path.as_str())),
            _ => None,
        });
        let projects = short_paths(&projects.collect());
        let name = |label: &Label| match label {
            Label::Project(id) => projects.get(id).cloned().unwrap_or_else(|| gone(*id)),
            Label::Session(id) | Label::Branch(id) => {
                texts.get(id).map_or_else(|| gone(*id), |text| visible(text).into_owned())
            }
            Label::Word(text) | Label::Tool(text) | Label::Server(text) | Label::Agent(text) => text.clone(),
        };
        let names = labels.into_iter().map(|label| (label.clone(), name(label))).collect();
        Self { names, is_redacted: false }
    }

    /// Letters for these labels, in their order: who is shown the page learns nobody's name.
    fn letters<'l>(labels: impl Iterator<Item = &'l Label>) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names: BTreeMap<Label, String> = BTreeMap::new();
        let mut servers: BTreeMap<String, String> = BTreeMap::new();
        for label in labels {
            if names.contains_key(label) {
                continue;
            }
            let mut next = |what: &'static str| {
                let count = counts.entry(what).or_default();
                *count += 1;
                letter(*count - 1)
            };
            let name = match label {
                Label::Project(id) if !id.is_some() => gone(*id),
                Label::Project(_) => format!("project {}", next("project")),
                Label::Session(_) => format!("session {}", next("session")),
                Label::Branch(id) if !id.is_some() => gone(*id),
                Label::Agent(_) => format!("agent {}", next("agent")),
                Label::Branch(_) => format!("branch {}", next("branch")),
                Label::Word(text) => text.clone(),
                Label::Server(server) => {
                    servers.entry(server.clone()).or_insert_with(|| format!("server {}", next("server"))).clone()
                }
                Label::Tool(tool) => match mcp_server(tool) {
                    None => tool.clone(),
                    Some(server) => {
                        let verb = tool["mcp__".len() + server.len()..].trim_start_matches("__");
                        let own =
                            servers.entry(server.to_owned()).or_insert_with(|| format!("server {}", next("server")));
                        format!("{own}: {verb}")
                    }
                },
            };
            names.insert(label.clone(), name);
        }
        Self { names, is_redacted: true }
    }

    /// The name of a label, short enough for a table.
    pub fn short(&self, label: &Label) -> String {
        let name = self.full(label);
        let is_id = matches!(label, Label::Session(_)) && !self.is_redacted && !is_gone(&name);
        if is_id { name.chars().take(ID_CHARS).collect() } else { name }
    }

    /// The name of a label.
    pub fn full(&self, label: &Label) -> String {
        self.names.get(label).cloned().unwrap_or_default()
    }
}

/// What stands for a name that no log on disk has: its logs are deleted, or came on standard input.
fn gone(id: Id) -> String {
    if id.is_some() {
        format!("(named in no log on disk, {})", &id.to_string()[..ID_CHARS])
    } else {
        "(not in the log)".to_owned()
    }
}

/// Whether a session has no other name than that.
pub fn is_gone(name: &str) -> bool {
    name.starts_with('(')
}

/// A, B, … Z, AA, AB, …
fn letter(index: usize) -> String {
    let last = char::from(b'A' + (index % LETTERS) as u8);
    if index < LETTERS { last.to_string() } else { letter(index / LETTERS - 1) + &last.to_string() }
}

/// Directories by their last parts: as many as tell them apart.
fn short_paths(paths: &BTreeMap<Id, &str>) -> BTreeMap<Id, String> {
    let parts = |path: &str| -> Vec<String> {
        path.split(['/', '\\']).filter(|part| !part.is_empty()).map(|part| visible(part).into_owned()).collect()
    };
    let all: BTreeMap<Id, Vec<String>> = paths.iter().map(|(&id, path)| (id, parts(path))).collect();
    let tail = |parts: &[String], count: usize| parts[parts.len().saturating_sub(count)..].join("/");
    // How many directories end in these parts.
    let mut ending: HashMap<String, u32> = HashMap::new();
    for parts in all.values() {
        (1..=parts.len()).for_each(|count| *ending.entry(tail(parts, count)).or_default() += 1);
    }
    let name = |parts: &Vec<String>| {
        let is_alone = |&count: &usize| ending.get(&tail(parts, count)) == Some(&1);
        let count = (1..parts.len()).find(is_alone).unwrap_or(parts.len());
        let root = if parts.first().is_some_and(|drive| drive.ends_with(':')) { "" } else { "/" };
        if count < parts.len() {
            format!("…/{}", tail(parts, count))
        } else {
            format!("{root}{}", tail(parts, count))
        }
    };
    all.iter().map(|(id, parts)| (*id, name(parts))).collect()
}
