//! The changes of Claude Code's settings that the journal knows: those of one entry that concern the same requests are one
//! change, since the bill does not tell them apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::Id;
use crate::settings::entries::{BillForecast, Journal, JournalChange, JournalEntry};
use crate::whatif::client::LeverPart;

/// Changes of one entry that concern the same requests.
#[derive(Clone, PartialEq, Debug)]
pub struct JointChange<'j> {
    /// The changed keys.
    pub keys: Vec<&'j str>,
    /// The requests that they concern.
    pub part: LeverPart,
    /// The projects that none of them reaches.
    pub without: BTreeSet<Id>,
    /// What was expected of all of them; none if nothing was of one.
    pub forecast: Option<BillForecast>,
}

/// What an entry of the journal changed.
pub fn joint_changes<'j>(entry: &'j JournalEntry, journal: &Journal) -> Vec<JointChange<'j>> {
    let mut by_part: BTreeMap<LeverPart, Vec<&JournalChange>> = BTreeMap::new();
    for change in &entry.changes {
        by_part.entry(part(change, journal)).or_default().push(change);
    }
    // What concerns all requests concerns those of the others, too.
    if by_part.contains_key(&LeverPart::All) {
        by_part = BTreeMap::from([(LeverPart::All, entry.changes.iter().collect())]);
    }
    let joint = |(part, changes): (LeverPart, Vec<&'j JournalChange>)| JointChange {
        keys: changes.iter().map(|change| change.key.as_str()).collect(),
        part,
        without: without(changes.iter().filter_map(|change| told(change, journal))),
        forecast: forecast(entry, &changes),
    };
    by_part.into_iter().map(joint).collect()
}

/// What was told of a change. One that takes another back has no forecast: the other one has it.
fn told<'j>(change: &'j JournalChange, journal: &'j Journal) -> Option<&'j BillForecast> {
    let mut all = std::iter::once(change).chain(journal.entries.iter().flat_map(|entry| &entry.changes));
    all.find_map(|one| one.forecast.as_ref().filter(|_| one.key == change.key))
}

/// The requests that a change concerns.
fn part(change: &JournalChange, journal: &Journal) -> LeverPart {
    told(change, journal).and_then(|told| told.part.parse().ok()).unwrap_or(LeverPart::All)
}

/// The projects that none of some changes reaches.
fn without<'f>(told: impl Iterator<Item = &'f BillForecast>) -> BTreeSet<Id> {
    told.map(|told| told.without.clone()).reduce(|all, more| &all & &more).unwrap_or_default()
}

/// What was expected of some changes of an entry. Where nobody tried them together, they save at least what the best of them
/// does alone, and at most all that they save alone.
fn forecast(entry: &JournalEntry, changes: &[&JournalChange]) -> Option<BillForecast> {
    let told: Vec<&BillForecast> = changes.iter().map(|change| change.forecast.as_ref()).collect::<Option<_>>()?;
    let (&first, others) = told.split_first()?;
    if others.is_empty() {
        return Some(first.clone());
    }
    if entry.together.is_some() && changes.len() == entry.changes.len() {
        return entry.together.clone();
    }
    let of_bill =
        |told: &BillForecast, end: f64| if told.change == 0.0 { end } else { end * told.of_bill / told.change };
    let sum = |end: fn(&BillForecast) -> f64| told.iter().map(|told| of_bill(told, end(told))).sum::<f64>();
    Some(BillForecast {
        part: <&str>::from(LeverPart::All).to_owned(),
        without: without(told.iter().copied()),
        change: sum(|told| told.change),
        lower: sum(|told| told.lower),
        upper: told.iter().map(|told| of_bill(told, told.upper)).fold(f64::INFINITY, f64::min),
        of_bill: sum(|told| told.change),
        usd: None,
        beside: None,
        ..first.clone()
    })
}
