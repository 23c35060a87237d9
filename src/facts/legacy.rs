//! What the published pipeline would have sent, losses included: only so that its claims can be shown beside the truth.
//! Nothing here is ever counted as saved.
//!
//! Two things it would have rewritten are left alone, as they cannot be told from the text it would have read: numbers
//! keep their spelling, and a body with a repeated key has no output.

use std::collections::{BTreeSet, HashMap};

use crate::base::body_shape::BodyShape;
use crate::facts::cell::write_record;
use crate::facts::json_tree::Json;
use crate::facts::shape::{self, Description};

/// Fewest columns of a table that is written as CSV (`markdown_table_min_cols`).
const COLUMNS_MIN: usize = 2;
/// Fewest elements of an array that is written as CSV (`array_of_objects_min_items`).
const ITEMS_MIN: u32 = 4;
/// Lowest key stability of the same (`array_of_objects_min_key_stability`).
const KEY_STABILITY_MIN: f32 = 0.7;
/// Fewest fields of an object that is written as lines (`flat_object_min_fields`).
const FIELDS_MIN: u32 = 8;
/// Elements whose keys become columns of a CSV.
const CSV_ELEMENTS_MAX: usize = 200;
/// Share of objects in an array that is written as an inner table, in percent, rounded down.
const OBJECTS_PERCENT_MIN: usize = 80;

/// The id and the text that the published router (L2) would have chosen with its default thresholds: one candidate by
/// shape, kept if it has fewer bytes than the body.
pub fn published_output(text: &str, shape: BodyShape) -> Option<(&'static str, String)> {
    let bytes_max = text.len().checked_sub(1)?;
    if shape == BodyShape::MarkdownTable {
        let table = FirstTable::find(text).filter(|table| table.columns() >= COLUMNS_MIN)?;
        return Some(("csv_from_md", table.csv(bytes_max)?));
    }
    if !matches!(shape, BodyShape::ArrayOfObjects | BodyShape::NestedObject | BodyShape::FlatObject) {
        return None;
    }
    let json = Json::parse(text).ok()?;
    let described = shape::describe(text, shape);
    let (id, chosen, otherwise) = match shape {
        BodyShape::ArrayOfObjects => ("csv", array_csv(&json, described, bytes_max), "json_compact"),
        BodyShape::FlatObject => ("kv", flat_kv(&json, described), "json_compact"),
        _ => ("deep_mckp_inner_table", inner_table(&json, bytes_max), "deep_mckp"),
    };
    let fits = |output: &String| output.len() <= bytes_max;
    let compact = || Some((otherwise, json.compact())).filter(|(_, output)| fits(output));
    chosen.filter(fits).map(|output| (id, output)).or_else(compact)
}

/// The first table of a text. Everything else of the text is dropped.
struct FirstTable<'a> {
    header: &'a str,
    rows: Vec<&'a str>,
}

impl<'a> FirstTable<'a> {
    fn find(text: &'a str) -> Option<Self> {
        let mut lines = text.lines();
        let mut header = "";
        loop {
            let line = lines.next()?;
            if header.trim_start().starts_with('|') && is_separator(line) {
                break;
            }
            header = line;
        }
        let rows = lines.take_while(|line| !line.trim().is_empty()).filter(|line| line.trim_start().starts_with('|'));
        Some(Self { header, rows: rows.collect() })
    }

    /// Columns as the published classifier counts them: blanks around the header make one more.
    fn columns(&self) -> usize {
        self.header.trim_matches('|').split('|').filter(|cell| !cell.is_empty()).count()
    }

    /// Rows cut or filled up to the width of the header; `None` if that takes more than `bytes_max`.
    fn csv(&self, bytes_max: usize) -> Option<String> {
        let columns = cells(self.header).count();
        let mut out = String::new();
        write_row(cells(self.header), &mut out);
        for row in &self.rows {
            write_row(cells(row).chain(std::iter::repeat("")).take(columns), &mut out);
            if out.len() > bytes_max {
                return None;
            }
        }
        Some(out)
    }
}

