//! The exact thing to set: levers and files as `tune claude-settings` knows them, and what to update before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::client_version::ClientVersion;
use crate::cost::findings::search::BillFinding;
use crate::cost::findings::{Advice, BillEvidence, Case};
use crate::settings::claude::levers::{Lever, LeverPlace, LeverUse, Levers};
use crate::whatif::client::thresholds::{Versions, deciding, known};

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
    /// A case that says so: what to do, and the same where it holds in parts of one kind only, by kind (`{parts}` stands for
    /// their names).
    pub fn case(&self, evidence: &BillEvidence<'_>, value: &str, case: Case) -> Case {
        let value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
        let advice = |file: &str, groups: &[Vec<&Lever>], is_for_all| {
            let names = |group: &Vec<&Lever>| group.iter().map(|lever| lever.name.clone()).collect();
            let (groups, so) = (groups.iter().map(names).collect(), self.so.map(str::to_owned));
            Advice::Set(LeverAdvice { groups, value: value.clone(), file: file.to_owned(), so, is_for_all })
        };
        let mut parts = BTreeMap::from([("project", advice(PROJECT, &self.groups, false))]);
        if let Some(lever) = self.for_model.and_then(|name| evidence.levers.named(name)) {
            parts.insert("model", advice(USER, &[vec![lever]], false));
        }
        Case { advice: advice(USER, &self.groups, true), advice_in: parts, ..case }
    }
}

/// What is to be set, before anybody asks which clients are in use and what the file holds already.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeverAdvice {
    /// Names of levers that are set together; of each group one.
    groups: Vec<Vec<String>>,
    value: Value,
    file: String,
    so: Option<String>,
    /// Whether it is one setting for everything, in the user's file.
    is_for_all: bool,
}

/// The client version that repairs something, and what is said where every client in use has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Repair {
    /// The first version with it.
    pub since: String,
    /// What is said then.
    pub words: String,
}

impl Repair {
    fn is_in_all(&self, versions: &Versions) -> bool {
        let Some(since) = ClientVersion::parse(&self.since) else { return false };
        let has = |client: &String| ClientVersion::parse(client).is_some_and(|client| client >= since);
        !versions.is_empty() && versions.keys().all(has)
    }
}

/// Says of findings what is to be set or updated where the `clients` of each are in use, in a file that `holds` some levers already.
pub fn settle<'v>(
    findings: &mut [BillFinding],
    levers: &Levers,
    clients: impl Fn(&BillFinding) -> &'v Versions,
    holds: impl Fn(&Lever) -> bool,
) {
    for finding in findings {
        let versions = clients(finding);
        if let Some(repair) = finding.repair.as_ref().filter(|repair| repair.is_in_all(versions)) {
            finding.advice.clone_from(&repair.words);
        }
        let Some(advice) = &finding.to_set else { continue };
        let groups = advice.groups.iter().map(|group| group.iter().filter_map(|name| levers.named(name)).collect());
        let groups: Vec<Vec<&Lever>> = groups.collect();
        let is_held = |lever: &Lever| advice.is_for_all && holds(lever);
        let decided = groups.iter().map(|group| (deciding(group, versions, is_held), group));
        // Before an update the first one is told of.
        let chosen: Vec<&Lever> = decided.filter_map(|(found, group)| found.ok().or(group.first().copied())).collect();
        let set: Vec<String> = chosen.iter().map(|lever| assignment(lever, &advice.value)).collect();
        let so = advice.so.as_ref().map(|so| format!(" ({so})")).unwrap_or_default();
        finding.advice = format!("in {} set {}{so}", advice.file, set.join(" and "));
        finding.update = groups.iter().find_map(|group| known(group, versions).err());
        let assigned = |lever: &&Lever| Assignment { lever: lever.name.clone(), value: lever.spelled(&advice.value) };
        let sets = if advice.is_for_all { &mut finding.sets } else { &mut finding.part_sets };
        *sets = chosen.iter().map(assigned).collect();
    }
}

/// A lever and the value that it is to get.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Assignment {
    pub lever: String,
    /// As it stands in a file.
    pub value: Value,
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
