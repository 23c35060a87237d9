//! A table for a terminal that is too narrow for lines between its columns: cells are wrapped, and no word is broken where that
//! can be helped. Names that leave no room are cut; where numbers alone are too wide, a row is a paragraph.

use std::io::Write;

use unicode_width::UnicodeWidthChar as _;

use crate::base::error::Result;
use crate::report::wrapped::columns;

/// Blanks between columns.
const GAP: usize = 2;
/// Letters of a name, or of a word of a header, that are left in any case.
const LEAST: usize = 10;

/// Where a cell may be broken. A number stays with its unit in any case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Words,
    /// Between words and between the parts of a name.
    Parts,
    /// Between words; what is longer than its column is cut.
    Cut,
    /// The same, and between the numbers of a cell.
    NumbersToo,
}

impl Breaks {
    fn cuts(self) -> bool {
        matches!(self, Self::Cut | Self::NumbersToo)
    }
}

/// Writes the rows in so many columns of a terminal, the headers first; `numeric` columns stand to the right.
pub fn write(out: &mut dyn Write, rows: &[&[String]], numeric: &[bool], width: u16) -> Result<()> {
    // A blank begins every line.
    let room = usize::from(width).saturating_sub(1 + GAP * numeric.len().saturating_sub(1));
    let Some((widths, breaks)) = widths(rows, numeric, room) else {
        return write_paragraphs(out, rows, numeric, width);
    };
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .zip(numeric)
            .map(|((cell, &width), &is_number)| {
                // Headers are texts.
                let pieces = pieces(cell, is_number && number > 0, breaks);
                let is_cut = breaks.cuts() && !is_number && number > 0;
                let lines = wrapped(pieces, width, is_cut);
                let padded = |line: String| {
                    let gap = " ".repeat(width.saturating_sub(columns(&line)));
                    if is_number { gap + &line } else { line + &gap }
                };
                lines.into_iter().map(padded).collect()
            })
            .collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let blank = |column: usize| " ".repeat(widths[column]);
            let parts =
                cells.iter().enumerate().map(|(at, lines)| lines.get(line).cloned().unwrap_or_else(|| blank(at)));
            writeln!(out, " {}", parts.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end())?;
        }
    }
    Ok(())
}

/// Every row as what it is about, the texts at its beginning, and below them the other cells with their headers.
fn write_paragraphs(out: &mut dyn Write, rows: &[&[String]], numeric: &[bool], width: u16) -> Result<()> {
    let Some((headers, rows)) = rows.split_first() else { return Ok(()) };
    let room = usize::from(width).saturating_sub(3).max(1);
    let texts = numeric.iter().take_while(|is_number| !**is_number).count().max(1);
    for row in rows {
        let name = row.iter().take(texts).cloned().collect::<Vec<_>>().join(" ");
        writeln!(out, " {}", wrapped(name.split_inclusive(' '), room, true).join("\n "))?;
        let others = headers.iter().zip(*row).skip(texts).filter(|(_, cell)| !cell.is_empty());
        let others: Vec<String> = others.map(|(header, cell)| format!("{header} {cell}; ")).collect();
        // Only what is longer than a line is broken, between words.
        let fits = |piece: &str| columns(piece.trim_end()) <= room;
        let pieces = others.iter().flat_map(|piece| piece.split_inclusive(|c| c == ' ' && !fits(piece)));
        let lines = wrapped(pieces, room, false).join("\n   ");
        writeln!(out, "   {}", lines.trim_end_matches(';'))?;
    }
    Ok(())
}

