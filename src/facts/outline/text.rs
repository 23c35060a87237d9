//! The outline of a text: blocks as Markdown sees them, and lines.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::facts::outline::{Builder, GroupHead, NodeGroup, OutlineNode, OutlinePart, Tail};

impl Builder<'_> {
    /// Takes a text apart as Markdown sees it.
    pub fn markdown(&mut self, text: &str) {
        let blocks = blocks(text);
        let mut sections: Vec<(u8, usize)> = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let OutlineBlockKind::Heading(level) = block.kind else {
                self.block(text, block);
                continue;
            };
            while let Some((_, open)) = sections.pop_if(|(outer, _)| *outer >= level) {
                self.close(open);
            }
            let next = blocks.get(index + 1).map(|block| &block.kind);
            if next.is_none_or(|next| matches!(next, OutlineBlockKind::Heading(next) if *next <= level)) {
                self.part(&text[block.lines.clone()], false);
            } else {
                sections.push((level, self.parts.len()));
                let head = GroupHead::Lines(text[block.lines.clone()].to_owned());
                self.parts.push(OutlinePart::Open(NodeGroup { head, tail: Tail::None, is_value: false, end: 0 }));
            }
        }
        while let Some((_, open)) = sections.pop() {
            self.close(open);
        }
    }

    fn block(&mut self, text: &str, block: &TextBlock) {
        let lines = &text[block.lines.clone()];
        let starts = &block.children;
        match block.kind {
            _ if lines.starts_with("> [")
                && lines.trim_end().ends_with(']')
                && lines.trim_end().lines().count() == 1 =>
            {
                let hint = OutlineNode { forms: vec![lines.to_owned()], required: true, ..OutlineNode::default() };
                self.parts.push(OutlinePart::Node(hint));
            }
            _ if self.is_small(lines) && starts.is_empty() => self.part(lines, false),
            OutlineBlockKind::Table if !starts.is_empty() => {
                let head = GroupHead::Lines(text[block.lines.start..starts[0]].to_owned());
                self.group(head, Tail::None, false, |builder| builder.children(text, starts, block.lines.end));
            }
            OutlineBlockKind::List if !starts.is_empty() => self.children(text, starts, block.lines.end),
            OutlineBlockKind::Fence => self.fence(lines),
            _ => self.lines(lines),
        }
    }

    /// The lines from each start to the next.
    fn children(&mut self, text: &str, starts: &[usize], end: usize) {
        let ends = starts[1..].iter().copied().chain([end]);
        for (start, end) in starts.iter().copied().zip(ends) {
            let lines = &text[start..end];
            if self.is_small(lines) { self.part(lines, false) } else { self.lines(lines) }
        }
    }

    /// Code in a fence, the lines of which are kept with both its ends.
    fn fence(&mut self, lines: &str) {
        let head = lines.find('\n').map_or(0, |end| end + 1);
        let tail = lines.trim_end().rfind('\n').map_or(head, |end| end + 1);
        if tail <= head {
            return self.lines(lines);
        }
        let (inner, tail) = (&lines[head..tail], &lines[tail..]);
        self.group(GroupHead::Lines(lines[..head].to_owned()), Tail::Lines(tail.to_owned()), false, |builder| {
            builder.lines(inner);
        });
    }

    /// A node for every line with the blank lines below it, and for every part of a line that is too long.
    pub fn lines(&mut self, text: &str) {
        let (mut at, mut end) = (0, 0);
        for line in text.split_inclusive('\n') {
            if !line.trim().is_empty() {
                self.line(&text[at..end]);
                at = end;
            }
            end += line.len();
        }
        self.line(&text[at..]);
    }

    fn line(&mut self, mut rest: &str) {
        let is_cut = !self.is_small(rest.trim_end()) && (self.count)(rest) > self.cut.line_tokens_max;
        let mut goes_on = false;
        while is_cut && !self.is_small(rest.trim_end()) {
            let (part, behind) = rest.split_at(self.cut_at(rest));
            self.part(part, goes_on);
            (rest, goes_on) = (behind, true);
        }
        if !rest.is_empty() {
            self.part(rest, goes_on);
        }
    }

    /// Where a line that is too long is cut: behind the last blank that leaves a small part, else anywhere.
    fn cut_at(&self, line: &str) -> usize {
        let most = line.floor_char_boundary(self.cut.node_bytes_max);
        let least = line.chars().next().map_or(0, char::len_utf8);
        line[..most].rfind(' ').map_or(most, |blank| blank + 1).max(least)
    }

    /// A node for a text as it stands.
    fn part(&mut self, text: &str, goes_on: bool) {
        let (forms, value) = (vec![text.to_owned()], (self.worth)(text));
        let node = OutlineNode { forms, value, count: lines_in(text), goes_on, required: false };
        self.parts.push(OutlinePart::Node(node));
    }
}

