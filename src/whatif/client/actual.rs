//! The changes of Claude Code's settings that the journal knows (those of one entry that concern the same requests are one
//! change), and what became of each: what its requests were billed after it, over before it, held against requests that it does
//! not concern (difference in differences), with an interval over sessions.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{Resampling, TAIL, below, studentised};
use crate::base::id::Id;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::settings::entries::{BillForecast, Journal, JournalChange, JournalEntry};
use crate::whatif::client::LeverPart;
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::money::{Prices, Tariff};

/// Changes of one entry that concern the same requests.
#[derive(Clone, PartialEq, Debug)]
pub struct JointChange<'j> {
    pub keys: Vec<&'j str>,
    /// The requests that they concern.
    pub part: LeverPart,
    /// The projects that none of them reaches.
    pub without: BTreeSet<Id>,
    /// What was expected of all of them; none if nothing was of one.
    pub forecast: Option<BillForecast>,
}

/// What an entry of the journal changed.
pub fn joint_changes<'j>(entry: &'j JournalEntry, journal: &Journal) -> Vec<JointChange<'j>> {
    let mut by_part: BTreeMap<LeverPart, Vec<&JournalChange>> = BTreeMap::new();
    for change in &entry.changes {
        by_part.entry(part(change, journal)).or_default().push(change);
    }
    // What concerns all requests concerns those of the others, too.
    if by_part.contains_key(&LeverPart::All) {
        by_part = BTreeMap::from([(LeverPart::All, entry.changes.iter().collect())]);
    }
    let joint = |(part, changes): (LeverPart, Vec<&'j JournalChange>)| JointChange {
        keys: changes.iter().map(|change| change.key.as_str()).collect(),
        part,
        without: without(changes.iter().filter_map(|change| told(change, journal))),
        forecast: forecast(entry, &changes),
    };
    by_part.into_iter().map(joint).collect()
}

/// What was told of a change. One that takes a first change back has no forecast: the other one has it.
fn told<'j>(change: &'j JournalChange, journal: &'j Journal) -> Option<&'j BillForecast> {
    let mut all = std::iter::once(change).chain(journal.entries.iter().flat_map(|entry| &entry.changes));
    all.find_map(|one| one.forecast.as_ref().filter(|_| one.key == change.key))
}

/// The requests that a change concerns.
fn part(change: &JournalChange, journal: &Journal) -> LeverPart {
    told(change, journal).and_then(|told| told.part.parse().ok()).unwrap_or(LeverPart::All)
}

/// The projects that none of some changes reaches.
fn without<'f>(told: impl Iterator<Item = &'f BillForecast>) -> BTreeSet<Id> {
    told.map(|told| told.without.clone()).reduce(|all, more| &all & &more).unwrap_or_default()
}

/// What was expected of some changes of an entry. Where nobody tried them together, they save at least what the best of them
/// does alone, and at most all that they save alone.
fn forecast(entry: &JournalEntry, changes: &[&JournalChange]) -> Option<BillForecast> {
    let told: Vec<&BillForecast> = changes.iter().map(|change| change.forecast.as_ref()).collect::<Option<_>>()?;
    let (&first, others) = told.split_first()?;
    if others.is_empty() {
        return Some(first.clone());
    }
    if entry.together.is_some() && changes.len() == entry.changes.len() {
        return entry.together.clone();
    }
    let of_bill =
        |told: &BillForecast, end: f64| if told.change == 0.0 { end } else { end * told.of_bill / told.change };
    let sum = |end: fn(&BillForecast) -> f64| told.iter().map(|told| of_bill(told, end(told))).sum::<f64>();
    Some(BillForecast {
        part: <&str>::from(LeverPart::All).to_owned(),
        without: without(told.iter().copied()),
        change: sum(|told| told.change),
        lower: sum(|told| told.lower),
        upper: told.iter().map(|told| of_bill(told, told.upper)).fold(f64::INFINITY, f64::min),
        of_bill: sum(|told| told.change),
        usd: None,
        beside: None,
        ..first.clone()
    })
}

/// The sheet `rules/history.toml`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct HistoryRules {
    pub after_min: u64,
    pub before_min: u64,
    pub resampling: Resampling,
}

