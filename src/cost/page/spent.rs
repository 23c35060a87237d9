//! What was spent, at list prices, by project, model and day.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::cost::bill::Bill;
use crate::cost::findings::BillEvidence;
use crate::cost::groups::{CostKey, Dates};
use crate::logs::timeline::requests::{NO_USAGE, NONE, Request, Timeline, ToolCall};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::{counted, date, usd};
use crate::whatif::sim::bill;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::figures::UnloggedCalls;
use crate::whatif::sim::money::WebSearchPrice;
use crate::whatif::sim::unlogged::unlogged;

/// Nano-dollars of a dollar.
const NANO: f64 = 1e9;

/// The day of requests without a time.
pub const UNDATED: &str = "?";

/// Money, and what has none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Amount {
    /// Nano-dollars of what has a price.
    pub nano_usd: u64,
    /// Spent without a price.
    pub unpriced_tokens: u64,
}

impl Amount {
    /// Dollars of what has a price.
    pub fn usd(&self) -> f64 {
        self.nano_usd as f64 / NANO
    }

    fn add(&mut self, cost: &Cost) {
        self.nano_usd = self.nano_usd.saturating_add(u64::try_from(cost.nano_usd).unwrap_or(u64::MAX));
        self.unpriced_tokens += cost.unpriced_tokens;
    }
}

/// Sums by name, the most expensive first.
pub fn by_money(sums: &BTreeMap<String, Amount>) -> Vec<(&String, &Amount)> {
    let mut rows: Vec<(&String, &Amount)> = sums.iter().collect();
    rows.sort_by(|a, b| b.1.nano_usd.cmp(&a.1.nano_usd).then_with(|| a.0.cmp(b.0)));
    rows
}

/// What was spent.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct PageSpent {
    /// Sessions with a request.
    pub sessions: u64,
    /// Requests with usage.
    pub requests: u64,
    /// Answers of a model without usage: nobody can say what they cost.
    pub without_usage: u64,
    /// First and last day of a request, in local time; none without a time.
    pub days: Option<(String, String)>,
    /// Days from the first to the last, both counted.
    pub span_days: i64,
    /// Input and output.
    pub total: Amount,
    /// Input: read, written, in full.
    pub input: Amount,
    /// Output as logged, which is at least so much.
    pub output: Amount,
    /// What the input would have cost more without a cache; less if it is negative.
    pub cache_saved_nano_usd: i64,
    /// By working directory (pseudonyms).
    pub by_project: BTreeMap<String, Amount>,
    pub by_model: BTreeMap<String, Amount>,
    /// By day in local time; `?` without a time.
    pub by_day: BTreeMap<String, Amount>,
    pub by_day_model: BTreeMap<String, BTreeMap<String, Amount>>,
    /// Requests that no log has, estimated: forks and summaries.
    pub unlogged_calls: u64,
    /// What these would cost, and the output that answers are longer by than was logged.
    pub unlogged: Amount,
    /// Of this, what answers are longer by.
    pub unlogged_answers: Amount,
    /// Calls that searched the web. Their searches are billed by number and are in no log.
    pub web_searches: u64,
    /// Nano-dollars of one search for each; in no sum here.
    pub web_searches_nano_usd: u64,
}

impl PageSpent {
    /// Days from a moment to the last request, both counted; none without a time.
    pub fn days_from(&self, start: Millis) -> Option<i64> {
        let [start, last] = [&date(start), &self.days.as_ref()?.1].map(|day| day.parse::<jiff::civil::Date>().ok());
        Some(i64::from(start?.until(last?).ok()?.get_days()) + 1)
    }

    /// Sums the bill up.
    pub fn of(evidence: &BillEvidence<'_>) -> Self {
        let (simulator, bill) = (evidence.simulator, evidence.bill());
        let timeline = bill.timeline;
        let mut spent = Self::default();
        let mut sessions: BTreeSet<u32> = BTreeSet::new();
        let mut span: Option<(i64, i64)> = None;
        let mut dates = Dates::default();
        for (_, request) in timeline.counted() {
            if !request.is_billed() {
                spent.without_usage += 1;
                continue;
            }
            sessions.insert(timeline.session_of_chain(request.chain));
            spent.requests += 1;
            if request.start != NO_TIME {
                span = Some(span.map_or((request.start, request.start), |(first, last)| {
                    (first.min(request.start), last.max(request.start))
                }));
            }
            spent.add(&bill, request, &mut dates);
        }
        spent.without_usage += timeline.skipped.get(NO_USAGE).copied().unwrap_or_default();
        spent.sessions = sessions.len() as u64;
        spent.days = span.map(|(first, last)| (date(first), date(last)));
        spent.span_days = span.map_or(0, |(first, _)| spent.days_from(first).unwrap_or(1));
        let (with, without) = bill::with_and_without_cache(simulator);
        let saved = without.cost.nano_usd as i128 - with.cost.nano_usd as i128;
        spent.cache_saved_nano_usd = i64::try_from(saved).unwrap_or(if saved < 0 { i64::MIN } else { i64::MAX });
        let hidden = unlogged(simulator);
        let all: [&UnloggedCalls; 3] = [&hidden.forks, &hidden.summaries, &hidden.answers];
        spent.unlogged_calls = all.iter().map(|calls| calls.calls).sum();
        all.iter().for_each(|calls| spent.unlogged.add(&calls.cost));
        spent.unlogged_answers.add(&hidden.answers.cost);
        if let Some(price) = &evidence.workload.prices.web_search {
            (spent.web_searches, spent.web_searches_nano_usd) = web_searches(timeline, price);
        }
        spent
    }

    fn add(&mut self, bill: &Bill<'_>, request: &Request, dates: &mut Dates) {
        let timeline = bill.timeline;
        let charge = bill.charge(request);
        let input = charge.part(&Spent { output: 0, ..charge.spent });
        let output = charge.part(&Spent { output: charge.spent.output, ..Spent::default() });
        let project = timeline.session_of(request).project.to_string();
        let model = timeline.names.text(request.model).to_owned();
        let day =
            Some(dates.of(request.start, CostKey::Day)).filter(|day| !day.is_empty()).unwrap_or(UNDATED).to_owned();
        self.input.add(&input);
        self.output.add(&output);
        let by_model = self.by_day_model.entry(day.clone()).or_default();
        let sums = [
            &mut self.total,
            by_model.entry(model.clone()).or_default(),
            self.by_project.entry(project).or_default(),
            self.by_model.entry(model).or_default(),
            self.by_day.entry(day).or_default(),
        ];
        for sum in sums {
            sum.add(&input);
            sum.add(&output);
        }
    }
}

/// Calls of tools that search, as far as they were answered, and nano-dollars of one search for each.
pub fn web_searches(timeline: &Timeline, price: &WebSearchPrice) -> (u64, u64) {
    let tools: Vec<_> = price.tools.iter().filter_map(|tool| timeline.names.find(tool)).collect();
    let searched = |call: &ToolCall| tools.contains(&call.tool) && call.answered != NONE && !call.is_error;
    let searches = timeline.counted_calls().filter(|(_, call)| searched(call)).count() as u64;
    (searches, price.nano_usd(searches))
}

/// "at least $0.29 for 29 web searches"; nothing of none.
pub fn web_searches_words((searches, nano_usd): (u64, u64)) -> Option<String> {
    (nano_usd > 0).then(|| format!("at least {} for {}", usd(nano_usd as f64 / NANO), counted(searches, "web search")))
}
