//! The address of one key in the configuration, from the root down; it prints the way it would be typed in TOML.

use std::fmt;
use std::str::FromStr;

use toml_edit::Key;

use crate::base::error::{Error, Result};

/// Path of a key: `["tools", "mcp__a b", "cost_model"]` is `tools."mcp__a b".cost_model`.
///
/// A segment below a list is the position of an element: `tools.Read.follow_up.0.probability`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyPath(pub Vec<String>);

impl KeyPath {
    /// The path one step further down.
    #[must_use]
    pub fn child(&self, segment: impl Into<String>) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment.into());
        Self(segments)
    }

    /// The path one step up; `None` at the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// The last segment; `None` at the root.
    pub fn leaf(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// Whether this is `ancestor` itself or lies below it.
    pub fn starts_with(&self, ancestor: &Self) -> bool {
        self.0.starts_with(&ancestor.0)
    }

    /// What remains below `ancestor`; the whole path when it does not lie below.
    #[must_use]
    pub fn below(&self, ancestor: &Self) -> Self {
        Self(self.0.strip_prefix(ancestor.0.as_slice()).unwrap_or(&self.0).to_vec())
    }

    /// This path and all above it, longest first, without the root.
    pub fn upwards(&self) -> impl Iterator<Item = Self> + '_ {
        (1..=self.0.len()).rev().map(|length| Self(self.0[..length].to_vec()))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            write!(f, "{}", Key::new(segment))?;
        }
        Ok(())
    }
}

impl FromStr for KeyPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let keys = Key::parse(text).map_err(|cause| {
            Error::usage(format!("`{text}` is not a configuration key: {}", cause.message()))
                .hint("write keys as in TOML, for example tools.\"mcp__a b\".speculate")
        })?;
        Ok(Self(keys.iter().map(|key| key.get().to_owned()).collect()))
    }
}

impl From<&[&str]> for KeyPath {
    fn from(segments: &[&str]) -> Self {
        Self(segments.iter().map(|segment| (*segment).to_owned()).collect())
    }
}

impl<const N: usize> From<[&str; N]> for KeyPath {
    fn from(segments: [&str; N]) -> Self {
        Self::from(segments.as_slice())
    }
}
