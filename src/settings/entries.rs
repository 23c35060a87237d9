//! What the tuning journal holds: one entry for each configuration that devboy wrote, with every changed key, its
//! evidence and what the change was expected to save.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::id::Id;
use crate::base::numbers::date;
use crate::logs::trace::Millis;
use crate::settings::finding::{Effect, Finding};

/// Entries in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// All that could be read.
    pub entries: Vec<JournalEntry>,
    /// Lines that hold no entry, from 1.
    pub damaged_lines: Vec<usize>,
}

/// One written configuration.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct JournalEntry {
    /// Eight hex digits that name it.
    pub id: String,
    pub at_ms: Millis,
    pub tool_version: String,
    /// The command: "tune analyze".
    pub command: String,
    /// Name of the configuration file, which lies beside the journal; of another target the whole path.
    pub config: String,
    /// What was written; none: the configuration of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Of Claude Code's settings: whose sessions they reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<SettingsReach>,
    /// What the rules read; none for an undo.
    pub inputs: Option<RuleInputs>,
    /// Pseudonym (see [`crate::base::id::Id`]) of the text before.
    pub before_sha: String,
    /// Pseudonym of the text after.
    pub after_sha: String,
    /// Whether there was a file before.
    pub existed: bool,
    pub changes: Vec<JournalChange>,
    /// What all of it together was expected to save, if it was replayed.
    pub predicted: Option<Predicted>,
    /// What all of it together was expected to change of the bill, if it was simulated and is more than one change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<BillForecast>,
    /// The entry that this one takes back.
    pub undoes: Option<String>,
    /// How to get from the text after to the text before, byte for byte.
    pub restore: Option<Restore>,
    /// Noted before the configuration was written and not confirmed yet: [`Journal::decided`] tells whether it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// Whose sessions settings of Claude Code reach.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SettingsReach {
    /// Everybody's.
    All,
    /// Those that begin in a directory: its pseudonym.
    Directory(Id),
    /// Those that begin anywhere in a git repository: the pseudonym of its root.
    Repository(Id),
}

/// A line that says what became of a pending entry.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct SettledEntry {
    pub settles: String,
    pub written: bool,
}

/// What the rules read.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct RuleInputs {
    /// Where it came from: "telemetry" or "logs".
    pub origin: String,
    /// Recorded events, or calls in logs.
    pub events: u64,
    pub sessions: u64,
    /// Start of the window; none if it is open.
    pub since_ms: Option<Millis>,
    /// End of the window, itself outside; none if it is open.
    pub until_ms: Option<Millis>,
}

/// One changed key.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
pub struct JournalChange {
    /// Id of the rule; empty for a key that changed in the wake of others.
    #[serde(default)]
    pub rule: String,
    /// The key, spelled as in TOML.
    pub key: String,
    /// What stood in the file before, as TOML; none if nothing did.
    pub old: Option<String>,
    /// What stands there after, as TOML; none if nothing does.
    pub new: Option<String>,
    /// Whether the table of the key stood in the file before, without any key.
    #[serde(default)]
    pub in_empty_table: bool,
    /// Why, in words and counts.
    #[serde(default)]
    pub evidence: String,
    /// Observations behind it.
    #[serde(default)]
    pub n: u64,
    pub threshold: Option<String>,
    /// Its share of what all changes of the entry were expected to save more, if it was replayed.
    pub effect: Option<ExpectedEffect>,
    /// What it was expected to change of the bill, and over which sessions, if it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<BillForecast>,
}

