//! `devboy man`

use crate::base::error::Result;
use crate::commands::cli;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Prints the manual page, the subcommands' flags included.
pub fn run(context: &mut Context<'_>) -> Result<Exit> {
    let mut page = Vec::new();
    let mut command = cli::command();
    command.build();
    render(&command, &mut page)?;
    context.out.write_all(&page)?;
    Ok(Exit::Done)
}

fn render(command: &clap::Command, page: &mut Vec<u8>) -> Result<()> {
    clap_mangen::Man::new(command.clone()).render(page)?;
    // `help` has every command once more.
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        render(sub, page)?;
    }
    Ok(())
}
