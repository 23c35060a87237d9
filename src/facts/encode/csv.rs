//! A JSON array of objects as CSV: the keys once, then a record per element (grammar and example: docs/formats.md). Quotes tell
//! a string from the number, literal or container that it looks like; a field with nothing in it is a missing key.

use crate::facts::cell::{CellGrid, CsvField, GridColumns, as_json, read_field, spells_json, write_quoted};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::json_tree::{Json, write_string};

/// CSV with line feeds between records, quotes doubled, columns of all elements in document order.
pub const FORMAT: Format = Format { id: "csv", family: FormatFamily::Published, by_depth: false, encode, decode };

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    let grid = CellGrid::of(subject.json()?.as_array()?, subject.text.len())?;
    let mut out = String::new();
    for (index, name) in grid.columns.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        write_field(name, name.is_empty(), &mut out);
    }
    for cells in grid.rows() {
        for (index, cell) in cells.into_iter().enumerate() {
            out.push(if index > 0 { ',' } else { '\n' });
            write_cell(cell, &mut out);
        }
    }
    Some(out)
}

fn decode(text: &str) -> Option<Meaning> {
    let mut fields = Fields { rest: Some(text) };
    let names = fields.record(|field| (field.quoted || !field.text.is_empty()).then(|| field.text.into_owned()))?;
    let columns = GridColumns::new(names)?;
    let mut rows = Vec::new();
    while fields.rest.is_some() {
        rows.push(columns.object(fields.record(|field| Some(read_cell(field)))?)?);
    }
    (!rows.is_empty()).then_some(Meaning::Json(Json::Array(rows)))
}

fn write_cell(cell: Option<&Json>, out: &mut String) {
    match cell {
        None => {}
        Some(value) if is_literal(value) => value.write_compact(out),
        Some(Json::String(text)) => match as_json(text.trim_start()) {
            Some(literal) if is_literal(&literal) => write_field(text, true, out),
            None if !spells_json(text) => write_field(text, text.is_empty(), out),
            _ => write_field(&as_string(text), true, out),
        },
        Some(container) => write_field(&container.compact(), false, out),
    }
}

fn read_cell(field: CsvField<'_>) -> Option<Json> {
    match as_json(&field.text) {
        Some(value) if !(field.quoted && is_literal(&value)) => Some(value),
        _ if field.quoted || !field.text.is_empty() => Some(Json::String(field.text.into_owned())),
        _ => None,
    }
}

fn as_string(text: &str) -> String {
    let mut out = String::new();
    write_string(text, &mut out);
    out
}

/// Whether a value is a word or a number, which quotes turn into a string.
fn is_literal(value: &Json) -> bool {
    matches!(value, Json::Null | Json::Bool(_) | Json::Number(_))
}

fn write_field(text: &str, quoted: bool, out: &mut String) {
    if quoted || needs_quotes(text) { write_quoted(text, out) } else { out.push_str(text) }
}

fn needs_quotes(text: &str) -> bool {
    text.contains([',', '"', '\n', '\r']) || text.trim() != text
}

/// The fields that are still ahead; no text at all once the last record was read.
struct Fields<'a> {
    rest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// The fields of the next record, each as `read` takes it.
    fn record<T>(&mut self, read: impl Fn(CsvField<'a>) -> Option<T>) -> Option<Vec<T>> {
        let mut values = Vec::new();
        loop {
            let (field, ends_record) = self.field()?;
            values.push(read(field)?);
            if ends_record {
                return Some(values);
            }
        }
    }

    /// The next field, and whether it is the last one of its record.
    fn field(&mut self) -> Option<(CsvField<'a>, bool)> {
        let (field, behind) = read_field(self.rest?, |bare| !needs_quotes(bare))?;
        self.rest = match behind.strip_prefix([',', '\n']) {
            None if !behind.is_empty() => return None,
            ahead => ahead,
        };
        Some((field, !behind.starts_with(',')))
    }
}
