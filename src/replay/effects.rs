//! What changes of the configuration would have done: each is replayed over the sessions in which it can make a
//! difference, and compared with what holds now.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::replay::dedup_only::DedupOnlyReplay;
use crate::replay::reach::Reached;
use crate::replay::savings::BySession;
use crate::replay::scenario::Scenario;
use crate::replay::stack::replay_sessions;
use crate::replay::tape::{Response, Tape};

/// A stretch of the history, whole sessions.
pub struct Piece<'t> {
    /// What is replayed.
    pub tape: Cow<'t, Tape>,
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

/// What is saved now, and how much more each change would save, by session; none where a change does not concern a replay. The pieces are made, replayed and dropped one by one, on
/// all threads; sums are added up in their order, so that they are the same for any number of threads.
pub fn effects<'t>(
    pieces: usize,
    piece: &(dyn Fn(usize) -> Piece<'t> + Sync),
    now: &Scenario,
    changes: &[Scenario],
) -> (Present, Vec<Option<BySession>>) {
    // Different rules may come to the same: it is replayed once.
    let mut distinct: Vec<&Scenario> = Vec::new();
    let mut place = Vec::with_capacity(changes.len());
    for change in changes {
        let known = distinct.iter().position(|known| known.is_same(change));
        place.push(known.unwrap_or(distinct.len()));
        if known.is_none() {
            distinct.push(change);
        }
    }
    let scopes: Vec<Scope> = distinct.iter().map(|change| Scope::of(now, change)).collect();
    let parts: Vec<(Present, Vec<BySession>)> =
        (0..pieces).into_par_iter().map(|index| of_piece(&piece(index), now, &distinct, &scopes)).collect();
    let mut present = Present::default();
    let mut more = vec![BySession::new(); distinct.len()];
    for (part, effects) in parts {
        present.baseline += part.baseline;
        present.saved += part.saved;
        for (sum, effect) in more.iter_mut().zip(effects) {
            effect.into_iter().for_each(|(session, tokens)| *sum.entry(session).or_default() += tokens);
        }
    }
    let effect = |(change, place): (&Scenario, usize)| (!now.is_same(change)).then(|| more[place].clone());
    (present, changes.iter().zip(place).map(effect).collect())
}

fn of_piece(piece: &Piece<'_>, now: &Scenario, changes: &[&Scenario], scopes: &[Scope]) -> (Present, Vec<BySession>) {
    let tape: &Tape = &piece.tape;
    let lane = DedupOnlyReplay::suits(tape, now).then(|| DedupOnlyReplay::new(tape, now, &piece.weights));
    let run = |scenario: &Scenario, lane: Option<&DedupOnlyReplay<'_>>, stretch: &TokenSegment| match lane {
        Some(lane) => lane.replay(scenario, stretch.responses.clone()),
        None => replayed(piece, scenario, stretch),
    };
    let ground = |stretches: Vec<TokenSegment>| -> Vec<(TokenSegment, Present)> {
        let with_present = |stretch: TokenSegment| {
            let present = run(now, lane.as_ref(), &stretch);
            (stretch, present)
        };
        stretches.into_iter().map(with_present).collect()
    };
    let lane_for = |change: &Scenario| lane.as_ref().filter(|_| DedupOnlyReplay::serves(now, change));
    // References do not reach beyond a context, so that L0 alone can be looked at context by context.
    let by_context = |response: &Response| (response.session, response.chain, response.partition);
    let contexts = ground(if lane.is_some() { stretches(tape, by_context) } else { Vec::new() });
    let needed = lane.is_none() || changes.iter().any(|change| lane_for(change).is_none());
    let sessions = ground(if needed { stretches(tape, |response| (response.session, 0, 0)) } else { Vec::new() });
    let more = changes.par_iter().zip(scopes).map(|(change, scope)| {
        let lane = lane_for(change);
        let ground = if lane.is_some() { &contexts } else { &sessions };
        let concerned = ground.iter().filter(|(stretch, _)| scope.concerns(stretch) && stretch.is_reached(now));
        let mut effect = BySession::new();
        for (stretch, present) in concerned {
            let more = run(change, lane, stretch).saved - present.saved;
            if more != 0.0 {
                *effect.entry(stretch.session).or_default() += more;
            }
        }
        effect
    });
    let whole = if lane.is_some() { &contexts } else { &sessions };
    let sum = |of: fn(&Present) -> f64| whole.iter().map(|(_, present)| of(present)).sum();
    (Present { baseline: sum(|p| p.baseline), saved: sum(|p| p.saved) }, more.collect())
}

fn replayed(piece: &Piece<'_>, scenario: &Scenario, stretch: &TokenSegment) -> Present {
    let mut present = Present::default();
    replay_sessions(&piece.tape, scenario, stretch.responses.clone(), &mut |index, baseline, decision| {
        let weight = piece.weights.get(index as usize).copied().unwrap_or(1.0);
        present.baseline += weight * baseline as f64;
        present.saved += weight * (baseline as f64 - decision.tokens as f64);
    });
    present
}

/// A stretch of a tape: a session, or a context of one.
pub(super) struct TokenSegment {
    /// Its session.
    pub(super) session: u32,
    /// Its responses.
    pub(super) responses: Range<usize>,
    /// Its endpoints, sorted.
    endpoints: Vec<u32>,
}

impl TokenSegment {
    /// Whether anything in it can be changed by whoever runs the pipeline.
    fn is_reached(&self, now: &Scenario) -> bool {
        self.endpoints.iter().any(|&endpoint| now.endpoints[endpoint as usize].reached == Reached::Changes)
    }
}

/// The stretches of a tape in which `key` stays the same.
pub(super) fn stretches(tape: &Tape, key: impl Fn(&Response) -> (u32, u32, u32)) -> Vec<TokenSegment> {
    let mut start = 0;
    let groups = tape.responses.chunk_by(|a, b| key(a) == key(b));
    groups
        .map(|group| {
            let responses = start..start + group.len();
            start = responses.end;
            let mut endpoints: Vec<u32> = group.iter().map(|response| response.endpoint).collect();
            endpoints.sort_unstable();
            endpoints.dedup();
            TokenSegment { session: group[0].session, responses, endpoints }
        })
        .collect()
}

/// Where a change can make a difference.
pub(super) enum Scope {
    Everywhere,
    /// In sessions with one of these endpoints, and in these sessions.
    Some {
        endpoints: Vec<u32>,
        sessions: Vec<u32>,
    },
}

impl Scope {
    /// Where two configurations differ.
    pub(super) fn of(now: &Scenario, change: &Scenario) -> Self {
        if !now.is_alike_for_all(change) {
            return Self::Everywhere;
        }
        let endpoints = differing(&now.endpoints, &change.endpoints);
        let sessions = differing(&now.sessions, &change.sessions);
        Self::Some { endpoints, sessions }
    }

    /// Whether that is in this stretch.
    pub(super) fn concerns(&self, stretch: &TokenSegment) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Some { endpoints, sessions } => {
                endpoints.iter().any(|endpoint| stretch.endpoints.binary_search(endpoint).is_ok())
                    || sessions.binary_search(&stretch.session).is_ok()
            }
        }
    }
}

fn differing<T: PartialEq>(now: &[T], change: &[T]) -> Vec<u32> {
    let pairs = (0..).zip(now.iter().zip(change));
    pairs.filter(|(_, (now, change))| now != change).map(|(number, _)| number).collect()
}
