//! Replays settings on the sessions of some projects, or on all: each beside everything that is set already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use crate::base::allocator;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::names::Sym;
use crate::logs::timeline::requests::{Session, Timeline};
use crate::logs::trace::{Millis, Place};
use crate::whatif::chosen::{Policy, PolicyConfigs};
use crate::whatif::client::capped::{Capped, Limit, LookUp, ResultLimit, carried, lookups};
use crate::whatif::client::recompacted::{Recompacted, SeenCompactions};
use crate::whatif::client::thresholds::ClientThresholds;
use crate::whatif::client::{KeptSides, LeverPart, LeverStudy, LeverValue, SettingSides, StudiedSession, Trial};
use crate::whatif::compaction::carry::{Reattached, reattached};
use crate::whatif::compaction::params::Params as CompactionParams;
use crate::whatif::compaction::{Compaction, CompactionThresholds};
use crate::whatif::prompt_cache::params::{CacheLifetime, CacheRules, Params, Switch, TtlPolicy};
use crate::whatif::sim::bill::foretold;
use crate::whatif::sim::breakage::rows::{Break, Strength, penalties, steps};
use crate::whatif::sim::breakage::{BreakWatch, Detectors};
use crate::whatif::sim::cache_sim::written;
use crate::whatif::sim::cost::{Cost, Spent, Total};
use crate::whatif::sim::distance::{self, Apart};
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::{Stage, StageJournal};
use crate::whatif::workload::Workload;

/// What every try is made on: the sessions of some projects, or all, under the cache of the simulator. Whether answers count is
/// its matter as well.
pub struct LeverTrials<'b> {
    simulator: Simulator<'b>,
    workload: &'b Workload,
    detectors: Detectors<'b>,
    standing: Vec<LeverValue>,
    /// What stands, and the same with the compactions placed anew that the client made by itself: where there are such, and what
    /// stands leaves them at their places.
    before: StandingReplay,
    before_recompacted: Option<StandingReplay>,
    seen_compactions: Arc<SeenCompactions>,
    /// How far the log as simulated without its bill is off, by session, part and model.
    off_bill: BTreeMap<(u32, bool, Sym), Apart>,
    thresholds: ClientThresholds,
    compaction: CompactionThresholds,
    params: CompactionParams,
    /// What comes back after a compaction.
    reattached: Reattached,
    tokens: Arc<[u32]>,
    /// The projects that are asked about; none: all.
    projects: Option<&'b BTreeSet<Id>>,
    /// The sessions with requests, earliest first.
    order: Vec<u32>,
}

/// Where the compactions that the client made by itself are replayed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompactsAt {
    /// At their places in the log.
    Log,
    /// Where a context reaches their size.
    Size,
}

/// A configuration, replayed.
#[derive(Default)]
struct Replayed {
    run: Arc<SimulatedRun>,
    steps: Vec<(u32, Strength)>,
    /// What its breaks cost, by request.
    penalties: Vec<(u32, Cost)>,
}

/// What stands, replayed.
#[derive(Default)]
struct StandingReplay {
    whole: Replayed,
    /// Where the cache of subagents lives otherwise.
    of_subagents: Option<Replayed>,
}

impl StandingReplay {
    fn of(&self, part: LeverPart) -> &Replayed {
        self.of_subagents.as_ref().filter(|_| part == LeverPart::Subagents).unwrap_or(&self.whole)
    }
}

impl Replayed {
    /// The cost of some parts of its run, and of its penalties.
    fn costs(&self, parts: impl Iterator<Item = (u32, Total)>) -> impl Iterator<Item = (u32, Cost)> {
        parts.map(|(request, part)| (request, part.cost)).chain(self.penalties.iter().copied())
    }
}

/// The cache with a lifetime for everything that is written; none: as the log says.
fn living(cache_rules: &CacheRules, class: Option<CacheLifetime>) -> CacheRules {
    let ttl = class.map_or(cache_rules.params.ttl, TtlPolicy::Always);
    cache_rules.with(Params { ttl, ..cache_rules.params })
}

/// The lifetime that some settings give to what is written by a part of the requests.
fn lifetime(settings: &[LeverValue], part: LeverPart) -> Option<CacheLifetime> {
    settings.iter().find_map(|setting| match (setting, part) {
        (LeverValue::MainTtl(class), LeverPart::Main | LeverPart::All)
        | (LeverValue::SubagentTtl(class), LeverPart::Subagents) => Some(*class),
        _ => None,
    })
}

