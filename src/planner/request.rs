//! A call that could be made ahead: the tool and the one argument that a projection fixes.

/// A named argument and its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedArgument {
    /// Name of the argument on the tool that is called.
    pub name: String,
    /// Hash of the canonical text that it is set to (paths normalised, numbers in digits); the text is gone.
    pub value: u64,
}

impl NamedArgument {
    /// An argument.
    pub fn new(name: impl Into<String>, value: u64) -> Self {
        Self { name: name.into(), value }
    }
}

/// A call: equal requests get equal answers as long as nothing changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// Live name of the tool.
    pub tool: String,
    /// Its argument.
    pub argument: NamedArgument,
}

/// An argument made out of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Projected {
    /// The argument.
    pub argument: NamedArgument,
    /// Probability that it is this one, given that the tool comes next, 0 … 1.
    pub share: f64,
    /// Probability of exactly this call, where more is known than the link says; then the share is 1.
    pub probability: Option<f64>,
}

impl Projected {
    /// An argument with the probability of exactly this call.
    pub fn certain(argument: NamedArgument, probability: f64) -> Self {
        Self { argument, share: 1.0, probability: Some(probability) }
    }

    /// Arguments of which nobody knows which is likelier: they share the probability evenly.
    pub fn evenly(arguments: Vec<NamedArgument>) -> Vec<Self> {
        let share = 1.0 / arguments.len().max(1) as f64;
        arguments.into_iter().map(|argument| Self { argument, share, probability: None }).collect()
    }
}
