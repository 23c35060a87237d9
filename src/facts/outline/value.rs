//! The outline of a JSON value: members and elements, each in lines that begin with its path.

use crate::base::body_shape::BodyShape;
use crate::facts::cell::{as_json, write_name, write_value};
use crate::facts::encode::{Subject, prove};
use crate::facts::json_tree::{Json, write_string};
use crate::facts::outline::text::leaf_lines;
use crate::facts::outline::{Builder, GroupHead, Tail};
use crate::facts::shape::classify;

/// Deepest member that is taken apart; what lies deeper stays in one node.
const DEPTH_MAX: usize = 32;

/// What the line of a small element begins with.
const ELEMENT: &str = "-";

/// Where in a JSON body something stands.
pub struct ValuePlace {
    /// Keys and indices, such as `data.items[3].name`.
    path: String,
    /// What its line begins with.
    label: String,
    depth: usize,
}

impl ValuePlace {
    /// The body itself.
    pub fn root() -> Self {
        Self { path: String::new(), label: String::new(), depth: 0 }
    }

    fn at(path: String, depth: usize) -> Self {
        Self { label: format!("{path}:"), path, depth }
    }

    fn member(&self, key: &str) -> Self {
        let plain =
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        let mut path = self.path.clone();
        if plain {
            path.push_str(if path.is_empty() { "" } else { "." });
            write_name(key, &mut path);
        } else {
            path.push('[');
            write_string(key, &mut path);
            path.push(']');
        }
        Self::at(path, self.depth + 1)
    }

    /// A small element stands in the list of its array, one that is taken apart on lines of its own.
    fn element(&self, index: usize, is_small: bool) -> Self {
        let place = Self::at(format!("{}[{index}]", self.path), self.depth + 1);
        if is_small { Self { label: ELEMENT.to_owned(), ..place } } else { place }
    }

    fn name(&self) -> String {
        if self.path.is_empty() { "items".to_owned() } else { self.path.clone() }
    }
}

impl Builder<'_> {
    /// Takes a value apart.
    pub fn value(&mut self, value: &Json, place: &ValuePlace) {
        let compact = value.compact();
        let is_value = place.depth > 0;
        if self.is_small(&compact) || place.depth >= DEPTH_MAX {
            return self.small_value(value, place);
        }
        match value {
            Json::Object(members) if !members.is_empty() => {
                self.group(GroupHead::Lines(String::new()), Tail::None, is_value, |builder| {
                    members.iter().for_each(|(key, value)| builder.value(value, &place.member(key)));
                });
            }
            Json::Array(elements) if !elements.is_empty() => self.array(elements, &compact, place),
            Json::String(text) => match as_json(text).filter(Json::is_container) {
                Some(inner) => self.value(&inner, &ValuePlace::at(place.path.clone(), place.depth + 1)),
                None => self.group(GroupHead::Lines(format!("## {}\n", place.name())), Tail::Blank, true, |builder| {
                    builder.markdown(text);
                }),
            },
            _ => self.small_value(value, place),
        }
    }

    /// A value in one node: in one line behind its label, or taken apart below it.
    fn small_value(&mut self, value: &Json, place: &ValuePlace) {
        let mut line = place.label.clone();
        line.push_str(if line.is_empty() { "" } else { " " });
        write_value(value, &mut line);
        let wrapped = match place.label.as_str() {
            ELEMENT => Json::Array(vec![value.clone()]),
            _ => Json::Object(vec![(place.path.clone(), value.clone())]),
        };
        let compact = wrapped.compact();
        let subject = Subject::new(&compact, classify(compact.as_bytes()));
        let nested = self.cut.formats.iter().filter(|format| format.id == "pipeline_deep_mckp");
        let nested = nested.filter_map(|format| prove(format, &subject, self.cut.params));
        let forms = std::iter::once(line).chain(nested).map(|form| form + "\n").collect();
        self.node(forms, leaves(value), 1);
    }

    fn array(&mut self, elements: &[Json], compact: &str, place: &ValuePlace) {
        let small: Vec<bool> = elements.iter().map(|element| self.is_small(&element.compact())).collect();
        let table = if small.iter().all(|small| *small) { self.table(elements, compact) } else { None };
        let is_value = place.depth > 0;
        let slice = |columns| GroupHead::Slice { name: place.name(), total: elements.len(), columns };
        match table {
            Some((columns, rows)) => self.group(slice(columns), Tail::Blank, is_value, |builder| {
                rows.into_iter().zip(elements).for_each(|(row, element)| builder.node(vec![row], leaves(element), 1));
            }),
            None => self.group(slice(String::new()), Tail::Blank, is_value, |builder| {
                for ((index, element), small) in elements.iter().enumerate().zip(small) {
                    builder.value(element, &place.element(index, small));
                }
            }),
        }
    }

    /// The head and the rows of the table that takes fewest tokens, if the elements can be written as one.
    fn table(&mut self, elements: &[Json], compact: &str) -> Option<(String, Vec<String>)> {
        let subject = Subject::new(compact, BodyShape::ArrayOfObjects);
        let tables = self.cut.formats.iter().filter_map(|format| {
            let head_lines = match format.id {
                "csv" => 1,
                "markdown_table" => 2,
                _ => return None,
            };
            Some((head_lines, prove(format, &subject, self.cut.params)? + "\n"))
        });
        let tables: Vec<_> = tables.collect();
        let (head_lines, text) = tables.into_iter().min_by_key(|(_, text)| (self.count)(text))?;
        let mut records = records(&text, head_lines == 1).map(str::to_owned);
        let head = records.by_ref().take(head_lines).collect();
        let rows: Vec<String> = records.collect();
        (rows.len() == elements.len()).then_some((head, rows))
    }
}

/// The scalars in a value, where a text counts as often as it has lines, or as the JSON that it is.
fn leaves(value: &Json) -> u64 {
    let below = match value {
        Json::Array(elements) => elements.iter().map(leaves).sum(),
        Json::Object(members) => members.iter().map(|(_, value)| leaves(value)).sum(),
        Json::String(text) => match as_json(text).filter(Json::is_container) {
            Some(inner) => leaves(&inner),
            None => leaf_lines(text),
        },
        _ => 1,
    };
    below.max(1)
}

/// The lines of a table, where line feeds in quotes belong to the field that they are in.
fn records(text: &str, quotes: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut inside = false;
        let end = rest.bytes().position(|byte| {
            inside ^= quotes && byte == b'"';
            byte == b'\n' && !inside
        })?;
        let (record, behind) = rest.split_at(end + 1);
        rest = behind;
        Some(record)
    })
}
