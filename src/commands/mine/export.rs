//! How aggregates of logs are asked for: reading the input, names that may leave the machine, the forms in which they leave, and
//! the file they go to.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::listing::Listing;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::visible;
use crate::frames::export as parquet_listing;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::report::numbers::counted;
use crate::report::table::{Color, Table, TableFormat};
use crate::report::{envelope, sharing, table};
use crate::shell::arguments::{InputArgs, OutputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::{arguments, window};

/// How an aggregate is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum ExportForm {
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
    /// A graph for Graphviz.
    Dot,
    /// A graph for Mermaid.
    Mermaid,
}

/// The forms of what is no graph; `mine edges` has all.
fn undrawn() -> impl TypedValueParser<Value = ExportForm> {
    let is_drawn = |form: &&ExportForm| matches!(form, ExportForm::Dot | ExportForm::Mermaid);
    let forms = ExportForm::value_variants().iter().filter(|form| !is_drawn(form));
    PossibleValuesParser::new(forms.filter_map(ExportForm::to_possible_value))
        .try_map(|name| <ExportForm as ValueEnum>::from_str(&name, false))
}

/// Which columns a CSV has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum CsvLayout {
    /// All that devboy has.
    #[default]
    All,
    /// Those of the published tables, for comparison with these; implies CSV.
    Published,
}

/// An aggregate in all forms.
pub struct Mined<'a> {
    /// Name of the command in the envelope.
    pub command: &'a str,
    /// Name of the rows in the envelope.
    pub rows: &'a str,
    pub listing: Listing,
    /// What it comes to, for people.
    pub answer: String,
    /// What people are shown.
    pub overview: Table,
    /// How many rows of that.
    pub top: usize,
    /// Other fields of the envelope.
    pub fields: Value,
    /// The graph, if there is one: in the given form.
    pub graph: Option<&'a dyn Fn(ExportForm) -> String>,
    /// What Parquet files say about themselves besides.
    pub about: Vec<(&'static str, String)>,
}

/// What an aggregate is made of, and how it is shown.
#[derive(clap::Args, Debug)]
pub struct MinedArgs {
    /// How it is shown.
    #[command(flatten)]
    pub export: ExportArgs,
    /// Which rows are shown.
    #[command(flatten)]
    pub kept: KeptArgs,
    /// Which logs.
    #[command(flatten)]
    pub input: InputArgs,
    /// Which part of them.
    #[command(flatten)]
    pub window: WindowArgs,
}

impl MinedArgs {
    /// [`ExportArgs::read`] of the logs and the window that are asked for.
    pub fn read(&self, detail: (u8, Option<TimelineDetail>), context: &mut Context<'_>) -> Result<Input> {
        self.export.read((&self.input, &self.window), detail, |_| (), context)
    }

    /// The same for whoever asks for more than a history, and `says` so ([`ExportArgs::read`]).
    pub fn read_more(&self, says: fn(&mut Input), context: &mut Context<'_>) -> Result<Input> {
        self.export.read((&self.input, &self.window), (0, None), says, context)
    }
}

/// Which rows of an aggregate are shown.
#[derive(clap::Args, Debug, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub struct KeptArgs {
    /// Only what at least this many sessions have done; asked for before anything is shared.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub k_anonymity: u64,
    /// Rows of the table for people. Other forms have all rows.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = arguments::rows)]
    top: u32,
    /// All rows.
    #[arg(long, conflicts_with = "top")]
    all: bool,
}

impl KeptArgs {
    /// How many rows people are shown.
    pub fn top(&self) -> usize {
        if self.all { usize::MAX } else { self.top as usize }
    }

    /// Keeps what at least k sessions have done; says how many rows are left out.
    pub fn keep<R>(self, rows: impl IntoIterator<Item = R>, sessions: impl Fn(&R) -> u64) -> (Vec<R>, u64) {
        let (kept, few): (Vec<R>, Vec<R>) = rows.into_iter().partition(|row| sessions(row) >= self.k_anonymity);
        (kept, few.len() as u64)
    }
}

/// How results are shown.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Output")]
pub struct ExportArgs {
    /// Form of the report. Default: what the name of --output ends with (.csv, .json, .md, .parquet), else table.
    #[arg(long, value_parser = undrawn())]
    pub format: Option<ExportForm>,
    /// Short for `--format json`.
    #[arg(short, long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show the names of MCP servers in place of pseudonyms, and places on disk, which are left out otherwise.
    #[arg(long)]
    pub names: bool,
    /// Colours of diffs.
    #[arg(long, value_enum, default_value_t)]
    pub color: Color,
    /// No notes and no progress on stderr.
    #[arg(short, long)]
    pub quiet: bool,
    /// More notes on stderr.
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Leave out what differs from run to run: the time of the report, and in JSON what had to be read for it.
    #[arg(long)]
    pub reproducible: bool,
}

impl<'a> Mined<'a> {
    /// An aggregate of which people are shown all columns.
    pub fn listed(command: &'a str, rows: &'a str, listing: Listing) -> Self {
        let overview = table::table(&listing);
        let (answer, fields, about) = (String::new(), json!({}), Vec::new());
        Self { command, rows, listing, answer, overview, top: usize::MAX, fields, graph: None, about }
    }
}

