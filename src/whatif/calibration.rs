//! What the bill says about tokenizers: the growth of a context between two requests of a turn is the exact size of what the
//! model wrote and what came in, and the log has its characters. Only increments *without thinking* count: it is billed in
//! full, and the log has a summary of it, or nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::base::model_id;
use crate::base::significance::t_above;
use crate::base::tokenizer::VOCABULARIES;
use crate::logs::timeline::requests::{Block, BlockKind, Marks, Request, Timeline};
use crate::report::numbers;
use crate::report::table::{Table, TableBuilder};
use crate::whatif::sim::sizes::SizeRules;

/// One measured increment.
struct Increment<'a> {
    session: u32,
    family: &'a str,
    blocks: Vec<&'a Block>,
    tokens: u64,
}

/// Holds every estimator against measured growth.
pub fn calibrate(timeline: &Timeline, rules: &SizeRules) -> Calibration {
    let families: Vec<String> = timeline.names.texts().iter().map(|model| model_id::normalise(model)).collect();
    let increments = increments(timeline, &families);
    Calibration { families: ratios(&increments, rules), drift: drifts(&increments, rules) }
}

/// Warm increments within a turn, without thinking, whose text is all in the log.
fn increments<'a>(timeline: &'a Timeline, families: &'a [String]) -> Vec<Increment<'a>> {
    let mut found = Vec::new();
    for segment in &timeline.segments {
        let range = segment.requests.start as usize..segment.requests.end as usize;
        for pair in timeline.requests[range].windows(2) {
            let (before, request) = (&pair[0], &pair[1]);
            let blocks: Vec<&Block> =
                before.outputs.clone().chain(request.inputs.clone()).map(|b| &timeline.blocks[b as usize]).collect();
            if request.counts()
                && is_exact(before, request)
                && blocks.iter().all(|block| is_in_log(block))
                && !blocks.is_empty()
            {
                let session = timeline.chains[request.chain as usize].session;
                let tokens = request.usage().cache_creation + request.usage().input;
                found.push(Increment { session, family: &families[request.model.0 as usize], blocks, tokens });
            }
        }
    }
    found
}

/// Nothing but the answer and its results came in, and all that was there before was read.
fn is_exact(before: &Request, request: &Request) -> bool {
    let others = [Marks::HUMAN, Marks::META, Marks::COMPACTION, Marks::MICROCOMPACTION, Marks::SKILL, Marks::ATTACHED];
    let read = before.cached();
    let quiet = !others.iter().any(|&mark| request.marks.has(mark));
    quiet && before.model == request.model && read > 0 && request.usage().cache_read == read
}

/// Images have no characters, thinking is shortened or left out, and logs may be gone before their blocks were counted.
fn is_in_log(block: &Block) -> bool {
    block.is_counted() && !matches!(block.kind, BlockKind::Media | BlockKind::Thinking)
}

/// Sums of one session: sizes of text, tokens without framing.
#[derive(Clone, Copy, Default)]
struct SizeSums {
    increments: u64,
    chars: u64,
    bytes: u64,
    counted: [u64; VOCABULARIES.len()],
    tokens: u64,
}

