//! Places in a text: the line of an offset, its edges, the comments beside and above it.

use std::ops::Range;

/// The 1-based line of an offset.
pub(super) fn number(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Where the line of `offset` starts.
pub(super) fn start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or_else(|| after_mark(text).min(offset), |position| position + 1)
}

/// Where the line after `offset` starts, or the end of the text.
pub(super) fn next(text: &str, offset: usize) -> usize {
    text[offset..].find('\n').map_or(text.len(), |position| offset + position + 1)
}

/// The first offset after a byte order mark.
pub(super) fn after_mark(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

/// The line ending that the text uses.
pub(super) fn ending(text: &str) -> &'static str {
    match text.find('\n') {
        Some(position) if text[..position].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The blanks in front of the line of `offset`.
pub(super) fn indent(text: &str, offset: usize) -> &str {
    let line = &text[start(text, offset)..offset];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only blanks stand before `offset` on its line.
pub(super) fn starts_line(text: &str, offset: usize) -> bool {
    is_blank(&text[start(text, offset)..offset])
}

/// The comment that follows on the same line, a comma may stand between.
pub(super) fn comment_after(text: &str, offset: usize) -> Option<&str> {
    let rest = text[offset..next(text, offset)].trim();
    let rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    rest.starts_with('#').then_some(rest)
}

/// The lines of comment that stand directly above the line of `offset`, nearest first.
pub(super) fn comments_above(text: &str, offset: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut below = start(text, offset);
    std::iter::from_fn(move || {
        let above = if below > after_mark(text) { start(text, below - 1) } else { return None };
        let range = above..below;
        below = above;
        is_comment(&text[range.clone()]).then_some(range)
    })
}

/// The start of the line after `offset`, moved past lines of comment that belong to what stands above: those that a
/// blank line or the end of the text follows.
pub(super) fn after_attached_comments(text: &str, line_start: usize) -> usize {
    let mut position = line_start;
    while position < text.len() && is_comment(&text[position..next(text, position)]) {
        position = next(text, position);
    }
    let free = position == text.len() || is_blank(&text[position..next(text, position)]);
    if free { position } else { line_start }
}

/// Whether a line holds nothing.
pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}
