//! Where the configuration is, and how a command reads it.

use std::path::PathBuf;

use crate::base::error::{Error, Result};
use crate::base::visible::{Shown as _, visible};
use crate::report::numbers;
use crate::settings::SettingsFile;
use crate::shell::context::Context;

/// The configuration file: the one named, else `DEVBOY_CONFIG`, else the default.
pub fn config_path(named: Option<&PathBuf>, context: &Context<'_>) -> Result<PathBuf> {
    named.cloned().or_else(|| context.env.config_file()).ok_or_else(|| {
        Error::failed("no place for the configuration: HOME is not set").hint("name the file, or set DEVBOY_CONFIG")
    })
}

/// Warnings that are told one by one; the rest is counted.
const TOLD_MAX: usize = 20;

/// Tells about keys of the file that mean nothing to devboy.
pub fn warn_unknown(file: &SettingsFile, context: &mut Context<'_>) -> Result<()> {
    for warning in file.warnings.iter().take(TOLD_MAX) {
        writeln!(context.err, "# warning: {}:{}: {}", file.path.shown(), warning.line, visible(&warning.message))?;
    }
    if let Some(more) = file.warnings.len().checked_sub(TOLD_MAX).filter(|more| *more > 0) {
        let more = numbers::counted(more as u64, "more warning");
        writeln!(context.err, "# warning: {more} about {}; its JSON report lists them all", file.path.shown())?;
    }
    Ok(())
}
