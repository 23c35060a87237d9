//! A JSON value taken apart as deep as it pays: every node is written in the form that costs least (lines, items, tables,
//! fences, compact JSON), and the forms nest (grammar and example: docs/formats.md).

use std::cell::Cell;

use crate::base::body_shape::BodyShape;
use crate::base::json::Cursor;
use crate::facts::cell::{as_json, fence_for, read_name, read_value, write_name, write_value};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject, csv, markdown_table};
use crate::facts::json_tree::{Json, write_string};

/// The cheapest form of every node, which is the multiple-choice knapsack of Paper 2 where no budget binds. Tokens are
/// estimated here; not for values that seem cheapest as compact JSON.
pub const FORMAT: Format =
    Format { id: "pipeline_deep_mckp", family: FormatFamily::Published, by_depth: true, encode, decode };

/// Deepest level that is taken apart or read, whatever is asked for: a node is looked at once per level above it.
const LEVELS_MAX: usize = 16;

/// Marks a text that spells the JSON value behind it.
const JSON_TEXT: &str = "!json";

fn encode(subject: &Subject<'_>, params: Params) -> Option<String> {
    let value = subject.json()?;
    let json = value.compact();
    let blocks = DeepWriter { params, is_deeper: &subject.is_deeper }.blocks(value, &json, 0);
    let mut best = blocks.into_iter().min_by_key(|block| block.cost)?;
    best.text.pop();
    (best.cost < estimate(&json)).then_some(best.text)
}

fn decode(text: &str) -> Option<Meaning> {
    let text = format!("{text}\n");
    let mut reader = LinesAhead { rest: &text };
    let value = reader.block(0)?;
    reader.rest.is_empty().then_some(Meaning::Json(value))
}

/// A text and what it costs, about.
struct CostedText {
    text: String,
    cost: usize,
}

impl CostedText {
    fn of(text: String) -> Self {
        Self { cost: estimate(&text), text }
    }

    /// The line feed costs nothing: it belongs to the colon or dash before it.
    fn on_next_line(self) -> Self {
        Self { text: format!("\n{}", self.text), cost: self.cost }
    }
}

struct DeepWriter<'a> {
    params: Params,
    is_deeper: &'a Cell<bool>,
}

impl DeepWriter<'_> {
    /// What is written behind the colon of a key or the dash of an item, line feed included. `level` is that of the
    /// line.
    fn value(&self, value: &Json, level: usize, behind: char) -> CostedText {
        let inline = inline(value, behind);
        let more = match value {
            Json::String(text) => self.texts(text, level),
            _ => self.blocks(value, inline.trim(), level + 1).into_iter().map(CostedText::on_next_line).collect(),
        };
        // The first of several equal ones is the plainest.
        more.into_iter().fold(CostedText::of(inline), |best, form| if form.cost < best.cost { form } else { best })
    }

    /// The forms of a container that take lines of their own.
    fn blocks(&self, value: &Json, compact: &str, level: usize) -> Vec<CostedText> {
        let is_cut = level >= self.params.recursion_depth.min(LEVELS_MAX);
        match value {
            Json::Object(members) if members.is_empty() => Vec::new(),
            Json::Array(elements) if elements.is_empty() => Vec::new(),
            Json::Object(_) | Json::Array(_) if is_cut => {
                self.is_deeper.set(true);
                Vec::new()
            }
            Json::Object(members) => vec![self.members(members, level)],
            Json::Array(elements) => {
                let mut forms = self.tables(compact);
                forms.push(self.items(elements, level));
                forms
            }
            _ => Vec::new(),
        }
    }

    fn members(&self, members: &[(String, Json)], level: usize) -> CostedText {
        let mut all = CostedText { text: String::new(), cost: 0 };
        for (key, value) in members {
            let start = all.text.len();
            all.text.extend(std::iter::repeat_n(' ', level));
            write_key(key, &mut all.text);
            all.text.push(':');
            all.cost += estimate(&all.text[start..]);
            self.append(value, level, ':', &mut all);
        }
        all
    }

    fn items(&self, elements: &[Json], level: usize) -> CostedText {
        let dash = format!("{}-", " ".repeat(level));
        let dash_cost = estimate(&dash);
        let mut all = CostedText { text: String::new(), cost: 0 };
        for element in elements {
            all.text.push_str(&dash);
            all.cost += dash_cost;
            self.append(element, level, '-', &mut all);
        }
        all
    }

    fn append(&self, value: &Json, level: usize, behind: char, all: &mut CostedText) {
        let piece = self.value(value, level, behind);
        all.text.push_str(&piece.text);
        all.cost += piece.cost;
    }

    /// The tables of an array of objects, which are those of a body of its own.
    fn tables(&self, compact: &str) -> Vec<CostedText> {
        let subject = Subject::new(compact, BodyShape::ArrayOfObjects);
        let csv = (csv::FORMAT.encode)(&subject, self.params).map(|text| fenced("csv", &text));
        let pipes = (markdown_table::FORMAT.encode)(&subject, self.params).map(|text| text + "\n");
        csv.into_iter().chain(pipes).map(CostedText::of).collect()
    }

    /// The forms of a text other than the one in its line.
    fn texts(&self, text: &str, level: usize) -> Vec<CostedText> {
        let mut forms = Vec::new();
        if text.contains('\n') {
            forms.push(CostedText::of(format!("\n{}", fenced("", text))));
        } else if let Some(value) = as_json(text).filter(Json::is_container) {
            forms.push(CostedText::of(format!(" {JSON_TEXT} {text}\n")));
            if value.compact() == text {
                let blocks = self.blocks(&value, text, level + 1).into_iter();
                let opened = blocks.map(|block| format!(" {JSON_TEXT}\n{}", block.text));
                forms
                    .extend(opened.filter(|opened| LinesAhead { rest: opened }.gives(text, level)).map(CostedText::of));
            }
        }
        forms
    }
}

