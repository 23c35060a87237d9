//! A JSON object with an array `diffs`: its other members as lines, then every diff under a heading of its own in a fence,
//! where line breaks and quotes need no escapes (grammar and example: docs/formats.md).

use crate::facts::cell::{fence_for, read_member, read_members, read_name, write_members, write_name};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::json_tree::{Json, write_string};

/// Lines and fences, spelled as in [`crate::facts::cell`]; a fence is longer than any run of back-ticks in it.
pub const FORMAT: Format =
    Format { id: "mr_diff_fence", family: FormatFamily::Published, by_depth: false, encode, decode };

const DIFFS: &str = "diffs";
const OTHER_PATH: &str = "new_path: ";

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    let members = subject.json()?.as_object()?;
    let (_, diffs) = members.iter().find(|(key, _)| key == DIFFS)?;
    let diffs = diffs.as_array().filter(|diffs| !diffs.is_empty())?;
    let mut out = String::new();
    write_members(members.iter().filter(|(key, _)| key != DIFFS), &mut out);
    out.push_str(if out.is_empty() { "" } else { "\n" });
    for (index, diff) in diffs.iter().enumerate() {
        write_diff(index + 1, diff.as_object()?, &mut out)?;
    }
    out.pop();
    Some(out)
}

fn decode(text: &str) -> Option<Meaning> {
    let (mut members, mut rest) = if text.starts_with("## ") {
        (Vec::new(), text)
    } else {
        let (lines, diffs) = text.split_once("\n\n")?;
        (read_members(lines)?, diffs)
    };
    let mut diffs = Vec::new();
    loop {
        let (diff, behind) = read_diff(diffs.len() + 1, rest)?;
        diffs.push(diff);
        match behind.strip_prefix('\n') {
            Some(next) => rest = next,
            None if behind.is_empty() => break,
            None => return None,
        }
    }
    members.push((DIFFS.to_owned(), Json::Array(diffs)));
    Json::object(members).ok().map(Meaning::Json)
}

/// The member of that name, if it is a string.
fn text_of<'a>(members: &'a [(String, Json)], name: &'static str) -> Option<(&'static str, &'a str)> {
    let (_, value) = members.iter().find(|(key, _)| key == name)?;
    Some((name, value.as_str()?))
}

fn write_diff(number: usize, members: &[(String, Json)], out: &mut String) -> Option<()> {
    let path = text_of(members, "path").or_else(|| text_of(members, "new_path"));
    let (body_key, body) = text_of(members, "content").or_else(|| text_of(members, "diff"))?;
    out.push_str(&format!("## diff {number}"));
    if let Some((key, path)) = path {
        out.push_str(" (");
        write_path(key, path, out);
        out.push(')');
    }
    out.push('\n');
    let path_key = path.map(|(key, _)| key);
    write_members(members.iter().filter(|(key, _)| key != body_key && Some(key.as_str()) != path_key), out);
    let fence = fence_for(body);
    out.push_str(&fence);
    out.push_str(if body_key == "diff" { "diff" } else { "diff content" });
    out.push_str(if body.ends_with('\n') { "\n" } else { " no-eol\n" });
    out.push_str(body);
    out.push_str(if body.ends_with('\n') { "" } else { "\n" });
    out.push_str(&fence);
    out.push('\n');
    Some(())
}

fn write_path(key: &str, path: &str, out: &mut String) {
    if key == "new_path" {
        out.push_str(OTHER_PATH);
    }
    if path.starts_with(OTHER_PATH) { write_string(path, out) } else { write_name(path, out) }
}

fn read_path(text: &str) -> Option<(String, Json)> {
    let (key, path) = text.strip_prefix(OTHER_PATH).map_or(("path", text), |path| ("new_path", path));
    Some((key.to_owned(), Json::String(read_name(path)?)))
}

/// Reads the diff of that number at the start of `text`: it and what stands behind its closing fence.
fn read_diff(number: usize, text: &str) -> Option<(Json, &str)> {
    let (heading, mut rest) = text.split_once('\n')?;
    let mut members = Vec::new();
    match heading.strip_prefix(&format!("## diff {number}"))? {
        "" => {}
        path => members.push(read_path(path.strip_prefix(" (")?.strip_suffix(')')?)?),
    }
    let opening = loop {
        let (line, next) = rest.split_once('\n')?;
        rest = next;
        if line.starts_with("```") {
            break line;
        }
        members.push(read_member(line)?);
    };
    let (body, behind) = read_fence(opening, rest)?;
    members.push(body);
    Some((Json::object(members).ok()?, behind))
}

/// Reads the body of a fence up to its closing line, as a member: it and what stands behind.
fn read_fence<'a>(opening: &str, text: &'a str) -> Option<((String, Json), &'a str)> {
    let info = opening.trim_start_matches('`');
    let fence = &opening[..opening.len() - info.len()];
    let (body, behind) = text.split_at(text.find(&format!("\n{fence}"))? + 1);
    let (info, body) = match info.strip_suffix(" no-eol") {
        Some(info) => (info, body.strip_suffix('\n')?),
        None => (info, body),
    };
    let key = match info {
        "diff" => "diff",
        "diff content" => "content",
        _ => return None,
    };
    let member = (key.to_owned(), Json::String(body.to_owned()));
    (fence == fence_for(body)).then_some((member, &behind[fence.len()..]))
}
