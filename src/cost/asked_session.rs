//! Which session is meant by an id, or by how one begins.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::numbers::{date, days};
use crate::cost::groups::Label;
use crate::cost::shown_names::{ShownNames, is_gone};
use crate::frames::input::Input;
use crate::logs::timeline::requests::{Session, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::logs::{history, window};

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
