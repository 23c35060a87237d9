//! A flat JSON object as `key: value` lines.

use crate::facts::cell::{read_members, write_members};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::json_tree::Json;

/// One line per member in document order, spelled as in [`crate::facts::cell`]; `key:` alone is `null`.
pub const FORMAT: Format = Format { id: "kv", family: FormatFamily::Published, by_depth: false, encode, decode };

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    let members = subject.json()?.as_object()?;
    if members.is_empty() || members.iter().any(|(_, value)| value.is_container()) {
        return None;
    }
    let mut out = String::new();
    write_members(members, &mut out);
    out.pop();
    Some(out)
}

fn decode(text: &str) -> Option<Meaning> {
    let members = read_members(text)?;
    let flat = !members.iter().any(|(_, value)| value.is_container());
    flat.then(|| Json::object(members).ok().map(Meaning::Json))?
}
