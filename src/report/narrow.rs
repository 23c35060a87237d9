//! A table for a terminal that is too narrow for lines between its columns: cells are wrapped, and no word is broken where that
//! can be helped. Names that leave no room are cut; where numbers alone are too wide, a row is a paragraph.

use std::io::Write;

use crate::base::error::Result;

/// Blanks between columns.
const GAP: usize = 2;
/// Letters of a name, or of a word of a header, that are left in any case.
const LEAST: usize = 10;

/// Where a cell may be broken. Numbers are whole but for the last way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Between words.
    Words,
    /// Between words and between the parts of a name.
    Parts,
    /// Between words; what is longer than its column is cut.
    Cut,
    /// The same, and between a number and its unit.
    UnitsToo,
}

impl Breaks {
    fn cuts(self) -> bool {
        matches!(self, Self::Cut | Self::UnitsToo)
    }
}

/// Writes the rows in so many columns of a terminal, the headers first; `numeric` columns stand to the right.
///
/// # Errors
/// If nothing can be written.
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
                    let gap = " ".repeat(width.saturating_sub(line.chars().count()));
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
        let lines = wrapped(others.iter().map(String::as_str), room, false).join("\n   ");
        writeln!(out, "   {}", lines.trim_end_matches(';'))?;
    }
    Ok(())
}

/// How wide columns are, and where cells are broken for it; none if there is no room however they are broken.
fn widths(rows: &[&[String]], numeric: &[bool], room: usize) -> Option<(Vec<usize>, Breaks)> {
    let longest = |column: usize, length: &dyn Fn(&str) -> usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max().unwrap_or_default()
    };
    let whole: Vec<usize> = (0..numeric.len()).map(|column| longest(column, &|cell| cell.chars().count())).collect();
    let least = |breaks: Breaks| -> Vec<usize> {
        let piece = |cell: &str, is_number: bool| {
            let longest = pieces(cell, is_number, breaks).map(|piece| piece.trim_end().chars().count()).max();
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
    let (mut widths, breaks) = [Breaks::Words, Breaks::Parts, Breaks::Cut, Breaks::UnitsToo]
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
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + piece.trim_end().chars().count() > width {
            lines.push(String::new());
        }
        let piece = if is_cut { cut(piece, width) } else { piece.to_owned() };
        for letter in piece.chars() {
            let is_full = lines.last().is_some_and(|line| line.chars().count() >= width);
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

/// The beginning and the end of what is longer than so many characters.
fn cut(text: &str, width: usize) -> String {
    let length = text.trim_end().chars().count();
    if length <= width {
        return text.to_owned();
    }
    let head = width / 2;
    let tail = width.saturating_sub(head + 1);
    let letters = |from: usize, to: usize| text.chars().skip(from).take(to - from).collect::<String>();
    letters(0, head) + "…" + &letters(length - tail, length)
}

/// The parts of a cell between which a line may end.
fn pieces(cell: &str, is_number: bool, breaks: Breaks) -> impl Iterator<Item = &str> {
    let has_parts = !is_number && breaks == Breaks::Parts;
    let has_words = !is_number || breaks == Breaks::UnitsToo;
    let ends = move |c: char| has_words && c == ' ' || has_parts && matches!(c, '_' | '-' | '/' | ':' | '.');
    cell.split_inclusive(ends)
}
