//! What a person can change to spend less, each with its effect on these very logs, and what a case is made of. One file for each
//! way to look.

pub mod carried;
pub mod lately;
pub mod levers;
pub mod losers;
pub mod misses;
pub mod parts;
pub mod paying;
pub mod search;
pub mod subagents;
pub mod thresholds;
pub mod uncached;
pub mod versions;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::base::names::Sym;
use crate::cost::bill::Bill;
use crate::cost::findings::levers::{Assignment, LeverAdvice, Repair};
use crate::cost::findings::thresholds::{FindingThresholds, ThreadKind};
use crate::logs::timeline::requests::Request;
use crate::report::numbers::counted;
use crate::settings::claude::levers::Levers;
use crate::whatif::client::{LeverStudy, LeverValue, SettingSides, Trial};
use crate::whatif::prompt_cache::causes::Loss;
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::distance::Apart;
use crate::whatif::sim::figures::{self, Sides};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::workload::Workload;

/// Every way to look. A new one is one line here.
const REGISTER: &[fn(&BillEvidence<'_>) -> Vec<Case>] =
    &[paying::cases, misses::cases, uncached::cases, parts::cases, subagents::cases, versions::cases];

/// What is looked at.
pub struct BillEvidence<'e> {
    /// Requests, sizes, prices.
    pub workload: &'e Workload,
    /// The requests under the cache as it was.
    pub simulator: &'e Simulator<'e>,
    /// What was lost of the cache.
    pub losses: &'e [Loss],
    /// Chains that never read it ([`uncached::unread_threads`]).
    pub unread: &'e BTreeSet<u32>,
    /// Dollars of all input.
    pub billed_usd: f64,
    /// How far the simulated log is from the bill, by session and model.
    pub apart: &'e BTreeMap<(u32, Sym), Apart>,
    /// What came of what people try over all of the logs, in the order of the sheet; none where nothing is estimated.
    pub replays: &'e [Option<Cell>],
    /// What can be set in Claude Code.
    pub levers: &'e Levers,
    /// What `tune claude-settings` tries.
    pub study: &'e LeverStudy,
    /// The settings that it proposes if nothing stands in their way.
    pub paying: &'e [LeverValue],
    /// Numbers and words.
    pub thresholds: &'e FindingThresholds,
}

/// On what the figures of a finding rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum FindingBasis {
    /// The requests were simulated under another setting.
    Replayed,
    /// It is what the bill of the input shows: the most that can be saved.
    Billed,
    /// It is a share of the whole bill, input and output: the most that can be saved.
    Shared,
    /// The same tokens, input and output, at the list prices of another model: the most that can be saved.
    Priced,
}

impl<'e> BillEvidence<'e> {
    /// The bill to be shared out.
    pub fn bill(&self) -> Bill<'e> {
        Bill::new(self.workload, self.simulator.cache_rules.cache.class_unknown)
    }

    /// The trial of the setting that pays of one lever: the lever is that for whose settings there is a `value`.
    fn paying<T>(&self, value: impl Fn(LeverValue) -> Option<T>) -> Option<(T, &'e Trial)> {
        let (value, setting) = self.paying.iter().find_map(|setting| Some((value(*setting)?, *setting)))?;
        Some((value, self.study.trials.iter().find(|trial| trial.setting == setting)?))
    }

    /// How many of these requests each session and model has.
    fn counts(&self, requests: impl Iterator<Item = u32>) -> BTreeMap<(u32, Sym), u64> {
        let mut counts = BTreeMap::new();
        requests.for_each(|request| *counts.entry(self.key(request)).or_default() += 1);
        counts
    }

    /// What requests are charged, on both sides, by session and model.
    fn charged(&self, charge: impl Fn(&Request) -> Option<(Spent, Cost)>) -> BTreeMap<(u32, Sym), Sides> {
        let mut sums: BTreeMap<(u32, Sym), Sides> = BTreeMap::new();
        for (index, request) in self.workload.timeline.counted() {
            let Some((spent, cost)) = charge(request) else { continue };
            let (one, unpriced_requests) = (figures::RunBill { spent, cost }, u64::from(cost.unpriced_tokens > 0));
            let sides = Sides { requests: 1, unpriced_requests, baseline: one, policy: one };
            *sums.entry(self.key(index)).or_default() += sides;
        }
        sums
    }

    /// Session and model of a request.
    fn key(&self, index: u32) -> (u32, Sym) {
        let timeline = &self.workload.timeline;
        let request = timeline.request(index);
        (timeline.session_of_chain(request.chain), request.model)
    }
}

