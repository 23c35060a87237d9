//! The numbers of `rules/formats.toml`.

use serde::Deserialize;

use crate::base::error::{Error, Result};
use crate::facts::encode::Params;

/// How bodies are written in other ways.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct FormatRules {
    /// See [`Params::numbered_every`].
    pub numbered_every: usize,
    /// Lines that one hint must stand for at least.
    pub range_lines_min: usize,
}

impl FormatRules {
    /// Reads the file; `origin` names it in errors.
    ///
    /// # Errors
    /// If the text does not fit, or a number makes no sense.
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let rules: Self = toml_edit::de::from_str(text).map_err(|cause| Error::failed(format!("{origin}: {cause}")))?;
        if rules.numbered_every == 0 || rules.range_lines_min < 2 {
            return Err(Error::failed(format!("{origin}: numbered_every is at least 1, range_lines_min at least 2")));
        }
        Ok(rules)
    }

    /// What encoders are told; the recursion depth is set per session.
    pub fn params(&self) -> Params {
        Params { recursion_depth: 0, numbered_every: self.numbered_every }
    }
}
