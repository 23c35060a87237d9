//! Whether a contribution can be what devboy writes: everything else is refused by name, and the pool is as if it were not
//! there. The same of light rows: every value within its bounds, and all of them together the counts that lie beside them.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::body_shape::BodyShape;
use crate::fleet::contribute::counts;
use crate::fleet::light::{IN_ENDPOINT, IN_TOOL};
use crate::fleet::limits::FleetLimits;
use crate::fleet::measure::{
    BASELINE, BIN_MAX, BYTES, BinForm, CALLS, DISTANCE, EDGE, ENDPOINT, FORMATS, INNER_FORMAT, LATENCY, LOG_TOKENS,
    POLICY_TOKENS, REPEATS, SENT, SESSIONS, SHAPE, STEPS, SUPPORT, TOOL, WHAT_IF, form,
};
use crate::fleet::naming::{FleetNaming, is_mark};
use crate::frames::contribution::{Contribution, ContributionResult, Count, CountSubject};
use crate::frames::light::{AFTER, LightCall, NONE, Number};

/// Counts by subject, measure and bin.
pub type BinCounts = BTreeMap<CountSubject, BTreeMap<(String, u32), i64>>;

/// The counts of a contribution that keeps within its bounds.
pub fn checked(
    contribution: &Contribution,
    naming: &FleetNaming,
    limits: &FleetLimits,
) -> ContributionResult<BinCounts> {
    if contribution.secret != naming.secret() {
        return Err("it was made with another team secret".to_owned());
    }
    let mut counts = BinCounts::new();
    for row in &contribution.counts {
        plausible(row, naming, limits).map_err(|why| format!("{} of {}: {why}", row.measure, place(&row.subject)))?;
        let key = (row.measure.clone(), row.bin);
        if counts.entry(row.subject.clone()).or_default().insert(key, row.count).is_some() {
            return Err(format!("{} of {} stands there twice", row.measure, place(&row.subject)));
        }
    }
    counts.iter().try_for_each(|(subject, cells)| consistent(subject, cells, &counts))?;
    Ok(counts)
}

fn place(subject: &CountSubject) -> String {
    let CountSubject { kind, name, other, lag } = subject;
    if kind == EDGE { format!("{kind} {name} → {other} at lag {lag}") } else { format!("{kind} {name}") }
}

/// A row by itself.
fn plausible(row: &Count, naming: &FleetNaming, limits: &FleetLimits) -> ContributionResult<()> {
    let Count { subject, measure, bin, count } = row;
    let Some(form) = form(&subject.kind, measure) else { return Err("there is no such measure".to_owned()) };
    let has_other = [ENDPOINT, EDGE].contains(&subject.kind.as_str());
    let is_known = match subject.kind.as_str() {
        WHAT_IF => limits.what_if.iter().any(|asked| asked.name == subject.name),
        _ => naming.is_possible(&subject.name),
    };
    let is_other = if has_other { naming.is_possible(&subject.other) } else { subject.other.is_empty() };
    if !is_known || !is_other {
        return Err("its name is none that leaves a machine".to_owned());
    }
    let is_lag = if subject.kind == EDGE { limits.lags.contains(&subject.lag) } else { subject.lag == 0 };
    if !is_lag {
        return Err(format!("there is no lag {}", subject.lag));
    }
    let bins = match form {
        BinForm::Number => 0,
        BinForm::Histogram => BIN_MAX,
        BinForm::Category(kinds) => kinds - 1,
    };
    if *bin > bins {
        return Err(format!("there is no bin {bin}"));
    }
    let most = match measure.as_str() {
        SESSIONS => limits.sessions_max,
        BASELINE | SENT => limits.events_max * limits.tokens_max,
        LOG_TOKENS => limits.sessions_max * limits.session_tokens_max,
        POLICY_TOKENS => limits.sessions_max * limits.session_tokens_max * limits.policy_factor_max,
        _ => limits.events_max,
    };
    if *count < 1 || *count > most as i64 {
        return Err(format!("{count} is not between 1 and {most}"));
    }
    Ok(())
}

