//! What Claude Code would have cost under other settings of its own: each lever that can be simulated at each of its values,
//! session by session, with what it would have broken.

pub mod capped;
pub mod joint;
pub mod realised;
pub mod thresholds;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::Value;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::names::Sym;
use crate::base::sums::adds_up;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::{Millis, Place};
use crate::whatif::chosen::{Policy, PolicyConfigs};
use crate::whatif::client::capped::{Capped, Limit, ResultLimit};
use crate::whatif::client::thresholds::{ClientThresholds, Versions, versions};
use crate::whatif::compaction::params::{Align, Params as CompactionParams};
use crate::whatif::compaction::{Compaction, CompactionThresholds};
use crate::whatif::prompt_cache::params::{CacheLifetime, CacheRules, Params, TtlPolicy};
use crate::whatif::sim::bill::foretold_cost;
use crate::whatif::sim::breakage::rows::{Break, Strength};
use crate::whatif::sim::breakage::tally::penalties;
use crate::whatif::sim::breakage::{BreakWatch, Detectors};
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::distance;
use crate::whatif::sim::simulator::{SimulatedRun, Simulator};
use crate::whatif::sim::sizes::SizeRules;
use crate::whatif::sim::view::{Stage, StageJournal};
use crate::whatif::workload::Workload;

/// A lever that can be simulated, at a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LeverValue {
    /// Lifetime of what main threads write to the cache.
    MainTtl(CacheLifetime),
    /// The same of subagents.
    SubagentTtl(CacheLifetime),
    /// The window that automatic compaction goes by, in tokens.
    Window(u64),
    /// How long results of tools may be.
    Result(Limit),
}

/// Which requests a lever concerns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr, strum::EnumString)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum LeverPart {
    /// Those of main threads.
    Main,
    /// Those of subagents.
    Subagents,
    /// All.
    All,
}

impl LeverPart {
    /// Whether some requests are of both.
    pub fn meets(self, other: Self) -> bool {
        self == other || [self, other].contains(&Self::All)
    }

    fn has(self, is_main: bool) -> bool {
        match self {
            Self::Main => is_main,
            Self::Subagents => !is_main,
            Self::All => true,
        }
    }
}

impl LeverValue {
    /// Whether both are values of one lever.
    pub fn is_of_lever(self, other: Self) -> bool {
        match (self, other) {
            (Self::Result(one), Self::Result(other)) => discriminant(&one) == discriminant(&other),
            _ => discriminant(&self) == discriminant(&other),
        }
    }

    /// As it stands in a file of settings.
    pub fn value(self) -> Value {
        match self {
            Self::MainTtl(class) | Self::SubagentTtl(class) => class.into_str().into(),
            Self::Window(size)
            | Self::Result(Limit::BashChars(size) | Limit::McpTokens(size) | Limit::ReadTokens(size)) => size.into(),
        }
    }

    /// Which requests it concerns.
    pub fn part(self) -> LeverPart {
        match self {
            Self::MainTtl(_) => LeverPart::Main,
            Self::SubagentTtl(_) => LeverPart::Subagents,
            _ => LeverPart::All,
        }
    }
}

/// One session without and with a setting.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct SettingSides {
    /// Requests.
    pub requests: u64,
    /// Cost as simulated of what the log says.
    pub before: Cost,
    /// Cost with the setting, readings of what is lost included.
    pub after: Cost,
    /// Steps that would surely have failed.
    pub hard: u64,
    /// Steps whose source is gone.
    pub soft: u64,
    /// Simulated less billed, in units.
    pub error_units: i128,
}

adds_up!(SettingSides: requests, before, after, hard, soft, error_units);

impl SettingSides {
    /// What a setting comes to beside another one that holds already, of the same requests.
    fn beside(&self, standing: &Self) -> Self {
        let (hard, soft) = (self.hard.saturating_sub(standing.hard), self.soft.saturating_sub(standing.soft));
        Self { before: standing.after, hard, soft, ..*self }
    }

    /// How far the simulation is from the bill, as a share of it.
    pub fn error(&self) -> f64 {
        (self.error_units as f64 / self.before.units.max(1) as f64).abs()
    }

    /// The change of cost, as a share; none without cost.
    pub fn change(&self) -> Option<f64> {
        self.before.change_to(&self.after)
    }
}

