//! One spelling per file: the paths in the inputs of tools, brought to one form by their letters alone. No file is
//! looked at, no link followed.

use std::borrow::Cow;

/// The path without `.`, `..`, repeated or trailing separators. A relative one stands in `cwd`, if that is known; one
/// that begins with `~` stands where it says.
///
/// `C:\a\b` and `c:/a/b` become `C:/a/b`, and `\\host\a` becomes `\\host/a`. In a path that looks like none of
/// Windows a back-slash is part of a name.
pub fn normal_path(path: &[u8], cwd: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    normal_path_into(path, cwd, &mut out);
    out
}

/// Writes [`normal_path`] to `out`; for most paths nothing is allocated.
pub fn normal_path_into(path: &[u8], cwd: Option<&[u8]>, out: &mut Vec<u8>) {
    out.clear();
    match cwd.filter(|cwd| !cwd.is_empty() && !is_rooted(path)) {
        Some(cwd) if is_plain(cwd) && is_plain_relative(path) => {
            out.extend_from_slice(cwd);
            out.push(b'/');
            out.extend_from_slice(path);
        }
        Some(cwd) => normalise(&[cwd, b"/", path].concat(), out),
        None if is_plain(path) => out.extend_from_slice(path),
        None => normalise(path, out),
    }
}

/// Whether an absolute path surely is its own normal form.
fn is_plain(path: &[u8]) -> bool {
    path.first() == Some(&b'/') && is_plain_relative(&path[1..])
}

/// Whether a path without root has no part that is empty, `.` or `..`; one that begins with a dot may.
fn is_plain_relative(path: &[u8]) -> bool {
    let ends = matches!(path, [first, .., last] if !matches!(first, b'/' | b'.') && *last != b'/');
    ends && !path.windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'/' | b'.'))
}

/// Writes a path to `out`, which is empty, part by part.
fn normalise(path: &[u8], out: &mut Vec<u8>) {
    let is_windows = is_windows(path);
    let is_separator = |byte: &u8| *byte == b'/' || (*byte == b'\\' && is_windows);
    let rest = write_root(path, out);
    let root = out.len();
    for part in rest.split(is_separator) {
        match part {
            b"" | b"." => {}
            b".." if out.len() > root && last_part(&out[root..]) != b".." => {
                let kept = out.len() - last_part(&out[root..]).len();
                out.truncate(kept.saturating_sub(1).max(root));
            }
            b".." if root > 0 => {}
            _ => {
                if out.len() > root {
                    out.push(b'/');
                }
                out.extend_from_slice(part);
            }
        }
    }
    // A name that looks like a root, such as `~` or `C:`, stays what it is only behind `./`.
    if !is_rooted(path) && is_rooted(out) {
        out.splice(..0, *b"./");
    }
    if out.is_empty() {
        out.push(b'.');
    }
}

/// A working directory in one spelling: one of Windows as [`normal_path`] has it, another without separators at its end, however
/// many there are. Of a root nothing would be left.
pub fn directory(path: &[u8]) -> Cow<'_, [u8]> {
    if is_windows(path) {
        return normal_path(path, None).into();
    }
    let last = path.iter().rposition(|byte| !matches!(byte, b'/' | b'\\'));
    last.map_or(path, |last| &path[..=last]).into()
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Whether `\` separates parts, too: behind a drive (`C:`) or a server (`\\host`). Else it is a letter.
fn is_windows(path: &[u8]) -> bool {
    path.starts_with(br"\\") || has_drive(path)
}

/// Whether the path begins with a drive: `C:/` or `C:\`.
pub fn has_drive(path: &[u8]) -> bool {
    matches!(path, [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic())
}

/// Whether a path says itself where it begins.
pub fn is_rooted(path: &[u8]) -> bool {
    is_windows(path) || path.starts_with(b"/") || path == b"~" || path.starts_with(b"~/")
}

/// Writes the root in its one spelling; tells what stands behind it.
fn write_root<'p>(path: &'p [u8], out: &mut Vec<u8>) -> &'p [u8] {
    match path {
        [letter, b':', rest @ ..] if has_drive(path) => {
            out.extend([letter.to_ascii_uppercase(), b':', b'/']);
            rest
        }
        [b'\\', b'\\', ..] => {
            out.extend(br"\\");
            path
        }
        [b'/', rest @ ..] => {
            out.push(b'/');
            rest
        }
        _ => path,
    }
}