fn ratios(increments: &[Increment<'_>], rules: &SizeRules) -> Vec<FamilyRatio> {
    let mut by_family: BTreeMap<&str, BTreeMap<u32, SizeSums>> = BTreeMap::new();
    for increment in increments {
        let sums = by_family.entry(increment.family).or_default().entry(increment.session).or_default();
        let framing: f64 = increment.blocks.iter().map(|block| rules.framing_of(block)).sum();
        sums.increments += 1;
        for block in &increment.blocks {
            sums.chars += u64::from(block.chars);
            sums.bytes += u64::from(block.bytes);
            sums.counted.iter_mut().zip(block.tokens).for_each(|(sum, tokens)| *sum += u64::from(tokens));
        }
        sums.tokens += increment.tokens.saturating_sub((framing + rules.framing.increment).round() as u64);
    }
    by_family.into_iter().map(|(family, sessions)| ratio(family, &sessions.into_values().collect::<Vec<_>>())).collect()
}

fn ratio(family: &str, sessions: &[SizeSums]) -> FamilyRatio {
    let sum = |of: &dyn Fn(&SizeSums) -> u64| sessions.iter().map(of).sum::<u64>();
    FamilyRatio {
        family: family.to_owned(),
        increments: sum(&|s| s.increments),
        sessions: sessions.len() as u64,
        chars: sum(&|s| s.chars),
        bytes: sum(&|s| s.bytes),
        tokens: sum(&|s| s.tokens),
        counted: std::array::from_fn(|place| sum(&|s| s.counted[place])),
        chars_per_token: per_token(sessions, |s| s.chars),
        bytes_per_token: per_token(sessions, |s| s.bytes),
    }
}

/// The ratio of two sums over sessions, with the variance of a ratio estimator: calls of one session are not independent of
/// each other, sessions are (Cochran 1977, 6.3).
fn per_token(sessions: &[SizeSums], size: impl Fn(&SizeSums) -> u64) -> Ratio {
    let tokens: u64 = sessions.iter().map(|s| s.tokens).sum();
    if tokens == 0 {
        return Ratio::default();
    }
    let value = sessions.iter().map(&size).sum::<u64>() as f64 / tokens as f64;
    let n = sessions.len() as f64;
    let squares: f64 = sessions.iter().map(|s| (size(s) as f64 - value * s.tokens as f64).powi(2)).sum();
    let freedom = sessions.len() as u64 - 1;
    let half = (freedom > 0).then(|| student(freedom) * (n / (n - 1.0) * squares).sqrt() / tokens as f64);
    Ratio { value, lower: half.map(|half| (value - half).max(0.0)), upper: half.map(|half| value + half) }
}

/// The two-sided 95 % quantile of Student's distribution: few sessions say little of how far sessions are apart.
fn student(freedom: u64) -> f64 {
    match freedom {
        1 => 12.706,
        2 => 4.303,
        more => t_above(1.96, more),
    }
}

fn drifts(increments: &[Increment<'_>], rules: &SizeRules) -> Vec<Drift> {
    let chars = |blocks: &[&Block]| blocks.iter().map(|block| f64::from(block.chars)).sum::<f64>();
    type Estimate<'a> = Box<dyn Fn(&[&Block]) -> f64 + 'a>;
    let mut estimators: Vec<(String, Estimate<'_>)> = Vec::new();
    for (place, vocabulary) in VOCABULARIES.iter().enumerate() {
        let counted = move |blocks: &[&Block]| blocks.iter().map(|block| f64::from(block.tokens[place])).sum();
        estimators.push((vocabulary.into_str().to_owned(), Box::new(counted)));
    }
    estimators.push(("chars/3.5".to_owned(), Box::new(move |blocks| chars(blocks) / 3.5)));
    estimators.push(("chars/4".to_owned(), Box::new(move |blocks| chars(blocks) / 4.0)));
    let fitted =
        |blocks: &[&Block]| blocks.iter().map(|block| rules.estimate(block)).sum::<f64>() + rules.framing.increment;
    estimators.push(("fitted".to_owned(), Box::new(fitted)));
    estimators.iter().map(|(name, estimate)| drift_of(name, increments, estimate)).collect()
}

fn drift_of(name: &str, increments: &[Increment<'_>], estimate: &dyn Fn(&[&Block]) -> f64) -> Drift {
    let mut percents = Vec::with_capacity(increments.len());
    let mut histogram = [0; DRIFT_LIMITS.len() + 1];
    let (mut estimated, mut actual) = (0, 0);
    for increment in increments {
        let tokens = estimate(&increment.blocks).round() as u64;
        (estimated, actual) = (estimated + tokens, actual + increment.tokens);
        let percent = percent(tokens, increment.tokens);
        histogram[DRIFT_LIMITS.partition_point(|&limit| limit < percent)] += 1;
        percents.push(percent);
    }
    percents.sort_unstable();
    let quantile = |share: usize| percents.get((percents.len() * share / 100).min(percents.len().max(1) - 1)).copied();
    Drift {
        estimator: name.to_owned(),
        increments: increments.len() as u64,
        estimated,
        actual,
        percent_p50: quantile(50).unwrap_or(0),
        percent_p90: quantile(90).unwrap_or(0),
        histogram,
    }
}

/// How far an estimate is from the truth in whole percent of the truth, rounded half up.
pub fn percent(estimate: u64, actual: u64) -> u64 {
    let off = 100 * estimate.abs_diff(actual);
    (off + actual / 2).checked_div(actual).unwrap_or(if off == 0 { 0 } else { u64::MAX })
}

/// A ratio with its 95 % interval over sessions.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Ratio {
    pub value: f64,
    /// Lower end of its interval; none with fewer than two sessions.
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

/// Characters per token of one model family.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FamilyRatio {
    /// Model, in the one spelling.
    pub family: String,
    pub increments: u64,
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
}

/// Limits of the drift histogram in percent; one more class is beyond the last.
pub const DRIFT_LIMITS: [u64; 9] = [1, 2, 5, 10, 15, 20, 30, 50, 100];

/// How far an estimator is from measured growth.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Drift {
    pub estimator: String,
    pub increments: u64,
    /// Its tokens.
    pub estimated: u64,
    /// Measured tokens.
    pub actual: u64,
    /// Median drift of one increment in percent.
    pub percent_p50: u64,
    pub percent_p90: u64,
    /// Increments by drift: up to each of [`DRIFT_LIMITS`], then beyond.
    pub histogram: [u64; DRIFT_LIMITS.len() + 1],
}

/// Both.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Calibration {
    pub families: Vec<FamilyRatio>,
    /// By estimator.
    pub drift: Vec<Drift>,
}

/// Characters and bytes per token of each model family.
pub fn families(rows: &[FamilyRatio]) -> Table {
    TableBuilder::of(rows)
        .text("model", |row| row.family.clone())
        .count("increments", |row| row.increments)
        .count("sessions", |row| row.sessions)
        .number("bytes/token", |row| measured(row.bytes_per_token))
        .number("95 %", |row| interval(row.bytes_per_token))
        .number("chars/token", |row| measured(row.chars_per_token))
        .table()
}

/// A ratio; a dash where there were no tokens.
fn measured(ratio: Ratio) -> String {
    numbers::known((ratio.value > 0.0).then_some(ratio.value), |value| format!("{value:.3}"))
}

fn interval(ratio: Ratio) -> String {
    numbers::known(ratio.lower.zip(ratio.upper), |(lower, upper)| format!("{lower:.3}–{upper:.3}"))
}

/// How far each estimator is from measured growth.
pub fn drift(rows: &[Drift]) -> Table {
    TableBuilder::of(rows)
        .text("estimator", |row| row.estimator.clone())
        .count("increments", |row| row.increments)
        .count("estimated", |row| row.estimated)
        .count("billed", |row| row.actual)
        .number("of the bill", |row| numbers::known(of_the_bill(row), numbers::percent))
        .number("drift p50", |row| format!("{} %", row.percent_p50))
        .number("drift p90", |row| format!("{} %", row.percent_p90))
        .table()
}

fn of_the_bill(row: &Drift) -> Option<f64> {
    (row.actual > 0).then(|| row.estimated as f64 / row.actual as f64)
}

/// Both as data.
pub fn json(found: &Calibration) -> Value {
    let mut fields = json!(found);
    fields["drift_limits_percent"] = json!(DRIFT_LIMITS);
    for (place, row) in found.families.iter().enumerate() {
        let counted =
            VOCABULARIES.iter().zip(row.counted).map(|(table, tokens)| (table.into_str().to_owned(), tokens.into()));
        fields["families"][place]["counted"] = Value::Object(counted.collect());
    }
    for (place, row) in found.drift.iter().enumerate() {
        fields["drift"][place]["share_of_actual"] = json!(of_the_bill(row));
    }
    fields
}
