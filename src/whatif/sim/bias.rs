//! Where the approximations of each policy lean, as data: whoever reads a figure should know in which direction it errs.

use serde::Deserialize;

use crate::base::error::{Error, Result};

/// The sheet `rules/policies/bias.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bias {
    /// One approximation each, in the order of print.
    pub leaning: Vec<Leaning>,
}

/// One approximation.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaning {
    /// The policies that it holds for; [`ALL`] for those that send contexts again.
    pub policy: Vec<String>,
    /// What is taken for granted.
    pub text: String,
    /// In which direction that moves the figures.
    pub leans: String,
}

/// Every policy that sends contexts again.
pub const ALL: &str = "all";

impl Bias {
    /// Reads the sheet; `place` is where it stands, for messages.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        toml_edit::de::from_str(text).map_err(|cause| {
            Error::failed(format!("{place}: {cause}")).hint("compare it with the sheet that devboy ships")
        })
    }

    /// Those of some policies, each once: the approximation, then where it leans. [`ALL`] counts where they send contexts.
    pub fn of(&self, policies: &[&str], sends_contexts: bool) -> Vec<String> {
        let holds = |name: &String| (sends_contexts && name == ALL) || policies.contains(&name.as_str());
        let fitting = self.leaning.iter().filter(|one| one.policy.iter().any(holds));
        fitting.map(|one| format!("{} – {}", one.text, one.leans)).collect()
    }
}
