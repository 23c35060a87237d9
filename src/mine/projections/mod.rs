//! Mined projections: which lists in the results of one tool lead to which argument of the next. A value counts where it is
//! born and where it is first used. How often that happens by chance is told by the lists of other sessions, exactly; whether
//! by habit, by reading every chain backwards. Tables, JSON and words give the counts behind every share.

pub mod chance;

mod value_flows;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::id::{IdMap, IdSet};
use crate::base::names::{Names, Sym};
use crate::frames::projection::{MinedProjection, Spelling};
use crate::logs::history::History;
use crate::logs::values::{CallValues, ListedValue};
use crate::mine::projections::chance::Donors;
use crate::mine::projections::value_flows::{Direction, ReadChain, ValueFlow};
use crate::mine::projections::verdicts::Combination;
use crate::report::table::{Table, TableBuilder};

/// `rules/mined_projections.toml`.
#[derive(Deserialize, Debug, Clone)]
pub struct Thresholds {
    steps_max: u32,
    hits_min: u64,
    sessions_min: u64,
    donors_min: u64,
    fdr: f64,
    chance_floor: f64,
    lift_min: f64,
    lower_end_min: f64,
    distinct_min: u64,
    top_value_share_max: f64,
    constant_share_max: f64,
    constant_lists_min: u64,
    constant_chains_min: u64,
    reversal_p_max: f64,
    residual_share_min: f64,
    equal_share_min: f64,
    bare_share_min: f64,
    path_names: BTreeMap<String, String>,
}

/// Chains that are read side by side: what is known of each is in memory until it was counted.
#[cfg(not(test))]
const CHAINS_AT_ONCE: usize = 64;
#[cfg(test)]
const CHAINS_AT_ONCE: usize = 2;

/// What a value may pass from and to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct LinkKey {
    from: Sym,
    extractor: Sym,
    to: Sym,
    argument: Sym,
}

/// What happened, and what its calls listed and were given.
#[derive(Clone, Copy)]
pub struct ToldHistory<'a> {
    /// Sessions and their calls.
    pub history: &'a History,
    /// Values of the calls, by their place in the history.
    pub values: &'a CallValues,
    pub tools: &'a Names,
}

/// Mines a history: all that was frequent enough to be tested, links first, then by tools.
pub fn mine(told: ToldHistory<'_>, thresholds: &Thresholds) -> Vec<MinedProjection> {
    let keys = frequent(told, thresholds);
    let (mut cells, backward) =
        rayon::join(|| count(told, thresholds, &keys), || read_backwards(told, thresholds, &keys));
    for (cell, passed) in cells.values_mut().zip(backward.into_values()) {
        cell.backward = passed;
    }
    verdicts::judge(told, thresholds, cells)
}

/// Combinations with enough hits to be looked at.
fn frequent(told: ToldHistory<'_>, thresholds: &Thresholds) -> BTreeSet<LinkKey> {
    let of_chain = |mut hits: HashMap<LinkKey, u64>, index| {
        let chain = ReadChain::of(told, index, Direction::Forward);
        chain.each_flow(told, thresholds.steps_max, &mut |flow| add_hits(told, &chain, &flow, &mut hits));
        hits
    };
    let both = |mut hits: HashMap<LinkKey, u64>, others: HashMap<LinkKey, u64>| {
        others.into_iter().for_each(|(key, count)| *hits.entry(key).or_default() += count);
        hits
    };
    let chains = (0..told.history.chains.len()).into_par_iter();
    let hits = chains.fold(HashMap::new, of_chain).reduce(HashMap::new, both);
    hits.into_iter().filter(|(_, hits)| *hits >= thresholds.hits_min).map(|(key, _)| key).collect()
}

