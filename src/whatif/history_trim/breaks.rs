//! Which changes of mind break a prefix: what was sent before is now sent in another way.

use crate::whatif::history_trim::outcome::BreakCause;
use crate::whatif::history_trim::plan::Plan;
use crate::whatif::sim::view::Item;

/// How the request before was sent.
pub(crate) struct Before {
    /// What was decided.
    pub plan: Plan,
    /// What was sent.
    pub items: Vec<Item>,
}

impl Before {
    /// The break between the request before and this one: its cause, and the tokens that were sent before and stood there
    /// or behind. None if all of them are sent again. `as_before` is what the plan would have been if this request had
    /// continued a chain of tool calls like the one before, or not.
    pub fn break_to(&self, plan: &Plan, items: &[Item], as_before: impl Fn() -> Plan) -> Option<(BreakCause, u64)> {
        if items.starts_with(&self.items) {
            return None;
        }
        let same = self.items.iter().zip(items).take_while(|(before, now)| before == now).count();
        let tokens = self.items[same..].iter().map(|item| u64::from(item.tokens)).sum();
        Some((self.cause(plan, as_before)?, tokens))
    }

    /// Why the first message whose fate changed has another one.
    fn cause(&self, plan: &Plan, as_before: impl Fn() -> Plan) -> Option<BreakCause> {
        let mut both = self.plan.fates.iter().zip(&plan.fates);
        let place = both.position(|(before, now)| before != now)?;
        let (before, now) = (self.plan.fates[place], plan.fates[place]);
        let switched = self.plan.is_continuation != plan.is_continuation;
        Some(if switched && as_before().fates[place] != now {
            BreakCause::FirstVsContinuation
        } else if before.is_dropped != now.is_dropped {
            BreakCause::Dropped
        } else if (place < self.plan.boundary) != (place < plan.boundary) {
            BreakCause::BoundaryMoved
        } else {
            BreakCause::CapsChanged
        })
    }
}