impl ExportArgs {
    /// The same for a layout: the published one is CSV. An error if another form was asked for.
    pub fn in_layout(&self, layout: CsvLayout) -> Result<Self> {
        match (layout, self.form()) {
            (CsvLayout::All, _) | (CsvLayout::Published, ExportForm::Csv) => Ok(self.clone()),
            // The name of a file asks for no form.
            (CsvLayout::Published, form) if form == ExportForm::Table || !self.json && self.format.is_none() => {
                Ok(Self { format: Some(ExportForm::Csv), ..self.clone() })
            }
            (CsvLayout::Published, _) => Err(Error::usage("the published layout is CSV").hint("leave out --format")),
        }
    }

    /// The form asked for.
    pub fn form(&self) -> ExportForm {
        let of_name = || match self.output.as_ref()?.extension()?.to_str()? {
            "csv" => Some(ExportForm::Csv),
            "json" => Some(ExportForm::Json),
            "md" => Some(ExportForm::Md),
            "parquet" => Some(ExportForm::Parquet),
            _ => None,
        };
        if self.json { ExportForm::Json } else { self.format.or_else(of_name).unwrap_or_default() }
    }

    /// The same as far as all commands share it.
    pub fn shared(&self) -> OutputArgs {
        OutputArgs {
            format: TableFormat::default(),
            json: self.json,
            names: self.names,
            color: self.color,
            quiet: self.quiet,
            verbose: self.verbose,
            reproducible: self.reproducible,
        }
    }

    /// Finds the logs and brings them up to date; `detail` as in [`Input::read`]. With `says` the input is told what will be asked
    /// for behind the history: [`Input::keep_calls`] or [`Input::find_values`].
    pub fn read(
        &self,
        (args, of): (&InputArgs, &WindowArgs),
        detail: (u8, Option<TimelineDetail>),
        says: fn(&mut Input),
        context: &mut Context<'_>,
    ) -> Result<Input> {
        let mut input = Input::read(args, window::of(of, context.now_ms)?, detail, &self.shared(), context)?;
        input.note_kept();
        says(&mut input);
        input.expect_records(args)?;
        input.report_holds(Holds::Calls)?;
        Ok(input)
    }

    /// The name under which a tool is shown.
    pub fn shown(&self, names: &Pseudonyms, tool: &str) -> String {
        if self.names { tool.to_owned() } else { names.tool(tool) }
    }

    /// Tells the notes of the input, what it is, and how many rows are left out.
    pub fn tell(&self, input: &Input, (left_out, kept): (u64, KeptArgs), context: &mut Context<'_>) -> Result<()> {
        input.tell(&self.shared(), context)?;
        context.note(self.quiet, visible(&input.covered(true)))?;
        if left_out > 0 {
            let (rows, k) = (counted(left_out, "row"), kept.k_anonymity);
            context.note(self.quiet, format_args!("{rows} left out: fewer than {k} sessions"))?;
        }
        Ok(())
    }

    /// Sends an aggregate in the form asked for.
    pub fn send_mined(&self, context: &mut Context<'_>, mut mined: Mined<'_>) -> Result<()> {
        if self.form() == ExportForm::Json {
            mined.fields[mined.rows] = table::json(&mined.listing);
        }
        self.send_document(context, mined.command, mined.fields, |form, out, width| match form {
            ExportForm::Csv => table::table(&mined.listing).write(out, TableFormat::Csv, width),
            ExportForm::Md => table::rounded(&mined.listing).write(out, TableFormat::Md, width),
            ExportForm::Parquet => parquet_listing::write_listing(out, &mined.listing, &mined.about),
            _ => match mined.graph {
                Some(graph) if form != ExportForm::Table => Ok(out.write_all(graph(form).as_bytes())?),
                // A head without rows says nothing.
                _ if mined.overview.is_empty() && mined.answer.is_empty() => Ok(writeln!(out, "no {}", mined.rows)?),
                _ if mined.overview.is_empty() => Ok(writeln!(out, "{}", visible(&mined.answer))?),
                _ => {
                    if !mined.answer.is_empty() {
                        writeln!(out, "{}\n", visible(&mined.answer))?;
                    }
                    mined.overview.write_top(out, TableFormat::Table, width, mined.top)
                }
            },
        })
    }

    /// Sends these fields as JSON, without places on disk unless names were asked for; any other form is what `write` makes of it.
    pub fn send_document(
        &self,
        context: &mut Context<'_>,
        command: &str,
        mut fields: Value,
        write: impl FnOnce(ExportForm, &mut Vec<u8>, Option<u16>) -> Result<()>,
    ) -> Result<()> {
        let stamp = self.shared().stamp(context);
        self.send(context, |out, width| match self.form() {
            ExportForm::Json => {
                if !self.names {
                    sharing::hide_places(&mut fields);
                }
                envelope::write(out, command, stamp, fields)
            }
            form => write(form, out, width),
        })
    }

    /// Sends what `write` writes to the file or to standard output. Parquet does not go to a terminal.
    pub fn send(
        &self,
        context: &mut Context<'_>,
        write: impl FnOnce(&mut Vec<u8>, Option<u16>) -> Result<()>,
    ) -> Result<()> {
        if self.form() == ExportForm::Parquet && self.output.is_none() && context.out_is_terminal {
            return Err(Error::usage("Parquet is not for a terminal").hint("name a file with --output FILE"));
        }
        let mut bytes = Vec::new();
        write(&mut bytes, context.width)?;
        match &self.output {
            None => Ok(context.out.write_all(&bytes)?),
            Some(path) => context.write_file(path, bytes, self.quiet),
        }
    }
}