/// A change of Claude Code's settings: when, and which requests it concerns.
#[derive(Clone, PartialEq, Debug)]
pub struct SettingChange {
    /// When it was written.
    pub at: Millis,
    /// The projects whose requests it concerns.
    pub projects: ReachedProjects,
    /// Which of their requests.
    pub part: LeverPart,
}

/// Some projects, or all others.
#[derive(Clone, PartialEq, Debug)]
pub enum ReachedProjects {
    Only(BTreeSet<Id>),
    AllBut(BTreeSet<Id>),
}

impl ReachedProjects {
    fn has(&self, project: Id) -> bool {
        match self {
            Self::Only(own) => own.contains(&project),
            Self::AllBut(others) => !others.contains(&project),
        }
    }

    /// Whether no project can be of both.
    fn is_apart(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Only(one), Self::Only(other)) => one.is_disjoint(other),
            (Self::Only(own), Self::AllBut(others)) | (Self::AllBut(others), Self::Only(own)) => own.is_subset(others),
            (Self::AllBut(_), Self::AllBut(_)) => false,
        }
    }
}

/// What became of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ActualChange {
    /// Sessions that ended before the change, and began after the one before it.
    pub before: u64,
    /// Sessions that began after it, and before the next one.
    pub after: u64,
    /// Cost per token of context (per request, of a change that makes contexts smaller) after over before, less one, over the
    /// same of what it does not concern; none while there are too few sessions.
    pub change: Option<f64>,
    /// Lower end of its 95 % interval over sessions.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// What it is held against: `subagents`, `main threads`, `other projects`, or nothing.
    pub control: Option<&'static str>,
    /// Sessions with such requests, before the change and after it; none where it is held against nothing.
    pub control_sessions: Option<[u64; 2]>,
    pub verdict: CameTrue,
}

/// Whether a forecast came true.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str)]
#[serde(rename_all = "snake_case")]
pub enum CameTrue {
    /// Too few sessions yet, of what it concerns or of what it is held against.
    #[strum(serialize = "too early")]
    TooEarly,
    /// Too few sessions before it: no time mends that.
    #[strum(serialize = "too few sessions before")]
    TooFewBefore,
    /// What happened fits the forecast, and nothing, too; or there was nothing to hold it against; or the next change came too
    /// early.
    #[strum(serialize = "not clear yet")]
    NotClear,
    /// What happened fits the forecast; why it happened, no bill tells.
    #[strum(serialize = "fits the forecast")]
    Yes,
    /// More was saved than forecast.
    #[strum(serialize = "cheaper than forecast")]
    Better,
    /// Less was saved than forecast, beyond both intervals.
    #[strum(serialize = "cheaper, but less than forecast")]
    Less,
    /// The same, and it may save nothing at all.
    #[strum(serialize = "did not come true")]
    No,
}

impl SettingChange {
    /// The same for the requests that it is held against, with their name: of some projects the others for which nothing was
    /// set, else the other chains of the same projects; of everything none.
    fn beside(&self, changes: &[Self]) -> Option<(Self, &'static str)> {
        let others = |part| Self { part, ..self.clone() };
        match (&self.projects, self.part) {
            (ReachedProjects::Only(_), part) => {
                let set = changes.iter().filter_map(|one| match &one.projects {
                    ReachedProjects::Only(own) => Some(own),
                    ReachedProjects::AllBut(_) => None,
                });
                let projects = ReachedProjects::AllBut(set.flatten().copied().collect());
                Some((Self { projects, part, ..*self }, "other projects"))
            }
            (_, LeverPart::Main) => Some((others(LeverPart::Subagents), "subagents")),
            (_, LeverPart::Subagents) => Some((others(LeverPart::Main), "main threads")),
            (_, LeverPart::All) => None,
        }
    }

    fn has(&self, project: Id, is_main: bool) -> bool {
        self.part.has(is_main) && self.projects.has(project)
    }

    /// Whether both concern some requests.
    fn meets(&self, other: &Self) -> bool {
        self.part.meets(other.part) && !self.projects.is_apart(&other.projects)
    }
}

