//! Records that share a line: one glued on behind another, or appended behind a torn one.

use memchr::memmem;

use crate::base::json::{Cursor, JsonFault};

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

/// Where the whole records start that reach to the end of the line, behind a torn one: a writer was killed, the next ones
/// appended. Nested objects of the torn record do not qualify, since they lack the fields of a record.
pub(super) fn records_at_end(line: &[u8], start: usize) -> Vec<usize> {
    const ATTEMPTS_MAX: usize = 64;
    let mut from = start + 1;
    for _ in 0..ATTEMPTS_MAX {
        let Some(offset) = memmem::find(&line[from..], b"{\"") else { break };
        let mut cursor = Cursor::at(line, from + offset);
        // What broke off behind whole records breaks off behind each of them.
        from += offset + 1;
        let mut starts = Vec::new();
        loop {
            let at = cursor.pos();
            if !is_whole_record(&mut cursor).unwrap_or(false) {
                break;
            }
            starts.push(at);
            if cursor.at_end() {
                return starts;
            }
            from = cursor.pos();
        }
    }
    Vec::new()
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
