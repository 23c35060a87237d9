//! JSON Schemas, as definitions of tools have them: a schema is walked beside the value that has to fit it.
//!
//! Every keyword of drafts 6 to 2020-12 that says something about a value is checked. `format` and the `content`
//! keywords are notes, as the newer drafts have it. Nothing is ever fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

use regex::Regex;
use serde_json::{Map, Number, Value};

use crate::whatif::arg_check::pattern;

/// Schemas inside each other, counting references that were followed.
const DEPTH_MAX: usize = 200;
/// Schemas that one value is held against: a ladder of alternatives doubles them with each rung.
const STEPS_MAX: usize = 1_000_000;
/// Drafts in which a reference stands for everything beside it.
const LONE_REFERENCES: [&str; 3] = ["draft-04", "draft-06", "draft-07"];

/// A schema that can be checked.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    /// Where named parts stand: `$id`, and anchors with `#` before them.
    named: BTreeMap<String, String>,
    /// None for one that cannot be matched here.
    patterns: BTreeMap<String, Option<Regex>>,
    lone_references: bool,
}

/// Why a schema cannot be checked.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It needs another document.
    Remote,
    /// It is no JSON Schema; why.
    Broken(String),
}

/// What does not fit.
#[derive(Clone, Debug)]
pub struct Fault<'v> {
    /// JSON pointer to it; empty for the whole.
    pub pointer: String,
    /// Keyword that it does not fit.
    pub keyword: &'v str,
    /// What the keyword asks for.
    pub wanted: &'v Value,
    /// The value that does not fit.
    pub value: &'v Value,
}

impl Schema {
    /// Looks a schema through.
    ///
    /// # Errors
    /// If it is none, or refers to another document.
    pub fn new(root: &Value) -> Result<Self, Refusal> {
        let mut parts = Vec::new();
        subschemas(root, String::new(), &mut parts)?;
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let lone_references = LONE_REFERENCES.iter().any(|lone| draft.contains(lone));
        let mut schema =
            Self { root: root.clone(), named: BTreeMap::new(), patterns: BTreeMap::new(), lone_references };
        for (place, part) in &parts {
            for (key, mark) in [("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")] {
                if let Some(name) = part.get(key).and_then(Value::as_str) {
                    schema.named.insert(format!("{mark}{}", name.trim_end_matches('#')), place.clone());
                }
            }
        }
        for (_, part) in &parts {
            part.iter().try_for_each(|(key, value)| schema.look_at(key, value))?;
        }
        Ok(schema)
    }

    /// Holds a keyword against what may stand there, and makes its patterns.
    fn look_at(&mut self, key: &str, value: &Value) -> Result<(), Refusal> {
        let is_count = |value: &Value| value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0);
        let are_names = |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
        let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let fits = match key {
            "$ref" | "$dynamicRef" | "$recursiveRef" => return self.reach(value).map(drop),
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
        self.patterns.entry(text.to_owned()).or_insert_with(|| pattern::compiled(text));
        true
    }

    /// Patterns that cannot be matched here: whatever they are held against fits.
    pub fn unmatched(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().filter(|(_, compiled)| compiled.is_none()).map(|(pattern, _)| pattern.as_str())
    }

    /// Whether a text has a pattern; none where that cannot be told.
    fn matches(&self, pattern: &str, text: &str) -> Option<bool> {
        let pattern = self.patterns.get(pattern)?.as_ref()?;
        Some(pattern.is_match(text))
    }

    /// The part that a reference leads to.
    fn reach(&self, reference: &Value) -> Result<&Value, Refusal> {
        let reference = reference.as_str().ok_or_else(|| Refusal::Broken("a reference is no text".to_owned()))?;
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = match document {
            "" => "",
            named => self.named.get(named).ok_or(Refusal::Remote)?,
        };
        let nowhere = || Refusal::Broken(format!("{reference} leads nowhere"));
        let place = match fragment {
            "" => base.to_owned(),
            pointer if pointer.starts_with('/') => format!("{base}{}", unescaped(pointer)),
            anchor => self.named.get(&format!("#{anchor}")).ok_or_else(nowhere)?.clone(),
        };
        self.root.pointer(&place).ok_or_else(nowhere)
    }