/// What a setting comes to.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// The setting.
    pub setting: LeverValue,
    /// Session by session, in the order of [`LeverStudy::sessions`].
    pub sessions: Vec<SettingSides>,
    /// By session (index into the timeline's) and model.
    pub by_model: BTreeMap<(u32, Sym), SettingSides>,
}

/// A session of the study.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StudiedSession {
    /// First record.
    pub first: Millis,
    /// End of its last request.
    pub last: Millis,
    /// Its whole cost as simulated.
    pub cost: Cost,
    /// What of that subagents took.
    pub subagents: Cost,
    /// Whether values are chosen on it; else they are judged on it.
    pub is_earlier: bool,
}

/// All settings that were tried.
#[derive(Clone, PartialEq, Debug)]
pub struct LeverStudy {
    /// The sessions, earliest first.
    pub sessions: Vec<StudiedSession>,
    /// The settings.
    pub trials: Vec<Trial>,
    /// Those that hold already: whoever changes one saves beside it, not beside the log.
    pub standing: Vec<Trial>,
    /// Client versions of the last weeks, each with its last request.
    pub versions: Versions,
    /// By how many percent sides have to differ at least.
    pub least_percent: f64,
}

impl LeverStudy {
    /// A trial beside what holds already of its lever, without its parts by model; as it is where nothing holds.
    pub fn beside_standing<'s>(&'s self, trial: &'s Trial) -> Cow<'s, Trial> {
        let Some(standing) = self.standing.iter().find(|standing| standing.setting.is_of_lever(trial.setting)) else {
            return Cow::Borrowed(trial);
        };
        let sessions = trial.sessions.iter().zip(&standing.sessions).map(|(sides, stands)| sides.beside(stands));
        Cow::Owned(Trial { setting: trial.setting, sessions: sessions.collect(), by_model: BTreeMap::new() })
    }

    /// What a setting, tried session by session, comes to on one side: the earlier sessions, or the later ones.
    pub fn sum(&self, tried: &[SettingSides], is_earlier: bool) -> SettingSides {
        self.concerned(tried, is_earlier).map(|(_, sides)| *sides).sum()
    }

    /// The sessions of one side that a setting concerns.
    pub fn concerned<'s>(
        &'s self,
        tried: &'s [SettingSides],
        is_earlier: bool,
    ) -> impl Iterator<Item = (&'s StudiedSession, &'s SettingSides)> + use<'s> {
        let pairs = self.sessions.iter().zip(tried);
        pairs.filter(move |(seen, sides)| seen.is_earlier == is_earlier && sides.before.units > 0)
    }

    /// Of some settings the one that whoever proposes a value proposes, with its change on the earlier sessions: there the
    /// cheapest, and of those that are not told from it the one that breaks least.
    pub fn chosen<'s>(&self, trials: impl IntoIterator<Item = &'s Trial>) -> Option<(f64, &'s Trial)> {
        let tried = trials.into_iter().filter_map(|trial| {
            let sum = self.sum(&trial.sessions, true);
            Some((sum.change()?, (sum.hard, sum.soft), trial))
        });
        let tried: Vec<_> = tried.collect();
        let cheapest = tried.iter().map(|(change, ..)| *change).min_by(f64::total_cmp)?;
        // What saves no more than nothing may is not chosen for what it breaks.
        let least = self.least_percent / 100.0;
        let is_near = |change: f64| change == cheapest || change <= (cheapest + least).min(-least);
        let near = tried.into_iter().filter(|(change, ..)| is_near(*change));
        let best = near.min_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)))?;
        Some((best.0, best.2))
    }

    /// The chosen one of some settings and its value; none if no value is cheaper than the log, where it is chosen and, by
    /// more than the simulation is off, on the later sessions.
    pub fn paying<T>(&self, value: impl Fn(LeverValue) -> Option<T>) -> Option<(T, &Trial)> {
        let (change, trial) = self.chosen(self.trials.iter().filter(|trial| value(trial.setting).is_some()))?;
        let later = self.sum(&trial.sessions, false);
        let holds = later.change()? < -later.error().max(self.least_percent / 100.0);
        Some((value(trial.setting)?, trial)).filter(|_| change < 0.0 && holds)
    }
}