fn inline(value: &Json, behind: char) -> String {
    let mut out = String::new();
    match value {
        Json::Null => {}
        Json::Number(literal) if behind == ':' => out.push_str(literal),
        Json::String(text) if text.starts_with(JSON_TEXT) => {
            out.push(' ');
            write_string(text, &mut out);
        }
        _ => {
            out.push(' ');
            write_value(value, &mut out);
        }
    }
    out.push('\n');
    out
}

/// Appends a key such that no line starts like an item, a table or a fence, and the first colon ends it.
fn write_key(key: &str, out: &mut String) {
    if key.starts_with(['-', '|', '`']) || key.contains(':') { write_string(key, out) } else { write_name(key, out) }
}

/// A text in a fence that is longer than any run of back-ticks in it.
fn fenced(info: &str, text: &str) -> String {
    let fence = fence_for(text);
    format!("{fence}{info}\n{text}\n{fence}\n")
}

/// The lines that are still ahead.
struct LinesAhead<'a> {
    rest: &'a str,
}

impl<'a> LinesAhead<'a> {
    fn line(&mut self) -> Option<&'a str> {
        let (line, behind) = self.rest.split_once('\n')?;
        self.rest = behind;
        Some(line)
    }

    /// Whether the next line is at least that deep.
    fn is_at(&self, level: usize) -> bool {
        self.rest.len() > level && self.rest.bytes().take(level).all(|byte| byte == b' ')
    }

    fn starts_block(&self, level: usize) -> bool {
        self.rest.starts_with(['|', '`']) || level > 0 && self.is_at(level)
    }

    /// Reads a container or a text that takes lines of its own.
    fn block(&mut self, level: usize) -> Option<Json> {
        match self.rest.bytes().next()? {
            b'`' => self.fence(),
            b'|' => self.table(),
            _ if level > LEVELS_MAX || !self.is_at(level) => None,
            _ if self.rest[level..].starts_with('-') => self.items(level),
            _ => self.members(level),
        }
    }

    fn members(&mut self, level: usize) -> Option<Json> {
        let mut members = Vec::new();
        while self.is_at(level) && !(level == 0 && self.starts_block(0)) {
            self.rest = &self.rest[level..];
            let key = self.key()?;
            members.push((key, self.value(level, ':')?));
        }
        Json::object(members).ok()
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Option<String> {
        let end = if self.rest.starts_with('"') {
            let mut cursor = Cursor::new(self.rest.as_bytes());
            cursor.string().ok()?;
            cursor.pos()
        } else {
            self.rest.find([':', '\n'])?
        };
        let (key, behind) = self.rest.split_at(end);
        self.rest = behind.strip_prefix(':')?;
        read_name(key)
    }

    fn items(&mut self, level: usize) -> Option<Json> {
        let mut elements = Vec::new();
        while self.is_at(level) && self.rest[level..].starts_with('-') {
            self.rest = &self.rest[level + 1..];
            elements.push(self.value(level, '-')?);
        }
        Some(Json::Array(elements))
    }

    /// Reads what stands behind the colon of a key or the dash of an item.
    fn value(&mut self, level: usize, behind: char) -> Option<Json> {
        let line = self.line()?;
        let Some(spelled) = line.strip_prefix(' ') else {
            return match line {
                "" if self.starts_block(level + 1) => self.block(level + 1),
                "" => Some(Json::Null),
                number => as_json(number).filter(|value| behind == ':' && matches!(value, Json::Number(_))),
            };
        };
        match spelled.strip_prefix(JSON_TEXT) {
            Some("") => Some(Json::String(self.block(level + 1)?.compact())),
            Some(text) => Some(Json::String(text.strip_prefix(' ')?.to_owned())),
            None => read_value(spelled),
        }
    }

    /// Whether the value that is written here is this text.
    fn gives(mut self, text: &str, level: usize) -> bool {
        self.value(level, ':').is_some_and(|value| value.as_str() == Some(text))
    }

    fn fence(&mut self) -> Option<Json> {
        let opening = self.line()?;
        let info = opening.trim_start_matches('`');
        let closing = format!("{}\n", &opening[..opening.len() - info.len()]);
        let end = self.rest.find(&format!("\n{closing}"))?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1 + closing.len()..];
        match info {
            "" => Some(Json::String(text.to_owned())),
            "csv" => array(csv::FORMAT, text),
            _ => None,
        }
    }

    fn table(&mut self) -> Option<Json> {
        let rows = self.rest.split_inclusive('\n').take_while(|line| line.starts_with('|'));
        let (text, behind) = self.rest.split_at(rows.map(str::len).sum());
        self.rest = behind;
        array(markdown_table::FORMAT, text.strip_suffix('\n')?)
    }
}

