//! Which rule a key belongs to where two rules want it: settled once, in `rules/precedence.toml`, for all commands.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::logs::trace::Millis;
use crate::report::numbers::date;
use crate::settings::{SettingsFile, journal_name, journal_path, read_journal};

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
#[serde(deny_unknown_fields)]
struct PrecedenceFile {
    key: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
    ///
    /// # Errors
    /// If the table does not fit, or the journal cannot be read.
    pub fn load(data: &Data, file: &SettingsFile, seen_until: Option<Millis>) -> Result<Self> {
        let sheet = data.file(SHEET)?;
        let rows = sheet.parsed::<PrecedenceFile>()?.key;
        let journal = read_journal(&journal_path(&file.path))?.about(&journal_name(&file.path));
        let changes = journal.entries.iter().flat_map(|entry| entry.changes.iter().map(|change| (entry.at_ms, change)));
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