    /// Whether a value fits.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.faults(value).is_empty()
    }

    /// What does not fit, in the order of the schema's keywords.
    pub fn faults<'v>(&'v self, value: &'v Value) -> Vec<Fault<'v>> {
        let mut walk = Walk { schema: self, faults: Vec::new(), pointer: String::new(), open: Vec::new(), steps: 0 };
        walk.hold(&self.root, value);
        walk.faults
    }
}

/// Names of types.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

fn named(key: &str, fits: bool) -> Result<(), Refusal> {
    if fits { Ok(()) } else { Err(Refusal::Broken(format!("{key} is not what the keyword takes"))) }
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

/// Every schema in a schema, with its place.
fn subschemas<'v>(
    schema: &'v Value,
    place: String,
    parts: &mut Vec<(String, &'v Map<String, Value>)>,
) -> Result<(), Refusal> {
    let keywords = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(keywords) => keywords,
        _ => return Err(Refusal::Broken("a schema is an object, true or false".to_owned())),
    };
    parts.push((place.clone(), keywords));
    for (key, value) in keywords {
        let at = format!("{place}/{key}");
        match (key.as_str(), value) {
            ("items", Value::Array(list)) | ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                let mut inner = list.iter().enumerate();
                inner.try_for_each(|(index, inner)| subschemas(inner, format!("{at}/{index}"), parts))?;
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", _) => named(key, false)?,
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
                Value::Object(named),
            ) => {
                let mut inner = named.iter().filter(|(_, inner)| key != "dependencies" || !inner.is_array());
                inner.try_for_each(|(name, inner)| subschemas(inner, format!("{at}/{}", escaped(name)), parts))?;
            }
            ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies", _) => {
                named(key, false)?
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                inner,
            ) => subschemas(inner, at, parts)?,
            _ => {}
        }
    }
    Ok(())
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// What of a value some keywords looked at: `unevaluated…` is about the rest.
#[derive(Default)]
struct Seen<'v> {
    names: BTreeSet<&'v str>,
    items: BTreeSet<usize>,
}

impl Seen<'_> {
    fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.items.extend(other.items);
    }
}

struct Walk<'v> {
    schema: &'v Schema,
    faults: Vec<Fault<'v>>,
    pointer: String,
    /// Schemas that are being held against values, outermost first: a reference back to one of them is a loop.
    open: Vec<(*const Value, *const Value)>,
    steps: usize,
}

impl<'v> Walk<'v> {
    fn fault(&mut self, keyword: &'v str, wanted: &'v Value, value: &'v Value) {
        self.faults.push(Fault { pointer: self.pointer.clone(), keyword, wanted, value });
    }

