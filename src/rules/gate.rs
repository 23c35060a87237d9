//! Every proposal is replayed before it is written, alone and together with the others, on sessions that it was not found on
//! where there are enough: what loses tokens, or may save them by chance, is held, and if the whole loses, nothing is written.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use toml_edit::Value;

use crate::base::bootstrap::{Resampling, TAIL, sum_interval};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::replay::reach::Reach;
use crate::replay::savings::{SavedBySession, shares, total};
use crate::replay::{EffectsBaseline, RecordedInput, Scenario};
use crate::report::numbers::thousands;
use crate::rules::responses::{LaidOutLog, Responses};
use crate::rules::tool_keys::hidden;
use crate::rules::{r6_cost_models, r7_speculation, statistics};
use crate::settings::annotations::Annotations;
use crate::settings::entries::Predicted;
use crate::settings::finding::{Delta, Effect, Finding, Verdict};
use crate::settings::{Settings, SettingsFile, what_if};

/// A loss below this is rounding: half a token.
const TOKENS_MIN: f64 = 0.5;

/// What all proposals together would do.
pub struct ProposalGate {
    /// Tokens of all responses as they are, and what is saved of them now and with what is proposed, if everything could be
    /// changed: a bound.
    pub all: Predicted,
    /// What the pipeline saves where it runs, in an MCP host: now and with what is proposed.
    pub host: [f64; 2],
    /// How that place is called, and the bound.
    pub names: [String; 2],
    /// Sessions that were replayed.
    pub sessions: u64,
}

impl ProposalGate {
    /// Replays what is proposed over some responses; proposals that lose, or may be chance, become holds, all others carry
    /// their share of the whole effect. What a rule says about one subject is one proposal, whatever number of keys it takes.
    /// What is made is then taken for written, and the rest judged once more, until nothing more is made: else the next run would
    /// propose it, over the very same responses.
    pub fn pass(
        file: &SettingsFile,
        now: &Settings,
        responses: &Responses,
        LaidOutLog { log, input }: &LaidOutLog<'_>,
        mut findings: Vec<Finding>,
    ) -> Result<(Self, Vec<Finding>)> {
        let reaches = crate::replay::reach::reaches(&responses.data)?;
        let (Some(host), Some(all)) = (reaches.first(), reaches.last()) else {
            return Err(Error::failed("there is nobody who could change what a model reads"));
        };
        let resampling = statistics::numbers(&responses.data)?.backtest.resampling;
        let least_share = statistics::effects(&responses.data)?.of_tokens_percent_min / 100.0;
        let (places, sessions) = ([all, host], log.session_count());
        let asked = findings.clone();
        let proposed = Proposed::new(file, &asked, &responses.annotations, input);
        let scenario = input.scenario(now);
        let baseline_at =
            |place: usize| EffectsBaseline::new(&input.pieces, scenario.within(places[place], &input.skeleton));
        let baselines = &responses.install(|| in_both(baseline_at));
        let judged = |baselines: &[EffectsBaseline<'_>; 2], written: &[usize]| -> Result<RoundOutcome> {
            let (proposed, groups) = (&proposed, groups(&asked, written));
            let bench = ProposalReplay { proposed, places, baselines, sessions, written, groups };
            Ok(Round::first(bench)?.judged(&resampling, least_share)?.outcome())
        };
        let (RoundOutcome { verdicts, mut made, mut more }, [present, in_host]) = responses.install(|| {
            judged(baselines, &[]).map(|outcome| (outcome, baselines.each_ref().map(EffectsBaseline::present)))
        })?;
        for (member, verdict, effect) in verdicts {
            (findings[member].verdict, findings[member].effect) = (verdict, effect);
        }
        let mut written: Vec<usize> = Vec::new();
        // What the planner alone reads changes nothing for the others.
        while made.iter().any(|&member| findings[member].effect.is_some()) {
            written.append(&mut made);
            let after = proposed.scenario(&written)?;
            let next = responses.install(|| judged(&under(baselines, input, &places, &after), &written))?;
            made = next.made;
            for (member, verdict, effect) in next.verdicts.into_iter().filter(|(member, ..)| made.contains(member)) {
                (findings[member].verdict, findings[member].effect) = (verdict, effect);
            }
            (0..2).for_each(|place| more[place] += next.more[place]);
        }
        let gate = Self {
            all: Predicted {
                baseline: present.baseline,
                saved_before: present.saved,
                saved_after: present.saved + more[0],
            },
            host: [in_host.saved, in_host.saved + more[1]],
            names: [host.name.clone(), all.name.clone()],
            sessions: sessions as u64,
        };
        Ok((gate, findings))
    }

