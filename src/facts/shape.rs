//! The shape of a tool response: one of the eleven classes of Paper 2, from the text the model saw, and the measures
//! that belong to it. One pass each, no tree, no recursion.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::base::block::line_ends;
use crate::base::body_shape::BodyShape;
use crate::base::json::{Cursor, JsonFault, JsonKind};
use crate::base::numbers::saturated;

/// Elements of an array that are looked at for its key stability (published constant).
const STABILITY_ELEMENTS_MAX: usize = 20;
/// Numbered lines from which on they are a list (published constant).
const NUMBERED_LINES_MIN: usize = 3;

/// The measures of a body. What does not apply to its shape is 0.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Description {
    /// Columns of the first Markdown table.
    pub columns: u32,
    /// Its rows: lines behind the rule that begin with a pipe, up to the first blank line.
    pub rows: u32,
    /// Elements of a JSON array.
    pub items: u32,
    /// Members of a JSON object, repeated keys included.
    pub fields: u32,
    /// Mean Jaccard index between the keys of the first element of an array of objects and those of each of the next
    /// 19: 0 … 1, and 1 if there is only one element.
    pub key_stability: f32,
    /// Nesting of JSON containers: a scalar has 0, a container one more than its deepest child.
    pub depth: u16,
}

/// Classifies a body: JSON if the whole of it is a JSON object or array, else text.
pub fn classify(body: &[u8]) -> BodyShape {
    let text = body.trim_ascii();
    if let Some(b'{' | b'[') = text.first()
        && let Ok(shape) = classify_json(text)
    {
        return shape;
    }
    classify_text(body)
}

/// Measures a body of a shape that [`classify`] found.
pub fn describe(text: &str, shape: BodyShape) -> Description {
    let described = match shape {
        BodyShape::MarkdownTable => Some(describe_table(text.as_bytes())),
        BodyShape::Empty => Some(Description { depth: 1, ..Description::default() }),
        _ if shape.is_json() => describe_json(text.as_bytes(), shape).ok(),
        _ => None,
    };
    described.unwrap_or_default()
}

fn classify_json(text: &[u8]) -> Result<BodyShape, JsonFault> {
    let mut cursor = Cursor::new(text);
    let is_object = cursor.shape()? == JsonKind::Object;
    let (mut objects, mut arrays, mut scalars) = (false, false, false);
    let mut first = cursor.enter()?;
    while if is_object { cursor.next_key(&mut first)?.is_some() } else { cursor.next_element(&mut first)? } {
        match cursor.shape()? {
            JsonKind::Object => objects = true,
            JsonKind::Array => arrays = true,
            _ => scalars = true,
        }
        cursor.skip_value()?;
    }
    if !cursor.at_end() {
        return Err(JsonFault::Syntax);
    }
    Ok(match (objects, arrays, scalars) {
        (false, false, false) => BodyShape::Empty,
        (false, false, true) if is_object => BodyShape::FlatObject,
        (false, false, true) => BodyShape::ArrayOfPrimitives,
        (true, false, false) if !is_object => BodyShape::ArrayOfObjects,
        _ => BodyShape::NestedObject,
    })
}

fn describe_json(text: &[u8], shape: BodyShape) -> Result<Description, JsonFault> {
    let mut described = Description { depth: depth_of(text)?, ..Description::default() };
    let mut cursor = Cursor::new(text);
    let is_object = cursor.shape()? == JsonKind::Object;
    let mut first = cursor.enter()?;
    if is_object {
        while cursor.next_key(&mut first)?.is_some() {
            cursor.skip_value()?;
            described.fields += 1;
        }
        return Ok(described);
    }
    let mut stability = Stability::default();
    while cursor.next_element(&mut first)? {
        if shape == BodyShape::ArrayOfObjects && stability.elements < STABILITY_ELEMENTS_MAX {
            stability.add(keys_of(&mut cursor)?);
        } else {
            cursor.skip_value()?;
        }
        described.items += 1;
    }
    described.key_stability = stability.mean();
    Ok(described)
}

/// Nesting of a JSON text that is known to be well-formed, so that brackets need no matching.
fn depth_of(text: &[u8]) -> Result<u16, JsonFault> {
    let (mut depth, mut deepest) = (0_u16, 0);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let mut cursor = Cursor::at(text, at - 1);
                cursor.string()?;
                at = cursor.pos();
            }
            _ => {}
        }
    }
    Ok(deepest)
}

type Keys<'a> = BTreeSet<Cow<'a, [u8]>>;

/// The keys of the object at the cursor.
fn keys_of<'a>(cursor: &mut Cursor<'a>) -> Result<Keys<'a>, JsonFault> {
    let mut keys = Keys::new();
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        // One with a malformed escape counts as it stands.
        keys.insert(key.decode().unwrap_or(Cow::Borrowed(key.0)));
        cursor.skip_value()?;
    }
    Ok(keys)
}

