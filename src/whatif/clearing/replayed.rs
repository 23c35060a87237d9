//! The clearings of the log beside what the rule would have cleared at the same place.

use std::collections::BTreeSet;

use crate::base::id::Id;
use crate::base::stats::Share;
use crate::logs::timeline::requests::{BlockKind, Clearing, NONE, Timeline};
use crate::whatif::compaction::Sheet;
use crate::whatif::compaction::outcome::{ClearingCheck, Clearings, ClearingsReplayed};
use crate::whatif::compaction::params::MicroKnobs;
use crate::whatif::compaction::summary::contexts;
use crate::whatif::sim::breakage::shown::Shown;
use crate::whatif::sim::simulate::Run;

use crate::whatif::clearing::stage::Cleared;
use crate::whatif::clearing::stage::{ResultSize, plan};

/// Checks every clearing of the log. The client's own limits are used (any size, none protected); the rest is `params`.
pub fn replayed(timeline: &Timeline, params: &MicroKnobs, sheet: &Sheet) -> ClearingsReplayed {
    let mut done: BTreeSet<Id> = BTreeSet::new();
    let mut checks = Vec::new();
    for clearing in &timeline.clearings {
        checks.push(check(timeline, clearing, &done, params, sheet));
        done.extend(clearing.calls.iter().copied());
    }
    let equal = Share::new(checks.iter().filter(|check| check.is_equal()).count() as u64, checks.len() as u64);
    let is_met = (equal.n > 0).then_some(equal.value() * 100.0 >= sheet.bars.clearings_percent);
    ClearingsReplayed { checks, equal, is_met }
}

fn check(
    timeline: &Timeline,
    clearing: &Clearing,
    done: &BTreeSet<Id>,
    params: &MicroKnobs,
    sheet: &Sheet,
) -> ClearingCheck {
    let results: Vec<(Id, u64)> = in_context(timeline, clearing)
        .into_iter()
        .map(|block| &timeline.blocks[block as usize])
        .filter(|block| block.kind == BlockKind::ToolResult && block.call != NONE)
        .map(|block| (timeline.calls[block.call as usize].id, block.chars))
        .filter(|(call, _)| !done.contains(call))
        .map(|(call, chars)| (call, sheet.client.estimate(chars)))
        .collect();
    let protected = results.len().saturating_sub(sheet.client.micro_protect_last);
    let least = sheet.client.micro_min_bytes.div_ceil(u64::from(sheet.client.chars_per_token.max(1)));
    let sizes: Vec<ResultSize> = results
        .iter()
        .enumerate()
        .map(|(place, &(_, tokens))| ResultSize {
            tokens,
            cleared_tokens: 0,
            is_free: place < protected && tokens >= least,
        })
        .collect();
    let chosen = plan(&sizes, params.target_tokens, params.min_saving_tokens);
    let predicted: BTreeSet<Id> = chosen.iter().map(|&place| results[place].0).collect();
    let logged: BTreeSet<Id> = clearing.calls.iter().copied().collect();
    ClearingCheck {
        record: clearing.id.to_string(),
        total_tokens: sizes.iter().map(|size| size.tokens).sum(),
        logged_total_tokens: clearing.pre_tokens,
        saved_tokens: chosen.iter().map(|&place| sizes[place].tokens).sum(),
        logged_saved_tokens: clearing.tokens_saved,
        both: predicted.intersection(&logged).count() as u64,
        only_predicted: predicted.difference(&logged).count() as u64,
        only_logged: logged.difference(&predicted).count() as u64,
    }
}

/// What stood in the context when it was cleared, together with what came in right after.
fn in_context(timeline: &Timeline, clearing: &Clearing) -> Vec<u32> {
    let last = timeline.chains[clearing.chain as usize].requests.end.saturating_sub(1);
    let request = clearing.request.min(last);
    if timeline.requests.get(request as usize).is_none_or(|request| request.chain != clearing.chain) {
        return Vec::new();
    }
    Shown::to(timeline, request).blocks().collect()
}

/// A virtual run of clearing in figures; `cleared` is the stage's journal.
pub fn clearings(timeline: &Timeline, cleared: &[Cleared], run: &Run) -> Clearings {
    let session = |request: u32| timeline.chains[timeline.requests[request as usize].chain as usize].session;
    Clearings {
        clearings: cleared.iter().map(|entry| entry.request).collect::<BTreeSet<_>>().len() as u64,
        results: cleared.len() as u64,
        removed_tokens: cleared.iter().map(|entry| u64::from(entry.removed_tokens)).sum(),
        sessions: cleared.iter().map(|entry| session(entry.request)).collect::<BTreeSet<_>>().len() as u64,
        context: contexts(run),
    }
}