/// The lines of a text, blank ones too.
pub fn lines_in(text: &str) -> u64 {
    text.lines().count() as u64
}

/// The characters of a text, blanks around it aside.
pub fn characters(text: &str) -> u64 {
    text.trim().chars().count() as u64
}

/// The lines of a text that are not blank.
pub fn leaf_lines(text: &str) -> u64 {
    text.lines().filter(|line| !line.trim().is_empty()).count() as u64
}

/// What a block is, as far as its parts go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutlineBlockKind {
    Heading(u8),
    List,
    Table,
    Fence,
    Other,
}

/// A block on the top level of a document.
struct TextBlock {
    kind: OutlineBlockKind,
    /// Its lines up to the next block.
    lines: Range<usize>,
    /// Where the lines of its items or rows start.
    children: Vec<usize>,
}

/// The blocks of a text, which together are all of it.
fn blocks(text: &str) -> Vec<TextBlock> {
    let mut blocks: Vec<TextBlock> = Vec::new();
    let mut depth = 0;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let starts = matches!(event, Event::Start(_));
        if depth == 0 && !matches!(event, Event::End(_)) {
            let start = if blocks.is_empty() { 0 } else { line_start(text, range.start) };
            if blocks.last().is_none_or(|last| last.lines.start < start) {
                blocks.push(TextBlock {
                    kind: OutlineBlockKind::of(&event, &text[start..]),
                    lines: start..text.len(),
                    children: Vec::new(),
                });
            }
        } else if let (1, Event::Start(Tag::Item | Tag::TableRow), Some(block)) = (depth, &event, blocks.last_mut()) {
            block.add_child(line_start(text, range.start));
        }
        depth += usize::from(starts);
        depth -= usize::from(matches!(event, Event::End(_)));
    }
    if blocks.is_empty() && !text.is_empty() {
        blocks.push(TextBlock { kind: OutlineBlockKind::Other, lines: 0..text.len(), children: Vec::new() });
    }
    for index in 1..blocks.len() {
        blocks[index - 1].lines.end = blocks[index].lines.start;
    }
    blocks
}

impl TextBlock {
    /// Adds the item or row that starts there, unless that line has one already.
    fn add_child(&mut self, start: usize) {
        let start =
            if self.kind == OutlineBlockKind::List && self.children.is_empty() { self.lines.start } else { start };
        if matches!(self.kind, OutlineBlockKind::List | OutlineBlockKind::Table)
            && self.children.last().is_none_or(|last| *last < start)
        {
            self.children.push(start);
        }
    }
}

impl OutlineBlockKind {
    /// A heading is one that starts with `#`: a text above a line of dashes is one too, but that is how tools separate
    /// their results.
    fn of(event: &Event<'_>, text: &str) -> Self {
        match event {
            Event::Start(Tag::Heading { level, .. }) if text.trim_start().starts_with('#') => {
                Self::Heading(*level as u8)
            }
            Event::Start(Tag::List(_)) => Self::List,
            Event::Start(Tag::Table(_)) => Self::Table,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Self::Fence,
            _ => Self::Other,
        }
    }
}

fn line_start(text: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |newline| newline + 1)
}
