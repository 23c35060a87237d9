//! Where what is old ends, and which requests continue a chain of tool calls.

use crate::whatif::history_trim::conversation::Message;
use crate::whatif::history_trim::outcome::Role;

/// Index of the first message that is not old: the exchange that is `keep_recent`-th from the end. 0 if there are fewer;
/// with none to keep, everything is old.
pub fn boundary(messages: &[Message], keep_recent: u32) -> usize {
    if keep_recent == 0 {
        return messages.len();
    }
    let exchanges = messages.iter().enumerate().rev().filter(|(_, message)| message.is_exchange);
    exchanges.map(|(index, _)| index).nth(keep_recent as usize - 1).unwrap_or(0)
}

/// Whether the conversation ends with tool results right after the assistant message that asked for tools.
pub fn is_continuation(messages: &[Message]) -> bool {
    let mut backwards = messages.iter().rev().skip_while(|message| message.role == Role::Tool && message.has_id);
    let ends_with_result = messages.last().is_some_and(|message| message.role == Role::Tool && message.has_id);
    ends_with_result && backwards.next().is_some_and(|message| message.calls_tools)
}
