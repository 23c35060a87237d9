//! The exact thing to set: levers and files as `tune claude-settings` knows them, and what to update before.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cost::findings::Evidence;
use crate::settings::claude::levers::{Fate, Lever, Place};
use crate::whatif::client::sheet::known;

/// Where it is set for everybody's projects, and for some.
const USER: &str = "~/.claude/settings.json";
const PROJECT: &str = ".claude/settings.json of {parts}";

/// What is to be set.
pub struct Settable<'s> {
    /// Levers that are set together; of each group the first that the clients in use know.
    pub groups: Vec<Vec<&'s Lever>>,
    /// The lever where it holds with some models only.
    pub for_model: Option<&'s str>,
    /// What comes of it.
    pub so: Option<&'s str>,
}

impl<'e> Evidence<'e> {
    /// The levers that a rule of `tune claude-settings` owns.
    pub fn owned(&self, rule: &str) -> Vec<&'e Lever> {
        self.levers.all().filter(|lever| lever.fate() == Fate::Rule(rule)).collect()
    }
}

impl Settable<'_> {
    /// In words; and the same where it holds in parts of one kind only, by kind. `{parts}` stands for their names.
    pub fn advice(&self, evidence: &Evidence<'_>, value: &str) -> (String, BTreeMap<&'static str, String>) {
        let value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
        let words = |file: &str, groups: &[Vec<&Lever>]| sentence(evidence, groups, &value, file, self.so);
        let mut parts = BTreeMap::from([("project", words(PROJECT, &self.groups))]);
        if let Some(lever) = self.for_model.and_then(|name| evidence.levers.named(name)) {
            parts.insert("model", words(USER, &[vec![lever]]));
        }
        (words(USER, &self.groups), parts)
    }
}

/// One sentence: of each group the lever that every client knows; if there is none, what to update, and the preferred one.
fn sentence(evidence: &Evidence<'_>, groups: &[Vec<&Lever>], value: &Value, file: &str, so: Option<&str>) -> String {
    let mut update = None;
    let mut set: Vec<String> = Vec::new();
    for group in groups {
        let lever = known(group, &evidence.study.versions).map_err(|why| _ = update.get_or_insert(why));
        set.extend(lever.ok().or(group.first().copied()).map(|lever| assignment(lever, value)));
    }
    let before = update.map(|why| format!("{why}. Then ")).unwrap_or_default();
    let so = so.map(|so| format!(" ({so})")).unwrap_or_default();
    format!("{before}in {file} set {}{so}", set.join(" and "))
}

/// As it stands in the file.
fn assignment(lever: &Lever, value: &Value) -> String {
    let (name, value) = (&lever.name, lever.spelled(value));
    match (lever.place, name.split_once(".*.")) {
        (Place::Variable, _) => format!("\"env\": {{ \"{name}\": {value} }}"),
        (_, Some((of, key))) => format!("\"{key}\": {value} under \"{of}\" for {{parts}}"),
        _ => format!("\"{name}\": {value}"),
    }
}
