//! A body as Markdown: verbatim text with the pipe tables in between taken apart into cells. What counts as a table is
//! decided by a real Markdown parser; everything that could not be written down again the same way stays text.

use std::ops::Range;

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag};

/// A pipe table. Two are equal if their cells and alignments are: blanks around cells and the number of dashes are
/// layout, as is the line end of the last row.
#[derive(Clone, PartialEq, Debug)]
pub struct PipeTable {
    /// Alignment of each column.
    pub alignments: Vec<Alignment>,
    /// Rows of cells, the header first, each with one cell for each column: trimmed, `\|` written as `|`.
    pub rows: Vec<Vec<String>>,
}

/// A stretch of a document.
#[derive(Clone, PartialEq, Debug)]
pub enum MarkdownPart {
    /// Verbatim, line ends included; two texts never follow each other.
    Text(String),
    /// A table on the top level of the document.
    Table(PipeTable),
}

/// A body as Markdown. Equal documents have the same texts, byte by byte, and the same tables between them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Document {
    /// Stretches in order.
    pub parts: Vec<MarkdownPart>,
}

impl Document {
    /// Takes a body apart. Tables in lists, quotes and code, and tables that are ragged, stay text.
    pub fn parse(text: &str) -> Self {
        let mut document = Self::default();
        let mut end = 0;
        for found in if has_rule(text) { find_tables(text) } else { Vec::new() } {
            if found.range.start >= end
                && let Some(table) = found.read(text)
            {
                document.push_text(&text[end..found.range.start]);
                end = found.range.end;
                document.parts.push(MarkdownPart::Table(table));
            }
        }
        document.push_text(&text[end..]);
        document
    }

    /// Appends verbatim text.
    pub fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(MarkdownPart::Text(last)) => last.push_str(text),
            _ => self.parts.push(MarkdownPart::Text(text.to_owned())),
        }
    }

    /// Whether there is a table in it.
    pub fn has_table(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, MarkdownPart::Table(_)))
    }

    /// The same document with no blanks in its tables but one on each side of a cell: what this saves is saved by
    /// trimming alone, and no encoding should take the credit for it.
    pub fn tight(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                MarkdownPart::Text(text) => out.push_str(text),
                MarkdownPart::Table(table) => table.write_tight(&mut out),
            }
        }
        out
    }
}

impl PipeTable {
    /// A table of rows, the header first; none if there is no column or a row has another number of cells.
    pub fn new(alignments: Vec<Alignment>, rows: Vec<Vec<String>>) -> Option<Self> {
        let columns = alignments.len();
        let regular = columns > 0 && !rows.is_empty() && rows.iter().all(|row| row.len() == columns);
        regular.then_some(Self { alignments, rows })
    }

    fn write_tight(&self, out: &mut String) {
        for (row, cells) in self.rows.iter().enumerate() {
            cells.iter().for_each(|cell| out.extend(["| ", &cell.replace('|', "\\|"), " "]));
            out.push_str("|\n");
            if row == 0 {
                self.alignments.iter().for_each(|&alignment| out.extend(["| ", rule(alignment), " "]));
                out.push_str("|\n");
            }
        }
    }
}

/// How an alignment is written below the header, as short as it can be.
fn rule(alignment: Alignment) -> &'static str {
    match alignment {
        Alignment::None => "---",
        Alignment::Left => ":--",
        Alignment::Center => ":-:",
        Alignment::Right => "--:",
    }
}

/// Whether a line looks like the one below a table's header: without one, the parser is spared.
fn has_rule(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(pipe) = memchr::memchr(b'|', &bytes[at..]).map(|found| at + found) {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let starts_line =
            bytes[..pipe].iter().rev().take(4).find(|byte| !blank(byte)).is_none_or(|byte| *byte == b'\n');
        let end = memchr::memchr(b'\n', &bytes[pipe..]).map_or(bytes.len(), |found| pipe + found);
        if starts_line && is_rule(&bytes[pipe..end]) {
            return true;
        }
        at = end;
    }
    false
}

fn is_rule(line: &[u8]) -> bool {
    line.contains(&b'-') && line.iter().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
}

/// A table as the parser sees it.
struct ParsedTable {
    range: Range<usize>,
    alignments: Vec<Alignment>,
    /// Where the cells are, without those that the parser dropped from ragged rows.
    cells: Vec<Range<usize>>,
}

