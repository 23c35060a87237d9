//! The forms in which aggregates leave devboy, and the file they go to.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::OutputArgs;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::report::table::{Color, Format};
use crate::settings::write_private_bytes;

/// How an aggregate is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Form {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values, all columns.
    Csv,
    /// Markdown, all columns.
    Md,
    /// Parquet, all columns with their types.
    Parquet,
}

/// How results are shown.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Output")]
pub struct ExportArgs {
    /// Form of the report.
    #[arg(long, value_enum, default_value_t)]
    pub format: Form,
    /// Short for `--format json`.
    #[arg(short, long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only what at least this many sessions have done; asked for before anything is shared.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub k_anonymity: u64,
    /// Show the names of MCP servers instead of pseudonyms.
    #[arg(long)]
    pub live_names: bool,
    /// No notes and no progress on stderr.
    #[arg(short, long)]
    pub quiet: bool,
    /// More notes on stderr.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Leave out what differs from run to run (the time of the report).
    #[arg(long)]
    pub reproducible: bool,
}

impl ExportArgs {
    /// The form asked for.
    pub fn form(&self) -> Form {
        if self.json { Form::Json } else { self.format }
    }

    /// The same as far as all commands share it.
    pub fn shared(&self) -> OutputArgs {
        OutputArgs {
            format: Format::default(),
            json: self.json,
            color: Color::default(),
            quiet: self.quiet,
            verbose: self.verbose,
            reproducible: self.reproducible,
        }
    }

    /// Sends what `write` writes to the file or to standard output.
    ///
    /// # Errors
    /// Whatever `write` or the disk says; Parquet does not go to a terminal.
    pub fn send(
        &self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut Vec<u8>, Option<u16>) -> Result<()>,
    ) -> Result<()> {
        if self.form() == Form::Parquet && self.output.is_none() && context.out_is_terminal {
            return Err(Error::usage("Parquet is not for a terminal").hint("name a file with --output FILE"));
        }
        let mut bytes = Vec::new();
        write(&mut bytes, context.width)?;
        match &self.output {
            None => Ok(context.out.write_all(&bytes)?),
            Some(path) => {
                write_private_bytes(path, &bytes)?;
                if !self.quiet {
                    writeln!(context.err, "# written: {}", path.display())?;
                }
                Ok(())
            }
        }
    }
}
