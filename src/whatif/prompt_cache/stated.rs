//! What the client itself says that sessions have cost (`cost-state`), beside what their requests in the log come to: a second truth.
//! Its totals also hold calls to helper models and requests that no record shows, so the log should come to less, never to more.
//!
//! `prompt-cache`: the log under other TTLs, layouts and keep-alive reads, and why the cache was missed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::json;

use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::model_id;
use crate::report::numbers::{counted, percent};
use crate::report::table::{Rows, Table};
use crate::whatif::calibration::calibrate;
use crate::whatif::chosen::{Policy, Sheets};
use crate::whatif::prompt_cache;
use crate::whatif::prompt_cache::{Sheet, tables as report};
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulate::Ground;
use crate::whatif::sim::unforeseen::unlogged;
use crate::whatif::sim::{bill, unforeseen as unlogged_report};
use crate::whatif::stacked::{Finished, Part, Ready};

/// One model over the sessions whose client says what they cost.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Stated {
    /// Model, in the one spelling.
    pub model: String,
    /// Sessions with a total of it.
    pub sessions: u64,
    /// Billionths of a dollar by the client.
    pub stated_nano_usd: u64,
    /// Tokens of prompts and answers by the client.
    pub stated_tokens: u64,
    /// The same by the requests in the log, answers as their usage has them.
    pub logged_tokens: u64,
    /// What these cost by the price table.
    pub logged: Cost,
}

/// By model, of the sessions with such totals.
pub fn stated(ground: &Ground<'_>) -> Vec<Stated> {
    let timeline = ground.timeline;
    let known: BTreeSet<Id> = timeline.stated_costs.iter().map(|row| row.session).collect();
    let mut models: BTreeMap<String, Stated> = BTreeMap::new();
    for row in &timeline.stated_costs {
        let model = model_id::normalise(timeline.names.text(row.model));
        let own = models.entry(model).or_default();
        own.sessions += 1;
        own.stated_nano_usd += row.nanodollars;
        own.stated_tokens += row.usage.input + row.usage.output + row.usage.cache_read + row.usage.cache_creation;
    }
    for request in timeline.requests.iter().filter(|request| known.contains(&timeline.session_of(request).id)) {
        let own = models.entry(model_id::normalise(timeline.names.text(request.model))).or_default();
        let prompt = bill::spent(request, ground.oracle.cache.class_unknown);
        let spent = Spent { output: request.usage.output, ..prompt };
        own.logged_tokens += spent.prompt() + spent.output;
        own.logged += ground.tariff.cost(request.model, request.start, &spent);
    }
    models.into_iter().map(|(model, row)| Stated { model, ..row }).collect()
}

/// The same as a table.
pub fn table(rows: &[Stated]) -> Table {
    Rows::of(rows)
        .text("model", |row| row.model.clone())
        .text("sessions", |row| counted(row.sessions, "session"))
        .number("stated", |row| format!("${:.2}", row.stated_nano_usd as f64 / 1e9))
        .number("by the log", |row| row.logged.usd().map_or_else(|| "–".to_owned(), |usd| format!("${usd:.2}")))
        .count("tokens stated", |row| row.stated_tokens)
        .count("tokens in the log", |row| row.logged_tokens)
        .number("of those", |row| {
            let share = (row.stated_tokens > 0).then(|| percent(row.logged_tokens as f64 / row.stated_tokens as f64));
            share.unwrap_or_else(|| "–".to_owned())
        })
        .table()
}

/// Makes the policy ready.
///
/// # Errors
/// If a parameter makes no sense.
pub fn ready<'s>(sheets: &Sheets) -> Result<Ready<'s>> {
    let sheet = sheets.sheet(Policy::PromptCache);
    let sheet = Sheet::parse(&sheet.text(), sheet.place())?;
    let conclude = move |finished: &Finished<'_>| {
        let scene = finished.scene;
        // Beside other policies a lifetime is one row; the variants are for whoever asks about the cache alone.
        if !finished.is_named {
            return Part::default();
        }
        // Variants are held against the cache as it was, whatever was set.
        let shipped = Sheet { oracle: scene.ground.oracle.clone(), ..sheet };
        let found = prompt_cache::run(&scene.ground.under(finished.oracle), &shipped, &scene.world.prices);
        let calibration = calibrate(&scene.world.timeline, &scene.world.sizes.rules);
        let hidden = unlogged(&scene.ground);
        // Under the cache as it was there is nothing to compare but the variants.
        let headline = (*finished.oracle == *scene.ground.oracle && found.uncached.cost.units > 0)
            .then(|| report::headline(&found));
        Part {
            headline,
            summary: report::summary(&found),
            tables: report::tables(&found, &calibration, &shipped.reference)
                .into_iter()
                .chain([("prefixes lost for no reason in the log".to_owned(), report::losses(&scene.distance.losses))])
                .chain([(unlogged_report::TITLE.to_owned(), unlogged_report::table(&hidden))])
                .collect(),
            formulas: report::formulas(&found),
            notes: report::notes(scene.world.with_output),
            details: json!({
                "prompt_cache": found,
                "calibration": calibration,
                "unlogged": hidden,
                "aliases": prompt_cache::aliases(&found, &calibration),
            }),
            ..Part::default()
        }
    };
    Ok(Ready { stage: None, conclude: Box::new(conclude) })
}