/// What a change of Claude Code's settings was expected to do to the bill: told on sessions that it was not chosen on, so
/// that it can be held against what comes.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct BillForecast {
    /// The requests that it concerns: `main`, `subagents` or `all`.
    pub part: String,
    /// The projects that decide it themselves (set it, or switch it off), also those without a session yet: the file does not reach
    /// their sessions, and nothing is told of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub without: BTreeSet<Id>,
    /// Cost with it over cost without, less one, of these requests; rereading of what is lost is paid for.
    pub change: f64,
    /// Lower end of the 95 % interval over sessions.
    pub lower: f64,
    pub upper: f64,
    /// The same change as a share of the whole bill of all later sessions, of those of `without` too: shares of settings that do
    /// not reach the same projects add up.
    pub of_bill: f64,
    /// Dollars of these sessions that it would have saved; none where nothing has a price.
    pub usd: Option<f64>,
    /// Of a setting that is proposed beside others: what of their common effect is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideOthers>,
    /// Share of these requests that have no price with it or without it: where others have one, nothing is told of them.
    #[serde(default)]
    pub unpriced: f64,
    /// By how much the simulation is off the bill there, as a share: no smaller change is told from none.
    pub error: f64,
    /// Sessions that the value was chosen on.
    pub chosen_on: u64,
    /// Sessions that it was told on.
    pub sessions: u64,
    /// First and last record of these sessions.
    pub span_ms: (Millis, Millis),
    /// Steps that would surely have failed, per 1,000 requests.
    pub hard_breaks: f64,
    /// Steps whose source is gone from the context, per 1,000 requests; the model may know it from elsewhere.
    pub soft_breaks: f64,
}

/// A setting as one of several that are proposed: what each does by itself overlaps.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct BesideOthers {
    /// Its share of what all of them do, of the whole bill: the mean of alone and as the last one, the rest split by how far
    /// these are apart. The shares of all add up.
    pub of_bill: f64,
    /// The same in dollars; none where nothing has a price.
    pub usd: Option<f64>,
    /// What it adds as the last one, of the whole bill.
    pub last_of_bill: f64,
}

/// The effect of one change by replay.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct ExpectedEffect {
    /// Tokens saved more; negative if it loses.
    pub tokens: f64,
    /// Of all tokens of tool responses as they are.
    pub baseline: f64,
}

/// Tokens of the tool responses that were replayed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// As they are.
    pub baseline: f64,
    /// Saved by the configuration before.
    pub saved_before: f64,
    /// Saved by the configuration after.
    pub saved_after: f64,
}

/// The one stretch in which two texts differ.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// Offset of the stretch in both texts, in bytes.
    pub at: usize,
    /// Its length in the text after, in bytes.
    pub put: usize,
    /// What stood there before.
    pub taken: String,
}

/// What became of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryStanding {
    /// Positions of the later entries that take it back and hold themselves.
    pub undos: Vec<usize>,
    /// Whether these concern all of its keys.
    is_whole: bool,
}

impl Journal {
    /// The entries about one configuration file.
    #[must_use]
    pub fn about(self, config: &str) -> Self {
        let entries = self.entries.into_iter().filter(|entry| entry.config == config).collect();
        Self { entries, ..self }
    }

    /// Takes note of what became of an entry.
    pub fn settle(&mut self, settled: &SettledEntry) {
        let pending = |entry: &JournalEntry| entry.pending && entry.id == settled.settles;
        let Some(position) = self.entries.iter().rposition(pending) else { return };
        if settled.written {
            self.entries[position].pending = false;
        } else {
            self.entries.remove(position);
        }
    }

    /// What became of the pending entries, told by what the file of each holds now (`sha`), if that can be told: one whose
    /// text before it still is was never written; any other counts as written, and taking it back looks at each key.
    pub fn undecided(&self, sha: impl Fn(&JournalEntry) -> Option<String>) -> Vec<SettledEntry> {
        let settled = |entry: &JournalEntry| {
            let now = sha(entry)?;
            Some(SettledEntry { settles: entry.id.clone(), written: entry.after_sha == now || entry.before_sha != now })
        };
        self.entries.iter().filter(|entry| entry.pending).filter_map(settled).collect()
    }

    /// The journal as it is when every pending entry is decided by what its file holds now.
    #[must_use]
    pub fn decided(mut self, sha: impl Fn(&JournalEntry) -> Option<String>) -> Self {
        for settled in self.undecided(sha) {
            self.settle(&settled);
        }
        self
    }