/// The tables on the top level of a document.
fn find_tables(text: &str) -> Vec<ParsedTable> {
    let mut found = Vec::new();
    let mut depth = 0;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                match tag {
                    Tag::Table(alignments) if depth == 0 => found.push(ParsedTable::new(text, range, alignments)),
                    // The header and the rows are one and two levels down; nothing else holds cells.
                    Tag::TableCell if depth == 2 => {
                        found.last_mut().into_iter().for_each(|table| table.cells.push(range.clone()));
                    }
                    Tag::Paragraph if depth == 0 => found.extend(find_below_paragraph(text, range)),
                    _ => {}
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    found
}

/// The table that follows a line of text without a blank line between: the parser takes it for text, GitHub does not.
fn find_below_paragraph(text: &str, paragraph: Range<usize>) -> Option<ParsedTable> {
    let (mut header, mut start) = (None, paragraph.start);
    for line in text[paragraph.clone()].split_inclusive('\n') {
        if header.is_some() && is_rule(line.trim().as_bytes()) {
            break;
        }
        header = line.trim_start().starts_with('|').then_some(start);
        start += line.len();
    }
    let offset = header.filter(|header| start < paragraph.end && *header > paragraph.start)?;
    let mut tables = Parser::new_ext(&text[offset..paragraph.end], Options::ENABLE_TABLES).into_offset_iter();
    let (Event::Start(Tag::Table(alignments)), range) = tables.next()? else { return None };
    let shift = |range: Range<usize>| range.start + offset..range.end + offset;
    let mut found = ParsedTable::new(text, shift(range), alignments);
    let cells = tables.filter(|(event, _)| matches!(event, Event::Start(Tag::TableCell)));
    found.cells = cells.map(|(_, range)| shift(range)).collect();
    Some(found)
}

impl ParsedTable {
    fn new(text: &str, range: Range<usize>, alignments: Vec<Alignment>) -> Self {
        let start = memchr::memrchr(b'\n', &text.as_bytes()[..range.start]).map_or(0, |newline| newline + 1);
        let end = if text[..range.end].ends_with('\n') { range.end } else { line_end(text, range.end) };
        Self { range: start..end, alignments, cells: Vec::new() }
    }

    /// Reads the cells from the lines; none if they cannot be written down again from what was read: rows without pipes
    /// at both ends, rows with another number of cells than the header, carriage returns, or cells that the parser
    /// bounds differently.
    fn read(&self, text: &str) -> Option<PipeTable> {
        let source = &text[self.range.clone()];
        if source.contains('\r') {
            return None;
        }
        let mut cells = self.cells.iter();
        let mut rows = Vec::new();
        let mut start = self.range.start;
        for (index, line) in source.split_inclusive('\n').enumerate() {
            if index != 1 {
                let row = split_row(text, start..start + line.len())?;
                let same = |cell: &Range<usize>| cells.next().is_some_and(|parsed| trim(text, parsed.clone()) == *cell);
                if row.len() != self.alignments.len() || !row.iter().all(same) {
                    return None;
                }
                rows.push(row.into_iter().map(|cell| text[cell].replace("\\|", "|")).collect());
            }
            start += line.len();
        }
        let table = PipeTable { alignments: self.alignments.clone(), rows };
        cells.next().is_none().then_some(table)
    }
}

fn line_end(text: &str, from: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[from..]).map_or(text.len(), |newline| from + newline + 1)
}

/// The cells of a row with pipes at both ends.
fn split_row(text: &str, line: Range<usize>) -> Option<Vec<Range<usize>>> {
    let line = trim(text, line);
    let bytes = text[line.clone()].as_bytes();
    let pipes = memchr::memchr_iter(b'|', bytes).filter(|&pipe| pipe == 0 || bytes[pipe - 1] != b'\\');
    let pipes: Vec<usize> = pipes.map(|pipe| line.start + pipe).collect();
    let closed = pipes.len() > 1 && pipes.first() == Some(&line.start) && pipes.last() == Some(&(line.end - 1));
    closed.then(|| pipes.windows(2).map(|pair| trim(text, pair[0] + 1..pair[1])).collect())
}

/// The range without blanks and line ends on either side; an empty one stays at its end.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n');
    let start = range.end - text[range.clone()].trim_start_matches(blank).len();
    start..start + text[start..range.end].trim_end_matches(blank).len()
}
