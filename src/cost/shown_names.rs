//! The names under which projects, branches, servers and sessions are shown: to their owner as people write them, in what is
//! shared by letters; and which session is meant by such a name, or by how one begins.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdSet};
use crate::base::names::mcp_server;
use crate::base::numbers::{date, days};
use crate::base::visible::visible;
use crate::cost::groups::Label;
use crate::frames::input::Input;
use crate::logs::timeline::requests::{Session, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::logs::{history, window};

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
        format!("(in no log on disk, {})", &id.to_string()[..ID_CHARS])
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

/// Sessions that an error names.
const CANDIDATES: usize = 10;
/// Why a session has no request in any window.
const NOTHING_BILLED: &str = ": nothing was billed";
/// What to do about a session that is not in the window.
const WIDEN: &str = "widen --since, --until or --days";

/// The index of the session asked for; none if there is no session at all. `flags` are those with which a command sees the
/// same logs. An error if no session begins with the id, or several do; the error names those that are there.
pub fn asked_session(id: Option<&str>, timeline: &Timeline, input: &mut Input, flags: &str) -> Result<Option<u32>> {
    let ends = ends(timeline);
    let billed: BTreeSet<usize> =
        timeline.billed().map(|(_, request)| timeline.session_of_chain(request.chain) as usize).collect();
    let billed = || billed.iter().copied();
    let latest = || billed().max_by_key(|&at| (ends[at], std::cmp::Reverse(at)));
    let Some(id) = id else { return Ok(latest().map(|at| at as u32)) };
    // The name of its file, or as it was copied from somewhere.
    let id = id.strip_suffix(".jsonl").unwrap_or(id);
    let labels: Vec<Label> = timeline.sessions.iter().map(|session| Label::Session(session.id)).collect();
    let names = ShownNames::real(labels.iter(), input);
    let session = |at: usize| (timeline.sessions[at].id, names.full(&labels[at]));
    let found: Vec<usize> = billed().filter(|&at| is_meant(&session(at), id)).collect();
    let exact = found.iter().find(|&&at| is_named(&session(at), id));
    match (found.as_slice(), exact) {
        (_, Some(&at)) | (&[at], None) => return Ok(Some(at as u32)),
        (&[], None) => {
            if let Some(refusal) = without_request(id, input) {
                return Err(refusal);
            }
        }
        _ => {}
    }
    let message = match found.len() {
        0 => format!("no session begins with \"{id}\""),
        count => format!("{count} sessions begin with \"{id}\""),
    };
    let mut listed: Vec<usize> = if found.is_empty() { billed().collect() } else { found };
    listed.sort_by_key(|&at| (std::cmp::Reverse(ends[at]), at));
    let full: Vec<String> = listed.iter().map(|&at| names.full(&labels[at])).collect();
    let mut lines = lines(&listed, &full, timeline, input);
    if listed.len() > CANDIDATES {
        let gap = if flags.is_empty() { "" } else { " " };
        lines.push(format!("and {} more: `devboy mine sessions --all{gap}{flags}`", listed.len() - CANDIDATES));
    }
    Err(Error::failed(message).hint(lines.join("\n")))
}

/// The first of some sessions with their names, days and projects.
fn lines(listed: &[usize], names: &[String], timeline: &Timeline, input: &Input) -> Vec<String> {
    let listed = &listed[..listed.len().min(CANDIDATES)];
    let projects: Vec<Label> = listed.iter().map(|&at| Label::Project(timeline.sessions[at].project)).collect();
    let shown = ShownNames::real(projects.iter(), input);
    let line = |((&at, name), project): ((&usize, &String), &Label)| {
        let Session { ts_first, .. } = timeline.sessions[at];
        let day = if ts_first == NO_TIME { "no date".to_owned() } else { date(ts_first) };
        format!("{name}  {day}  {}", shown.short(project))
    };
    listed.iter().zip(names).zip(&projects).map(line).collect()
}

/// Whether an id is all of a session's. What no log on disk has any more is known by its pseudonym.
fn is_named((session, name): &(Id, String), id: &str) -> bool {
    name.eq_ignore_ascii_case(id) || *session == Id::pseudonym(id.as_bytes())
}

/// Whether a session's id begins like this, or is this, or this is shown in its place.
fn is_meant(session: &(Id, String), id: &str) -> bool {
    let (_, name) = session;
    let is_shown = is_gone(name) && name.trim_end_matches(')').ends_with(&format!(" {id}"));
    is_shown || begins_with(name, id) || is_named(session, id)
}

fn begins_with(name: &str, id: &str) -> bool {
    name.get(..id.len()).is_some_and(|head| head.eq_ignore_ascii_case(id))
}

/// The error of a session that is there, but has no request, or none in the window asked for.
fn without_request(id: &str, input: &mut Input) -> Option<Error> {
    let asked = std::mem::replace(&mut input.window, window::ALL);
    let history = input.history();
    input.window = asked;
    let billed: BTreeSet<u32> =
        history.messages.iter().filter(|message| message.has_cost()).map(|message| message.session).collect();
    let labels: Vec<Label> = history.sessions.iter().map(|session| Label::Session(session.id)).collect();
    let names = ShownNames::real(labels.iter(), input);
    let sessions = (0..).zip(&history.sessions).map(|(at, session)| (session, billed.contains(&at)));
    let known = labels.iter().map(|label| names.full(label)).zip(sessions);
    let mut found: BTreeMap<String, (&history::Session, bool)> =
        known.filter(|(name, (session, _))| is_meant(&(session.id, name.clone()), id)).collect();
    let is_cut = input.window != window::ALL && found.values().any(|(_, billed)| *billed);
    let place =
        if is_cut { format!(" in the window {}", window::words(&input.window)) } else { NOTHING_BILLED.to_owned() };
    let count = found.len();
    let (name, (session, _)) = found.pop_first()?;
    let (message, span) = if count > 1 {
        (format!("{count} sessions begin with \"{id}\", and none has a request{place}"), None)
    } else {
        (format!("session {name} has no request{place}"), Some(session).filter(|session| session.ts_first != NO_TIME))
    };
    if !is_cut {
        return Some(Error::failed(message));
    }
    let span = span.map(|session| format!("it is of {}: ", days(session.ts_first, session.ts_last)));
    Some(Error::failed(message).hint(span.unwrap_or_default() + WIDEN))
}

/// When the last request of each session that was billed for something ended.
fn ends(timeline: &Timeline) -> Vec<Millis> {
    let mut ends = vec![Millis::MIN; timeline.sessions.len()];
    for (_, request) in timeline.billed().filter(|(_, request)| request.end != NO_TIME) {
        let end = &mut ends[timeline.session_of_chain(request.chain) as usize];
        *end = request.end.max(*end);
    }
    ends
}
