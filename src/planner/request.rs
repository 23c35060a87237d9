//! A call that could be made ahead: the tool and the one argument that a projection fixes, and the host that it goes to, by
//! which rate limits are counted.
//!
//! Refuses a question that keeps coming back empty: only the very same one, only for a while, and only on evidence.

use std::collections::BTreeMap;

use crate::planner::numbers::FailFastNumbers;
use crate::settings::tool_model::ToolModel;

/// What an argument is set to: its text, or its hash where the text is gone. The two never compare equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArgumentValue {
    /// Canonical text: paths normalised, numbers in digits.
    Text(String),
    /// A hash of the canonical text, made by whoever read it.
    Hash(u64),
}

/// A named argument and its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Argument {
    /// Name of the argument on the tool that is called.
    pub name: String,
    /// What it is set to.
    pub value: ArgumentValue,
}

impl Argument {
    /// An argument of which the text is known.
    pub fn text(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: ArgumentValue::Text(value.into()) }
    }

    /// An argument of which only the hash is known.
    pub fn hash(name: impl Into<String>, value: u64) -> Self {
        Self { name: name.into(), value: ArgumentValue::Hash(value) }
    }
}

/// A call: equal requests get equal answers as long as nothing changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Live name of the tool.
    pub tool: String,
    /// Its argument.
    pub argument: Argument,
}

/// An argument made out of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Projected {
    /// The argument.
    pub argument: Argument,
    /// Probability that it is this one, given that the tool comes next, 0 … 1.
    pub share: f64,
    /// Probability of exactly this call, where more is known than the link says; then the share is 1.
    pub probability: Option<f64>,
}

impl Projected {
    /// An argument with the probability of exactly this call.
    pub fn certain(argument: Argument, probability: f64) -> Self {
        Self { argument, share: 1.0, probability: Some(probability) }
    }

    /// Arguments of which nobody knows which is likelier: they share the probability evenly.
    pub fn evenly(arguments: Vec<Argument>) -> Vec<Self> {
        let share = 1.0 / arguments.len().max(1) as f64;
        arguments.into_iter().map(|argument| Self { argument, share, probability: None }).collect()
    }
}

/// The host whose limit a request counts against: that of its `url`, else the one that the value model names.
pub fn host_for(request: &Request, model: &ToolModel) -> Option<String> {
    let of_url = match &request.argument.value {
        ArgumentValue::Text(text) if request.argument.name == "url" => host_of(text),
        _ => None,
    };
    of_url.or_else(|| model.rate_limit_host.as_ref().map(|host| host.to_ascii_lowercase()))
}

/// The host of a URL in lower case, without user and port; IPv6 addresses keep their brackets. `None` without a scheme
/// or a host.
pub fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let host = match place.find(']').filter(|_| place.starts_with('[')) {
        Some(end) => &place[..=end],
        None => place.rsplit_once(':').map_or(place, |(host, _)| host),
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// What a call came back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Text of so many bytes; with several blocks those of the largest.
    Text {
        /// UTF-8 bytes.
        bytes: u64,
    },
    /// An image, a reference, a document: something, although it has no text.
    NonText,
    /// An error: says nothing about whether there is an answer.
    Failed,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs; its answer is to be reported.
    Run,
    /// It does not run, and nothing else may be counted as saved for it.
    Refused,
}

#[derive(Debug, Clone, Copy, Default)]
struct Streak {
    empties: u32,
    refusals: u32,
}

/// The streaks of one context, by tool and hash of the canonical arguments.
#[derive(Debug)]
pub struct FailFast<'n> {
    numbers: &'n FailFastNumbers,
    streaks: BTreeMap<(String, u64), Streak>,
}

impl<'n> FailFast<'n> {
    /// No streaks yet.
    pub fn new(numbers: &'n FailFastNumbers) -> Self {
        Self { numbers, streaks: BTreeMap::new() }
    }

    /// Whether the last answers to this question were empty, as many as `after_n` asks for. Never without `after_n`; 0
    /// counts as 1.
    pub fn is_armed(&self, tool: &str, arguments: u64, after_n: Option<u32>) -> bool {
        let empties = self.streaks.get(&(tool.to_owned(), arguments)).map_or(0, |streak| streak.empties);
        after_n.is_some_and(|after_n| empties >= after_n.max(1))
    }

    /// Decides about a call, to be asked once for each. After `refusals_max` refusals the question is let through, to
    /// see whether it has an answer by now.
    pub fn call(&mut self, tool: &str, arguments: u64, after_n: Option<u32>) -> Verdict {
        if !self.is_armed(tool, arguments, after_n) {
            return Verdict::Run;
        }
        let streak = self.streaks.entry((tool.to_owned(), arguments)).or_default();
        if streak.refusals >= self.numbers.refusals_max {
            streak.refusals = 0;
            return Verdict::Run;
        }
        streak.refusals += 1;
        Verdict::Refused
    }

    /// Takes in the answer to a call that ran.
    pub fn answered(&mut self, tool: &str, arguments: u64, answer: Answer) {
        let question = (tool.to_owned(), arguments);
        match answer {
            Answer::Failed => {}
            Answer::Text { bytes } if bytes <= self.numbers.empty_bytes_max => {
                let streak = self.streaks.entry(question).or_default();
                streak.empties = streak.empties.saturating_add(1);
            }
            Answer::Text { .. } | Answer::NonText => drop(self.streaks.remove(&question)),
        }
    }
}
