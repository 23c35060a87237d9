//! Links between tools by the values that pass from a result to an argument.

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

/// How often values that an answer of `from` listed first became an argument of `to` for the first time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinedProjection {
    /// Tool that answered.
    pub from: String,
    /// Tool that was called.
    pub to: String,
    /// Path of keys in its input.
    pub argument: String,
    /// `path`, `url` or `id` in text, else the JSON path, which begins with `$`.
    pub extractor: String,
    /// Answers with such a list after which `to` was called with a new value of the argument.
    pub opportunities: u64,
    /// Of these, such a value stood in the list.
    pub hits: u64,
    /// It was the first that had not been used before.
    pub top1: u64,
    /// It was among the first three.
    pub top3: u64,
    /// Hits that lists of other sessions would have had.
    pub chance: f64,
    /// Sessions with opportunities.
    pub sessions_seen: u64,
    /// Sessions with hits.
    pub sessions: u64,
    /// Different values among the hits.
    pub values: u64,
    /// Values of a chain that pass only when it is read forwards.
    pub forward: u64,
    /// Values of a chain that pass only when it is read backwards.
    pub reversed: u64,
    /// Hits whose call had no other argument.
    pub sole: u64,
    /// Probability of so many hits by chance: the larger of that by session and that by answer.
    pub p: f64,
    /// Why it is no link; none if it is one.
    pub held: Option<Hold>,
    /// The link as a configuration can say it.
    pub spelling: Option<Spelling>,
}

impl MinedProjection {
    /// "54 of 79 new values, 27 as the first and 39 among the first three, by chance 1.7, in 30 sessions"
    pub fn counts(&self) -> String {
        let Self { hits, opportunities, top1, top3, chance, sessions, .. } = self;
        format!(
            "{hits} of {opportunities} new values, {top1} as the first and {top3} among the first three, \
             by chance {chance:.1}, in {sessions} sessions"
        )
    }
}

/// A link in the words of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spelling {
    /// What to take from the answer.
    pub projection: String,
    /// Which argument receives it.
    pub projection_arg: String,
}

/// Why a combination is no link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumMessage, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Hold {
    #[strum(message = "in too few sessions")]
    Sessions,
    #[strum(message = "could be chance among all that was tested")]
    Significance,
    #[strum(message = "lists of other sessions do nearly as well")]
    Chance,
    #[strum(message = "too few of the new values stood in the list")]
    Rate,
    #[strum(message = "too few different values")]
    Values,
    #[strum(message = "the list is always the same")]
    Constant,
    #[strum(message = "values pass backwards in time as well")]
    Reversal,
    #[strum(message = "another list explains it")]
    Explained,
}

impl Hold {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}
