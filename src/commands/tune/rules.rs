//! `devboy tune rules`: the documentation of the rules, printed from the rules themselves.

use std::path::PathBuf;

use serde_json::json;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::report::table::{TableBuilder, TableFormat};
use crate::rules::{DocumentedRule, documentation, documented};
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;

/// Print what each rule looks at, why, when it stays quiet, and its numbers (Markdown).
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only this rule, by its id (S3).
    #[arg(value_name = "RULE")]
    rule: Option<String>,
    /// Take data files (thresholds, annotations) from here instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Prints the documentation.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let data = Data::new(args.rules_dir.as_deref())?;
    let asked = args.rule.as_deref();
    match args.output.form() {
        TableFormat::Table | TableFormat::Md if asked.is_some() => {
            documented(&data, asked)?.iter().try_for_each(|rule| write!(context.out, "{}", rule.section()))?;
        }
        TableFormat::Table | TableFormat::Md => write!(context.out, "{}", documentation(&data)?)?,
        TableFormat::Csv => TableBuilder::of(documented(&data, asked)?)
            .text("id", |rule| rule.id.to_owned())
            .text("name", |rule| rule.name.to_owned())
            .text("summary", |rule| rule.summary.to_owned())
            .text("sheet", |rule| rule.sheet.place.clone())
            .table()
            .write(context.out, TableFormat::Csv, None)?,
        TableFormat::Json => {
            let row = |rule: &DocumentedRule| {
                let DocumentedRule { id, name, summary, docs, sheet } = rule;
                json!({ "id": id, "name": name, "summary": summary, "docs": docs, "sheet": sheet.place, "numbers": sheet.text })
            };
            let rules: Vec<_> = documented(&data, asked)?.iter().map(row).collect();
            args.output.write_json("tune rules", json!({ "rules": rules }), context)?;
        }
    }
    Ok(())
}
