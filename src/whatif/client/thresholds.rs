//! What is tried (`rules/policies/claude_settings.toml`), and which of several levers every client of the last weeks
//! knows: what an older one does not know has no effect there.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::numbers::DAY_MS;
use crate::logs::timeline::requests::{Request, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::date;
use crate::settings::claude::levers::Lever;
use crate::whatif::prompt_cache::params::CacheLifetime;

/// The sheet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ClientThresholds {
    /// How sessions are told apart.
    pub split: SplitThresholds,
    pub ttl: TriedTtls,
    pub window: TriedWindows,
    pub results: Results,
}

/// How sessions are told apart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SplitThresholds {
    pub days: i64,
    /// So many of the latest sessions do in any case.
    pub latest_min: usize,
    pub ahead_percent: usize,
    pub earlier_percent: u64,
    pub version_days: i64,
}

/// Lifetimes that are tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TriedTtls {
    pub values: Vec<CacheLifetime>,
}

/// Windows that are tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TriedWindows {
    pub tokens: Vec<u64>,
}

/// Sizes of results that are tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Results {
    pub bash_chars: Vec<u64>,
    pub mcp_tokens: Vec<u64>,
    pub read_tokens: Vec<u64>,
    pub preview_chars: u32,
    pub preview_tokens: u32,
    /// Tools that run shell commands.
    pub bash_tools: Vec<String>,
    pub read_tools: Vec<String>,
}

impl SplitThresholds {
    /// Of sessions with these first and last times, the one that began earliest first, whether values are chosen on each, or
    /// judged on it; none of one whose last time is too old.
    pub fn sides(&self, spans: &[(Millis, Millis)]) -> impl Iterator<Item = Option<bool>> + use<> {
        let last = spans.iter().nth_back(spans.len() * self.ahead_percent / 100);
        let since = last.map_or(NO_TIME, |(first, _)| first.saturating_sub(self.days * DAY_MS));
        let latest = spans.len().saturating_sub(self.latest_min);
        let counts = |(place, (_, end)): (usize, &(Millis, Millis))| place >= latest || *end >= since;
        let counting: Vec<bool> = spans.iter().enumerate().map(counts).collect();
        let earlier = counting.iter().filter(|counts| **counts).count() as u64 * self.earlier_percent / 100;
        let mut seen = 0;
        counting.into_iter().map(move |counts| {
            seen += u64::from(counts);
            counts.then_some(seen <= earlier)
        })
    }
}

/// The data file.
const FILE: &str = "policies/claude_settings.toml";

impl ClientThresholds {
    /// Reads the sheet.
    pub fn load(data: &Data) -> Result<Self> {
        let file = data.file(FILE)?;
        let thresholds: Self = file.parsed()?;
        if thresholds.split.earlier_percent == 0 || thresholds.split.earlier_percent >= 100 {
            return Err(Error::failed(format!("{}: earlier_percent is no part of a hundred", file.place)));
        }
        Ok(thresholds)
    }

    /// Client versions of the last days of some projects, or of all. What is later than now has a wrong clock: it is no last
    /// request.
    pub fn versions(&self, timeline: &Timeline, projects: Option<&BTreeSet<Id>>, now: Millis) -> Versions {
        let of = |chain: u32| timeline.sessions[timeline.session_of_chain(chain) as usize].project;
        let is_asked = |chain: u32| projects.is_none_or(|asked| asked.contains(&of(chain)));
        let requests = || {
            let has_time = |request: &&Request| request.end != NO_TIME && request.context() > 0;
            timeline.counted().map(|(_, request)| request).filter(has_time).filter(|request| is_asked(request.chain))
        };
        let last = requests().map(|request| request.end).filter(|end| *end <= now).max().unwrap_or_default();
        let mut versions = Versions::new();
        // A clock that ran ahead says nothing of the last weeks, unless there is no other.
        let is_made = |request: &&Request| last == 0 || request.end <= now;
        let is_late = |request: &&Request| request.end > last - self.split.version_days * DAY_MS;
        for request in requests().filter(is_made).filter(is_late) {
            let seen = versions.entry(timeline.names.text(request.version).to_owned()).or_default();
            *seen = request.end.max(*seen);
        }
        versions
    }
}

/// Client versions, each with the time of its last request.
pub type Versions = BTreeMap<String, Millis>;

/// The first of these levers that every one of these clients knows. The error says what to update, and from which
/// version on the first lever is known.
pub fn known<'l>(levers: &[&'l Lever], versions: &Versions) -> std::result::Result<&'l Lever, String> {
    if let Some(lever) = levers.iter().find(|lever| unknowing(lever, versions).is_none()) {
        return Ok(lever);
    }
    let unknowing = levers.first().and_then(|lever| Some((lever, unknowing(lever, versions)?)));
    let Some((lever, (version, last))) = unknowing else { return Err("no lever takes that value".to_owned()) };
    let needs = match (&lever.since, &lever.documented, &lever.until) {
        (Some(since), _, None) => format!("needs {since} or newer"),
        (None, Some(documented), None) => format!("is documented for {documented} and may not be in older ones"),
        _ => format!("needs {}", lever.versions()),
    };
    let client = client_words(version);
    Err(format!("update Claude Code first: {} {needs}; {client} was in use on {}", lever.name, date(last)))
}

/// The same, unless the file that is changed `holds` another one that they know and that wins over it: then that one decides.
pub fn deciding<'l>(
    levers: &[&'l Lever],
    versions: &Versions,
    holds: impl Fn(&Lever) -> bool,
) -> std::result::Result<&'l Lever, String> {
    let lever = known(levers, versions)?;
    let wins = |other: &&&Lever| {
        lever.gives_way_to.contains(&other.name) && unknowing(other, versions).is_none() && holds(other)
    };
    Ok(levers.iter().find(wins).copied().unwrap_or(lever))
}

/// A client version in words.
pub fn client_words(version: &str) -> &str {
    if version.is_empty() { "a client without a version" } else { version }
}

/// The client that was seen last of those that do not know a lever.
fn unknowing<'v>(lever: &Lever, versions: &'v Versions) -> Option<(&'v str, Millis)> {
    let unknowing = versions.iter().filter(|(version, _)| !lever.is_known_to(version));
    unknowing.max_by_key(|(_, last)| **last).map(|(version, last)| (version.as_str(), *last))
}