    /// Holds a value against a schema.
    fn hold(&mut self, schema: &'v Value, value: &'v Value) -> Seen<'v> {
        let mut seen = Seen::default();
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => {
                self.fault("falseSchema", schema, value);
                return seen;
            }
            _ => return seen,
        };
        let pair = (ptr::from_ref(schema), ptr::from_ref(value));
        self.steps += 1;
        if self.open.contains(&pair) {
            return seen;
        }
        if self.open.len() >= DEPTH_MAX || self.steps > STEPS_MAX {
            self.fault("$ref", schema, value);
            return seen;
        }
        self.open.push(pair);
        match keywords.get("$ref").filter(|_| self.schema.lone_references) {
            Some(reference) => self.follow(reference, value, &mut seen),
            None => self.keywords(keywords, value, &mut seen),
        }
        self.open.pop();
        seen
    }

    fn keywords(&mut self, schema: &'v Map<String, Value>, value: &'v Value, seen: &mut Seen<'v>) {
        for (key, wanted) in schema {
            if !plain(key, wanted, schema, value, &self.schema.patterns) {
                self.fault(key, wanted, value);
            }
            self.applied(key, wanted, schema, value, seen);
            match value {
                Value::Object(members) => self.of_object(key, wanted, schema, (value, members), seen),
                Value::Array(items) => self.of_array(key, wanted, schema, (value, items), seen),
                _ => {}
            }
        }
        match value {
            Value::Object(members) => self.other_members(schema, (value, members), seen),
            Value::Array(items) => self.other_items(schema, (value, items), seen),
            _ => {}
        }
    }

    fn follow(&mut self, reference: &'v Value, value: &'v Value, seen: &mut Seen<'v>) {
        let schema = self.schema;
        if let Ok(part) = schema.reach(reference) {
            let inner = self.hold(part, value);
            seen.add(inner);
        }
    }

    /// What a schema looked at in a value that fits it; none if it does not fit.
    fn fits(&mut self, schema: &'v Value, value: &'v Value) -> Option<Seen<'v>> {
        let before = self.faults.len();
        let seen = self.hold(schema, value);
        let fits = self.faults.len() == before;
        self.faults.truncate(before);
        fits.then_some(seen)
    }

    /// Keywords that hold other schemas against the same value.
    fn applied(
        &mut self,
        key: &'v str,
        wanted: &'v Value,
        schema: &'v Map<String, Value>,
        value: &'v Value,
        seen: &mut Seen<'v>,
    ) {
        let list = || wanted.as_array().into_iter().flatten();
        match key {
            "$ref" | "$dynamicRef" | "$recursiveRef" => self.follow(wanted, value, seen),
            "allOf" => list().for_each(|inner| seen.add(self.hold(inner, value))),
            "anyOf" | "oneOf" => {
                let fitting: Vec<_> = list().filter_map(|inner| self.fits(inner, value)).collect();
                if fitting.is_empty() || (key == "oneOf" && fitting.len() > 1) {
                    self.fault(key, wanted, value);
                }
                fitting.into_iter().for_each(|inner| seen.add(inner));
            }
            "not" if self.fits(wanted, value).is_some() => self.fault(key, wanted, value),
            "if" => {
                let condition = self.fits(wanted, value);
                let next = schema.get(if condition.is_some() { "then" } else { "else" });
                condition.into_iter().for_each(|inner| seen.add(inner));
                next.into_iter().for_each(|next| seen.add(self.hold(next, value)));
            }
            _ => {}
        }
    }

    fn of_object(
        &mut self,
        key: &'v str,
        wanted: &'v Value,
        schema: &'v Map<String, Value>,
        (value, members): (&'v Value, &'v Map<String, Value>),
        seen: &mut Seen<'v>,
    ) {
        let (rules, named) = (self.schema, || wanted.as_object().into_iter().flatten());
        match key {
            "required" => {
                let names = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                names.filter(|name| !members.contains_key(*name)).for_each(|_| self.fault(key, wanted, value));
            }
            "properties" => {
                for (name, inner) in named() {
                    if let Some((name, member)) = members.get_key_value(name) {
                        self.inside(inner, name, member);
                        seen.names.insert(name);
                    }
                }
            }
            "patternProperties" => {
                for (pattern, inner) in named() {
                    for (name, member) in members.iter().filter(|(name, _)| rules.matches(pattern, name) == Some(true))
                    {
                        self.inside(inner, name, member);
                        seen.names.insert(name);
                    }
                }
            }
            "additionalProperties" => {
                let known = |name: &String| {
                    let in_list = schema.get("properties").is_some_and(|listed| listed.get(name).is_some());
                    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
                    in_list
                        || patterns
                            .map(|(pattern, _)| pattern)
                            .any(|pattern| rules.matches(pattern, name) != Some(false))
                };
                let others: Vec<_> = members.iter().filter(|(name, _)| !known(name)).collect();
                if *wanted == Value::Bool(false) {
                    if !others.is_empty() {
                        self.fault(key, wanted, value);
                    }
                } else {
                    others.iter().for_each(|(name, member)| self.inside(wanted, name, member));
                }
                seen.names.extend(others.iter().map(|(name, _)| name.as_str()));
            }
            "propertyNames" => {
                let unfit = members.keys().filter(|name| !self.name_fits(wanted, name)).count();
                let keyword = if wanted.is_boolean() { "falseSchema" } else { key };
                (0..unfit).for_each(|_| self.fault(keyword, wanted, value));
            }
            "dependentRequired" | "dependencies" | "dependentSchemas" => {
                for (_, inner) in named().filter(|(name, _)| members.contains_key(*name)) {
                    match inner {
                        Value::Array(names) => {
                            let missing = names.iter().filter_map(Value::as_str);
                            let missing = missing.filter(|name| !members.contains_key(*name));
                            missing.for_each(|_| self.fault("required", inner, value));
                        }
                        schema => seen.add(self.hold(schema, value)),
                    }
                }
            }
            _ => {}
        }
    }

    fn of_array(
        &mut self,
        key: &'v str,
        wanted: &'v Value,
        schema: &'v Map<String, Value>,
        (value, items): (&'v Value, &'v [Value]),
        seen: &mut Seen<'v>,
    ) {
        let first = ["prefixItems", "items"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array));
        let (positions, first) = (items.iter().enumerate(), first.map_or(0, Vec::len));
        let mut inside = |walk: &mut Self, inner: &'v Value, (index, item): (usize, &'v Value)| {
            walk.inside(inner, &index.to_string(), item);
            seen.items.insert(index);
        };
        match (key, wanted) {
            ("prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter().zip(positions).for_each(|(inner, item)| inside(self, inner, item));
            }
            ("additionalItems", Value::Bool(false)) if schema.get("items").is_some_and(Value::is_array) => {
                if items.len() > first {
                    self.fault(key, wanted, value);
                }
            }
            ("additionalItems", inner) if schema.get("items").is_some_and(Value::is_array) => {
                positions.skip(first).for_each(|item| inside(self, inner, item));
            }
            ("items", inner) => positions.skip(first).for_each(|item| inside(self, inner, item)),
            ("contains", inner) => {
                let fitting: Vec<usize> =
                    positions.filter(|(_, item)| self.fits(inner, item).is_some()).map(|(index, _)| index).collect();
                let bound = |key| schema.get(key).and_then(Value::as_f64);
                if (fitting.len() as f64) < bound("minContains").unwrap_or(1.0) {
                    self.fault(key, wanted, value);
                }
                if let Some((key, wanted)) = schema.get_key_value("maxContains")
                    && bound(key).is_some_and(|most| fitting.len() as f64 > most)
                {
                    self.fault("contains", wanted, value);
                }
                seen.items.extend(fitting);
            }
            _ => {}
        }
    }

    /// Members that nothing looked at.
    fn other_members(
        &mut self,
        schema: &'v Map<String, Value>,
        (value, members): (&'v Value, &'v Map<String, Value>),
        seen: &mut Seen<'v>,
    ) {
        let Some((key, wanted)) = schema.get_key_value("unevaluatedProperties") else { return };
        let mut others = members.iter().filter(|(name, _)| !seen.names.contains(name.as_str()));
        if others.any(|(_, member)| self.fits(wanted, member).is_none()) {
            self.fault(key, wanted, value);
        }
        seen.names.extend(members.keys().map(String::as_str));
    }

    /// Items that nothing looked at.
    fn other_items(
        &mut self,
        schema: &'v Map<String, Value>,
        (value, items): (&'v Value, &'v [Value]),
        seen: &mut Seen<'v>,
    ) {
        let Some((key, wanted)) = schema.get_key_value("unevaluatedItems") else { return };
        let mut others = items.iter().enumerate().filter(|(index, _)| !seen.items.contains(index));
        if others.any(|(_, item)| self.fits(wanted, item).is_none()) {
            self.fault(key, wanted, value);
        }
        seen.items.extend(0..items.len());
    }

    /// Holds a part of a value against a schema.
    fn inside(&mut self, schema: &'v Value, step: &str, part: &'v Value) {
        let before = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&escaped(step));
        self.hold(schema, part);
        self.pointer.truncate(before);
    }

    /// Whether a name fits a schema. It is no value of the arguments, so it is walked by itself.
    fn name_fits(&self, schema: &Value, name: &str) -> bool {
        let name = Value::String(name.to_owned());
        let mut walk = Walk {
            schema: self.schema,
            faults: Vec::new(),
            pointer: String::new(),
            open: Vec::new(),
            steps: self.steps,
        };
        walk.hold(schema, &name);
        walk.faults.is_empty()
    }
}

