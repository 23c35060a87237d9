//! Text from outside made harmless to look at: what a terminal would obey, or an eye would miss, is written out.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// The colours of a diff and their end: the only control sequences that devboy itself writes.
const OWN_CODES: [&str; 4] = ["\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"];

/// Whether a character does something instead of being seen: controls, marks that turn the direction of writing, and what
/// has no width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text on one line with every hidden character written out: a bell is `\u{7}`, a line feed `\u{a}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, is_hidden, |out, c| write(out, format_args!("\\u{{{:x}}}", c as u32)))
}

/// Whether [`visible`] wrote something out, so that this is no longer the name that somebody gave. No tool of an API may
/// have a backslash in its name.
pub fn is_written_out(text: &str) -> bool {
    text.contains("\\u{")
}

/// A JSON document in which strings hold no hidden character as it is; it means the same.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    let escape = |out: &mut String, c: char| {
        c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write(out, format_args!("\\u{unit:04x}")));
    };
    written_out(text, |c| is_hidden(c) && c != '\n', escape)
}

fn written_out(text: &str, hides: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) || !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| if hides(c) { escape(&mut out, c) } else { out.push(c) });
    Cow::Owned(out)
}

fn write(out: &mut String, words: fmt::Arguments<'_>) {
    fmt::Write::write_fmt(out, words).expect("a String takes everything");
}

/// How paths are printed.
pub trait Shown {
    /// The path as [`visible`] text.
    fn shown(&self) -> String;
}

impl Shown for Path {
    fn shown(&self) -> String {
        visible(&self.to_string_lossy()).into_owned()
    }
}

/// A word of a command line that can be pasted.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':' | '~' | '+');
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The last line of defence before a terminal: passes text on with hidden characters written out, except line feeds, tabs
/// and devboy's own colours. A code has to come in one piece.
pub struct Visible<'w>(pub &'w mut dyn Write);

impl Write for Visible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
            return self.0.write(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut pieces = text.split('\x1b');
        let mut out = plain(pieces.next().unwrap_or_default());
        for piece in pieces {
            let code = OWN_CODES.iter().map(|code| &code[1..]).find(|code| piece.starts_with(code));
            out.push_str(if code.is_some() { "\x1b" } else { "\\u{1b}" });
            out.push_str(&plain(piece));
        }
        self.0.write_all(out.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn plain(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|piece| match piece.strip_suffix(['\n', '\t']) {
            Some(words) => visible(words).into_owned() + &piece[words.len()..],
            None => visible(piece).into_owned(),
        })
        .collect()
}
