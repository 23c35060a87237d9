//! Whether light rows can be what devboy writes: every value within its bounds, and all of them together the counts that lie
//! beside them.

use std::collections::BTreeSet;

use crate::base::body_shape::BodyShape;
use crate::fleet::check::{BinCounts, checked};
use crate::fleet::counting::counts;
use crate::fleet::light::{IN_ENDPOINT, IN_TOOL};
use crate::fleet::limits::FleetLimits;
use crate::fleet::measure::{FORMATS, WHAT_IF};
use crate::fleet::naming::{FleetNaming, is_mark};
use crate::frames::contribution::{Contribution, ContributionResult};
use crate::frames::light::{AFTER, LightCall, NONE, Number};

/// The counts of rows that keep within their bounds, and that give the counts of the same person and week.
///
/// # Errors
/// What is wrong with them.
pub fn counted(
    of: &Contribution,
    calls: &[LightCall],
    beside: &BinCounts,
    naming: &FleetNaming,
    limits: &FleetLimits,
) -> ContributionResult<BinCounts> {
    let mut places = BTreeSet::new();
    for (row, call) in (1..).zip(calls) {
        plausible(call, naming, limits).map_err(|why| format!("row {row}: {why}"))?;
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
fn plausible(call: &LightCall, naming: &FleetNaming, limits: &FleetLimits) -> ContributionResult<()> {
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
