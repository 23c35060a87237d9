//! Whether an attempt to compact is allowed: the distance to the last one, and the breaker.

use crate::whatif::compaction::params::Params;

/// What is remembered of earlier attempts in a chain.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Gate {
    turn: Option<u32>,
    failures: u32,
    calls: u32,
}

/// What the gate says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Go on.
    Granted,
    /// Too few human turns since the last compaction.
    Held,
    /// Too many failures in a row.
    BreakerOpen,
}

impl Gate {
    /// Whether a compaction may be tried in this human turn.
    pub fn ask(&self, params: &Params, turn: u32) -> Permission {
        if self.failures >= params.max_consecutive_failures {
            return Permission::BreakerOpen;
        }
        match self.turn {
            Some(last) if turn.saturating_sub(last) < params.min_turns_between => Permission::Held,
            _ => Permission::Granted,
        }
    }

    /// Calls the summariser in this human turn; says whether it succeeded.
    pub fn call(&mut self, params: &Params, turn: u32) -> bool {
        self.calls += 1;
        let is_failure = params.fail_every > 0 && self.calls.is_multiple_of(params.fail_every);
        if is_failure {
            self.failures += 1;
        } else {
            self.failures = 0;
            self.turn = Some(turn);
        }
        !is_failure
    }
}
