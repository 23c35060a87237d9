//! Owns Claude Code's own `settings.json`: which levers it has, where its files are, and how one is changed without
//! disturbing a byte that nobody asked to change.

pub mod levers;
