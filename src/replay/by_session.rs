//! What a configuration saves, session by session: what every interval over sessions is made of.

use rayon::prelude::*;

use crate::replay::effects::{ChangeScope, TapeSegment, stretches};
use crate::replay::scenario::Scenario;
use crate::replay::stack::replay_sessions;
use crate::replay::tape::Tape;

/// The sessions of a tape that have any response, in the order of the tape.
pub struct SessionTape<'t> {
    tape: &'t Tape,
    sessions: Vec<TapeSegment>,
}

/// Tokens of one session.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SessionTokens {
    /// As they are.
    pub baseline: i64,
    /// Saved of them.
    pub saved: i64,
}

impl<'t> SessionTape<'t> {
    /// Cuts a tape into its sessions.
    pub fn new(tape: &'t Tape) -> Self {
        Self { tape, sessions: stretches(tape, |response| (response.session, 0, 0)) }
    }

    /// Index into [`Tape::sessions`] of each, with the number of its responses.
    pub fn sizes(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.sessions.iter().map(|segment| (segment.session, segment.responses.len()))
    }

    /// What a configuration saves in each session.
    pub fn tokens(&self, scenario: &Scenario) -> Vec<SessionTokens> {
        self.sessions.par_iter().map(|segment| self.of(segment, scenario)).collect()
    }

    /// How much more a change saves than what holds now (`present`), in the sessions at these places.
    pub fn more(&self, places: &[usize], now: &Scenario, present: &[SessionTokens], change: &Scenario) -> Vec<i64> {
        let scope = ChangeScope::of(now, change);
        let more = |&place: &usize| {
            let segment = &self.sessions[place];
            if scope.concerns(segment) { self.of(segment, change).saved - present[place].saved } else { 0 }
        };
        places.par_iter().map(more).collect()
    }

    fn of(&self, segment: &TapeSegment, scenario: &Scenario) -> SessionTokens {
        let mut tokens = SessionTokens::default();
        replay_sessions(self.tape, scenario, segment.responses.clone(), &mut |_, baseline, decision| {
            tokens.baseline += baseline as i64;
            tokens.saved += baseline as i64 - decision.tokens as i64;
        });
        tokens
    }
}
