//! Intervals over sessions: what would have come out had other sessions of the same kind been recorded.
//!
//! Calls of one session are not independent, so a binomial interval over calls is too narrow. The bootstrap draws whole
//! sessions (Efron 1979, percentile interval). It is deterministic: the generator is SplitMix64 (Steele, Lea and Flood
//! 2014) with a given seed, and sessions stand in a fixed order.

/// How it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resampling {
    /// Where the generator begins.
    pub seed: u64,
    /// Samples.
    pub samples: u32,
}

/// Successes and trials of one session.
pub type SessionTrials = (u64, u64);

/// What a 95 % interval leaves out on either side.
pub const TAIL: f64 = 0.025;

/// Both ends of the 95 % interval of the share of successes; none without trials. Sessions without trials do not count:
/// they say nothing about the share.
pub fn interval(sessions: &[SessionTrials], resampling: &Resampling) -> Option<(f64, f64)> {
    let sessions: Vec<SessionTrials> = sessions.iter().copied().filter(|(_, trials)| *trials > 0).collect();
    if sessions.is_empty() || resampling.samples == 0 {
        return None;
    }
    let mut state = resampling.seed;
    Some(ends((0..resampling.samples).map(|_| share(&sessions, &mut state)), TAIL))
}

/// The interval of a sum over `sessions` sessions, of which those that are not among `values` add nothing, that leaves
/// `tail` (a share, below a half) out on either side; none without sessions.
pub fn sum_interval(values: &[f64], sessions: usize, resampling: &Resampling, tail: f64) -> Option<(f64, f64)> {
    if sessions == 0 || resampling.samples == 0 {
        return None;
    }
    let sessions = sessions.max(values.len());
    let mut state = resampling.seed;
    // An empty sum is -0.0, and would be printed so.
    let sum = |_| 0.0 + (0..sessions).filter_map(|_| values.get(below(sessions, &mut state))).sum::<f64>();
    Some(ends((0..resampling.samples).map(sum), tail))
}

/// Both ends of the 95 % interval of an estimate with this standard error, from what samples gave, each in units of its own
/// standard error (bootstrap-t: Efron 1982; Efron and Tibshirani 1993, 12.5); none without samples. Sessions that are all
/// alike have no error of their own: that of the estimate stands in.
pub fn studentised(estimate: f64, error: f64, samples: impl Iterator<Item = (f64, Option<f64>)>) -> Option<(f64, f64)> {
    let mut samples = samples.map(|(drawn, own)| {
        let own = own.filter(|own| *own > 0.0).unwrap_or(error);
        if own > 0.0 { (drawn - estimate) / own } else { 0.0 }
    });
    let first = samples.next()?;
    let (low, high) = ends(std::iter::once(first).chain(samples), TAIL);
    Some((estimate - high * error, estimate - low * error))
}

/// What was drawn (there is something), but for `tail` on either side.
fn ends(drawn: impl Iterator<Item = f64>, tail: f64) -> (f64, f64) {
    let mut drawn: Vec<f64> = drawn.collect();
    drawn.sort_by(f64::total_cmp);
    let end = |quantile: f64| drawn[((drawn.len() - 1) as f64 * quantile).round() as usize];
    (end(tail), end(1.0 - tail))
}

/// The share in as many sessions, drawn with replacement.
fn share(sessions: &[SessionTrials], state: &mut u64) -> f64 {
    let (mut successes, mut trials) = (0, 0);
    for _ in sessions {
        let (session_successes, session_trials) = sessions[below(sessions.len(), state)];
        successes += session_successes;
        trials += session_trials;
    }
    successes as f64 / trials as f64
}

/// A number below `end`, which is at least 1: the high half of a product, with a bias far below anything that counts here.
pub(crate) fn below(end: usize, state: &mut u64) -> usize {
    ((u128::from(next(state)) * end as u128) >> 64) as usize
}

/// The next number of SplitMix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