/// Whether a value fits a keyword that looks at nothing inside it.
fn plain(
    key: &str,
    wanted: &Value,
    schema: &Map<String, Value>,
    value: &Value,
    patterns: &BTreeMap<String, Option<Regex>>,
) -> bool {
    let most = |size: usize| wanted.as_f64().is_none_or(|most| size as f64 <= most);
    let least = |size: usize| wanted.as_f64().is_none_or(|least| size as f64 >= least);
    let excluded = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    match (key, value) {
        ("type", _) => match wanted {
            Value::Array(types) => types.iter().any(|name| is_of_type(value, name)),
            name => is_of_type(value, name),
        },
        ("enum", _) => wanted.as_array().is_none_or(|values| values.iter().any(|one| same(one, value))),
        ("const", _) => same(wanted, value),
        ("maxLength", Value::String(text)) => most(text.chars().count()),
        ("minLength", Value::String(text)) => least(text.chars().count()),
        ("pattern", Value::String(text)) => {
            let pattern = wanted.as_str().and_then(|pattern| patterns.get(pattern)?.as_ref());
            pattern.is_none_or(|pattern| pattern.is_match(text))
        }
        ("maxItems", Value::Array(items)) => most(items.len()),
        ("minItems", Value::Array(items)) => least(items.len()),
        ("uniqueItems", Value::Array(items)) => {
            let repeats = |(at, item)| items[..at].iter().any(|earlier| same(earlier, item));
            *wanted != Value::Bool(true) || !items.iter().enumerate().any(repeats)
        }
        ("maxProperties", Value::Object(members)) => most(members.len()),
        ("minProperties", Value::Object(members)) => least(members.len()),
        ("maximum", Value::Number(number)) => ordered(number, wanted)
            .is_none_or(|order| if excluded("exclusiveMaximum") { order.is_lt() } else { order.is_le() }),
        ("minimum", Value::Number(number)) => ordered(number, wanted)
            .is_none_or(|order| if excluded("exclusiveMinimum") { order.is_gt() } else { order.is_ge() }),
        ("exclusiveMaximum", Value::Number(number)) => ordered(number, wanted).is_none_or(std::cmp::Ordering::is_lt),
        ("exclusiveMinimum", Value::Number(number)) => ordered(number, wanted).is_none_or(std::cmp::Ordering::is_gt),
        ("multipleOf", Value::Number(number)) => wanted.as_number().is_none_or(|step| is_multiple(number, step)),
        _ => true,
    }
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_number().is_some_and(|number| !number.is_f64() || number.as_f64().is_some_and(is_whole)),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        _ => false,
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

/// Whether two values are the same: numbers by what they are worth, members in any order.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(_)) => ordered(one, other).is_some_and(std::cmp::Ordering::is_eq),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// How a number compares with another; none where that is no number.
fn ordered(number: &Number, other: &Value) -> Option<std::cmp::Ordering> {
    let other = other.as_number()?;
    match (number.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => number.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Whether a number is a whole multiple of another: in decimals, as both are written.
fn is_multiple(number: &Number, step: &Number) -> bool {
    let (Some((number, places)), Some((step, step_places))) = (decimal(number), decimal(step)) else {
        let ratio = number.as_f64().zip(step.as_f64()).map(|(number, step)| number / step);
        return ratio.is_some_and(|ratio| is_whole(ratio));
    };
    let scaled = |digits: i128, by: u32| 10_i128.checked_pow(by).and_then(|power| digits.checked_mul(power));
    let most = places.max(step_places);
    match (scaled(number, most - places), scaled(step, most - step_places)) {
        (Some(number), Some(step)) if step != 0 => number % step == 0,
        _ => false,
    }
}

/// The digits of a number, and how many of them stand after the point.
fn decimal(number: &Number) -> Option<(i128, u32)> {
    let text = number.to_string();
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let places = i32::try_from(part.len()).ok()? - exponent.parse::<i32>().ok()?;
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    match u32::try_from(places) {
        Ok(places) => Some((digits, places)),
        Err(_) => Some((digits.checked_mul(10_i128.checked_pow(places.unsigned_abs())?)?, 0)),
    }
}