    /// Whether the whole loses.
    pub fn fails(&self) -> bool {
        self.all.saved_after < self.all.saved_before - TOKENS_MIN || self.host[1] < self.host[0] - TOKENS_MIN
    }

    /// Share of all tokens that an MCP host saves now, and with the proposals.
    pub fn host_shares(&self) -> Option<(f64, f64)> {
        let baseline = self.all.baseline;
        (baseline > 0.0).then(|| (self.host[0] / baseline, self.host[1] / baseline))
    }
}

/// Configurations with some of what is proposed, as they are replayed. They are remembered: what one question leaves out the next
/// one mostly leaves out too.
struct Proposed<'b> {
    file: &'b SettingsFile,
    findings: &'b [Finding],
    annotations: &'b Annotations,
    input: &'b RecordedInput,
    known: Mutex<HashMap<Vec<usize>, Arc<Scenario>>>,
}

impl<'b> Proposed<'b> {
    fn new(
        file: &'b SettingsFile,
        findings: &'b [Finding],
        annotations: &'b Annotations,
        input: &'b RecordedInput,
    ) -> Self {
        Self { file, findings, annotations, input, known: Mutex::default() }
    }

    /// With these findings, in this order, and what is shipped for the blocks that begin with them.
    fn scenario(&self, members: &[usize]) -> Result<Arc<Scenario>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = known().get(members) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(self.made(members)?);
        known().insert(members.to_vec(), Arc::clone(&made));
        Ok(made)
    }

    /// The same, made anew and not remembered.
    fn made(&self, members: &[usize]) -> Result<Scenario> {
        let mut changes = changes(self.findings, members);
        let hidden = hidden(self.file, changes.iter().map(|(key, _)| key), self.annotations);
        changes.extend(hidden.into_iter().map(|(key, value, _)| (key, value)));
        Ok(self.input.scenario(&what_if(self.file, &changes)?))
    }
}

/// What becomes of the proposals about one subject.
#[derive(Clone, Copy, PartialEq)]
enum SubjectFate {
    Made,
    /// They lose so many tokens.
    Loses(f64),
    /// What they save may be chance.
    Chance,
    /// They save too little.
    Little,
    /// The others save as much without them.
    Needless,
}

impl SubjectFate {
    /// Why a finding is held; none if it is proposed.
    fn held(self, finding: &Finding, effect: Option<&Effect>) -> Option<String> {
        let is_of_planner = [r6_cost_models::RULE.id, r7_speculation::RULE.id].contains(&finding.rule);
        match (self, effect) {
            (Self::Loses(tokens), _) => Some(losing(tokens, finding)),
            // The planner reads it, and its gate has judged it.
            (_, None) if is_of_planner => None,
            (_, None) => Some("no effect: nothing in these responses is handled differently".to_owned()),
            (_, Some(effect)) if does_nothing(effect) => {
                Some("no effect: not a token more or less on these responses".to_owned())
            }
            (Self::Needless, Some(_)) => Some("no effect beside the others, which save as much without it".to_owned()),
            (Self::Chance, Some(_)) => Some("no effect beyond its error over these sessions".to_owned()),
            (Self::Little, Some(effect)) => {
                let share = 100.0 * effect.tokens / effect.baseline;
                Some(format!(
                    "saves {share:.2} % of all tokens: too little to be worth a line (of_tokens_percent_min in rules/backtest.toml)"
                ))
            }
            (Self::Made, Some(_)) => None,
        }
    }
}