/// Which sessions of which requests are compared.
struct Comparison<'c> {
    of: &'c SettingChange,
    /// What the change does not concern; none where there is no such thing, or something else was changed for it at once.
    beside: Option<(SettingChange, &'static str)>,
    /// From the change before it on that concerns any of these requests, up to the next one.
    span: (Option<Millis>, Millis, Option<Millis>),
}

impl<'c> Comparison<'c> {
    /// `changes` are all that are known, in the order in which they were written.
    fn new(changes: &'c [SettingChange], place: usize) -> Self {
        let of = &changes[place];
        let others = || changes.iter().enumerate().filter(|(other, _)| *other != place);
        let is_clean =
            |(beside, _): &(SettingChange, _)| !others().any(|(_, other)| other.at == of.at && beside.meets(other));
        let beside = of.beside(changes).filter(is_clean);
        let is_met =
            |other: &SettingChange| of.meets(other) || beside.as_ref().is_some_and(|(beside, _)| beside.meets(other));
        let times = |is_earlier: bool| {
            let met = others().filter(move |(other, one)| (*other < place) == is_earlier && is_met(one));
            met.map(|(_, one)| one.at)
        };
        let span = (times(true).max(), of.at, times(false).min());
        Self { of, beside, span }
    }

    /// Sessions that ended before the change, and that began after it.
    fn sides(&self, timeline: &Timeline, prices: &Prices) -> [Vec<SideSums>; 2] {
        let tariff = Tariff::new(prices, &timeline.names);
        let mut sums = vec![SideSums::default(); timeline.sessions.len()];
        let mut ends = vec![NO_TIME; timeline.sessions.len()];
        // What makes contexts smaller shows per request, what makes them cheaper per token.
        let per_request = self.of.part == LeverPart::All;
        for (_, request) in timeline.counted().filter(|(_, request)| request.context() > 0) {
            let chain = &timeline.chains[request.chain as usize];
            let session = chain.session as usize;
            ends[session] = request.end.max(ends[session]);
            let (project, is_main) = (timeline.sessions[session].project, chain.place == Place::Main);
            let side = if self.of.has(project, is_main) {
                &mut sums[session].of
            } else if self.beside.as_ref().is_some_and(|(beside, _)| beside.has(project, is_main)) {
                &mut sums[session].beside
            } else {
                continue;
            };
            let spent = Spent { output: request.usage().output, ..bill::spent(request, CacheLifetime::FiveMinutes) };
            // Input-equivalent tokens, so that another model is no other cost.
            side[0] += tariff.of(request, &spent).units as f64;
            side[1] += if per_request { 1.0 } else { request.context() as f64 };
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (since, at, until) = self.span;
        let sessions = timeline.sessions.iter().map(|session| session.ts_first).zip(ends).zip(sums);
        for ((first, end), sums) in sessions.filter(|((first, end), _)| *first != NO_TIME && *end != NO_TIME) {
            if end < at && since.is_none_or(|since| first >= since) {
                before.push(sums);
            } else if first >= at && until.is_none_or(|until| first < until) {
                after.push(sums);
            }
        }
        [before, after]
    }
}

/// Cost and what it is divided by, of what the change concerns and of what it does not.
#[derive(Clone, Copy, Default)]
struct SideSums {
    of: [f64; 2],
    beside: [f64; 2],
}

impl SideSums {
    fn sum(sessions: &[Self]) -> Self {
        let add = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        sessions
            .iter()
            .fold(Self::default(), |sum, one| Self { of: add(sum.of, one.of), beside: add(sum.beside, one.beside) })
    }
}

/// Holds the forecast of one of the changes against what was billed. `changes` are all that are known, in the order in which they
/// were written.
pub fn actual(
    timeline: &Timeline,
    prices: &Prices,
    (changes, place): (&[SettingChange], usize),
    forecast: &BillForecast,
    rules: &HistoryRules,
) -> ActualChange {
    let comparison = Comparison::new(changes, place);
    let [mut before, mut after] = comparison.sides(timeline, prices);
    let counts =
        |has: fn(&SideSums) -> bool| [&before, &after].map(|side| side.iter().filter(|one| has(one)).count() as u64);
    let is_enough = |[before, after]: [u64; 2]| before >= rules.before_min && after >= rules.after_min;
    // Behind the next change there is nothing to wait for.
    let is_last = comparison.span.2.is_none();
    let may_be_enough = |sides: [u64; 2]| is_enough(sides) || is_last && sides[0] >= rules.before_min;
    let (of, beside) = (counts(|one| one.of[1] > 0.0), counts(|one| one.beside[1] > 0.0));
    let control = comparison.beside.map(|(_, name)| name).filter(|_| may_be_enough(beside));
    if control.is_none() {
        before.iter_mut().chain(&mut after).for_each(|one| one.beside = [0.0; 2]);
    }
    let early = ActualChange {
        before: of[0],
        after: of[1],
        change: None,
        lower: None,
        upper: None,
        control,
        control_sessions: control.map(|_| beside),
        verdict: match is_last {
            _ if of[0] < rules.before_min => CameTrue::TooFewBefore,
            true => CameTrue::TooEarly,
            false => CameTrue::NotClear,
        },
    };
    let is_known = is_enough(of) && (control.is_none() || is_enough(beside));
    let found = if is_known { interval(&before, &after, control.is_some(), &rules.resampling) } else { None };
    let Some((told, lower, upper)) = found else { return early };
    let verdict = match control {
        // Whatever else changed meanwhile would do.
        None => CameTrue::NotClear,
        Some(_) if lower > forecast.upper && upper < 0.0 => CameTrue::Less,
        Some(_) if lower > forecast.upper => CameTrue::No,
        Some(_) if upper < forecast.lower => CameTrue::Better,
        Some(_) if upper < 0.0 => CameTrue::Yes,
        Some(_) => CameTrue::NotClear,
    };
    ActualChange { change: Some(told), lower: Some(lower), upper: Some(upper), verdict, ..early }
}

/// By how much what the change concerns became more expensive, over what it does not concern, less one, with both ends of
/// its 95 % interval over sessions; none where one of the sides has no cost. Ratios are drawn by their logarithms: twice
/// as expensive is as far off as half.
fn interval(
    before: &[SideSums],
    after: &[SideSums],
    has_control: bool,
    resampling: &Resampling,
) -> Option<(f64, f64, f64)> {
    let (seen, error) = difference(before, after, has_control)?;
    let mut state = resampling.seed;
    let drawn = (0..resampling.samples).filter_map(|_| {
        let (before, after) = (sample(before, &mut state), sample(after, &mut state));
        difference(&before, &after, has_control)
    });
    let (lower, upper) = studentised(seen, error?, drawn, TAIL)?;
    Some((seen.exp_m1(), lower.min(seen).exp_m1(), upper.max(seen).exp_m1()))
}

/// The logarithm of that change, and its standard error: that of ratios of sums over sessions, by their linear terms
/// (Cochran 1977, 6.3); none of a single session.
fn difference(before: &[SideSums], after: &[SideSums], has_control: bool) -> Option<(f64, Option<f64>)> {
    let (sum_before, sum_after) = (SideSums::sum(before), SideSums::sum(after));
    let level = |sums: &SideSums| {
        let beside = if has_control { ratio(sums.beside)? } else { 1.0 };
        Some((ratio(sums.of)? / beside).ln())
    };
    let variance = |sessions: &[SideSums], sums: &SideSums| {
        let term = |[cost, by]: [f64; 2], sum: [f64; 2]| cost / sum[0] - by / sum[1];
        let of_session =
            |one: &SideSums| term(one.of, sums.of) - if has_control { term(one.beside, sums.beside) } else { 0.0 };
        let n = sessions.len() as f64;
        (n > 1.0).then(|| n / (n - 1.0) * sessions.iter().map(|one| of_session(one).powi(2)).sum::<f64>())
    };
    let change = level(&sum_after)? - level(&sum_before)?;
    let variances = variance(before, &sum_before).zip(variance(after, &sum_after));
    Some((change, variances.map(|(before, after)| (before + after).sqrt())))
}

/// Cost over what it is divided by; none without either.
fn ratio([cost, by]: [f64; 2]) -> Option<f64> {
    (cost > 0.0 && by > 0.0).then(|| cost / by)
}

fn sample(sessions: &[SideSums], state: &mut u64) -> Vec<SideSums> {
    sessions.iter().map(|_| sessions[below(sessions.len(), state)]).collect()
}
