//! From findings to a file: which changes may be made, how they are made and shown, and which rule a key belongs to where two
//! rules want it (`rules/precedence.toml`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml_edit::{InlineTable, Value};

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::visible::{Shown as _, is_written_out};
use crate::logs::trace::Millis;
use crate::report::numbers::date;
use crate::rules::tool_keys::{hidden, shipped};
use crate::settings::annotations::Annotations;
use crate::settings::entries::JournalChange;
use crate::settings::finding::{Basis, Delta, Finding, Verdict};
use crate::settings::{SettingsFile, View, WantedValue, apply, journal_entry, journal_of, put, unified_diff};

/// How the first line begins of a file that devboy began.
const TITLE: &str = "# Read by the devboy pipeline in an MCP host; ";

/// What would be written.
pub struct Proposal {
    /// All findings; a proposal for a pinned key has become a hold.
    pub findings: Vec<Finding>,
    /// The new text of the file.
    pub text: String,
    /// The unified diff; empty when nothing changes.
    pub diff: String,
    changed: usize,
}

impl Proposal {
    /// Settles what the rules found into one new text. What is shipped for a tool becomes part of its first block.
    pub fn new(file: &SettingsFile, mut findings: Vec<Finding>, annotations: &Annotations) -> Result<Self> {
        complete(&mut findings, file, annotations);
        let deltas: Vec<&Delta> = findings.iter().filter_map(Finding::proposed).collect();
        let text = apply(file, &changes(file, &deltas))?;
        let diff = unified_diff(&file.text, &text, &file.path.shown());
        let listed = findings.iter().filter_map(JournalChange::of).collect();
        let changed = journal_entry(0, "", file, &text, listed)?.changes.len();
        Ok(Self { findings, text, diff, changed })
    }

    /// The same with a first line that says who reads the file and what it is worth. A file that a person began keeps the
    /// first line that it has.
    #[must_use]
    pub fn titled(mut self, file: &SettingsFile, worth: &str) -> Self {
        let is_ours = file.text.is_empty() || file.text.starts_with(TITLE);
        if self.is_change() && is_ours {
            let body =
                self.text.strip_prefix(TITLE).and_then(|rest| rest.split_once('\n')).map(|(_, body)| body.to_owned());
            self.text = format!("{TITLE}{worth}.\n{}", body.unwrap_or_else(|| format!("\n{}", self.text)));
            self.diff = unified_diff(&file.text, &self.text, &file.path.shown());
        }
        self
    }

    /// Whether anything would change.
    pub fn is_change(&self) -> bool {
        !self.diff.is_empty()
    }

    /// Number of keys that would change, as the journal counts them.
    pub fn count(&self) -> usize {
        self.changed
    }
}

/// Holds proposals that may not be made: about names that no API allows, of pinned keys, and of keys that belong to
/// another rule.
pub fn settle(view: &View<'_>, precedence: &KeyOwners, mut findings: Vec<Finding>) -> Vec<Finding> {
    drop_fillers(&mut findings);
    hold_unspeakable(&mut findings);
    hold_pinned(&mut findings, view);
    hold_conflicts(&mut findings, precedence);
    findings
}

/// What becomes of a profile that is chosen for all while `leading` has most and is not to be chosen: what devboy chose goes back
/// to `auto` once another one leads.
pub fn unpinned(view: &View<'_>, key: KeyPath, leading: &str, why: &str) -> Verdict {
    let now = view.value(&key);
    let chosen = now.as_ref().and_then(Value::as_str).unwrap_or("auto");
    if chosen == "auto" || chosen == leading || view.line_by_hand(&key).is_some() {
        return Verdict::Hold(format!("{why}; `{chosen}` stays"));
    }
    Verdict::Propose(Delta { key, from: now, to: Value::from("auto") })
}

/// A shipped value only fills a new block: it gives way to what another rule measured, and one of it is enough.
fn drop_fillers(findings: &mut Vec<Finding>) {
    let is_shipped = |finding: &Finding| finding.evidence.basis == Basis::Shipped;
    let measured = findings.iter().filter(|finding| !is_shipped(finding)).filter_map(Finding::proposed);
    let measured: BTreeSet<KeyPath> = measured.map(|delta| delta.key.clone()).collect();
    let mut filled = BTreeSet::new();
    findings.retain(|finding| match finding.proposed() {
        Some(delta) if is_shipped(finding) => !measured.contains(&delta.key) && filled.insert(delta.key.clone()),
        _ => true,
    });
}