/// Whether main threads and subagents can be replayed at once.
fn lives_alike(settings: &[LeverValue]) -> bool {
    lifetime(settings, LeverPart::Main) == lifetime(settings, LeverPart::Subagents)
}

/// The sessions with requests, earliest first.
fn order(timeline: &Timeline, projects: Option<&BTreeSet<Id>>) -> Vec<u32> {
    let has_requests: BTreeSet<u32> = timeline
        .counted()
        .filter(|(_, request)| request.context() > 0)
        .map(|(_, request)| timeline.chains[request.chain as usize].session)
        .collect();
    let is_asked =
        |session: &u32| projects.is_none_or(|asked| asked.contains(&timeline.sessions[*session as usize].project));
    // Sessions stand in the order of their first records.
    has_requests.into_iter().filter(is_asked).collect()
}

impl<'b> LeverTrials<'b> {
    /// Replays what stands: `standing` are settings that hold already.
    pub fn new(
        simulator: &'b Simulator<'b>,
        workload: &'b Workload,
        data: &Data,
        projects: Option<&'b BTreeSet<Id>>,
        standing: &[LeverValue],
    ) -> Result<Self> {
        let compaction = data.read("policies/compaction.toml", CompactionThresholds::parse)?;
        let params = PolicyConfigs::load(data)?.sheet(Policy::Compaction).params()?;
        let mut trials = Self {
            simulator: simulator.clone(),
            workload,
            detectors: Detectors::new(&workload.timeline, &workload.sizes.tokens, &workload.breakage),
            standing: standing.to_vec(),
            before: StandingReplay::default(),
            before_recompacted: None,
            seen_compactions: Arc::new(SeenCompactions::of(&workload.timeline)),
            off_bill: BTreeMap::new(),
            thresholds: ClientThresholds::load(data)?,
            reattached: reattached(&workload.timeline, &workload.sizes, &params, &compaction),
            compaction,
            params,
            tokens: Arc::clone(&workload.sizes.tokens),
            projects,
            order: order(&workload.timeline, projects),
        };
        let before = || {
            let compacts_at = trials.compacts_at(standing);
            let is_asked = compacts_at == CompactsAt::Log && !trials.seen_compactions.is_empty();
            let recompacted = || is_asked.then(|| trials.standing_replay(CompactsAt::Size));
            rayon::join(|| trials.standing_replay(compacts_at), recompacted)
        };
        let key = |request: u32| {
            let (session, is_main) = trials.place(request);
            (session, is_main, simulator.timeline.request(request).model)
        };
        let off_bill = || distance::by(simulator, &foretold(simulator, Switch::On), key);
        let ((before, recompacted), off_bill) = rayon::join(before, off_bill);
        if standing.is_empty() {
            trials.simulator = simulator.clone().knowing(Arc::clone(&before.whole.run));
        }
        (trials.before, trials.before_recompacted, trials.off_bill) = (before, recompacted, off_bill);
        Ok(trials)
    }

    /// Tries every value.
    pub fn study(&self) -> LeverStudy {
        let lifetimes = self.thresholds.ttl.values.iter();
        let lifetimes = lifetimes.flat_map(|&class| [LeverValue::MainTtl(class), LeverValue::SubagentTtl(class)]);
        let results = &self.thresholds.results;
        let limits = results.bash_chars.iter().copied().map(Limit::BashChars);
        let limits = limits.chain(results.mcp_tokens.iter().copied().map(Limit::McpTokens));
        let limits = limits.chain(results.read_tokens.iter().copied().map(Limit::ReadTokens));
        let windows = self.thresholds.window.tokens.iter().copied().map(LeverValue::Window);
        let settings: Vec<LeverValue> = lifetimes.chain(windows).chain(limits.map(LeverValue::Result)).collect();
        LeverStudy {
            sessions: self.seen(),
            // One by one: a thread that took several at once would be the last to end. A run is as large as the log: of
            // each only what it comes to is kept.
            trials: settings.par_iter().with_max_len(1).map(|&setting| self.trial(setting)).collect(),
            standing: self.standing.clone(),
            versions: self.thresholds.versions(&self.workload.timeline, self.projects, Millis::MAX),
            own: BTreeMap::new(),
            least_percent: self.workload.winner_percent_min,
            reattached: self.reattached,
        }
    }

