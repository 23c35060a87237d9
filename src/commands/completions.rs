//! `devboy completions SHELL` and `devboy man`: the command line for shells, and for reading.

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

/// Prints the manual page, the subcommands' flags included.
pub fn man(context: &mut Context<'_>) -> Result<()> {
    let mut page = Vec::new();
    let mut command = cli::command();
    command.build();
    render(&command, &mut page)?;
    Ok(context.out.write_all(&page)?)
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    let mut own = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut own)?;
    page.extend_from_slice(with_help(&String::from_utf8_lossy(&own), command).as_bytes());
    // `help` has every command once more.
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        render(sub, page)?;
    }
    Ok(())
}

/// The text of a command with what prints the page of each subcommand in place of the name of a page of its own, as
/// `devboy-report(1)`, which nobody installs.
fn with_help(text: &str, command: &clap::Command) -> String {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    command.get_subcommands().fold(text.to_owned(), |text, sub| {
        let page = format!("{name}-{}(1)", sub.get_name()).replace('-', r"\-");
        let words = sub.get_bin_name().unwrap_or_default().replacen("devboy", "devboy help", 1).replace('-', r"\-");
        text.replace(&format!("\n{page}\n"), &format!("\n{words}\n"))
    })
}