/// The running mean of the Jaccard indices.
#[derive(Default)]
struct Stability<'a> {
    elements: usize,
    first: Keys<'a>,
    sum: f32,
}

impl<'a> Stability<'a> {
    fn add(&mut self, keys: Keys<'a>) {
        if self.elements == 0 {
            self.first = keys;
        } else {
            let shared = self.first.intersection(&keys).count();
            let united = self.first.len() + keys.len() - shared;
            self.sum += if united == 0 { 1.0 } else { shared as f32 / united as f32 };
        }
        self.elements += 1;
    }

    fn mean(&self) -> f32 {
        match self.elements {
            0 => 0.0,
            1 => 1.0,
            elements => self.sum / (elements - 1) as f32,
        }
    }
}

fn classify_text(body: &[u8]) -> BodyShape {
    let (mut fences, mut bullets) = (0, 0);
    let mut numbers = NumberedLines::default();
    let mut previous: &[u8] = b"";
    for line in lines(body) {
        numbers.add(line);
        let line = line.trim_ascii();
        if is_table_rule(line) && is_table_row(previous) {
            return BodyShape::MarkdownTable;
        }
        fences += usize::from(is_fence(line));
        bullets += usize::from(line.starts_with(b"- ") || line.starts_with(b"* "));
        previous = line;
    }
    if fences >= 2 {
        BodyShape::CodeBlock
    } else if numbers.are_a_list() {
        BodyShape::NumberedList
    } else if bullets >= 3 {
        BodyShape::BulletList
    } else {
        BodyShape::Prose
    }
}

/// The lines of a text without their line feeds.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    line_ends(text).map(move |end| &text[std::mem::replace(&mut start, end + 1)..end])
}

/// Whether a trimmed line opens or closes fenced code.
pub fn is_fence(line: &[u8]) -> bool {
    line.starts_with(b"```")
}

/// Whether a trimmed line can be the header of a table.
pub fn is_table_row(line: &[u8]) -> bool {
    line.len() > 1 && line.starts_with(b"|") && line.ends_with(b"|")
}

/// Whether a trimmed line can stand between the header and the rows of a table.
pub fn is_table_rule(line: &[u8]) -> bool {
    line.starts_with(b"|") && line.iter().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
}

/// Recognises numbered lines: `12→text` wherever they come, and `12<tab>text`, as tables of many programs look as well,
/// only where the numbers follow one another from line to line.
#[derive(Default)]
pub struct NumberedLines {
    arrows: usize,
    /// Number of the last line if it was `12<tab>text`.
    last: Option<u64>,
    run: usize,
    longest_run: usize,
}

impl NumberedLines {
    /// Takes the next line.
    pub fn add(&mut self, line: &[u8]) {
        let line = line.trim_ascii_start();
        let last = self.last.take();
        if !line.first().is_some_and(u8::is_ascii_digit) {
            return;
        }
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let blanks = line[digits..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b' ').count();
        self.arrows += usize::from(line[digits + blanks..].starts_with("→".as_bytes()));
        if line.get(digits) == Some(&b'\t') {
            let number = line[..digits].iter().fold(0_u64, |sum, digit| sum.wrapping_mul(10) + u64::from(digit - b'0'));
            let follows = last.and_then(|last| last.checked_add(1)) == Some(number);
            self.run = if follows { self.run + 1 } else { 1 };
            self.longest_run = self.longest_run.max(self.run);
            self.last = Some(number);
        }
    }

    /// Whether the lines so far are a numbered list.
    pub fn are_a_list(&self) -> bool {
        self.arrows >= NUMBERED_LINES_MIN || self.longest_run >= NUMBERED_LINES_MIN
    }
}

fn describe_table(text: &[u8]) -> Description {
    let mut lines = lines(text).map(<[u8]>::trim_ascii);
    let mut header: &[u8] = b"";
    for line in lines.by_ref() {
        if is_table_rule(line) && is_table_row(header) {
            break;
        }
        header = line;
    }
    let rows = lines.take_while(|line| !line.is_empty()).filter(|line| line.starts_with(b"|")).count();
    Description { columns: columns_of(header), rows: saturated(rows as u64), ..Description::default() }
}

/// Cells of a trimmed header row. A pipe behind a back-slash is part of a cell.
fn columns_of(header: &[u8]) -> u32 {
    let mut pipes = 0_u64;
    let mut escaped = false;
    for byte in header {
        pipes += u64::from(*byte == b'|' && !escaped);
        escaped = *byte == b'\\' && !escaped;
    }
    // The first and the last pipe stand around the cells.
    saturated(pipes.saturating_sub(1).max(1))
}
