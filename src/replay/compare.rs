//! Several configurations side by side: two files per endpoint, or the cells of a grid.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::base::error::Result;
use crate::frames::input::Input;
use crate::replay::input::ReplayInput;
use crate::replay::report::{ReachSavings, ReplayArm, ReplayReport, figure, reaches_json, tally_json};
use crate::replay::savings::Tally;
use crate::replay::scenarios::{GridCell, Scenarios};
use crate::replay::study::{EXTENDED, PUBLISHED, reached};
use crate::replay::{ReplayOptions, Scenario};
use crate::report::numbers::{signed, thousands};
use crate::report::table::Table;
use crate::settings::Settings;

/// What came of the cells of a grid: how tokens were counted, and what every reach could save.
pub struct ReplayGrid<'s> {
    scenarios: &'s Scenarios,
    cells: Vec<(String, Vec<ReachSavings>)>,
}

impl<'s> ReplayGrid<'s> {
    /// Runs every cell over the same facts, cells in parallel.
    pub fn run(scenarios: &'s Scenarios, input: &mut Input) -> Result<Self> {
        let settings: Vec<_> = scenarios.cells.iter().map(|cell| &cell.settings).collect();
        let Scenarios { model, reaches, .. } = scenarios;
        let question = format!("sweep {settings:?} {model:?} {reaches:?}");
        let cells = input.remember(&question, |input| {
            let source = ReplayInput::last(model.as_deref(), input)?;
            let both = |settings: &&Settings| {
                let published = Scenario::new(settings, &source.tape, ReplayOptions::arm(false));
                let extended = published.with_options(settings, ReplayOptions::arm(true));
                let everything = [published, extended];
                (
                    everything[0].counted_by(&source.tape),
                    reaches.all.iter().map(|reach| reached(&source, reach, &everything)).collect(),
                )
            };
            Ok(input.pool.install(|| settings.par_iter().map(both).collect()))
        })?;
        Ok(Self { scenarios, cells })
    }

    fn rows(&self) -> impl Iterator<Item = (&'s GridCell, &(String, Vec<ReachSavings>))> {
        self.scenarios.cells.iter().zip(&self.cells)
    }

    /// How tokens were counted, in words: each way once, in the order of the cells.
    pub fn counters(&self) -> String {
        let mut seen = BTreeSet::new();
        let counted = self.cells.iter().map(|(tokens, _)| tokens.as_str());
        counted.filter(|tokens| seen.insert(*tokens)).collect::<Vec<_>>().join(" | ")
    }

    /// The swept keys that make no difference, whatever the others are.
    pub fn idle(&self) -> Vec<&'s str> {
        let is_idle = |&(axis, _): &(usize, &'s String)| {
            let mut seen: BTreeMap<Vec<&String>, &(String, Vec<ReachSavings>)> = BTreeMap::new();
            self.rows().all(|(cell, found)| {
                let others = cell.values.iter().enumerate().filter(|(place, _)| *place != axis);
                *seen.entry(others.map(|(_, value)| value).collect()).or_insert(found) == found
            })
        };
        let is_swept = |axis: usize| {
            self.scenarios.cells.iter().any(|cell| cell.values[axis] != self.scenarios.cells[0].values[axis])
        };
        let keys = self.scenarios.keys.iter().enumerate().filter(|(axis, _)| is_swept(*axis));
        keys.filter(is_idle).map(|(_, key)| key.as_str()).collect()
    }

    /// The cells for programs.
    pub fn json(&self) -> Vec<Value> {
        let Scenarios { keys, reaches, .. } = self.scenarios;
        let cell = |(cell, (tokens, reached)): (&GridCell, &(String, Vec<ReachSavings>))| {
            let ReachSavings { published, extended, .. } = &reached[reaches.place()];
            let values: serde_json::Map<String, Value> =
                keys.iter().cloned().zip(cell.values.iter().map(|value| json!(value))).collect();
            json!({ "values": values, "tokens": tokens, PUBLISHED: tally_json(published), EXTENDED: tally_json(extended),
                    "reaches": reaches_json(reached) })
        };
        self.rows().map(cell).collect()
    }

    /// The cells for people.
    pub fn table(&self) -> Table {
        let Scenarios { keys, reaches, .. } = self.scenarios;
        let figures = ["#baseline", "#dedup%", "#encoder%", "#combined%", "#sent", "#extended%", "#sent extended"];
        let mut table = Table::new(&keys.iter().map(String::as_str).chain(figures).collect::<Vec<_>>());
        for (cell, (_, reached)) in self.rows() {
            let ReachSavings { published, extended, .. } = &reached[reaches.place()];
            let savings = published.savings();
            let figures = [
                thousands(published.baseline()),
                figure(savings.dedup),
                figure(savings.encoder),
                figure(savings.combined),
                thousands(published.sent()),
                figure(extended.savings().combined),
                thousands(extended.sent()),
            ];
            table.row(cell.values.iter().cloned().chain(figures));
        }
        table
    }

    /// Who could save how much of the tokens in each cell.
    pub fn who(&self) -> Table {
        let keys = self.scenarios.keys.iter().map(String::as_str);
        let mut table = Table::new(&keys.chain(["who", "#published%", "#extended%"]).collect::<Vec<_>>());
        for (cell, (_, reached)) in self.rows() {
            for ReachSavings { name, published, extended, .. } in reached {
                let shares = [published, extended].map(|tally| figure(tally.savings().combined));
                table.row(cell.values.iter().cloned().chain([name.clone()]).chain(shares));
            }
        }
        table
    }
}