/// Counts, of the lists of one answer, those that have a value which is used soon after.
fn add_hits(told: ToldHistory<'_>, chain: &ReadChain, flow: &ValueFlow, hits: &mut HashMap<LinkKey, u64>) {
    let wanted = flow.values();
    for (list, values) in told.values.lists(flow.answer) {
        let stand = |value: &u64| values.iter().any(|listed| listed.value == *value) && chain.is_new(*value, flow);
        let standing: Vec<u64> = wanted.iter().copied().filter(stand).collect();
        if standing.is_empty() {
            continue;
        }
        for (&(to, argument), uses) in &flow.uses {
            if uses.iter().any(|used| standing.contains(&used.value)) {
                let from = told.history.calls[flow.answer].tool;
                *hits.entry(LinkKey { from, extractor: list.extractor, to, argument }).or_default() += 1;
            }
        }
    }
}

/// Counts everything about these combinations.
fn count(told: ToldHistory<'_>, thresholds: &Thresholds, keys: &BTreeSet<LinkKey>) -> BTreeMap<LinkKey, Combination> {
    let donors = Donors::of(told, thresholds.donors_min, keys);
    let mut cells: BTreeMap<LinkKey, Combination> = keys.iter().map(|key| (*key, Combination::default())).collect();
    each_flow(told, thresholds, Direction::Forward, &mut |chain, flow| {
        each_cell(told, flow, &mut cells, &mut |key, cell, uses, list| {
            let new: Vec<u64> =
                list.iter().map(|listed| listed.value).filter(|value| chain.is_new(*value, flow)).collect();
            if new.is_empty() {
                return;
            }
            let values: BTreeSet<u64> = uses.iter().map(|used| used.value).collect();
            let chance = donors.chance(key, chain.session, &values);
            cell.add(chain, flow, uses, &new, chance, told.values);
        });
    });
    cells
}

/// The values that pass when every chain is read backwards, by chain.
fn read_backwards(
    told: ToldHistory<'_>,
    thresholds: &Thresholds,
    keys: &BTreeSet<LinkKey>,
) -> BTreeMap<LinkKey, BTreeSet<(usize, u64)>> {
    let mut backward: BTreeMap<LinkKey, BTreeSet<(usize, u64)>> =
        keys.iter().map(|key| (*key, BTreeSet::new())).collect();
    each_flow(told, thresholds, Direction::Backward, &mut |chain, flow| {
        each_cell(told, flow, &mut backward, &mut |_, backward, uses, list| {
            let passed = uses
                .iter()
                .map(|used| used.value)
                .filter(|value| list.iter().any(|listed| listed.value == *value) && chain.is_new(*value, flow));
            backward.extend(passed.map(|value| (chain.index, value)));
        });
    });
    backward
}

type EachFlow<'f> = &'f mut dyn FnMut(&ReadChain, &ValueFlow);

/// Shows the flows of all chains in order; some chains at a time are read side by side.
fn each_flow(told: ToldHistory<'_>, thresholds: &Thresholds, direction: Direction, see: EachFlow<'_>) {
    let read = |&index: &usize| {
        let (chain, mut flows) = (ReadChain::of(told, index, direction), Vec::new());
        chain.each_flow(told, thresholds.steps_max, &mut |flow| flows.push(flow));
        (chain, flows)
    };
    let chains: Vec<usize> = (0..told.history.chains.len()).collect();
    for some in chains.chunks(CHAINS_AT_ONCE) {
        let read: Vec<(ReadChain, Vec<ValueFlow>)> = some.par_iter().map(read).collect();
        read.iter().for_each(|(chain, flows)| flows.iter().for_each(|flow| see(chain, flow)));
    }
}

type EachCell<'f, C> = &'f mut dyn FnMut(LinkKey, &mut C, &[value_flows::ValueUse], &[ListedValue]);

/// The combinations of one answer that are counted.
fn each_cell<C>(told: ToldHistory<'_>, flow: &ValueFlow, cells: &mut BTreeMap<LinkKey, C>, see: EachCell<'_, C>) {
    let from = told.history.calls[flow.answer].tool;
    for (list, values) in told.values.lists(flow.answer) {
        for (&(to, argument), uses) in &flow.uses {
            let key = LinkKey { from, extractor: list.extractor, to, argument };
            if let Some(cell) = cells.get_mut(&key) {
                see(key, cell, uses, values);
            }
        }
    }
}

