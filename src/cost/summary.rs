//! A bill in a few lines: what was paid for, and the parts of it that people ask about.

use serde::Serialize;

use crate::cost::attribution::{Attribution, GroupCost};
use crate::cost::bill::Bill;
use crate::cost::groups::{CostKey, Label, PREFIX, THINKING, is_unlogged};
use crate::cost::outcomes::{AGAIN, FAILED};
use crate::cost::tables::{dollars, percent_of};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::{counted, date, thousands};
use crate::whatif::sim::cost::{Cost, Spent, Total};

/// The bill in its largest features. Parts of it overlap: a thought that was paid for again is in both.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Summary {
    /// When the first and the last request were sent; none without a time.
    pub span_ms: Option<(Millis, Millis)>,
    /// Requests, tokens, cost.
    pub bill: Total,
    /// What tokens of each kind cost.
    pub kinds: Spent<Cost>,
    /// When things came in, or were written by the model.
    pub first: Cost,
    /// Each time they were sent again.
    pub carried: Cost,
    /// Paid for once more, since the cache had lost them.
    pub again: Cost,
    /// Thinking, with what it cost to carry.
    pub thinking: Cost,
    /// The system prompt and the definitions of tools.
    pub prefix: Cost,
    /// What contexts held that no log has: reminders, memory files, lists of skills.
    pub not_in_the_log: Cost,
    /// Calls that failed, with their results.
    pub failed: Cost,
    pub failed_calls: u64,
    /// Calls that were made once more right after, and worked.
    pub made_again: Cost,
    pub made_again_calls: u64,
}

impl Summary {
    /// Sums up a bill.
    pub fn of(bill: &Bill<'_>) -> Self {
        let found = Attribution::new(bill, &[CostKey::Content, CostKey::Outcome]);
        let sum = |is: &dyn Fn(&str, &str) -> bool| {
            let mut sum = GroupCost::default();
            for row in &found.rows {
                if let [Label::Word(content), Label::Word(outcome)] = row.labels.as_slice()
                    && is(content, outcome)
                {
                    sum += row.entry;
                }
            }
            sum
        };
        let failed = sum(&|_, outcome| outcome == FAILED);
        let again = sum(&|_, outcome| outcome == AGAIN);
        let times = || bill.timeline.billed().map(|(_, request)| request.start).filter(|start| *start != NO_TIME);
        Self {
            span_ms: times().min().zip(times().max()),
            bill: bill.total(),
            kinds: bill.kinds(),
            first: found.total.first,
            carried: found.total.carried,
            again: found.total.again,
            thinking: sum(&|content, _| content == THINKING).cost(),
            prefix: sum(&|content, _| content == PREFIX).cost(),
            not_in_the_log: sum(&|content, _| is_unlogged(content)).cost(),
            failed: failed.cost(),
            failed_calls: failed.calls,
            made_again: again.cost(),
            made_again_calls: again.calls,
        }
    }

    /// The same in sentences.
    pub fn lines(&self) -> Vec<String> {
        let Self { bill, kinds, .. } = self;
        let requests = counted(bill.requests, "request");
        let span = self.span_ms.map(|(first, last)| [date(first), date(last)]);
        let requests = match span {
            Some([first, last]) if first == last => format!("{requests} of {first}"),
            Some([first, last]) => format!("{requests} from {first} to {last}"),
            None => requests,
        };
        let written = kinds.write_5m + kinds.write_1h;
        let unpriced = thousands(bill.cost.unpriced_tokens);
        let is_priced = bill.cost.usd().is_some();
        let mut lines = if is_priced {
            vec![format!(
                "{} at list prices for {requests}: {} read from the cache, {} written to it, {} not cached, {} output.",
                dollars(&bill.cost),
                dollars(&kinds.read),
                dollars(&written),
                dollars(&kinds.uncached),
                dollars(&kinds.output),
            )]
        } else {
            vec![format!("{requests} of models that no price is known for: {unpriced} tokens.")]
        };
        if is_priced && bill.cost.unpriced_tokens > 0 {
            lines.push(format!("Not in it: {unpriced} tokens of models that no price is known for."));
        }
        // Shares of what has no price are those of input-equivalent tokens.
        let part = |cost: &Cost| {
            let share = percent_of(cost, &bill.cost);
            if is_priced { format!("{} ({share})", dollars(cost)) } else { share }
        };
        lines.push(format!(
            "First cost {}; carried, request by request, {}; paid again, not read from the cache that had it, {}.",
            part(&self.first),
            part(&self.carried),
            part(&self.again),
        ));
        lines.push(format!(
            "System prompt and tools {}; thinking {}; text that is in no log {}.",
            part(&self.prefix),
            part(&self.thinking),
            part(&self.not_in_the_log),
        ));
        if self.failed_calls > 0 {
            let failed = match self.failed_calls {
                1 => "1 call failed, was refused or cancelled".to_owned(),
                calls => format!("{} calls failed, were refused or cancelled", thousands(calls)),
            };
            let again = counted(self.made_again_calls, "call");
            let (of_failed, of_again) = (part(&self.failed), part(&self.made_again));
            lines.push(format!("{failed}: {of_failed}; {again} made once more right after: {of_again}."));
        }
        lines
    }
}
