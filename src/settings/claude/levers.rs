//! What can be set in Claude Code, as data (`rules/levers/`): where a lever stands, which values it takes, which client
//! versions know it, and whether devboy proposes it, tells of it, or leaves it alone.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::client_version::ClientVersion;
use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;

/// The files that matter most, most first; others follow by name.
const FIRST: [&str; 5] =
    ["levers/cache.toml", "levers/compaction.toml", "levers/tools.toml", "levers/results.toml", "levers/models.toml"];

/// All levers, file by file.
#[derive(Debug, Clone)]
pub struct Levers(Vec<Lever>);

/// One thing that can be set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Lever {
    /// Its name: a key of the settings (dots between parts, `*` for a model), or a variable.
    pub name: String,
    /// Where it is set.
    pub place: LeverPlace,
    pub kind: LeverKind,
    /// The values that it takes, if they can be listed.
    #[serde(default)]
    pub values: Vec<String>,
    /// Least value.
    pub min: Option<i64>,
    /// Greatest value.
    pub max: Option<i64>,
    /// Whether the client takes the least for what is below it, and the greatest for what is above.
    #[serde(default)]
    clamps: bool,
    /// The family of models that it is about, as their names have it; none where it is about all.
    pub family: Option<String>,
    /// The threads that it is about; none where it is about all.
    threads: Option<LeverThreads>,
    /// What a switch sets where it is on: a value of the levers that decide the same.
    means: Option<Value>,
    /// What holds where nobody sets it.
    pub default: Option<Value>,
    /// The same in words, where it is no single value.
    unset: Option<String>,
    /// The first client version that knows it.
    pub since: Option<String>,
    /// Where nobody says that: the client version that the documentation was of.
    pub documented: Option<String>,
    /// The last client version in which it does anything.
    pub until: Option<String>,
    /// The files that it may stand in.
    pub scopes: Vec<SettingsScope>,
    /// Levers that win over it wherever they are set, strongest first.
    #[serde(default)]
    pub gives_way_to: Vec<String>,
    /// Levers without which it does nothing: a setting that is false, a variable that is set.
    #[serde(default)]
    pub off_by: Vec<String>,
    /// The list that its value has to be in where that is set.
    pub listed_in: Option<String>,
    pub does: String,
    pub log: String,
    pub source: String,
    pub confidence: Confidence,
    rule: Option<String>,
    #[serde(default)]
    hint: bool,
    why_not: Option<String>,
}

/// Where a lever is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum LeverPlace {
    /// A key of `settings.json`.
    #[strum(serialize = "key of settings.json")]
    Setting,
    /// A variable, which `settings.json` can set in its `env`.
    Variable,
    /// The head of the file of an agent.
    #[strum(serialize = "head of the file of an agent")]
    Agent,
    /// A server of `.mcp.json`.
    #[strum(serialize = "server of .mcp.json")]
    Server,
}

/// Which threads a lever is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeverThreads {
    /// Those of people.
    Main,
    /// Those that others started.
    Subagents,
}

/// What the values of a lever are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeverKind {
    /// One of a few words.
    Choice,
    /// A whole number.
    Integer,
    Number,
    Boolean,
    Text,
    List,
    /// Keys with values.
    Map,
}

/// Whose file of settings it is; the later wins over the earlier.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, strum::IntoStaticStr, clap::ValueEnum,
)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum SettingsScope {
    /// ~/.claude/settings.json
    #[default]
    User,
    /// .claude/settings.json
    Project,
    /// .claude/settings.local.json
    Local,
    /// What an organisation sets for its machines; nothing of ours writes it.
    #[value(skip)]
    Managed,
}

/// How sure it is what a lever does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The documentation says it.
    Documented,
    Changelog,
    /// Only users say it.
    Reported,
}