type ByValue<V> = IdMap<u64, V>;
type ValueSet = IdSet<u64>;

/// What people want to see of each link.
pub fn overview(rows: &[MinedProjection]) -> Table {
    let share =
        |row: &MinedProjection, count: u64| format!("{:.0} %", 100.0 * count as f64 / row.opportunities.max(1) as f64);
    TableBuilder::of(rows.iter().filter(|row| row.held.is_none()))
        .text("from", |row| row.from.clone())
        .text("list", |row| row.extractor.clone())
        .text("to", |row| row.to.clone())
        .text("argument", |row| row.argument.clone())
        .number("hits", |row| format!("{} of {}", row.hits, row.opportunities))
        .number("top 1", |row| share(row, row.top1))
        .number("top 3", |row| share(row, row.top3))
        .number("by chance", |row| format!("{:.1} %", 100.0 * row.chance / row.opportunities.max(1) as f64))
        .number("sessions", |row| row.sessions.to_string())
        .table()
}

/// The evidence of a link in one line.
pub fn words(row: &MinedProjection) -> String {
    let MinedProjection { from, to, argument, extractor, .. } = row;
    let spelled = match &row.spelling {
        Some(link) => format!("projection = \"{}\", projection_arg = \"{}\"", link.projection, link.projection_arg),
        None => "a nested argument cannot stand in a configuration".to_owned(),
    };
    format!(
        "{from} → {to}.{argument} [{extractor}]: {}; {} values pass forwards only, {} backwards only; \
         {} of {} calls had no other argument; {spelled}",
        row.counts(),
        row.forward,
        row.reversed,
        row.sole,
        row.hits
    )
}

/// Why a candidate is no link, in one line.
pub fn held(row: &MinedProjection) -> Option<String> {
    let MinedProjection { from, to, argument, extractor, forward, reversed, .. } = row;
    let reason = row.held?.words();
    Some(format!(
        "held {from} → {to}.{argument} [{extractor}]: {reason} ({}; {forward} values pass forwards only, \
         {reversed} backwards only; p {:.1e})",
        row.counts(),
        row.p
    ))
}

/// All fields, one row per link or candidate.
pub fn table(rows: &[MinedProjection]) -> Table {
    let spelled = |row: &MinedProjection, of: fn(&Spelling) -> &String| {
        row.spelling.as_ref().map(|link| of(link).clone()).unwrap_or_default()
    };
    TableBuilder::of(rows)
        .text("from", |row| row.from.clone())
        .text("to", |row| row.to.clone())
        .text("argument", |row| row.argument.clone())
        .text("extractor", |row| row.extractor.clone())
        .text("projection", |row| spelled(row, |link| &link.projection))
        .text("projection_arg", |row| spelled(row, |link| &link.projection_arg))
        .number("opportunities", |row| row.opportunities.to_string())
        .number("hits", |row| row.hits.to_string())
        .number("top1", |row| row.top1.to_string())
        .number("top3", |row| row.top3.to_string())
        .number("chance", |row| format!("{:.3}", row.chance))
        .number("sessions_seen", |row| row.sessions_seen.to_string())
        .number("sessions", |row| row.sessions.to_string())
        .number("values", |row| row.values.to_string())
        .number("forward", |row| row.forward.to_string())
        .number("reversed", |row| row.reversed.to_string())
        .number("sole", |row| row.sole.to_string())
        .number("p", |row| format!("{:.2e}", row.p))
        .text("held", |row| row.held.map(|held| held.into_str().to_owned()).unwrap_or_default())
        .table()
}

/// The same for JSON.
pub fn json(rows: &[MinedProjection]) -> Value {
    rows.iter().map(row_json).collect()
}

fn row_json(row: &MinedProjection) -> Value {
    let mut fields = json!(row);
    fields.as_object_mut().map(|fields| fields.remove("spelling"));
    fields["projection"] = json!(row.spelling.as_ref().map(|link| &link.projection));
    fields["projection_arg"] = json!(row.spelling.as_ref().map(|link| &link.projection_arg));
    fields
}
