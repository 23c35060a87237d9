//! What a call is given: the scalars of its input, by path of keys, and what it quotes of what its agent was shown (the
//! text that an edit is to replace).

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::base::json::{Cursor, JsonKind};
use crate::logs::field::FieldResult;
use crate::logs::value_draft::{DraftGiven, DraftValue, ValueDraft};
use crate::logs::values::name_value;

/// Drafts every scalar of an input of a call that is an object; of any other input none. Those that are no values have no
/// name.
pub(super) fn walk(draft: &mut ValueDraft<'_>, call: usize, input: &[u8]) {
    if input.first() != Some(&b'{') {
        return;
    }
    let mut walk = Walk { draft, call, path: String::new() };
    // The span was walked before: what fails here are malformed escapes, which end it.
    walk.value(&mut Cursor::new(input), b"", 0).unwrap_or_default();
}

struct Walk<'w, 'v> {
    draft: &'w mut ValueDraft<'v>,
    call: usize,
    path: String,
}

impl Walk<'_, '_> {
    /// `key` is the last key above the value.
    fn value(&mut self, cursor: &mut Cursor<'_>, key: &[u8], depth: usize) -> FieldResult<()> {
        let shape = cursor.shape()?;
        if depth > self.draft.rules.argument_depth_max {
            return cursor.skip_value();
        }
        let length = self.path.len();
        match shape {
            JsonKind::Object => {
                let mut first = cursor.enter()?;
                while let Some(key) = cursor.next_key(&mut first)? {
                    if length > 0 {
                        self.path.push('.');
                    }
                    self.path.push_str(self.draft.rules.key(key.0));
                    self.value(cursor, key.0, depth + 1)?;
                    self.path.truncate(length);
                }
            }
            JsonKind::Array => {
                let mut first = cursor.enter()?;
                self.path.push_str("[]");
                while cursor.next_element(&mut first)? {
                    self.value(cursor, key, depth + 1)?;
                }
                self.path.truncate(length);
            }
            JsonKind::String => {
                let raw = cursor.string()?;
                // Of a long text the spelling in JSON tells as much.
                let is_long = !self.draft.rules.may_be_value(raw.0);
                let text = if is_long { raw.0.into() } else { raw.decode().unwrap_or_default() };
                self.string(&text, key);
            }
            JsonKind::Number => {
                let literal = cursor.number()?;
                let is_value = self.draft.rules.is_number_value(literal);
                self.scalar(DraftValue::of(literal), is_value);
            }
            JsonKind::Bool | JsonKind::Null => {
                cursor.skip_space();
                let start = cursor.pos();
                cursor.skip_value()?;
                self.scalar(DraftValue::of(cursor.since(start)), false);
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &[u8], key: &[u8]) {
        let value = if self.draft.rules.is_path_argument(key) { self.draft.path(text) } else { self.draft.value(text) };
        self.scalar(value, self.draft.rules.is_value(text));
    }

    fn scalar(&mut self, value: DraftValue, is_value: bool) {
        let name = is_value.then(|| self.draft.names.intern(&self.path));
        let name_hash = name_value(&self.path);
        self.draft.given.push(DraftGiven { call: self.call, name, name_hash, value });
    }
}

/// The texts that an input gives under one of these names, at any depth, one after the other; none without any.
pub fn quoted(input: &[u8], names: &BTreeSet<String>) -> Option<String> {
    // Most inputs name none of them and are not read once more.
    if !names.iter().any(|name| memchr::memmem::find(input, name.as_bytes()).is_some()) {
        return None;
    }
    let input: Json = serde_json::from_slice(input).ok()?;
    let mut texts = Vec::new();
    gather(&input, names, &mut texts);
    let text = texts.join("\n");
    (!text.is_empty()).then_some(text)
}

fn gather<'v>(value: &'v Json, names: &BTreeSet<String>, texts: &mut Vec<&'v str>) {
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                match value {
                    Json::String(text) if names.contains(name) => texts.push(text),
                    value => gather(value, names, texts),
                }
            }
        }
        Json::Array(values) => values.iter().for_each(|value| gather(value, names, texts)),
        _ => {}
    }
}
