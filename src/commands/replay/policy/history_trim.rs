//! `history-trim`: the stage, its books, and the presets of a router side by side.

use std::rc::Rc;

use serde_json::json;

use crate::commands::replay::policy::chosen::{Policy, Sheets};
use crate::commands::replay::policy::simulate::{Finished, Part, Ready};
use crate::commands::replay::policy::world::World;
use crate::error::Result;
use crate::policies::history_trim::{HistoryTrim, Knobs, Rule, Sheet};

/// Makes the policy ready.
///
/// # Errors
/// If a knob makes no sense.
pub fn ready<'w>(world: &'w World, sheets: &Sheets) -> Result<Ready<'w>> {
    let sheet = sheets.sheet(Policy::HistoryTrim);
    let knobs: Knobs = sheet.knobs()?;
    knobs.check()?;
    let sheet = Sheet::parse(&sheet.text(), sheet.place())?;
    let (stage, books) = HistoryTrim::new(Rule { knobs, sheet }, &world.sizes.rules);
    let conclude = move |finished: &Finished<'_>| {
        let outcome = Rc::clone(&books).borrow().clone();
        let _ = finished;
        Part { details: json!(outcome), ..Part::default() }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}
