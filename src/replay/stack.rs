//! The loop over all responses, and all of the accounting: the layers are asked in order, the first that takes a
//! response decides what is sent, and every response ends in exactly one layer.

use std::ops::Range;

use crate::facts::hints::ShownAs;
use crate::replay::expansion::Expansion;
use crate::replay::layers::exact_dedup::{DedupCache, ShownBody};
use crate::replay::layers::near_ref::NearRef;
use crate::replay::layers::range_ref::RangeRef;
use crate::replay::layers::{Decision, Offer, SentAs, exact_dedup, passthrough, router, template};
use crate::replay::reach::WithinReach;
use crate::replay::runs::LineRun;
use crate::replay::savings::{Expanded, Ledger};
use crate::replay::scenario::Scenario;
use crate::replay::tape::{Response, Tape, TapeEntry};

/// Replays a tape; the ledger says what was sent.
pub fn replay(tape: &Tape, scenario: &Scenario) -> Ledger {
    replay_each(tape, scenario, &mut |_, _| {})
}

/// Replays a tape and tells of every decision, in order. Responses without text have none.
pub fn replay_each(tape: &Tape, scenario: &Scenario, each: &mut dyn FnMut(u32, &Decision)) -> Ledger {
    let mut ledger = Ledger::new(tape);
    walk(tape, scenario, 0..tape.responses.len(), &mut |index, baseline, decision, _| {
        ledger.note(&tape.responses[index as usize], baseline, decision);
        if let Some(decision) = decision {
            each(index, decision);
        }
    });
    ledger.close();
    ledger
}

/// The same, and every hint is expanded back to the body for which it stands.
pub fn replay_expanded(
    tape: &Tape,
    scenario: &Scenario,
    each: &mut dyn FnMut(u32, &Decision, &[LineRun]),
) -> (Ledger, Expanded) {
    let mut ledger = Ledger::new(tape);
    let mut expansion = Expansion::new(tape);
    let mut evictions = tape.evictions.iter().peekable();
    let mut context = None;
    walk(tape, scenario, 0..tape.responses.len(), &mut |index, baseline, decision, runs| {
        let response = &tape.responses[index as usize];
        while let Some((_, gone)) = evictions.next_if(|(before, _)| *before <= index) {
            expansion.evict(*gone);
        }
        if context.replace(response.context()) != Some(response.context()) {
            expansion.enter();
        }
        ledger.note(response, baseline, decision);
        if let Some(decision) = decision {
            expansion.send(index, decision, runs);
            each(index, decision, runs);
        }
    });
    ledger.close();
    (ledger, expansion.finish())
}

/// Replays some of the responses of a tape, whole sessions, and tells of every decision with the tokens as they are. No
/// books are kept.
pub fn replay_sessions(
    tape: &Tape,
    scenario: &Scenario,
    responses: Range<usize>,
    each: &mut dyn FnMut(u32, u64, &Decision),
) {
    walk(tape, scenario, responses, &mut |index, baseline, decision, _| {
        if let Some(decision) = decision {
            each(index, baseline, decision);
        }
    });
}

/// What the layers behind L0 would send for the response at an index, with the tokens as it is.
pub(super) fn fallback(tape: &Tape, scenario: &Scenario, index: usize) -> (u64, Decision) {
    let response = &tape.responses[index];
    let offer = offer(tape, scenario, index as u32, response);
    let decision = match response.outcome {
        TapeEntry::Answer if scenario.reaches(response) => encode(&offer),
        _ => passthrough(&offer),
    };
    (offer.baseline, decision)
}

/// A response, with what the layers ask about it.
fn offer<'t>(tape: &'t Tape, scenario: &'t Scenario, index: u32, response: &'t Response) -> Offer<'t> {
    let session = scenario.session(response);
    let baseline = session.counting.tokens(&response.body_at_hand.raw);
    let endpoint = &scenario.endpoints[response.endpoint as usize];
    Offer { index, response, endpoint, session, scenario, tape, baseline, otherwise: baseline }
}

