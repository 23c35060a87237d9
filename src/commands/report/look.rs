//! Reads what the page is made of, and makes it.

use crate::base::error::Result;
use crate::commands::report::Args;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::trace::Millis;
use crate::shell::context::Context;
use crate::shell::window;
use crate::shell::window::ALL;

/// Opens the logs.
///
/// # Errors
/// If there is none; the error lists the places looked at.
pub fn input(args: &Args, context: &mut Context<'_>) -> Result<Input> {
    let input = args.asked.read(0, Some(TimelineDetail::default()), context)?;
    input.expect_records(&args.asked.input)?;
    Ok(input)
}

/// Cuts the page to its last days if no window was asked for and there are more: up to the newest request, or up to now if a
/// clock ran ahead. Whether it was cut.
///
/// # Errors
/// None of its own.
pub fn cut(args: &Args, sheet: &FindingThresholds, input: &mut Input, now_ms: Millis) -> Result<bool> {
    let is_asked =
        args.asked.window.since.is_some() || args.asked.window.until.is_some() || args.asked.window.days.is_some();
    if is_asked {
        return Ok(false);
    }
    let overview = input.overview()?;
    let Some((first, last)) = overview.span_ms else { return Ok(false) };
    let last = overview.newest_message_ms.unwrap_or(last);
    let start = window::days_before(last.min(now_ms), sheet.days);
    if start <= first || start > last {
        return Ok(false);
    }
    input.window = start..ALL.end;
    Ok(true)
}
