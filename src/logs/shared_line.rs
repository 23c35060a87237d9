//! Records that share a line: one glued on behind another, or appended behind a torn one.

use memchr::memmem;

use crate::base::json::{Cursor, Fault};

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

/// Where whole records start that reach to the end of the line, behind a torn one: a writer was killed, the next
/// one appended. Nested objects of the torn record do not qualify, since they lack the fields of a record.
pub(super) fn records_at_end(line: &[u8], start: usize) -> Option<usize> {
    const ATTEMPTS_MAX: usize = 64;
    memmem::find_iter(&line[start + 1..], b"{\"")
        .map(|offset| start + 1 + offset)
        .take(ATTEMPTS_MAX)
        .find(|&pos| are_whole_records(&line[pos..]))
}

fn are_whole_records(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(bytes);
    let (mut has_type, mut has_identity) = (false, false);
    let mut walk = || -> Result<bool, Fault> {
        cursor.enter()?;
        let mut first = true;
        while let Some(key) = cursor.next_key(&mut first)? {
            has_type |= key.0 == b"type";
            has_identity |= matches!(key.0, b"sessionId" | b"leafUuid" | b"snapshot");
            cursor.skip_value()?;
        }
        Ok(has_type && has_identity)
    };
    walk().unwrap_or(false) && (cursor.at_end() || are_whole_records(&bytes[cursor.pos()..]))
}
