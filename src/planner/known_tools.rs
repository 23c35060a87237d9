//! Value models in the symbols of a history, so that a walk over it compares numbers and no names.

use crate::base::names::{Names, Sym};
use crate::logs::values::{List, ListedValue, ValueKind, input_value, name_value};
use crate::mine::projections::ToldHistory;
use crate::planner::numbers::{AnswerList, PlannerThresholds};
use crate::planner::value_models::{ValueModel, ValueModels};
use crate::settings::tool_model::{FollowUp, SideEffectClass, ToolModel, ValueClass};

/// A link in symbols.
#[derive(Debug, Clone)]
pub struct KnownLink<'m> {
    /// As the value model has it.
    pub follow_up: &'m FollowUp,
    /// Tool that is called next.
    pub to: Sym,
    /// The argument that the answer supplies, among the names of values; 0 if no call was ever given it.
    pub argument: Sym,
    /// Its name, or none if the link has no projection.
    pub argument_name: Option<&'m str>,
    /// Arguments that are projected at most.
    pub arguments_max: usize,
    /// Lists that supply it, among the names of values.
    lists: Vec<Sym>,
    /// Whether words in running text do not count.
    lines_only: bool,
    /// What the published extractor of the pair takes, among the names of values; none if it reads no text.
    taken: Option<Sym>,
    name_value: u64,
}

impl KnownLink<'_> {
    /// The value of the whole input `{argument: value}`.
    pub fn sole_input(&self, value: u64) -> u64 {
        input_value(&mut [(self.name_value, value)])
    }

    /// What the published planner takes of an answer: it reads it as text whatever it is, so that only its extractors for
    /// listings and searches of files find something.
    pub(super) fn taken<'v>(&self, told: ToldHistory<'v>, answer: usize) -> Vec<(&'v List, ListedValue)> {
        let lists = told.values.taken(answer).filter(|(list, _)| self.taken == Some(list.extractor));
        lists.flat_map(|(list, values)| values.iter().map(move |value| (list, *value))).collect()
    }

    /// What an answer offers to the link: values with their lists, in the order of the answer.
    pub(super) fn offered<'v>(
        &self,
        told: ToldHistory<'v>,
        answer: usize,
        most: usize,
    ) -> Vec<(&'v List, ListedValue)> {
        let wanted = told.values.lists(answer).filter(|(list, _)| self.lists.contains(&list.extractor));
        let counts = |value: &&ListedValue| !(self.lines_only && value.kind == ValueKind::Token);
        let lists: Vec<(&List, Vec<&ListedValue>)> =
            wanted.map(|(list, values)| (list, values.iter().filter(counts).collect())).collect();
        let longest = lists.iter().map(|(_, values)| values.len()).max().unwrap_or_default();
        // Taken in turn: in a list of objects, that is the order of the document.
        let turn = |place: usize| {
            lists.iter().filter_map(move |(list, values)| values.get(place).map(|value| (*list, **value)))
        };
        let mut offered: Vec<(&List, ListedValue)> = Vec::new();
        for (list, value) in (0..longest).flat_map(turn) {
            if offered.len() == most {
                break;
            }
            if !offered.iter().any(|(_, known)| known.value == value.value) {
                offered.push((list, value));
            }
        }
        offered
    }
}

/// What a call does to answers that were fetched before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEffect {
    Nothing,
    /// Nobody can tell (a shell).
    Perhaps,
    /// It changes something.
    Surely,
}

/// One tool in symbols.
#[derive(Debug, Clone)]
pub struct KnownTool<'m> {
    /// Its value model, or the default.
    pub model: &'m ValueModel,
    pub links: Vec<KnownLink<'m>>,
    /// Whether it may be called ahead.
    pub speculatable: bool,
    /// The host whose calls are limited, in small letters.
    pub host: Option<String>,
    /// What its calls do to earlier answers.
    pub changes: AnswerEffect,
    /// Tools whose answers it makes stale.
    pub invalidates: Vec<Sym>,
}

/// The value models of all tools of a history and of those that links lead to.
#[derive(Debug)]
pub struct KnownTools<'m> {
    /// Names of the tools: those of the history, then those of links.
    pub names: Names,
    tools: Vec<KnownTool<'m>>,
    /// Arguments that name a file, among the names of values.
    pub file_arguments: Vec<Sym>,
    /// Those by which a single file is opened.
    pub opened_arguments: Vec<Sym>,
}

