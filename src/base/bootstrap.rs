//! Intervals over sessions: what would have come out had other sessions of the same kind been recorded. Calls of one session
//! are not independent, so whole sessions are drawn; and a few sessions are most of a bill, so ends are taken in units of each
//! sample's own standard error (the bootstrap-t of Efron 1982; Efron and Tibshirani 1993, 12.5). It is deterministic:
//! SplitMix64 (Steele, Lea and Flood 2014) with a given seed, over sessions in a fixed order.

use rayon::prelude::*;

use crate::base::significance::quantile_above;

/// How it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Resampling {
    /// Where the generator begins.
    pub seed: u64,
    pub samples: u32,
}

/// Successes and trials of one session.
pub type SessionTrials = (u64, u64);

/// What a 95 % interval leaves out on either side.
pub const TAIL: f64 = 0.025;

/// How often an interval over so many sessions held, in a hundred: samples of real sessions, held against the change of the whole
/// bill over all of them (means of windows of compaction and of policies; docs/policies.md, "The interval"). How uneven these are
/// says less: where one is nearly all of the bill, the interval is wide.
const HELD: [(u64, u32); 5] = [(5, 57), (8, 63), (20, 78), (41, 86), (57, 90)];
/// From so many sessions on an interval holds about as often as it says.
const HOLDS_FROM: u64 = 80;

/// By how much an interval over so few sessions has to be wider for it to hold as often as it says, if errors are normal.
pub fn stretch(sessions: u64) -> f64 {
    holds_in_100(sessions)
        .map_or(1.0, |held| quantile_above(TAIL) / quantile_above((1.0 - f64::from(held) / 100.0) / 2.0))
}

/// How often in a hundred an interval over so few sessions holds, about; none where it holds about as often as it says.
pub fn holds_in_100(sessions: u64) -> Option<u32> {
    let (_, least) = HELD[0];
    let known = HELD.iter().rev().find(|(from, _)| *from <= sessions);
    (sessions < HOLDS_FROM).then(|| known.map_or(least, |(_, held)| *held))
}

/// Least error of a sample, as a share of that of the estimate: without it one odd session among many that are nearly alike
/// makes an interval of thousands of per cent.
const OWN_ERROR_MIN: f64 = 0.25;
/// What a sample of sessions that are quite alike has, which proves nothing: with it 12 of 15 are 40 % at least, and three of
/// 60 nine at most, a little wider than exact intervals of counts. With these two, intervals of made-up uneven sessions (a
/// twentieth to all of 29 to 150 save something) held 54 to 95 times in 100, without them 51 to 95, percentiles 50 to 92.
const ALIKE_ERROR: f64 = 0.5;

/// A ratio of two sums over sessions, with what its standard error needs.
#[derive(Clone, Copy, Default)]
pub struct RatioSums {
    n: f64,
    of: f64,
    over: f64,
    squares: [f64; 3],
}

impl RatioSums {
    /// Sums over sessions, each with what it adds above and below the line.
    pub fn sum(sessions: impl Iterator<Item = (f64, f64)>) -> Self {
        sessions.fold(Self::default(), |sums, (of, over)| Self {
            n: sums.n + 1.0,
            of: sums.of + of,
            over: sums.over + over,
            squares: [sums.squares[0] + of * of, sums.squares[1] + of * over, sums.squares[2] + over * over],
        })
    }

    /// The ratio; none over nothing.
    pub fn ratio(&self) -> Option<f64> {
        (self.over > 0.0).then(|| self.of / self.over)
    }

    /// Its standard error: that of a ratio of two sums over sessions (Cochran 1977, 6.3); none of a single session.
    pub fn error(&self) -> Option<f64> {
        let ratio = self.ratio().filter(|_| self.n > 1.0)?;
        let [of, both, over] = self.squares;
        let squares = of - 2.0 * ratio * both + ratio * ratio * over;
        Some((self.n / (self.n - 1.0) * squares.max(0.0)).sqrt() / self.over)
    }
}

