//! Where the configuration is, and how a command reads it.

use std::path::PathBuf;

use crate::base::error::{Error, Result};
use crate::base::visible::{Shown as _, visible};
use crate::planner::value_models::ModelProblem;
use crate::report::numbers;
use crate::settings::formats::load_config;
use crate::settings::{Effective, Settings, SettingsFile};
use crate::shell::context::Context;

/// The configuration file: the one named, else `DEVBOY_CONFIG`, else the default.
pub fn config_path(named: Option<&PathBuf>, context: &Context<'_>) -> Result<PathBuf> {
    named.cloned().or_else(|| context.env.config_file()).ok_or_else(|| {
        Error::failed("no place for the configuration: HOME is not set").hint("set HOME, or DEVBOY_CONFIG to the file")
    })
}

/// What the usual configuration says. An error if there is no place for it, or it is broken.
pub fn settings(context: &Context<'_>) -> Result<Settings> {
    Ok(Effective::resolve(&usual_file(context)?)?.settings)
}

/// The usual configuration. An error if there is no place for it, or it is broken.
pub fn usual_file(context: &Context<'_>) -> Result<SettingsFile> {
    load_config(&config_path(None, context)?, false)
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

/// Tells which file holds, and about keys in it that mean nothing to devboy.
pub fn tell_file(file: &SettingsFile, context: &mut Context<'_>) -> Result<()> {
    let state = if file.existed { "" } else { " (does not exist: built-in values)" };
    writeln!(context.err, "# config: {}{state}", file.path.shown())?;
    warn_unknown(file, context)
}

/// Tells what is odd about value models.
pub fn warn_of_models<'p>(problems: impl Iterator<Item = &'p ModelProblem>, context: &mut Context<'_>) -> Result<()> {
    for problem in problems {
        let place = problem.source.as_ref().map_or_else(String::new, |source| format!("{}: ", source.place));
        writeln!(context.err, "# warning: {place}`{}` {}", problem.key, visible(&problem.message))?;
    }
    Ok(())
}
