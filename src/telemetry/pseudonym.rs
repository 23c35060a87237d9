//! The names under which things of a user may leave the machine: what is made to be shared has no others, and nothing
//! else makes them.

use crate::model::id::Id;

/// Hex digits of a pseudonym (published length).
const DIGITS: usize = 6;

/// The name of a tool without the name of its MCP server: `mcp__gitlab__get_issue` is `mcp__p9d96d9__get_issue`
/// (published form), `mcp__gitlab` is `mcp__p9d96d9`. The verb stays, since it says what the tool does. A server whose name
/// looks like a pseudonym gets one like any other. Short prefixes hide a name from a glance, not from somebody who guesses
/// it.
pub fn anonymous_tool(tool: &str) -> String {
    match server_and_verb(tool) {
        None => tool.to_owned(),
        Some((server, "")) if !tool.ends_with("__") => format!("mcp__p{}", digits(server)),
        Some((server, verb)) => format!("mcp__p{}__{verb}", digits(server)),
    }
}

/// Whether the name of a tool may have been made by [`anonymous_tool`]. It can be asked of names that somebody recorded; in
/// a log such a name is the server's own.
pub fn is_anonymous_tool(tool: &str) -> bool {
    server_and_verb(tool).is_some_and(|(server, _)| is_pseudonym(server))
}

/// The name of a project without its directory, which mostly holds the name of a user: `project-9d96d9`.
pub fn anonymous_project(directory: &str) -> String {
    format!("project-{}", digits(directory))
}

fn digits(name: &str) -> String {
    Id::pseudonym(name.as_bytes()).to_string()[..DIGITS].to_owned()
}

/// The verb is empty where there is none.
fn server_and_verb(tool: &str) -> Option<(&str, &str)> {
    let name = tool.strip_prefix("mcp__").filter(|name| !name.is_empty())?;
    Some(name.rsplit_once("__").unwrap_or((name, "")))
}

fn is_pseudonym(server: &str) -> bool {
    let is_hex = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    server.strip_prefix('p').is_some_and(|digits| digits.len() == DIGITS && is_hex(digits))
}
