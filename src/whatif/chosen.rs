//! Which policies were asked for, and what was set about each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use toml_edit::{Document, DocumentMut, Item, Table, Value};

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::frames::input::timeline::TextWords;
use crate::settings::syntax_error;
use crate::whatif::pick_tools::Params as PickParams;
use crate::whatif::sim::params::{Assigned, PolicyConfig, ReadOnlyWith};
use crate::whatif::simulation::{Ready, Simulation};
use crate::whatif::tool_filter::params::{Params as FilterParams, Predictor};
use crate::whatif::workload::cache_rules;
use crate::whatif::{arg_check, compaction, history_trim, pick_tools, pipeline, prompt_cache, tool_filter};

/// A policy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum Policy {
    /// A fixed list of tools.
    ToolFilter,
    /// Tools by keywords.
    PickTools,
    Pipeline,
    /// Summaries of old context, and clearing of old results.
    Compaction,
    /// Caps on old messages.
    HistoryTrim,
    PromptCache,
    /// Arguments against schemas.
    ArgCheck,
}

impl Policy {
    /// All policies, in the order in which they act on a context.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// What it says of itself. A new policy is a variant and a line here.
    pub fn entry(self) -> &'static PolicyEntry {
        match self {
            Self::ToolFilter => &tool_filter::POLICY,
            Self::PickTools => &pick_tools::outcome::POLICY,
            Self::Pipeline => &pipeline::replayed::POLICY,
            Self::Compaction => &compaction::POLICY,
            Self::HistoryTrim => &history_trim::POLICY,
            Self::PromptCache => &prompt_cache::POLICY,
            Self::ArgCheck => &arg_check::POLICY,
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|policy| policy.into_str() == name)
    }

    fn parse(name: &str) -> Result<Self> {
        Self::named(name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|policy| policy.into_str()).collect();
            Error::usage(format!("there is no policy `{name}`"))
                .hint(format!("policies: {}, several joined by `+`, or all", names.join(", ")))
        })
    }
}

/// What a policy says of itself; it stands in the folder of the policy.
pub struct PolicyEntry {
    /// Its sheet among the data files.
    pub sheet: &'static str,
    /// Whether its parameters make sense.
    pub check: fn(&PolicyConfig) -> Result<()>,
    /// Parameters that it does not read in every mode.
    pub read_only_with: &'static [ReadOnlyWith],
    /// Why it cannot be replayed over telemetry; none if it can.
    pub without_logs: Option<&'static str>,
    /// Makes it ready for one run; fails if a parameter makes no sense, or a file that one names cannot be read.
    pub ready: for<'s> fn(&'s Simulation<'_>, &PolicyConfigs) -> Result<Ready<'s>>,
}

/// A policy, or several that act together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack(pub Vec<Policy>);

impl Stack {
    /// Reads `A+B`. They act in one order, whatever the order of the names. An error if a name is unknown, stands
    /// twice, or two do not go together.
    pub fn parse(text: &str) -> Result<Self> {
        let mut policies = text.split('+').map(|name| Policy::parse(name.trim())).collect::<Result<Vec<_>>>()?;
        policies.sort_unstable();
        if let Some(pair) = policies.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::usage(format!("`{text}` names {} twice", pair[0].into_str())));
        }
        if policies.contains(&Policy::ToolFilter) && policies.contains(&Policy::PickTools) {
            let message = "tool-filter and pick-tools both choose the tools: only one can";
            return Err(Error::usage(message).hint("leave one of them out"));
        }
        if policies.len() > 1 && policies.contains(&Policy::ArgCheck) {
            return Err(Error::usage("arg-check changes no context, so it stacks with nothing").hint("run it alone"));
        }
        Ok(Self(policies))
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.0.iter().map(|policy| policy.into_str()).collect::<Vec<_>>().join("+")
    }

    /// Whether it wants to know how tools are defined.
    pub fn asks_for_tools(&self) -> bool {
        [Policy::ToolFilter, Policy::PickTools, Policy::ArgCheck].iter().any(|policy| self.has(*policy))
    }

    /// The words of texts that it reads as it is set. An error if a parameter makes no sense.
    pub fn words(&self, configs: &PolicyConfigs) -> Result<TextWords> {
        let mut words = TextWords::None;
        for &policy in &self.0 {
            let sheet = configs.sheet(policy);
            words = words.max(match policy {
                Policy::ToolFilter if sheet.params::<FilterParams>()?.predictor == Predictor::TfCosine => {
                    TextWords::All
                }
                Policy::PickTools if sheet.params::<PickParams>()?.query_context > 0 => TextWords::All,
                Policy::PickTools => TextWords::OfPeople,
                _ => TextWords::None,
            });
        }
        Ok(words)
    }

    /// Whether a policy is in it.
    pub fn has(&self, policy: Policy) -> bool {
        self.0.contains(&policy)
    }
}