fn is_separator(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('|') && line.chars().all(|char| matches!(char, '|' | '-' | ':') || char.is_whitespace())
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim().trim_matches('|').split('|').map(str::trim)
}

fn write_row<'a>(cells: impl Iterator<Item = &'a str>, out: &mut String) {
    write_record(cells, [',', '"', '\n'], out);
}

/// A value without quotes: nothing for `null`, a string as it reads, a container as compact JSON.
fn plain(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.compact(),
    }
}

/// Columns in the order of the alphabet, of the first elements only; `None` over `bytes_max`.
fn array_csv(json: &Json, described: Description, bytes_max: usize) -> Option<String> {
    let elements = json.as_array()?;
    if described.items < ITEMS_MIN || described.key_stability < KEY_STABILITY_MIN {
        return None;
    }
    let rows = || elements.iter().filter_map(Json::as_object);
    let columns: BTreeSet<&str> = rows().take(CSV_ELEMENTS_MAX).flatten().map(|(key, _)| key.as_str()).collect();
    let columns: Vec<&str> = columns.into_iter().collect();
    let mut out = columns.join(",") + "\n";
    for row in rows() {
        let cells = cells_of(row, &columns);
        write_row(cells.iter().map(|cell| cell.as_deref().unwrap_or_default()), &mut out);
        if out.len() > bytes_max {
            return None;
        }
    }
    Some(out)
}

/// The cells of an object, one per column; `None` where it has no such key.
fn cells_of(row: &[(String, Json)], columns: &[&str]) -> Vec<Option<String>> {
    let by_key: HashMap<&str, &Json> = row.iter().map(|(key, value)| (key.as_str(), value)).collect();
    columns.iter().map(|column| by_key.get(column).map(|value| plain(value))).collect()
}

fn flat_kv(json: &Json, described: Description) -> Option<String> {
    let members = json.as_object().filter(|_| described.fields >= FIELDS_MIN)?;
    Some(members.iter().map(|(key, value)| format!("{key}: {}\n", plain(value))).collect())
}

/// The largest array of objects as a table without its name, the other members as lines above it; `None` over
/// `bytes_max`.
fn inner_table(json: &Json, bytes_max: usize) -> Option<String> {
    let members = json.as_object()?;
    let chosen = largest_array(members)?;
    let rows = || members[chosen].1.as_array().into_iter().flatten().filter_map(Json::as_object);
    let mut seen = BTreeSet::new();
    let columns: Vec<&str> = rows().flatten().map(|(key, _)| key.as_str()).filter(|key| seen.insert(*key)).collect();
    if columns.is_empty() {
        return None;
    }
    let mut out = String::new();
    let others = members.iter().enumerate().filter(|(index, (_, value))| *index != chosen && *value != Json::Null);
    others.for_each(|(_, (key, value))| out.extend([key, ": ", &plain(value), "\n"]));
    out.push_str(if out.is_empty() { "" } else { "\n" });
    out += &format!("| {} |\n", columns.join(" | "));
    out += &format!("|{}\n", " --- |".repeat(columns.len()));
    for row in rows() {
        let cells = cells_of(row, &columns).into_iter().map(|cell| inline(&cell.unwrap_or_default()));
        out += &format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        if out.len() > bytes_max {
            return None;
        }
    }
    Some(out)
}

fn inline(cell: &str) -> String {
    cell.replace('|', "\\|").replace(['\r', '\n'], " ")
}

/// The position of the longest member that is mostly objects, the first one of those.
fn largest_array(members: &[(String, Json)]) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for (index, (_, value)) in members.iter().enumerate() {
        let Some(elements) = value.as_array() else { continue };
        let objects = elements.iter().filter(|element| element.as_object().is_some()).count();
        let fits = elements.len() >= 2
            && elements[0].as_object().is_some()
            && objects * 100 / elements.len() >= OBJECTS_PERCENT_MIN;
        if fits && best.is_none_or(|(_, longest)| elements.len() > longest) {
            best = Some((index, elements.len()));
        }
    }
    best.map(|(index, _)| index)
}
