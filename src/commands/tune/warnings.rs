//! What is odd about a configuration: told to people and to programs.

use serde_json::json;
use toml_edit::Value;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::visible::visible;
use crate::planner::value_models::{LayerPrecedence, ModelLayers, Severity};
use crate::rules::annotations::Annotations;
use crate::settings::SettingsFile;
use crate::shell::context::Context;

/// Tells what is wrong with the value models of `[tools]`, laid over the shipped ones: links that lead nowhere or to tools
/// that change something, probabilities that are none, circles of prerequisites.
pub fn warn_models(file: &SettingsFile, data: &Data, context: &mut Context<'_>) -> Result<()> {
    let annotations = Annotations::load(data)?;
    let tools = file.get(&KeyPath::from(["tools"]));
    let named: Vec<&str> = tools.iter().filter_map(Value::as_inline_table).flatten().map(|(name, _)| name).collect();
    let mut layers = ModelLayers::default();
    layers.annotate_reachable(named, |tool| {
        annotations.of(tool).map(|annotation| (annotation.model, annotation.origin))
    })?;
    layers.user(file);
    for problem in layers.resolve(LayerPrecedence::ByField)?.problems {
        // A list that a person (or devboy) wrote is meant to stand in for the shipped one.
        if problem.severity == Severity::Error {
            let place = problem.source.as_ref().map_or_else(String::new, |source| format!("{}: ", source.place));
            writeln!(context.err, "# warning: {place}`{}` {}", problem.key, visible(&problem.message))?;
        }
    }
    Ok(())
}

/// The file's warnings for JSON.
pub fn warnings_json(file: &SettingsFile) -> serde_json::Value {
    let row = |warning: &crate::settings::Warning| json!({ "line": warning.line, "key": warning.key, "message": warning.message, "suggestion": warning.suggestion });
    file.warnings.iter().map(row).collect()
}
