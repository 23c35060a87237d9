//! The effective value model of every tool: what devboy ships, what it ships for a provider, and what the user's file
//! says. Of a configuration the strongest layer that knows a tool is all that counts, as the pipeline reads it; what was
//! mined is laid over what is shipped field by field.
//!
//! Provider models are held under live names (`mcp__<server>__<verb>`), so that equal verbs of two servers do not
//! collide.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::{Deserialize, IntoDeserializer};
use serde::ser::Serialize;
use toml_edit::{InlineTable, Value};

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::settings::tool_model::{FollowUp, SideEffectClass, ToolModel};
use crate::settings::{SettingsFile, put};

/// The name that stands for every tool.
const ANY: &str = "*";

/// Layers from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `[tools."*"]` of the user: fills what no other layer says.
    Wildcard,
    Shipped,
    /// Shipped for the provider of an MCP server.
    Provider,
    /// `[tools.<name>]` of the user.
    User,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSource {
    pub level: Level,
    /// The file, with the line in the user's: "`pipeline_config.toml:12`".
    pub place: String,
}

/// How layers are laid over each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerPrecedence {
    /// A layer overrides only the keys that it has.
    ByField,
    /// The strongest layer that knows a tool is all that counts (published).
    WholeModel,
}

/// What one layer says of one tool: values by key.
#[derive(Debug)]
struct LayerValues {
    level: Level,
    place: String,
    leaves: Vec<(KeyPath, Value, String)>,
}

/// Everything that is said of tools, by layer.
#[derive(Debug, Default)]
pub struct ModelLayers {
    tools: BTreeMap<String, Vec<LayerValues>>,
    /// Names that exist although no layer says anything of them.
    known: BTreeSet<String>,
}

impl ModelLayers {
    /// Takes in a shipped annotation; `tool` and the names in `model` are live names.
    pub fn annotate(&mut self, tool: &str, model: &ToolModel, level: Level, place: &str) -> Result<()> {
        let value = model
            .serialize(toml_edit::ser::ValueSerializer::new())
            .map_err(|cause| Error::failed(format!("{place}: {tool}: {cause}")))?;
        let at = KeyPath::from(["tools", tool]);
        let mut leaves = Vec::new();
        flatten(&value, &at, &mut |_| place.to_owned(), &mut leaves);
        // The default class is left out when a model is written, but it was meant: no wildcard may loosen it.
        let class = at.child("side_effect_class");
        if !leaves.iter().any(|(key, ..)| *key == class) {
            leaves.push((class, Value::from("indeterminate"), place.to_owned()));
        }
        self.say(tool, LayerValues { level, place: place.to_owned(), leaves });
        Ok(())
    }

