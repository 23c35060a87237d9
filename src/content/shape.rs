//! The shape of a tool response: one of the eleven classes of Paper 2, from the text the model saw.

use std::collections::BTreeSet;

use crate::json::{Cursor, Fault, Shape as JsonShape};
use crate::model::body_shape::BodyShape;

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

fn classify_json(text: &[u8]) -> Result<BodyShape, Fault> {
    let mut cursor = Cursor::new(text);
    let is_object = cursor.shape()? == JsonShape::Object;
    let mut members = BTreeSet::new();
    cursor.enter()?;
    let mut first = true;
    let mut any = false;
    loop {
        let more = if is_object { cursor.next_key(&mut first)?.is_some() } else { cursor.next_element(&mut first)? };
        if !more {
            break;
        }
        any = true;
        members.insert(match cursor.shape()? {
            JsonShape::Object => Member::Object,
            JsonShape::Array => Member::Array,
            _ => Member::Scalar,
        });
        cursor.skip_value()?;
    }
    if !cursor.at_end() {
        return Err(Fault::Syntax);
    }
    let only = |member| members.len() == 1 && members.contains(&member);
    Ok(match (any, is_object) {
        (false, _) => BodyShape::Empty,
        (true, true) if only(Member::Scalar) => BodyShape::FlatObject,
        (true, false) if only(Member::Object) => BodyShape::ArrayOfObjects,
        (true, false) if only(Member::Scalar) => BodyShape::ArrayOfPrimitives,
        _ => BodyShape::NestedObject,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Object,
    Array,
    Scalar,
}

fn classify_text(body: &[u8]) -> BodyShape {
    let (mut fences, mut numbered, mut bullets) = (0, 0, 0);
    let mut previous: &[u8] = b"";
    for line in body.split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        if is_table_rule(line) && is_table_row(previous) {
            return BodyShape::MarkdownTable;
        }
        fences += usize::from(line.starts_with(b"```"));
        numbered += usize::from(is_numbered(line));
        bullets += usize::from(line.starts_with(b"- ") || line.starts_with(b"* "));
        previous = line;
    }
    match (fences, numbered, bullets) {
        (2.., _, _) => BodyShape::CodeBlock,
        (_, 3.., _) => BodyShape::NumberedList,
        (_, _, 3..) => BodyShape::BulletList,
        _ => BodyShape::Prose,
    }
}

fn is_table_row(line: &[u8]) -> bool {
    line.len() > 1 && line.starts_with(b"|") && line.ends_with(b"|")
}

fn is_table_rule(line: &[u8]) -> bool {
    line.starts_with(b"|") && line.iter().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
}

fn is_numbered(line: &[u8]) -> bool {
    let number = line.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b' ').count();
    line[..number].iter().any(u8::is_ascii_digit) && line[number..].starts_with("→".as_bytes())
}
