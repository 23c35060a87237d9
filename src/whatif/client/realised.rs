//! What became of a change of Claude Code's settings: what its requests were billed after it, over before it, held against
//! requests that it does not concern (difference in differences), with an interval over sessions.

use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{Resampling, TAIL, below, studentised};
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::{Millis, Place};
use crate::settings::entries::BillForecast;
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::Spent;
use crate::whatif::sim::money::{Prices, Tariff};

/// The sheet `rules/history.toml`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryRules {
    /// Least sessions after the change.
    pub after_min: u64,
    /// Least sessions before it.
    pub before_min: u64,
    /// How sessions are drawn.
    pub resampling: Resampling,
}

impl HistoryRules {
    /// Reads the sheet.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn load(data: &Data) -> Result<Self> {
        data.parsed("history.toml")
    }
}

/// What was changed, when, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct SettingChange<'f> {
    /// When it was written.
    pub at: Millis,
    /// When the next change of the same file was.
    pub until: Millis,
    /// The project that it concerns; none: all.
    pub project: Option<Id>,
    /// What was expected of it.
    pub forecast: &'f BillForecast,
}

/// What became of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ActualChange {
    /// Sessions that ended before the change.
    pub before: u64,
    /// Sessions that began after it.
    pub after: u64,
    /// Cost per token of context (per request, of a change that makes contexts smaller) after over before, less one, over the
    /// same of what it does not concern; none while there are too few sessions.
    pub change: Option<f64>,
    /// Lower end of its 95 % interval over sessions.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// What it was held against: `subagents`, `main`, `other projects`, or nothing.
    pub control: Option<&'static str>,
    /// What follows.
    pub verdict: CameTrue,
}

/// Whether a forecast came true.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str)]
#[serde(rename_all = "snake_case")]
pub enum CameTrue {
    /// Too few sessions yet.
    #[strum(serialize = "too early")]
    TooEarly,
    /// What happened fits what was told, and nothing, too.
    #[strum(serialize = "not clear yet")]
    NotClear,
    /// What happened fits what was told.
    #[strum(serialize = "came true")]
    Yes,
    /// It saved more than told.
    #[strum(serialize = "saves more than told")]
    Better,
    /// It saved less than told, beyond both intervals.
    #[strum(serialize = "did not come true")]
    No,
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

/// Holds a forecast against what was billed.
pub fn realised(
    timeline: &Timeline,
    prices: &Prices,
    change: &SettingChange<'_>,
    rules: &HistoryRules,
) -> ActualChange {
    let (before, after) = sides(timeline, prices, change);
    let (count_before, count_after) = (count(&before), count(&after));
    let has_control = before.iter().chain(&after).any(|sums| sums.beside[1] > 0.0);
    let control = has_control.then_some(match (change.forecast.part.as_str(), change.project) {
        (_, Some(_)) => "other projects",
        ("main", None) => "subagents",
        _ => "main threads",
    });
    let early = ActualChange {
        before: count_before,
        after: count_after,
        change: None,
        lower: None,
        upper: None,
        control,
        verdict: CameTrue::TooEarly,
    };
    if count_before < rules.before_min || count_after < rules.after_min {
        return early;
    }
    let Some((told, lower, upper)) = interval(&before, &after, &rules.resampling) else { return early };
    let forecast = change.forecast;
    let verdict = if lower > forecast.upper {
        CameTrue::No
    } else if upper < forecast.lower {
        CameTrue::Better
    } else if upper < 0.0 {
        CameTrue::Yes
    } else {
        CameTrue::NotClear
    };
    ActualChange { change: Some(told), lower: Some(lower), upper: Some(upper), verdict, ..early }
}

fn count(sessions: &[SideSums]) -> u64 {
    sessions.iter().filter(|sums| sums.of[1] > 0.0).count() as u64
}

/// Sessions that ended before the change, and that began after it.
fn sides(timeline: &Timeline, prices: &Prices, change: &SettingChange<'_>) -> (Vec<SideSums>, Vec<SideSums>) {
    let tariff = Tariff::new(prices, &timeline.names);
    let mut sums = vec![SideSums::default(); timeline.sessions.len()];
    let mut ends = vec![Millis::MIN; timeline.sessions.len()];
    // What makes contexts smaller shows per request, what makes them cheaper per token.
    let per_request = change.forecast.part == "all";
    for request in timeline.requests.iter().filter(|request| request.context() > 0) {
        let chain = &timeline.chains[request.chain as usize];
        let session = chain.session as usize;
        ends[session] = request.end.max(ends[session]);
        let is_project = change.project.is_none_or(|wanted| timeline.sessions[session].project == wanted);
        let is_part = match change.forecast.part.as_str() {
            "main" => chain.place == Place::Main,
            "subagents" => chain.place != Place::Main,
            _ => true,
        };
        let spent = Spent { output: request.usage.output, ..bill::spent(request, CacheLifetime::FiveMinutes) };
        // Input-equivalent tokens, so that another model is no other cost.
        let cost = tariff.cost(request.model, request.start, &spent).units as f64;
        let pair = [cost, if per_request { 1.0 } else { request.context() as f64 }];
        // A change for one project is held against the others, one for all against the other chains.
        let side = match (is_project, is_part) {
            (true, true) => Some(&mut sums[session].of),
            (true, false) if change.project.is_none() => Some(&mut sums[session].beside),
            (false, true) => Some(&mut sums[session].beside),
            _ => None,
        };
        if let Some(side) = side {
            (side[0], side[1]) = (side[0] + pair[0], side[1] + pair[1]);
        }
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for ((session, sums), end) in timeline.sessions.iter().zip(sums).zip(ends) {
        if end < change.at {
            before.push(sums);
        } else if session.ts_first >= change.at && session.ts_first < change.until {
            after.push(sums);
        }
    }
    (before, after)
}

/// By how much what the change concerns became more expensive, over what it does not concern, less one, with both ends of
/// its 95 % interval over sessions; none where one of the sides has no cost. Ratios are drawn by their logarithms: twice
/// as expensive is as far off as half.
fn interval(before: &[SideSums], after: &[SideSums], resampling: &Resampling) -> Option<(f64, f64, f64)> {
    let (seen, error) = difference(before, after)?;
    let mut state = resampling.seed;
    let drawn = (0..resampling.samples).filter_map(|_| {
        let (before, after) = (sample(before, &mut state), sample(after, &mut state));
        difference(&before, &after)
    });
    let (lower, upper) = studentised(seen, error?, drawn, TAIL)?;
    Some((seen.exp_m1(), lower.min(seen).exp_m1(), upper.max(seen).exp_m1()))
}

/// The logarithm of that change, and its standard error: that of ratios of sums over sessions, by their linear terms
/// (Cochran 1977, 6.3); none of a single session.
fn difference(before: &[SideSums], after: &[SideSums]) -> Option<(f64, Option<f64>)> {
    let (sum_before, sum_after) = (SideSums::sum(before), SideSums::sum(after));
    let has_control = ratio(sum_before.beside).is_some() && ratio(sum_after.beside).is_some();
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
