//! Search hits and path lists with each path written once, as a heading (grammar and example: docs/formats.md). Some search
//! tools write paths relative to the working directory only where a colon follows, so that context lines without one have a
//! directory more; the first line then names it.

pub mod lines;

use std::borrow::Cow;

use crate::facts::encode::grouped_paths::lines::{BodyItem, Hits, SearchHit, has_candidates, row_number};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::numbered::split_lines;

/// Headings as ripgrep and `ls -R` write them.
pub const FORMAT: Format =
    Format { id: "grouped_paths", family: FormatFamily::Extended, by_depth: false, encode, decode };

/// Ends a group in front of text that could be taken for part of it.
pub const END: &str = "[end]";
/// Separates groups of search hits that are not adjacent.
const GAP: &str = "--";
/// The first line, if context lines without a colon have a directory of their own; it and `]` follow.
const CONTEXT_START: &str = "[context lines without ':' are from ";
/// What a heading costs beside its path, in bytes of path.
const HEADING_BYTES: usize = 12;

/// The group that the current line belongs to.
#[derive(Clone, Copy)]
enum LineGroup<'a> {
    None,
    File(&'a str),
    Directory(&'a str),
}

fn encode(subject: &Subject<'_>, params: Params) -> Option<String> {
    let text = subject.text;
    if subject.shape.is_json() || !has_candidates(text) {
        return None;
    }
    let hits = Hits::find(text);
    let items: Vec<BodyItem<'_>> = split_lines(text).map(|line| hits.read(line)).collect();
    if text.starts_with(CONTEXT_START) || items.iter().any(|item| matches!(item, BodyItem::Text(END))) {
        return None;
    }
    let mut writer = PathsWriter::new(text.len(), params.numbered_every);
    if !hits.context.is_empty() {
        writer.line(&format!("{CONTEXT_START}{}]", hits.context));
    }
    let lines: Vec<&str> = split_lines(text).collect();
    let mut at = 0;
    while at < items.len() {
        at += match items[at] {
            BodyItem::Row(row) => writer.row(row, lines[at], &items[at + 1..]),
            BodyItem::Text(line) => writer.text(line, at + 1 == items.len()),
            BodyItem::Path => writer.paths(&lines[at..at + paths(&items[at..])]),
        };
    }
    writer.saved.then_some(writer.out)
}

/// Whether the next row is one of the same file, with nothing but a gap between.
fn repeats(items: &[BodyItem<'_>], path: &str) -> bool {
    let next = items.iter().take(2).find(|item| !matches!(item, BodyItem::Text(GAP)));
    matches!(next, Some(BodyItem::Row(row)) if row.path == path)
}

/// How many paths follow each other.
fn paths(items: &[BodyItem<'_>]) -> usize {
    items.iter().take_while(|item| matches!(item, BodyItem::Path)).count()
}

/// Writes lines so that they are read back as what they are.
struct PathsWriter<'a> {
    out: String,
    group: LineGroup<'a>,
    /// Number of the row just written.
    previous: Option<u32>,
    /// The line just written, if it was text that ends like a heading.
    colon: Option<&'a str>,
    every: u32,
    empty: bool,
    /// Whether anything was left out.
    saved: bool,
}

impl<'a> PathsWriter<'a> {
    fn new(bytes: usize, every: usize) -> Self {
        Self {
            out: String::with_capacity(bytes),
            group: LineGroup::None,
            previous: None,
            colon: None,
            every: u32::try_from(every).unwrap_or(u32::MAX),
            empty: true,
            saved: false,
        }
    }

    fn line(&mut self, line: &str) {
        let before = self.colon.take();
        let misread = before.is_some_and(|before| before.ends_with("/:") || row_number(line).is_some());
        if misread {
            self.line(END);
        }
        if !std::mem::take(&mut self.empty) {
            self.out.push('\n');
        }
        self.out.push_str(line);
    }

    fn end(&mut self) {
        self.line(END);
        (self.group, self.previous) = (LineGroup::None, None);
    }

    /// A line as it stands.
    fn text(&mut self, line: &'a str, ends_body: bool) -> usize {
        let gap = line == GAP && !matches!(self.group, LineGroup::Directory(_));
        let taken = match self.group {
            LineGroup::Directory(_) => !line.is_empty(),
            group => continues(group, self.previous, line, ends_body),
        };
        if taken && !gap {
            self.end();
        }
        self.line(line);
        if !gap {
            self.group = LineGroup::None;
        }
        self.previous = None;
        self.colon = line.ends_with(':').then_some(line);
        1
    }

    /// A row of a search result with the items that follow it, under a heading if the next one is of the same file.
    fn row(&mut self, row: SearchHit<'a>, line: &'a str, rest: &[BodyItem<'_>]) -> usize {
        let inside = match self.group {
            LineGroup::File(path) => path == row.path,
            LineGroup::None => row.path.is_empty(),
            LineGroup::Directory(_) => false,
        };
        if row.path.is_empty() && !inside {
            self.end();
        } else if !inside {
            if !repeats(rest, row.path) {
                return self.text(line, rest.is_empty());
            }
            self.line(&format!("{}:", row.path));
            (self.group, self.previous, self.saved) = (LineGroup::File(row.path), None, true);
        }
        let text = row.text_after(self.previous, self.every);
        match text.filter(|text| continues(self.group, self.previous, text, rest.is_empty())) {
            Some(text) => {
                self.line(text);
                self.saved = true;
            }
            None => self.line(row.shown),
        }
        self.previous = Some(row.number);
        1
    }

    /// A list of paths, those in a directory under its heading.
    fn paths(&mut self, lines: &[&'a str]) -> usize {
        let mut at = 0;
        for (start, end, length) in directories(lines) {
            lines[at..start].iter().for_each(|line| _ = self.text(line, false));
            let directory = &lines[start][..length];
            self.line(&format!("{directory}:"));
            (self.group, self.previous, self.saved) = (LineGroup::Directory(directory), None, true);
            lines[start..end].iter().for_each(|line| self.line(&line[length..]));
            at = end;
        }
        lines[at..].iter().for_each(|line| _ = self.text(line, false));
        lines.len()
    }
}

/// Whether a line that is no row, heading or mark is the context line behind the line `previous`. An empty line ends a
/// list of hits without paths, and the last line of a body only ends the one before.
fn continues(group: LineGroup<'_>, previous: Option<u32>, line: &str, ends_body: bool) -> bool {
    let in_file = matches!(group, LineGroup::File(_));
    previous.is_some() && (!line.is_empty() || in_file && !ends_body)
}

fn decode(text: &str) -> Option<Meaning> {
    let mut out = String::with_capacity(text.len() * 2);
    let mut lines = split_lines(text).peekable();
    let context = lines.peek().and_then(|line| line.strip_prefix(CONTEXT_START)?.strip_suffix(']')).unwrap_or_default();
    if !context.is_empty() {
        lines.next();
    }
    let context_of = |line: &str| if line.contains(':') { "" } else { context };
    let mut group = LineGroup::None;
    let mut previous: Option<u32> = None;
    let mut first = true;
    while let Some(line) = lines.next() {
        if line == END {
            (group, previous) = (LineGroup::None, None);
            continue;
        }
        let in_directory = matches!(group, LineGroup::Directory(_));
        let row = row_number(line).filter(|_| !in_directory);
        if row.is_none()
            && let Some(heading) = read_heading(line, lines.peek().copied())
        {
            (group, previous) = (heading, None);
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push('\n');
        }
        let is_next = row.is_none() && line != GAP && continues(group, previous, line, lines.peek().is_none());
        let next = previous.filter(|_| is_next).and_then(|previous| previous.checked_add(1));
        let shown = next.map_or(Cow::Borrowed(line), |number| Cow::Owned(format!("{number}-{line}")));
        let number = row.map(|(number, _)| number).or(next);
        match group {
            LineGroup::File(path) if number.is_some() => {
                let is_hit = shown.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(':');
                out.extend(if is_hit { ["", path, ":"] } else { [context_of(&shown), path, "-"] });
            }
            LineGroup::Directory(directory) if !line.is_empty() => out.push_str(directory),
            LineGroup::File(_) if line == GAP => {}
            _ => group = LineGroup::None,
        }
        out.push_str(&shown);
        previous = number;
    }
    Some(Meaning::Text(out))
}

/// The group that a line opens if another line follows.
fn read_heading<'a>(line: &'a str, next: Option<&str>) -> Option<LineGroup<'a>> {
    let path = line.strip_suffix(':')?;
    let next = next.filter(|next| *next != END)?;
    if path.ends_with('/') {
        return Some(LineGroup::Directory(path));
    }
    row_number(next).is_some().then_some(LineGroup::File(path))
}

/// A run of paths with a common directory.
struct Run {
    start: usize,
    /// Bytes of the directory that all of them have in common.
    length: usize,
    /// Bytes of all paths.
    bytes: usize,
    /// Bytes with the best headings inside.
    cost: usize,
}

/// The cheapest headings for a list of paths: ranges of lines and the length of their directory. A directory is worth a
/// heading of its own, or its lines stand under that of a directory above, or under none.
fn directories(lines: &[&str]) -> Vec<(usize, usize, usize)> {
    let mut chosen: Vec<(usize, usize, usize)> = Vec::new();
    let mut open: Vec<Run> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let shared = lines.get(index + 1).map_or(0, |next| shared_directory(line, next));
        // A path on its own has no directory to share; it would need a heading too, or the end of the group before it.
        let mut run = Run { start: index, length: usize::MAX, bytes: line.len(), cost: line.len() + HEADING_BYTES };
        while let Some(above) = open.pop_if(|above| above.length > shared) {
            run = Run { bytes: above.bytes + run.bytes, cost: above.cost + run.cost, ..above };
            let count = index + 1 - run.start;
            let grouped = run.bytes - count * run.length + run.length + HEADING_BYTES;
            if grouped <= run.cost {
                run.cost = grouped;
                let inside = chosen.iter().rposition(|(start, ..)| *start < run.start).map_or(0, |last| last + 1);
                chosen.truncate(inside);
                chosen.push((run.start, index + 1, run.length));
            }
        }
        match open.last_mut() {
            Some(same) if same.length == shared => {
                same.bytes += run.bytes;
                same.cost += run.cost;
            }
            _ => open.push(Run { length: shared, ..run }),
        }
    }
    chosen
}

/// Length of the directories that two paths share, in bytes.
fn shared_directory(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    memchr::memrchr(b'/', &one.as_bytes()[..same]).map_or(0, |slash| slash + 1)
}