    /// Several settings as one configuration, session by session in the order of [`LeverStudy::sessions`].
    pub fn together(&self, settings: &[LeverValue]) -> Vec<KeptSides> {
        self.in_order(&self.by_model(settings, LeverPart::All))
    }

    fn trial(&self, setting: LeverValue) -> Trial {
        let by_model = self.by_model(&[setting], setting.part());
        let compacts_at = self.compaction_params(setting).map(|params| params.newest_trigger_tokens(&self.compaction));
        let sessions = self.in_order(&by_model);
        Trial {
            setting,
            compacts_at,
            sessions,
            by_model: by_model.into_iter().map(|(key, sides)| (key, sides.into())).collect(),
        }
    }

    /// Both sides of some settings, by session and model. What stands of other levers goes on holding.
    fn by_model(&self, settings: &[LeverValue], part: LeverPart) -> BTreeMap<(u32, Sym), SettingSides> {
        let is_kept = |stands: &&LeverValue| !settings.iter().any(|setting| setting.is_of_lever(**stands));
        let all: Vec<LeverValue> = settings.iter().chain(self.standing.iter().filter(is_kept)).copied().collect();
        let parts = match part {
            LeverPart::All if !(lives_alike(&all) && lives_alike(&self.standing)) => {
                vec![LeverPart::Main, LeverPart::Subagents]
            }
            part => vec![part],
        };
        let compacts_at = self.compacts_at(&all);
        let of_part = |&part| self.sides(part, &self.replay(&all, part, compacts_at), compacts_at);
        let of_parts = parts.par_iter().map(of_part);
        // No request is of two parts.
        of_parts.reduce(BTreeMap::new, |mut sum, more| {
            more.iter().for_each(|(key, sides)| *sum.entry(*key).or_default() += sides);
            sum
        })
    }

    /// Where contexts are compacted under some settings. Shorter results put off what the client does by itself, and a smaller window
    /// does it in place of that: neither comes on top of the compactions of the log.
    fn compacts_at(&self, settings: &[LeverValue]) -> CompactsAt {
        let moves = |setting: &LeverValue| matches!(setting, LeverValue::Result(_) | LeverValue::Window(_));
        let is_anew = settings.iter().any(moves) && !self.seen_compactions.is_empty();
        if is_anew { CompactsAt::Size } else { CompactsAt::Log }
    }

    /// A configuration, with the lifetime that it gives to what a part writes.
    fn replay(&self, settings: &[LeverValue], part: LeverPart, compacts_at: CompactsAt) -> Replayed {
        // What the one before has freed lies between blocks still in use.
        allocator::give_back_small_blocks();
        let class = lifetime(settings, part);
        // What is long is cut as it comes in, before a compaction can see it.
        let limits = || settings.iter().filter_map(|setting| self.limit(*setting));
        let cutting = limits().map(|limit| -> Box<dyn Stage> { Box::new(Capped::new(limit, self.tokens.clone())) });
        let compacting = match compacts_at {
            CompactsAt::Log => settings.iter().filter_map(|setting| self.compaction(*setting)).collect(),
            CompactsAt::Size => vec![self.recompacted(settings)],
        };
        let stages = cutting.chain(compacting).collect();
        let cache_rules = living(self.simulator.cache_rules, class);
        let (run, breaks) = BreakWatch::new(&self.detectors).over(&self.simulator.under(&cache_rules), stages);
        let limits: Vec<ResultLimit> = limits().collect();
        let penalties =
            self.penalties(&breaks, &lookups(self.simulator.timeline, &limits, &self.tokens, &breaks), class);
        Replayed { run: Arc::new(run), steps: steps(&breaks), penalties }
    }

    fn limit(&self, setting: LeverValue) -> Option<ResultLimit> {
        let LeverValue::Result(limit) = setting else { return None };
        Some(ResultLimit::new(limit, self.thresholds.results.clone(), self.workload.sizes.rules.clone()))
    }

    /// As the client compacts; it brings back what it brought back in the log.
    fn compaction_params(&self, setting: LeverValue) -> Option<CompactionParams> {
        let LeverValue::Window(window) = setting else { return None };
        Some(CompactionParams {
            window,
            reattach_tokens: self.reattached.tokens,
            ..self.params.as_client(&self.compaction.client)
        })
    }

