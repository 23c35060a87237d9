//! A share of trials in words and as JSON.

use serde_json::{Value, json};

use crate::base::stats::Share;

/// "78 %"
pub fn whole_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// "[55–91]", in per cent.
pub fn ends((lower, upper): (f64, f64)) -> String {
    format!("[{:.0}–{:.0}]", 100.0 * lower, 100.0 * upper)
}

/// "78 % [55–91]"
pub fn interval(share: Share) -> String {
    format!("{} {}", whole_percent(share.value()), ends((share.lower, share.upper)))
}

/// "10.1–15.0", in per cent.
pub fn bounds(share: Share) -> String {
    format!("{:.1}–{:.1}", 100.0 * share.lower, 100.0 * share.upper)
}

/// "95 % interval 10.1–15.0 %"
pub fn interval_95(share: Share) -> String {
    format!("95 % interval {} %", bounds(share))
}

/// Counts, share and intervals: over trials, and over sessions where it is known.
pub fn json(share: Share, sessions: Option<(f64, f64)>) -> Value {
    let known = share.known();
    json!({
        "k": share.k,
        "n": share.n,
        "value": known.map(|share| share.value()),
        "wilson_95": known.map(|share| [share.lower, share.upper]),
        "sessions_95": sessions.map(|(lower, upper)| [lower, upper]),
    })
}