/// One row of a comparison: a stack, and what is set for it beside what the user sets.
#[derive(Clone, Debug)]
pub struct StackRow {
    /// The name in reports.
    pub name: String,
    pub stack: Stack,
    pub settings: Vec<Assigned>,
    /// Whether the user named it; else it is a row of `all`.
    pub is_named: bool,
}

#[derive(Deserialize)]
struct AllRows {
    row: Vec<AllRow>,
}

#[derive(Deserialize)]
struct AllRow {
    policy: String,
    name: Option<String>,
    set: Vec<String>,
}

/// The rows that `--policy` and `--compare` ask for. An error if a name is unknown, stands twice in a stack, or two do
/// not go together.
pub fn rows(policy: &str, compare: &[String], data: &Data) -> Result<Vec<StackRow>> {
    let names = std::iter::once(policy).chain(compare.iter().flat_map(|names| names.split(',')));
    let mut rows: Vec<StackRow> = Vec::new();
    for name in names {
        let more = if name == "all" {
            all(data)?
        } else {
            let stack = Stack::parse(name)?;
            vec![StackRow { name: stack.name(), stack, settings: Vec::new(), is_named: true }]
        };
        rows.extend(
            more.into_iter().filter(|row| !rows.iter().any(|known| known.name == row.name)).collect::<Vec<_>>(),
        );
    }
    Ok(rows)
}

fn all(data: &Data) -> Result<Vec<StackRow>> {
    let file = data.file("policies/all.toml")?;
    let (listed, place): (AllRows, String) = (file.parsed()?, file.place);
    let row = |row: AllRow| {
        let stack = Stack::parse(&row.policy)?;
        let settings = row.set.iter().map(|text| Assigned::parse(text, place.clone())).collect::<Result<_>>()?;
        let name = row.name.unwrap_or_else(|| [stack.name()].into_iter().chain(row.set).collect::<Vec<_>>().join(" "));
        Ok(StackRow { name, stack, settings, is_named: false })
    };
    listed.row.into_iter().map(row).collect()
}

/// What every policy is configured with: its sheet, and what was set.
#[derive(Clone, Debug)]
pub struct PolicyConfigs(BTreeMap<Policy, PolicyConfig>);

impl PolicyConfigs {
    /// The shipped sheets, or those of `--rules-dir`.
    pub fn load(data: &Data) -> Result<Self> {
        let sheet = |policy: Policy| {
            let parse = |text: &str, place: &str| PolicyConfig::parse(policy.into_str(), text, place);
            Ok((policy, data.read(policy.entry().sheet, parse)?))
        };
        Policy::ALL.iter().copied().map(sheet).collect::<Result<_>>().map(Self)
    }

    /// Lays a setting over the sheet that it means: the policy that it names, else the only one of `asked` that has the
    /// parameter. The cache prices every policy, so its parameters can always be named. An error if no policy or more
    /// than one has the parameter, or the policy that it names was not asked for.
    pub fn set(&mut self, setting: &Assigned, asked: &[Policy]) -> Result<()> {
        if let Some(policy) = Policy::named(&setting.key[0]) {
            if !asked.contains(&policy) && policy != Policy::PromptCache {
                let message = format!("{} has no effect: {} was not asked for", setting.place, policy.into_str());
                return Err(
                    Error::usage(message).hint("name it as the policy or with --compare, or leave the setting out")
                );
            }
            return self.set_named(policy, setting);
        }
        let having: Vec<Policy> =
            asked.iter().copied().filter(|policy| self.sheet(*policy).has(&setting.key)).collect();
        match having.as_slice() {
            [policy] => self.sheet_mut(*policy).set(setting),
            // The cache prices every policy.
            [] if self.sheet(Policy::PromptCache).has(&setting.key) => self.sheet_mut(Policy::PromptCache).set(setting),
            // The policy itself says whether it has the parameter.
            [] if asked.len() == 1 => self.sheet_mut(asked[0]).set(setting),
            [] => {
                let names: Vec<&str> = asked.iter().map(|policy| policy.into_str()).collect();
                let message =
                    format!("{}: none of {} has a parameter `{}`", setting.place, names.join(", "), setting.name());
                return Err(Error::usage(message).hint("name the policy as well: --set compaction.window=…"));
            }
            several => {
                let names: Vec<String> =
                    several.iter().map(|policy| format!("{}.{}", policy.into_str(), setting.name())).collect();
                let message = format!("{}: `{}` could mean {}", setting.place, setting.name(), names.join(" or "));
                return Err(Error::usage(message).hint("name the policy as well"));
            }
        }
        Ok(())
    }

    /// The same with what a row sets. An error if a policy of the row has no such parameter.
    pub fn with(&self, row: &StackRow) -> Result<Self> {
        let mut configs = self.clone();
        for setting in &row.settings {
            configs.set(setting, &row.stack.0)?;
        }
        Ok(configs)
    }