/// The input of both sides of a setting that was tried, by session and model.
pub fn tried_sides(trial: &Trial) -> BTreeMap<(u32, Sym), Sides> {
    let sides = |tried: SettingSides| {
        let input = |cost: Cost, answers| figures::RunBill { cost: cost.less(&answers), ..figures::RunBill::default() };
        let baseline = input(tried.before, tried.answers_before);
        let policy = input(tried.after, tried.answers_after);
        Sides { requests: tried.requests, unpriced_requests: 0, baseline, policy }
    };
    trial.by_model.iter().map(|(key, tried)| (*key, sides((*tried).into()))).collect()
}

/// What to do.
#[derive(Clone)]
pub enum Advice {
    /// Something else than to set a lever, in words.
    Do(String),
    Set(LeverAdvice),
}

/// Something that may be a finding.
pub struct Case {
    pub id: String,
    /// What happens, in plain words; `{count}` stands for how often.
    pub what: String,
    /// The same where it holds without having been counted once; none where that cannot be.
    pub what_uncounted: Option<String>,
    /// What to do about it.
    pub advice: Advice,
    /// The same where it holds in parts of one kind only, by kind.
    pub advice_in: BTreeMap<&'static str, Advice>,
    /// The client version that repairs it.
    pub repair: Option<Repair>,
    /// What has spared it since, where it is set by now; nothing where enough is left that it does not spare.
    pub spared_by: Vec<Assignment>,
    /// The threads whose losses that are.
    pub spared_of: Option<ThreadKind>,
    /// Whether it is held against later sessions where it is made, as a setting is that was chosen on earlier ones.
    pub is_judged_lately: bool,
    /// Arguments of the command that its figures come from; none where the evidence is all there is.
    pub source: Vec<String>,
    pub basis: FindingBasis,
    /// How often it happened, by session and model.
    pub counts: BTreeMap<(u32, Sym), u64>,
    pub breaks: Breaks,
    /// Not told beside the finding of this name.
    pub unless: Option<String>,
    /// Whether something follows from it.
    pub is_actionable: bool,
    /// The log, and the log without it, by session and model.
    pub sides: BTreeMap<(u32, Sym), Sides>,
    /// What it is made of; `{made}` stands for the names in what happens and in the advice.
    pub made_of: MadeOf,
    /// How long somebody waited.
    pub waits: Option<Waits>,
}

impl Case {
    /// A case that says nothing yet: somebody can do something about it, and it happened nowhere.
    pub fn of(basis: FindingBasis, source: &[&str]) -> Self {
        Self {
            id: String::new(),
            what: String::new(),
            what_uncounted: None,
            advice: Advice::Do(String::new()),
            advice_in: BTreeMap::new(),
            repair: None,
            spared_by: Vec::new(),
            spared_of: None,
            is_judged_lately: basis == FindingBasis::Replayed,
            source: source.iter().map(|&word| word.to_owned()).collect(),
            basis,
            counts: BTreeMap::new(),
            breaks: Breaks::default(),
            unless: None,
            is_actionable: true,
            sides: BTreeMap::new(),
            made_of: MadeOf::default(),
            waits: None,
        }
    }

    /// Adds what happened so often under some names, with both sides of it.
    fn add(&mut self, names: Vec<String>, key: (u32, Sym), count: u64, sides: &Sides) {
        *self.counts.entry(key).or_default() += count;
        *self.sides.entry(key).or_default() += sides;
        self.made_of.add(names, key, count, sides.baseline.cost, sides.policy.cost);
    }
}

