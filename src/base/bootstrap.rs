//! Intervals over sessions: what would have come out had other sessions of the same kind been recorded.
//!
//! Calls of one session are not independent, so a binomial interval over calls is too narrow. The bootstrap
//! draws whole sessions (Efron 1979, percentile interval). It is deterministic: the generator is SplitMix64 (Steele, Lea
//! and Flood 2014) with a given seed, and sessions stand in a fixed order.
//!
//! A share whose trials come in clusters: what is seen in one session hangs together, so a session counts for less than
//! its trials (design effect; Kish 1965), and sessions of long ago may count for less than new ones.

use crate::base::stats::wilson_at;

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
pub type Tally = (u64, u64);

/// What a 95 % interval leaves out on either side.
pub const TAIL: f64 = 0.025;

/// Both ends of the 95 % interval of the share of successes; none without trials. Sessions without trials do not count:
/// they say nothing about the share.
pub fn interval(sessions: &[Tally], resampling: &Resampling) -> Option<(f64, f64)> {
    let sessions: Vec<Tally> = sessions.iter().copied().filter(|(_, trials)| *trials > 0).collect();
    if sessions.is_empty() || resampling.samples == 0 {
        return None;
    }
    let mut state = resampling.seed;
    let mut shares: Vec<f64> = (0..resampling.samples).map(|_| share(&sessions, &mut state)).collect();
    shares.sort_by(f64::total_cmp);
    let end = |quantile: f64| shares[((shares.len() - 1) as f64 * quantile).round() as usize];
    Some((end(0.025), end(0.975)))
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
    let mut sums: Vec<f64> = (0..resampling.samples).map(sum).collect();
    sums.sort_by(f64::total_cmp);
    let end = |quantile: f64| sums[((sums.len() - 1) as f64 * quantile).round() as usize];
    Some((end(tail), end(1.0 - tail)))
}

/// The share in as many sessions, drawn with replacement.
fn share(sessions: &[Tally], state: &mut u64) -> f64 {
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

/// Weighted sums over clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clustered {
    /// Clusters with a trial.
    pub clusters: u64,
    /// Successes, weighted.
    pub successes: f64,
    /// Trials, weighted.
    pub trials: f64,
    /// Of successes the squares, of successes and trials the products, of trials the squares; with squares of the weights.
    products: [f64; 3],
}

impl Clustered {
    /// Takes in the trials of a cluster.
    pub fn add_trials(&mut self, trials: u64, weight: f64) {
        let n = weight * trials as f64;
        self.clusters += u64::from(trials > 0);
        self.trials += n;
        self.products[2] += n * n;
    }

    /// Takes in the successes among trials that were taken in.
    pub fn add_successes(&mut self, successes: u64, trials: u64, weight: f64) {
        let (k, n) = (weight * successes as f64, weight * trials as f64);
        self.successes += k;
        self.products[0] += k * k;
        self.products[1] += k * n;
    }

    /// The share; 0 without trials.
    pub fn share(&self) -> f64 {
        if self.trials > 0.0 { self.successes / self.trials } else { 0.0 }
    }

    /// By how much clustering widens the variance (linearised variance of a ratio, against that of independent trials); at
    /// least 1, since few sessions that happen to agree prove nothing.
    pub fn design_effect(&self) -> f64 {
        let p = self.share();
        let plain = p * (1.0 - p) * self.trials;
        if plain <= 0.0 || self.clusters < 2 {
            return 1.0;
        }
        let [kk, kn, nn] = self.products;
        let few = self.clusters as f64 / (self.clusters - 1) as f64;
        ((kk - 2.0 * p * kn + p * p * nn) * few / plain).max(1.0)
    }

    /// Trials that are worth as much as these if what is to come is as uncertain as what was: the variances of the two add
    /// up.
    fn effective(&self) -> f64 {
        self.trials / self.design_effect() / 2.0
    }

    /// Both ends of the interval of the share in as many trials to come, `z` standard errors to either side (Wilson's
    /// score interval over the effective trials); the whole range without trials.
    pub fn ahead(&self, z: f64) -> (f64, f64) {
        if self.trials <= 0.0 {
            return (0.0, 1.0);
        }
        let effective = self.effective();
        wilson_at(self.share() * effective, effective, z)
    }

    /// How many standard errors the lower end must be away so as not to lie above `share`.
    pub fn errors_above(&self, share: f64) -> f64 {
        let p = self.share();
        if share >= p || self.trials <= 0.0 {
            return 0.0;
        }
        // At its lower end the error of the score interval is that of the end. Nothing at all has no error: there the
        // error of the share itself stands in.
        let at = if share > 0.0 { share } else { p };
        (p - share) / (at * (1.0 - at) / self.effective()).sqrt().max(1e-9)
    }
}
