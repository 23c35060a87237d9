//! What changes of the configuration would have done: each is replayed over the sessions in which it can make a
//! difference, and compared with what holds now. And what a configuration saves session by session, which every interval
//! over sessions is made of.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rayon::prelude::*;

use crate::replay::dedup_only::{Changes, DedupOnlyReplay};
use crate::replay::reach::WithinReach;
use crate::replay::savings::SavedBySession;
use crate::replay::scenario::Scenario;
use crate::replay::stack::replay_sessions;
use crate::replay::tape::{Response, Tape};

/// A segment of the history, whole sessions.
pub struct HistoryPiece {
    pub tape: Tape,
    /// Responses that each one stands for, by index; empty if each stands for itself.
    pub weights: Vec<f64>,
}

/// What all tokens are, and what is saved of them now.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Present {
    /// Tokens as they are.
    pub baseline: f64,
    /// Tokens saved.
    pub saved: f64,
}

/// A history under one configuration, against which any number of changes are held. What it saves is worked out once; changes
/// are replayed beside it, only where one can make a difference. Pieces are replayed on all threads; sums are added up in their
/// order, so that they are the same for any number of threads.
pub struct EffectsBaseline<'p> {
    now: Scenario,
    pieces: Vec<PieceBaseline<'p>>,
    /// What is saved now, once somebody asks for it.
    present: OnceLock<Present>,
    /// How much more the changes save that were asked about: different rules may come to the same, and some are asked about again.
    known: Mutex<Vec<(Scenario, SavedBySession)>>,
}

impl<'p> EffectsBaseline<'p> {
    /// Pieces under the configuration that holds now.
    pub fn new(pieces: &'p [HistoryPiece], now: Scenario) -> Self {
        let pieces = pieces.par_iter().map(|piece| PieceBaseline::new(piece, &now)).collect();
        Self::of(now, pieces)
    }

    fn of(now: Scenario, pieces: Vec<PieceBaseline<'p>>) -> Self {
        Self { now, pieces, present: OnceLock::new(), known: Mutex::default() }
    }

    /// The same pieces under another configuration.
    #[must_use]
    pub fn under(&self, change: Scenario) -> Self {
        let pieces = self.pieces.par_iter().map(|piece| piece.under(&self.now, &change)).collect();
        Self::of(change, pieces)
    }

    /// What is saved now.
    pub fn present(&self) -> Present {
        *self.present.get_or_init(|| {
            let parts: Vec<Present> = self.pieces.par_iter().map(|piece| piece.present(&self.now)).collect();
            let sum = |of: fn(&Present) -> f64| parts.iter().map(of).sum();
            Present { baseline: sum(|part| part.baseline), saved: sum(|part| part.saved) }
        })
    }

    /// How much more each change would save, by session; none where a change does not concern a replay.
    /// Changes are of the configuration: what is varied beside it ([`Scenario`]) is the same in all.
    pub fn effects(&self, changes: &[Scenario]) -> Vec<Option<SavedBySession>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<&Scenario> = Vec::new();
        for change in changes.iter().filter(|change| !self.now.is_same(change)) {
            if !known().iter().map(|(known, _)| known).chain(new.iter().copied()).any(|known| known.is_same(change)) {
                new.push(change);
            }
        }
        let found = self.replayed(&new);
        let mut known = known();
        known.extend(new.into_iter().cloned().zip(found));
        let effect = |change: &Scenario| known.iter().find(|(known, _)| known.is_same(change));
        changes.iter().map(|change| effect(change).map(|(_, effect)| effect.clone())).collect()
    }

    /// How much more some changes would save, by session.
    fn replayed(&self, changes: &[&Scenario]) -> Vec<SavedBySession> {
        let mut effects = vec![SavedBySession::new(); changes.len()];
        if changes.is_empty() {
            return effects;
        }
        let held = Changes::new(&self.now, changes);
        let changed: Vec<_> = self.pieces.par_iter().map(|piece| held.changed(&piece.replay)).collect();
        let concerned =
            self.pieces.iter().zip(&changed).flat_map(|(piece, changed)| {
                piece.concerned(&held).map(move |context| (&piece.replay, changed, context))
            });
        let concerned: Vec<_> = concerned.collect();
        let more = longest_first(
            &concerned,
            |(.., context)| context.responses.len(),
            |(replay, changed, context)| replay.more(&held, changed, context.responses.clone()),
        );
        for ((.., context), more) in concerned.iter().zip(more) {
            for (effect, more) in effects.iter_mut().zip(more).filter(|(_, more)| *more != 0.0) {
                *effect.entry(context.session).or_default() += more;
            }
        }
        effects
    }
}