/// What proposals are replayed on.
struct ProposalReplay<'b> {
    proposed: &'b Proposed<'b>,
    /// Everything, and the host.
    places: [&'b Reach; 2],
    /// The responses as they are handled now, in both.
    baselines: &'b [EffectsBaseline<'b>; 2],
    sessions: usize,
    /// Findings that are taken for written.
    written: &'b [usize],
    groups: Vec<Vec<usize>>,
}

/// The responses under another configuration, in both places.
fn under<'l>(
    baselines: &[EffectsBaseline<'l>; 2],
    input: &RecordedInput,
    places: &[&Reach; 2],
    scenario: &Scenario,
) -> [EffectsBaseline<'l>; 2] {
    in_both(|place| baselines[place].under(scenario.within(places[place], &input.skeleton)))
}

/// Something in both places, side by side.
fn in_both<T: Send>(of_place: impl Fn(usize) -> T + Sync) -> [T; 2] {
    rayon::join(|| of_place(0), || of_place(1)).into()
}

impl<'b> ProposalReplay<'b> {
    /// The configuration with the proposals of some groups.
    fn with(&self, made: &[usize]) -> Result<Arc<Scenario>> {
        let members: Vec<usize> =
            self.written.iter().copied().chain(made.iter().flat_map(|&group| self.groups[group].clone())).collect();
        self.proposed.scenario(&members)
    }

