//! What commands share: exit codes and arguments. A flag of one name means the same everywhere.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::base::error::Result;
use crate::logs::trace::Millis;
use crate::report::envelope;
use crate::report::table::{Color, TableFormat};
use crate::shell::context::Context;

/// Exit codes of every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The command failed.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A gate was not passed: the replay got worse than allowed.
    Gate = 3,
    /// `--check`: changes are pending and were not written.
    Pending = 4,
}

/// Which logs are read.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Directory, log file or `-`; repeatable. Default: the projects of CLAUDE_CONFIG_DIR (a comma list), else of
    /// ~/.config/claude (or $XDG_CONFIG_HOME/claude) and ~/.claude. Where telemetry is read: a directory or file of events; default
    /// ~/.config/devboy/telemetry/events and ~/.devboy/telemetry.
    #[arg(long, value_name = "PATH", alias = "from")]
    pub input_dir: Vec<PathBuf>,
    /// Only projects whose directory name contains this, in any case; a path works as well, and `.` is the current
    /// directory.
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub project: Option<String>,
    /// Worker threads; all cores by default. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Neither use nor update the lake: read all logs now.
    #[arg(long)]
    pub no_lake: bool,
    /// Where the lake is. Default: $XDG_CACHE_HOME/devboy/lake, else ~/.cache/devboy/lake.
    #[arg(long, value_name = "DIR", conflicts_with = "no_lake")]
    pub lake: Option<PathBuf>,
    /// Finding nothing is no error.
    #[arg(long)]
    pub allow_empty: bool,
    /// Take data files (thresholds, annotations) from here instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub rules_dir: Option<PathBuf>,
}

/// Which part of the logs counts.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Window")]
pub struct WindowArgs {
    /// Only from this time on: a date, RFC 3339, `7d` or `4w`.
    #[arg(short, long, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only up to this time; a date includes its day.
    #[arg(short, long, value_name = "WHEN")]
    pub until: Option<String>,
    /// Only the last N days, counted back from this moment: short for `--since Nd`.
    #[arg(long, value_name = "N", conflicts_with = "since", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: Option<u32>,
}

/// How results are shown.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Form of the report.
    #[arg(long, value_enum, default_value_t)]
    pub format: TableFormat,
    /// Short for `--format json`.
    #[arg(short, long, conflicts_with = "format")]
    pub json: bool,
    /// Keep names of projects, MCP servers and places in what is made to be shared: Markdown, and files to be committed or sent.
    #[arg(long)]
    pub names: bool,
    /// Colours of diffs, where one is printed.
    #[arg(long, value_enum, default_value_t)]
    pub color: Color,
    /// No notes and no progress on stderr.
    #[arg(short, long)]
    pub quiet: bool,
    /// More notes on stderr.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Leave out what differs from run to run: the time of the report, and in JSON what had to be read for it. `--days` and
    /// `--since 7d` are still counted back from this moment: name dates for a report that stays as it is.
    #[arg(long)]
    pub reproducible: bool,
}

/// How many rows `--top` asks for.
pub fn rows(text: &str) -> std::result::Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("that shows nothing; --all shows everything".to_owned()),
        Ok(rows) => Ok(rows),
        Err(_) => Err("not a number of rows".to_owned()),
    }
}

impl OutputArgs {
    /// The time that a report carries; none if it is to be reproducible.
    pub fn stamp(&self, context: &Context<'_>) -> Option<Millis> {
        (!self.reproducible && !context.env.reproducible).then_some(context.now_ms)
    }

    /// Writes the fields of a command as its JSON document.
    pub fn write_json(&self, command: &str, fields: Value, context: &mut Context<'_>) -> Result<()> {
        let stamp = self.stamp(context);
        envelope::write(context.out, command, stamp, fields)
    }

    /// The form asked for.
    pub fn form(&self) -> TableFormat {
        if self.json { TableFormat::Json } else { self.format }
    }

    /// Whether what is written is made to be shared: Markdown, unless names are to be kept.
    pub fn is_shared(&self) -> bool {
        self.form() == TableFormat::Md && !self.names
    }
}
