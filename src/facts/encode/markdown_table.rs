//! A JSON array of objects as a pipe table: the keys once, then a row per element.

use crate::facts::cell::{CellGrid, GridColumns, read_name, read_value, write_name, write_value};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::json_tree::Json;

/// A pipe table, cells spelled as in [`crate::facts::cell`]; a cell with nothing in it is a missing key.
pub const FORMAT: Format =
    Format { id: "markdown_table", family: FormatFamily::Published, by_depth: false, encode, decode };

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    let grid = CellGrid::of(subject.json()?.as_array()?, subject.text.len())?;
    let mut out = String::new();
    write_table(&grid, &mut out);
    Some(out)
}

fn decode(text: &str) -> Option<Meaning> {
    read_table(text).map(Meaning::Json)
}

/// Appends a grid as a pipe table, without a last line feed.
pub fn write_table(grid: &CellGrid<'_>, out: &mut String) {
    for name in &grid.columns {
        write_cell(out, |out| write_name(name, out));
    }
    out.push_str("|\n");
    out.extend(grid.columns.iter().map(|_| "| --- "));
    out.push('|');
    for cells in grid.rows() {
        out.push('\n');
        for cell in cells {
            match cell {
                Some(value) => write_cell(out, |out| write_value(value, out)),
                None => out.push_str("| "),
            }
        }
        out.push('|');
    }
}

/// Reads a table that [`write_table`] wrote: the array of its objects.
pub fn read_table(text: &str) -> Option<Json> {
    let mut lines = text.split('\n');
    let names: Vec<String> = cells(lines.next()?)?.map(|cell| read_name(&cell??)).collect::<Option<_>>()?;
    if lines.next()? != format!("{}|", "| --- ".repeat(names.len())) {
        return None;
    }
    let columns = GridColumns::new(names)?;
    let row = |line| {
        let values = cells(line)?.map(|cell| match cell? {
            Some(text) => read_value(&text).map(Some),
            None => Some(None),
        });
        columns.object(values.collect::<Option<_>>()?)
    };
    let rows: Vec<Json> = lines.map(row).collect::<Option<_>>()?;
    (!rows.is_empty()).then_some(Json::Array(rows))
}

/// Appends a bar and the text of a cell. The bars in it are escaped as tables have it, and nothing else: a blank stands
/// between the text and the next bar, so a backslash right before a bar is always the escape.
fn write_cell(out: &mut String, write: impl Fn(&mut String)) {
    out.push_str("| ");
    let start = out.len();
    write(out);
    if out[start..].contains('|') {
        let escaped = out.split_off(start).replace('|', "\\|");
        out.push_str(&escaped);
    }
    out.push(' ');
}

/// The cells of a row. An outer `None` is one that is not spaced as it must be, an inner one is empty.
fn cells(line: &str) -> Option<impl Iterator<Item = Option<Option<String>>>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    let mut rest = Some(inner);
    Some(std::iter::from_fn(move || {
        let (cell, behind) = split_at_bar(rest?);
        rest = behind;
        Some(match cell {
            " " => Some(None),
            _ => cell
                .strip_prefix(' ')
                .and_then(|cell| cell.strip_suffix(' '))
                .map(|cell| Some(cell.replace("\\|", "|"))),
        })
    }))
}

/// What stands before and behind the first bar that is not escaped.
fn split_at_bar(text: &str) -> (&str, Option<&str>) {
    let is_bar = |at: &usize| !text[..*at].ends_with('\\');
    match text.match_indices('|').map(|(at, _)| at).find(is_bar) {
        Some(bar) => (&text[..bar], Some(&text[bar + 1..])),
        None => (text, None),
    }
}
