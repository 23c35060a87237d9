//! A body cut where no token spans the cut: each numbered line by itself, everything else in between.
//!
//! A line feed ends a token unless another one (or, in some vocabularies, a slash) follows; a numbered line begins with a
//! blank or a digit. So the tokens of the stretches add up to those of the body, and the cost of a body in which some
//! lines are replaced by hints follows from the facts.

use crate::base::id::IdSet;
use crate::facts::numbered;

/// How every reference to lines begins: a body with such a line of its own is left as it is.
const HINT_START: &str = "> [range-ref: ";

/// One stretch of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenSegment<'a> {
    /// The number of the line; 0 for other text, and for a line whose number stood before.
    pub number: u32,
    /// The text, line end included.
    pub text: &'a str,
}

/// The stretches of a body; none unless it has numbered lines that hints could stand for.
pub fn stretches(body: &str) -> Vec<TokenSegment<'_>> {
    let Some(lines) = numbered::lines(body).filter(|_| !has_hint(body)) else { return Vec::new() };
    let mut numbers: IdSet<u32> = IdSet::default();
    let mut out = Vec::with_capacity(lines.len());
    let mut end = 0;
    for pair in lines.windows(2) {
        // What stands between the line and the next one belongs to the text between them.
        let (line, next) = (&pair[0], &pair[1]);
        if next.span.start != line.span.end + 1 {
            continue;
        }
        if end < line.span.start {
            out.push(TokenSegment { number: 0, text: &body[end..line.span.start] });
        }
        let number = if numbers.insert(line.number) { line.number } else { 0 };
        out.push(TokenSegment { number, text: &body[line.span.start..next.span.start] });
        end = next.span.start;
    }
    if end < body.len() {
        out.push(TokenSegment { number: 0, text: &body[end..] });
    }
    out
}

fn has_hint(body: &str) -> bool {
    let starts = |place: usize| place == 0 || body.as_bytes()[place - 1] == b'\n';
    memchr::memmem::find_iter(body.as_bytes(), HINT_START).any(starts)
}
