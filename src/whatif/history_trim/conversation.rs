//! A context as a router sees it: messages with roles, made of the blocks of a view.
//!
//! The output of a request is one assistant message, a tool result one tool message, the text of one user record one user
//! message. Results come first among what came in between two outputs, as the provider wants them right after their calls.
//! What is no block of the log (residuals, what other stages wrote) belongs to no message. Where what is old ends, and
//! which requests continue a chain of tool calls, follows from the messages alone.

use std::ops::Range;

use crate::logs::timeline::requests::{Block, BlockKind, NONE, Timeline};
use crate::whatif::history_trim::outcome::Role;
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::Item;

/// One message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrimMessage {
    pub role: Role,
    /// Its first block: tells it from all other messages.
    pub id: u32,
    pub is_exchange: bool,
    /// Whether it is an assistant message that calls tools.
    pub calls_tools: bool,
    /// Whether it names the call that it answers.
    pub has_id: bool,
    /// Whether its text is one string; lists of parts are never cut.
    pub is_string: bool,
    pub has_thinking: bool,
    /// Code points of its text.
    pub text_chars: u32,
    pub text_tokens: u32,
    /// Tokens of its tool calls.
    pub call_tokens: u32,
    /// Tokens of all its items, before anything is done to it.
    pub tokens: u32,
    /// Its items in the view.
    pub items: Range<usize>,
}

/// Messages of a view, in the order of the conversation.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    pub messages: Vec<TrimMessage>,
    /// Items of the view that have been read.
    items: Vec<Item>,
    /// The first place where more was read behind what belongs together with it, and would have been read with it.
    seam: Option<usize>,
}

/// How items become messages.
#[derive(Clone, Copy)]
pub struct MessageReading<'a> {
    pub timeline: &'a Timeline,
    /// The numbers by which their sizes were estimated.
    pub sizes: &'a SizeRules,
    /// Whether every message with the role of the user is an exchange; else those in which a person wrote.
    pub counts_user_role: bool,
}

impl Conversation {
    /// Follows a view, of which `kept` items are known to stand as they were read: where it goes on from what has been read,
    /// only what is new is read, else what stands behind the messages that are whole. Returns whether it went on.
    pub fn follow(&mut self, reading: &MessageReading<'_>, items: &[Item], kept: usize) -> bool {
        let kept = kept.min(self.items.len());
        let goes_on = items[kept..].starts_with(&self.items[kept..]);
        if !goes_on || self.messages.is_empty() {
            self.go_back(reading, kept);
        }
        let mut at = self.items.len();
        let is_answer = |at: usize| Some(reading.block(items.get(at)?)?.1.kind.is_output());
        if at > 0 && is_answer(at).is_some() && is_answer(at - 1) == is_answer(at) {
            self.seam.get_or_insert(at);
        }
        self.items.extend_from_slice(&items[at..]);
        while at < items.len() {
            at = match reading.block(&items[at]) {
                None => at + 1,
                Some((index, block)) if block.kind.is_output() => self.read_answer(reading, items, at, index),
                Some(_) => self.read_inputs(reading, items, at),
            };
        }
        goes_on
    }

    /// Forgets what has been read, but for messages among so many leading items that nothing behind them changes: where an
    /// answer begins, what came before it is whole.
    fn go_back(&mut self, reading: &MessageReading<'_>, kept: usize) {
        let is_answer = |at: usize| reading.block(&self.items[at]).is_some_and(|(_, block)| block.kind.is_output());
        let known = if self.messages.is_empty() { 0 } else { kept.min(self.seam.unwrap_or(kept)) };
        let whole = (1..known).rev().find(|&at| is_answer(at) && !is_answer(at - 1)).unwrap_or(0);
        self.messages.truncate(self.messages.partition_point(|message| message.items.start < whole));
        self.items.truncate(whole);
        self.seam = None;
    }

    /// Whether so many leading items are all that has been read.
    pub(crate) fn is_read(&self, kept: usize) -> bool {
        kept == self.items.len() && !self.messages.is_empty()
    }

    /// What has been read of the view.
    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// What a fork goes on with: messages are read once more.
    pub(crate) fn unread(items: Vec<Item>) -> Self {
        Self { items, ..Self::default() }
    }

    /// Blocks of a message.
    pub(crate) fn blocks(&self, message: &TrimMessage) -> impl Iterator<Item = u32> {
        self.items[message.items.clone()].iter().filter_map(|item| item.key.block())
    }

