//! A schema walked beside the value that has to fit it.

use std::collections::BTreeSet;
use std::ptr;

use serde_json::{Map, Number, Value};

use crate::whatif::arg_check::schema::{Schema, escaped};

/// Schemas inside each other, counting references that were followed.
const DEPTH_MAX: usize = 200;
/// Schemas that one value is held against: a ladder of alternatives doubles them with each rung.
const STEPS_MAX: usize = 1_000_000;

/// What does not fit.
#[derive(Clone, Debug)]
pub struct SchemaFault<'v> {
    /// JSON pointer to it; empty for the whole.
    pub pointer: String,
    /// Keyword that it does not fit.
    pub keyword: &'v str,
    /// What the keyword asks for.
    pub wanted: &'v Value,
    /// The value that does not fit.
    pub value: &'v Value,
}

/// What of a value some keywords looked at: `unevaluated…` is about the rest.
#[derive(Default)]
pub(super) struct SeenParts<'v> {
    names: BTreeSet<&'v str>,
    items: BTreeSet<usize>,
}

impl SeenParts<'_> {
    fn add(&mut self, other: Self) {
        self.names.extend(other.names);
        self.items.extend(other.items);
    }
}

/// A keyword of a schema, beside the value that has to fit it.
#[derive(Clone, Copy)]
struct KeywordCheck<'v> {
    key: &'v str,
    /// What the keyword asks for.
    wanted: &'v Value,
    /// The keywords beside it.
    schema: &'v Map<String, Value>,
    value: &'v Value,
}

/// A schema beside the value that has to fit it.
pub(super) struct SchemaWalk<'v> {
    schema: &'v Schema,
    /// What did not fit so far.
    pub(super) faults: Vec<SchemaFault<'v>>,
    pointer: String,
    /// Schemas that are being held against values, outermost first: a reference back to one of them is a loop.
    open: Vec<(*const Value, *const Value)>,
    pub(super) steps: usize,
}

impl<'v> SchemaWalk<'v> {
    /// A walk that has not begun.
    pub(super) fn over(schema: &'v Schema) -> Self {
        Self::going_on(schema, 0)
    }

    /// One of several that share their steps.
    pub(super) fn going_on(schema: &'v Schema, steps: usize) -> Self {
        Self { schema, faults: Vec::new(), pointer: String::new(), open: Vec::new(), steps }
    }

    fn fault(&mut self, keyword: &'v str, wanted: &'v Value, value: &'v Value) {
        self.faults.push(SchemaFault { pointer: self.pointer.clone(), keyword, wanted, value });
    }

    /// Holds a value against a schema.
    pub(super) fn hold(&mut self, schema: &'v Value, value: &'v Value) -> SeenParts<'v> {
        let mut seen = SeenParts::default();
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

    fn keywords(&mut self, schema: &'v Map<String, Value>, value: &'v Value, seen: &mut SeenParts<'v>) {
        for (key, wanted) in schema {
            if !keyword_fits(key, wanted, schema, value, self.schema) {
                self.fault(key, wanted, value);
            }
            let at = KeywordCheck { key, wanted, schema, value };
            self.applied(at, seen);
            match value {
                Value::Object(members) => self.of_object(at, members, seen),
                Value::Array(items) => self.of_array(at, items, seen),
                _ => {}
            }
        }
        match value {
            Value::Object(members) => self.other_members(schema, (value, members), seen),
            Value::Array(items) => self.other_items(schema, (value, items), seen),
            _ => {}
        }
    }

    fn follow(&mut self, reference: &'v Value, value: &'v Value, seen: &mut SeenParts<'v>) {
        let schema = self.schema;
        if let Ok(part) = schema.reach(reference) {
            let inner = self.hold(part, value);
            seen.add(inner);
        }
    }

