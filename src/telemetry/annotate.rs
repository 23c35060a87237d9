//! The citation pass: which responses that were prefetched the agent went on to ask for, told by what was recorded
//! behind them. One field of such an event is set; every other byte stays.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::block::line_ends;
use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr};
use crate::base::stats::Share;
use crate::base::sums::adds_up;
use crate::base::unpack::Packing;
use crate::logs::trace::Millis;
use crate::telemetry::field::{EventFields, Field, FieldValue};
use crate::telemetry::gather::is_process_id;

/// What the name of an annotated file ends in, before `.jsonl`.
pub(super) const ANNOTATED: &str = ".annotated";
/// The field that is set.
const CITED: &str = "cited_in_next_n_turns";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What makes a response that was prefetched a used one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, clap::ValueEnum)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum UsedWhen {
    /// The agent itself soon got the same answer of the same tool, before the file was changed.
    ///
    /// In the same context (session, main thread or subagent, and compaction). Answers are compared by their content; where
    /// one was recorded without, by the file that they name. Only what the agent asked for counts towards the lookahead, and one of
    /// its calls uses at most one response.
    #[default]
    Answer,
    /// A tool of the same name was soon called, whatever it answered.
    ///
    /// One of the next events of the session, of whatever kind, is of the same tool and was not prefetched itself.
    #[value(alias = "name")]
    Published,
}

/// What is looked for.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    /// The definition by which the field is set.
    pub definition: UsedWhen,
    /// How many events behind a prefetch are looked at; at least 1.
    pub lookahead: u32,
    /// Whether fields are set that say something already.
    pub overwrite: bool,
    /// Whether a tool changes the file that it names.
    pub mutates: &'a dyn Fn(&str) -> bool,
    /// Milliseconds without an event after which a process id is another process.
    pub recycled_gap_ms: u64,
}

/// What was counted on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Citations {
    /// Lines, blank ones included.
    pub lines: u64,
    /// Of these, not (or not only) JSON or not UTF-8; they stay as they are.
    pub damaged_lines: u64,
    pub events: u64,
    /// Of these, prefetched.
    pub prefetches: u64,
    /// Of these, used by [`UsedWhen::Published`].
    pub cited_by_name: u64,
    /// Of [`Self::prefetches`], those that [`UsedWhen::Answer`] can judge.
    pub judged_by_answer: u64,
    /// Of these, used.
    pub cited_by_answer: u64,
    /// Of these, not used as far as the file goes, which ends before the lookahead does.
    pub cut_short: u64,
    /// Of [`Self::prefetches`], those recorded in a sample: what came behind them is not all there.
    pub sampled: u64,
    /// Of [`Self::prefetches`], those of a whole recording with neither content nor file by which they could be found.
    pub untraced: u64,
    /// Events that have the field from this pass.
    pub set: u64,
    /// Events that had it and keep it.
    pub kept: u64,
    /// Events that stay without it because their line cannot be edited safely.
    pub uneditable: u64,
}

impl Citations {
    /// Share of the prefetches that were used, by a definition.
    pub fn share(&self, definition: UsedWhen) -> Share {
        match definition {
            UsedWhen::Answer => Share::new(self.cited_by_answer, self.judged_by_answer),
            UsedWhen::Published => Share::new(self.cited_by_name, self.prefetches),
        }
    }

    fn tally(&mut self, prefetch: &CitationEvent<'_>, by_name: bool, by_answer: Option<bool>) {
        self.prefetches += 1;
        self.cited_by_name += u64::from(by_name);
        self.judged_by_answer += u64::from(by_answer.is_some());
        self.cited_by_answer += u64::from(by_answer == Some(true));
        if prefetch.sampled {
            self.sampled += 1;
        } else if prefetch.is_untraced() {
            self.untraced += 1;
        }
    }
}

adds_up!(
    Citations: lines, damaged_lines, events, prefetches, cited_by_name, judged_by_answer, cited_by_answer, cut_short, sampled, untraced, set, kept, uneditable
);

