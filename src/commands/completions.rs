//! `devboy completions SHELL`

use crate::base::error::Result;
use crate::commands::cli;
use crate::shell::context::Context;

/// Print a completion script for a shell.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The shell.
    shell: clap_complete::Shell,
}

/// Prints the script.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "devboy", &mut script);
    Ok(context.out.write_all(&script)?)
}
