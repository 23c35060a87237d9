//! What the lines of a body are to a list of search hits and paths: rows with a path and a number, paths, or text.

use crate::base::names::TextSet;
use crate::facts::encode::grouped_paths::{END, GAP};
use crate::facts::numbered::split_lines;

const PATH_BYTES_MAX: usize = 512;
/// Most numbers in a path between which the one of the line is searched.
const NUMBERS_MAX: usize = 8;
/// Most lines on which the directory of context lines is searched.
const CONTEXT_TRIES_MAX: usize = 16;
/// Longest number, in digits: any such number fits in 32 bits.
const DIGITS_MAX: usize = 9;

/// A line of a search result.
#[derive(Clone, Copy)]
pub struct SearchHit<'a> {
    /// The file as hits spell it; empty where only one file was searched.
    pub path: &'a str,
    /// The number of the line.
    pub number: u32,
    /// The number, what separates it, and the text.
    pub shown: &'a str,
}

impl<'a> SearchHit<'a> {
    /// What stands behind the number and its separator: the line of the file.
    pub fn text(&self) -> &'a str {
        let text = self.shown.trim_start_matches(|c: char| c.is_ascii_digit());
        text.get(1..).unwrap_or_default()
    }

    /// The text of a context line that follows the line `previous`, if it can stand there without its number: it is
    /// taken for no row, heading or mark.
    pub(crate) fn text_after(&self, previous: Option<u32>, every: u32) -> Option<&'a str> {
        let follows = previous.is_some_and(|previous| previous.checked_add(1) == Some(self.number));
        let canonical = !self.shown.starts_with('0') && !self.number.is_multiple_of(every);
        let is_context = self.shown.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('-');
        let text = self.text();
        let plain = !text.ends_with(':') && text != END && text != GAP && row_number(text).is_none();
        (follows && canonical && is_context && plain).then_some(text)
    }
}

/// What a line of a body is.
#[derive(Clone, Copy)]
pub enum BodyItem<'a> {
    /// Any other line.
    Text(&'a str),
    /// A hit or a line of its context.
    Row(SearchHit<'a>),
    /// A path and nothing else.
    Path,
}

/// Number and length of the digits of a line that begins `12:` or `12-`.
pub(crate) fn row_number(line: &str) -> Option<(u32, usize)> {
    let digits = line.bytes().take(DIGITS_MAX + 1).take_while(u8::is_ascii_digit).count();
    let separated = matches!(line.as_bytes().get(digits), Some(b':' | b'-'));
    ((1..=DIGITS_MAX).contains(&digits) && separated).then(|| line[..digits].parse().ok().map(|n| (n, digits)))?
}

/// The places in a line that look like the number between a path and a text, between two of the same separator.
fn numbers(line: &str, separator: u8) -> impl Iterator<Item = (&str, &str, u32)> {
    let bytes = &line.as_bytes()[..line.len().min(PATH_BYTES_MAX)];
    let path = &bytes[..memchr::memchr2(b' ', b'\t', bytes).unwrap_or(bytes.len())];
    let at = memchr::memchr_iter(separator, path).filter(|at| path.get(at + 1).is_some_and(u8::is_ascii_digit));
    at.take(NUMBERS_MAX).filter_map(move |at| {
        let shown = &line[at + 1..];
        let (number, digits) = row_number(shown)?;
        (shown.as_bytes()[digits] == separator).then_some((&line[..at], shown, number))
    })
}

/// Whether a path can stand in a heading of its own.
fn is_heading_path(path: &str) -> bool {
    let named = path.bytes().any(|byte| byte.is_ascii_alphabetic());
    named && row_number(path).is_none() && !path.ends_with('/') && !path.contains('\r')
}

fn hit(line: &str) -> Option<SearchHit<'_>> {
    let (path, shown, number) = numbers(line, b':').next()?;
    is_heading_path(path).then_some(SearchHit { path, number, shown })
}

/// Whether a line is a path in a directory.
fn is_path(line: &str) -> bool {
    let starts = line.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '~' | '@' | '_'));
    let bytes = line.as_bytes();
    if !starts || bytes.len() > PATH_BYTES_MAX || memchr::memchr3(b' ', b'\t', b'\r', bytes).is_some() {
        return false;
    }
    memchr::memchr(b'/', bytes).is_some() && !line.ends_with([':', '/', ',', ';', '{']) && !line.ends_with(END)
}

/// The search hits of a body: what its other lines are read against.
pub struct Hits<'a> {
    paths: TextSet<'a>,
    /// What context lines without a colon write in front of the path.
    pub context: &'a str,
}

impl<'a> Hits<'a> {
    /// Looks for hits in a body.
    pub fn find(text: &'a str) -> Self {
        let paths: TextSet<'_> = split_lines(text).filter_map(hit).map(|row| row.path).collect();
        let mut hits = Self { paths, context: "" };
        if !hits.paths.is_empty() {
            let lines = split_lines(text).filter(|line| !line.contains(':') && numbers(line, b'-').next().is_some());
            let mut tries = lines.take(CONTEXT_TRIES_MAX).flat_map(|line| numbers(line, b'-'));
            hits.context = tries.find_map(|(path, ..)| hits.directory_before(path)).unwrap_or_default();
        }
        hits
    }

    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        !self.paths.is_empty()
    }

    /// What stands before the path of a hit at the end of this path; empty if it is one as it stands.
    fn directory_before(&self, path: &'a str) -> Option<&'a str> {
        let starts = std::iter::once(0).chain(memchr::memchr_iter(b'/', path.as_bytes()).map(|slash| slash + 1));
        starts.map(|start| path.split_at(start)).find(|(_, rest)| self.paths.contains(rest)).map(|(before, _)| before)
    }

    /// What a line of the body is.
    pub fn read(&self, line: &'a str) -> BodyItem<'a> {
        if let Some((number, _)) = row_number(line) {
            return BodyItem::Row(SearchHit { path: "", number, shown: line });
        }
        if let Some(row) = hit(line) {
            return BodyItem::Row(row);
        }
        if !self.paths.is_empty() {
            for (path, shown, number) in numbers(line, b'-') {
                let context = if shown.contains(':') { "" } else { self.context };
                if let Some(path) = path.strip_prefix(context).filter(|path| self.paths.contains(path)) {
                    return BodyItem::Row(SearchHit { path, number, shown });
                }
            }
        }
        if is_path(line) { BodyItem::Path } else { BodyItem::Text(line) }
    }
}

/// Whether there are lines that could be part of a group: a hit, or more than one of anything else.
pub(crate) fn has_candidates(text: &str) -> bool {
    let leads = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'~' | b'@' | b'_');
    let mut others = 0;
    split_lines(text).any(|line| {
        let led = line.as_bytes().first().is_some_and(leads);
        others += usize::from(led && (row_number(line).is_some() || is_path(line)));
        others > 1 || led && hit(line).is_some()
    })
}
