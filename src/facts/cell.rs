//! Values in the lines and cells of a text: how each is spelled so that it is read back as what it was, and which cells an
//! array of objects has.
//!
//! A value is spelled as one would write it by hand: `null`, booleans and numbers as their literals, containers as compact
//! JSON, a string as its bare text. A string that would be read as one of the others (`"1"`, `"null"`, `""`) or would not
//! stay where it is put (line breaks, outer blanks) is a JSON string. Nothing at all stands for what is missing.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::base::json::Cursor;
use crate::facts::json_tree::{Json, JsonRefusal, write_string};

/// Whether a text begins as a JSON value does.
fn may_be_json(text: &str) -> bool {
    matches!(text.bytes().next(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'))
}

/// The JSON value that a text spells, if it spells one.
pub fn as_json(text: &str) -> Option<Json> {
    may_be_json(text).then(|| Json::parse(text).ok())?
}

/// Whether some reader may take a text for JSON, also where [`as_json`] has no value for it: a key that occurs twice, half a
/// UTF-16 pair, too many levels, blanks in front.
pub fn spells_json(text: &str) -> bool {
    let value = text.trim_start();
    may_be_json(value) && Json::parse(value) != Err(JsonRefusal::NotJson)
}

/// Whether a text can stand bare in a line: something, all of it visible, without a line break.
fn fits_in_line(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(['\n', '\r'])
}

/// Appends a value in one line.
pub fn write_value(value: &Json, out: &mut String) {
    match value {
        Json::String(text) if fits_in_line(text) && !spells_json(text) => out.push_str(text),
        _ => value.write_compact(out),
    }
}

/// Reads what [`write_value`] wrote.
pub fn read_value(text: &str) -> Option<Json> {
    fits_in_line(text).then(|| as_json(text).unwrap_or_else(|| Json::String(text.to_owned())))
}

/// Appends a name, such as a heading: nothing but a string can stand there.
pub fn write_name(name: &str, out: &mut String) {
    if fits_in_line(name) && !name.starts_with('"') {
        out.push_str(name);
    } else {
        write_string(name, out);
    }
}

/// Reads what [`write_name`] wrote.
pub fn read_name(text: &str) -> Option<String> {
    if !text.starts_with('"') {
        return fits_in_line(text).then(|| text.to_owned());
    }
    match Json::parse(text) {
        Ok(Json::String(name)) => Some(name),
        _ => None,
    }
}

/// Appends the lines `key: value` of some members, with `key:` for `null`. No such line is empty or starts like a
/// heading, a fence or a table row.
pub fn write_members<'a>(members: impl IntoIterator<Item = &'a (String, Json)>, out: &mut String) {
    for (key, value) in members {
        if key.starts_with(['#', '`', '|']) || key.contains(": ") {
            write_string(key, out);
        } else {
            write_name(key, out);
        }
        out.push(':');
        if *value != Json::Null {
            out.push(' ');
            write_value(value, out);
        }
        out.push('\n');
    }
}

/// Reads one line that [`write_members`] wrote, without its line feed.
pub fn read_member(line: &str) -> Option<(String, Json)> {
    let key_end = if line.starts_with('"') {
        let mut cursor = Cursor::new(line.as_bytes());
        cursor.string().ok()?;
        cursor.pos()
    } else {
        line.find(": ").or_else(|| line.strip_suffix(':').map(str::len))?
    };
    let (key, value) = line.split_at(key_end);
    let value = match value.strip_prefix(':')? {
        "" => Json::Null,
        spelled => read_value(spelled.strip_prefix(' ')?)?,
    };
    Some((read_name(key)?, value))
}

/// Reads lines that [`write_members`] wrote, without the last line feed.
pub fn read_members(lines: &str) -> Option<Vec<(String, Json)>> {
    lines.split('\n').map(read_member).collect()
}

/// Most cells of a grid per byte of the body that it is written for. A cell that is not empty takes six bytes of JSON.
const CELLS_PER_BYTE_MAX: usize = 2;

/// The cells of an array of objects: a column per key of any element, in the order in which they are first seen.
pub struct CellGrid<'a> {
    /// The keys.
    pub columns: Vec<&'a str>,
    positions: HashMap<&'a str, usize>,
    rows: Vec<&'a [(String, Json)]>,
}

