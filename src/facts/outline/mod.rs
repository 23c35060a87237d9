//! A body as nodes that can be kept or left out, and the text of those that are kept.
//!
//! JSON is taken apart along members and elements, text along Markdown: sections, list items, table rows, paragraphs.
//! What is small enough stays one node; what is not and has no parts is cut into lines, and a line only where all of it
//! is too much. Nothing of a text is lost or changed on the way: its nodes and heads together are the text. A JSON value
//! is written line by line, each line with its path, so that it can be read whatever is left out around it.

mod text;
mod value;

pub use text::lines_in;

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
#[derive(Default)]
pub struct OutlineNode {
    /// How it can be written, each as whole lines.
    pub forms: Vec<String>,
    /// What it is worth: the characters of a text; the leaf values of JSON, where each line of a text counts as one.
    pub value: u64,
    /// What a hint counts it as: the lines of a text that it has a part of, a value of JSON as one.
    pub count: u64,
    /// Whether it begins within the line in which the node before it ends.
    pub goes_on: bool,
    /// Whether it is a hint of an earlier stage, which is never left out.
    pub required: bool,
}

/// Nodes that belong together.
pub struct NodeGroup {
    /// What stands before them if any is kept.
    pub head: GroupHead,
    /// What stands behind them if any is kept.
    pub tail: Tail,
    /// Whether it is one value of JSON: a hint counts it as one where all of it is left out.
    pub is_value: bool,
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

impl NodeGroup {
    /// The lines of a text around its nodes.
    fn own_lines(&self) -> u64 {
        let head = if let GroupHead::Lines(lines) = &self.head { lines_in(lines) } else { 0 };
        let tail = if let Tail::Lines(lines) = &self.tail { lines_in(lines) } else { 0 };
        head + tail
    }
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
    /// Lines of more tokens are cut into parts.
    pub line_tokens_max: u64,
    /// The formats in which a JSON node may be written, beside JSON.
    pub formats: &'a [&'a Format],
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

    /// The text of the nodes for which `form` gives a form, with `hint` where so many lines, or members and elements, are
    /// left out: of a value that is left out as a whole it counts one.
    pub fn render(&self, form: &dyn Fn(usize) -> Option<usize>, hint: &dyn Fn(u64) -> String) -> String {
        let shown = self.shown(&|at| form(at).is_some());
        let mut writer = Rendering { out: String::new(), left_out: None, hint };
        let (mut at, mut open) = (0, Vec::new());
        while let Some(part) = self.parts.get(at) {
            at += 1;
            match part {
                OutlinePart::Node(node) => match form(at - 1) {
                    Some(form) => writer.node(node, form),
                    None => writer.leave_out(node.count, node.goes_on),
                },
                OutlinePart::Open(group) if shown[at - 1] == 0 => {
                    writer.leave_out(self.count_of(at - 1), false);
                    at = group.end;
                }
                OutlinePart::Open(group) => {
                    writer.push(&group.head.text(shown[at - 1]));
                    open.push(group);
                }
                OutlinePart::Close => {
                    if let Some(group) = open.pop() {
                        writer.end(&group.tail);
                    }
                }
            }
        }
        writer.flush();
        writer.out
    }

    /// What a hint counts the part there as, with all that is in it.
    fn count_of(&self, at: usize) -> u64 {
        match &self.parts[at] {
            OutlinePart::Node(node) => node.count - u64::from(node.goes_on),
            OutlinePart::Open(group) if group.is_value => 1,
            OutlinePart::Open(group) => {
                let (mut count, mut child) = (group.own_lines(), at + 1);
                while child + 1 < group.end {
                    count += self.count_of(child);
                    child = if let OutlinePart::Open(inner) = &self.parts[child] { inner.end } else { child + 1 };
                }
                count
            }
            OutlinePart::Close => 0,
        }
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

/// Where a part of a line is left out.
pub const CUT: &str = "…";

/// A text that is being put together.
struct Rendering<'a> {
    out: String,
    /// What was left out since the last text.
    left_out: Option<u64>,
    hint: &'a dyn Fn(u64) -> String,
}

impl Rendering<'_> {
    fn node(&mut self, node: &OutlineNode, form: usize) {
        let follows_a_cut = node.goes_on && self.left_out.is_some();
        self.push(if follows_a_cut { CUT } else { "" });
        self.push(&node.forms[form]);
    }

    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush();
            self.out.push_str(text);
        }
    }

    fn end(&mut self, tail: &Tail) {
        match tail {
            Tail::Lines(lines) => self.push(lines),
            Tail::Blank if self.left_out.is_none() => self.push("\n"),
            Tail::Blank | Tail::None => {}
        }
    }

    /// `goes_on` says that it begins within a line: that is counted already, or its start is shown.
    fn leave_out(&mut self, count: u64, goes_on: bool) {
        match &mut self.left_out {
            Some(sum) => *sum += count - u64::from(goes_on),
            None => {
                self.out.push_str(if goes_on { CUT } else { "" });
                self.left_out = Some(count);
            }
        }
    }

    /// Says what was left out since the last text, on a line of its own.
    fn flush(&mut self) {
        if let Some(count) = self.left_out.take() {
            self.out.push_str(if self.out.is_empty() || self.out.ends_with('\n') { "" } else { "\n" });
            self.out.push_str(&(self.hint)(count));
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
    fn node(&mut self, forms: Vec<String>, value: u64, count: u64) {
        self.parts.push(OutlinePart::Node(OutlineNode { forms, value, count, ..OutlineNode::default() }));
    }

    fn group(&mut self, head: GroupHead, tail: Tail, is_value: bool, fill: impl FnOnce(&mut Self)) {
        let open = self.parts.len();
        self.parts.push(OutlinePart::Open(NodeGroup { head, tail, is_value, end: 0 }));
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