fn array(format: Format, text: &str) -> Option<Json> {
    if let Meaning::Json(value) = (format.decode)(text)? { Some(value) } else { None }
}

/// What a token is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Letter,
    Digit,
    Mark,
    Blank,
    Break,
}

/// What each byte is a part of.
const KINDS: [TokenKind; 256] = {
    let mut kinds = [TokenKind::Mark; 256];
    let mut byte = 0;
    while byte < kinds.len() {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => TokenKind::Letter,
            b'0'..=b'9' => TokenKind::Digit,
            b'\n' | b'\r' => TokenKind::Break,
            b' ' | b'\t' => TokenKind::Blank,
            _ => TokenKind::Mark,
        };
        byte += 1;
    }
    kinds
};

/// About how many tokens a text is, as far as its forms differ in it: a token for a word, three digits, two marks or a
/// line break. One blank belongs to the word or mark behind it, but not to a number; a line break to the mark before
/// it.
fn estimate(text: &str) -> usize {
    let (mut tokens, mut before, mut blanks) = (0, TokenKind::Break, 0);
    let mut rest = text.as_bytes();
    while let Some(&first) = rest.first() {
        let kind = KINDS[usize::from(first)];
        let length = 1 + rest[1..].iter().take_while(|byte| KINDS[usize::from(**byte)] == kind).count();
        rest = &rest[length..];
        tokens += usize::from(blanks > 1 || blanks == 1 && kind == TokenKind::Digit);
        blanks = if kind == TokenKind::Blank { length } else { 0 };
        tokens += match kind {
            TokenKind::Letter => 1,
            TokenKind::Digit => length.div_ceil(3),
            TokenKind::Mark => length.div_ceil(2),
            TokenKind::Blank => 0,
            TokenKind::Break => usize::from(before != TokenKind::Mark),
        };
        before = kind;
    }
    tokens
}