/// Tries levers on the sessions of some projects, or on all, under the cache of the simulator. Whether answers count is its
/// matter as well. `standing` are settings that hold already.
///
/// # Errors
/// If a data file does not fit.
pub fn study(
    simulator: &Simulator<'_>,
    workload: &Workload,
    data: &Data,
    projects: Option<&BTreeSet<Id>>,
    standing: &[LeverValue],
) -> Result<LeverStudy> {
    let sheet = ClientThresholds::load(data)?;
    let bench = LeverTrials::new(simulator, workload, &sheet, data, projects)?;
    // A run is as large as the log: of each only what it comes to is kept.
    let mut trials: Vec<Trial> = Vec::new();
    let of_ttl = sheet.ttl.values.par_iter().flat_map_iter(|&class| {
        let run = simulator.under(&living(simulator.oracle, Some(class))).baseline();
        [LeverValue::MainTtl(class), LeverValue::SubagentTtl(class)].map(|setting| bench.trial(setting, &run, &[]))
    });
    trials.par_extend(of_ttl);
    let results = &sheet.results;
    let limits = results.bash_chars.iter().copied().map(Limit::BashChars);
    let limits = limits.chain(results.mcp_tokens.iter().copied().map(Limit::McpTokens));
    let limits = limits.chain(results.read_tokens.iter().copied().map(Limit::ReadTokens));
    let windows = sheet.window.tokens.iter().copied().map(LeverValue::Window);
    let settings: Vec<LeverValue> = windows.chain(limits.map(LeverValue::Result)).collect();
    // One by one: a thread that took several at once would be the last to end.
    let of_stages = settings.par_iter().with_max_len(1).filter_map(|&setting| {
        let (run, breaks) = bench.run(simulator, vec![bench.stage(setting)?]);
        Some(bench.trial(setting, &run, &breaks))
    });
    trials.par_extend(of_stages);
    let stands = |&setting: &LeverValue| {
        let tried = trials.iter().find(|trial| trial.setting == setting);
        tried.cloned().unwrap_or_else(|| bench.alone(setting))
    };
    Ok(LeverStudy {
        standing: standing.par_iter().map(stands).collect(),
        trials,
        sessions: bench.seen(sheet.split.earlier_percent),
        versions: versions(&workload.timeline, &bench.order, sheet.split.version_days),
        least_percent: workload.winner_percent_min,
    })
}

/// Several settings as one configuration, session by session in the order of [`LeverStudy::sessions`], beside those that hold
/// already. Of these the ones about other levers go on holding.
///
/// # Errors
/// If a data file does not fit.
pub fn together(
    simulator: &Simulator<'_>,
    workload: &Workload,
    data: &Data,
    projects: Option<&BTreeSet<Id>>,
    (settings, standing): (&[LeverValue], &[LeverValue]),
) -> Result<Vec<SettingSides>> {
    let sheet = ClientThresholds::load(data)?;
    let bench = LeverTrials::new(simulator, workload, &sheet, data, projects)?;
    if standing.is_empty() {
        return Ok(bench.together(settings));
    }
    let kept = standing.iter().filter(|standing| !settings.iter().any(|setting| setting.is_of_lever(**standing)));
    let all: Vec<LeverValue> = settings.iter().chain(kept).copied().collect();
    let (with, without) = rayon::join(|| bench.together(&all), || bench.together(standing));
    Ok(with.iter().zip(&without).map(|(with, without)| with.beside(without)).collect())
}

/// The cache with a lifetime for everything that is written; none: as the log says.
fn living(oracle: &CacheRules, class: Option<CacheLifetime>) -> CacheRules {
    let ttl = class.map_or(oracle.params.ttl, TtlPolicy::Always);
    oracle.with(Params { ttl, ..oracle.params })
}

/// The sessions with requests, earliest first.
fn order(timeline: &Timeline, projects: Option<&BTreeSet<Id>>) -> Vec<u32> {
    let has_requests: BTreeSet<u32> = timeline
        .requests
        .iter()
        .filter(|request| request.context() > 0)
        .map(|request| timeline.chains[request.chain as usize].session)
        .collect();
    let is_asked =
        |session: &u32| projects.is_none_or(|asked| asked.contains(&timeline.sessions[*session as usize].project));
    // Sessions stand in the order of their first records.
    has_requests.into_iter().filter(is_asked).collect()
}

/// What every try is made on.
struct LeverTrials<'b> {
    simulator: &'b Simulator<'b>,
    detectors: Detectors<'b>,
    baseline: SimulatedRun,
    blind: SimulatedRun,
    sheet: &'b ClientThresholds,
    compaction: CompactionThresholds,
    params: CompactionParams,
    tokens: Arc<[u32]>,
    sizes: &'b SizeRules,
    /// The sessions with requests, earliest first.
    order: Vec<u32>,
}