/// What prefetch events say of themselves, from whichever pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Of [`Self::told`], those that were used.
    pub used: u64,
    /// Events that say whether they were used.
    pub told: u64,
}

adds_up!(Standing: used, told);

impl Standing {
    fn tally(&mut self, cited: Option<bool>) {
        self.told += u64::from(cited.is_some());
        self.used += u64::from(cited == Some(true));
    }
}

/// A file with the field set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotated {
    /// Its bytes.
    pub text: Vec<u8>,
    pub counts: Citations,
    pub standing: Standing,
}

/// Whether a file is one of telemetry.
pub fn holds_events(text: &[u8]) -> bool {
    !records(text, &mut Citations::default()).is_empty()
}

/// Where the annotated form of a file stands: `x.jsonl` becomes `x.annotated.jsonl` beside it.
pub fn annotated_path(original: &Path) -> PathBuf {
    let mut name = original.file_stem().unwrap_or_default().to_owned();
    name.push(ANNOTATED);
    name.push(".jsonl");
    original.with_file_name(name)
}

/// Whether this is an annotated file, by its name.
pub fn is_annotated(path: &Path) -> bool {
    Packing::split_name(path).is_some_and(|(name, _)| name.ends_with(ANNOTATED.as_bytes()))
}

/// Judges the prefetches of one file and sets the field. Windows end with the file.
pub fn annotate(text: &[u8], pass: &Pass<'_>) -> Annotated {
    let mut counts = Citations::default();
    let records = records(text, &mut counts);
    let by_name = cited_by_name(&records, pass.lookahead);
    let by_answer = cited_by_answer(&records, pass, &mut counts);
    let mut out = Vec::with_capacity(text.len());
    let (mut copied, mut standing) = (0, Standing::default());
    for (at, record) in records.iter().enumerate().filter(|(_, record)| record.prefetched) {
        counts.tally(record, by_name[at], by_answer[at]);
        let wanted = match pass.definition {
            UsedWhen::Answer => by_answer[at],
            UsedWhen::Published => Some(by_name[at]),
        };
        if record.cited.is_some() && (wanted.is_none() || !pass.overwrite) {
            counts.kept += 1;
            standing.tally(record.cited);
            continue;
        }
        let Some(cited) = wanted else { continue };
        let Some((place, field)) = edit(text, record, cited) else {
            counts.uneditable += 1;
            standing.tally(record.cited);
            continue;
        };
        counts.set += 1;
        standing.tally(wanted);
        out.extend_from_slice(&text[copied..place.start]);
        out.extend_from_slice(field.as_bytes());
        copied = place.end;
    }
    out.extend_from_slice(&text[copied..]);
    Annotated { text: out, counts, standing }
}

/// An event as far as citation goes. Texts are as they are spelled: one writer spells alike.
struct CitationEvent<'a> {
    /// The object in the file.
    span: Range<usize>,
    /// Whether its line is whole.
    editable: bool,
    session: &'a [u8],
    /// The subagent's name, and whether there was one without a name.
    reader: (&'a [u8], bool),
    /// Compactions before it: what was shown before one is no longer there.
    partition: u32,
    ts: Option<Millis>,
    tool: RawStr<'a>,
    /// Hash of the content; empty if it was not recorded.
    body: &'a [u8],
    /// Hash of the file named; empty without one.
    path: &'a [u8],
    sampled: bool,
    prefetched: bool,
    /// Whether it only says that the planner declined: nothing was answered.
    declined: bool,
    cited: Option<bool>,
}