    /// As [`PolicyConfigs::set`], for a file: there, policies that were not asked for may have their tables as well.
    pub fn set_from_file(&mut self, setting: &Assigned, asked: &[Policy]) -> Result<()> {
        match Policy::named(&setting.key[0]) {
            Some(policy) => self.set_named(policy, setting),
            None => self.set(setting, asked),
        }
    }

    fn set_named(&mut self, policy: Policy, setting: &Assigned) -> Result<()> {
        let key = setting.key[1..].to_vec();
        if key.is_empty() {
            return Err(Error::usage(format!("{} names a policy, but no parameter of it", setting.place)));
        }
        self.sheet_mut(policy).set(&Assigned { key, ..setting.clone() });
        Ok(())
    }

    /// Whether the parameters of these policies make sense. An error if one is unknown, or a value of the wrong kind;
    /// the message shows it.
    pub fn check(&self, policies: &[Policy]) -> Result<()> {
        for &policy in policies {
            (policy.entry().check)(self.sheet(policy))?;
        }
        // The cache prices every policy.
        cache_rules(self).map(drop)
    }

    /// One sheet.
    pub fn sheet(&self, policy: Policy) -> &PolicyConfig {
        &self.0[&policy]
    }

    fn sheet_mut(&mut self, policy: Policy) -> &mut PolicyConfig {
        self.0.get_mut(&policy).expect("every policy has a sheet")
    }
}

/// What was set and is read in none of these runs, in sentences.
pub fn unread<'s>(runs: impl Iterator<Item = Result<(&'s Stack, PolicyConfigs)>>) -> Result<Vec<String>> {
    let mut told: BTreeMap<Policy, BTreeSet<String>> = BTreeMap::new();
    for run in runs {
        let (stack, configs) = run?;
        // The cache prices every policy.
        for policy in Policy::ALL.iter().filter(|policy| stack.has(**policy) || **policy == Policy::PromptCache) {
            let alone = if stack.0 == [Policy::PromptCache] { prompt_cache::READ_ONLY_ALONE } else { &[] };
            let unread = configs.sheet(*policy).unread(policy.entry().read_only_with.iter().chain(alone));
            told.entry(*policy).and_modify(|known| known.retain(|note| unread.contains(note))).or_insert(unread);
        }
    }
    Ok(told.into_values().flatten().collect())
}

/// The settings of a file: one table per policy, or parameters alone. An error if it cannot be read, is no TOML, or has
/// a list of tables.
pub fn settings_of(path: &Path) -> Result<Vec<Assigned>> {
    let text = crate::base::files::read_to_string(path).map_err(|cause| Error::unread(path, &cause))?;
    let fault = |cause| syntax_error(path, &text, &cause);
    let places = KeyPlaces { path, text: &text, document: Document::parse(text.as_str()).map_err(fault)? };
    let document: DocumentMut = text.parse().map_err(fault)?;
    let mut settings = Vec::new();
    collect(document.as_table(), &[], &places, &mut settings)?;
    Ok(settings)
}

/// Where the keys of a file stand.
struct KeyPlaces<'a> {
    path: &'a Path,
    text: &'a str,
    document: Document<&'a str>,
}

impl KeyPlaces<'_> {
    /// `file:line` of a key.
    fn of(&self, key: &[String]) -> String {
        let mut at = Some(self.document.as_item());
        for part in key {
            at = at.and_then(|item| item.get(part));
        }
        let start = at.and_then(Item::span).map_or(0, |span| span.start);
        format!("{}:{}", self.path.shown(), 1 + self.text[..start].matches('\n').count())
    }
}

fn collect(table: &Table, before: &[String], places: &KeyPlaces<'_>, settings: &mut Vec<Assigned>) -> Result<()> {
    for (name, item) in table {
        let key: Vec<String> = before.iter().cloned().chain([name.to_owned()]).collect();
        match item {
            Item::Table(inner) => collect(inner, &key, places, settings)?,
            Item::Value(Value::InlineTable(inner)) => collect(&inner.clone().into_table(), &key, places, settings)?,
            Item::Value(value) => settings.push(Assigned { place: places.of(&key), key, value: value.clone() }),
            Item::ArrayOfTables(_) => {
                let message = format!("{}: [[{}]] is a list of tables", places.of(&key), key.join("."));
                return Err(Error::usage(message).hint("write one table per policy: [compaction]"));
            }
            Item::None => {}
        }
    }
    Ok(())
}

/// Every policy that was asked for, once.
pub fn asked(rows: &[StackRow]) -> Vec<Policy> {
    let mut asked: Vec<Policy> = rows.iter().flat_map(|row| row.stack.0.iter().copied()).collect();
    asked.sort_unstable();
    asked.dedup();
    asked
}