    /// What configurations save more than another one, in both places.
    fn effects(&self, baselines: &[EffectsBaseline<'_>; 2], cells: &[Arc<Scenario>]) -> Vec<Option<SavedInBoth>> {
        let of_place = |place: usize| {
            let within = |cell: &Arc<Scenario>| cell.within(self.places[place], &self.proposed.input.skeleton);
            baselines[place].effects(&cells.iter().map(within).collect::<Vec<_>>())
        };
        let [all, host] = in_both(of_place);
        all.into_iter().zip(host).map(|(all, host)| Some([all?, host?])).collect()
    }

    /// What the proposals of some groups save more than what holds now.
    fn together(&self, made: &[usize]) -> Result<Option<SavedInBoth>> {
        Ok(self.effects(self.baselines, &[self.with(made)?]).pop().flatten())
    }

    /// Takes the keys out of the groups that make no difference beside the others: what is built in says the same, or a
    /// larger value of another key decides. Those that save most by themselves are tried last.
    fn reduce(&mut self, made: &[usize], effects: &[Option<SavedInBoth>]) -> Result<BTreeSet<usize>> {
        let mut idle = BTreeSet::new();
        let mut order: Vec<usize> = made.iter().copied().filter(|&group| effects[group].is_some()).collect();
        order.sort_by(|&a, &b| least(&effects[a]).total_cmp(&least(&effects[b])));
        let wanted = self.with(made)?;
        // Of two keys that say the same the first one stays.
        let last_first = |&group: &usize| self.groups[group].iter().rev().map(move |&member| (group, member));
        let mut open: Vec<(usize, usize)> = order.iter().flat_map(last_first).collect();
        // Mostly none makes no difference, which all threads can see.
        while let Some(at) = open.par_iter().position_first(|&member| self.is_idle(made, member, &wanted)) {
            let (group, member) = open[at];
            self.groups[group].retain(|&other| other != member);
            idle.insert(member);
            open.drain(..=at);
        }
        Ok(idle)
    }

    /// Whether the same holds without a key of a group. A part of a proposal may fit no configuration.
    fn is_idle(&self, made: &[usize], (group, member): (usize, usize), wanted: &Scenario) -> bool {
        let kept = |other: usize| self.groups[other].iter().filter(move |&&one| (other, one) != (group, member));
        let rest = self.written.iter().chain(made.iter().flat_map(|&other| kept(other))).copied().collect::<Vec<_>>();
        self.proposed.made(&rest).is_ok_and(|rest| wanted.is_same(&rest))
    }

    /// The responses as they are handled with the proposals of some groups.
    fn beside(&self, made: &[usize]) -> Result<[EffectsBaseline<'b>; 2]> {
        Ok(under(self.baselines, self.proposed.input, &self.places, &*self.with(made)?))
    }

    /// What some of those that are made do, each as the last one.
    fn lasts(&self, made: &[usize], some: &[usize], beside: &[EffectsBaseline<'_>; 2]) -> Result<Vec<SavedInBoth>> {
        let without =
            |&group: &usize| self.with(&made.iter().copied().filter(|&other| other != group).collect::<Vec<_>>());
        let cells = some.par_iter().map(without).collect::<Result<Vec<_>>>()?;
        let last = self.effects(beside, &cells);
        Ok(last.into_iter().map(|pair| pair.unwrap_or_default().map(negated)).collect())
    }

    /// Configurations with the proposals of one group each.
    fn each(&self, groups: &[usize]) -> Result<Vec<Arc<Scenario>>> {
        groups.par_iter().map(|&group| self.with(&[group])).collect()
    }
}

/// How all proposals stand.
struct Round<'b> {
    bench: ProposalReplay<'b>,
    /// Groups that are made, and those that lose.
    made: Vec<usize>,
    held: Vec<usize>,
    /// What is made saves together.
    together: Option<SavedInBoth>,
    /// By group, of what is held beside what is made; in the end of what is made its share.
    effects: Vec<Option<SavedInBoth>>,
    alone: Vec<Option<SavedInBoth>>,
    /// 95 % intervals of the effects over sessions.
    intervals: Vec<Option<(f64, f64)>>,
    fates: Vec<SubjectFate>,
    /// Proposals that say nothing beside the others.
    idle: BTreeSet<usize>,
}

/// What became of some proposals.
struct RoundOutcome {
    /// By finding; those that are written are left out.
    verdicts: Vec<(usize, Verdict, Option<Effect>)>,
    /// Findings that are made.
    made: Vec<usize>,
    /// Tokens that these save together, of everything and in the host.
    more: [f64; 2],
}

impl<'b> Round<'b> {
    /// Every proposal by itself; what loses nothing is made.
    fn first(bench: ProposalReplay<'b>) -> Result<Self> {
        // All together go along: mostly nothing loses, and then that is the whole.
        let every: Vec<usize> = (0..bench.groups.len()).collect();
        let mut cells = bench.each(&every)?;
        cells.push(bench.with(&every)?);
        let mut effects = bench.effects(bench.baselines, &cells);
        let mut together = effects.pop().flatten();
        let (held, made): (Vec<usize>, Vec<usize>) = every.iter().partition(|&&group| lost(&effects[group]).is_some());
        if !held.is_empty() {
            together = bench.together(&made)?;
        }
        let (alone, intervals) = (effects.clone(), vec![None; every.len()]);
        let fates = vec![SubjectFate::Made; every.len()];
        Ok(Self { bench, made, held, together, effects, alone, intervals, fates, idle: BTreeSet::new() })
    }

    /// What becomes of all of them.
    fn judged(mut self, resampling: &Resampling, least_share: f64) -> Result<Self> {
        self.idle = self.settle()?;
        let least = least_share * self.bench.baselines[0].present().baseline;
        self.without_chance(resampling, least)?;
        // Once something is written, only what is made besides is told of.
        if self.bench.written.is_empty() {
            self.tell_chance_from_little(resampling);
        }
        Ok(self)
    }

    /// Gives all of them their intervals. What saves little may be chance.
    fn tell_chance_from_little(&mut self, resampling: &Resampling) {
        let sessions = self.bench.sessions;
        let known_or_new = |(known, effect): (&Option<(f64, f64)>, &Option<SavedInBoth>)| {
            known.or_else(|| interval(effect.as_ref()?, sessions, resampling))
        };
        self.intervals = self.intervals.par_iter().zip(&self.effects).map(known_or_new).collect();
        for (fate, interval) in self.fates.iter_mut().zip(&self.intervals) {
            if *fate == SubjectFate::Little && interval.is_some_and(|(lower, _)| lower <= 0.0) {
                *fate = SubjectFate::Chance;
            }
        }
    }

