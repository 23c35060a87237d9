//! The books of a planner replay: what became of every planned call, what was declined, what it cost. Every planned call
//! ends in exactly one way.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Index, IndexMut};

use serde::{Serialize, Serializer};

use crate::base::names::Sym;
use crate::base::sums::adds_up;
use crate::telemetry::log::{Decline, RaceWord, RecordedPlan};

/// How a planned call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum PrefetchEnd {
    /// The agent asked for exactly this, and the answer was there: its own call did not run.
    Won,
    /// The agent asked for exactly this before the answer was there: the call ran twice.
    Late,
    /// The agent asked for the same value with other arguments.
    #[strum(serialize = "target_only")]
    Target,
    /// Nobody asked.
    Wasted,
    /// What it read changed, or it grew too old, before anybody asked.
    Stale,
    /// The context ended before it was there.
    Cancelled,
    /// The agent's own call failed, so this one would have failed, too.
    Failed,
    /// Not sent: its host had as many calls as it may.
    HostSaturated,
    /// Not sent: as many prefetches were in flight as may be.
    MaxParallelReached,
    /// Not sent: the same call was in flight, or its answer waited to be asked for.
    AlreadyFetched,
}

impl PrefetchEnd {
    /// All ends, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// How telemetry records the race; none of what was not sent out at all.
    pub fn race(self) -> Option<RaceWord> {
        match self {
            Self::Won => Some(RaceWord::Won),
            Self::Late => Some(RaceWord::Late),
            Self::Target | Self::Wasted | Self::Stale | Self::Cancelled | Self::Failed => Some(RaceWord::Wasted),
            Self::HostSaturated | Self::MaxParallelReached | Self::AlreadyFetched => None,
        }
    }
}

/// Why a call is not planned. The first four are declines (published words); the others were never candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum DeclineReason {
    /// Does not fit what is left of the budget.
    Budget,
    /// The link is too weak, or the call is worth nothing.
    LowProbability,
    /// Something better took its place.
    Preempted,
    /// A tool that has to come before can neither be found in the context nor be called ahead.
    PrereqMissing,
    /// The agent had the answer already: a repeat is the business of L0.
    AlreadyRead,
    /// The answer gave no argument.
    NoArgument,
    /// The tool may change something.
    NotSpeculatable,
    /// The tool was never seen to take the argument.
    UnknownArgument,
    /// The tool requires another argument, which nothing supplies.
    MissingArgument,
}

impl DeclineReason {
    /// All reasons, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether the planner could have made the call and chose not to.
    pub fn is_decline(self) -> bool {
        self.decline().is_some()
    }

    /// The reason as telemetry records it, if it has a word for it.
    pub fn decline(self) -> Option<Decline> {
        match self {
            Self::Budget => Some(Decline::Budget),
            Self::LowProbability => Some(Decline::LowProbability),
            Self::Preempted => Some(Decline::Preempted),
            Self::PrereqMissing => Some(Decline::PrereqMissing),
            Self::AlreadyRead
            | Self::NoArgument
            | Self::NotSpeculatable
            | Self::UnknownArgument
            | Self::MissingArgument => None,
        }
    }
}

/// Prefetches by what the agent did within one window. Each column includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AskedFor {
    /// Asked for with exactly the planned arguments.
    pub exact: u64,
    /// Asked for with the planned value, whatever the other arguments.
    pub target: u64,
    /// Some call of the same tool; each of the agent's calls counts for one prefetch at most.
    pub name_only: u64,
}

/// `counts_per!(PerEnd: End)`: a type with a count for every variant of an enumeration with words.
macro_rules! counts_per {
    ($(#[$doc:meta])* $counts:ident: $key:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $counts([u64; $key::ALL.len()]);

        impl Index<$key> for $counts {
            type Output = u64;

            fn index(&self, key: $key) -> &u64 {
                &self.0[key as usize]
            }
        }

        impl IndexMut<$key> for $counts {
            fn index_mut(&mut self, key: $key) -> &mut u64 {
                &mut self.0[key as usize]
            }
        }

        impl AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
            }
        }
    };
}

counts_per! {
    /// A count per way to end.
    PerEnd: PrefetchEnd
}

counts_per! {
    PerHeld: DeclineReason
}

