//! What all commands share: arguments, exit codes, streams and progress.

pub mod arguments;
pub mod context;
pub mod window;
