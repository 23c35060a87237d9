//! The flags of `devboy what-if` and `devboy replay --policy`.

use std::path::PathBuf;

use crate::shell::arguments;
use crate::whatif::arg_check::outcome::Provider;
use crate::whatif::report::ReportDetail;

/// Tables of its own that a policy shows unasked.
const TABLES: usize = 1;

/// How a policy is set.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Policy")]
pub struct PolicyArgs {
    /// Set a parameter: `--set ttl=5m`. Of several policies: `--set history-trim.sticky=true`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Lifetime of what is written to the cache: observed, 5m, 1h, mixed:static=1h,tail=5m. Short for --set
    /// prompt-cache.ttl=…
    #[arg(long, value_name = "TTL")]
    pub ttl: Option<String>,
    /// Of compaction: auto, or micro for clearing old tool results only. Short for --set compaction.tier=…
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// Where sizes of blocks come from: anchored, fitted, cl100k, o200k, chars4.
    #[arg(long, value_name = "NAME")]
    pub estimator: Option<String>,
    /// Tool definitions that were really sent: an MCP tools/list result or an Anthropic, OpenAI or Gemini list.
    /// `server=NAME:FILE` makes mcp__NAME__ tools of them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub tool_catalog: Vec<String>,
    /// In whose shape tool definitions are measured.
    #[arg(long, value_enum, value_name = "NAME")]
    pub provider: Option<Provider>,
    /// Count output as well, by the longer of what the log says of its length and the sizes of its blocks.
    #[arg(long, value_name = "HOW", value_parser = ["estimated"])]
    pub include_output: Option<String>,
    /// Fail if a model has no known price.
    #[arg(long)]
    pub strict_pricing: bool,
    /// One row per session.
    #[arg(long)]
    pub per_session: bool,
    /// Write one JSON line per request.
    #[arg(long, value_name = "FILE")]
    pub per_request: Option<PathBuf>,
    /// Other policies for the same table.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub compare: Vec<String>,
    /// Most rows of a table.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = arguments::rows)]
    pub top: u32,
    /// All rows and tables, and what is to be read beside them.
    #[arg(long, conflicts_with = "top")]
    pub all: bool,
    /// Letters instead of the names of projects and sessions, pseudonyms instead of those of MCP servers and kinds
    /// of agents; in JSON no places.
    #[arg(long, conflicts_with = "names")]
    pub redact: bool,
    /// Every formula with your numbers in it, and all tables.
    #[arg(long)]
    pub explain: bool,
    /// Show what the examples of breaks are about: file, line and the start of the record. Text of your logs is printed
    /// only if you ask for it.
    #[arg(long, conflicts_with_all = ["from_telemetry", "redact"])]
    pub show_content: bool,
    /// Read what the live pipeline recorded instead of logs. There is no text and no usage in it, so some policies refuse.
    #[arg(long)]
    pub from_telemetry: bool,
    /// Print figures of the cache under the metric names of an agent runtime, as JSON.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = ["agent-runtime"],
        conflicts_with_all = ["all", "explain", "include_output", "per_session", "show_content", "top"],
    )]
    pub alias: Option<String>,
}

impl PolicyArgs {
    /// How much of a report is told.
    pub fn detail(&self) -> ReportDetail {
        let rows = if self.all { usize::MAX } else { self.top as usize };
        let tables = if self.all || self.explain { usize::MAX } else { TABLES };
        ReportDetail { explain: self.explain, rows, tables }
    }
}
