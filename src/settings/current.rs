//! The configuration as rules see it: what holds, what a person wrote, what is pinned.

use toml_edit::Value;

use crate::base::key_path::KeyPath;

/// A view of the effective configuration.
pub trait Current {
    /// The value that holds for a key, from the file or built in.
    fn value(&self, key: &KeyPath) -> Option<Value>;

    /// The line of the file in which the key stands; none when the value is built in or absent.
    fn line(&self, key: &KeyPath) -> Option<usize>;

    /// Whether the key, or a table around it, is marked `# pin`.
    fn pinned(&self, key: &KeyPath) -> bool;

    /// The names of the entries below a table, built-in ones included, sorted.
    fn entries(&self, table: &KeyPath) -> Vec<String>;
}
