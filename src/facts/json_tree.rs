//! A JSON value as encodings must keep it: numbers by their spelling, keys in document order, and nothing that two readers
//! could understand differently.

use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr};

/// Deepest nesting of a value that can be written in another format.
pub const DEPTH_MAX: usize = 128;

/// A JSON value. Equality takes the keys of an object in any order and numbers by their literal text.
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is spelled: `1`, `1.0` and `1e0` are three.
    Number(String),
    /// A text, escapes resolved.
    String(String),
    Array(Vec<Json>),
    /// The members in document order; no key occurs twice.
    Object(Vec<(String, Json)>),
}

/// Why a text is not a value that can be written in another format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonRefusal {
    /// The text as a whole is not one JSON value.
    NotJson,
    /// An object has the same key twice, so that readers disagree about what it says.
    DuplicateKey,
    /// Nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// An escape stands for half a UTF-16 pair, which no text can hold.
    LoneSurrogate,
}

impl From<JsonFault> for JsonRefusal {
    fn from(fault: JsonFault) -> Self {
        match fault {
            JsonFault::Torn | JsonFault::Syntax => Self::NotJson,
            JsonFault::TooDeep => Self::TooDeep,
        }
    }
}

impl Json {
    /// Reads a text that is one JSON value and nothing else.
    pub fn parse(text: &str) -> Result<Self, JsonRefusal> {
        let mut cursor = Cursor::new(text.as_bytes());
        let value = read_value(&mut cursor, DEPTH_MAX)?;
        if cursor.at_end() { Ok(value) } else { Err(JsonRefusal::NotJson) }
    }

    /// An object of these members; refused if a key occurs twice.
    pub fn object(members: Vec<(String, Self)>) -> Result<Self, JsonRefusal> {
        if has_duplicates(&members) { Err(JsonRefusal::DuplicateKey) } else { Ok(Self::Object(members)) }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&[(String, Self)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The elements, if this is an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// Whether this is an object or an array.
    pub fn is_container(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// The value without any white space.
    pub fn compact(&self) -> String {
        let mut out = String::new();
        self.write_compact(&mut out);
        out
    }

    /// The value over several lines, two blanks per level.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out
    }

    /// Appends the value without any white space.
    pub fn write_compact(&self, out: &mut String) {
        self.write(out, None);
    }

    /// Appends the value: over several lines from a level on, else without any white space.
    fn write(&self, out: &mut String, level: Option<usize>) {
        match self {
            Self::Array(elements) => {
                write_list(out, ['[', ']'], level, elements, &|element, out, inner| element.write(out, inner));
            }
            Self::Object(members) => write_list(out, ['{', '}'], level, members, &|(key, value), out, inner| {
                write_string(key, out);
                out.push_str(if inner.is_some() { ": " } else { ":" });
                value.write(out, inner);
            }),
            Self::Null => out.push_str("null"),
            Self::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Self::Number(literal) => out.push_str(literal),
            Self::String(text) => write_string(text, out),
        }
    }
}

/// Appends what stands between brackets, each of it on a line of its own if there are levels.
fn write_list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    level: Option<usize>,
    items: &[T],
    write: &dyn Fn(&T, &mut String, Option<usize>),
) {
    let inner = level.map(|level| level + 1);
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        if let Some(level) = inner {
            break_line(out, level);
        }
        write(item, out, inner);
    }
    if let Some(level) = level.filter(|_| !items.is_empty()) {
        break_line(out, level);
    }
    out.push(close);
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Number(one), Self::Number(two)) | (Self::String(one), Self::String(two)) => one == two,
            (Self::Array(one), Self::Array(two)) => one == two,
            (Self::Object(one), Self::Object(two)) => same_members(one, two),
            _ => false,
        }
    }
}

impl Eq for Json {}

fn same_members(one: &[(String, Json)], two: &[(String, Json)]) -> bool {
    let same_order = one.iter().map(|(key, _)| key).eq(two.iter().map(|(key, _)| key));
    if same_order {
        one.iter().map(|(_, value)| value).eq(two.iter().map(|(_, value)| value))
    } else {
        one.len() == two.len() && by_key(one) == by_key(two)
    }
}

fn by_key(members: &[(String, Json)]) -> Vec<(&str, &Json)> {
    let mut sorted: Vec<_> = members.iter().map(|(key, value)| (key.as_str(), value)).collect();
    sorted.sort_by_key(|(key, _)| *key);
    sorted
}

fn break_line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", level));
}

/// Appends a text as a JSON string: on one line, with the shortest escapes and only where JSON asks for one.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[done..at]);
        done = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            control => out.extend(['\\', 'u', '0', '0', hex(control >> 4), hex(control & 15)]),
        }
    }
    out.push_str(&text[done..]);
    out.push('"');
}

fn hex(nibble: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(nibble)])
}

/// Reads the value at the cursor, with at most `levels` of nesting in it.
fn read_value(cursor: &mut Cursor<'_>, levels: usize) -> Result<Json, JsonRefusal> {
    Ok(match cursor.shape()? {
        JsonKind::Object => read_object(cursor, levels.checked_sub(1).ok_or(JsonRefusal::TooDeep)?)?,
        JsonKind::Array => read_array(cursor, levels.checked_sub(1).ok_or(JsonRefusal::TooDeep)?)?,
        JsonKind::String => Json::String(text(cursor.string()?.0)?),
        JsonKind::Bool => Json::Bool(cursor.boolean()?),
        JsonKind::Number => Json::Number(text(cursor.number()?)?),
        JsonKind::Null => {
            cursor.skip_value()?;
            Json::Null
        }
    })
}

fn read_array(cursor: &mut Cursor<'_>, levels: usize) -> Result<Json, JsonRefusal> {
    let mut elements = Vec::new();
    let mut first = cursor.enter()?;
    while cursor.next_element(&mut first)? {
        elements.push(read_value(cursor, levels)?);
    }
    Ok(Json::Array(elements))
}

fn read_object(cursor: &mut Cursor<'_>, levels: usize) -> Result<Json, JsonRefusal> {
    let mut members = Vec::new();
    let mut first = cursor.enter()?;
    while let Some(key) = cursor.next_key(&mut first)? {
        members.push((text(key.0)?, read_value(cursor, levels)?));
    }
    Json::object(members)
}

/// The text that a raw string stands for. The raw bytes come out of a text, so only half a pair can spoil it.
fn text(raw: &[u8]) -> Result<String, JsonRefusal> {
    if raw.iter().fold(false, |found, byte| found | (*byte < b' ')) {
        return Err(JsonRefusal::NotJson);
    }
    let bytes = RawStr(raw).decode().ok_or(JsonRefusal::NotJson)?;
    String::from_utf8(bytes.into_owned()).map_err(|_| JsonRefusal::LoneSurrogate)
}

fn has_duplicates(members: &[(String, Json)]) -> bool {
    /// Up to here comparing all pairs is faster than sorting.
    const PAIRWISE_MAX: usize = 12;
    let twice = |index: usize| members[..index].iter().any(|(key, _)| *key == members[index].0);
    if members.len() <= PAIRWISE_MAX {
        (1..members.len()).any(twice)
    } else {
        by_key(members).windows(2).any(|pair| pair[0].0 == pair[1].0)
    }
}
