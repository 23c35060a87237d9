//! Lines of a terminal: what is longer than it is wrapped between words, with a hanging indent. What is copied as it stands
//! (diffs, commands) and what stands in columns is left alone.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr as _;

/// Columns behind the indent below which wrapping makes nothing easier to read.
const LEAST: usize = 20;
/// Gaps in a line from which on it is a row of columns.
const GAPS_MAX: usize = 2;

/// Passes text on to a terminal of so many columns.
pub struct Wrapped<'w> {
    out: &'w mut dyn Write,
    width: Option<u16>,
    line: Vec<u8>,
    is_diff: bool,
}

impl<'w> Wrapped<'w> {
    /// Without a width everything passes as it is.
    pub fn new(out: &'w mut dyn Write, width: Option<u16>) -> Self {
        Self { out, width, line: Vec::new(), is_diff: false }
    }

    fn end_line(&mut self, width: u16) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        // A diff may be coloured.
        let bare = text.strip_prefix('\x1b').map_or(text, |code| code.split_once('m').map_or(code, |(_, text)| text));
        self.is_diff = bare.starts_with("--- ") || self.is_diff && bare.starts_with(['+', '-', ' ', '@', '\\']);
        let (first, rest) = text.split_at(hanging(text, width.into()));
        let gaps = rest.split("  ").filter(|part| !part.trim().is_empty()).count();
        let is_command = rest.trim_start().starts_with("devboy ") || text.trim_start().starts_with("See: devboy ");
        let is_left = self.is_diff || is_command || gaps > GAPS_MAX || text.contains('\x1b');
        if is_left || columns(text) <= width.into() {
            return self.out.write_all(&line);
        }
        self.out.write_all(wrapped(first, rest, width).as_bytes())
    }
}

impl Write for Wrapped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(width) = self.width else { return self.out.write(bytes) };
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(width)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&std::mem::take(&mut self.line))?;
        self.out.flush()
    }
}

/// Where the text of a line begins: behind its mark, or in its last column in the left half of the terminal.
fn hanging(text: &str, width: usize) -> usize {
    let half = text.char_indices().nth(width / 2).map_or(text.len(), |(at, _)| at);
    let column = text[..half].rfind("  ").map_or(0, |gap| gap + 2);
    let mark = ["- ", "# "].iter().find(|mark| text[column..].starts_with(**mark));
    column + mark.map_or(0, |mark| mark.len())
}

/// `first` stands before the first line, and as many blanks before the others (behind a `#`, if it begins with one). Ends
/// with a line feed.
pub fn wrapped(first: &str, text: &str, width: u16) -> String {
    let (width, indent) = (usize::from(width), columns(first));
    if width <= indent + LEAST {
        return format!("{first}{text}\n");
    }
    let mark = if first.starts_with('#') { "#" } else { "" };
    let mut out = first.to_owned();
    let mut column = indent;
    for word in words(text, width - indent) {
        let length = columns(&word);
        if column > indent && column + 1 + length > width {
            out.push('\n');
            out.push_str(mark);
            out.push_str(&" ".repeat(indent - mark.len()));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word);
        column += length;
    }
    out.push('\n');
    out
}

/// How many columns of a terminal a text takes: a letter of Chinese, Japanese or Korean takes two.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// The words of a text. A number and its unit are one, and so are an interval and a command in backticks if there is room for
/// them on a line.
fn words(text: &str, room: usize) -> Vec<String> {
    let is_open = |last: &str| {
        last.matches('`').count() % 2 == 1 || last.rfind('[').is_some_and(|open| !last[open..].contains(']'))
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last)
                if word.starts_with('%')
                    || word == "k"
                    || is_open(last) && columns(last) + 1 + columns(word) <= room =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}
