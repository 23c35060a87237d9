//! The lines that the planner would show the agent (published wording).

use crate::planner::numbers::TextNumbers;
use crate::planner::request::{ArgumentValue, Request};

/// The line that announces what was prefetched, to stand behind an answer; empty if nothing was. Only true where
/// these very requests are answered from what was fetched.
pub fn prefetch_hint<'r>(fetched: impl IntoIterator<Item = &'r Request>, numbers: &TextNumbers) -> String {
    let names: Vec<_> = fetched.into_iter().map(|request| short(request, numbers.argument_chars_max)).collect();
    if names.is_empty() {
        return String::new();
    }
    let names = names.join(", ");
    format!("\n\n> [enrichment: pre-fetched {names} in background — call as usual, results served from cache]")
}

/// `Tool(argument)`, cut between characters.
fn short(request: &Request, chars_max: usize) -> String {
    let ArgumentValue::Text(text) = &request.argument.value else { return format!("{}()", request.tool) };
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}({}…)", request.tool, &text[..end]),
        None => format!("{}({text})", request.tool),
    }
}
