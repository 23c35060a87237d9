//! `devboy` and `devboy report`: one page of what was spent, what stops the waste, and what does not pay.

mod evidence;
mod file;
mod look;
mod show;
mod standing;

use std::path::PathBuf;

use crate::base::error::Result;
use crate::commands::input::QuestionArgs;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::page::{Page, replays};
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::rules::claude;
use crate::shell::arguments;
use crate::shell::context::Context;

/// Say on one page what was spent, what would have cost less and what to change, and what does not pay.
///
/// This is what `devboy` alone does, with the same flags: `devboy --since 7d`. It looks at the last 30 days up to the newest request, if there are more. Every
/// finding holds beyond chance on your own logs, says what to do with the effect to be expected and its 95 % interval
/// over sessions, and names the command that prints the same figures. Money is at list prices.
#[derive(clap::Args, Debug, Default)]
pub struct Args {
    /// Most findings, and most names in a line.
    #[arg(long, value_name = "N", value_parser = arguments::rows)]
    top: Option<u32>,
    /// All findings and names.
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// How the figures come about.
    #[arg(long)]
    explain: bool,
    /// What one finding stands on: everything that was looked at with its interval, the sessions with most of it, and the
    /// command that the figures come from.
    #[arg(long, value_name = "ID", conflicts_with_all = ["explain", "html"])]
    finding: Option<String>,
    /// Write the page to a file for a browser as well: one file with plots, without scripts, that fetches nothing. `-`
    /// writes it to stdout instead of the words.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Letters instead of names of projects and MCP servers: for a page that is shared. Markdown has them anyway (see --names).
    #[arg(long, conflicts_with = "names")]
    redact: bool,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, asks, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let html = args.html.as_deref().map(|path| file::PageTarget::of(path, args)).transpose()?;
    let mut input = args.asked.read(0, Some(TimelineDetail::default()), context)?;
    input.expect_records(&args.asked.input)?;
    let sheet = FindingThresholds::load(&input.data)?;
    let is_cut = look::cut(args, &sheet, &mut input, context.now_ms)?;
    // Behind the cut: it is about the same requests as the page.
    input.report_holds(Holds::FirstChunks)?;
    let question = if html.is_some() { "the page with plots" } else { "the page" };
    let now_ms = context.now_ms;
    let mut page: Page =
        input.remember(question, |input| replays::page(input, html.is_some(), now_ms, &claude::paying))?;
    look::settle(&mut page, (args, &sheet), &input, context)?;
    if page.spent.requests == 0 && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("requests with usage"));
    }
    let chosen = args.finding.as_deref().map(|id| evidence::chosen(id, &sheet, &page)).transpose()?;
    let follow_ups = if html.is_some() { file::follow_ups(&mut input, &sheet)? } else { Vec::new() };
    let tools = file::tools(&page, &follow_ups);
    let telling = show::telling(args, (&page, &sheet), (&tools, chosen.flatten()), is_cut, &mut input, context)?;
    let text = html.as_ref().and_then(|_| file::text(&telling, &follow_ups));
    let is_written =
        html.zip(text).map_or(Ok(false), |(html, text)| html.write(&text, args.asked.output.quiet, context))?;
    input.tell(&args.asked.output, context)?;
    match chosen {
        _ if is_written => {}
        Some(Some(finding)) => evidence::show(args, &telling, finding, &input, context)?,
        Some(None) => evidence::show_none(args, &telling, &input, context)?,
        None => show::show(args, &telling, &input, context)?,
    }
    Ok(())
}

impl Args {
    /// How many findings and names.
    fn top(&self) -> Option<usize> {
        if self.all { Some(usize::MAX) } else { self.top.map(|top| top as usize) }
    }

    /// Whether the page is made to be shared: without names.
    fn is_shared(&self) -> bool {
        self.redact || self.asked.output.is_shared()
    }
}