impl Serialize for PerEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(PrefetchEnd::ALL.iter().map(|&end| (end.into_str(), self[end])))
    }
}

/// The smallest of some shares; where there is none yet, more than any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Least {
    ppm: u64,
}

impl Least {
    /// One share, 0 … 1.
    pub fn of(share: f64) -> Self {
        Self { ppm: (share * 1e6) as u64 }
    }

    /// The share, cut to parts per million.
    pub fn share(self) -> f64 {
        self.ppm as f64 / 1e6
    }
}

impl Default for Least {
    fn default() -> Self {
        Self { ppm: u64::MAX }
    }
}

impl AddAssign for Least {
    fn add_assign(&mut self, other: Self) {
        self.ppm = self.ppm.min(other.ppm);
    }
}

/// Counts over prefetches and declines, under the names that they have in the report.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PrefetchTally {
    pub calls: u64,
    /// Answers after which a plan was made.
    pub plans: u64,
    /// Of these, where the prompt names a field that its tool leaves out.
    pub plans_with_intent: u64,
    /// Of these, where other calls are planned for it, or in another order.
    pub plans_by_intent: u64,
    /// Planned calls by how they ended.
    pub ends: PerEnd,
    /// Prefetches sent out that were asked for within the next few calls of later steps.
    #[serde(rename = "within_3_calls")]
    pub near: AskedFor,
    /// Within more calls.
    #[serde(rename = "within_10_calls")]
    pub far: AskedFor,
    /// Within the next few steps.
    #[serde(rename = "within_3_steps")]
    pub steps: AskedFor,
    /// Exact hits at any time in the context with a call between that may have changed something (a shell).
    #[serde(rename = "exact_across_shell")]
    pub across_shell: u64,
    /// Prefetches that the published pass would call cited: same tool within three events, prefetches counted in.
    pub cited: u64,
    /// Prefetches times the share of all windows of the context that have a call of their tool.
    #[serde(skip)]
    pub name_by_chance: f64,
    /// Calls not planned, by reason.
    #[serde(skip)]
    pub held: PerHeld,
    /// Of the declines, those whose very call the agent made soon after.
    #[serde(skip)]
    pub late_exact: PerHeld,
    /// Of the declines, those with some call of the tool soon after, each call counted for one decline.
    #[serde(skip)]
    pub late_name: PerHeld,
    /// Declines that the published line calls late.
    #[serde(skip)]
    pub late_published: u64,
    /// Tokens that the prefetches sent out were expected to bring.
    pub predicted_tokens: u64,
    /// Of these, those of prefetches that spared no call: that were not won, and as published all of them.
    pub unused_tokens: u64,
    /// Tokens of prefetches that the published pass would call cited: the actual ones where they are known.
    #[serde(skip)]
    pub cited_tokens: u64,
    /// Tokens of hints that would have been shown (published wiring only), estimated.
    pub hint_tokens: u64,
    /// Prefetches whose answer the log shows, since the agent asked for it or for another part of it.
    pub answers_known: u64,
    /// Of these, with 130 % of the predicted tokens or more.
    pub overruns: u64,
    /// Actual less predicted tokens over these.
    pub error_tokens: i64,
    /// How much later answers came because they waited for prefetches, in milliseconds.
    pub waited_ms: u64,
    /// Won prefetches whose call the agent need not have made; as published its own call always runs, so that there is none.
    #[serde(skip)]
    pub spared: u64,
    /// How long the agent's own calls took that need not have run, in milliseconds.
    pub spared_ms: u64,
    /// Calls refused because the same question came back empty.
    pub refused: u64,
    /// Of these, with an answer in the log after all.
    pub refused_wrongly: u64,
    /// Tokens that refused calls were expected to bring.
    #[serde(skip)]
    pub refused_tokens: u64,
    /// Worth of what the greedy choice takes.
    pub greedy_value: f64,
    /// Worth of the best choice.
    pub best_value: f64,
    /// Plans that were held against the best choice.
    pub plans_compared: u64,
    /// Of these, where greedy takes less.
    pub plans_behind: u64,
    /// Smallest share of the best choice that greedy reached.
    #[serde(skip)]
    pub least_share: Least,
}

