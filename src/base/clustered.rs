//! A share whose trials come in clusters: what is seen in one session hangs together, so a session counts for less than
//! its trials (design effect; Kish 1965), and sessions of long ago may count for less than new ones.

use crate::base::stats::wilson_at;

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
