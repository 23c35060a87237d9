//! `devboy` and `devboy report`: one page of what was spent, what stops the waste, and what does not pay. Which days it is about,
//! what of it is to be set, and where it goes.

mod evidence;
mod show;
mod standing;

use std::mem;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::numbers::{HOUR_MS, counted, date};
use crate::commands::input::{QuestionArgs, clients_in_use};
use crate::cost::findings::search::BillFinding;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::findings::{levers, versions};
use crate::cost::page::html::html;
use crate::cost::page::plots::ToolCost;
use crate::cost::page::words::Telling;
use crate::cost::page::{self, Page};
use crate::frames::edge::{Concurrency, Edge, EdgeThresholds, Turns};
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::logs::trace::{Millis, NO_TIME};
use crate::mine::edges;
use crate::report::table::TableFormat;
use crate::rules::claude;
use crate::settings::claude::levers::{Lever, Levers};
use crate::settings::expect_place;
use crate::shell::arguments;
use crate::shell::context::Context;
use crate::shell::window::{self, ALL};

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
    /// Letters instead of names of projects and MCP servers, given anew by each report: for a page that is shared. Markdown has
    /// them anyway (see --names).
    #[arg(long, conflicts_with = "names")]
    redact: bool,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, asks, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let html = args.html.as_deref().map(|path| PageTarget::of(path, args)).transpose()?;
    let mut input = args.asked.read(0, Some(TimelineDetail::default()), context)?;
    input.expect_records(&args.asked.input)?;
    let thresholds = FindingThresholds::load(&input.data)?;
    let is_cut = cut(args, &thresholds, &mut input, context.now_ms)?;
    let start = page::start(is_cut, &mut input)?;
    // Behind the cut: it is about the same requests as the page.
    input.report_holds(Holds::FirstChunks)?;
    let follow_ups = if html.is_some() { follow_ups(&mut input, &thresholds)? } else { Vec::new() };
    let question = if html.is_some() { "the page with plots" } else { "the page" };
    let now_ms = context.now_ms;
    let mut page: Page =
        input.remember(question, |input| page::page(input, html.is_some(), now_ms, &claude::paying))?;
    settle(&mut page, (args, &thresholds), &input, context)?;
    if page.spent.requests == 0 && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("requests with usage"));
    }
    let chosen = args.finding.as_deref().map(|id| evidence::chosen(id, &thresholds, &page)).transpose()?;
    let tools = tools(&page, &follow_ups);
    let telling =
        show::telling(args, (&page, &thresholds), (&tools, chosen.flatten()), (is_cut, start), &mut input, context)?;
    let text = html.as_ref().and_then(|_| text(&telling, &follow_ups));
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

/// Cuts the page to its last days if no window was asked for and there are more: up to the newest request, or up to now if a
/// clock ran ahead. Whether it was cut.
fn cut(args: &Args, thresholds: &FindingThresholds, input: &mut Input, now_ms: Millis) -> Result<bool> {
    let is_asked =
        args.asked.window.since.is_some() || args.asked.window.until.is_some() || args.asked.window.days.is_some();
    if is_asked {
        return Ok(false);
    }
    let overview = input.overview()?;
    let Some((first, last)) = overview.span_ms else { return Ok(false) };
    let newest = overview.newest_message_ms.unwrap_or(last);
    let (last, end) = up_to(newest, input, now_ms, thresholds.ahead_hours_max);
    let start = window::days_before(last.min(now_ms), thresholds.days);
    let is_cut = start > first && start <= last;
    input.window = if is_cut { start } else { ALL.start }..end;
    Ok(is_cut)
}

/// The newest request that was made by now, and where the days of the page end: with a day, since its commands are told of days. A
/// clock that ran ahead would else take its days to where nothing was done; what it says is left out and told of. Where all of it is
/// ahead, the clock of this machine is behind.
fn up_to(newest: Millis, input: &mut Input, now_ms: Millis, ahead_hours_max: u32) -> (Millis, Millis) {
    let end = window::day_end(now_ms.saturating_add(HOUR_MS * Millis::from(ahead_hours_max)));
    if newest < end {
        return (newest, ALL.end);
    }
    let history = input.history();
    let times = || history.messages.iter().filter(|message| message.billed && message.ts != NO_TIME).map(|one| one.ts);
    let Some(last) = times().filter(|ts| *ts < end).max() else { return (newest, ALL.end) };
    let ahead = times().filter(|ts| *ts >= end).count() as u64;
    let are = if ahead == 1 { "is" } else { "are" };
    let (ahead, today, day) = (counted(ahead, "request"), date(now_ms), date(newest));
    input.notes.push(format!(
        "{ahead} dated in the future {are} left out: this clock says {today}, the logs go on to {day}; --until {day} has all of it"
    ));
    (last, end)
}

