//! `pick-tools`: a few tools by keywords, and how often they would have been the right ones.

use std::sync::Arc;

use serde_json::json;

use crate::commands::replay::policy::chosen::{Policy, Sheets};
use crate::commands::replay::policy::simulate::{Finished, Part, Ready};
use crate::commands::replay::policy::tool_filter::Tools;
use crate::commands::replay::policy::world::World;
use crate::error::Result;
use crate::policies::pick_tools::{Knobs, PickPolicy, Rules};

/// Makes the policy ready.
///
/// # Errors
/// If a knob makes no sense.
pub fn ready<'w>(world: &'w World, sheets: &Sheets, tools: &'w Tools) -> Result<Ready<'w>> {
    let sheet = sheets.sheet(Policy::PickTools);
    let knobs: Knobs = sheet.knobs()?;
    knobs.check()?;
    let rules: Rules = sheet.read()?;
    let policy = Arc::new(PickPolicy::new(&world.timeline, &knobs, &rules, tools.inputs(world, None)));
    let stage = policy.stage();
    let conclude = move |finished: &Finished<'_>| {
        let found = policy.outcome(&finished.world.timeline);
        Part { notes: found.notes.clone(), withheld: found.withheld.clone(), details: json!(found), ..Part::default() }
    };
    Ok(Ready { stage: Some(stage), conclude: Box::new(conclude) })
}
