//! `devboy tune rules`: the documentation of the rules, printed from the rules themselves.

use std::path::PathBuf;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::rules::documentation;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Print what each rule looks at, why, when it stays quiet, and its numbers (Markdown).
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Take data files (thresholds, annotations) from here instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<PathBuf>,
}

/// Prints the documentation.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let text = documentation(&Data::new(args.rules_dir.as_deref())?)?;
    write!(context.out, "{text}")?;
    Ok(Exit::Done)
}