    /// Takes in the annotations of these tools and of all that their links lead to. `of` gives the model of a live name
    /// and its file; names of MCP servers are the provider layer, all others the shipped one.
    pub fn annotate_reachable<'t>(
        &mut self,
        tools: impl IntoIterator<Item = &'t str>,
        of: impl Fn(&str) -> Option<(ToolModel, String)>,
    ) -> Result<()> {
        let mut open: Vec<String> = tools.into_iter().map(str::to_owned).collect();
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        self.known.extend(open.iter().cloned());
        while let Some(tool) = open.pop() {
            let Some((model, place)) = of(&tool) else { continue };
            let level = if tool.starts_with("mcp__") { Level::Provider } else { Level::Shipped };
            self.annotate(&tool, &model, level, &place)?;
            let named = model.follow_up.into_iter().map(|link| link.tool).chain(model.invalidates);
            open.extend(named.filter(|next| seen.insert(next.clone())));
        }
        Ok(())
    }

    /// Takes in the user's file.
    pub fn user(&mut self, file: &SettingsFile) {
        let Some(Value::InlineTable(tools)) = file.get(&KeyPath::from(["tools"])) else { return };
        for (tool, said) in &tools {
            let mut place = |key: &KeyPath| format!("{}:{}", file.path.shown(), file.line_of(key).unwrap_or(1));
            let level = if tool == ANY { Level::Wildcard } else { Level::User };
            let (at, mut leaves) = (KeyPath::from(["tools", tool]), Vec::new());
            flatten(said, &at, &mut place, &mut leaves);
            self.say(tool, LayerValues { level, place: place(&at), leaves });
        }
    }

    /// The effective models, and what is wrong with them.
    pub fn resolve(&self, precedence: LayerPrecedence) -> Result<ValueModels> {
        let wildcard = self.tools.get(ANY).map(|said| effective(ANY, said, None, precedence)).transpose()?;
        let mut models = BTreeMap::new();
        let mut problems = Vec::new();
        for (tool, said) in self.tools.iter().filter(|(tool, _)| *tool != ANY) {
            let blanket = self.tools.get(ANY).and_then(|said| said.first());
            let model = effective(tool, said, blanket, precedence)?;
            let annotated: Vec<_> = said.iter().filter(|said| said.level < Level::User).collect();
            if let Some(top) = said.last().filter(|top| top.level == Level::User && !annotated.is_empty()) {
                let below = effective(tool, annotated, None, precedence)?;
                let block = ValueSource { level: top.level, place: top.place.clone() };
                overridden(tool, &below.model, &model, block, &mut problems);
            }
            models.insert(tool.clone(), model);
        }
        let mut models = ValueModels { models, wildcard, default: ValueModel::default(), problems };
        models.check(&self.known);
        Ok(models)
    }

    fn say(&mut self, tool: &str, said: LayerValues) {
        let layers = self.tools.entry(tool.to_owned()).or_default();
        layers.retain(|other| other.level != said.level);
        layers.push(said);
        layers.sort_by_key(|said| said.level);
    }
}

/// What holds for one tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValueModel {
    /// The published part.
    pub model: ToolModel,
    /// Tools that have to be called before this one (key `requires`, not in the published schema).
    pub requires: Vec<String>,
    /// Where each value comes from, by full key. A key that is not here has the default of the schema.
    pub sources: BTreeMap<KeyPath, ValueSource>,
}

impl ValueModel {
    /// Whether the tool may be called ahead. `speculate = false` always forbids it; `true` allows it for a class that
    /// cannot be told, never for one that changes something.
    pub fn is_speculatable(&self) -> bool {
        match (self.model.speculate, self.model.side_effect_class) {
            (Some(false), _) => false,
            (_, SideEffectClass::Pure | SideEffectClass::ReadOnly) => true,
            (allowed, SideEffectClass::Indeterminate) => allowed == Some(true),
            (_, SideEffectClass::MutatesLocal | SideEffectClass::MutatesExternal | SideEffectClass::Other) => false,
        }
    }

    /// Links with a name and a probability.
    pub fn links(&self) -> impl Iterator<Item = &FollowUp> {
        self.model.follow_up.iter().filter(|link| !link.tool.is_empty() && is_share(link.probability))
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Has another effect than its author may expect.
    Warning,
    /// Cannot be meant, and is left out.
    Error,
}

/// Something odd in a value model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelProblem {
    pub severity: Severity,
    pub key: KeyPath,
    /// Where it stands, if a layer says it.
    pub source: Option<ValueSource>,
    /// What is odd about it.
    pub message: String,
}

/// The effective value models.
#[derive(Debug)]
pub struct ValueModels {
    models: BTreeMap<String, ValueModel>,
    wildcard: Option<ValueModel>,
    default: ValueModel,
    /// What is odd, by tool.
    pub problems: Vec<ModelProblem>,
}

impl ValueModels {
    /// The model of a tool: its own, else that of `*`.
    pub fn get(&self, tool: &str) -> Option<&ValueModel> {
        self.models.get(tool).or(self.wildcard.as_ref())
    }

    /// The model of a tool, or the default of the schema.
    pub fn get_or_default(&self, tool: &str) -> &ValueModel {
        self.get(tool).unwrap_or(&self.default)
    }

