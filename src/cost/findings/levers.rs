//! The exact thing to set: levers and files as `tune claude-settings` knows them, and what to update before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cost::findings::{Advice, BillEvidence, Case};
use crate::settings::claude::levers::{Lever, LeverPlace, LeverUse};
use crate::whatif::client::thresholds::known;

/// Where it is set for all projects of a person (whoever tells it knows the file), and for some.
const USER: &str = "{settings}";
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

impl<'e> BillEvidence<'e> {
    /// The levers that a rule of `tune claude-settings` owns.
    pub fn owned(&self, rule: &str) -> Vec<&'e Lever> {
        self.levers.all().filter(|lever| lever.fate() == LeverUse::Rule(rule)).collect()
    }
}

impl Settable<'_> {
    /// A case that says so: in words, the same where it holds in parts of one kind only, by kind (`{parts}` stands for
    /// their names), and for programs.
    pub fn case(&self, evidence: &BillEvidence<'_>, value: &str, case: Case) -> Case {
        let value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
        let advice = |file: &str, groups: &[Vec<&Lever>]| Advice {
            words: sentence(evidence, groups, &value, file, self.so),
            update: groups.iter().find_map(|group| known(group, &evidence.study.versions).err()),
        };
        let mut parts = BTreeMap::from([("project", advice(PROJECT, &self.groups))]);
        if let Some(lever) = self.for_model.and_then(|name| evidence.levers.named(name)) {
            parts.insert("model", advice(USER, &[vec![lever]]));
        }
        let levers = self.groups.iter().filter_map(|group| preferred(evidence, group));
        let sets = levers.map(|lever| Assignment { lever: lever.name.clone(), value: lever.spelled(&value) });
        Case { advice: advice(USER, &self.groups), advice_in: parts, sets: sets.collect(), ..case }
    }
}

/// A lever and the value that it is to get.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// Its name.
    pub lever: String,
    /// As it stands in a file.
    pub value: Value,
}

/// One sentence: of each group the lever that every client knows, else the preferred one.
fn sentence(
    evidence: &BillEvidence<'_>,
    groups: &[Vec<&Lever>],
    value: &Value,
    file: &str,
    so: Option<&str>,
) -> String {
    let set: Vec<String> =
        groups.iter().filter_map(|group| preferred(evidence, group)).map(|lever| assignment(lever, value)).collect();
    let so = so.map(|so| format!(" ({so})")).unwrap_or_default();
    format!("in {file} set {}{so}", set.join(" and "))
}

/// Of a group the lever that every client knows, else its first one.
fn preferred<'l>(evidence: &BillEvidence<'_>, group: &[&'l Lever]) -> Option<&'l Lever> {
    known(group, &evidence.study.versions).ok().or(group.first().copied())
}

/// As it stands in the file.
fn assignment(lever: &Lever, value: &Value) -> String {
    let (name, value) = (&lever.name, lever.spelled(value));
    match (lever.place, name.split_once(".*.")) {
        (LeverPlace::Variable, _) => format!("\"env\": {{ \"{name}\": {value} }}"),
        (_, Some((of, key))) => format!("\"{key}\": {value} under \"{of}\" for {{parts}}"),
        _ => format!("\"{name}\": {value}"),
    }
}
