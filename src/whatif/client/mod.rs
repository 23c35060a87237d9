//! What Claude Code would have cost under other settings of its own: each lever that can be simulated at each of its values,
//! session by session, with what it would have broken.

pub mod actual;
pub mod capped;
mod recompacted;
pub mod thresholds;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use serde_json::Value;

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::base::numbers::saturated;
use crate::base::sums::adds_up;
use crate::logs::trace::Millis;
use crate::whatif::client::capped::Limit;
use crate::whatif::client::thresholds::{SplitThresholds, Versions};
use crate::whatif::compaction::carry::Reattached;
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::cost::Cost;

pub use trials::LeverTrials;

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
    Main,
    Subagents,
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

    /// What is set by it.
    pub fn name(self) -> &'static str {
        match self {
            Self::MainTtl(_) => "lifetime of the cache, main threads",
            Self::SubagentTtl(_) => "lifetime of the cache, subagents",
            Self::Window(_) => "window of automatic compaction, tokens",
            Self::Result(Limit::BashChars(_)) => "shell output, characters",
            Self::Result(Limit::McpTokens(_)) => "results of MCP tools, tokens",
            Self::Result(Limit::ReadTokens(_)) => "readings, tokens",
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

    /// How much it leaves as it was: the larger of two windows or results is the milder one. Lifetimes are alike.
    fn room(self) -> u64 {
        self.value().as_u64().unwrap_or_default()
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
    pub requests: u64,
    /// Those of them that have no price on one of the sides: no money tells of them.
    pub unpriced: u64,
    /// Cost as simulated of what the log says, under what is set already.
    pub before: Cost,
    /// Cost with the setting, readings of what is lost included.
    pub after: Cost,
    /// What of `before` is answers, if they count.
    pub answers_before: Cost,
    /// What of `after` is: where a prompt shrinks below a limit of the prices, its answer is cheaper.
    pub answers_after: Cost,
    /// Steps that would surely have failed, beyond those under what is set already.
    pub hard: u64,
    /// Steps whose source is gone, likewise.
    pub soft: u64,
    /// Simulated less billed, in units.
    pub error_units: i128,
}

adds_up!(SettingSides: requests, unpriced, before, after, answers_before, answers_after, hard, soft, error_units);

impl SettingSides {
    /// How far the simulation is from the bill, as a share of it.
    pub fn error(&self) -> f64 {
        (self.error_units as f64 / self.before.units.max(1) as f64).abs()
    }

    /// The change of cost, as a share; none without cost.
    pub fn change(&self) -> Option<f64> {
        self.before.change_to(&self.after)
    }

    /// What several settings do beyond some of them; all of it where those do not reach.
    #[must_use]
    pub fn beyond(&self, some: &Self) -> Self {
        if some.before.units == 0 {
            return *self;
        }
        let (hard, soft) = (self.hard.saturating_sub(some.hard), self.soft.saturating_sub(some.soft));
        Self { before: some.after, hard, soft, ..*self }
    }
}

/// What a setting comes to.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    pub setting: LeverValue,
    /// Of a window: the size of a context at which the newest client compacts, in tokens.
    pub compacts_at: Option<u64>,
    /// Session by session, in the order of [`LeverStudy::sessions`].
    pub sessions: Vec<KeptSides>,
    /// By session (index into the timeline's) and model, in order.
    pub by_model: Vec<((u32, Sym), KeptSides)>,
}

/// One session without and with a setting, as it is kept: there is one for each session and each model of every value that was
/// tried, so it takes half of the room. Sums are wide.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct KeptSides {
    /// Requests, those without a price, hard and soft steps.
    counts: [u32; 4],
    /// Before, after, and what of either is answers: nano-dollars, units, tokens without a price.
    costs: [[u64; 3]; 4],
    error_units: i64,
}

impl KeptSides {
    pub fn requests(&self) -> u64 {
        self.counts[0].into()
    }
}

impl From<SettingSides> for KeptSides {
    /// What no session comes to is cut: 18 billion dollars, as many units, four billion requests or steps.
    fn from(sides: SettingSides) -> Self {
        let wide = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        let costs = [sides.before, sides.after, sides.answers_before, sides.answers_after];
        Self {
            counts: [sides.requests, sides.unpriced, sides.hard, sides.soft].map(saturated),
            costs: costs.map(|cost| [wide(cost.nano_usd), wide(cost.units), cost.unpriced_tokens]),
            error_units: sides.error_units.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
        }
    }
}

impl From<KeptSides> for SettingSides {
    fn from(kept: KeptSides) -> Self {
        let [requests, unpriced, hard, soft] = kept.counts.map(u64::from);
        let cost = |[nano_usd, units, unpriced_tokens]: [u64; 3]| Cost {
            nano_usd: nano_usd.into(),
            units: units.into(),
            unpriced_tokens,
        };
        let [before, after, answers_before, answers_after] = kept.costs.map(cost);
        let error_units = kept.error_units.into();
        Self { requests, unpriced, before, after, answers_before, answers_after, hard, soft, error_units }
    }
}

/// A session of the study.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StudiedSession {
    pub project: Id,
    /// First record.
    pub first: Millis,
    /// End of its last request.
    pub last: Millis,
    /// Its whole cost as simulated, under what is set already.
    pub cost: Cost,
    /// What of that subagents took.
    pub subagents: Cost,
    /// Whether values are chosen on it, or judged on it; none if it is too old to say what holds now.
    pub is_earlier: Option<bool>,
}