    /// How each entry stands now.
    pub fn standings(&self) -> Vec<EntryStanding> {
        let mut standings: Vec<EntryStanding> = vec![EntryStanding::default(); self.entries.len()];
        let mut undos_of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (position, entry) in self.entries.iter().enumerate().rev() {
            // Later entries have been looked at already; an undo that is undone itself counts for nothing.
            let undos = undos_of.get(entry.id.as_str()).cloned().unwrap_or_default();
            let back: BTreeSet<&str> = undos.iter().flat_map(|undo| self.entries[*undo].keys()).collect();
            let standing = EntryStanding { is_whole: entry.keys().all(|key| back.contains(key)), undos };
            if let Some(undone) = entry.undoes.as_deref().filter(|_| standing.holds()) {
                undos_of.entry(undone).or_default().insert(0, position);
            }
            standings[position] = standing;
        }
        standings
    }

    /// The keys of an entry that later ones changed again and that nobody took back since, each with the last of those.
    pub fn changed_later(&self, id: &str) -> BTreeMap<&str, &JournalEntry> {
        let Some(place) = self.entries.iter().position(|entry| entry.id == id) else { return BTreeMap::new() };
        let (known, later) = self.entries.split_at(place + 1);
        // An undo of this entry, or of a later one, only takes back what is looked at already.
        let earlier: BTreeSet<&String> = known[..place].iter().map(|entry| &entry.id).collect();
        let is_earlier = |undone: &String| earlier.contains(undone);
        let standings = self.standings().split_off(place + 1);
        let mut changed = BTreeMap::new();
        for (entry, standing) in later.iter().zip(standings).filter(|(one, _)| one.undoes.iter().all(is_earlier)) {
            let is_back =
                |key: &&str| standing.undos.iter().any(|undo| self.entries[*undo].keys().any(|own| own == *key));
            changed.extend(entry.keys().filter(|key| !is_back(key)).map(|key| (key, entry)));
        }
        changed.retain(|key, _| known[place].keys().any(|own| own == *key));
        changed
    }

    /// The last entry that holds and is no undo itself; without one the last of which a part holds.
    pub fn last_standing(&self) -> Option<&JournalEntry> {
        let standings = self.standings();
        let changes = || self.entries.iter().zip(&standings).filter(|(entry, _)| entry.undoes.is_none());
        let whole = changes().rfind(|(_, standing)| standing.holds());
        whole.or_else(|| changes().rfind(|(_, standing)| !standing.is_undone())).map(|(entry, _)| entry)
    }

    /// The entries of which nothing was taken back, without those that take back.
    pub fn holding(&self) -> impl Iterator<Item = &JournalEntry> {
        let entries = self.entries.iter().zip(self.standings());
        entries.filter(|(entry, standing)| entry.undoes.is_none() && standing.holds()).map(|(entry, _)| entry)
    }

    /// What was written last of each key and not taken back, as TOML.
    pub fn written(&self) -> BTreeMap<String, String> {
        let mut written = BTreeMap::new();
        for change in self.holding().flat_map(|entry| &entry.changes) {
            match &change.new {
                Some(new) => written.insert(change.key.clone(), new.clone()),
                None => written.remove(&change.key),
            };
        }
        written
    }

    /// The entry that took the last change of a key back, as long as `now`, what stands there, is what was there before.
    pub fn taken_back(&self, key: &str, now: Option<&str>) -> Option<&JournalEntry> {
        let last = self.entries.iter().rfind(|entry| entry.change(key).is_some())?;
        // An undo of an undo makes the change again.
        let (made, is_back) = self.entries.iter().rev().fold((last, false), |(made, is_back), entry| {
            if made.undoes.as_ref() == Some(&entry.id) { (entry, !is_back) } else { (made, is_back) }
        });
        (is_back && made.change(key)?.old.as_deref() == now).then_some(last)
    }

    /// The last entry that is no undo itself, however it stands.
    pub fn last_change(&self) -> Option<&JournalEntry> {
        self.entries.iter().rfind(|entry| entry.undoes.is_none())
    }