/// A part of a case by names that are neither projects nor models: kinds of agents, servers, hooks, versions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Made {
    /// Its names, in the order of [`MadeOf::kinds`].
    pub names: Vec<String>,
    pub count: u64,
    /// Dollars that it cost, as the bill has them.
    pub before_usd: f64,
    /// Dollars that are saved.
    pub saved_usd: f64,
}

/// Sums by name, for each session and model, so that they can be told of a part of the logs.
#[derive(Clone, Default)]
pub struct MadeOf {
    /// What the names are: `agent type`, `server`, `hook`, `version`, `model`.
    pub kinds: Vec<&'static str>,
    sums: BTreeMap<Vec<String>, BTreeMap<(u32, Sym), FindingSum>>,
}

/// How often, what it cost, what it would have cost.
#[derive(Clone, Copy, Default)]
struct FindingSum {
    count: u64,
    before: Cost,
    after: Cost,
}

impl MadeOf {
    /// Nothing so far.
    pub fn by(kinds: &[&'static str]) -> Self {
        Self { kinds: kinds.to_vec(), sums: BTreeMap::new() }
    }

    /// Adds what happened under some names: how often, what it cost, what it would have cost.
    pub fn add(&mut self, names: Vec<String>, key: (u32, Sym), count: u64, before: Cost, after: Cost) {
        let sum = self.sums.entry(names).or_default().entry(key).or_default();
        sum.count += count;
        sum.before += before;
        sum.after += after;
    }

    /// The rows of these sessions and models, those that save most first.
    pub fn rows(&self, inside: &[(u32, Sym)]) -> Vec<Made> {
        let inside: BTreeSet<&(u32, Sym)> = inside.iter().collect();
        let mut rows: BTreeMap<&Vec<String>, (u64, f64, f64)> = BTreeMap::new();
        let sums = self.sums.iter().flat_map(|(names, sums)| sums.iter().map(move |(key, sum)| (names, key, sum)));
        for (names, _, sum) in sums.filter(|(_, key, _)| inside.contains(key)) {
            let [before, after] = [sum.before, sum.after].map(|cost| cost.nano_usd as f64 / 1e9);
            let row = rows.entry(names).or_default();
            (row.0, row.1, row.2) = (row.0 + sum.count, row.1 + before, row.2 + before - after);
        }
        let made = |(names, (count, before_usd, saved_usd)): (&Vec<String>, _)| Made {
            names: names.clone(),
            count,
            before_usd,
            saved_usd,
        };
        let mut rows: Vec<Made> = rows.into_iter().map(made).collect();
        rows.sort_by(|a, b| b.saved_usd.total_cmp(&a.saved_usd).then_with(|| a.names.cmp(&b.names)));
        rows
    }
}

/// What a change would have taken away that was needed later: edits of text that was gone, and steps that name it.
#[derive(Default)]
pub struct Breaks {
    /// Edits of text that was gone, and steps that only name it.
    by: BTreeMap<(u32, Sym), (u64, u64)>,
}

impl Breaks {
    /// Those of a setting of the client.
    pub fn of(trial: &Trial) -> Self {
        let tried = trial.by_model.iter().map(|(key, tried)| (*key, SettingSides::from(*tried)));
        Self { by: tried.map(|(key, tried)| (key, (tried.hard, tried.soft))).collect() }
    }

    /// Those of some sessions and models, or of all of them, in words; none if nothing is missed.
    pub fn told(&self, inside: &[(u32, Sym)]) -> Option<String> {
        let inside = inside.iter().filter_map(|key| self.by.get(key));
        let (hard, soft) = inside.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let parts = [
            (hard > 0).then(|| format!("{} would need text that is gone", counted(hard, "edit"))),
            (soft > 0).then(|| format!("{} would mention such text", counted(soft, "later step"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("the price: {}", parts.join(", ")))
    }
}

/// Time that somebody waited.
pub struct Waits {
    /// Milliseconds by session.
    pub by_session: BTreeMap<u32, u64>,
    /// Told from so many seconds on, on a day with requests.
    pub seconds_a_day_min: f64,
}

/// Every case, in the order of the register.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    REGISTER.par_iter().flat_map_iter(|look| look(evidence)).collect()
}
