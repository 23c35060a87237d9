//! Shows what would change in the file, in the form that `patch` and people read.

use similar::TextDiff;

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The unified diff from `old` to `new`; empty when they are equal. An empty `old` is a file that does not exist yet.
pub fn unified_diff(old: &str, new: &str, path: &str) -> String {
    if old == new {
        return String::new();
    }
    let before = if old.is_empty() { "/dev/null" } else { path };
    let after = format!("{path} (proposed)");
    TextDiff::from_lines(old, new).unified_diff().context_radius(CONTEXT).header(before, &after).to_string()
}