impl<'a> CitationEvent<'a> {
    /// None if these are not the fields of an event (published test: a session and a tool, and no summary).
    fn new(fields: &EventFields<'a>, span: Range<usize>) -> Option<Self> {
        let (FieldValue::Text(session), FieldValue::Text(tool)) = (fields.get(Field::Session), fields.get(Field::Tool))
        else {
            return None;
        };
        let agent = fields.text(Field::Agent).0;
        let sidechain = fields.flag(Field::Sidechain) == Some(true);
        fields.summary().is_none().then(|| Self {
            span,
            editable: true,
            session: session.0,
            reader: (agent, agent.is_empty() && sidechain),
            partition: fields.count(Field::Partition),
            ts: fields.whole(Field::Time),
            tool,
            body: fields.text(Field::Content).0,
            path: fields.text(Field::Path).0,
            sampled: fields.real(Field::Rate).is_some_and(|rate| rate < 1.0),
            prefetched: fields.flag(Field::Prefetched) == Some(true),
            declined: !fields.text(Field::Declined).0.is_empty() && fields.count(Field::Bytes) == 0,
            cited: fields.flag(Field::Cited),
        })
    }

    /// Whether nothing says what was answered.
    fn is_untraced(&self) -> bool {
        self.body.is_empty() && self.path.is_empty()
    }

    /// Whether `other` gave the same answer. Another part of the same file is another answer, so the file only decides
    /// where a content is not known.
    fn is_same_answer(&self, other: &Self) -> bool {
        let contents_known = !self.body.is_empty() && !other.body.is_empty();
        let same = if contents_known { self.body == other.body } else { self.names_file_of(other) };
        same && self.tool == other.tool
    }

    fn names_file_of(&self, other: &Self) -> bool {
        !self.path.is_empty() && self.path == other.path
    }
}

/// All events of a file, in its order.
fn records<'a>(text: &'a [u8], counts: &mut Citations) -> Vec<CitationEvent<'a>> {
    let mut records = Vec::new();
    let mut start = 0;
    for end in line_ends(text) {
        // Behind the last line feed there is no line, unless one was torn there.
        if start < text.len() {
            counts.lines += 1;
            let first = records.len();
            let whole = records_of_line(text, start..end, &mut records).is_ok();
            if !whole || simdutf8::basic::from_utf8(&text[start..end]).is_err() {
                counts.damaged_lines += 1;
                records[first..].iter_mut().for_each(|record| record.editable = false);
            }
        }
        start = end + 1;
    }
    counts.events = records.len() as u64;
    records
}

/// The events on one line: mostly one, several where a writer forgot the line feed.
fn records_of_line<'a>(
    text: &'a [u8],
    line: Range<usize>,
    records: &mut Vec<CitationEvent<'a>>,
) -> Result<(), JsonFault> {
    let line = trimmed(text, line);
    let mut cursor = Cursor::at(&text[..line.end], line.start);
    while !cursor.at_end() {
        let shape = cursor.shape()?;
        let start = cursor.pos();
        if shape == JsonKind::Object {
            let mut fields = EventFields::none();
            fields.read(&mut cursor)?;
            records.extend(CitationEvent::new(&fields, start..cursor.pos()));
        } else {
            cursor.skip_value()?;
        }
    }
    Ok(())
}

/// A line without what may stand around its records.
fn trimmed(text: &[u8], mut line: Range<usize>) -> Range<usize> {
    if text[line.clone()].starts_with(BYTE_ORDER_MARK) {
        line.start += BYTE_ORDER_MARK.len();
    }
    // A file system may have filled up with zeros what a crash left unwritten.
    let padding = |byte: &&u8| **byte == 0 || byte.is_ascii_whitespace();
    line.start += text[line.clone()].iter().take_while(padding).count();
    line.end -= text[line.clone()].iter().rev().take_while(padding).count();
    line
}

/// A prefetch whose lookahead is not over.
struct Open {
    record: usize,
    /// Events still to be looked at.
    left: u32,
}

