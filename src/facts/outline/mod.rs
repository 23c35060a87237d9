//! A body as nodes that can be kept or left out, and the text of those that are kept.
//!
//! JSON is taken apart along members and elements, text along Markdown: sections, list items, table rows, paragraphs.
//! What is small enough stays one node; what is not and has no parts is cut into lines. Nothing of a text is lost or
//! changed on the way: its nodes and heads together are the text. A JSON value is written line by line, each line with
//! its path, so that it can be read whatever is left out around it.

mod text;
mod value;

use crate::base::body_shape::BodyShape;
use crate::facts::encode::{Format, Params};
use crate::facts::json_tree::Json;
use crate::facts::outline::text::{characters, leaf_lines};
use crate::facts::outline::value::ValuePlace;

/// A body taken apart, in its order.
pub struct Outline {
    /// Nodes and the bounds of their groups.
    pub parts: Vec<OutlinePart>,
}

/// One node, or one end of a group.
pub enum OutlinePart {
    /// Something to keep or leave out.
    Node(OutlineNode),
    /// The start of a group.
    Open(NodeGroup),
    /// The end of the group that was opened last.
    Close,
}

/// The smallest thing to keep or leave out.
pub struct OutlineNode {
    /// How it can be written, each as whole lines.
    pub forms: Vec<String>,
    /// What it is worth: the characters of a text; the leaf values of JSON, where each line of a text counts as one.
    pub value: u64,
    /// Whether it is a hint of an earlier stage, which is never left out.
    pub required: bool,
}

/// Nodes that belong together.
pub struct NodeGroup {
    /// What stands before them if any is kept.
    pub head: GroupHead,
    /// What stands behind them if any is kept.
    pub tail: Tail,
    /// The place of the part behind the end of the group.
    pub end: usize,
}

/// What stands before the nodes of a group.
pub enum GroupHead {
    /// These lines.
    Lines(String),
    /// A heading that says how many of the group's children are shown, and the head of their table.
    Slice {
        /// What the children are.
        name: String,
        /// How many there are.
        total: usize,
        /// Lines below the heading.
        columns: String,
    },
}

impl GroupHead {
    /// The lines, for this many children that are shown.
    pub fn text(&self, shown: usize) -> String {
        match self {
            Self::Lines(lines) => lines.clone(),
            Self::Slice { name, total, columns } => format!("## {name} ({shown} of {total})\n{columns}"),
        }
    }
}

/// What stands behind the nodes of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tail {
    /// Nothing.
    None,
    /// A blank line, unless the last nodes are left out: then a hint ends the group.
    Blank,
    /// These lines.
    Lines(String),
}

/// How a body is taken apart.
pub struct OutlineRules<'a> {
    /// Nodes of more bytes are taken apart, if they have parts.
    pub node_bytes_max: usize,
    /// The formats in which a JSON node may be written, beside JSON.
    pub formats: &'a [&'a Format],
    /// What these are told.
    pub params: Params,
}

impl Outline {
    /// Takes a body apart. `count` tells tokens, to choose one form for all rows of a table.
    pub fn of(text: &str, shape: BodyShape, cut: &OutlineRules<'_>, count: &mut dyn FnMut(&str) -> u64) -> Self {
        let mut builder = Builder { parts: Vec::new(), cut, count, worth: characters };
        match Json::parse(text) {
            Ok(value) if shape.is_json() => {
                builder.worth = leaf_lines;
                builder.value(&value, &ValuePlace::root());
            }
            _ if shape == BodyShape::NumberedList => builder.lines(text),
            _ => builder.markdown(text),
        }
        Self { parts: builder.parts }
    }

    /// The text of the nodes for which `form` gives a form, with `hint` where this many others are left out.
    pub fn render(&self, form: &dyn Fn(usize) -> Option<usize>, hint: &dyn Fn(usize) -> String) -> String {
        let shown = self.shown(&|at| form(at).is_some());
        let mut writer = Rendering { out: String::new(), left_out: 0, hint };
        let (mut at, mut tails) = (0, Vec::new());
        while let Some(part) = self.parts.get(at) {
            at += 1;
            match part {
                OutlinePart::Node(node) => match form(at - 1) {
                    Some(form) => writer.push(&node.forms[form]),
                    None => writer.left_out += 1,
                },
                OutlinePart::Open(group) if shown[at - 1] == 0 => {
                    writer.left_out +=
                        self.parts[at..group.end].iter().filter(|part| matches!(part, OutlinePart::Node(_))).count();
                    at = group.end;
                }
                OutlinePart::Open(group) => {
                    writer.push(&group.head.text(shown[at - 1]));
                    tails.push(&group.tail);
                }
                OutlinePart::Close => writer.end(tails.pop().unwrap_or(&Tail::None)),
            }
        }
        writer.flush();
        writer.out
    }

    /// Of every group, how many of its children are kept or have something kept in them.
    pub fn shown(&self, kept: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let mut shown = vec![0; self.parts.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let child_shown = match part {
                OutlinePart::Node(_) => kept(at),
                OutlinePart::Open(_) => {
                    open.push(at);
                    continue;
                }
                OutlinePart::Close => open.pop().is_some_and(|group| shown[group] > 0),
            };
            if let Some(&group) = open.last() {
                shown[group] += usize::from(child_shown);
            }
        }
        shown
    }
}

/// A text that is being put together.
struct Rendering<'a> {
    out: String,
    left_out: usize,
    hint: &'a dyn Fn(usize) -> String,
}

impl Rendering<'_> {
    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush();
            self.out.push_str(text);
        }
    }

    fn end(&mut self, tail: &Tail) {
        match tail {
            Tail::Lines(lines) => self.push(lines),
            Tail::Blank if self.left_out == 0 => self.push("\n"),
            Tail::Blank | Tail::None => {}
        }
    }

    /// Says what was left out since the last text, on a line of its own.
    fn flush(&mut self) {
        if self.left_out > 0 {
            self.out.push_str(if self.out.is_empty() || self.out.ends_with('\n') { "" } else { "\n" });
            self.out.push_str(&(self.hint)(self.left_out));
            self.left_out = 0;
        }
    }
}

struct Builder<'a> {
    parts: Vec<OutlinePart>,
    cut: &'a OutlineRules<'a>,
    count: &'a mut dyn FnMut(&str) -> u64,
    /// What a text is worth.
    worth: fn(&str) -> u64,
}

impl Builder<'_> {
    fn node(&mut self, forms: Vec<String>, value: u64) {
        self.parts.push(OutlinePart::Node(OutlineNode { forms, value, required: false }));
    }

    fn group(&mut self, head: GroupHead, tail: Tail, fill: impl FnOnce(&mut Self)) {
        let open = self.parts.len();
        self.parts.push(OutlinePart::Open(NodeGroup { head, tail, end: 0 }));
        fill(self);
        self.close(open);
    }

    /// Ends the group that was opened there.
    fn close(&mut self, open: usize) {
        self.parts.push(OutlinePart::Close);
        let behind = self.parts.len();
        if let OutlinePart::Open(group) = &mut self.parts[open] {
            group.end = behind;
        }
    }

    fn is_small(&self, text: &str) -> bool {
        text.len() <= self.cut.node_bytes_max
    }
}
