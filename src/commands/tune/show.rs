//! `devboy tune show`: what holds, and where each value comes from.

use std::path::PathBuf;

use serde_json::json;
use toml_edit::Value;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::visible::Shown as _;
use crate::commands::config::{config_path, tell_file, warn_of_models};
use crate::planner::value_models::{LayerPrecedence, Level, ModelLayers, ModelProblem, Severity};
use crate::report::table::{Table, TableFormat};
use crate::rules::report as findings;
use crate::settings::annotations::Annotations;
use crate::settings::{Effective, Origin, SettingsFile, is_idle};
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;

/// Print the effective configuration and where each value comes from.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration file. Default: $DEVBOY_CONFIG, else devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Resolves the file and prints every value.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let path = config_path(args.config.as_ref(), context)?;
    let file = SettingsFile::load(&path)?;
    if !file.existed && args.config.is_some() {
        return Err(Error::failed(format!("{} does not exist", path.shown()))
            .hint("without --config, `devboy tune show` prints the built-in values"));
    }
    let effective = Effective::resolve(&file)?;
    if !args.output.quiet {
        tell_file(&file, context)?;
        warn_models(&file, context)?;
    }
    let rows = effective.leaves;
    match args.output.form() {
        TableFormat::Json => {
            let value = |(key, value, origin): &(_, _, Origin)| {
                let key: &KeyPath = key;
                json!({ "key": key.to_string(), "value": findings::plain(value), "origin": origin_word(origin),
                        "line": if let Origin::File { line } = origin { Some(line) } else { None },
                        "effect": !is_idle(key) })
            };
            args.output.write_json(
                "tune show",
                json!({
                    "config": path.shown(),
                    "exists": file.existed,
                    "values": rows.iter().map(value).collect::<Vec<_>>(),
                }),
                context,
            )?;
        }
        TableFormat::Table => {
            // Dotted keys with their origin as a comment: readable, and valid TOML.
            for (key, value, origin) in &rows {
                let place = match origin {
                    Origin::Default => "built in".to_owned(),
                    Origin::File { line } => format!("line {line}"),
                };
                let idle = if is_idle(key) { ", without effect" } else { "" };
                let value = value.to_string();
                let one_line = value.lines().map(str::trim).collect::<Vec<_>>().join(" ");
                writeln!(context.out, "{:<58} # {place}{idle}", format!("{key} = {}", one_line.trim()))?;
            }
        }
        form => {
            let mut table = Table::new(&["key", "value", "origin", "effect"]);
            for (key, value, origin) in &rows {
                let effect = if is_idle(key) { "none" } else { "" };
                let value = value.to_string().trim().to_owned();
                table.row([key.to_string(), value, origin_word(origin), effect.to_owned()]);
            }
            table.write(context.out, form, context.width)?;
        }
    }
    Ok(())
}

/// Tells what is wrong with the value models of `[tools]`: probabilities that are none, circles of prerequisites, blocks
/// that hide shipped links without a list of their own.
fn warn_models(file: &SettingsFile, context: &mut Context<'_>) -> Result<()> {
    let annotations = Annotations::load(&Data::default())?;
    let tools = file.get(&KeyPath::from(["tools"]));
    let named: Vec<&str> = tools.iter().filter_map(Value::as_inline_table).flatten().map(|(name, _)| name).collect();
    let mut layers = ModelLayers::default();
    layers.annotate_reachable(named, |tool| {
        annotations.of(tool).map(|annotation| (annotation.model, annotation.origin))
    })?;
    layers.user(file);
    let problems = layers.resolve(LayerPrecedence::WholeModel)?.problems;
    // A list that a person (or devboy) wrote is meant to stand in for the shipped one.
    let is_left_out = |problem: &ModelProblem| {
        let is_of_user = problem.source.as_ref().is_some_and(|source| source.level == Level::User);
        is_of_user && file.get(&problem.key).is_none()
    };
    let is_told = |problem: &&ModelProblem| problem.severity == Severity::Error || is_left_out(problem);
    warn_of_models(problems.iter().filter(is_told), context)
}

fn origin_word(origin: &Origin) -> String {
    match origin {
        Origin::Default => "built-in".to_owned(),
        Origin::File { .. } => "file".to_owned(),
    }
}
