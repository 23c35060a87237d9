//! The parameters of a policy: the defaults of its sheet with what the user sets laid over them. And where the
//! approximations of each policy lean, as data: whoever reads a figure should know in which direction it errs.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::base::toml;

/// One `key=value` of the user.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// Names of tables and the parameter, in order.
    pub key: Vec<String>,
    pub value: Value,
    /// Where it was given, for messages: `--set …` or `file:line`.
    pub place: String,
}

impl Assigned {
    /// Reads `key=value`. What is no TOML value counts as text, and `[a,b]` as a list of texts. An error if there is no
    /// `=` or no key.
    pub fn parse(text: &str, place: impl Into<String>) -> Result<Self> {
        let fault =
            |does: &str| Error::usage(format!("`{text}` {does}")).hint("write KEY=VALUE, for instance `--set ttl=5m`");
        let (key, value) = text.split_once('=').ok_or_else(|| fault("sets nothing"))?;
        let key: Vec<String> = key.trim().split('.').map(|part| part.trim().to_owned()).collect();
        if key.iter().any(String::is_empty) {
            return Err(fault("names no parameter"));
        }
        Ok(Self { key, value: value_of(value.trim()), place: place.into() })
    }

    /// The key as the user wrote it.
    pub fn name(&self) -> String {
        self.key.join(".")
    }
}

/// A message of the TOML reader without names of Rust types.
fn plain(message: &str) -> String {
    let message = message.replace("out of range integral type conversion attempted", "the number is out of range");
    let words = message.split(' ').map(|word| match word.trim_end_matches(',') {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => word.replace(word.trim_end_matches(','), "a whole number"),
        "f64" => "a number".to_owned(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn value_of(text: &str) -> Value {
    let list = || {
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        let words = inner.split(',').map(|word| word.trim().trim_matches('"')).filter(|word| !word.is_empty());
        Some(Value::Array(words.collect::<Array>()))
    };
    text.parse().ok().or_else(list).unwrap_or_else(|| Value::from(text))
}

/// Parameters that a policy reads only where another one has some values.
pub struct ReadOnlyWith {
    pub parameters: &'static [&'static str],
    /// The other one and its values, in words: `mode=pct`.
    pub only: &'static str,
    /// Whether a value of it is one of those.
    pub is: fn(&str) -> bool,
}

impl ReadOnlyWith {
    /// The name of the other one.
    pub fn other(&self) -> &'static str {
        self.only.split(['=', ' ']).next().unwrap_or_default()
    }
}

/// The sheet of a policy: `[params]` and constants.
#[derive(Debug, Clone)]
pub struct PolicyConfig {
    policy: String,
    place: String,
    document: DocumentMut,
    /// The same before anything was set.
    shipped: DocumentMut,
    /// What was set, and where.
    set: Vec<(Vec<String>, String)>,
}

impl PolicyConfig {
    /// Reads a sheet; `place` is how it is cited.
    pub fn parse(policy: &str, text: &str, place: &str) -> Result<Self> {
        let document: DocumentMut = text.parse().map_err(|cause| Error::failed(format!("{place}: {cause}")))?;
        let shipped = document.clone();
        Ok(Self { policy: policy.to_owned(), place: place.to_owned(), document, shipped, set: Vec::new() })
    }

    /// Whether the policy has the parameter, with a default or without one (`optional` of the sheet).
    pub fn has(&self, key: &[String]) -> bool {
        let mut at = self.document.get("params");
        for part in key {
            at = at.and_then(Item::as_table_like).and_then(|table| table.get(part));
        }
        at.is_some_and(|item| item.as_table_like().is_none() || item.is_value())
            || self.optional().any(|optional| optional == key.join("."))
    }

    fn optional(&self) -> impl Iterator<Item = &str> {
        let listed = self.document.get("optional").and_then(Item::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Lays a value over a default. Whether the policy has such a parameter, and whether the value fits it, shows in
    /// [`PolicyConfig::params`]: a parameter need not have a default.
    pub fn set(&mut self, setting: &Assigned) {
        let (last, tables) = setting.key.split_last().expect("a setting has a key");
        let mut at = &mut self.document["params"];
        for part in tables {
            at = opened(&mut at[part.as_str()]);
        }
        self.set.push((setting.key.clone(), setting.place.clone()));
        at[last.as_str()] = Item::Value(widened(&setting.value, at.get(last)));
    }

    /// The parameters as the policy reads them. An error if there is no such parameter, or a value is of the wrong
    /// kind; the message shows the parameter.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T> {
        let text = self.alone().to_string();
        toml::parsed(&text).map_err(|cause| self.fault(&text, &cause))
    }

    /// The parameters as a document of their own.
    fn alone(&self) -> DocumentMut {
        let params = self.document.get("params").and_then(Item::as_table).cloned();
        DocumentMut::from(params.unwrap_or_default())
    }

    /// What is wrong with the parameters. Their text was put together here, so its line numbers mean nothing to anybody: the
    /// line itself is shown, and where it was set.
    fn fault(&self, text: &str, cause: &toml::TomlFault) -> Error {
        let start = cause.span.as_ref().map_or(0, |span| text[..span.start].rfind('\n').map_or(0, |at| at + 1));
        let line = text[start..].lines().next().unwrap_or_default().trim();
        let name = line.split(['=', ' ']).next().unwrap_or_default();
        let set = self.set.iter().rev().find(|(key, _)| key.iter().any(|part| part == name));
        let place = set.map_or(&self.place, |(_, place)| place);
        // The hint lists them.
        let message = match cause.message.split_once(", expected one of") {
            Some((unknown, _)) if unknown.starts_with("unknown field") => unknown,
            _ => &cause.message,
        };
        Error::usage(format!("{place}: the parameters of {} do not fit: `{line}`: {}", self.policy, plain(message)))
            .hint(format!("its parameters: {}", self.names().join(", ")))
    }

    /// All numbers of the sheet as the policy reads them.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        fitting(&self.text(), &self.place)
    }

    /// All parameters, tables joined by dots.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(params) = self.shipped.get("params").and_then(Item::as_table) {
            collect(params, "", &mut names);
        }
        names.extend(self.optional().map(str::to_owned));
        names
    }

    /// What was set and is not read as the other parameters are, in sentences.
    pub fn unread<'r>(&self, rules: impl Iterator<Item = &'r ReadOnlyWith> + Clone) -> BTreeSet<String> {
        let of_one = |(key, place): &(Vec<String>, String)| {
            let name = key.join(".");
            let is_unread = |rule: &&ReadOnlyWith| {
                let is_meant = rule.parameters.contains(&name.as_str());
                is_meant && value_at(&self.document, rule.other()).is_some_and(|other| !(rule.is)(&other))
            };
            let rule = rules.clone().find(is_unread)?;
            Some(format!("{place} has no effect: {} reads {name} only with {}", self.policy, rule.only))
        };
        self.set.iter().filter_map(of_one).collect()
    }

    /// The parameters that are no longer as the sheet has them: `layout=none`.
    pub fn changed(&self) -> Vec<String> {
        let changed = |name: &String| {
            let now = value_at(&self.document, name);
            now.filter(|now| value_at(&self.shipped, name).as_ref() != Some(now)).map(|now| format!("{name}={now}"))
        };
        self.names().iter().filter_map(changed).collect()
    }

    /// The sheet with what was set, for the policy's own reading.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// How it is cited.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The parameters as they are set, for reports.
    pub fn settings(&self) -> Result<serde_json::Value> {
        toml_edit::de::from_document(self.alone()).map_err(|cause| Error::failed(format!("{}: {cause}", self.place)))
    }
}

