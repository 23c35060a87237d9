//! The thresholds and carries that are tried beside each other.

use std::sync::Arc;

use crate::whatif::compaction::figures::compactions;
use crate::whatif::compaction::outcome::{AttemptEnd, CompactionSweepRow};
use crate::whatif::compaction::params::Params;
use crate::whatif::compaction::{Compaction, CompactionThresholds, CompactionTrigger, SUMMARY_CALL};
use crate::whatif::sim::breakage;
use crate::whatif::sim::breakage::rows::BreakClass;
use crate::whatif::sim::breakage::tally::tally;
use crate::whatif::sim::breakage::{BreakWatch, Detectors};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::simulator::{Extra, Simulator};
use crate::whatif::sim::view::StageJournal;

/// One setting of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct SweepPoint {
    /// When to compact.
    pub trigger: CompactionTrigger,
    /// Tokens that a compaction leaves besides the static prefix (where the tail ends exactly where it may).
    pub carry_tokens: u64,
    /// The parameters with that carry.
    pub params: Params,
}

impl SweepPoint {
    /// The threshold in tokens; none: never.
    pub fn trigger_tokens(&self) -> Option<u64> {
        if let CompactionTrigger::Tokens(tokens) = self.trigger { Some(tokens) } else { None }
    }
}

/// All settings: every carry with every threshold, and once without any compaction.
pub fn points(params: &Params, sheet: &CompactionThresholds) -> Vec<SweepPoint> {
    let mut points: Vec<SweepPoint> = Vec::new();
    for &carry in &sheet.sweep.carries {
        let params = with_carry(params, sheet, carry);
        let point = |&tokens| SweepPoint {
            trigger: CompactionTrigger::Tokens(tokens),
            carry_tokens: carry.into(),
            params: params.clone(),
        };
        points.extend(sheet.sweep.triggers.iter().map(point));
    }
    points.push(SweepPoint { trigger: CompactionTrigger::Never, carry_tokens: 0, params: params.clone() });
    points
}

/// The summary keeps its size; tail and reattached files share the rest as they do in the parameters.
fn with_carry(params: &Params, sheet: &CompactionThresholds, carry: u32) -> Params {
    let fixed = params.summary_tokens.saturating_add(sheet.client.acknowledgement_tokens);
    let free = u64::from(carry.saturating_sub(fixed));
    let (tail, reattach) = (u128::from(params.tail_keep_tokens), u128::from(params.reattach_tokens));
    let tail = (u128::from(free) * tail).checked_div(tail + reattach).map_or(free, |tail| tail as u64);
    let reattach = u32::try_from(free - tail).expect("a part of a carry, which is a u32");
    Params { tail_keep_tokens: tail, reattach_tokens: reattach, ..params.clone() }
}

/// Replays one setting on the requests under the cache that prices them.
pub fn row(
    requests: &Simulator<'_>,
    detectors: &Detectors<'_>,
    breakage: &breakage::BreakageThresholds,
    point: &SweepPoint,
    sheet: &CompactionThresholds,
) -> CompactionSweepRow {
    let timeline = requests.timeline;
    let journal = StageJournal::default();
    let tokens: Arc<[u32]> = requests.sizes.tokens.as_slice().into();
    let stage = Compaction::new(point.params.clone(), sheet.clone(), tokens, journal.clone()).at(point.trigger);
    let (run, breaks) = BreakWatch::new(detectors).over(requests, vec![Box::new(stage)]);
    let done = compactions(timeline, &journal.take(), &run, None, sheet);
    let broken = tally(detectors, timeline, &breaks, run.requests.len() as u64, breakage);
    let is_summary = |extra: &&Extra| extra.call.cause == SUMMARY_CALL;
    CompactionSweepRow {
        trigger_tokens: point.trigger_tokens(),
        carry_tokens: point.carry_tokens,
        firings: done.outcomes.get(&AttemptEnd::Ok).copied().unwrap_or_default(),
        is_thrashing: done.is_thrashing,
        cost: run.cost(),
        summariser: run.extra.iter().filter(is_summary).map(|extra| extra.cost).sum::<Cost>(),
        reread_tokens: broken.reread_tokens,
        edit_source_lost: broken.events(BreakClass::EditSourceLost),
        ref_lost: broken.events(BreakClass::RefLost),
    }
}