    fn compaction(&self, setting: LeverValue) -> Option<Box<dyn Stage>> {
        let params = self.compaction_params(setting)?;
        Some(Box::new(Compaction::new(params, self.compaction.clone(), self.tokens.clone(), StageJournal::default())))
    }

    /// The stage that places the compactions of the log anew, under the window of these settings.
    fn recompacted(&self, settings: &[LeverValue]) -> Box<dyn Stage> {
        let window = settings.iter().find_map(|setting| self.compaction_params(*setting));
        let params = self.params.as_client(&self.compaction.client);
        let params = CompactionParams { reattach_tokens: self.reattached.tokens, ..params };
        Box::new(Recompacted::new(Arc::clone(&self.seen_compactions), params, window, &self.compaction, &self.tokens))
    }

    /// Session of a request, and whether it is of a main thread.
    fn place(&self, request: u32) -> (u32, bool) {
        let timeline = self.simulator.timeline;
        let chain = timeline.chain(timeline.request(request).chain);
        (chain.session, chain.place == Place::Main)
    }

    fn standing_replay(&self, compacts_at: CompactsAt) -> StandingReplay {
        let replay = |part| self.replay(&self.standing, part, compacts_at);
        let of_subagents = || (!lives_alike(&self.standing)).then(|| replay(LeverPart::Subagents));
        let (whole, of_subagents) = rayon::join(|| replay(LeverPart::Main), of_subagents);
        StandingReplay { whole, of_subagents }
    }

    /// What stands, as it was replayed for a part.
    fn standing(&self, part: LeverPart, compacts_at: CompactsAt) -> &Replayed {
        let recompacted = self.before_recompacted.as_ref().filter(|_| compacts_at == CompactsAt::Size);
        recompacted.unwrap_or(&self.before).of(part)
    }

    /// Both sides of each session, whatever the model, in the order of the sessions.
    fn in_order(&self, by_model: &BTreeMap<(u32, Sym), SettingSides>) -> Vec<KeptSides> {
        let mut sessions: BTreeMap<u32, SettingSides> = BTreeMap::new();
        by_model.iter().for_each(|(key, sides)| *sessions.entry(key.0).or_default() += sides);
        self.order.iter().map(|session| sessions.get(session).copied().unwrap_or_default().into()).collect()
    }

    /// Both sides of what was replayed for a part, by session and model.
    fn sides(
        &self,
        part: LeverPart,
        replayed: &Replayed,
        compacts_at: CompactsAt,
    ) -> BTreeMap<(u32, Sym), SettingSides> {
        let standing = self.standing(part, compacts_at);
        let alike = &SimulatedRun::priced_alike(&[&standing.run, &replayed.run]);
        let [before, after] = [0, 1].map(|side| move || alike[side].parts());
        let mut sides: BTreeMap<(u32, Sym), SettingSides> = BTreeMap::new();
        let mut add = |request: u32, change: &dyn Fn(&mut SettingSides)| {
            let (session, is_main) = self.place(request);
            if part.has(is_main) {
                let model = self.simulator.timeline.request(request).model;
                change(sides.entry((session, model)).or_default());
            }
        };
        let answer = |request: u32, Total { spent, cost, .. }: &Total| {
            let input = Spent { output: 0, ..*spent };
            cost.less(&self.simulator.tariff.of(self.simulator.timeline.request(request), &input))
        };
        for (request, part) in before().filter(|(_, part)| part.requests > 0) {
            add(request, &|sides| {
                sides.requests += 1;
                sides.unpriced += u64::from(part.cost.unpriced_tokens > 0);
                sides.answers_before += answer(request, &part);
            });
        }
        for (request, part) in after().filter(|(_, part)| part.requests > 0) {
            add(request, &|sides| sides.answers_after += answer(request, &part));
        }
        standing.costs(before()).for_each(|(request, cost)| add(request, &|sides| sides.before += cost));
        replayed.costs(after()).for_each(|(request, cost)| add(request, &|sides| sides.after += cost));
        // What breaks under what stands is not put down to the setting.
        for (steps, is_new) in [(&replayed.steps, true), (&standing.steps, false)] {
            let step = |count: &mut u64| *count = if is_new { *count + 1 } else { count.saturating_sub(1) };
            for &(request, strength) in steps {
                add(request, &|sides| match strength {
                    Strength::Hard => step(&mut sides.hard),
                    Strength::Soft => step(&mut sides.soft),
                    Strength::Bug => {}
                });
            }
        }
        for (&(session, _, model), apart) in self.off_bill.iter().filter(|((_, is_main, _), _)| part.has(*is_main)) {
            sides.entry((session, model)).or_default().error_units += apart.units();
        }
        if let Some(anew) = self.before_recompacted.as_ref().filter(|_| compacts_at == CompactsAt::Size) {
            self.add_off_log(part, anew, &mut sides);
        }
        sides
    }