    /// What a schema looked at in a value that fits it; none if it does not fit.
    fn fits(&mut self, schema: &'v Value, value: &'v Value) -> Option<SeenParts<'v>> {
        let before = self.faults.len();
        let seen = self.hold(schema, value);
        let fits = self.faults.len() == before;
        self.faults.truncate(before);
        fits.then_some(seen)
    }

    /// Keywords that hold other schemas against the same value.
    fn applied(&mut self, KeywordCheck { key, wanted, schema, value }: KeywordCheck<'v>, seen: &mut SeenParts<'v>) {
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

    fn of_object(&mut self, at: KeywordCheck<'v>, members: &'v Map<String, Value>, seen: &mut SeenParts<'v>) {
        let KeywordCheck { key, wanted, value, .. } = at;
        let (rules, named) = (self.schema, || wanted.as_object().into_iter().flatten());
        match key {
            "required" => self.missing(at, members),
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
            "additionalProperties" => self.other_named(at, members, seen),
            "propertyNames" => {
                let unfit = members.keys().filter(|name| !self.name_fits(wanted, name)).count();
                let keyword = if wanted.is_boolean() { "falseSchema" } else { key };
                (0..unfit).for_each(|_| self.fault(keyword, wanted, value));
            }
            "dependentRequired" | "dependencies" | "dependentSchemas" => {
                for (_, inner) in named().filter(|(name, _)| members.contains_key(*name)) {
                    match inner {
                        Value::Array(_) => self.missing(KeywordCheck { key: "required", wanted: inner, ..at }, members),
                        schema => seen.add(self.hold(schema, value)),
                    }
                }
            }
            _ => {}
        }
    }

    /// Names of a list that are not there.
    fn missing(&mut self, KeywordCheck { key, wanted, value, .. }: KeywordCheck<'v>, members: &Map<String, Value>) {
        let names = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| !members.contains_key(*name)).for_each(|_| self.fault(key, wanted, value));
    }

    /// Members that no other keyword names.
    fn other_named(&mut self, at: KeywordCheck<'v>, members: &'v Map<String, Value>, seen: &mut SeenParts<'v>) {
        let KeywordCheck { key, wanted, schema, value } = at;
        let rules = self.schema;
        let known = |name: &String| {
            let in_list = schema.get("properties").is_some_and(|listed| listed.get(name).is_some());
            let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
            in_list || patterns.map(|(pattern, _)| pattern).any(|pattern| rules.matches(pattern, name) != Some(false))
        };
        let others: Vec<_> = members.iter().filter(|(name, _)| !known(name)).collect();
        if *wanted != Value::Bool(false) {
            others.iter().for_each(|(name, member)| self.inside(wanted, name, member));
        } else if !others.is_empty() {
            self.fault(key, wanted, value);
        }
        seen.names.extend(others.iter().map(|(name, _)| name.as_str()));
    }

    fn of_array(&mut self, at: KeywordCheck<'v>, items: &'v [Value], seen: &mut SeenParts<'v>) {
        let KeywordCheck { key, wanted, schema, value } = at;
        let first = ["prefixItems", "items"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array));
        let (positions, first) = (items.iter().enumerate(), first.map_or(0, Vec::len));
        let is_tuple = schema.get("items").is_some_and(Value::is_array);
        let mut inside = |walk: &mut Self, inner: &'v Value, (index, item): (usize, &'v Value)| {
            walk.inside(inner, &index.to_string(), item);
            seen.items.insert(index);
        };
        match (key, wanted) {
            ("prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter().zip(positions).for_each(|(inner, item)| inside(self, inner, item));
            }
            ("additionalItems", Value::Bool(false)) if is_tuple && items.len() > first => {
                self.fault(key, wanted, value);
            }
            ("additionalItems", inner) if is_tuple => {
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
        seen: &mut SeenParts<'v>,
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
        seen: &mut SeenParts<'v>,
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
    fn name_fits(&mut self, schema: &Value, name: &str) -> bool {
        let name = Value::String(name.to_owned());
        let mut walk = SchemaWalk::going_on(self.schema, self.steps);
        walk.hold(schema, &name);
        self.steps = walk.steps;
        walk.faults.is_empty()
    }
}

/// Whether a value fits a keyword that looks at nothing inside it (types, sizes, numbers, equality); all others fit. `schema` is
/// what stands beside the keyword.
fn keyword_fits(key: &str, wanted: &Value, schema: &Map<String, Value>, value: &Value, rules: &Schema) -> bool {
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
            wanted.as_str().and_then(|pattern| rules.matches(pattern, text)).unwrap_or(true)
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
        return ratio.is_some_and(is_whole);
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
