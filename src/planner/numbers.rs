//! The numbers of `rules/planner.toml` as types.

use serde::Deserialize;

use crate::base::bootstrap::Resampling;
use crate::logs::values::List;
use crate::settings::tool_model::{FollowUp, ValueClass};
use crate::telemetry::effectiveness::CountedBy;

/// All numbers of the planner; the file says where each comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PlannerThresholds {
    pub class_scores: ClassScores,
    /// The boost of what the user asks for.
    pub score: ScoreNumbers,
    pub candidates: CandidateNumbers,
    pub published: PublishedNumbers,
    /// The search for the optimum.
    pub exact: ExactNumbers,
    /// Arguments out of answers.
    pub projection: ProjectionNumbers,
    pub race: RaceNumbers,
    pub fail_fast: FailFastNumbers,
    pub texts: TextNumbers,
    pub judge: JudgeNumbers,
    pub backtest: PlannerBacktestNumbers,
    pub targets: Targets,
    pub resampling: Resampling,
}

impl PlannerThresholds {
    /// What recorded planners are counted by.
    pub fn counted_by(&self) -> CountedBy {
        CountedBy { bytes_per_token: self.published.bytes_per_token, declined_calls: self.judge.declined_calls }
    }
}

/// `[class_scores]`: worth before probability, 0 … 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ClassScores {
    critical: f64,
    supporting: f64,
    optional: f64,
    audit_only: f64,
}

impl ClassScores {
    /// The worth of a class.
    pub fn of(&self, class: ValueClass) -> f64 {
        match class {
            ValueClass::Critical => self.critical,
            ValueClass::Supporting => self.supporting,
            ValueClass::Optional => self.optional,
            ValueClass::AuditOnly => self.audit_only,
        }
    }
}

/// `[score]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ScoreNumbers {
    pub boost_max: f64,
}

/// `[candidates]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CandidateNumbers {
    pub probability_min: f64,
}

/// `[published]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PublishedNumbers {
    pub bytes_per_token: u32,
    pub recent_tools_max: usize,
    pub refused_tokens: u64,
    pub cited_events: u32,
}

/// `[exact]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ExactNumbers {
    pub items_max: usize,
}

/// `[projection]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProjectionNumbers {
    pub arguments_max: usize,
    /// After a web search.
    pub search_arguments_max: usize,
    pub pairs: Vec<ProjectionPair>,
}

impl ProjectionNumbers {
    /// The built-in extractor between two tools, if there is one.
    pub fn pair(&self, from: &str, to: &str) -> Option<&ProjectionPair> {
        self.pairs.iter().find(|pair| pair.from == from && pair.to == to)
    }

    /// The argument that a link fills; none if it has no projection. The built-in extractor of a pair decides alone.
    pub fn argument<'l>(&'l self, from: &str, link: &'l FollowUp) -> Option<&'l str> {
        let named = link.projection_arg.as_deref();
        match self.pair(from, &link.tool) {
            Some(pair) => named.or(Some(&pair.argument)),
            None => named.filter(|_| link.projection.is_some()),
        }
    }
}

/// `[[projection.pairs]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProjectionPair {
    /// The tool that answered.
    pub from: String,
    /// The tool that is called next.
    pub to: String,
    pub extractor: AnswerList,
    pub argument: String,
}

/// What an answer lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerList {
    Glob,
    /// Places in files.
    Grep,
    /// Hits of a web search.
    Search,
}

impl AnswerList {
    /// The list of what its published extractor takes of a text; none if it reads JSON only.
    pub fn taken(self) -> Option<&'static str> {
        match self {
            Self::Glob => Some(List::LINE),
            Self::Grep => Some(List::HEAD),
            Self::Search => None,
        }
    }
}

/// `[race]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RaceNumbers {
    pub per_host_max: u32,
    /// Latency of a tool of which nothing is known, in milliseconds.
    pub latency_unknown_ms: u64,
}

/// `[fail_fast]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FailFastNumbers {
    pub empty_bytes_max: u64,
    pub refusals_max: u32,
}

impl FailFastNumbers {
    /// Whether so many bytes of text are as good as none.
    pub fn is_empty(&self, bytes: u32) -> bool {
        u64::from(bytes) <= self.empty_bytes_max
    }
}

/// `[texts]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TextNumbers {
    pub argument_chars_max: usize,
}

/// `[judge]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct JudgeNumbers {
    /// Calls behind an answer within which a call must begin, in the first column: fewer than that were made in later
    /// messages than that of the answer and before its own, so that no message is cut apart.
    pub calls_near: u32,
    pub calls_far: u32,
    pub steps_near: u32,
    pub declined_calls: u32,
    pub file_arguments: Vec<String>,
    pub opened_arguments: Vec<String>,
    pub opened_recent: usize,
    pub ranks_max: usize,
}

/// `[backtest]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PlannerBacktestNumbers {
    pub train_share: f64,
}

/// `[targets]`: shares of 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Targets {
    /// Prefetches that are asked for, at least.
    pub hit_min: f64,
    /// Declines that are needed after all, at most.
    pub recall_loss_max: f64,
    /// Predictions that are exceeded by 30 % or more, at most.
    pub overrun_max: f64,
}
