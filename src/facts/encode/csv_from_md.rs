//! Markdown tables as CSV. A body that is one table becomes plain CSV; in any other, every table stands in a fence that
//! is longer than any run of back-ticks in the body, so that it cannot be taken for one of the body's own.

use pulldown_cmark::Alignment;

use crate::facts::cell::{FENCE_BYTES_MIN, fence_for, longest_fence, read_field, write_record};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::markdown::{Document, MarkdownPart, PipeTable};

/// Comma, quotes doubled, LF line ends, header first. The info string of a fence is `csv`, followed by one letter per
/// column if any column is aligned.
pub const FORMAT: Format =
    Format { id: "csv_from_md", family: FormatFamily::Published, by_depth: false, encode, decode };

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    if subject.shape.is_json() || memchr::memchr(b'|', subject.text.as_bytes()).is_none() {
        return None;
    }
    let document = subject.markdown();
    if !document.has_table() {
        return None;
    }
    let longest = longest_fence(subject.text);
    let mut out = String::with_capacity(subject.text.len());
    if let [MarkdownPart::Table(table)] = document.parts.as_slice()
        && longest < FENCE_BYTES_MIN
        && table.alignments.iter().all(|&alignment| alignment == Alignment::None)
    {
        write_records(table, &mut out);
        return Some(out);
    }
    let fence = fence_for(subject.text);
    for part in &document.parts {
        match part {
            MarkdownPart::Text(text) => out.push_str(text),
            MarkdownPart::Table(table) => {
                out.extend([&fence, &info(&table.alignments), "\n"]);
                write_records(table, &mut out);
                out.extend([&fence, "\n"]);
            }
        }
    }
    Some(out)
}

fn decode(text: &str) -> Option<Meaning> {
    let length = longest_fence(text);
    if length < FENCE_BYTES_MIN {
        let rows = read_records(text)?;
        let table = PipeTable::new(vec![Alignment::None; rows.first()?.len()], rows)?;
        return Some(Meaning::Markdown(Document { parts: vec![MarkdownPart::Table(table)] }));
    }
    let mut document = Document::default();
    let mut rest = text;
    while let Some(fence) = next_fence(rest, length) {
        let (before, from) = rest.split_at(fence);
        let (info, from) = from[length..].split_once('\n')?;
        let end = next_fence(from, length)?;
        let rows = read_records(&from[..end])?;
        let alignments = read_info(info, rows.first()?.len())?;
        document.push_text(before);
        document.parts.push(MarkdownPart::Table(PipeTable::new(alignments, rows)?));
        rest = from[end + length..].strip_prefix('\n')?;
    }
    document.push_text(rest);
    Some(Meaning::Markdown(document))
}

/// Where the next line starts that begins with a run of back-ticks of this length, the longest there is.
fn next_fence(text: &str, length: usize) -> Option<usize> {
    let fence = "`".repeat(length);
    let starts_line = |at: &usize| *at == 0 || text.as_bytes()[at - 1] == b'\n';
    memchr::memmem::find_iter(text.as_bytes(), fence.as_bytes()).find(starts_line)
}

const LETTERS: [(char, Alignment); 4] =
    [('-', Alignment::None), ('l', Alignment::Left), ('c', Alignment::Center), ('r', Alignment::Right)];

/// The info string of a table: `csv`, and ` lcr-` if there are columns that are aligned.
fn info(alignments: &[Alignment]) -> String {
    let letter = |alignment| LETTERS.iter().filter(move |(_, own)| own == alignment).map(|(letter, _)| letter);
    let plain = alignments.iter().all(|&alignment| alignment == Alignment::None);
    if plain { "csv".to_owned() } else { format!("csv {}", alignments.iter().flat_map(letter).collect::<String>()) }
}

fn read_info(info: &str, columns: usize) -> Option<Vec<Alignment>> {
    let letters = info.strip_prefix("csv")?;
    if letters.is_empty() {
        return Some(vec![Alignment::None; columns]);
    }
    let alignment = |letter| LETTERS.iter().find(|(own, _)| *own == letter).map(|(_, alignment)| *alignment);
    letters.strip_prefix(' ')?.chars().map(alignment).collect()
}

fn write_records(table: &PipeTable, out: &mut String) {
    let rows = table.rows.iter();
    rows.for_each(|row| write_record(row.iter().map(String::as_str), [',', '"', '\n', '\r'], out));
}

/// Reads records that all end with LF; none if a quote stands where none belongs.
fn read_records(text: &str) -> Option<Vec<Vec<String>>> {
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let (cell, behind) = read_field(rest, |bare| !bare.contains(['"', '\r']))?;
        row.push(cell.text.into_owned());
        rest = match behind.strip_prefix('\n') {
            Some(next) => {
                rows.push(std::mem::take(&mut row));
                next
            }
            None => behind.strip_prefix(',').filter(|next| !next.is_empty())?,
        };
    }
    Some(rows)
}
