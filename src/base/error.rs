//! The one error type: what went wrong, where, and what to do about it. It ends the command; malformed input is counted instead
//! ([`crate::base::damage`]).

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use crate::base::visible::{Shown as _, visible};

/// Result with devboy's own [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Which exit code an error leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The command could not be carried out (exit 1).
    Failed,
    /// The command line itself makes no sense (exit 2).
    Usage,
    /// The reader of our output has gone away; the program ends quietly (exit 0).
    BrokenPipe,
}

/// A failure with its place and a hint.
#[derive(Debug)]
pub struct Error {
    /// Decides the exit code.
    pub kind: FailureKind,
    /// What went wrong, with `file:line` where there is one. No trailing full stop.
    pub message: String,
    /// What the user can do. May be several lines.
    pub hint: Option<String>,
}

impl Error {
    /// The command failed for the reason given.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Failed, message: message.into(), hint: None }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, message: message.into(), hint: None }
    }

    /// An operating-system failure on `path`; `doing` is a gerund ("writing").
    pub fn io(doing: &str, path: &Path, cause: &std::io::Error) -> Self {
        Self::failed(format!("{doing} {}: {cause}", path.shown()))
    }

    /// A file that was named and cannot be read.
    pub fn unread(path: &Path, cause: &std::io::Error) -> Self {
        Self::io("reading", path, cause).hint(match cause.kind() {
            ErrorKind::NotFound => "name a file that is there",
            ErrorKind::PermissionDenied => "you may not read it: change its mode, or name another file",
            ErrorKind::Unsupported => "name the file itself",
            _ => "name another file",
        })
    }

    /// The same error with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&self.message))?;
        if let Some(hint) = &self.hint {
            for line in hint.lines() {
                write!(f, "\n  hint: {}", visible(line))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    /// For writes to the command's own output. Files go through [`Error::io`], which names the path.
    fn from(cause: std::io::Error) -> Self {
        if cause.kind() == ErrorKind::BrokenPipe {
            return Self { kind: FailureKind::BrokenPipe, message: "output closed".into(), hint: None };
        }
        Self::failed(format!("writing output: {cause}"))
    }
}
