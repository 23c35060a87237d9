//! Where the configuration is, and how a command reads it.

use std::path::PathBuf;

use crate::context::Context;
use crate::error::{Error, Result};

/// The configuration file: the one named, else `DEVBOY_CONFIG`, else the default.
pub fn config_path(named: Option<&PathBuf>, context: &Context<'_>) -> Result<PathBuf> {
    named.cloned().or_else(|| context.env.config_file()).ok_or_else(|| {
        Error::failed("no place for the configuration: HOME is not set").hint("name the file, or set DEVBOY_CONFIG")
    })
}