/// Says which clients are in use, what is to be set as far as they know it, and where the user's file decides already. A file
/// that cannot be read decides nothing.
fn settle(
    page: &mut Page,
    (args, thresholds): (&Args, &FindingThresholds),
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    if page.findings.is_empty() {
        return Ok(());
    }
    page.versions = clients_in_use(&args.asked, (input, mem::take(&mut page.versions)), None, context)?;
    // Of a project where none of these was seen, all of them may be used.
    page.versions_in.retain(|_, seen| {
        seen.retain(|version, _| page.versions.contains_key(version));
        !seen.is_empty()
    });
    page.findings.retain(|finding| versions::is_of_use(finding, &thresholds.old_versions, &page.versions));
    let layers = standing::layers(page, &context.env.claude_places()).ok().flatten();
    let holds = |lever: &Lever| layers.as_ref().is_some_and(|layers| layers.holds(lever).unwrap_or_default());
    let mut findings = mem::take(&mut page.findings);
    levers::settle(&mut findings, &Levers::load(&input.data)?, |finding| page.clients(finding), holds);
    // What the advice to update is about needs no more than that.
    if findings.iter().any(|finding| finding.id == thresholds.old_versions.id) {
        let is_repaired =
            |finding: &&mut BillFinding| finding.repair.as_ref().is_some_and(|repair| repair.words == finding.advice);
        let beside = &thresholds.old_versions.beside;
        findings.iter_mut().filter(is_repaired).for_each(|finding| finding.advice.clone_from(beside));
    }
    page.findings = findings;
    let asks = |finding: &BillFinding| finding.sets.iter().chain(&finding.part_sets).any(|set| set.value == "1h");
    let Some(layers) = layers.filter(|_| page.findings.iter().any(asks)) else { return Ok(()) };
    let within = standing::places(page, input, context).into_values();
    if let Some(words) = claude::behind_gateway(&layers, within, &input.data)? {
        let asking = page.findings.iter_mut().filter(|finding| asks(finding));
        asking.for_each(|finding| finding.advice += &format!(" ({words})"));
    }
    Ok(())
}

/// Where the page goes.
enum PageTarget<'p> {
    Stdout,
    File(&'p Path),
}

impl<'p> PageTarget<'p> {
    /// The place asked for, before any work is done. An error if no file can be there, or two things would go to
    /// stdout.
    fn of(path: &'p Path, args: &Args) -> Result<Self> {
        if path == Path::new("-") {
            if args.asked.output.form() == TableFormat::Table {
                return Ok(Self::Stdout);
            }
            return Err(
                Error::usage("--html - and another form would both go to stdout").hint("name a file: --html page.html")
            );
        }
        expect_place(path)?;
        Ok(Self::File(path))
    }

    /// Writes it, for the user alone to read until they send it. Whether that was all that stdout is to have.
    fn write(&self, text: &str, is_quiet: bool, context: &mut Context<'_>) -> Result<bool> {
        match self {
            Self::Stdout => context.out.write_all(text.as_bytes())?,
            Self::File(path) => context.write_file(path, text, is_quiet)?,
        }
        Ok(matches!(self, Self::Stdout))
    }
}

/// The page as a file, if it was made to be drawn.
fn text(telling: &Telling<'_>, follow_ups: &[Edge]) -> Option<String> {
    let shown = |tool: &str| telling.names.own("tool", tool);
    let plots = telling.page.plots.as_ref()?;
    let costs = plots.tools.iter().map(|cost| ToolCost { tool: shown(&cost.tool), ..cost.clone() });
    let follow_ups =
        follow_ups.iter().map(|edge| Edge { from: shown(&edge.from), to: shown(&edge.to), ..edge.clone() });
    Some(html(telling, plots, &costs.collect::<Vec<_>>(), &follow_ups.collect::<Vec<_>>()))
}

/// The tools that the file names, those that cost most first.
fn tools(page: &Page, follow_ups: &[Edge]) -> Vec<String> {
    let costs = page.plots.iter().flat_map(|plots| &plots.tools).map(|cost| &cost.tool);
    costs.chain(follow_ups.iter().flat_map(|edge| [&edge.from, &edge.to])).cloned().collect()
}

/// What the next step does after a tool, where that is more than chance; the most frequent first.
fn follow_ups(input: &mut Input, thresholds: &FindingThresholds) -> Result<Vec<Edge>> {
    let sums = edges::sums_of(input, Concurrency::Message, &[1], false, Turns::All)?;
    let of_edges = input.data.parsed::<EdgeThresholds>("edges.toml")?;
    let mut edges = edges::edges(&sums, &of_edges);
    edges.retain(|edge| edge.significant);
    edges.sort_by(|a, b| b.sum.count.cmp(&a.sum.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    edges.truncate(thresholds.follow_ups_drawn);
    Ok(edges)
}