/// A name with hidden characters was changed when it was read, so that a key with it would mean another tool, or none.
fn hold_unspeakable(findings: &mut [Finding]) {
    for finding in findings {
        let is_odd = |delta: &Delta| {
            delta.key.0.iter().any(|segment| is_written_out(segment)) || is_written_out(&delta.to.to_string())
        };
        if finding.proposed().is_some_and(is_odd) {
            finding.verdict = Verdict::Hold("a name in it holds characters that cannot be seen".to_owned());
        }
    }
}

fn hold_pinned(findings: &mut [Finding], view: &View<'_>) {
    for finding in findings {
        if let Some(reason) = finding.proposed().and_then(|delta| pin_words(view, &delta.key)) {
            finding.verdict = Verdict::Hold(reason);
        }
    }
}

/// Why a rule may not write a key, whatever it finds: it is pinned, or another rule's.
pub fn closed(rule: &str, key: &KeyPath, view: &View<'_>, precedence: &KeyOwners) -> Option<String> {
    pin_words(view, key).or_else(|| precedence.kept(rule, key))
}

fn pin_words(view: &View<'_>, key: &KeyPath) -> Option<String> {
    let pin = view.pin_against(key)?;
    let overrules = if pin == *key { String::new() } else { format!(", which `{key}` would overrule") };
    Some(format!("`{pin}` is marked `# pin`{overrules}"))
}

/// Of two rules that want the same key, now or one after the other, the one gets it to which it belongs. Where nobody
/// settled that, they are reported by name and neither gets it.
fn hold_conflicts(findings: &mut [Finding], precedence: &KeyOwners) {
    let mut wanted: BTreeMap<KeyPath, BTreeSet<&'static str>> = BTreeMap::new();
    for finding in findings.iter() {
        if let Some(delta) = finding.proposed() {
            wanted.entry(delta.key.clone()).or_default().insert(finding.rule);
        }
    }
    for finding in findings {
        let Some(key) = finding.proposed().map(|delta| delta.key.clone()) else { continue };
        let rules: Vec<&str> = wanted[&key].iter().copied().collect();
        let settled = precedence.kept(finding.rule, &key).or_else(|| precedence.lost(finding.rule, &rules, &key));
        let gives_way = |rule: &&str| precedence.lost(rule, &[finding.rule], &key).is_some();
        let disputed = || rules.iter().filter(|rule| **rule != finding.rule).any(|rule| !gives_way(rule));
        if let Some(reason) = settled {
            finding.verdict = Verdict::Hold(reason);
        } else if disputed() {
            finding.verdict = Verdict::Hold(format!("rules {} both want `{key}`", rules.join(" and ")));
        }
    }
}

/// Adds to the proposals for a new block of a tool what is shipped for it, by the rule that wants the block.
fn complete(findings: &mut Vec<Finding>, file: &SettingsFile, annotations: &Annotations) {
    let keys: Vec<KeyPath> = findings.iter().filter_map(Finding::proposed).map(|delta| delta.key.clone()).collect();
    for (key, to, annotation) in hidden(file, keys.iter(), annotations).into_iter().rev() {
        let is_of_block = |finding: &Finding| finding.proposed().is_some_and(|delta| delta.key.0[..2] == key.0[..2]);
        let Some(first) = findings.iter().position(is_of_block) else { continue };
        let (rule, tool) = (findings[first].rule, key.0[1].clone());
        let evidence = shipped(&annotation);
        findings.insert(first, Finding::new(rule, tool, Verdict::Propose(Delta { key, from: None, to }), evidence));
    }
}