    /// The entries whose id starts like this.
    pub fn named(&self, start: &str) -> Vec<&JournalEntry> {
        self.entries.iter().filter(|entry| entry.id.starts_with(start)).collect()
    }
}

impl EntryStanding {
    /// Whether nothing of it was taken back.
    pub fn holds(&self) -> bool {
        self.undos.is_empty()
    }

    /// Whether all of it was taken back.
    pub fn is_undone(&self) -> bool {
        !self.holds() && self.is_whole
    }
}

/// How entries about Claude Code's settings are marked.
pub const CLAUDE_SETTINGS: &str = "claude-settings";

impl JournalEntry {
    /// What there is to say of what this undo took back: "was taken back on 2026-01-02: `devboy tune undo ID` sets it again".
    pub fn taken_back_words(&self) -> String {
        format!("was taken back on {}: `devboy tune undo {}` sets it again", date(self.at_ms), self.id)
    }

    /// A key and the value that this undo took from it: `promptCacheTtl "1h"`.
    pub fn taken_back_value(&self, key: &str) -> String {
        let was = self.change(key).and_then(|change| change.old.as_ref());
        was.map_or_else(|| key.to_owned(), |was| format!("{key} {was}"))
    }

    /// Whether it is about settings of Claude Code.
    pub fn is_about_claude(&self) -> bool {
        self.target.as_deref() == Some(CLAUDE_SETTINGS)
    }

    /// What it did to a key.
    pub fn change(&self, key: &str) -> Option<&JournalChange> {
        self.changes.iter().find(|change| change.key == key)
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().map(|change| change.key.as_str())
    }
}

impl JournalChange {
    /// What a finding says about the key that it proposes to change; none if it proposes nothing. The values are filled
    /// in from the files.
    pub fn of(finding: &Finding) -> Option<Self> {
        let delta = finding.proposed()?;
        let evidence = &finding.evidence;
        let words = if evidence.counts.is_empty() {
            String::new()
        } else {
            format!("{} [{}]", evidence.counts, evidence.basis.into_str())
        };
        Some(Self {
            rule: finding.rule.to_owned(),
            key: delta.key.to_string(),
            evidence: words,
            n: evidence.n,
            threshold: evidence.threshold.clone(),
            effect: finding.effect.as_ref().and_then(ExpectedEffect::of),
            forecast: finding.forecast.clone(),
            ..Self::default()
        })
    }
}

impl ExpectedEffect {
    /// The effect as it can be written down: JSON has no infinite numbers.
    fn of(effect: &Effect) -> Option<Self> {
        let is_finite = effect.tokens.is_finite() && effect.baseline.is_finite();
        is_finite.then_some(Self { tokens: effect.tokens, baseline: effect.baseline })
    }
}

impl Predicted {
    /// Share of all tokens that was saved before and would be saved after; none without tokens.
    pub fn shares(&self) -> Option<(f64, f64)> {
        (self.baseline > 0.0).then(|| (self.saved_before / self.baseline, self.saved_after / self.baseline))
    }
}

impl Restore {
    /// Where two texts differ.
    pub fn between(before: &str, after: &str) -> Self {
        let same = |(left, right): &(char, char)| left == right;
        let length = |pair: (char, char)| pair.0.len_utf8();
        let at: usize = before.chars().zip(after.chars()).take_while(same).map(length).sum();
        let (before, after) = (&before[at..], &after[at..]);
        let end: usize = before.chars().rev().zip(after.chars().rev()).take_while(same).map(length).sum();
        Self { at, put: after.len() - end, taken: before[..before.len() - end].to_owned() }
    }

    /// The text before, out of the text after; none if this was about another text.
    pub fn before(&self, after: &str) -> Option<String> {
        let (head, tail) = (after.get(..self.at)?, after.get(self.at.checked_add(self.put)?..)?);
        Some(format!("{head}{}{tail}", self.taken))
    }
}
