//! Which days the page is about, and what of it is to be set.

use std::mem;

use crate::base::error::Result;
use crate::base::numbers::{HOUR_MS, counted, date};
use crate::commands::input::clients_in_use;
use crate::commands::report::{Args, standing};
use crate::cost::findings::levers;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::findings::versions;
use crate::cost::page::Page;
use crate::frames::input::Input;
use crate::logs::trace::{Millis, NO_TIME};
use crate::settings::claude::levers::{Lever, Levers};
use crate::shell::context::Context;
use crate::shell::window::{self, ALL};

/// Cuts the page to its last days if no window was asked for and there are more: up to the newest request, or up to now if a
/// clock ran ahead. Whether it was cut.
pub fn cut(args: &Args, sheet: &FindingThresholds, input: &mut Input, now_ms: Millis) -> Result<bool> {
    let is_asked =
        args.asked.window.since.is_some() || args.asked.window.until.is_some() || args.asked.window.days.is_some();
    if is_asked {
        return Ok(false);
    }
    let overview = input.overview()?;
    let Some((first, last)) = overview.span_ms else { return Ok(false) };
    let newest = overview.newest_message_ms.unwrap_or(last);
    let (last, end) = up_to(newest, input, now_ms, sheet.ahead_hours_max);
    let start = window::days_before(last.min(now_ms), sheet.days);
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
pub fn settle(
    page: &mut Page,
    (args, sheet): (&Args, &FindingThresholds),
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
    page.findings.retain(|finding| versions::is_of_use(finding, &sheet.old_versions, &page.versions));
    let layers = standing::layers(page, &context.env.claude_places()).ok().flatten();
    let holds = |lever: &Lever| layers.as_ref().is_some_and(|layers| layers.holds(lever).unwrap_or_default());
    let mut findings = mem::take(&mut page.findings);
    levers::settle(&mut findings, &Levers::load(&input.data)?, |finding| page.clients(finding), holds);
    page.findings = findings;
    Ok(())
}