/// The rows of a subject together.
fn consistent(subject: &CountSubject, cells: &BTreeMap<(String, u32), i64>, all: &BinCounts) -> ContributionResult<()> {
    let sum = |measure: &str| cells.iter().filter(|((of, _), _)| of == measure).map(|(_, count)| count).sum::<i64>();
    let largest = |measure: &str| {
        cells.iter().filter(|((of, _), _)| of == measure).map(|(_, count)| *count).max().unwrap_or_default()
    };
    let odd = |what: &str| Err(format!("{what} of {} do not add up", place(subject)));
    let events = match subject.kind.as_str() {
        ENDPOINT => {
            let calls = sum(CALLS);
            if sum(BYTES) != calls || sum(SHAPE) != calls {
                return odd("sizes and shapes");
            }
            if sum(REPEATS) != sum(DISTANCE)
                || sum(REPEATS) > calls
                || largest(INNER_FORMAT) > calls
                || sum(LATENCY) > calls
            {
                return odd("repeats, formats and times");
            }
            calls
        }
        EDGE => {
            let tool = CountSubject { kind: TOOL.to_owned(), name: subject.name.clone(), ..CountSubject::default() };
            let steps = all.get(&tool).and_then(|cells| cells.get(&(STEPS.to_owned(), 0))).copied().unwrap_or_default();
            if sum(SUPPORT) > steps {
                return odd("steps");
            }
            sum(SUPPORT)
        }
        WHAT_IF => sum(LOG_TOKENS),
        _ => sum(STEPS),
    };
    if events < 1 || sum(SESSIONS) < 1 || sum(SESSIONS) > events {
        return odd("sessions");
    }
    Ok(())
}

/// The counts of rows that keep within their bounds, and that give the counts of the same person and week.
pub fn counted(
    of: &Contribution,
    calls: &[LightCall],
    beside: &BinCounts,
    naming: &FleetNaming,
    limits: &FleetLimits,
) -> ContributionResult<BinCounts> {
    let mut places = BTreeSet::new();
    for (row, call) in (1..).zip(calls) {
        plausible_call(call, naming, limits).map_err(|why| format!("row {row}: {why}"))?;
        if !places.insert((&call.chain, call.number(Number::Position))) {
            return Err(format!("row {row}: its place in its chain is taken"));
        }
    }
    let counts = checked(&Contribution { counts: counts(calls, limits), ..of.clone() }, naming, limits)?;
    if !counts.iter().eq(beside.iter().filter(|(subject, _)| subject.kind != WHAT_IF)) {
        return Err("its rows do not give the counts that lie beside them".to_owned());
    }
    Ok(counts)
}

/// A row by itself.
fn plausible_call(call: &LightCall, naming: &FleetNaming, limits: &FleetLimits) -> ContributionResult<()> {
    for (number, name) in Number::ALL {
        let (least, most) = bounds(number, limits);
        let value = call.number(number);
        if value < least || value > most {
            return Err(format!("{name} {value} is not between {least} and {most}"));
        }
    }
    let LightCall { session, chain, tool, endpoint, after, .. } = call;
    if !is_mark(session) || !is_mark(chain) {
        return Err("its session or chain is no mark".to_owned());
    }
    let counts_in = call.number(Number::CountsIn);
    let is_name = |name: &str| naming.is_possible(name);
    let has_endpoint = counts_in & IN_ENDPOINT != 0;
    if !is_name(tool) || has_endpoint && !is_name(endpoint) || !has_endpoint && !endpoint.is_empty() {
        return Err("its tool or endpoint is none that leaves a machine".to_owned());
    }
    for (later, name) in after.iter().zip(AFTER) {
        let names: Vec<&str> = later.split(' ').filter(|_| !later.is_empty()).collect();
        let is_told = names.is_empty() || counts_in & IN_TOOL != 0;
        if !is_told || !names.iter().all(|name| is_name(name)) || !names.is_sorted_by(|a, b| a < b) {
            return Err(format!("{name} holds what no tool is called"));
        }
    }
    if call.number(Number::Saved) > call.number(Number::Baseline) {
        return Err("it saves more than there is".to_owned());
    }
    Ok(())
}

/// The least and the most that a number can be.
fn bounds(number: Number, limits: &FleetLimits) -> (i64, i64) {
    match number {
        Number::Position | Number::Columns | Number::Bytes => (0, u32::MAX.into()),
        Number::CountsIn => (IN_ENDPOINT, IN_ENDPOINT | IN_TOOL),
        Number::Shape => (0, BodyShape::COUNT as i64 - 1),
        Number::InnerFormats => (0, (1 << FORMATS) - 1),
        Number::Baseline | Number::Saved => (0, limits.tokens_max as i64),
        Number::Distance | Number::Latency => (NONE, u32::MAX.into()),
        Number::Gap => (NONE, limits.gap_seconds.len() as i64),
    }
}