impl<'b> LeverTrials<'b> {
    fn new(
        simulator: &'b Simulator<'b>,
        workload: &'b Workload,
        sheet: &'b ClientThresholds,
        data: &Data,
        projects: Option<&BTreeSet<Id>>,
    ) -> Result<Self> {
        let compaction = data.read("policies/compaction.toml", CompactionThresholds::parse)?;
        let params = PolicyConfigs::load(data)?.sheet(Policy::Compaction).params()?;
        let (baseline, blind) = rayon::join(|| simulator.baseline(), || foretold_cost(simulator));
        let detectors = Detectors::new(&workload.timeline, &workload.sizes.tokens, &workload.breakage);
        Ok(Self {
            simulator,
            detectors,
            baseline,
            blind,
            sheet,
            compaction,
            params,
            tokens: workload.sizes.tokens.as_slice().into(),
            sizes: &workload.sizes.rules,
            order: order(&workload.timeline, projects),
        })
    }

    fn run(&self, simulator: &Simulator<'_>, stages: Vec<Box<dyn Stage>>) -> (SimulatedRun, Vec<Break>) {
        BreakWatch::new(&self.detectors).over(simulator, stages)
    }

    /// None of a lifetime, which is the cache's.
    fn stage(&self, setting: LeverValue) -> Option<Box<dyn Stage>> {
        match setting {
            LeverValue::MainTtl(_) | LeverValue::SubagentTtl(_) => None,
            LeverValue::Result(limit) => {
                let limit = ResultLimit::new(limit, self.sheet.results.clone(), self.sizes.clone());
                Some(Box::new(Capped::new(limit, self.tokens.clone())))
            }
            LeverValue::Window(window) => {
                // As the client compacts: it keeps no tail, and does not count turns.
                let params = CompactionParams {
                    window,
                    tail_keep_tokens: self.compaction.client.tail_keep_tokens,
                    align: Align::Message,
                    min_turns_between: 0,
                    ..self.params.clone()
                };
                let stage =
                    Compaction::new(params, self.compaction.clone(), self.tokens.clone(), StageJournal::default());
                Some(Box::new(stage))
            }
        }
    }

    /// A setting by itself.
    fn alone(&self, setting: LeverValue) -> Trial {
        let class = match setting {
            LeverValue::MainTtl(class) | LeverValue::SubagentTtl(class) => Some(class),
            LeverValue::Window(_) | LeverValue::Result(_) => None,
        };
        let oracle = living(self.simulator.oracle, class);
        let (run, breaks) = self.run(&self.simulator.under(&oracle), self.stage(setting).into_iter().collect());
        self.trial(setting, &run, &breaks)
    }

    /// Several settings as one configuration, session by session.
    fn together(&self, settings: &[LeverValue]) -> Vec<SettingSides> {
        let lifetime = |part: LeverPart| {
            settings.iter().find_map(|setting| match setting {
                LeverValue::MainTtl(class) if part == LeverPart::Main => Some(*class),
                LeverValue::SubagentTtl(class) if part == LeverPart::Subagents => Some(*class),
                _ => None,
            })
        };
        let of_part = |part: LeverPart| {
            // What is long is cut as it comes in, before a compaction can see it.
            let (windows, limits): (Vec<&LeverValue>, Vec<&LeverValue>) =
                settings.iter().partition(|setting| matches!(setting, LeverValue::Window(_)));
            let stages = limits.into_iter().chain(windows).filter_map(|&setting| self.stage(setting)).collect();
            let (run, breaks) = self.run(&self.simulator.under(&living(self.simulator.oracle, lifetime(part))), stages);
            self.in_order(&self.sides(part, &run, &breaks))
        };
        let (mut all, subagents) = rayon::join(|| of_part(LeverPart::Main), || of_part(LeverPart::Subagents));
        all.iter_mut().zip(&subagents).for_each(|(all, more)| *all += more);
        all
    }

    /// Session of a request, and whether it is of a main thread.
    fn place(&self, request: u32) -> (u32, bool) {
        let timeline = self.simulator.timeline;
        let chain = &timeline.chains[timeline.requests[request as usize].chain as usize];
        (chain.session, chain.place == Place::Main)
    }