    /// What became of each finding.
    fn outcome(self) -> RoundOutcome {
        let ProposalReplay { proposed: Proposed { findings, .. }, written, baselines, .. } = self.bench;
        let baseline = baselines[0].present().baseline;
        let mut verdicts = Vec::new();
        for (group, members) in groups(findings, written).into_iter().enumerate() {
            let effect = self.effects[group].as_ref().map(|effect| Effect {
                tokens: total(&effect[0]),
                host: total(&effect[1]),
                baseline,
                tokens_95: self.intervals[group],
                alone: self.alone[group].as_ref().map_or(0.0, |alone| total(&alone[0])),
            });
            verdicts.extend(members.into_iter().map(|member| {
                let finding = &findings[member];
                if self.idle.contains(&member) {
                    return (member, Verdict::Hold(restating(finding)), None);
                }
                let held = self.fates[group].held(finding, effect.as_ref()).map(Verdict::Hold);
                (member, held.unwrap_or_else(|| finding.verdict.clone()), effect)
            }));
        }
        let is_made = |(_, verdict, _): &&(usize, Verdict, Option<Effect>)| matches!(verdict, Verdict::Propose(_));
        let made = verdicts.iter().filter(is_made).map(|(member, ..)| *member).collect();
        RoundOutcome { verdicts, made, more: self.together.unwrap_or_default().each_ref().map(total) }
    }

    /// Makes also what gains beside the others, and takes out the keys that say nothing beside them: tells which.
    fn settle(&mut self) -> Result<BTreeSet<usize>> {
        self.add_what_gains_beside()?;
        for &group in &self.held {
            self.fates[group] = lost(&self.effects[group]).map_or(SubjectFate::Made, SubjectFate::Loses);
            self.alone[group].clone_from(&self.effects[group]);
        }
        let whole = self.bench.groups.clone();
        let idle = self.bench.reduce(&self.made, &self.effects)?;
        self.made.retain(|&group| !self.bench.groups[group].is_empty());
        // Of some groups a part is left.
        let parts: Vec<usize> =
            self.made.iter().copied().filter(|&group| self.bench.groups[group] != whole[group]).collect();
        let cells = self.bench.each(&parts)?;
        for (group, effect) in parts.into_iter().zip(self.bench.effects(self.bench.baselines, &cells)) {
            self.alone[group] = effect;
        }
        Ok(idle)
    }

    /// Makes what loses alone and gains beside the others, the best first.
    fn add_what_gains_beside(&mut self) -> Result<()> {
        let mut has_grown = !self.made.is_empty();
        while has_grown {
            let beside = |&group: &usize| self.bench.with(&[&self.made[..], &[group]].concat());
            let cells = self.held.par_iter().map(beside).collect::<Result<Vec<_>>>()?;
            let mut beside = self.bench.effects(self.bench.baselines, &cells);
            for (&group, effect) in self.held.iter().zip(&beside) {
                self.effects[group] = Some(less(effect, &self.together));
            }
            let least_of = |&at: &usize| least(&self.effects[self.held[at]]);
            let best = (0..self.held.len()).max_by(|a, b| least_of(a).total_cmp(&least_of(b)));
            let best = best.filter(|&at| lost(&self.effects[self.held[at]]).is_none());
            has_grown = best.is_some();
            if let Some(at) = best {
                self.together = beside.swap_remove(at);
                self.made.push(self.held.remove(at));
            }
        }
        Ok(())
    }

