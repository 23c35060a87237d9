//! Damage and skipped input, by reason, with the first place of each.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::base::damage::{Damage, Reason};
use crate::base::error::Result;
use crate::logs::corpus::RowSource;
use crate::report::numbers::thousands;
use crate::report::table::{Table, TableBuilder};

/// One reason over all files; as it stands in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quality {
    pub count: u64,
    /// Files with at least one case.
    pub files: u64,
    /// `file:line` of the first case.
    pub first: String,
}

/// Damage of all logs, by reason.
pub fn of(sources: &[RowSource]) -> BTreeMap<Reason, Quality> {
    let damage = |source: &RowSource| {
        let mut damage = source.counters.damage.clone();
        // A journal is not a damaged session log because its records are of other types, with other fields.
        let counts =
            |reason: &Reason| !matches!(reason, Reason::UnknownType | Reason::MissingField | Reason::MistypedField);
        damage.0.retain(|reason, _| !source.is_sidecar() || counts(reason));
        damage
    };
    let damaged: Vec<(String, Damage)> = sources.iter().map(|source| (source.shown(), damage(source))).collect();
    of_files(damaged.iter().map(|(name, damage)| (name.clone(), damage)))
}

/// Damage of all files, by reason.
pub fn of_files<'d>(files: impl Iterator<Item = (String, &'d Damage)>) -> BTreeMap<Reason, Quality> {
    let mut out: BTreeMap<Reason, Quality> = BTreeMap::new();
    for (name, damage) in files {
        for (&reason, spot) in &damage.0 {
            let place = || if spot.line == 0 { name.clone() } else { format!("{name}:{}", spot.line) };
            let row = out.entry(reason).or_insert_with(|| Quality { count: 0, files: 0, first: place() });
            row.count += spot.count;
            row.files += 1;
        }
    }
    out
}

/// The table for people.
pub fn table(quality: &BTreeMap<Reason, Quality>) -> Table {
    TableBuilder::of(quality)
        .text("reason", |(reason, _)| reason.into_str().to_owned())
        .count("count", |(_, row)| row.count)
        .count("files", |(_, row)| row.files)
        .text("what became of it", |(reason, _)| reason.outcome().to_owned())
        .table()
}

/// Counts by reason, on one line.
pub fn in_a_line(quality: &BTreeMap<Reason, Quality>) -> String {
    let words = quality.iter().map(|(reason, row)| format!("{} {}", thousands(row.count), reason.into_str()));
    words.collect::<Vec<_>>().join(", ")
}

/// Where each reason was seen first, a line each, so that a path can be copied.
pub fn write_places(out: &mut dyn std::io::Write, quality: &BTreeMap<Reason, Quality>) -> Result<()> {
    for (reason, row) in quality {
        writeln!(out, "first {:<18} {}", reason.into_str(), row.first)?;
    }
    Ok(())
}