    /// Both sides of a setting.
    fn trial(&self, setting: LeverValue, run: &SimulatedRun, breaks: &[Break]) -> Trial {
        let by_model = self.sides(setting.part(), run, breaks);
        Trial { setting, sessions: self.in_order(&by_model), by_model }
    }

    /// Both sides of each session, whatever the model, in the order of the sessions.
    fn in_order(&self, by_model: &BTreeMap<(u32, Sym), SettingSides>) -> Vec<SettingSides> {
        let mut sessions: BTreeMap<u32, SettingSides> = BTreeMap::new();
        by_model.iter().for_each(|(key, sides)| *sessions.entry(key.0).or_default() += sides);
        self.order.iter().map(|session| sessions.get(session).copied().unwrap_or_default()).collect()
    }

    /// Both sides of a setting, by session and model.
    fn sides(&self, part: LeverPart, run: &SimulatedRun, breaks: &[Break]) -> BTreeMap<(u32, Sym), SettingSides> {
        let [before, after] = SimulatedRun::priced_alike([&self.baseline, run]);
        let mut sides: BTreeMap<(u32, Sym), SettingSides> = BTreeMap::new();
        let mut add = |request: u32, change: &dyn Fn(&mut SettingSides)| {
            let (session, is_main) = self.place(request);
            if part.has(is_main) {
                let model = self.simulator.timeline.requests[request as usize].model;
                change(sides.entry((session, model)).or_default());
            }
        };
        for priced in &before.requests {
            add(priced.request, &|sides| {
                sides.requests += 1;
                sides.before += priced.cost;
            });
        }
        for priced in &after.requests {
            add(priced.request, &|sides| sides.after += priced.cost);
        }
        for extra in &after.extra {
            add(extra.request, &|sides| sides.after += extra.cost);
        }
        for (request, cost) in self.penalties(breaks) {
            add(request, &|sides| sides.after += cost);
        }
        for one in breaks.iter().filter(|one| !one.class.is_part_of_another()) {
            add(one.request, &|sides| match one.class.strength() {
                Strength::Hard => sides.hard += 1,
                Strength::Soft => sides.soft += 1,
                Strength::Bug => {}
            });
        }
        for priced in &self.blind.requests {
            let units = distance::apart(self.simulator, priced).units();
            add(priced.request, &|sides| sides.error_units += units);
        }
        sides
    }

    /// What breaks cost at least: each lost reading is written again once, and each step that would surely have failed is a
    /// request more, which reads its whole context.
    fn penalties(&self, breaks: &[Break]) -> Vec<(u32, Cost)> {
        let Simulator { timeline, tariff, priors, .. } = self.simulator;
        let cost = |index: u32, spent: &Spent| {
            let request = &timeline.requests[index as usize];
            (index, tariff.cost(request.model, request.start, spent))
        };
        let rereads = penalties(breaks).map(|lost| {
            let spent = written(lost.reread_tokens, priors[lost.request as usize].class);
            cost(lost.request, &spent)
        });
        let failed: BTreeSet<u32> =
            breaks.iter().filter(|one| one.class.strength() == Strength::Hard).map(|one| one.request).collect();
        let again = failed.into_iter().map(|index| {
            let read = timeline.requests[index as usize].context();
            cost(index, &Spent { read, ..Spent::default() })
        });
        rereads.chain(again).collect()
    }

    fn seen(&self, earlier_percent: u64) -> Vec<StudiedSession> {
        let (timeline, order) = (self.simulator.timeline, &self.order);
        let earlier = order.len() as u64 * earlier_percent / 100;
        let blank = |(place, &session): (usize, &u32)| {
            let first = timeline.sessions[session as usize].ts_first;
            let is_earlier = (place as u64) < earlier;
            (
                session,
                StudiedSession { first, last: first, cost: Cost::default(), subagents: Cost::default(), is_earlier },
            )
        };
        let mut seen: BTreeMap<u32, StudiedSession> = order.iter().enumerate().map(blank).collect();
        for priced in &self.baseline.requests {
            let (session, is_main) = self.place(priced.request);
            let Some(seen) = seen.get_mut(&session) else { continue };
            seen.cost += priced.cost;
            if !is_main {
                seen.subagents += priced.cost;
            }
            seen.last = timeline.requests[priced.request as usize].end.max(seen.last);
        }
        order.iter().filter_map(|session| seen.get(session).copied()).collect()
    }
}