/// What devboy does with a lever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeverUse<'l> {
    /// This rule proposes it where it pays.
    Rule(&'l str),
    /// It is told of and never written: nobody can say what it would bring.
    Hint,
    /// Neither, for this reason.
    LeftAlone(&'l str),
}

#[derive(Deserialize)]
struct LeverFile {
    lever: Vec<Lever>,
}

impl Levers {
    /// Reads all files of levers. An error if one does not fit, a name stands twice, a lever has no fate or several, or
    /// one gives way to an unknown one.
    pub fn load(data: &Data) -> Result<Self> {
        let mut levers = Self(Vec::new());
        let mut names: Vec<_> = Data::names_in("levers").collect();
        names.sort_by_key(|name| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
        for name in names {
            let file = data.file(name)?;
            for lever in file.parsed::<LeverFile>()?.lever {
                if let Some(default) = &lever.default {
                    lever.check(default).map_err(|cause| {
                        Error::failed(format!("{}: `default = {default}`: {}", file.place, cause.message))
                    })?;
                }
                let fates = [lever.rule.is_some(), lever.hint, lever.why_not.is_some()];
                if fates.iter().filter(|is_given| **is_given).count() != 1 {
                    let message = format!("{}: {}: neither or several of rule, hint, why_not", file.place, lever.name);
                    return Err(Error::failed(message).hint("give exactly one of them"));
                }
                if levers.named(&lever.name).is_some() {
                    return Err(Error::failed(format!("{}: {} stands twice", file.place, lever.name)));
                }
                levers.0.push(lever);
            }
        }
        let others = |lever: &Lever| lever.gives_way_to.iter().chain(&lever.off_by).cloned().collect::<Vec<_>>();
        let unknown = |lever: &Lever| others(lever).into_iter().find(|name| levers.named(name).is_none());
        match levers.0.iter().find_map(|lever| Some((lever, unknown(lever)?))) {
            Some((lever, other)) => {
                Err(Error::failed(format!("levers: {} depends on {other}, which is no lever", lever.name)))
            }
            None => Ok(levers),
        }
    }

    /// All of them, in the order of the files.
    pub fn all(&self) -> impl Iterator<Item = &Lever> {
        self.0.iter()
    }

    /// What decides the same as a lever, strongest first: those that win over it, itself, and those over which it wins.
    pub fn deciding<'l>(&'l self, lever: &'l Lever) -> impl Iterator<Item = &'l Lever> {
        let above = lever.gives_way_to.iter().filter_map(|name| self.named(name));
        above.chain([lever]).chain(self.all().filter(|other| other.gives_way_to.contains(&lever.name)))
    }

    /// The lever of this name.
    pub fn named(&self, name: &str) -> Option<&Lever> {
        self.0.iter().find(|lever| lever.name == name)
    }
}

impl Lever {
    /// What devboy does with it.
    pub fn fate(&self) -> LeverUse<'_> {
        match (&self.rule, &self.why_not) {
            (Some(rule), _) => LeverUse::Rule(rule),
            (None, Some(reason)) => LeverUse::LeftAlone(reason),
            (None, None) => LeverUse::Hint,
        }
    }

    /// The first version that is sure to know it; none if nobody documents it.
    pub fn first_version(&self) -> Option<&str> {
        self.since.as_deref().or(self.documented.as_deref())
    }

    /// Whether a client of this version knows it. What is no version knows nothing.
    pub fn is_known_to(&self, version: &str) -> bool {
        let (Some(version), Some(first)) =
            (ClientVersion::parse(version), self.first_version().and_then(ClientVersion::parse))
        else {
            return false;
        };
        let last = self.until.as_deref().and_then(ClientVersion::parse);
        first <= version && last.is_none_or(|last| version <= last)
    }

    /// Its key in a file of settings; `model` fills a `*`. None if it stands elsewhere.
    pub fn key(&self, model: Option<&str>) -> Option<KeyPath> {
        match self.place {
            LeverPlace::Variable => Some(KeyPath::from(["env", self.name.as_str()])),
            LeverPlace::Setting => {
                let part = |part: &str| if part == "*" { model.map(str::to_owned) } else { Some(part.to_owned()) };
                self.name.split('.').map(part).collect::<Option<Vec<_>>>().map(KeyPath)
            }
            LeverPlace::Agent | LeverPlace::Server => None,
        }
    }

    /// A value as it is written in a file of settings: variables are texts there.
    pub fn spelled(&self, value: &Value) -> Value {
        match (self.place, value) {
            (LeverPlace::Variable, Value::Bool(flag)) => json!(if *flag { "1" } else { "" }),
            (LeverPlace::Variable, Value::Number(number)) => json!(number.to_string()),
            _ => value.clone(),
        }
    }

    /// Whether a value is one that it takes.
    pub fn check(&self, value: &Value) -> Result<()> {
        let fits = match self.kind {
            LeverKind::Choice => value.as_str().is_some_and(|text| self.values.iter().any(|known| known == text)),
            LeverKind::Integer => value.as_i64().is_some_and(|number| self.is_within(number as f64)),
            LeverKind::Number => value.as_f64().is_some_and(|number| self.is_within(number)),
            LeverKind::Boolean => value.is_boolean(),
            LeverKind::Text => value.is_string(),
            LeverKind::List => value.is_array(),
            LeverKind::Map => value.is_object(),
        };
        if fits { Ok(()) } else { Err(Error::failed(format!("{} takes {}, not {value}", self.name, self.takes()))) }
    }

    /// Whether it is about main threads, or about subagents.
    pub fn is_about(&self, is_main: bool) -> bool {
        self.threads.is_none_or(|threads| (threads == LeverThreads::Main) == is_main)
    }

    /// Whether it is set model by model.
    pub fn is_for_one_model(&self) -> bool {
        self.name.contains('*')
    }

    /// What the client makes of a value as it stands in a file, or of a variable, which is a text; none if it does not take it.
    pub fn taken(&self, value: &Value) -> Option<Value> {
        if let Some(means) = &self.means {
            return Some(means.clone());
        }
        // Whatever a variable says that is not no.
        if (self.place, self.kind) == (LeverPlace::Variable, LeverKind::Boolean) {
            return Some(Value::Bool(true));
        }
        // The whole number of a variable is written in digits; in a file it may be written as 1e5.
        let number = match (self.place, value) {
            (LeverPlace::Variable, Value::String(text)) if self.kind == LeverKind::Integer => {
                text.trim().parse::<i64>().ok().map(|number| number as f64)
            }
            (LeverPlace::Variable, Value::String(text)) => text.trim().parse().ok(),
            _ => value.as_f64(),
        };
        let clamped = |number: f64| {
            let least = self.min.filter(|_| self.clamps).map_or(number, |min| number.max(min as f64));
            self.max.filter(|_| self.clamps).map_or(least, |max| least.min(max as f64))
        };
        let whole = number.map(clamped).filter(|number: &f64| number.fract() == 0.0).map(|number| json!(number as i64));
        [whole, Some(value.clone())].into_iter().flatten().find(|value| self.check(value).is_ok())
    }

    fn is_within(&self, number: f64) -> bool {
        self.min.is_none_or(|min| number >= min as f64) && self.max.is_none_or(|max| number <= max as f64)
    }

    /// What holds where nobody sets it, in words.
    pub fn default_words(&self) -> String {
        self.default.as_ref().map(Value::to_string).or_else(|| self.unset.clone()).unwrap_or_default()
    }

    /// What it takes, in words: "5m or 1h", "100000 to 1000000".
    pub fn takes(&self) -> String {
        let kind = match self.kind {
            _ if !self.values.is_empty() => return self.values.join(" or "),
            LeverKind::Choice | LeverKind::Text => "a text",
            LeverKind::Integer => "a whole number",
            LeverKind::Number => "a number",
            LeverKind::Boolean => return "true or false".to_owned(),
            LeverKind::List => return "a list".to_owned(),
            LeverKind::Map => return "keys with values".to_owned(),
        };
        match (self.min, self.max) {
            (Some(min), Some(max)) => format!("{kind} from {min} to {max}"),
            (Some(min), None) => format!("{kind} from {min} on"),
            (None, Some(max)) => format!("{kind} up to {max}"),
            (None, None) => kind.to_owned(),
        }
    }

    /// The versions that know it, in words: "2.1.243 and newer".
    pub fn versions(&self) -> String {
        let first = match (&self.since, &self.documented) {
            (Some(since), _) => format!("{since} and newer"),
            (None, Some(documented)) => format!("{documented} and newer, perhaps older"),
            (None, None) => "none that is documented".to_owned(),
        };
        self.until.as_ref().map_or(first.clone(), |until| format!("{first}, up to {until}"))
    }
}
