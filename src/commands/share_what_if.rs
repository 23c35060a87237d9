//! What every session would have cost under the settings that a team asks about, for `devboy share --what-if`.

use crate::base::error::Result;
use crate::fleet::contribute::Alternative;
use crate::fleet::limits::FleetLimits;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::shipped::{self, ShippedWorkload};

/// Replays the sessions of some logs under every setting.
///
/// # Errors
/// If no log can be found, or a data file does not fit.
pub fn alternatives(
    args: &InputArgs,
    output: &OutputArgs,
    limits: &FleetLimits,
    context: &mut Context<'_>,
) -> Result<Vec<Alternative>> {
    let mut input = Input::read(args, window::ALL, (0, Some(TimelineDetail::default())), output, context)?;
    let timeline = input.timeline(TimelineDetail { tokens: false, words: true })?;
    let workload = ShippedWorkload::new(timeline, &input.data)?;
    input.pool.install(|| shipped::alternatives(&workload, &limits.what_if))
}
