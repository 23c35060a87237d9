//! A table for a terminal that is too narrow for lines between its columns: cells are wrapped, and no word is broken where that
//! can be helped.

use std::io::Write;

use crate::base::error::Result;

/// Blanks between columns.
const GAP: usize = 2;

/// Where a cell may be broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    /// Texts between words, numbers nowhere.
    Words,
    /// Texts between words and between the parts of a name, numbers nowhere.
    Parts,
    /// Both between words.
    NumbersToo,
    /// Texts between the parts of a name, numbers between words.
    Both,
}

/// Writes the rows in so many columns of a terminal, the headers first; `numeric` columns stand to the right.
///
/// # Errors
/// If nothing can be written.
pub fn write(out: &mut dyn Write, rows: &[&[String]], numeric: &[bool], width: u16) -> Result<()> {
    // A blank begins every line.
    let room = usize::from(width).saturating_sub(1 + GAP * numeric.len().saturating_sub(1));
    let (widths, breaks) = widths(rows, numeric, room);
    for row in rows {
        let cells: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .zip(numeric)
            .map(|((cell, &width), &is_number)| {
                let lines = wrapped(cell, width, is_number, breaks);
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

/// How wide columns are, and where cells are broken for it.
fn widths(rows: &[&[String]], numeric: &[bool], room: usize) -> (Vec<usize>, Breaks) {
    let longest = |column: usize, length: &dyn Fn(&str) -> usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| length(cell)).max().unwrap_or_default()
    };
    let whole: Vec<usize> = (0..numeric.len()).map(|column| longest(column, &|cell| cell.chars().count())).collect();
    let least = |breaks: Breaks| -> Vec<usize> {
        let piece = |is_number: bool| {
            move |cell: &str| {
                pieces(cell, is_number, breaks).map(|piece| piece.trim_end().chars().count()).max().unwrap_or_default()
            }
        };
        // A header may be broken wherever a text may.
        let header = |column: usize| rows.first().and_then(|row| row.get(column)).map_or(0, |cell| piece(false)(cell));
        let body = |column: usize| {
            let cells = rows.iter().skip(1).filter_map(|row| row.get(column));
            cells.map(|cell| piece(numeric[column])(cell)).max().unwrap_or_default()
        };
        (0..numeric.len()).map(|column| header(column).max(body(column))).collect()
    };
    let fitting =
        [Breaks::Words, Breaks::Parts, Breaks::NumbersToo, Breaks::Both].map(|breaks| (least(breaks), breaks));
    let fits = |(widths, _): &&(Vec<usize>, Breaks)| widths.iter().sum::<usize>() <= room;
    let (mut widths, breaks) = fitting.iter().find(fits).unwrap_or(&fitting[3]).clone();
    // What fits nowhere is broken anywhere.
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > 1) else { break };
        *widest -= 1;
    }
    for _ in widths.iter().sum::<usize>()..room {
        let missing = |column: usize| whole[column].saturating_sub(widths[column]);
        let Some(most) =
            (0..widths.len()).filter(|at| missing(*at) > 0).max_by_key(|at| (missing(*at), usize::MAX - at))
        else {
            break;
        };
        widths[most] += 1;
    }
    (widths, breaks)
}

/// A cell in lines of at most so many characters.
fn wrapped(cell: &str, width: usize, is_number: bool, breaks: Breaks) -> Vec<String> {
    let mut lines = vec![String::new()];
    // Headers of numbers are texts.
    let is_number = is_number && cell.chars().count() <= width;
    for piece in pieces(cell, is_number, breaks) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + piece.trim_end().chars().count() > width {
            lines.push(String::new());
        }
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

/// The parts of a cell between which a line may end.
fn pieces(cell: &str, is_number: bool, breaks: Breaks) -> impl Iterator<Item = &str> {
    let has_parts = !is_number && matches!(breaks, Breaks::Parts | Breaks::Both);
    let has_words = !is_number || matches!(breaks, Breaks::NumbersToo | Breaks::Both);
    let ends = move |c: char| has_words && c == ' ' || has_parts && matches!(c, '_' | '-' | '/' | ':' | '.');
    cell.split_inclusive(ends)
}