    /// Tools with a model of their own, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ValueModel)> {
        self.models.iter().map(|(tool, model)| (tool.as_str(), model))
    }

    /// An error if something cannot be meant: the first problem is the error, all others stand in its hint.
    pub fn accept(&self) -> Result<()> {
        let errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        let mut lines = errors.map(|problem| {
            let place = problem.source.as_ref().map(|source| format!("{}: ", source.place)).unwrap_or_default();
            format!("{place}`{}` {}", problem.key, problem.message)
        });
        let Some(first) = lines.next() else { return Ok(()) };
        let others: Vec<_> = lines.map(|line| format!("also {line}")).collect();
        let error = Error::failed(first);
        Err(if others.is_empty() { error } else { error.hint(others.join("\n")) })
    }

    fn check(&mut self, known: &BTreeSet<String>) {
        let mut found = std::mem::take(&mut self.problems);
        let is_known = |tool: &String| tool == ANY || known.contains(tool) || self.models.contains_key(tool);
        for (tool, model) in &self.models {
            let at = KeyPath::from(["tools", tool]);
            let mut check = ModelCheck { at, model, block: None, found: &mut found };
            check.links(self);
            check.numbers();
            check.names("invalidates", &model.model.invalidates, is_known);
            check.names("requires", &model.requires, is_known);
            if let Some(cycle) = self.cycle(tool) {
                let message = format!("leads back to itself: {}", cycle.join(" → "));
                check.report(Severity::Error, check.at.child("requires"), message);
            }
        }
        self.problems = found;
    }

    /// The prerequisites that lead from a tool back to it, if it is the first by name of those on the way.
    fn cycle(&self, start: &str) -> Option<Vec<String>> {
        let mut ways = vec![vec![start.to_owned()]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for next in way.last().and_then(|last| self.models.get(last)).into_iter().flat_map(|model| &model.requires)
            {
                let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
                if next == start {
                    return Some(longer);
                }
                if next.as_str() > start && seen.insert(next.clone()) {
                    ways.push(longer);
                }
            }
        }
        None
    }
}

/// Looks one model through.
struct ModelCheck<'a> {
    at: KeyPath,
    model: &'a ValueModel,
    /// Where the user's block stands, for what it leaves out.
    block: Option<ValueSource>,
    found: &'a mut Vec<ModelProblem>,
}

impl ModelCheck<'_> {
    fn links(&mut self, models: &ValueModels) {
        for (position, link) in self.model.model.follow_up.iter().enumerate() {
            let at = self.at.child("follow_up").child(position.to_string());
            if !is_share(link.probability) {
                let message = format!("is {}, and a probability lies between 0 and 1", link.probability);
                self.report(Severity::Error, at.child("probability"), message);
            }
            if is_mutating(models.get_or_default(&link.tool).model.side_effect_class) {
                let message = format!("leads to {}, which changes something and is never called ahead", link.tool);
                self.report(Severity::Warning, at.child("tool"), message);
            }
        }
    }

    fn numbers(&mut self) {
        for (name, group) in &self.model.model.field_groups {
            if !is_share(group.estimated_value) {
                let key = self.at.child("field_groups").child(name).child("estimated_value");
                let message = format!("is {}, and a value lies between 0 and 1", group.estimated_value);
                self.report(Severity::Error, key, message);
            }
        }
        let cost = &self.model.model.cost_model;
        let costs = [("typical_kb", Some(cost.typical_kb)), ("max_kb", cost.max_kb), ("dollars", cost.dollars)];
        for (name, number) in costs {
            if let Some(number) = number.filter(|number| !number.is_finite() || *number < 0.0) {
                let key = self.at.child("cost_model").child(name);
                self.report(Severity::Error, key, format!("is {number}, and a cost is at least 0"));
            }
        }
    }

    fn names(&mut self, field: &str, tools: &[String], is_known: impl Fn(&String) -> bool) {
        for (position, tool) in tools.iter().enumerate().filter(|(_, tool)| !is_known(tool)) {
            let key = self.at.child(field).child(position.to_string());
            self.report(Severity::Warning, key, format!("names {tool}, a tool that nobody knows"));
        }
    }

    fn report(&mut self, severity: Severity, key: KeyPath, message: String) {
        let source = key.upwards().find_map(|key| self.model.sources.get(&key)).or(self.block.as_ref()).cloned();
        self.found.push(ModelProblem { severity, key, source, message });
    }
}