    /// Adds how far the log with its compactions placed anew is from the log as it was simulated: that one is held against the bill.
    fn add_off_log(&self, part: LeverPart, anew: &StandingReplay, sides: &mut BTreeMap<(u32, Sym), SettingSides>) {
        for (replay, sign) in [(anew, 1), (&self.before, -1)] {
            for (request, Total { cost, .. }) in replay.of(part).run.parts() {
                let (session, is_main) = self.place(request);
                if part.has(is_main) {
                    let key = (session, self.simulator.timeline.request(request).model);
                    sides.entry(key).or_default().error_units += sign * cost.units as i128;
                }
            }
        }
    }

    /// What breaks cost at least: each lost reading is written again once, and each step that would surely have failed is a
    /// request more, which reads its whole context. So is each look at what a limit keeps back; what it brings is written, and
    /// read again as long as the result stands in the context of the log. What is written lives as long as all else does.
    fn penalties(&self, breaks: &[Break], looked_up: &[LookUp], class: Option<CacheLifetime>) -> Vec<(u32, Cost)> {
        let Simulator { timeline, tariff, priors, .. } = &self.simulator;
        let cost = |index: u32, spent: &Spent| (index, tariff.of(timeline.request(index), spent));
        let write = |request: u32, tokens: u64| {
            cost(request, &written(tokens, class.unwrap_or(priors[request as usize].class)))
        };
        let read = |request: u32, tokens: u64| cost(request, &Spent { read: tokens, ..Spent::default() });
        let again = |request: u32| read(request, timeline.request(request).context());
        let mut all: Vec<(u32, Cost)> = penalties(breaks).map(|lost| write(lost.request, lost.reread_tokens)).collect();
        let failed: BTreeSet<u32> =
            breaks.iter().filter(|one| one.class.strength() == Strength::Hard).map(|one| one.request).collect();
        all.extend(failed.into_iter().map(again));
        for one in looked_up {
            let tokens = u64::from(one.tokens);
            all.extend([again(one.request), write(one.request, tokens)]);
        }
        all.extend(carried(timeline, looked_up).into_iter().map(|(request, tokens)| read(request, tokens)));
        all
    }

    fn seen(&self) -> Vec<StudiedSession> {
        let (timeline, order) = (self.simulator.timeline, &self.order);
        let blank = |&session: &u32| {
            let Session { project, ts_first: first, .. } = timeline.sessions[session as usize];
            let [cost, subagents] = [Cost::default(); 2];
            (session, StudiedSession { project, first, last: first, cost, subagents, is_earlier: None })
        };
        let mut seen: BTreeMap<u32, StudiedSession> = order.iter().map(blank).collect();
        for part in [LeverPart::Main, LeverPart::Subagents] {
            let standing = self.before.of(part);
            for (request, cost) in standing.costs(standing.run.parts()) {
                let (session, is_main) = self.place(request);
                let Some(seen) = seen.get_mut(&session).filter(|_| part.has(is_main)) else { continue };
                seen.cost += cost;
                if !is_main {
                    seen.subagents += cost;
                }
                seen.last = timeline.request(request).end.max(seen.last);
            }
        }
        let mut seen: Vec<StudiedSession> = order.iter().filter_map(|session| seen.get(session).copied()).collect();
        let spans: Vec<(Millis, Millis)> = seen.iter().map(|seen| (seen.first, seen.last)).collect();
        seen.iter_mut().zip(self.thresholds.split.sides(&spans)).for_each(|(seen, side)| seen.is_earlier = side);
        seen
    }
}