impl<'a> CellGrid<'a> {
    /// The grid of the elements of an array in a body of `body_bytes`. `None` unless all are objects and some has a key;
    /// nor if nearly all cells are empty, as in many rows of ever different keys, whose cells grow with their square.
    pub fn of(elements: &'a [Json], body_bytes: usize) -> Option<Self> {
        let rows: Vec<_> = elements.iter().map(Json::as_object).collect::<Option<_>>()?;
        let columns_max = CELLS_PER_BYTE_MAX * body_bytes / rows.len().max(1);
        let (mut columns, mut positions) = (Vec::new(), HashMap::new());
        for (key, _) in rows.iter().copied().flatten() {
            positions.entry(key.as_str()).or_insert_with(|| {
                columns.push(key.as_str());
                columns.len() - 1
            });
            if columns.len() > columns_max {
                return None;
            }
        }
        (!columns.is_empty()).then_some(Self { columns, positions, rows })
    }

    /// The cells of each element; `None` where it lacks the key.
    pub fn rows(&self) -> impl Iterator<Item = Vec<Option<&'a Json>>> {
        self.rows.iter().map(|members| {
            let mut cells = vec![None; self.columns.len()];
            for (key, value) in *members {
                cells[self.positions[key.as_str()]] = Some(value);
            }
            cells
        })
    }
}

/// The columns of a grid that is read.
pub struct GridColumns(Vec<String>);

impl GridColumns {
    /// Columns of these names; `None` if there are none or two are the same.
    pub fn new(names: Vec<String>) -> Option<Self> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        let distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        (distinct && !names.is_empty()).then_some(Self(names))
    }

    /// The object of a row of cells; `None` if there is not one cell per column.
    pub fn object(&self, cells: Vec<Option<Json>>) -> Option<Json> {
        let fits = cells.len() == self.0.len();
        let members = self.0.iter().zip(cells).filter_map(|(key, value)| Some((key.clone(), value?)));
        fits.then(|| Json::Object(members.collect()))
    }
}

/// Appends a text in quotes, those in it doubled, as CSV has it.
pub fn write_quoted(text: &str, out: &mut String) {
    out.extend(["\"", &text.replace('"', "\"\""), "\""]);
}

/// Appends a record of CSV, in quotes what holds one of these characters.
pub fn write_record<'a, const N: usize>(fields: impl Iterator<Item = &'a str>, quoted: [char; N], out: &mut String) {
    for (index, field) in fields.enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        if field.contains(quoted) { write_quoted(field, out) } else { out.push_str(field) }
    }
    out.push('\n');
}

/// A field of CSV as it is read, quotes resolved.
pub struct CsvField<'a> {
    pub text: Cow<'a, str>,
    pub quoted: bool,
}

/// The first field of a text, and what stands behind it; none if it is not quoted and no bare text.
pub fn read_field(text: &str, is_bare: impl Fn(&str) -> bool) -> Option<(CsvField<'_>, &str)> {
    if let Some(inner) = text.strip_prefix('"') {
        return read_quoted(inner).map(|(text, behind)| (CsvField { text, quoted: true }, behind));
    }
    let (bare, behind) = text.split_at(memchr::memchr2(b',', b'\n', text.as_bytes()).unwrap_or(text.len()));
    is_bare(bare).then_some((CsvField { text: Cow::Borrowed(bare), quoted: false }, behind))
}

/// Reads what [`write_quoted`] wrote, from behind its first quote: the text, and what stands behind the last quote.
fn read_quoted(inner: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut from = 0;
    let end = loop {
        let quote = from + inner[from..].find('"')?;
        if !inner[quote + 1..].starts_with('"') {
            break quote;
        }
        from = quote + 2;
    };
    let text = &inner[..end];
    let text = if from > 0 { Cow::Owned(text.replace("\"\"", "\"")) } else { Cow::Borrowed(text) };
    Some((text, &inner[end + 1..]))
}

/// Shortest fence that Markdown knows.
pub const FENCE_BYTES_MIN: usize = 3;

/// A fence that is longer than any run of back-ticks in a text.
pub fn fence_for(text: &str) -> String {
    "`".repeat(FENCE_BYTES_MIN.max(longest_fence(text) + 1))
}

/// The longest run of back-ticks, in bytes.
pub fn longest_fence(text: &str) -> usize {
    let (mut longest, mut length, mut end) = (0, 0, 0);
    for tick in memchr::memchr_iter(b'`', text.as_bytes()) {
        length = if tick == end { length + 1 } else { 1 };
        end = tick + 1;
        longest = longest.max(length);
    }
    longest
}
