//! `pick-tools`: a few tools by keywords, and how often they would have been the right ones.

use std::sync::Arc;

use serde_json::json;

use crate::base::error::Result;
use crate::whatif::chosen::{Policy, Sheets};
use crate::whatif::pick_tools::tables as report;
use crate::whatif::pick_tools::{Params, PickPolicy, Rules};
use crate::whatif::stacked::{Finished, Part, Ready, Scene};

/// The policy as it is set.
///
/// # Errors
/// If a parameter makes no sense.
pub fn policy(scene: &Scene<'_>, sheets: &Sheets) -> Result<PickPolicy> {
    let world = scene.world;
    let sheet = sheets.sheet(Policy::PickTools);
    let params: Params = sheet.params()?;
    params.check()?;
    let rules: Rules = sheet.read()?;
    Ok(PickPolicy::new(&world.timeline, &params, &rules, scene.tools.inputs(world, None)))
}

/// Makes the policy ready.
///
/// # Errors
/// If a parameter makes no sense.
pub fn ready<'s>(scene: &'s Scene<'_>, sheets: &Sheets) -> Result<Ready<'s>> {
    let policy = Arc::new(policy(scene, sheets)?);
    let stage = policy.stage();
    let conclude = move |finished: &Finished<'_>| {
        let timeline = &finished.scene.world.timeline;
        let found = policy.outcome(timeline);
        Part {
            summary: report::summary(&found),
            tables: vec![
                ("used tools that the first K picks hold".to_owned(), report::recall(&found)),
                ("best scores of turns".to_owned(), report::scores(&found)),
            ],
            formulas: report::formulas(&policy.picking(timeline)),
            notes: found.notes.clone(),
            not_estimated: found.not_estimated.clone(),
            catalog: Some(found.catalog.source.clone()),
            details: json!(found),
            ..Part::default()
        }
    };
    Ok(Ready { stage: Some(stage), conclude: Box::new(conclude) })
}