impl PrefetchTally {
    /// Planned calls.
    pub fn planned(&self) -> u64 {
        PrefetchEnd::ALL.iter().copied().map(|end| self.ends[end]).sum()
    }

    /// Planned calls that were sent out.
    pub fn sent(&self) -> u64 {
        PrefetchEnd::ALL.iter().copied().filter(|end| end.race().is_some()).map(|end| self.ends[end]).sum()
    }

    /// Prefetches that nobody could use.
    pub fn wasted(&self) -> u64 {
        let is_wasted = |end: &PrefetchEnd| end.race() == Some(RaceWord::Wasted);
        PrefetchEnd::ALL.iter().copied().filter(is_wasted).map(|end| self.ends[end]).sum()
    }

    /// Calls that were candidates and not planned.
    pub fn declined(&self) -> u64 {
        DeclineReason::ALL.iter().copied().filter(|held| held.is_decline()).map(|held| self.held[held]).sum()
    }

    /// Of these, asked for exactly soon after.
    pub fn declined_needed(&self) -> u64 {
        DeclineReason::ALL.iter().copied().map(|held| self.late_exact[held]).sum()
    }

    /// Calls of the agent that need not have run: those that prefetches spared, and rightly refused repeats.
    pub fn calls_saved(&self) -> u64 {
        self.spared + self.refused - self.refused_wrongly
    }

    /// Calls that ran for nothing or twice.
    pub fn calls_added(&self) -> u64 {
        self.sent() - self.spared
    }
}

adds_up!(AskedFor: exact, target, name_only);

adds_up!(
    PrefetchTally: calls, plans, plans_with_intent, plans_by_intent, ends, near, far, steps, across_shell, cited, name_by_chance, held, late_exact, late_name, late_published, predicted_tokens, unused_tokens, cited_tokens, hint_tokens, answers_known, overruns, error_tokens, waited_ms, spared, spared_ms, refused, refused_wrongly, refused_tokens, greedy_value, best_value, plans_compared, plans_behind, least_share
);

/// What the live host would have recorded of one call that the planner made or declined to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTrace {
    /// Index of a call of the step whose answers set it off.
    pub after: u32,
    pub tool: String,
    /// Hash of the whole input, as in [`crate::logs::values::GivenArgument::value`].
    pub input: u64,
    pub is_path: bool,
    /// What was expected and what became of it.
    pub plan: RecordedPlan,
}

/// From the tool that answered to the one that is called ahead.
pub type PrefetchEdge = (Sym, Sym);

/// The books of one session, or of several.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlannerLedger {
    pub total: PrefetchTally,
    /// By edge; what belongs to no edge (calls, plans, waits, refusals, what the published line calls late)
    /// is in the total only.
    /// Boxed, since the nodes of a map have room for many: most sessions have a few edges, and a tally is large.
    pub edges: BTreeMap<PrefetchEdge, Box<PrefetchTally>>,
}

impl PlannerLedger {
    /// Adds the books of another session.
    pub fn absorb(&mut self, other: &Self) {
        self.total += &other.total;
        for (edge, tally) in &other.edges {
            **self.edges.entry(*edge).or_default() += tally.as_ref();
        }
    }

    /// Whether every planned call ended in exactly one way, whichever way it is counted.
    pub fn balance(&self) -> bool {
        let mut edges = PrefetchTally::default();
        self.edges.values().for_each(|tally| edges += tally.as_ref());
        edges.ends == self.total.ends && edges.held == self.total.held && edges.near == self.total.near
    }
}

/// Calls of the agent, by what could have supplied them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Bound {
    /// All calls that ran.
    pub calls: u64,
    /// Of these, of tools that a planner may call ahead.
    pub speculatable: u64,
    /// Of these, with the very input of a call of the context that was answered before: the business of L0.
    pub repeats: u64,
    /// Of the rest, with a value that stood in an earlier answer of the context.
    pub listed: u64,
    /// Of these, with no other argument: the whole call could be known. No planner that leaves repeats alone spares more.
    pub listed_whole: u64,
    /// Of these, within the next few calls of steps later than such an answer. No planner that leaves repeats alone hits more.
    pub reachable: u64,
}

adds_up!(Bound: calls, speculatable, repeats, listed, listed_whole, reachable);
