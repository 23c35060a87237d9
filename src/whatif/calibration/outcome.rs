//! How many characters a token has on the user's own logs, and how far each estimator is from the bill.

use serde::Serialize;

use crate::base::tokenizer::VOCABULARIES;

/// A ratio with its 95 % interval over sessions.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Lower end of its interval; none with fewer than two sessions.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
}

/// Characters per token of one model family.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FamilyRatio {
    /// Model, in the one spelling.
    pub family: String,
    /// Increments that were measured.
    pub increments: u64,
    /// Sessions that they come from.
    pub sessions: u64,
    /// Code points of their blocks.
    pub chars: u64,
    /// UTF-8 bytes of the same.
    pub bytes: u64,
    /// Tokens by which contexts grew, without the framing of calls and results.
    pub tokens: u64,
    /// What the vocabularies make of the same text, in their order.
    pub counted: [u64; VOCABULARIES.len()],
    /// Code points per token.
    pub chars_per_token: Ratio,
    /// Bytes per token: what a tokenizer profile divides by (`[profiles.tokenizer]`, whose key says characters).
    pub bytes_per_token: Ratio,
    /// Code points per token with all framing in the tokens: what an increment brings as a whole.
    pub chars_per_token_framed: f64,
}

/// Limits of the drift histogram in percent; one more class is beyond the last.
pub const DRIFT_LIMITS: [u64; 9] = [1, 2, 5, 10, 15, 20, 30, 50, 100];

/// How far an estimator is from measured growth.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Drift {
    /// Estimator.
    pub estimator: String,
    /// Increments.
    pub increments: u64,
    /// Its tokens.
    pub estimated: u64,
    /// Measured tokens.
    pub actual: u64,
    /// Median drift of one increment in percent.
    pub percent_p50: u64,
    /// 90th percentile.
    pub percent_p90: u64,
    /// Increments by drift: up to each of [`DRIFT_LIMITS`], then beyond.
    pub histogram: [u64; DRIFT_LIMITS.len() + 1],
}

/// Both.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Calibration {
    /// By family.
    pub families: Vec<FamilyRatio>,
    /// By estimator.
    pub drift: Vec<Drift>,
}
