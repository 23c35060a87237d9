//! The sheet `rules/findings.toml`: numbers of the first page, and the words of its findings.

use serde::Deserialize;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::cost::outcomes::{FAILED, READ_AGAIN};
use crate::logs::trace::Place;
use crate::whatif::client::thresholds::{ClientThresholds, Results};
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::prompt_cache::params::CacheLifetime;

/// The sheet.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct FindingThresholds {
    /// Most findings of a page.
    pub findings_max: usize,
    pub names_max: usize,
    pub sessions_drawn: usize,
    pub points_drawn: usize,
    pub tools_drawn: usize,
    pub follow_ups_drawn: usize,
    /// Days of a page, if nothing else is asked for.
    pub days: u32,
    pub ahead_hours_max: u32,
    /// Share of a finding that one place must have to be named.
    pub most_share: f64,
    pub month_days_min: i64,
    pub days_per_month: f64,
    pub share_min: f64,
    pub lately: Lately,
    pub sessions_listed: usize,
    /// Findings of which nothing follows that a page tells.
    pub nothing_to_set_max: usize,
    pub window: GrownContexts,
    pub lifetime: Vec<CacheFinding>,
    pub result: Vec<LongResult>,
    pub miss: Vec<Miss>,
    pub unread: UnreadCache,
    pub unwritten: UnwrittenCache,
    pub part: Vec<ContextPart>,
    pub images: Images,
    /// MCP servers that nobody calls.
    pub servers: Servers,
    pub hooks: Hooks,
    pub subagents: Subagents,
    /// Client versions that lose the cache.
    pub old_versions: OldVersions,
    /// What may not pay.
    pub tried: Vec<TriedSetting>,
    /// What the client shows of long results.
    #[serde(skip)]
    pub limits: Option<Results>,
}

/// What the last sessions have to say of something before it is over.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Lately {
    /// Least sessions without it.
    pub sessions_min: u64,
    /// Greatest chance that they are last without a reason.
    pub chance_max: f64,
    /// Least requests of such a session, as a share of those of a session with it (the one in the middle).
    pub size_share_min: f64,
}

/// Contexts that grow too far.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct GrownContexts {
    pub id: String,
    pub rule: String,
    pub what: String,
    /// The same where none of the requests that save is counted.
    pub what_below: String,
    /// The lever where it holds with some models only.
    pub model_lever: String,
    pub so: String,
}

/// A lifetime of the prompt cache that pays.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct CacheFinding {
    pub id: String,
    pub of: ThreadKind,
    pub value: CacheLifetime,
    pub rule: String,
    pub what: String,
}

/// Whose cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadKind {
    Main,
    Subagents,
}

/// Results of tools that are longer than need be.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct LongResult {
    pub id: String,
    pub of: ResultOf,
    pub what: String,
    pub lever: String,
    pub so: String,
}

/// Whose results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultOf {
    Bash,
    /// Tools of MCP servers.
    Mcp,
    /// Readings of files.
    Read,
}

/// Cache misses of one cause.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Miss {
    pub cause: Cause,
    /// Its name in the finding's, if the logs' own word for it says nothing.
    pub id: Option<String>,
    pub of: Option<ThreadKind>,
    /// Not told beside the finding of this name.
    pub unless: Option<String>,
    /// The rule of `tune claude-settings` that owns the lifetime of an hour which would have spared it, where it was written for
    /// five minutes and came back within the hour.
    pub spared_by: Option<String>,
    /// Whether somebody can do something about it.
    #[serde(default = "yes")]
    pub is_habit: bool,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
    /// The client version from which on that is done.
    pub repaired_in: Option<String>,
    /// What is said then.
    #[serde(default)]
    pub repaired: String,
}

fn yes() -> bool {
    true
}

impl ThreadKind {
    /// That of a thread that was recorded there.
    pub fn of(place: Place) -> Self {
        if place == Place::Main { Self::Main } else { Self::Subagents }
    }
}

/// Threads that never read what they write to the cache.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct UnreadCache {
    pub id: String,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
    /// Misses of a thread that no pause explains.
    pub misses_min: u64,
}

/// Threads without any cache.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct UnwrittenCache {
    pub id: String,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
    /// Requests of a thread that are long enough to be cached.
    pub requests_min: u64,
    /// How names of models begin that are known to cache.
    pub models: String,
}

/// Images and documents.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Images {
    pub id: String,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
}

/// MCP servers that nobody calls.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Servers {
    pub id: String,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
    pub sessions_min: u64,
    /// Tools that use servers without a call of their tools.
    pub resource_tools: Vec<String>,
}

/// Hooks.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Hooks {
    pub id: String,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
    /// Waiting is told from so many seconds on, on a day with requests.
    pub seconds_a_day_min: f64,
}

/// Subagents on expensive models.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Subagents {
    pub id: String,
    pub what: String,
    pub lever: String,
    pub value: String,
    pub so: String,
    pub model: String,
    /// Most that a request would cost with it, as a share of what it cost.
    pub cost_share_max: f64,
    /// Kinds of agents that no setting changes.
    pub without: Vec<String>,
}

/// Client versions that lose the cache more often than newer ones.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct OldVersions {
    pub id: String,
    pub what: String,
    /// What to do; `{newest}` stands for the newest version, `{own}` and `{theirs}` for shares of the input.
    #[serde(rename = "do")]
    pub advice: String,
    pub causes: Vec<Cause>,
    /// What is said beside it of such misses that a client in use has all repairs of.
    pub beside: String,
    pub in_use_days: i64,
}

/// Parts of contexts that need not be there.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct ContextPart {
    pub id: String,
    pub of: PartOf,
    pub what: String,
    #[serde(rename = "do")]
    pub advice: String,
}

/// Which parts of contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOf {
    /// Calls that failed, with their results.
    FailedCalls,
    /// Readings of files whose text was there already.
    ReadAgain,
}

impl PartOf {
    /// The name of its calls where the bill is shared out by `outcome`.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::FailedCalls => FAILED,
            Self::ReadAgain => READ_AGAIN,
        }
    }
}

/// Something that people try.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct TriedSetting {
    pub policy: String,
    pub set: Vec<String>,
    /// In plain words.
    pub name: String,
}

impl FindingThresholds {
    /// Reads the sheet, and how long results are tried.
    pub fn load(data: &Data) -> Result<Self> {
        let thresholds: Self = data.parsed("findings.toml")?;
        Ok(Self { limits: Some(ClientThresholds::load(data)?.results), ..thresholds })
    }
}