/// What the second of two configurations changes, per endpoint, for programs.
pub fn arms_json([first, second]: [&ReplayReport; 2]) -> Vec<Value> {
    let arm = |(one, other): (&ReplayArm, &ReplayArm)| {
        let endpoints = rows(one, other).into_iter().map(|(name, one, other)| {
            json!({ "endpoint": name, "first": tally_json(&one), "second": tally_json(&other),
                    "sent_difference": other.sent() as i64 - one.sent() as i64,
                    "saved_difference": saved_more(&one, &other) })
        });
        json!({ "arm": one.name, "first": tally_json(&one.total), "second": tally_json(&other.total),
                "endpoints": endpoints.collect::<Vec<_>>() })
    };
    first.arms.iter().zip(&second.arms).map(arm).collect()
}

/// Tokens that the second saves more; each counts in its own vocabulary, so that what is sent tells less.
fn saved_more(one: &Tally, other: &Tally) -> i64 {
    other.saved() as i64 - one.saved() as i64
}

/// The same for people.
pub fn arms([first, second]: [&ReplayReport; 2]) -> Table {
    let mut table = Table::new(&["formats", "endpoint", "#baseline", "#first%", "#second%", "#difference", "#tokens"]);
    for (one, other) in first.arms.iter().zip(&second.arms) {
        let total = [("all".to_owned(), one.total, other.total)];
        let changed = rows(one, other).into_iter().filter(|(_, one, other)| saved_more(one, other) != 0);
        for (name, before, after) in total.into_iter().chain(changed) {
            let shares = [before, after].map(|tally| tally.savings().combined);
            let points = shares[0].zip(shares[1]).map(|(before, after)| signed(100.0 * (after - before), 2));
            let difference = saved_more(&before, &after);
            table.row([
                one.name.clone(),
                name,
                thousands(before.baseline()),
                figure(shares[0]),
                figure(shares[1]),
                points.unwrap_or_else(|| "–".to_owned()),
                format!("{}{}", if difference < 0 { "−" } else { "+" }, thousands(difference.unsigned_abs())),
            ]);
        }
    }
    table
}

/// Endpoints of both replays, by baseline tokens.
fn rows(one: &ReplayArm, other: &ReplayArm) -> Vec<(String, Tally, Tally)> {
    let same = |name: &str| other.endpoints.iter().find(|group| group.name == name).map(|group| group.tally);
    let pairs = one.endpoints.iter();
    let mut rows: Vec<_> =
        pairs.map(|group| (group.name.clone(), group.tally, same(&group.name).unwrap_or_default())).collect();
    rows.sort_by_key(|(name, tally, _)| (std::cmp::Reverse(tally.baseline()), name.clone()));
    rows
}