/// What the user's block takes away from the annotation below it.
fn overridden(tool: &str, below: &ToolModel, model: &ValueModel, block: ValueSource, found: &mut Vec<ModelProblem>) {
    let mut check = ModelCheck { at: KeyPath::from(["tools", tool]), model, block: Some(block), found };
    let kept: BTreeSet<_> = model.model.follow_up.iter().map(|link| &link.tool).collect();
    let lost: Vec<_> = below.follow_up.iter().map(|link| &link.tool).filter(|tool| !kept.contains(tool)).collect();
    if !lost.is_empty() {
        let lost = lost.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        check.report(Severity::Warning, check.at.child("follow_up"), format!("hides the shipped links to {lost}"));
    }
    if is_mutating(below.side_effect_class) && !is_mutating(model.model.side_effect_class) {
        let message = "says that the tool changes nothing; the shipped annotation says that it does".to_owned();
        check.report(Severity::Warning, check.at.child("side_effect_class"), message);
    }
}

fn effective<'s>(
    tool: &str,
    said: impl IntoIterator<Item = &'s LayerValues>,
    blanket: Option<&LayerValues>,
    precedence: LayerPrecedence,
) -> Result<ValueModel> {
    let said: Vec<_> = said.into_iter().collect();
    let layers = match precedence {
        LayerPrecedence::ByField => said.as_slice(),
        LayerPrecedence::WholeModel => &said[said.len().saturating_sub(1)..],
    };
    let blanket = blanket.filter(|_| precedence == LayerPrecedence::ByField);
    let mut leaves = BTreeMap::new();
    for (key, value, place) in blanket.into_iter().flat_map(|blanket| &blanket.leaves) {
        let key = key.below(&KeyPath::from(["tools", ANY]));
        // A blanket `true` is not about this tool.
        if !(key.0 == ["speculate"] && value.as_bool() == Some(true)) {
            let key = KeyPath([vec!["tools".to_owned(), tool.to_owned()], key.0].concat());
            leaves.insert(key, (value, ValueSource { level: Level::Wildcard, place: place.clone() }));
        }
    }
    for said in layers {
        let source = |place: &String| ValueSource { level: said.level, place: place.clone() };
        leaves.extend(said.leaves.iter().map(|(key, value, place)| (key.clone(), (value, source(place)))));
    }
    typed(tool, leaves)
}

fn typed(tool: &str, leaves: BTreeMap<KeyPath, (&Value, ValueSource)>) -> Result<ValueModel> {
    let mut whole = InlineTable::new();
    for (key, (value, _)) in &leaves {
        put(&mut whole, &key.0[2..], (*value).clone());
    }
    let place = leaves.values().map(|(_, source)| source).max_by_key(|source| source.level);
    let misfit = |cause: toml_edit::de::Error| {
        let place = place.map(|source| format!("{}: ", source.place)).unwrap_or_default();
        Error::failed(format!("{place}the value model of {tool} does not fit the schema: {cause}"))
    };
    let requires = match whole.remove("requires") {
        Some(list) => Vec::deserialize(list.into_deserializer()).map_err(misfit)?,
        None => Vec::new(),
    };
    let model = ToolModel::deserialize(Value::InlineTable(whole).into_deserializer()).map_err(misfit)?;
    Ok(ValueModel { model, requires, sources: leaves.into_iter().map(|(key, (_, source))| (key, source)).collect() })
}

/// Every value below a table with its key; a list is one value.
fn flatten(
    value: &Value,
    at: &KeyPath,
    place: &mut dyn FnMut(&KeyPath) -> String,
    leaves: &mut Vec<(KeyPath, Value, String)>,
) {
    match value {
        Value::InlineTable(table) => {
            for (key, value) in table {
                flatten(value, &at.child(key), place, leaves);
            }
        }
        _ => leaves.push((at.clone(), value.clone(), place(at))),
    }
}

fn is_share(number: f64) -> bool {
    (0.0..=1.0).contains(&number)
}

fn is_mutating(class: SideEffectClass) -> bool {
    matches!(class, SideEffectClass::MutatesLocal | SideEffectClass::MutatesExternal)
}
