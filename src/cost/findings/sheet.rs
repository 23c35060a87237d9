//! The sheet `rules/findings.toml`: numbers of the first page, and the words of its findings.

use serde::Deserialize;

use crate::whatif::prompt_cache::outcome::Cause;

/// The sheet.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// Most findings of a page.
    pub findings_max: usize,
    /// Most names of a line.
    pub names_max: usize,
    /// Sessions whose context is drawn.
    pub sessions_drawn: usize,
    /// Most points of a line.
    pub points_drawn: usize,
    /// Most tools whose cost is drawn.
    pub tools_drawn: usize,
    /// Most follow-ups that are drawn.
    pub follow_ups_drawn: usize,
    /// Days of a page, if nothing else is asked for.
    pub days: u32,
    /// Share of a finding that one place must have to be named.
    pub most_share: f64,
    /// Least days from which money per month is told.
    pub month_days_min: i64,
    /// Days of a month.
    pub days_per_month: f64,
    /// Least share of the input that a finding saves.
    pub share_min: f64,
    /// Share of the most that can be saved at which a milder value is told.
    pub mildest_share: f64,
    /// Settings that are replayed.
    pub replayed: Vec<Replayed>,
    /// Cache misses.
    pub miss: Vec<Miss>,
    /// What parts of contexts cost.
    pub part: Vec<Part>,
    /// What may not pay.
    pub tried: Vec<Tried>,
}

/// A setting that is replayed with several values.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replayed {
    /// Name of the finding.
    pub id: String,
    /// The policy that replays it.
    pub policy: String,
    /// Its parameter.
    pub key: String,
    /// Values of that.
    pub values: Vec<String>,
    /// What is counted.
    pub counts: Counts,
    /// What happens.
    pub what: String,
    /// What to do.
    #[serde(rename = "do")]
    pub advice: String,
    /// The same where it holds in some projects only.
    #[serde(rename = "do_project")]
    pub advice_project: Option<String>,
    /// The same where it holds with some models only.
    #[serde(rename = "do_model")]
    pub advice_model: Option<String>,
}

/// What a replayed finding counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Requests whose context is larger than the value.
    ContextsAbove,
    /// Cache misses after the lifetime.
    CacheExpired,
    /// Requests that wrote to the cache for an hour.
    HourWrites,
}

/// Cache misses of one cause.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Miss {
    /// The cause.
    pub cause: Cause,
    /// Not told beside the finding of this name.
    pub unless: Option<String>,
    /// Whether somebody can do something about it.
    #[serde(default = "yes")]
    pub is_habit: bool,
    /// What happens.
    pub what: String,
    /// What to do.
    #[serde(rename = "do")]
    pub advice: String,
}

fn yes() -> bool {
    true
}

/// Parts of contexts that need not be there.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Name of the finding.
    pub id: String,
    /// Which parts.
    pub of: PartOf,
    /// What happens.
    pub what: String,
    /// What to do.
    #[serde(rename = "do")]
    pub advice: String,
}

/// Which parts of contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOf {
    /// Calls that failed, with their results.
    FailedCalls,
}

/// Something that people try.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The policy.
    pub policy: String,
    /// What is set.
    pub set: Vec<String>,
    /// In plain words.
    pub name: String,
}

impl Sheet {
    /// Every replay that the page needs, each once: the policy and what is set.
    pub fn replays(&self) -> Vec<(String, Vec<String>)> {
        let settings = self
            .replayed
            .iter()
            .flat_map(|one| one.values.iter().map(|value| (one.policy.clone(), vec![format!("{}={value}", one.key)])));
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for replay in settings.chain(self.tried.iter().map(|one| (one.policy.clone(), one.set.clone()))) {
            if !all.contains(&replay) {
                all.push(replay);
            }
        }
        all
    }
}
