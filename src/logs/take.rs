//! Lines to records, whatever else stands on them: what is malformed is counted, what can be read is read. Every reader of logs
//! takes its lines this way, so that all of them see the same records.

use memchr::{memchr, memmem};

use crate::base::damage::Reason;
use crate::base::json::{Cursor, JsonFault, JsonKind};
use crate::logs::trace::Counters;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The same of UTF-16.
const BYTE_ORDER_MARKS_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Makes something of the records on the lines of a file.
pub trait TakeRecords: Sized {
    /// What was counted so far.
    fn counters(&mut self) -> &mut Counters;

    /// Reads the object that stands at the cursor and, if it is whole, counts and takes it. If it breaks off, nothing
    /// of it was taken.
    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonFault>;
}

/// Takes the lines of a file in their order.
pub trait TakeLines {
    /// Takes one line, without its line feed. `last` says that no line feed followed, so the line may be torn.
    fn line(&mut self, line: &[u8], last: bool);
    /// A line over the line limit was passed over.
    fn oversize_line(&mut self);
    /// Counts damage that concerns the file, not a line.
    fn file_damage(&mut self, reason: Reason);
}

impl<R: TakeRecords> TakeLines for R {
    fn line(&mut self, line: &[u8], last: bool) {
        self.counters().lines += 1;
        let line = trim(self.counters(), line);
        if line.is_empty() {
            return;
        }
        if simdutf8::basic::from_utf8(line).is_ok() {
            values(self, line, last);
        } else {
            damage(self.counters(), Reason::InvalidUtf8);
            values(self, String::from_utf8_lossy(line).as_bytes(), last);
        }
    }

    fn oversize_line(&mut self) {
        let counters = self.counters();
        counters.lines += 1;
        counters.bad_fragments += 1;
        counters.items += 1;
        damage(counters, Reason::Oversize);
    }

    fn file_damage(&mut self, reason: Reason) {
        self.counters().damage.add(reason, 0);
    }
}

fn damage(counters: &mut Counters, reason: Reason) {
    counters.damage.add(reason, counters.lines);
}

/// Takes off what may stand around a record, and counts it.
fn trim<'a>(counters: &mut Counters, mut line: &'a [u8]) -> &'a [u8] {
    if let Some(rest) = line.strip_suffix(b"\r") {
        damage(counters, Reason::Crlf);
        line = rest;
    }
    if let (Some(b'{'), Some(b'}')) = (line.first(), line.last()) {
        // A block that a crash left empty may begin in one record and end in another.
        if memchr(0, line).is_some() {
            damage(counters, Reason::Nul);
        }
        return line;
    }
    if let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK) {
        damage(counters, Reason::Bom);
        line = rest;
    }
    if counters.lines == 1 && BYTE_ORDER_MARKS_16.iter().any(|mark| line.starts_with(mark)) {
        damage(counters, Reason::Utf16);
    }
    let bare = trim_space_and_nul(line);
    if memchr(0, line).is_some() {
        damage(counters, Reason::Nul);
    } else if bare.is_empty() {
        damage(counters, Reason::BlankLine);
    }
    bare
}

fn trim_space_and_nul(line: &[u8]) -> &[u8] {
    let edge = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0B | 0x0C | 0);
    let Some(start) = line.iter().position(edge) else { return &[] };
    let end = line.iter().rposition(edge).map_or(line.len(), |last| last + 1);
    &line[start..end]
}

/// All values on a line: normally one record. Where one breaks off, the next whole record behind it is looked for.
fn values<R: TakeRecords>(reader: &mut R, line: &[u8], last: bool) {
    let mut cursor = Cursor::new(line);
    let (mut count, mut is_broken, mut is_breaking, mut walked) = (0, false, false, 0);
    loop {
        let start = cursor.pos();
        let Err(fault) = value(reader, &mut cursor) else {
            count += u32::from(!is_broken);
            is_breaking = false;
            pass_over_gap(reader.counters(), line, &mut cursor);
            if cursor.at_end() {
                break;
            }
            continue;
        };
        let is_joined = line[start] == b',' && line[start + 1..].trim_ascii_start().starts_with(b"{");
        let behind = if is_joined { Some(start + 1) } else { next_record(line, start + 1, &mut walked) };
        // What breaks off right behind another break is a part of it.
        if !std::mem::replace(&mut is_breaking, true) {
            is_broken = true;
            broken(reader.counters(), &line[start..], fault, (last, behind.is_some()));
        }
        let Some(at) = behind else { break };
        cursor = Cursor::at(line, at);
    }
    if count > 1 {
        damage(reader.counters(), Reason::Glued);
    }
}

