//! Keys of the configuration that mean nothing to devboy: told to people and to programs.

use serde_json::json;

use crate::context::Context;
use crate::error::Result;
use crate::settings::SettingsFile;

/// Tells about keys of the file that mean nothing to devboy.
pub fn warn_unknown(file: &SettingsFile, context: &mut Context<'_>) -> Result<()> {
    for warning in &file.warnings {
        writeln!(context.err, "# warning: {}:{}: {}", file.path.display(), warning.line, warning.message)?;
    }
    Ok(())
}

/// The file's warnings for JSON.
pub fn warnings_json(file: &SettingsFile) -> serde_json::Value {
    let row = |warning: &crate::settings::Warning| json!({ "line": warning.line, "key": warning.key, "message": warning.message, "suggestion": warning.suggestion });
    file.warnings.iter().map(row).collect()
}
