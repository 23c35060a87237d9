//! The user's own figures beside those of a published study of coding agents. And what the client itself says that sessions
//! have cost (`cost-state`), beside what their requests in the log come to: its totals also hold calls that no record shows, so
//! the log should come to less, never to more.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::id::Id;
use crate::base::model_id;
use crate::logs::timeline::requests::{BlockKind, Marks, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::{counted, known, percent, thousands, usd};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::prompt_cache::outcome::CauseSum;
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::figures::Portion;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;

/// What a study published; shares in percent.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PublishedStudy {
    pub name: String,
    pub about: String,
    pub read_percent: f64,
    pub idle_cost_percent: f64,
    /// Input that a cache of such lifetimes could have read.
    pub ideal: Vec<Ideal>,
    pub compacted_percent: f64,
    pub longest_calls_percent: f64,
    /// The share of the time that these calls have.
    pub longest_time_percent: f64,
}

/// A lifetime and what it could have read.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
pub struct Ideal {
    pub seconds: u32,
    /// Share of the input.
    pub percent: f64,
}

/// The same figures of the user's own logs. A share of nothing is none.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Own {
    /// Tokens read, of all tokens of input.
    pub read: Portion,
    /// What was written again after an idle gap cost, of what all input cost.
    pub idle_cost: Option<f64>,
    /// By lifetime in seconds: tokens that stood in the context before and were last sent no longer ago, of all tokens of input.
    pub ideal: Vec<(u32, Portion)>,
    /// Sessions with a compaction, of all.
    pub compacted: Portion,
    /// Steps with tool calls that were answered.
    pub steps: u64,
    /// The share of their time that the longest ones took.
    pub longest_time: Option<f64>,
}

/// Asks the logs. `baseline` is the log as simulated, which knows what of each context stood in the one before; `expired` are the
/// misses after idle gaps by the bill, `billed` all of it.
pub fn own(
    simulator: &Simulator<'_>,
    baseline: &SimulatedRun,
    expired: &CauseSum,
    billed: &Total,
    study: &PublishedStudy,
) -> Own {
    let timeline = simulator.timeline;
    let sessions = timeline.boundaries.iter().map(|boundary| timeline.session_of_chain(boundary.chain));
    let compacted: BTreeSet<u32> = sessions.collect();
    let steps = steps(timeline);
    Own {
        read: Portion { k: billed.spent.read, n: billed.spent.prompt() },
        idle_cost: expired.cost_again.share_of(&billed.cost),
        ideal: study.ideal.iter().map(|ideal| (ideal.seconds, readable(simulator, baseline, ideal.seconds))).collect(),
        compacted: Portion { k: compacted.len() as u64, n: timeline.counted_sessions().len() as u64 },
        steps: steps.len() as u64,
        longest_time: longest(&steps, study.longest_calls_percent),
    }
}

/// What a cache of that lifetime could have read: leading tokens that the context before has too, if that was sent no longer ago; of
/// a first request the static prefix, if another session sent it no longer ago.
fn readable(simulator: &Simulator<'_>, baseline: &SimulatedRun, seconds: u32) -> Portion {
    let lives = Millis::from(seconds) * 1_000;
    let mut count = Portion::default();
    let mut before: Option<u32> = None;
    for priced in &baseline.requests {
        let request = simulator.timeline.request(priced.request);
        let prior = &simulator.priors[priced.request as usize];
        let idle = match before.replace(request.chain) {
            Some(chain) if chain == request.chain => Some(prior.idle),
            _ if !simulator.timeline.requests_of(request.chain)[0].counts() => Some(prior.idle),
            _ => prior.elsewhere().or(prior.inherited()).map(|warm| request.start.saturating_sub(warm.last_use)),
        };
        count.n += request.context();
        if idle.is_some_and(|idle| idle <= lives) {
            count.k += priced.shared().min(request.context());
        }
    }
    count
}

/// Milliseconds between an answer with calls and the request that brings their results, step by step.
fn steps(timeline: &Timeline) -> Vec<Millis> {
    let mut steps = Vec::new();
    for segment in &timeline.segments {
        let range = segment.requests.start as usize..segment.requests.end as usize;
        for pair in timeline.requests[range].windows(2) {
            let calls =
                pair[0].outputs.clone().any(|block| timeline.blocks[block as usize].kind == BlockKind::ToolUsage);
            // A person who writes in between took the time, not the tool.
            let is_timed = calls
                && pair[1].counts()
                && !pair[1].marks.has(Marks::HUMAN)
                && pair[0].end != NO_TIME
                && pair[1].start != NO_TIME;
            if is_timed {
                steps.push((pair[1].start - pair[0].end).max(0));
            }
        }
    }
    steps
}

/// The share of the time of all steps that the longest ones took.
fn longest(steps: &[Millis], percent: f64) -> Option<f64> {
    let mut sorted = steps.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let count = (sorted.len() as f64 * percent / 100.0).ceil() as usize;
    let all: Millis = sorted.iter().sum();
    (all > 0).then(|| sorted[..count].iter().sum::<Millis>() as f64 / all as f64)
}

/// Both, figure by figure.
pub fn table(own: &Own, study: &PublishedStudy) -> Table {
    let mut table = Table::new(&["figure", "#yours", "of", &format!("#{}", study.name)]);
    let published = |percent: f64| format!("{percent} %");
    let of = |count: Portion| if count.n == 0 { "–".to_owned() } else { percent(count.value()) };
    let some = |share: Option<f64>| known(share, percent);
    let tokens = |count: Portion| format!("{} tokens of input", thousands(count.n));
    table.row(["input read from the cache".into(), of(own.read), tokens(own.read), published(study.read_percent)]);
    table.row([
        "written again after an idle gap".into(),
        some(own.idle_cost),
        "the cost of what was billed".into(),
        published(study.idle_cost_percent),
    ]);
    for ((seconds, count), ideal) in own.ideal.iter().zip(&study.ideal) {
        let name = format!("readable if a prefix lived {} s", thousands(u64::from(*seconds)));
        table.row([name, of(*count), tokens(*count), published(ideal.percent)]);
    }
    let sessions = format!("{} sessions", thousands(own.compacted.n));
    table.row(["sessions with a compaction".into(), of(own.compacted), sessions, published(study.compacted_percent)]);
    table.row([
        format!("time of the longest {} % of the steps with calls", study.longest_calls_percent),
        some(own.longest_time),
        format!("{} steps", thousands(own.steps)),
        published(study.longest_time_percent),
    ]);
    table
}

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
    let mut told: BTreeSet<(String, Id)> = BTreeSet::new();
    for row in &timeline.stated_costs {
        let model = model_id::normalise(timeline.names.text(row.model));
        let own = models.entry(model.clone()).or_default();
        // One session may have asked a model under two ids.
        own.sessions += u64::from(told.insert((model, row.session)));
        own.stated_nano_usd += row.nanodollars;
        own.stated_tokens += row.usage.input + row.usage.output + row.usage.cache_read + row.usage.cache_creation;
    }
    for request in timeline.requests.iter().filter(|request| known.contains(&timeline.session_of(request).id)) {
        let own = models.entry(model_id::normalise(timeline.names.text(request.model))).or_default();
        let spent = Spent { output: request.usage().output, ..simulator.billed(request) };
        own.logged_tokens += spent.prompt() + spent.output;
        own.logged += simulator.tariff.of(request, &spent);
    }
    models.into_iter().map(|(model, row)| Stated { model, ..row }).collect()
}

/// The same as a table.
pub fn stated_table(rows: &[Stated]) -> Table {
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