/// Whether each prefetch was used, by [`UsedWhen::Published`].
fn cited_by_name(records: &[CitationEvent<'_>], lookahead: u32) -> Vec<bool> {
    let mut cited = vec![false; records.len()];
    let mut open: BTreeMap<&[u8], Vec<Open>> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let windows = open.entry(record.session).or_default();
        windows.retain_mut(|window| {
            window.left -= 1;
            let used = !record.prefetched && records[window.record].tool == record.tool;
            cited[window.record] |= used;
            !used && window.left > 0
        });
        if record.prefetched {
            windows.push(Open { record: at, left: lookahead });
        }
    }
    cited
}

/// Whether each prefetch was used, by [`UsedWhen::Answer`]; none where that cannot be told.
fn cited_by_answer(records: &[CitationEvent<'_>], pass: &Pass<'_>, counts: &mut Citations) -> Vec<Option<bool>> {
    let mut cited = vec![None; records.len()];
    let runs = runs(records, pass.recycled_gap_ms);
    let mut open: BTreeMap<_, ((u32, u32), Vec<Open>)> = BTreeMap::new();
    for (at, record) in records.iter().enumerate().filter(|(_, record)| record.prefetched || !record.declined) {
        let (context, windows) = open.entry((record.session, record.reader)).or_default();
        let here = (runs[at], record.partition);
        if std::mem::replace(context, here) != here {
            windows.clear();
        }
        if record.prefetched {
            if !record.sampled && !record.is_untraced() {
                cited[at] = Some(false);
                windows.push(Open { record: at, left: pass.lookahead });
            }
            continue;
        }
        // The oldest one first: its lookahead is over first.
        if let Some(used) = windows.iter().position(|window| records[window.record].is_same_answer(record)) {
            cited[windows.remove(used).record] = Some(true);
        }
        let mutates = !record.path.is_empty() && (pass.mutates)(&record.tool.text().unwrap_or_default());
        windows.retain_mut(|window| {
            window.left -= 1;
            window.left > 0 && !(mutates && records[window.record].names_file_of(record))
        });
    }
    counts.cut_short = open.values().map(|(_, windows)| windows.len() as u64).sum();
    cited
}

/// Which process each event is of, counted in its session: a process id is handed out again.
fn runs(records: &[CitationEvent<'_>], gap_ms: u64) -> Vec<u32> {
    let mut last: BTreeMap<&[u8], (u32, Option<Millis>)> = BTreeMap::new();
    let mut runs = vec![0; records.len()];
    let is_recycled = |record: &CitationEvent<'_>| std::str::from_utf8(record.session).is_ok_and(is_process_id);
    for (at, record) in records.iter().enumerate().filter(|(_, record)| is_recycled(record)) {
        let (run, before) = last.entry(record.session).or_default();
        let is_new = before.zip(record.ts).is_some_and(|(before, ts)| ts.abs_diff(before) > gap_ms);
        *run += u32::from(is_new);
        *before = record.ts.or(*before);
        runs[at] = *run;
    }
    runs
}

/// What has to stand where in the file so that an event says whether it was used; none if that is not safe.
fn edit(text: &[u8], record: &CitationEvent<'_>, cited: bool) -> Option<(Range<usize>, String)> {
    let Range { start, .. } = record.span;
    let place = place_of_field(&text[record.span.clone()]).filter(|_| record.editable)?;
    // An empty place lies behind the last field of the object.
    let field = if place.is_empty() { format!(",\"{CITED}\":{cited}") } else { cited.to_string() };
    Some((start + place.start..start + place.end, field))
}

/// The value of the field in an object, or the empty place behind its last field; none if it stands there twice, since
/// readers disagree about which one holds.
fn place_of_field(object: &[u8]) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(object);
    let (mut first, mut found) = (cursor.enter().ok()?, None);
    loop {
        let behind = cursor.pos();
        let Some(key) = cursor.next_key(&mut first).ok()? else {
            return Some(found.unwrap_or(behind..behind));
        };
        cursor.skip_space();
        let start = cursor.pos();
        cursor.skip_value().ok()?;
        if *key.decode()? == *CITED.as_bytes() && found.replace(start..cursor.pos()).is_some() {
            return None;
        }
    }
}
