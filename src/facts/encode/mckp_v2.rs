//! A JSON object around one main array of objects: its other members as `key: value` lines, then the array under its key
//! as a pipe table.
//!
//! The published router knows it as `deep_mckp_inner_table`, the published templates as `deep_mckp_with_inner_table`.

use crate::facts::cell::{CellGrid, read_members, read_name, write_members, write_name};
use crate::facts::encode::markdown_table::{read_table, write_table};
use crate::facts::encode::{Format, FormatFamily, Meaning, Params, Subject};
use crate::facts::json_tree::Json;

/// Its name as a template of L1, in telemetry and configurations.
pub const TEMPLATE_ID: &str = "deep_mckp_with_inner_table";

/// Lines, a blank line, a heading and a table, spelled as in [`crate::facts::cell`].
pub const FORMAT: Format = Format { id: "mckp_v2", family: FormatFamily::Published, by_depth: false, encode, decode };

/// Fewest elements of an array that is worth a table.
const ELEMENTS_MIN: usize = 2;

fn encode(subject: &Subject<'_>, _: Params) -> Option<String> {
    let members = subject.json()?.as_object()?;
    let main = main_array(members)?;
    let (name, array) = &members[main];
    let grid = CellGrid::of(array.as_array()?, subject.text.len())?;
    let mut out = String::new();
    write_members(members[..main].iter().chain(&members[main + 1..]), &mut out);
    out.push_str(if out.is_empty() { "## " } else { "\n## " });
    write_name(name, &mut out);
    out.push('\n');
    write_table(&grid, &mut out);
    Some(out)
}

/// The position of the longest array whose elements are all objects, the first of several.
fn main_array(members: &[(String, Json)]) -> Option<usize> {
    let of_objects =
        |array: &[Json]| array.len() >= ELEMENTS_MIN && array.iter().all(|value| value.as_object().is_some());
    let length = |(_, value): &(String, Json)| value.as_array().filter(|array| of_objects(array)).map(<[Json]>::len);
    let longest = members.iter().filter_map(length).max()?;
    members.iter().position(|member| length(member) == Some(longest))
}

fn decode(text: &str) -> Option<Meaning> {
    let (mut members, section) = match text.split_once("\n\n") {
        Some((lines, section)) => (read_members(lines)?, section),
        None => (Vec::new(), text),
    };
    let (name, table) = section.strip_prefix("## ")?.split_once('\n')?;
    members.push((read_name(name)?, read_table(table)?));
    Json::object(members).ok().map(Meaning::Json)
}