/// Deltas as edits: the keys of an entry that is not there yet become one block. A file without any key begins with its
/// version.
fn changes(file: &SettingsFile, deltas: &[&Delta]) -> Vec<WantedValue> {
    let mut blocks: BTreeMap<KeyPath, InlineTable> = BTreeMap::new();
    let mut out: Vec<WantedValue> = Vec::new();
    out.extend((file.is_bare() && !deltas.is_empty()).then(WantedValue::version));
    for delta in deltas {
        match entry_of(&delta.key).filter(|entry| file.get(entry).is_none()) {
            None => out.push(WantedValue { key: delta.key.clone(), value: Some(delta.to.clone()) }),
            Some(entry) => {
                let table = blocks.entry(entry.clone()).or_default();
                put(table, &delta.key.below(&entry).0, delta.to.clone());
            }
        }
    }
    out.extend(blocks.into_iter().map(|(key, table)| WantedValue { key, value: Some(table.into()) }));
    out
}

/// The entry of a map that a key belongs to: `tools.X`, `profiles.<axis>.variants.X`.
fn entry_of(key: &KeyPath) -> Option<KeyPath> {
    let length = match key.0.first()?.as_str() {
        "tools" => 2,
        "profiles" if key.0.get(2).is_some_and(|segment| segment == "variants") => 4,
        _ => return None,
    };
    (key.0.len() > length).then(|| KeyPath(key.0[..length].to_vec()))
}

/// The data file.
const SHEET: &str = "precedence.toml";

/// Who has which key, and who wrote what stands there.
#[derive(Debug, Default)]
pub struct KeyOwners {
    rows: Vec<Row>,
    place: String,
    /// By key: the rule that wrote it last, and when.
    written: BTreeMap<String, (String, Millis)>,
    /// Time of the last response that the rules were told of.
    seen_until: Option<Millis>,
}

#[derive(Debug, Deserialize)]
struct PrecedenceFile {
    key: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    /// Keys in which `*` stands for one part.
    keys: Vec<String>,
    first: String,
    then: String,
    reason: String,
}

impl Row {
    fn has(&self, key: &KeyPath) -> bool {
        let is_part = |(part, segment): (&str, &String)| part == "*" || part == segment;
        let fits =
            |pattern: &String| pattern.split('.').count() == key.0.len() && pattern.split('.').zip(&key.0).all(is_part);
        self.keys.iter().any(fits)
    }
}

impl KeyOwners {
    /// Reads the table, and from the journal beside the configuration which rule wrote what; `seen_until` is the time of
    /// the last response that the rules are told of.
    pub fn load(data: &Data, file: &SettingsFile, seen_until: Option<Millis>) -> Result<Self> {
        let sheet = data.file(SHEET)?;
        let rows = sheet.parsed::<PrecedenceFile>()?.key;
        let journal = journal_of(file)?;
        let changes = journal.holding().flat_map(|entry| entry.changes.iter().map(|change| (entry.at_ms, change)));
        let written = changes.map(|(at_ms, change)| (change.key.clone(), (change.rule.clone(), at_ms))).collect();
        Ok(Self { rows, place: sheet.place, written, seen_until })
    }

    /// Why a rule must leave a key alone that another one wrote; none if it need not.
    pub fn kept(&self, rule: &str, key: &KeyPath) -> Option<String> {
        let (writer, at_ms) = self.written.get(&key.to_string())?;
        let row = self.row(writer, rule, key)?;
        let nothing_later = self.seen_until.is_none_or(|seen| seen <= *at_ms);
        nothing_later
            .then(|| format!("{}, written on {}, with nothing recorded since", self.words(row, key), date(*at_ms)))
    }

    /// Why a rule does not get a key that `rivals` want as well; none if it does, or if nobody settled that.
    pub fn lost(&self, rule: &str, rivals: &[&str], key: &KeyPath) -> Option<String> {
        rivals.iter().find_map(|rival| self.row(rival, rule, key)).map(|row| self.words(row, key))
    }

    fn row(&self, first: &str, then: &str, key: &KeyPath) -> Option<&Row> {
        let fits = |row: &&Row| row.first == first && row.then == then && row.has(key);
        self.rows.iter().find(fits)
    }

    fn words(&self, row: &Row, key: &KeyPath) -> String {
        format!("`{key}` is {}'s: {} ({})", row.first, row.reason, self.place)
    }
}
