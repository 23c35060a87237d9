//! Owns Claude Code's own `settings.json`: which levers it has, where its files are and which of them wins, and how one is
//! changed without disturbing a byte that nobody asked to change.

pub mod file;
pub mod layers;
pub mod levers;
pub mod reversal;
pub mod strict;
