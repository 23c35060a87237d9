//! Contexts laid out and sent without any pricing: enough to see what a stage does to them.

#![allow(dead_code, reason = "not every test asks for everything")]

use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::run::{Extra, Priced, SimulatedRun};
use crate::whatif::sim::view::{ContextView, ExtraCall, Given, Item, ItemKey, Moment, Prefix, Stage, StageOutput};

/// Tokens of every prefix here.
pub const PREFIX: u64 = 1_000;

/// One request as it was sent.
pub struct Sent {
    pub request: u32,
    pub logged: ContextView,
    pub view: ContextView,
    pub aside: StageOutput,
}

/// One token per character.
pub fn sizes(timeline: &Timeline) -> Vec<u32> {
    timeline.blocks.iter().map(|block| block.chars).collect()
}

/// A block as the log sent it.
pub fn item(timeline: &Timeline, block: u32) -> Item {
    let chars = timeline.blocks[block as usize].chars;
    Item { key: ItemKey::Block(block), tokens: chars, kept_chars: chars }
}

/// The context of a request as the log sent it: what the segment began with, and what came in and was answered since.
pub fn logged(timeline: &Timeline, request: u32) -> ContextView {
    let mut items = Vec::new();
    lay(timeline, request, &mut items);
    ContextView { prefix: Prefix { tokens: PREFIX, edition: 0 }, items }
}

fn lay(timeline: &Timeline, request: u32, items: &mut Vec<Item>) {
    let segment = &timeline.segments[timeline.requests[request as usize].segment as usize];
    let answer = |index: u32| timeline.requests[index as usize].outputs.clone().map(|block| item(timeline, block));
    if segment.after != NONE {
        lay(timeline, segment.after, items);
        items.extend(answer(segment.after));
    }
    for index in segment.requests.start..=request {
        items.push(Item { key: ItemKey::Residual(index), tokens: 0, kept_chars: 0 });
        items.extend(timeline.requests[index as usize].inputs.clone().map(|block| item(timeline, block)));
        if index < request {
            items.extend(answer(index));
        }
    }
}

/// Whether what the request before wrote lives when this one starts: five minutes or an hour, and 15 seconds of slack.
fn is_alive(timeline: &Timeline, request: u32) -> bool {
    let [last, this] = [request - 1, request].map(|request| &timeline.requests[request as usize]);
    let seconds = if last.usage().cache_creation_1h > 0 { 3_600 } else { 300 };
    this.start - last.end <= (seconds + 15) * 1_000
}

/// Sends all requests through one stage. All that was sent before counts as cached.
pub fn send(timeline: &Timeline, stage: &mut dyn Stage) -> Vec<Sent> {
    let mut all = Vec::new();
    for (chain, known) in timeline.chains.iter().enumerate() {
        stage.begin(timeline, chain as u32);
        let mut before: Option<ContextView> = None;
        for request in known.requests.clone() {
            let logged = logged(timeline, request);
            let segment = timeline.requests[request as usize].segment;
            let moment = Moment {
                timeline,
                request,
                sent_before: before.as_ref().map(ContextView::tokens),
                before: before.as_ref(),
                cached_before: before.as_ref().map_or(0, ContextView::tokens),
                is_warm: before.is_some() && is_alive(timeline, request),
                opens_segment: timeline.segments[segment as usize].requests.start == request,
            };
            let (mut view, mut aside) = (ContextView::default(), StageOutput::default());
            stage.apply(&moment, Given { view: &logged, kept: 0 }, &mut view, &mut aside);
            before = Some(view.clone());
            all.push(Sent { request, logged, view, aside });
        }
    }
    all
}

/// What was sent as a run in which nothing is cached or priced.
pub fn run_of(all: &[Sent]) -> SimulatedRun {
    let priced = |sent: &Sent| {
        let spent = Spent { uncached: sent.view.tokens() - 5, write_5m: 5, ..Spent::default() };
        Priced::new(sent.request, &spent, u32::MAX, 0)
    };
    let extra = |sent: &Sent| {
        let of = |&call: &ExtraCall| {
            let spent = Spent { read: call.read, uncached: call.uncached, output: call.output, ..Spent::default() };
            Extra { request: sent.request, call, spent, cost: Cost::default() }
        };
        sent.aside.extra.iter().map(of).collect::<Vec<_>>()
    };
    SimulatedRun {
        requests: all.iter().map(priced).collect(),
        extra: all.iter().flat_map(extra).collect(),
        ..SimulatedRun::default()
    }
}

/// The blocks of a view, in order.
pub fn blocks(view: &ContextView) -> Vec<u32> {
    let block = |item: &Item| if let ItemKey::Block(block) = item.key { Some(block) } else { None };
    view.items.iter().filter_map(block).collect()
}