impl<'m> KnownTools<'m> {
    /// Resolves models for a history.
    pub fn new(models: &'m ValueModels, told: ToldHistory<'_>, numbers: &'m PlannerThresholds) -> Self {
        let mut names = told.tools.clone();
        for name in told.tools.texts() {
            for link in models.get(name).into_iter().flat_map(ValueModel::links) {
                names.intern(&link.tool);
            }
        }
        let texts: Vec<String> = names.texts().to_vec();
        let resolve = Resolve { models, told, numbers, names: &names };
        let tools = texts.iter().map(|name| resolve.tool(name)).collect();
        let arguments = |wanted: &[String]| wanted.iter().filter_map(|name| told.values.names.find(name)).collect();
        Self {
            tools,
            file_arguments: arguments(&numbers.judge.file_arguments),
            opened_arguments: arguments(&numbers.judge.opened_arguments),
            names,
        }
    }

    /// A tool of the history or of a link.
    pub fn get(&self, tool: Sym) -> &KnownTool<'m> {
        &self.tools[tool.0 as usize]
    }
}

struct Resolve<'r, 'm> {
    models: &'m ValueModels,
    told: ToldHistory<'r>,
    numbers: &'m PlannerThresholds,
    names: &'r Names,
}

impl<'m> Resolve<'_, 'm> {
    fn tool(&self, name: &str) -> KnownTool<'m> {
        let model = self.models.get_or_default(name);
        let invalidates = model.model.invalidates.iter().filter_map(|tool| self.names.find(tool)).collect();
        KnownTool {
            links: model.links().map(|link| self.link(name, link)).collect(),
            speculatable: model.is_speculatable(),
            host: model.model.rate_limit_host.as_ref().map(|host| host.to_ascii_lowercase()),
            changes: changes(&model.model),
            invalidates,
            model,
        }
    }

    fn link(&self, from: &str, follow_up: &'m FollowUp) -> KnownLink<'m> {
        let numbers = &self.numbers.projection;
        let pair = numbers.pair(from, &follow_up.tool);
        let argument = numbers.argument(from, follow_up);
        let wanted = |list: &str| match (pair, &follow_up.projection) {
            (Some(pair), _) => is_of(pair.extractor, list),
            (None, projection) => projection.as_ref().is_some_and(|projection| is_under(projection, list)),
        };
        let values = &self.told.values.names;
        let lists = (0..).zip(values.texts()).filter(|(_, text)| argument.is_some() && wanted(text));
        let search = pair.is_some_and(|pair| pair.extractor == AnswerList::Search);
        KnownLink {
            follow_up,
            to: self.names.find(&follow_up.tool).unwrap_or_default(),
            argument: argument.and_then(|name| values.find(name)).unwrap_or_default(),
            argument_name: argument,
            arguments_max: if search { numbers.search_arguments_max } else { numbers.arguments_max },
            lists: lists.map(|(sym, _)| Sym(sym)).collect(),
            lines_only: pair.is_some_and(|pair| pair.extractor != AnswerList::Search),
            taken: pair.and_then(|pair| pair.extractor.taken()).and_then(|name| values.find(name)),
            name_value: name_value(argument.unwrap_or_default()),
        }
    }
}

/// Whether a list is what a built-in extractor reads: paths on lines of their own or at their start, hits of a search.
fn is_of(extractor: AnswerList, list: &str) -> bool {
    match extractor {
        AnswerList::Glob => matches!(list, "path" | "$[]" | "$[].path" | "$[].match_path"),
        AnswerList::Grep => matches!(list, "path" | "$[].path" | "$[].file"),
        AnswerList::Search => matches!(list, "url" | "$.results[].url" | "$[].url"),
    }
}

/// Whether a list is what the projection of a link names: a kind of value in text, a path of JSON keys, or its last key.
fn is_under(projection: &str, list: &str) -> bool {
    if projection.starts_with('$') {
        return list == projection;
    }
    let last = || list.rsplit('.').next().is_some_and(|key| key.trim_end_matches("[]") == projection);
    match list {
        "path" => matches!(projection, "path" | "match_path"),
        "url" | "id" => projection == list,
        _ => list.starts_with('$') && last(),
    }
}

fn changes(model: &ToolModel) -> AnswerEffect {
    match model.side_effect_class {
        SideEffectClass::MutatesLocal | SideEffectClass::MutatesExternal => AnswerEffect::Surely,
        SideEffectClass::Indeterminate | SideEffectClass::Other if model.value_class != ValueClass::AuditOnly => {
            AnswerEffect::Perhaps
        }
        _ => AnswerEffect::Nothing,
    }
}
