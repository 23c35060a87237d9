//! The thresholds and carries that are tried beside each other.

use super::knobs::Knobs;
use super::sheet::Sheet;
use super::stage::Trigger;

/// One setting of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// When to compact.
    pub trigger: Trigger,
    /// Tokens that a compaction leaves besides the static prefix (where the tail ends exactly where it may).
    pub carry_tokens: u64,
    /// The knobs with that carry.
    pub knobs: Knobs,
}

impl Point {
    /// The threshold in tokens; none: never.
    pub fn trigger_tokens(&self) -> Option<u64> {
        if let Trigger::Tokens(tokens) = self.trigger { Some(tokens) } else { None }
    }
}

/// All settings: every carry with every threshold, and once without any compaction.
pub fn points(knobs: &Knobs, sheet: &Sheet) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for &carry in &sheet.sweep.carries {
        let knobs = with_carry(knobs, sheet, carry);
        let point = |&tokens| Point { trigger: Trigger::Tokens(tokens), carry_tokens: carry.into(), knobs: knobs.clone() };
        points.extend(sheet.sweep.triggers.iter().map(point));
    }
    points.push(Point { trigger: Trigger::Never, carry_tokens: 0, knobs: knobs.clone() });
    points
}

/// The summary keeps its size; tail and reattached files share the rest as they do in the knobs.
fn with_carry(knobs: &Knobs, sheet: &Sheet, carry: u32) -> Knobs {
    let fixed = knobs.summary_tokens + sheet.client.acknowledgement_tokens;
    let free = u64::from(carry.saturating_sub(fixed));
    let both = knobs.tail_keep_tokens + u64::from(knobs.reattach_tokens);
    let tail = (free * knobs.tail_keep_tokens).checked_div(both).unwrap_or(free);
    let reattach = u32::try_from(free - tail).expect("a part of a carry, which is a u32");
    Knobs { tail_keep_tokens: tail, reattach_tokens: reattach, ..knobs.clone() }
}
