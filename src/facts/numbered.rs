//! Numbered lines (` 12→text`, `12<tab>text`), the layout in which files are shown: what stands in front of the text,
//! where the lines are, and the body cut where no token spans the cut: each numbered line by itself, everything else in
//! between. A line feed ends a token unless another one (or, in some vocabularies, a slash) follows, and a numbered
//! line begins with a blank or a digit; so the tokens of the segments add up to those of the body, and the cost of a
//! body in which some lines are replaced by hints follows from the facts.

use std::ops::Range;

use crate::base::block::line_ends;
use crate::base::id::IdSet;

/// Widest padding in front of a number, in bytes.
const PAD_BYTES_MAX: usize = 16;
/// Longest number, in digits: any such number fits in 32 bits.
const DIGITS_MAX: usize = 9;

/// What stands in front of the text of a numbered line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineHead<'a> {
    /// Blanks in front of the number.
    pub pad: usize,
    /// The number as it is written.
    pub digits: &'a str,
    /// Its value.
    pub number: u32,
    /// `→` or a tab.
    pub separator: &'static str,
}

impl LineHead<'_> {
    /// Blanks and digits, in bytes.
    pub fn width(&self) -> usize {
        self.pad + self.digits.len()
    }
}

/// Splits a line into its head and its text; none if it is not numbered.
pub fn split(line: &str) -> Option<(LineHead<'_>, &str)> {
    let bytes = line.as_bytes();
    let pad = bytes.iter().take(PAD_BYTES_MAX + 1).take_while(|byte| **byte == b' ').count();
    let length = bytes[pad..].iter().take(DIGITS_MAX + 1).take_while(|byte| byte.is_ascii_digit()).count();
    if pad > PAD_BYTES_MAX || !(1..=DIGITS_MAX).contains(&length) {
        return None;
    }
    let (digits, rest) = line[pad..].split_at(length);
    let number = digits.parse().ok()?;
    let separator = ["→", "\t"].into_iter().find(|separator| rest.starts_with(separator))?;
    Some((LineHead { pad, digits, number, separator }, &rest[separator.len()..]))
}

/// The numbered lines of a body in order, each by its number and where it is, without its line end; none unless two of
/// them follow each other in place and in number.
pub fn lines(body: &str) -> Option<Vec<(u32, Range<usize>)>> {
    if !has_sequence(body) {
        return None;
    }
    let mut start = 0;
    let mut lines = Vec::new();
    for line in split_lines(body) {
        lines.extend(split(line).map(|(head, _)| (head.number, start..start + line.len())));
        start += line.len() + 1;
    }
    Some(lines)
}

/// The lines of a text, as `split('\n')` gives them; many bytes are searched at a time.
pub fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    line_ends(text.as_bytes()).map(move |end| &text[std::mem::replace(&mut start, end + 1)..end])
}

/// Whether two numbered lines follow each other in place and in number.
pub fn has_sequence(body: &str) -> bool {
    let mut previous: Option<u32> = None;
    split_lines(body).any(|line| {
        let number = split(line).map(|(head, _)| head.number);
        let follows = number.is_some_and(|number| previous.is_some_and(|previous| previous + 1 == number));
        previous = number;
        follows
    })
}

/// How every reference to lines begins: a body with such a line of its own is left as it is.
const HINT_START: &str = "> [range-ref: ";

/// One segment of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodySegment<'a> {
    /// The number of the line; 0 for other text, and for a line whose number stood before.
    pub number: u32,
    /// The text, line end included.
    pub text: &'a str,
}

/// The segments of a body; none unless it has numbered lines that hints could stand for.
pub fn segments(body: &str) -> Vec<BodySegment<'_>> {
    let Some(lines) = lines(body).filter(|_| !has_hint(body)) else { return Vec::new() };
    let mut numbers: IdSet<u32> = IdSet::default();
    let mut out = Vec::with_capacity(lines.len());
    let mut end = 0;
    for pair in lines.windows(2) {
        // What stands between the line and the next one belongs to the text between them.
        let ((number, line), (_, next)) = (&pair[0], &pair[1]);
        if next.start != line.end + 1 {
            continue;
        }
        if end < line.start {
            out.push(BodySegment { number: 0, text: &body[end..line.start] });
        }
        let number = if numbers.insert(*number) { *number } else { 0 };
        out.push(BodySegment { number, text: &body[line.start..next.start] });
        end = next.start;
    }
    if end < body.len() {
        out.push(BodySegment { number: 0, text: &body[end..] });
    }
    out
}

fn has_hint(body: &str) -> bool {
    let starts = |place: usize| place == 0 || body.as_bytes()[place - 1] == b'\n';
    memchr::memmem::find_iter(body.as_bytes(), HINT_START).any(starts)
}
