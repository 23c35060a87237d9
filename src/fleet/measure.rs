//! What is counted, and the bins of histograms: whole numbers, so that sums are equal whoever makes them.

use crate::base::body_shape::BodyShape;

/// An endpoint.
pub const ENDPOINT: &str = "endpoint";
/// A tool.
pub const TOOL: &str = "tool";
/// One tool after another.
pub const EDGE: &str = "edge";
/// Another setting of the client or of the cache.
pub const WHAT_IF: &str = "what_if";

/// Sessions.
pub const SESSIONS: &str = "sessions";
/// Responses.
pub const CALLS: &str = "calls";
/// Responses that their context was shown before.
pub const REPEATS: &str = "repeats";
/// Other bodies between a repeat and its last showing.
pub const DISTANCE: &str = "distance";
/// Bytes of a response.
pub const BYTES: &str = "bytes";
/// Shape of a response.
pub const SHAPE: &str = "shape";
/// Inner formats of a response.
pub const INNER_FORMAT: &str = "inner_format";
/// Columns of the Markdown table of a response.
pub const COLUMNS: &str = "columns";
/// Milliseconds from a call to its response, where known.
pub const LATENCY: &str = "latency_ms";
/// Tokens as they are.
pub const BASELINE: &str = "baseline_tokens";
/// Tokens that the pipeline would send.
pub const SENT: &str = "sent_tokens";
/// Steps with a tool.
pub const STEPS: &str = "steps";
/// Steps with the earlier tool that the later one followed.
pub const SUPPORT: &str = "support";

/// Input-equivalent tokens of sessions as they were, simulated.
pub const LOG_TOKENS: &str = "log_tokens";
/// Those of the same sessions under another setting.
pub const POLICY_TOKENS: &str = "policy_tokens";

/// How the bins of a measure are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinForm {
    /// One number, in bin 0.
    Number,
    /// Bins of [`bin`].
    Histogram,
    /// Bins are kinds, of which there are so many; what is too rare is [`OTHER`].
    Category(u32),
}

/// The bin of all kinds that are too rare to tell.
pub const OTHER: u32 = 999;
/// Inner formats.
pub const FORMATS: u32 = 14;

/// All measures of a kind of subject, the one first by which people are weighed.
pub fn of_kind(kind: &str) -> &'static [(&'static str, BinForm)] {
    match kind {
        ENDPOINT => &[
            (CALLS, BinForm::Number),
            (SESSIONS, BinForm::Number),
            (REPEATS, BinForm::Number),
            (BASELINE, BinForm::Number),
            (SENT, BinForm::Number),
            (BYTES, BinForm::Histogram),
            (DISTANCE, BinForm::Histogram),
            (COLUMNS, BinForm::Histogram),
            (LATENCY, BinForm::Histogram),
            (SHAPE, BinForm::Category(BodyShape::COUNT as u32)),
            (INNER_FORMAT, BinForm::Category(FORMATS)),
        ],
        TOOL => &[(STEPS, BinForm::Number), (SESSIONS, BinForm::Number)],
        EDGE => &[(SUPPORT, BinForm::Number), (SESSIONS, BinForm::Number)],
        WHAT_IF => &[(LOG_TOKENS, BinForm::Number), (SESSIONS, BinForm::Number), (POLICY_TOKENS, BinForm::Number)],
        _ => &[],
    }
}

/// The measure by which people are weighed in a kind of subject.
pub fn weight_of(kind: &str) -> Option<&'static str> {
    of_kind(kind).first().map(|(measure, _)| *measure)
}

/// The form of a measure of a kind of subject.
pub fn form(kind: &str, measure: &str) -> Option<BinForm> {
    of_kind(kind).iter().find(|(name, _)| *name == measure).map(|(_, form)| *form)
}

/// Values below this have a bin each.
const EXACT: u32 = 16;
/// Bins between a power of two and the next.
const PARTS: u32 = 8;
/// The bin of the largest value there is.
pub const BIN_MAX: u32 = 16 + PARTS * 27 + 7;

/// The bin of a value: exact below 16, then eight to a doubling, so that a bin is at most 12.5 % wide.
pub fn bin(value: u32) -> u32 {
    if value < EXACT {
        return value;
    }
    let power = value.ilog2();
    EXACT + PARTS * (power - 4) + ((value >> (power - 3)) & (PARTS - 1))
}

/// The smallest value of a bin.
fn lowest(bin: u32) -> u64 {
    if bin < EXACT {
        return bin.into();
    }
    let (power, part) = ((bin - EXACT) / PARTS + 4, (bin - EXACT) % PARTS);
    u64::from(PARTS + part) << (power - 3)
}

/// What stands for the values of a bin: their middle, rounded down.
pub fn middle(bin: u32) -> u64 {
    (lowest(bin) + lowest(bin + 1) - 1) / 2
}

/// The middle of the first bin up to which at least `percent` of all counts lie; none without counts. Bins ascend.
pub fn quantile(bins: impl IntoIterator<Item = (u32, f64)> + Clone, percent: f64) -> Option<u64> {
    let total: f64 = bins.clone().into_iter().map(|(_, count)| count).sum();
    // Weighted counts have no exact binary form: without the slack a share that is just reached would be missed.
    let wanted = total * percent / 100.0 * (1.0 - 1e-12);
    let mut reached = 0.0;
    let found = bins.into_iter().find(|(_, count)| {
        reached += count;
        *count > 0.0 && reached >= wanted
    });
    found.map(|(bin, _)| middle(bin))
}