/// Both ends of the 95 % interval of the share of successes; none without trials. Sessions without trials do not count:
/// they say nothing about the share.
pub fn interval(sessions: &[SessionTrials], resampling: &Resampling) -> Option<(f64, f64)> {
    let trials = sessions.iter().filter(|(_, trials)| *trials > 0);
    let sessions: Vec<(f64, f64)> = trials.map(|&(successes, trials)| (successes as f64, trials as f64)).collect();
    let (lower, upper) = ratio_interval(sessions.len(), |session| sessions[session], resampling, TAIL)?;
    Some((lower.max(0.0), upper.min(1.0)))
}

/// The interval of a sum over `sessions` sessions, of which those that are not among `values` add nothing, that leaves
/// `tail` (a share, below a half) out on either side; none without sessions.
pub fn sum_interval(values: &[f64], sessions: usize, resampling: &Resampling, tail: f64) -> Option<(f64, f64)> {
    let sessions = sessions.max(values.len());
    let of_session = |session: usize| (values.get(session).copied().unwrap_or(0.0), 1.0);
    let (lower, upper) = ratio_interval(sessions, of_session, resampling, tail)?;
    // What only saves can in no other sessions cost anything.
    let least = if values.iter().all(|value| *value >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
    let most = if values.iter().all(|value| *value <= 0.0) { 0.0 } else { f64::INFINITY };
    Some((lower.clamp(least, most) * sessions as f64, upper.clamp(least, most) * sessions as f64))
}

/// The interval of a ratio of two sums over sessions; around the ratio in any case.
fn ratio_interval(
    sessions: usize,
    of_session: impl Fn(usize) -> (f64, f64) + Sync,
    resampling: &Resampling,
    tail: f64,
) -> Option<(f64, f64)> {
    let seen = RatioSums::sum((0..sessions).map(&of_session));
    let ratio = seen.ratio()?;
    // Where the generator stands when the samples before are drawn.
    let sample = |sample: u32| {
        let mut state = resampling.seed.wrapping_add(STRIDE.wrapping_mul(u64::from(sample) * sessions as u64));
        let drawn = RatioSums::sum((0..sessions).map(|_| of_session(below(sessions, &mut state))));
        Some((drawn.ratio()?, drawn.error()))
    };
    let samples: Vec<_> = (0..resampling.samples).into_par_iter().filter_map(sample).collect();
    let (lower, upper) = studentised(ratio, seen.error().unwrap_or(0.0), samples.into_iter(), tail)?;
    Some((lower.min(ratio), upper.max(ratio)))
}

/// Both ends of an interval of an estimate with this standard error, from what samples gave, each with its own; none without
/// samples. The error of a sample is [`OWN_ERROR_MIN`] of that of the estimate at least, and [`ALIKE_ERROR`] of it where there
/// is none.
pub fn studentised(
    estimate: f64,
    error: f64,
    samples: impl Iterator<Item = (f64, Option<f64>)>,
    tail: f64,
) -> Option<(f64, f64)> {
    let off = samples.map(|(drawn, own)| {
        let own =
            own.filter(|own| *own > 1e-6 * error).map_or(error * ALIKE_ERROR, |own| own.max(error * OWN_ERROR_MIN));
        (drawn, if own > 0.0 { (drawn - estimate) / own } else { 0.0 })
    });
    let (mut drawn, mut errors_off): (Vec<f64>, Vec<f64>) = off.unzip();
    drawn.sort_by(f64::total_cmp);
    errors_off.sort_by(f64::total_cmp);
    let last = drawn.len().checked_sub(1)? as f64;
    let at = |sorted: &[f64], quantile: f64| sorted[(last * quantile).round() as usize];
    let lower = estimate - at(&errors_off, 1.0 - tail) * error;
    let upper = estimate - at(&errors_off, tail) * error;
    // What the samples themselves came to is possible in any case: without one long session all may be otherwise.
    Some((lower.min(at(&drawn, tail)), upper.max(at(&drawn, 1.0 - tail))))
}

/// A number below `end`, which is at least 1: the high half of a product, with a bias far below anything that counts here.
pub(crate) fn below(end: usize, state: &mut u64) -> usize {
    ((u128::from(next(state)) * end as u128) >> 64) as usize
}

/// What each number moves the generator on by.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// The next number of SplitMix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STRIDE);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
