//! The client versions that are in use: of all logs, whatever part of them is asked about, since a setting reaches every client.

use std::collections::BTreeSet;

use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::numbers::DAY_MS;
use crate::commands::input::QuestionArgs;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::report::numbers::date;
use crate::shell::arguments::{InputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::client::thresholds::{ClientThresholds, Versions};

/// Those of all logs, where `seen` are those of `input`: other logs are looked at only if they are no part of it.
///
/// # Errors
/// If a data file does not fit.
pub fn in_use(
    asked: &QuestionArgs,
    (input, seen): (&Input, Versions),
    projects: Option<&BTreeSet<Id>>,
    context: &mut Context<'_>,
) -> Result<Versions> {
    let sheet = ClientThresholds::load(&input.data)?;
    let now_ms = context.now_ms;
    let last = seen.values().copied().filter(|last| *last <= now_ms).max();
    let start = input.window.start;
    let has_last_weeks =
        start == window::ALL.start || last.is_some_and(|last| start <= last - sheet.split.version_days * DAY_MS);
    let is_whole = asked.input.project.is_none() && input.window.end == window::ALL.end && has_last_weeks;
    // A stream is read once.
    if is_whole || asked.input.input_dir.iter().any(|dir| dir.as_os_str() == "-") {
        return Ok(seen);
    }
    let asked = QuestionArgs {
        input: InputArgs { project: None, ..asked.input.clone() },
        window: WindowArgs::default(),
        output: asked.output.clone(),
    };
    let mut all = asked.read(0, Some(TimelineDetail::default()), context)?;
    let question = format!("clients in use on {} in {projects:?}", date(now_ms));
    all.remember(&question, |all| Ok(sheet.versions(&all.timeline(TimelineDetail::default())?, projects, now_ms)))
}
