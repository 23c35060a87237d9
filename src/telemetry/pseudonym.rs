//! The names under which tools of MCP servers may leave the machine.

use crate::model::id::Id;

/// Hex digits of a pseudonym (published length).
const DIGITS: usize = 6;

/// The name of a tool without the name of its MCP server: `mcp__gitlab__get_issue` is `mcp__p9d96d9__get_issue`
/// (published form). What is a pseudonym already stays as it is. Short prefixes hide a name from a glance, not from
/// somebody who guesses it.
pub fn anonymous_tool(tool: &str) -> String {
    let Some((server, verb)) = server_and_verb(tool).filter(|(server, _)| !is_pseudonym(server)) else {
        return tool.to_owned();
    };
    let hash = Id::pseudonym(server.as_bytes()).to_string();
    format!("mcp__p{}__{verb}", &hash[..DIGITS])
}

/// Whether the name of a tool hides its server.
pub fn is_anonymous_tool(tool: &str) -> bool {
    server_and_verb(tool).is_some_and(|(server, _)| is_pseudonym(server))
}

fn server_and_verb(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix("mcp__")?.rsplit_once("__")
}

fn is_pseudonym(server: &str) -> bool {
    let is_hex = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    server.strip_prefix('p').is_some_and(|digits| digits.len() == DIGITS && is_hex(digits))
}