/// How wide columns are, and where cells are broken for it; none if there is no room however they are broken.
fn widths(rows: &[&[String]], numeric: &[bool], room: usize) -> Option<(Vec<usize>, Breaks)> {
    let longest = |column: usize, length: &dyn Fn(&str) -> usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max().unwrap_or_default()
    };
    let whole: Vec<usize> = (0..numeric.len()).map(|column| longest(column, &|cell| columns(cell))).collect();
    let least = |breaks: Breaks| -> Vec<usize> {
        let piece = |cell: &str, is_number: bool| {
            let longest = pieces(cell, is_number, breaks).map(|piece| columns(piece.trim_end())).max();
            let is_cut = breaks.cuts() && !is_number;
            longest.map_or(0, |longest| if is_cut { longest.min(LEAST) } else { longest })
        };
        // A header may be broken wherever a text may.
        let header = |column: usize| rows.first().and_then(|row| row.get(column)).map_or(0, |cell| piece(cell, false));
        let body = |column: usize| {
            let cells = rows.iter().skip(1).filter_map(|row| row.get(column));
            cells.map(|cell| piece(cell, numeric[column])).max().unwrap_or_default()
        };
        (0..numeric.len()).map(|column| header(column).max(body(column))).collect()
    };
    let (mut widths, breaks) = [Breaks::Words, Breaks::Parts, Breaks::Cut, Breaks::NumbersToo]
        .map(|breaks| (least(breaks), breaks))
        .into_iter()
        .find(|(widths, _)| widths.iter().sum::<usize>() <= room)?;
    for _ in widths.iter().sum::<usize>()..room {
        let missing = |column: usize| whole[column].saturating_sub(widths[column]);
        let Some(most) =
            (0..widths.len()).filter(|at| missing(*at) > 0).max_by_key(|at| (missing(*at), usize::MAX - at))
        else {
            break;
        };
        widths[most] += 1;
    }
    Some((widths, breaks))
}

/// Pieces in lines of at most so many characters. A longer piece is cut, or else broken.
fn wrapped<'a>(pieces: impl Iterator<Item = &'a str>, width: usize, is_cut: bool) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in pieces {
        let line = lines.last().map_or(0, |line| columns(line));
        if line > 0 && line + columns(piece.trim_end()) > width {
            lines.push(String::new());
        }
        let piece = if is_cut { cut(piece, width) } else { piece.to_owned() };
        for letter in piece.chars() {
            let letter_columns = letter.width().unwrap_or_default();
            let is_full = lines.last().is_some_and(|line| !line.is_empty() && columns(line) + letter_columns > width);
            if is_full && letter != ' ' {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(letter);
            }
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The beginning and the end of what is longer than so many characters; of a tool of a server the end, since the beginning
/// is the same for all tools of that server.
fn cut(text: &str, width: usize) -> String {
    let length = columns(text.trim_end());
    if length <= width {
        return text.to_owned();
    }
    let head = if text.starts_with("mcp__") { 0 } else { width / 2 };
    let tail = width.saturating_sub(head + 1);
    // Of a wide letter at the cut nothing is left.
    let taken = |letters: &mut dyn Iterator<Item = char>, most: usize| {
        let mut left = most;
        let fits = |letter: &char| {
            let rest = left.checked_sub(letter.width().unwrap_or_default());
            left = rest.unwrap_or_default();
            rest.is_some()
        };
        letters.take_while(fits).collect::<Vec<char>>()
    };
    let end = taken(&mut text.trim_end().chars().rev(), tail);
    taken(&mut text.chars(), head).into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

/// The parts of a cell between which a line may end.
fn pieces(cell: &str, is_number: bool, breaks: Breaks) -> impl Iterator<Item = &str> {
    let has_parts = !is_number && breaks == Breaks::Parts;
    let may_end = move |(at, c): &(usize, char)| match (is_number, c) {
        (false, ' ') => true,
        // A unit, or what stands between two numbers, stays with what is before it.
        (true, ' ') => breaks == Breaks::NumbersToo && starts_number(&cell[at + 1..]),
        (false, '_' | '-' | '/' | ':' | '.') => has_parts,
        _ => false,
    };
    let ends = cell.char_indices().filter(may_end).map(|(at, c)| at + c.len_utf8()).chain([cell.len()]);
    let mut from = 0;
    let parts = ends.map(move |end| &cell[std::mem::replace(&mut from, end)..end]);
    parts.filter(|part| !part.is_empty())
}

/// Whether a number begins here, with its sign, bracket or currency.
fn starts_number(text: &str) -> bool {
    text.trim_start_matches(['[', '(', '+', '−', '-', '$', '<', '~']).starts_with(|c: char| c.is_ascii_digit())
}
