//! What the client itself says that sessions have cost (`cost-state`), beside what their requests in the log come to: a
//! second truth. Its totals also hold calls to helper models and requests that no record shows, so the log should come
//! to less, never to more.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::base::id::Id;
use crate::base::model_id;
use crate::report::numbers::{counted, known, percent, usd};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::simulator::Simulator;

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
pub fn stated(simulator: &Simulator<'_>) -> Vec<Stated> {
    let timeline = simulator.timeline;
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
        let prompt = bill::spent(request, simulator.oracle.cache.class_unknown);
        let spent = Spent { output: request.usage.output, ..prompt };
        own.logged_tokens += spent.prompt() + spent.output;
        own.logged += simulator.tariff.cost(request.model, request.start, &spent);
    }
    models.into_iter().map(|(model, row)| Stated { model, ..row }).collect()
}

/// The same as a table.
pub fn table(rows: &[Stated]) -> Table {
    TableBuilder::of(rows)
        .text("model", |row| row.model.clone())
        .text("sessions", |row| counted(row.sessions, "session"))
        .number("stated", |row| usd(row.stated_nano_usd as f64 / 1e9))
        .number("by the log", |row| known(row.logged.usd(), usd))
        .count("tokens stated", |row| row.stated_tokens)
        .count("tokens in the log", |row| row.logged_tokens)
        .number("of those", |row| {
            let share = (row.stated_tokens > 0).then(|| row.logged_tokens as f64 / row.stated_tokens as f64);
            known(share, percent)
        })
        .table()
}
