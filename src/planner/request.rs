//! A call that could be made ahead: the tool and the one argument that a projection fixes, and the host that it goes
//! to, by which rate limits are counted.

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