/// A parameter of a sheet as text; tables are joined by dots.
fn value_at(sheet: &DocumentMut, name: &str) -> Option<String> {
    let item = name.split('.').try_fold(sheet.get("params")?, |at, part| at.as_table_like()?.get(part))?;
    let text = item.as_value()?.clone().decorated("", "").to_string();
    Some(text.trim_matches('"').to_owned())
}

/// An item that can hold others. Below a value there is no parameter: a table takes its place, and whoever reads the parameters names
/// it as wrong.
fn opened(item: &mut Item) -> &mut Item {
    if !item.is_table_like() {
        *item = Item::Value(Value::InlineTable(InlineTable::new()));
    }
    item
}

/// A whole number where a fraction is wanted is one.
fn widened(value: &Value, default: Option<&Item>) -> Value {
    match (value, default.and_then(Item::as_value)) {
        (Value::Integer(whole), Some(Value::Float(_))) => Value::from(*whole.value() as f64),
        _ => value.clone(),
    }
}

fn collect(table: &Table, before: &str, names: &mut Vec<String>) {
    for (key, item) in table {
        let name = if before.is_empty() { key.to_owned() } else { format!("{before}.{key}") };
        match item.as_table() {
            Some(inner) => collect(inner, &name, names),
            None => names.push(name),
        }
    }
}

/// The sheet `rules/policies/bias.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Bias {
    /// One approximation each, in the order of print.
    pub leaning: Vec<Leaning>,
}

/// One approximation.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Leaning {
    /// The policies that it holds for; [`ALL`] for those that send contexts again.
    pub policy: Vec<String>,
    /// What is taken for granted.
    pub text: String,
    /// In which direction that moves the figures.
    pub leans: String,
}

/// Every policy that sends contexts again.
pub const ALL: &str = "all";

impl Bias {
    /// Those of some policies, each once: the approximation, then where it leans. [`ALL`] counts where they send contexts.
    pub fn of(&self, policies: &[&str], sends_contexts: bool) -> Vec<String> {
        let holds = |name: &String| (sends_contexts && name == ALL) || policies.contains(&name.as_str());
        let fitting = self.leaning.iter().filter(|one| one.policy.iter().any(holds));
        fitting.map(|one| format!("{} – {}", one.text, one.leans)).collect()
    }
}
