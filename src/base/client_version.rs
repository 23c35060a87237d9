//! Versions of Claude Code, as far as one is older than another.

/// The numbers of a version, and whether it is the release: what is tried out before comes before it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClientVersion {
    numbers: Vec<u64>,
    is_release: bool,
}

impl ClientVersion {
    /// Reads "2.1.243", "2.1.243 (Claude Code)" or "2.1.243-beta.1"; none unless only numbers between dots stand before the first
    /// `-`, `+` or blank.
    pub fn parse(text: &str) -> Option<Self> {
        let (core, more) = text.split_at(text.find(['-', '+', ' ']).unwrap_or(text.len()));
        let numbers = core.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        // What stands behind a plus, or in brackets behind a blank, says nothing of the order.
        let is_release = more.trim().is_empty() || more.starts_with('+') || more.trim_start().starts_with('(');
        Some(Self { numbers, is_release })
    }
}