/// Passes over what may stand between two records.
fn pass_over_gap<'l>(counters: &mut Counters, line: &'l [u8], cursor: &mut Cursor<'l>) {
    let (length, has_mark) = gap(&line[cursor.pos()..]);
    if has_mark {
        damage(counters, Reason::Bom);
    }
    *cursor = Cursor::at(line, cursor.pos() + length);
}

/// How long what a crash or an editor may leave between two records is, and whether a byte order mark is in it.
fn gap(text: &[u8]) -> (usize, bool) {
    let (mut length, mut has_mark) = (0, false);
    loop {
        match &text[length..] {
            [b' ' | b'\t' | b'\r' | 0, ..] => length += 1,
            rest if rest.starts_with(BYTE_ORDER_MARK) => (length, has_mark) = (length + BYTE_ORDER_MARK.len(), true),
            _ => return (length, has_mark),
        }
    }
}

/// Counts a value that broke off, or is no JSON.
fn broken(counters: &mut Counters, from: &[u8], fault: JsonFault, (last, is_followed): (bool, bool)) {
    counters.bad_fragments += 1;
    counters.items += 1;
    let torn = fault == JsonFault::Torn || from.first() == Some(&b'{');
    let reason = match fault {
        _ if is_followed => Reason::TornRecord,
        JsonFault::TooDeep => Reason::TooDeep,
        JsonFault::Torn if last => Reason::TornTail,
        _ if torn => Reason::TornRecord,
        _ => Reason::ParseError,
    };
    damage(counters, reason);
}

fn value<R: TakeRecords>(reader: &mut R, cursor: &mut Cursor<'_>) -> Result<(), JsonFault> {
    let reason = match cursor.shape()? {
        JsonKind::Object => return reader.record(cursor),
        JsonKind::Array => Reason::Array,
        _ => Reason::Scalar,
    };
    cursor.skip_value()?;
    let counters = reader.counters();
    counters.items += 1;
    counters.non_objects += 1;
    damage(counters, reason);
    Ok(())
}

/// Whether another record may be glued on: an object begins where no value of this record can (a string that happens to
/// end in a brace looks the same, and is then simply read).
pub(super) fn may_hold_another(rest: &[u8]) -> bool {
    let begins_oddly = memchr::memchr_iter(b'{', rest).any(|brace| {
        let before = rest[..brace].iter().rfind(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        match before {
            None | Some(b':' | b',' | b'[') => false,
            Some(b'}') => true,
            Some(_) => rest.get(brace + 1) == Some(&b'"'),
        }
    });
    // The session of this record stands before `rest`: another one speaks of another record.
    begins_oddly || memmem::find(rest, b"\"sessionId\":").is_some()
}

/// Where the next whole record starts behind one that broke off: a writer was killed, the next ones appended. Nested objects of
/// the torn record do not qualify, since they lack the fields of a record, and something of it stands behind them. `walked`
/// counts the bytes that were looked at.
fn next_record(line: &[u8], mut from: usize, walked: &mut usize) -> Option<usize> {
    /// How often the line may be walked through for them. Objects that are whole are soon over, however many there are; only
    /// what the break left open reaches far.
    const WALKS_MAX: usize = 64;
    while *walked <= WALKS_MAX * line.len() {
        let begin = from + memmem::find(line.get(from..)?, b"{\"")?;
        let mut cursor = Cursor::at(line, begin);
        let found = is_whole_record(&mut cursor);
        *walked += cursor.pos() - begin;
        let behind = &line[cursor.pos()..][gap(&line[cursor.pos()..]).0..];
        match found {
            Ok(true) if matches!(behind, [] | [b'{', ..]) => return Some(begin),
            // The end of a string was looked for up to there.
            Err(JsonFault::Torn) => *walked += line.len() - cursor.pos(),
            Ok(_) | Err(_) => {}
        }
        from = begin + 1;
    }
    None
}

/// Whether a record stands here; the cursor is behind it then.
fn is_whole_record(cursor: &mut Cursor<'_>) -> Result<bool, JsonFault> {
    let (mut has_type, mut has_identity, mut first) = (false, false, cursor.enter()?);
    while let Some(key) = cursor.next_key(&mut first)? {
        has_type |= key.0 == b"type";
        has_identity |= matches!(key.0, b"sessionId" | b"leafUuid" | b"snapshot");
        cursor.skip_value()?;
    }
    Ok(has_type && has_identity)
}
