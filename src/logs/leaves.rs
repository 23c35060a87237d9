//! JSON that a record holds: what a result lists (the scalars of each path of keys, in the order of the document), and what a
//! call is given (the scalars of its input, by path of keys, and what it quotes of what its agent was shown: the text that an
//! edit is to replace).

use std::collections::BTreeSet;

use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use crate::base::id::IdMap;
use crate::base::json::{Cursor, JsonKind, RawStr, decode_into};
use crate::logs::field::FieldResult;
use crate::logs::value_draft::{DraftGiven, DraftValue, ValueDraft};
use crate::logs::values::{List, name_value};

/// Branches of the tree of keys per path that is kept: the rest of a document with more is passed over.
const BRANCHES_PER_PATH: usize = 4;

/// Drafts the lists of one or more JSON documents, objects or arrays, which stand one after another; `None` if the text is
/// anything else.
pub(super) fn walk_answer(draft: &mut ValueDraft<'_>, text: &[u8]) -> Option<()> {
    let mut cursor = Cursor::new(text);
    cursor.skip_space();
    if !matches!(cursor.rest().first(), Some(b'{' | b'[')) {
        return None;
    }
    let mut tree = Tree::new(draft);
    while !cursor.at_end() {
        let is_document = matches!(cursor.shape(), Ok(JsonKind::Object | JsonKind::Array));
        if !is_document || tree.value(&mut cursor, ROOT, 0).is_err() {
            return None;
        }
    }
    tree.draft.flag(List::JSON);
    Some(())
}

const ROOT: u32 = 0;

/// The paths of keys seen so far.
struct Tree<'d, 'v> {
    draft: &'d mut ValueDraft<'v>,
    branches: Vec<Branch>,
    /// Branches by the hash of their key as it may be kept, and by what they grow from.
    children: IdMap<(u64, u32), u32>,
    /// The string at hand, decoded.
    text: Vec<u8>,
}

#[derive(Default)]
struct Branch {
    parent: u32,
    name: String,
    list: Option<usize>,
}

impl<'d, 'v> Tree<'d, 'v> {
    fn new(draft: &'d mut ValueDraft<'v>) -> Self {
        let root = Branch { name: "$".to_owned(), ..Branch::default() };
        Self { draft, branches: vec![root], children: IdMap::default(), text: Vec::new() }
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, branch: u32, depth: usize) -> FieldResult<()> {
        let shape = cursor.shape()?;
        if depth > self.draft.rules.json_depth_max {
            return cursor.skip_value();
        }
        match shape {
            JsonKind::Object => {
                let mut first = cursor.enter()?;
                while let Some(key) = cursor.next_key(&mut first)? {
                    let key = key.decode().unwrap_or_default();
                    self.member(cursor, self.draft.rules.key(&key), branch, depth)?;
                }
            }
            JsonKind::Array => {
                let mut first = cursor.enter()?;
                while cursor.next_element(&mut first)? {
                    self.member(cursor, "[]", branch, depth)?;
                }
            }
            JsonKind::String => {
                let raw = cursor.string()?;
                self.string(raw, branch)?;
            }
            JsonKind::Number => {
                let literal = cursor.number()?;
                if self.draft.rules.is_number_value(literal) {
                    self.leaf(literal, branch);
                }
            }
            JsonKind::Bool | JsonKind::Null => cursor.skip_value()?,
        }
        Ok(())
    }

    fn member(&mut self, cursor: &mut Cursor<'_>, key: &str, branch: u32, depth: usize) -> FieldResult<()> {
        match self.child(branch, key) {
            Some(child) => self.value(cursor, child, depth + 1),
            None => cursor.skip_value(),
        }
    }

    fn string(&mut self, raw: RawStr<'_>, branch: u32) -> FieldResult<()> {
        if !self.draft.rules.may_be_value(raw.0) {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let text_of = match raw.plain() {
            Some(plain) => plain,
            None => {
                decode_into(raw.0, &mut text)?;
                &text
            }
        };
        if self.draft.rules.is_value(text_of) {
            self.leaf(text_of, branch);
        }
        self.text = text;
        Ok(())
    }

    fn leaf(&mut self, text: &[u8], branch: u32) {
        if self.draft.kept() >= self.draft.rules.json_values_max {
            return self.draft.flag(List::CUT);
        }
        let list = match self.branches[branch as usize].list {
            Some(list) => list,
            None if self.draft.list_count() < self.draft.rules.json_paths_max => {
                let path = self.path(branch);
                let list = self.draft.list(&path, self.draft.rules.leaves_max);
                *self.branches[branch as usize].list.insert(list)
            }
            None => return self.draft.flag(List::CUT),
        };
        self.draft.add_leaf(list, text);
    }

    /// `$.data.issues[].id`
    fn path(&self, branch: u32) -> String {
        let mut names = Vec::new();
        let mut at = branch;
        while at != ROOT {
            let Branch { parent, name, .. } = &self.branches[at as usize];
            names.push(name.as_str());
            at = *parent;
        }
        let mut path = String::from("$");
        for name in names.into_iter().rev() {
            if name != "[]" {
                path.push('.');
            }
            path.push_str(name);
        }
        path
    }

    /// The branch of a key; none if there are too many.
    fn child(&mut self, parent: u32, key: &str) -> Option<u32> {
        let place = (xxh3_64(key.as_bytes()), parent);
        if let Some(&child) = self.children.get(&place) {
            return Some(child);
        }
        let child = self.branches.len();
        if child > BRANCHES_PER_PATH * self.draft.rules.json_paths_max {
            self.draft.flag(List::CUT);
            return None;
        }
        self.branches.push(Branch { parent, name: key.to_owned(), list: None });
        self.children.insert(place, child as u32);
        Some(child as u32)
    }
}

/// Drafts every scalar of an input of a call that is an object; of any other input none. Those that are no values have no
/// name.
pub(super) fn walk_input(draft: &mut ValueDraft<'_>, call: usize, input: &[u8]) {
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
                    let key = key.decode().unwrap_or_default();
                    self.path.push_str(self.draft.rules.key(&key));
                    self.value(cursor, &key, depth + 1)?;
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