fn walk(
    tape: &Tape,
    scenario: &Scenario,
    responses: Range<usize>,
    each: &mut impl FnMut(u32, u64, Option<&Decision>, &[LineRun]),
) {
    let mut stack = LayerStack::new(tape, scenario);
    let first = tape.evictions.partition_point(|&(before, _)| (before as usize) < responses.start);
    let mut evictions = tape.evictions[first..].iter().peekable();
    for (index, response) in (responses.start as u32..).zip(&tape.responses[responses]) {
        while let Some(&&(_, evicted)) = evictions.peek().filter(|(before, _)| *before <= index) {
            stack.evict(evicted);
            evictions.next();
        }
        stack.enter(response);
        if response.ran && scenario.options.invalidate {
            scenario.drop_stale(tape, response, &mut stack.cache);
        }
        match stack.decide(index, response) {
            Some((baseline, decision)) => each(index, baseline, Some(&decision), stack.range.runs()),
            None => each(index, 0, None, &[]),
        }
    }
}

struct LayerStack<'t> {
    tape: &'t Tape,
    scenario: &'t Scenario,
    /// Session, chain and partition.
    context: Option<(u32, u32, u32)>,
    cache: DedupCache,
    near: NearRef,
    range: RangeRef<'t>,
}

impl<'t> LayerStack<'t> {
    fn new(tape: &'t Tape, scenario: &'t Scenario) -> Self {
        Self {
            tape,
            scenario,
            context: None,
            cache: DedupCache::new(scenario.lru_size),
            near: NearRef::default(),
            range: RangeRef::new(scenario.options.extended, &tape.windows),
        }
    }

    /// Begins another context or partition if the response stands in one.
    fn enter(&mut self, response: &Response) {
        let context = response.context();
        if self.context == Some(context) {
            return;
        }
        if self.context.is_none_or(|(session, _, _)| session != response.session) {
            self.near.begin_session();
        }
        self.context = Some(context);
        self.cache.clear();
        self.range.forget();
    }

    /// The result of a response is no longer in the context.
    fn evict(&mut self, response: u32) {
        self.cache.drop_if(|entry| entry.response == response);
        self.range.evict(response);
    }

    /// What is sent for a response, with its tokens as it is; nothing for one without text.
    fn decide(&mut self, index: u32, response: &'t Response) -> Option<(u64, Decision)> {
        if matches!(response.outcome, TapeEntry::Silent | TapeEntry::Unstudied) {
            return None;
        }
        self.range.pass();
        let mut offer = offer(self.tape, self.scenario, index, response);
        let (baseline, endpoint) = (offer.baseline, offer.endpoint);
        let bytes = response.body_at_hand.raw.bytes;
        let eligible = response.outcome == TapeEntry::Answer && bytes >= endpoint.body_bytes_min.max(1);
        let decision = if eligible && self.scenario.reaches(response) {
            // What later layers would send decides whether a hint pays.
            let fallback = encode(&offer);
            offer.otherwise = fallback.tokens;
            let hint = if endpoint.dedup { self.refer(&offer) } else { None };
            hint.unwrap_or(fallback)
        } else {
            passthrough(&offer)
        };
        if eligible && endpoint.reached != WithinReach::Misses {
            self.remember(&offer, &decision);
        }
        debug_assert!(decision.tokens <= baseline, "no response may grow");
        Some((baseline, decision))
    }

    /// L0.
    fn refer(&mut self, offer: &Offer<'_>) -> Option<Decision> {
        let exact = exact_dedup::offer(offer, &mut self.cache);
        exact.or_else(|| self.near.offer(offer, &self.cache)).or_else(|| self.range.offer(offer))
    }

    /// Only what was shown in full can be referred to; an endpoint without L0 stays out of the cache altogether.
    fn remember(&mut self, offer: &Offer<'_>, decision: &Decision) {
        if !offer.endpoint.dedup {
            return;
        }
        let shown = match decision.what {
            SentAs::AsIs => Some(ShownAs::AsIs),
            SentAs::Encoded(_) => Some(ShownAs::Encoded),
            SentAs::Reference(_) | SentAs::NearReference(_) | SentAs::RangeReference => None,
        };
        if let Some(shown) = shown {
            self.cache.insert(ShownBody { body: offer.response.body, response: offer.index, shown });
        }
        // Nobody else keeps what was sent.
        if self.scenario.options.extended {
            self.range.sent(offer, decision.what);
        }
    }
}

/// L1 to L3.
fn encode(offer: &Offer<'_>) -> Decision {
    template(offer).or_else(|| router(offer)).unwrap_or_else(|| passthrough(offer))
}
