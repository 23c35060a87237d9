//! JSON Schemas, as definitions of tools have them: what may stand in one, and where its references lead. Every keyword of
//! drafts 6 to 2020-12 that says something about a value is checked; `format` and `content…` are notes, as the newer drafts
//! have it.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::{Map, Value};

use crate::whatif::arg_check::walk::{SchemaFault, SchemaWalk};

/// Drafts in which a reference stands for everything beside it.
const LONE_REFERENCES: [&str; 3] = ["draft-04", "draft-06", "draft-07"];

/// A schema that can be checked.
#[derive(Debug)]
pub struct Schema {
    pub(super) root: Value,
    /// Where named parts stand: `$id`, and anchors with `#` before them.
    named: BTreeMap<String, String>,
    /// None for one that cannot be matched here.
    patterns: BTreeMap<String, Option<Regex>>,
    /// Whether a reference stands for everything beside it.
    pub(super) lone_references: bool,
}

/// Why a schema cannot be checked.
#[derive(Debug, PartialEq, Eq)]
pub enum SchemaRefusal {
    /// It needs another document.
    Remote,
    /// It is no JSON Schema; why.
    Broken(String),
}

impl Schema {
    /// Looks a schema through. An error if it is none, or refers to another document.
    pub fn new(root: &Value) -> Result<Self, SchemaRefusal> {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let lone_references = LONE_REFERENCES.iter().any(|lone| draft.contains(lone));
        let mut schema =
            Self { root: root.clone(), named: BTreeMap::new(), patterns: BTreeMap::new(), lone_references };
        let mut parts = SchemaParts::default();
        parts.add(root, String::new())?;
        schema.follow(root, &mut parts)?;
        for (_, part) in &parts.all {
            part.iter().try_for_each(|(key, value)| schema.look_at(key, value))?;
        }
        Ok(schema)
    }

    /// Names the parts, and adds those that only references lead to: these may stand anywhere in the document.
    fn follow<'v>(&mut self, root: &'v Value, parts: &mut SchemaParts<'v>) -> Result<(), SchemaRefusal> {
        let mut followed = 0;
        while followed < parts.all.len() {
            let new = &parts.all[followed..];
            new.iter().for_each(|(place, part)| self.name(place, part));
            let references = new.iter().flat_map(|(_, part)| REFERENCES.iter().filter_map(|key| part.get(*key)));
            let places: Vec<String> = references.filter_map(|reference| self.place(reference).ok()).collect();
            followed = parts.all.len();
            for place in places {
                if let Some(part) = root.pointer(&place) {
                    parts.add(part, place)?;
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, place: &str, part: &Map<String, Value>) {
        for (key, mark) in [("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")] {
            if let Some(name) = part.get(key).and_then(Value::as_str) {
                self.named.insert(format!("{mark}{}", name.trim_end_matches('#')), place.to_owned());
            }
        }
    }

    /// Holds a keyword against what may stand there, and makes its patterns.
    fn look_at(&mut self, key: &str, value: &Value) -> Result<(), SchemaRefusal> {
        let is_count = |value: &Value| value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0);
        let are_names = |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
        let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let fits = match key {
            key if REFERENCES.contains(&key) => return self.reach(value).map(drop),
            "pattern" => value.as_str().is_some_and(|pattern| self.read_pattern(pattern)),
            "patternProperties" => {
                value.as_object().is_some_and(|named| named.keys().all(|pattern| self.read_pattern(pattern)))
            }
            "type" => is_type(value) || value.as_array().is_some_and(|types| types.iter().all(is_type)),
            "required" => are_names(value) || value.is_boolean(),
            "enum" => value.is_array(),
            "dependentRequired" => value.as_object().is_some_and(|lists| lists.values().all(are_names)),
            "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" | "maxContains"
            | "minContains" => is_count(value),
            "maximum" | "minimum" => value.is_number(),
            "exclusiveMaximum" | "exclusiveMinimum" => value.is_number() || value.is_boolean(),
            "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
            "uniqueItems" => value.is_boolean(),
            _ => true,
        };
        named(key, fits)
    }

    fn read_pattern(&mut self, text: &str) -> bool {
        self.patterns.entry(text.to_owned()).or_insert_with(|| compiled(text));
        true
    }

    /// Patterns that cannot be matched here: whatever they are held against fits.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().filter(|(_, compiled)| compiled.is_none()).map(|(pattern, _)| pattern.as_str())
    }

    /// Whether a text has a pattern; none where that cannot be told.
    pub(super) fn matches(&self, pattern: &str, text: &str) -> Option<bool> {
        let pattern = self.patterns.get(pattern)?.as_ref()?;
        Some(pattern.is_match(text))
    }

