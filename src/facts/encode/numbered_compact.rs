//! Numbered lines with a number only where a sequence starts or jumps and on every k-th line (grammar and example:
//! docs/formats.md). Behind a tab, a line of the file that begins with a tab would look like the number left out and a line
//! that begins with none: if there is such a line, numbers are written with `→` in place of the tab, and the first line says
//! so.

use std::borrow::Cow;

use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::numbered::{self, LineHead, split_lines};

/// The first number of a sequence is padded as it was; the others stand without padding.
pub const FORMAT: Format =
    Format { id: "numbered_compact", family: FormatFamily::Extended, by_depth: false, encode, decode };

/// Ends a sequence in front of text that is not numbered.
const END: &str = "[end]";
/// The first line, if numbers are written with `→` that have a tab in the body.
const TABS: &str = "[→ stands for a tab]";

/// The last numbered line, from which the next one follows.
#[derive(Clone, Copy)]
struct Sequence {
    number: u32,
    /// Bytes to which numbers are padded; 0 if they are not.
    width: usize,
    separator: &'static str,
}

impl Sequence {
    fn start(head: &LineHead<'_>) -> Self {
        let width = if head.pad > 0 { head.width() } else { 0 };
        Self { number: head.number, width, separator: head.separator }
    }

    /// Goes on to a line whose head is written; padding in it changes that of the lines to come.
    fn jump(self, head: &LineHead<'_>) -> Self {
        if head.pad > 0 { Self::start(head) } else { Self { width: self.width, ..Self::start(head) } }
    }

    fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }

    /// Blanks in front of a number with so many digits.
    fn pad(self, digits: usize) -> usize {
        self.width.saturating_sub(digits)
    }

    /// Whether a line of this sequence starts exactly so.
    fn writes(self, head: &LineHead<'_>) -> bool {
        let digits = self.number.checked_ilog10().map_or(1, |power| power as usize + 1);
        (head.number, head.separator, head.digits.len(), head.pad)
            == (self.number, self.separator, digits, self.pad(digits))
    }
}

fn encode(subject: &Subject<'_>, params: Params) -> Option<String> {
    let text = subject.text;
    if !numbered::has_sequence(text) || text.starts_with(TABS) {
        return None;
    }
    if !has_shifted(text) {
        return Some(write(text, params));
    }
    let arrows = replaced(text, "\t", "→")?;
    Some(format!("{TABS}\n{}", write(&arrows, params)))
}

/// Whether a line behind a tab begins with one.
fn has_shifted(text: &str) -> bool {
    let shifted = |(head, line): (LineHead<'_>, &str)| head.separator == "\t" && line.starts_with('\t');
    split_lines(text).filter_map(numbered::split).any(shifted)
}

/// The text with another separator behind its numbers; none if some number has that one already.
fn replaced(text: &str, from: &str, to: &str) -> Option<String> {
    let line = |line| {
        let Some((head, rest)) = numbered::split(line) else { return Some(Cow::Borrowed(line)) };
        (head.separator == from).then(|| Cow::Owned([&line[..head.width()], to, rest].concat()))
    };
    split_lines(text).map(line).collect::<Option<Vec<_>>>().map(|lines| lines.join("\n"))
}

fn write(text: &str, params: Params) -> String {
    let every = u32::try_from(params.numbered_every).unwrap_or(u32::MAX);
    let last = text.len() - text.rsplit('\n').next().map_or(0, str::len);
    let mut out = String::with_capacity(text.len());
    let mut sequence: Option<Sequence> = None;
    let mut start = 0;
    for line in split_lines(text) {
        let ends_body = start == last;
        if start > 0 {
            out.push('\n');
        }
        start += line.len() + 1;
        let Some((head, rest)) = numbered::split(line) else {
            if sequence.take().is_some() && !(ends_body && line.is_empty()) {
                out.extend([END, "\n"]);
            }
            out.push_str(line);
            continue;
        };
        sequence = Some(match sequence {
            Some(previous) if previous.next().writes(&head) => {
                let bare = !head.number.is_multiple_of(every) && reads_as_text(rest, ends_body);
                out.push_str(if bare { rest } else { &line[head.pad..] });
                previous.next()
            }
            Some(previous) if head.pad == previous.pad(head.digits.len()) => {
                out.push_str(&line[head.pad..]);
                previous.jump(&LineHead { pad: 0, ..head })
            }
            Some(previous) if head.pad > 0 => {
                out.push_str(line);
                previous.jump(&head)
            }
            Some(_) => {
                out.extend([END, "\n", line]);
                Sequence::start(&head)
            }
            None => {
                out.push_str(line);
                Sequence::start(&head)
            }
        });
    }
    out
}

/// Whether a line of a sequence that is written without its number is taken for nothing else.
fn reads_as_text(line: &str, ends_body: bool) -> bool {
    line != END && !(ends_body && line.is_empty()) && numbered::split(line).is_none()
}

fn decode(text: &str) -> Option<Meaning> {
    match text.strip_prefix(TABS).and_then(|rest| rest.strip_prefix('\n')) {
        Some(rest) => replaced(&read(rest)?, "→", "\t").map(Meaning::Text),
        None => read(text).map(Meaning::Text),
    }
}

fn read(text: &str) -> Option<String> {
    let last = text.len() - text.rsplit('\n').next().map_or(0, str::len);
    let mut out = String::with_capacity(text.len() * 3 / 2);
    let mut sequence: Option<Sequence> = None;
    let mut numbered = false;
    let mut start = 0;
    for line in split_lines(text) {
        let ends_body = start == last;
        start += line.len() + 1;
        let head = numbered::split(line).map(|(head, _)| head);
        sequence = match (sequence, head) {
            (None, head) => {
                out.push_str(line);
                head.map(|head| Sequence::start(&head))
            }
            (Some(_), None) if line == END => {
                sequence = None;
                continue;
            }
            (Some(_), None) if ends_body && line.is_empty() => None,
            (Some(previous), Some(head)) => {
                push_blanks(&mut out, if head.pad > 0 { 0 } else { previous.pad(head.digits.len()) });
                out.push_str(line);
                Some(previous.jump(&head))
            }
            (Some(previous), None) => {
                let next = previous.next();
                let digits = next.number.to_string();
                push_blanks(&mut out, next.pad(digits.len()));
                out.extend([&digits, next.separator, line]);
                Some(next)
            }
        };
        numbered |= sequence.is_some();
        if !ends_body {
            out.push('\n');
        }
    }
    numbered.then_some(out)
}

fn push_blanks(out: &mut String, blanks: usize) {
    out.extend(std::iter::repeat_n(' ', blanks));
}
