//! Tails and quantiles of the normal distribution and of Student's t.

/// Probability of at least `z` under the standard normal distribution (rational approximation by Press et al., relative
/// error below 1.2e-7).
pub fn upper_tail(z: f64) -> f64 {
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (series - x * x).exp();
    if z >= 0.0 { tail } else { 1.0 - tail }
}

/// The `z` above which `tail` of the standard normal distribution lies; `tail` within 0 … 1.
pub fn quantile_above(tail: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if upper_tail(middle) > tail { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The same of Student's t with `df` degrees of freedom, from that `z` (series by Cornish and Fisher; three degrees at
/// least, below which it does not hold).
pub fn t_above(z: f64, df: u64) -> f64 {
    let df = df.max(3) as f64;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    z + terms.iter().zip(1..).map(|(term, power)| term / df.powi(power)).sum::<f64>()
}