/// Something about each item, in their order, on all threads. The longest come first: one that came last would keep one thread
/// while the others wait.
fn longest_first<T: Sync, R: Send>(items: &[T], length: impl Fn(&T) -> usize, of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&at| Reverse(length(&items[at])));
    let mut found: Vec<(usize, R)> = order.into_par_iter().with_max_len(1).map(|at| (at, of(&items[at]))).collect();
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// A piece under the configuration that holds now.
struct PieceBaseline<'p> {
    replay: DedupOnlyReplay<'p>,
    /// References do not reach beyond a context.
    contexts: Arc<[TapeSegment]>,
}

impl<'p> PieceBaseline<'p> {
    fn new(piece: &'p HistoryPiece, now: &Scenario) -> Self {
        let replay = DedupOnlyReplay::new(&piece.tape, now, &piece.weights);
        Self { replay, contexts: segments(&piece.tape, Response::context).into() }
    }

    fn under(&self, now: &Scenario, change: &Scenario) -> Self {
        Self { replay: self.replay.under(now, change), contexts: Arc::clone(&self.contexts) }
    }

    fn present(&self, now: &Scenario) -> Present {
        let (unchanged, mut present) = (Changes::new(now, &[]), Present::default());
        for context in &*self.contexts {
            let Present { baseline, saved } = self.replay.present(&unchanged, context.responses.clone());
            present.baseline += baseline;
            present.saved += saved;
        }
        present
    }

    /// The contexts in which a change may make a difference.
    fn concerned(&self, changes: &Changes<'_>) -> impl Iterator<Item = &TapeSegment> {
        self.contexts.iter().filter(|segment| segment.is_reached(changes.now) && changes.concern(&segment.endpoints))
    }
}

/// A segment of a tape: a session, or a context of one.
struct TapeSegment {
    session: u32,
    responses: Range<usize>,
    endpoints: Vec<u32>,
}

impl TapeSegment {
    /// Whether anything in it can be changed by whoever runs the pipeline.
    fn is_reached(&self, now: &Scenario) -> bool {
        self.endpoints.iter().any(|&endpoint| now.endpoints[endpoint as usize].reached == WithinReach::Changes)
    }
}

/// The segments of a tape in which `key` stays the same.
fn segments(tape: &Tape, key: impl Fn(&Response) -> (u32, u32, u32)) -> Vec<TapeSegment> {
    let mut start = 0;
    let groups = tape.responses.chunk_by(|a, b| key(a) == key(b));
    groups
        .map(|group| {
            let responses = start..start + group.len();
            start = responses.end;
            let mut endpoints: Vec<u32> = group.iter().map(|response| response.endpoint).collect();
            endpoints.sort_unstable();
            endpoints.dedup();
            TapeSegment { session: group[0].session, responses, endpoints }
        })
        .collect()
}

/// Where a change can make a difference.
enum ChangeScope {
    Everywhere,
    /// In sessions with one of these endpoints, and in these sessions.
    Some {
        endpoints: Vec<u32>,
        sessions: Vec<u32>,
    },
}

impl ChangeScope {
    /// Where two configurations differ.
    fn of(now: &Scenario, change: &Scenario) -> Self {
        if !now.is_alike_for_all(change) {
            return Self::Everywhere;
        }
        let endpoints = (0..).zip(now.endpoints.iter().zip(&change.endpoints));
        let endpoints = endpoints.filter(|(_, (now, change))| now != change).map(|(endpoint, _)| endpoint).collect();
        Self::Some { endpoints, sessions: now.sessions_unlike(change) }
    }

    /// Whether that is in this segment.
    fn concerns(&self, segment: &TapeSegment) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Some { endpoints, sessions } => {
                endpoints.iter().any(|endpoint| segment.endpoints.binary_search(endpoint).is_ok())
                    || sessions.binary_search(&segment.session).is_ok()
            }
        }
    }
}

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
    pub saved: i64,
}

impl<'t> SessionTape<'t> {
    /// Cuts a tape into its sessions.
    pub fn new(tape: &'t Tape) -> Self {
        Self { tape, sessions: segments(tape, |response| (response.session, 0, 0)) }
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
