//! How large contexts are after real compactions, and whether the parameters predict it.

use crate::base::stats::Share;
use crate::logs::timeline::requests::{Boundary, Timeline};
use crate::whatif::compaction::outcome::AfterSizes;

use crate::whatif::compaction::params::Params;
use crate::whatif::compaction::sheet::Sheet;
use crate::whatif::compaction::summary::percentiles;

/// Compares the first contexts after real compactions with what the parameters leave (without a tail: the client keeps none),
/// and with a carry fitted on half of the sessions. `prefixes` are the tokens of tools and system prompt, chain by chain.
pub fn after_sizes(timeline: &Timeline, prefixes: &[u64], params: &Params, sheet: &Sheet) -> AfterSizes {
    let after: Vec<After> =
        timeline.boundaries.iter().filter_map(|known| After::of(timeline, prefixes, known)).collect();
    let tolerance = sheet.bars.after_size_tolerance_percent;
    let within =
        |after: &After, carry: u64| (after.prefix + carry).abs_diff(after.context) * 100 <= after.context * tolerance;
    let carry = made_tokens(params, sheet) + sheet.client.tail_keep_tokens;
    let by_params = Share::new(after.iter().filter(|after| within(after, carry)).count() as u64, after.len() as u64);
    let (fitted, held_out): (Vec<&After>, Vec<&After>) = after.iter().partition(|after| after.is_fitted);
    let carries: Vec<u64> = fitted.iter().map(|after| after.context.saturating_sub(after.prefix)).collect();
    let fitted_carry = (!carries.is_empty()).then(|| percentiles(carries).p50);
    let hits = fitted_carry.map_or(0, |carry| held_out.iter().filter(|after| within(after, carry)).count() as u64);
    AfterSizes {
        compactions: after.len() as u64,
        context: percentiles(after.iter().map(|after| after.context).collect()),
        by_params,
        fitted_carry_tokens: fitted_carry,
        by_fit: Share::new(hits, if fitted_carry.is_some() { held_out.len() as u64 } else { 0 }),
        is_met: (by_params.n > 0).then_some(by_params.value() * 100.0 >= sheet.bars.after_size_percent),
    }
}

/// Summary, acknowledgement and what is reattached.
fn made_tokens(params: &Params, sheet: &Sheet) -> u64 {
    let sizes = [params.summary_tokens, sheet.client.acknowledgement_tokens, params.reattach_tokens];
    sizes.map(u64::from).iter().sum()
}

struct After {
    context: u64,
    prefix: u64,
    is_fitted: bool,
}

impl After {
    fn of(timeline: &Timeline, prefixes: &[u64], boundary: &Boundary) -> Option<Self> {
        let request = timeline.requests.get(boundary.request as usize)?;
        if request.chain != boundary.chain || request.context() == 0 {
            return None;
        }
        let session = timeline.session_of(request).id;
        let prefix = prefixes.get(boundary.chain as usize).copied().unwrap_or_default();
        Some(Self { context: request.context(), prefix, is_fitted: session.0[0].is_multiple_of(2) })
    }
}
