//! Client versions, to tell which definition of a tool was in force.

use std::fmt;

/// Numbers between dots.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(Vec<u32>);

impl Version {
    /// Reads `2.1.30`; anything behind a `-` or `+` does not count. None if it is no version.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(['-', '+']).next()?;
        numbers.split('.').map(|number| number.parse().ok()).collect::<Option<_>>().map(Self)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
    }
}
