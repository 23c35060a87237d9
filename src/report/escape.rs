//! What comes from outside, written so that the reader of each kind of output takes it for text and for nothing else.

use std::borrow::Cow;

use crate::base::visible::visible;

/// A text cell of CSV. Spreadsheets take a cell that begins with `=`, `+`, `-` or `@` for a formula, unless an apostrophe
/// stands before it; what is a number stays one, and so does a dash alone.
pub fn csv_text(cell: &str) -> String {
    let begins_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell != "-" && !is_number(cell);
    let text = visible(cell);
    if begins_formula { quoted(&format!("'{text}")) } else { quoted(&text) }
}

/// A cell of a column of numbers: these are devboy's own. The mark of a sum would make a formula of it; a minus is the one
/// that programs read, and what is nothing has none.
pub fn csv_number(cell: &str) -> String {
    let cell = cell.strip_prefix("= ").unwrap_or(cell).replace('−', "-");
    let is_nothing = |size: &&str| size.starts_with('0') && !size.contains(|c| matches!(c, '1'..='9'));
    let unsigned = cell.strip_prefix('-').filter(is_nothing);
    quoted(&visible(unsigned.unwrap_or(&cell)))
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// "-12.5", "+3 %"
fn is_number(cell: &str) -> bool {
    cell.trim_end_matches([' ', '%']).replace(',', "").parse::<f64>().is_ok()
}

/// Text in a line or a cell of Markdown: no mark-up, no HTML, no link, no end of the cell.
pub fn markdown(text: &str) -> Cow<'_, str> {
    let text = visible(text);
    if !text.contains(['\\', '`', '*', '_', '[', ']', '<', '>', '&', '|', '~', ':', '.']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => out.extend(['\\', c]),
            // Underscores within a word are no emphasis.
            '_' if !is_word(before) || !is_word(rest.as_str().trim_start_matches('_').chars().next()) => {
                out.push_str("\\_");
            }
            // An address would become a link.
            ':' if rest.as_str().starts_with("//") => out.push_str("\\:"),
            '.' if out.as_bytes().last_chunk::<3>().is_some_and(|end| end.eq_ignore_ascii_case(b"www")) => {
                out.push_str("\\.");
            }
            c => out.push(c),
        }
        before = if c == '_' { before } else { Some(c) };
    }
    Cow::Owned(out)
}

/// A sentence of Markdown: commands of devboy in backticks stay code, unless something in them would have to be escaped; all else is
/// text.
pub fn sentence(text: &str) -> Cow<'_, str> {
    let text = visible(text);
    let mut out = String::new();
    let mut rest = &*text;
    while let Some((before, command, behind)) = command(rest) {
        out = out + &markdown(before) + "`" + command + "`";
        rest = behind;
    }
    Cow::Owned(out + &markdown(rest))
}

/// The first command in backticks, with what stands around it.
fn command(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("`devboy ").find_map(|(at, _)| {
        let (command, behind) = text[at + 1..].split_once('`')?;
        (markdown(command) == command).then_some((&text[..at], command, behind))
    })
}

/// What [`markdown`] was made of.
pub fn plain(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let mut chars = markdown.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}