    /// Takes out what the others do as well without it: one after the other, first what saves least by itself. Tells what
    /// the others do, each as the last one.
    fn without_needless(&mut self) -> Result<Vec<SavedInBoth>> {
        let gains = |last: &SavedInBoth| last.iter().any(|effect| total(effect) > TOKENS_MIN);
        // Those that were needless when they were last looked at.
        let mut suspects: BTreeSet<usize> = BTreeSet::new();
        loop {
            let (bench, made, alone) = (&self.bench, &self.made, &self.alone);
            let beside = bench.beside(made)?;
            let mut order = made.clone();
            order.sort_by(|&a, &b| least(&alone[a]).total_cmp(&least(&alone[b])));
            let mut lasts: BTreeMap<usize, SavedInBoth> = BTreeMap::new();
            let (mut needless, mut rest) = (None, &order[..]);
            // Together they cost little more than one, and what was needless mostly is so still.
            while needless.is_none() && !rest.is_empty() {
                let suspect = rest.iter().position(|group| suspects.contains(group));
                let some;
                (some, rest) = rest.split_at(suspect.map_or(rest.len(), |at| at + 1));
                lasts.extend(some.iter().copied().zip(bench.lasts(made, some, &beside)?));
                let is_needless = |group: &usize| alone[*group].is_some() && !gains(&lasts[group]);
                some.iter().for_each(|group| _ = suspects.remove(group));
                suspects.extend(some.iter().copied().filter(is_needless));
                needless = some.iter().copied().find(is_needless);
            }
            let Some(group) = needless else {
                return Ok(made.iter().filter_map(|group| lasts.remove(group)).collect());
            };
            self.fates[group] = SubjectFate::Needless;
            self.made.retain(|&other| other != group);
        }
    }

    /// Takes out what may be chance, or saves less than `least` tokens, until nothing does: without it the others have other shares.
    fn without_chance(&mut self, resampling: &Resampling, least: f64) -> Result<()> {
        let mut lasts = self.without_needless()?;
        loop {
            self.together = self.bench.together(&self.made)?;
            self.share_out(&lasts, resampling, least);
            let fate = |(&group, last): (&usize, &SavedInBoth)| {
                let Some(effect) = &self.effects[group] else { return SubjectFate::Made };
                // It gained beside what was taken out.
                if let Some(tokens) = lost(&Some(last.clone())) {
                    return SubjectFate::Loses(tokens);
                }
                match self.intervals[group].map_or(total(&effect[0]), |(lower, _)| lower) {
                    ..=0.0 => SubjectFate::Chance,
                    _ if total(&effect[0]) < least => SubjectFate::Little,
                    _ => SubjectFate::Made,
                }
            };
            let fates: Vec<(usize, SubjectFate)> =
                self.made.iter().zip(&lasts).map(|pair| (*pair.0, fate(pair))).collect();
            for (&(group, fate), last) in fates.iter().zip(&lasts) {
                self.fates[group] = fate;
                if let SubjectFate::Loses(_) = fate {
                    (self.effects[group], self.intervals[group]) = (Some(last.clone()), None);
                    self.alone[group].clone_from(&self.effects[group]);
                }
            }
            let kept = fates.iter().filter(|(_, fate)| *fate == SubjectFate::Made);
            let kept: Vec<usize> = kept.map(|(group, _)| *group).collect();
            if kept.len() == self.made.len() {
                return Ok(());
            }
            self.made = kept;
            lasts = self.bench.lasts(&self.made, &self.made, &self.bench.beside(&self.made)?)?;
        }
    }