    /// The part that a reference leads to.
    pub(super) fn reach(&self, reference: &Value) -> Result<&Value, SchemaRefusal> {
        self.root.pointer(&self.place(reference)?).ok_or_else(|| leads_nowhere(reference))
    }

    /// Where a reference leads to, as a pointer.
    fn place(&self, value: &Value) -> Result<String, SchemaRefusal> {
        let reference = value.as_str().ok_or_else(|| SchemaRefusal::Broken("a reference is no text".to_owned()))?;
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match document {
            "" => "",
            named => self.named.get(named).ok_or(SchemaRefusal::Remote)?,
        };
        Ok(match fragment {
            "" => base.to_owned(),
            pointer if pointer.starts_with('/') => format!("{base}{}", unescaped(pointer)),
            anchor => self.named.get(&format!("#{anchor}")).ok_or_else(|| leads_nowhere(value))?.clone(),
        })
    }

    /// What does not fit, in the order of the schema's keywords.
    pub fn faults<'v>(&'v self, value: &'v Value) -> Vec<SchemaFault<'v>> {
        let mut walk = SchemaWalk::over(self);
        walk.hold(&self.root, value);
        walk.faults
    }
}

fn leads_nowhere(reference: &Value) -> SchemaRefusal {
    SchemaRefusal::Broken(format!("{} leads nowhere", reference.as_str().unwrap_or_default()))
}

/// Keywords that lead to another part.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

fn named(key: &str, fits: bool) -> Result<(), SchemaRefusal> {
    if fits { Ok(()) } else { Err(SchemaRefusal::Broken(format!("{key} is not what the keyword takes"))) }
}

/// A pointer as it stands in a reference: percent signs name bytes.
fn unescaped(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer;
    while let Some(at) = rest.find('%') {
        let code = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(code.unwrap_or(b'%'));
        rest = &rest[at + if code.is_some() { 3 } else { 1 }..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Keywords with schemas by name.
const BY_NAME: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords with one schema.
const SINGLE: [&str; 11] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Every schema in a schema, each once, with its place.
#[derive(Default)]
struct SchemaParts<'v> {
    all: Vec<(String, &'v Map<String, Value>)>,
    places: BTreeSet<String>,
}

impl<'v> SchemaParts<'v> {
    fn add(&mut self, schema: &'v Value, place: String) -> Result<(), SchemaRefusal> {
        let keywords = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(keywords) => keywords,
            _ => return Err(SchemaRefusal::Broken("a schema is an object, true or false".to_owned())),
        };
        if !self.places.insert(place.clone()) {
            return Ok(());
        }
        self.all.push((place.clone(), keywords));
        for (key, value) in keywords {
            let at = format!("{place}/{key}");
            match (key.as_str(), value) {
                ("items" | "allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                    let mut inner = list.iter().enumerate();
                    inner.try_for_each(|(index, inner)| self.add(inner, format!("{at}/{index}")))?;
                }
                (key, Value::Object(named)) if BY_NAME.contains(&key) => {
                    let mut inner = named.iter().filter(|(_, inner)| key != "dependencies" || !inner.is_array());
                    inner.try_for_each(|(name, inner)| self.add(inner, format!("{at}/{}", escaped(name))))?;
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", _) => return named(key, false),
                (key, _) if BY_NAME.contains(&key) => return named(key, false),
                (key, inner) if SINGLE.contains(&key) => self.add(inner, at)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A name as a step of a pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A pattern in JavaScript's dialect, compiled for the engine that is here: `\d` and its kin are ASCII there, and brackets inside a class stand for themselves. None if it
/// cannot be matched here: it looks ahead or behind, or names an earlier group.
fn compiled(pattern: &str) -> Option<Regex> {
    let mut text = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => text.push_str(&escape(chars.next(), in_class)),
            '[' if !in_class => {
                in_class = true;
                text.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    text.push('^');
                }
            }
            ']' if in_class => {
                in_class = false;
                text.push(']');
            }
            '[' | '&' | '~' if in_class => text.extend(['\\', char]),
            _ => text.push(char),
        }
    }
    Regex::new(&text).ok()
}

fn escape(char: Option<char>, in_class: bool) -> String {
    let class = |inside: &str| if in_class { inside.to_owned() } else { format!("[{inside}]") };
    match char {
        None => "\\".to_owned(),
        Some('d') => class("0-9"),
        Some('w') => class("0-9A-Za-z_"),
        Some('D') => "[^0-9]".to_owned(),
        Some('W') => "[^0-9A-Za-z_]".to_owned(),
        Some('/') => "/".to_owned(),
        Some('b') if in_class => "\\x08".to_owned(),
        Some(char) => format!("\\{char}"),
    }
}