    /// Reads one assistant message, returns where it ends.
    fn read_answer(&mut self, reading: &MessageReading<'_>, items: &[Item], start: usize, first: u32) -> usize {
        let end_block = reading.end_of_answer(first);
        let belongs = |item: &&Item| {
            reading.block(item).is_some_and(|(index, block)| index < end_block && block.kind.is_output())
        };
        let end = start + items[start..].iter().take_while(belongs).count();
        self.messages.push(reading.message(Role::Assistant, items, start..end));
        end
    }

    /// Reads what came in up to the next answer or foreign item, results first; returns where it ends.
    fn read_inputs(&mut self, reading: &MessageReading<'_>, items: &[Item], start: usize) -> usize {
        let input = |item: &&Item| reading.block(item).is_some_and(|(_, block)| !block.kind.is_output());
        let end = start + items[start..].iter().take_while(input).count();
        let is_result = |at: usize| reading.block(&items[at]).is_some_and(|(_, it)| it.kind == BlockKind::ToolResult);
        let results = (start..end).filter(|&at| is_result(at));
        self.messages.extend(results.map(|at| reading.message(Role::Tool, items, at..at + 1)));
        let mut at = start;
        while at < end {
            let record = reading.block(&items[at]).map(|(_, block)| block.record);
            let same = |&other: &usize| {
                !is_result(other) && reading.block(&items[other]).map(|(_, block)| block.record) == record
            };
            let length = (at..end).take_while(same).count();
            if length > 0 {
                self.messages.push(reading.message(Role::User, items, at..at + length));
            }
            at += length.max(1);
        }
        end
    }
}

impl<'a> MessageReading<'a> {
    fn block(&self, item: &Item) -> Option<(u32, &'a Block)> {
        item.key.block().map(|index| (index, &self.timeline.blocks[index as usize]))
    }

    /// End of the answer that holds a block.
    fn end_of_answer(&self, block: u32) -> u32 {
        let requests = &self.timeline.requests;
        let place = requests.partition_point(|request| request.outputs.end <= block);
        requests.get(place).map_or(block + 1, |request| request.outputs.end)
    }

    fn message(&self, role: Role, items: &[Item], range: Range<usize>) -> TrimMessage {
        let mut message = TrimMessage {
            role,
            id: NONE,
            is_exchange: role == Role::User && self.counts_user_role,
            is_string: true,
            tokens: items[range.clone()].iter().map(|item| item.tokens).sum(),
            items: range.clone(),
            ..TrimMessage::default()
        };
        for item in &items[range] {
            let Some((index, block)) = self.block(item) else { continue };
            message.id = message.id.min(index);
            match block.kind {
                BlockKind::ToolUsage => {
                    message.calls_tools = true;
                    message.call_tokens += item.tokens;
                }
                BlockKind::Thinking => message.has_thinking = true,
                _ => message.has_id |= block.call != NONE,
            }
            if let Some(tokens) = self.sizes.text_tokens(block, item.kept_chars, item.tokens) {
                message.text_chars += item.kept_chars;
                message.text_tokens += tokens;
                // The answer of a model is one string to a router, in however many blocks it was logged.
                message.is_string &= block.is_string || role == Role::Assistant;
                message.is_exchange |= block.kind == BlockKind::Human;
            }
        }
        message
    }
}

/// Index of the first message that is not old: the exchange that is `keep_recent`-th from the end. 0 if there are fewer;
/// with none to keep, everything is old.
pub fn boundary(messages: &[TrimMessage], keep_recent: u32) -> usize {
    if keep_recent == 0 {
        return messages.len();
    }
    let exchanges = messages.iter().enumerate().rev().filter(|(_, message)| message.is_exchange);
    exchanges.map(|(index, _)| index).nth(keep_recent as usize - 1).unwrap_or(0)
}

/// Whether the conversation ends with tool results right after the assistant message that asked for tools.
pub fn is_continuation(messages: &[TrimMessage]) -> bool {
    let mut backwards = messages.iter().rev().skip_while(|message| message.role == Role::Tool && message.has_id);
    let ends_with_result = messages.last().is_some_and(|message| message.role == Role::Tool && message.has_id);
    ends_with_result && backwards.next().is_some_and(|message| message.calls_tools)
}