    /// Gives what is made its share in the whole, with its interval if it saves `least` tokens: of less it does not decide.
    fn share_out(&mut self, lasts: &[SavedInBoth], resampling: &Resampling, least: f64) {
        let firsts: Vec<SavedInBoth> =
            self.made.iter().map(|&group| self.alone[group].clone().unwrap_or_default()).collect();
        let shares = shared(&firsts, lasts, &self.together.clone().unwrap_or_default());
        for (&group, share) in self.made.iter().zip(shares) {
            self.effects[group] = self.alone[group].is_some().then_some(share);
        }
        let interval_of = |&group: &usize| {
            let effect = self.effects[group].as_ref().filter(|effect| total(&effect[0]) >= least)?;
            interval(effect, self.bench.sessions, resampling)
        };
        let ends: Vec<Option<(f64, f64)>> = self.made.par_iter().map(interval_of).collect();
        self.made.iter().zip(ends).for_each(|(&group, ends)| self.intervals[group] = ends);
    }
}

/// The 95 % interval over sessions of what a change saves if everything can be changed; none of one session, which says nothing of
/// others.
fn interval(effect: &SavedInBoth, sessions: usize, resampling: &Resampling) -> Option<(f64, f64)> {
    let values: Vec<f64> = effect[0].values().copied().collect();
    (sessions > 1).then(|| sum_interval(&values, sessions, resampling, TAIL)).flatten()
}

/// Tokens that a change saves, by session: if everything could be changed, and in the host.
type SavedInBoth = [SavedBySession; 2];

/// Whether a change makes no difference, neither alone nor beside the others.
fn does_nothing(effect: &Effect) -> bool {
    [effect.tokens, effect.host, effect.alone].iter().all(|tokens| tokens.abs() < TOKENS_MIN)
}

/// Tokens that a change loses, in the one place or in the other.
fn lost(effect: &Option<SavedInBoth>) -> Option<f64> {
    Some(least(effect)).filter(|least| *least < -TOKENS_MIN)
}

/// What a change saves in the place where it saves less; no limit where nothing can be said.
fn least(effect: &Option<SavedInBoth>) -> f64 {
    effect.iter().flatten().map(total).fold(f64::INFINITY, f64::min)
}

/// What is saved beyond something else.
fn less(effect: &Option<SavedInBoth>, other: &Option<SavedInBoth>) -> SavedInBoth {
    let (mut effect, other) = (effect.clone().unwrap_or_default(), other.clone().unwrap_or_default());
    for (effect, other) in effect.iter_mut().zip(other) {
        other.into_iter().for_each(|(session, tokens)| *effect.entry(session).or_default() -= tokens);
    }
    effect
}

/// What is saved where a change is taken back.
pub fn negated(effect: SavedBySession) -> SavedBySession {
    effect.into_iter().map(|(session, tokens)| (session, -tokens)).collect()
}

/// The share of each proposal in what all do together, in both places.
fn shared(alone: &[SavedInBoth], last: &[SavedInBoth], whole: &SavedInBoth) -> Vec<SavedInBoth> {
    let of_place = |place: usize| {
        let pick =
            |pairs: &[SavedInBoth]| pairs.iter().map(|pair| pair[place].clone()).collect::<Vec<SavedBySession>>();
        shares(&pick(alone), &pick(last), &whole[place])
    };
    of_place(0).into_iter().zip(of_place(1)).map(|(all, host)| [all, host]).collect()
}

/// Proposals of one rule about one subject, by index, but for those that are written.
fn groups(findings: &[Finding], written: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let is_open = |(index, finding): &(usize, &Finding)| finding.proposed().is_some() && !written.contains(index);
    for (index, finding) in findings.iter().enumerate().filter(is_open) {
        groups.entry((finding.rule, &finding.subject)).or_default().push(index);
    }
    groups.into_values().collect()
}

fn changes(findings: &[Finding], members: &[usize]) -> Vec<(KeyPath, Value)> {
    let deltas = members.iter().filter_map(|&member| findings[member].proposed());
    deltas.map(|delta| (delta.key.clone(), delta.to.clone())).collect()
}

fn restating(finding: &Finding) -> String {
    let key = finding.proposed().map(Delta::assignment).unwrap_or_default();
    format!("no effect: {key} says nothing that does not hold without it")
}

fn losing(tokens: f64, finding: &Finding) -> String {
    let lost = thousands(tokens.abs().round() as u64);
    let key = finding.proposed().map(Delta::assignment).unwrap_or_default();
    format!("{key} would save {lost} tokens less on these responses")
}