/// All settings that were tried.
#[derive(Clone, PartialEq, Debug)]
pub struct LeverStudy {
    /// The sessions, earliest first.
    pub sessions: Vec<StudiedSession>,
    pub trials: Vec<Trial>,
    /// Settings that hold already: whoever changes one saves beside all of them, not beside the log.
    pub standing: Vec<LeverValue>,
    /// Client versions of the last weeks, each with its last request.
    pub versions: Versions,
    /// By how many percent sides have to differ at least.
    pub least_percent: f64,
    /// What comes back after a compaction, as windows were tried.
    pub reattached: Reattached,
    /// The levers of which projects decide themselves (set them, for one model as well, or switch them off), each as any of its
    /// values, where a file for all projects is asked about: that one does nothing about it there.
    pub own: BTreeMap<Id, Vec<LeverValue>>,
}

impl LeverStudy {
    /// The same beside what projects set themselves: a setting that does not reach a session says nothing of it.
    #[must_use]
    pub fn beside(self, own: BTreeMap<Id, Vec<LeverValue>>) -> Self {
        let mut study = Self { own, ..self };
        for trial in &mut study.trials {
            let is_own = |seen: &StudiedSession| {
                study.own.get(&seen.project).is_some_and(|own| own.iter().any(|one| one.is_of_lever(trial.setting)))
            };
            let sessions = study.sessions.iter().zip(&mut trial.sessions);
            sessions.filter(|(seen, _)| is_own(seen)).for_each(|(_, sides)| *sides = KeptSides::default());
        }
        study
    }

    /// The same as it was known at a time, when the first `known` sessions had begun: of these the ones that were over. What
    /// models had of it is left out.
    #[must_use]
    pub fn until(&self, known: usize, now_ms: Millis, split: &SplitThresholds) -> Self {
        let places: Vec<usize> = (0..known).filter(|place| self.sessions[*place].last < now_ms).collect();
        let span = |place: &usize| (self.sessions[*place].first, self.sessions[*place].last);
        let spans: Vec<(Millis, Millis)> = places.iter().map(span).collect();
        let session = |(place, is_earlier): (&usize, _)| StudiedSession { is_earlier, ..self.sessions[*place] };
        let trial = |trial: &Trial| Trial {
            sessions: places.iter().map(|place| trial.sessions[*place]).collect(),
            by_model: Vec::new(),
            ..*trial
        };
        Self {
            sessions: places.iter().zip(split.sides(&spans)).map(session).collect(),
            trials: self.trials.iter().map(trial).collect(),
            standing: self.standing.clone(),
            versions: self.versions.clone(),
            own: self.own.clone(),
            ..*self
        }
    }

    /// What was tried of a setting.
    pub fn trial(&self, setting: LeverValue) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.setting == setting)
    }

    /// Of some settings those that reach a project.
    pub fn reaching(&self, settings: &[LeverValue], project: Id) -> Vec<LeverValue> {
        let own = self.own.get(&project).map_or(&[][..], Vec::as_slice);
        settings.iter().filter(|setting| !own.iter().any(|one| one.is_of_lever(**setting))).copied().collect()
    }

    /// The projects that none of some settings reaches.
    pub fn without(&self, settings: &[LeverValue]) -> BTreeSet<Id> {
        self.own.keys().copied().filter(|project| self.reaching(settings, *project).is_empty()).collect()
    }

    /// What a setting, tried session by session, comes to on one side: the earlier sessions, or the later ones.
    pub fn sum(&self, tried: &[KeptSides], is_earlier: bool) -> SettingSides {
        self.concerned(tried, is_earlier).map(|(_, sides)| sides).sum()
    }

    /// The sessions of one side that a setting concerns.
    pub fn concerned<'s>(
        &'s self,
        tried: &'s [KeptSides],
        is_earlier: bool,
    ) -> impl Iterator<Item = (&'s StudiedSession, SettingSides)> + use<'s> {
        let pairs = self.sessions.iter().zip(tried.iter().map(|kept| SettingSides::from(*kept)));
        pairs.filter(move |(seen, sides)| seen.is_earlier == Some(is_earlier) && sides.before.units > 0)
    }

    /// Of some settings the one that whoever proposes a value proposes, with its change on the earlier sessions: there the
    /// cheapest; of those that are not told from it the one that breaks least, and of those that break alike the mildest.
    pub fn chosen<'s>(&self, trials: impl IntoIterator<Item = &'s Trial>) -> Option<(f64, &'s Trial)> {
        let tried = trials.into_iter().filter_map(|trial| {
            let sum = self.sum(&trial.sessions, true);
            Some((sum.change()?, (sum.hard, sum.soft), trial))
        });
        let tried: Vec<_> = tried.collect();
        let cheapest = tried.iter().map(|(change, ..)| *change).min_by(f64::total_cmp)?;
        let least = self.least_percent / 100.0;
        // Beside the value that is chosen: a second run, beside which it stands, compares the same two costs.
        let is_told_apart = |change: f64| 1.0 + cheapest < (1.0 - least) * (1.0 + change);
        // What saves no more than nothing may is not chosen for what it breaks.
        let is_near = |change: f64| change == cheapest || (change <= -least && !is_told_apart(change));
        let near = tried.into_iter().filter(|(change, ..)| is_near(*change));
        let mildest = |a: &Trial, b: &Trial| b.setting.room().cmp(&a.setting.room());
        let best = near.min_by(|a, b| a.1.cmp(&b.1).then_with(|| mildest(a.2, b.2)).then(a.0.total_cmp(&b.0)))?;
        Some((best.0, best.2))
    }
}
