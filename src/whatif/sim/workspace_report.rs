//! Writes to workspace files: how often a bundle of them would have been read anew, and what that would have cost if it
//! stood in the cached prefix.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::logs::timeline::requests::{Request, ToolCall};
use crate::logs::trace::{Millis, NO_TIME};
use crate::whatif::prompt_cache::causes;
use crate::whatif::prompt_cache::outcome::Workspace;
use crate::whatif::sim::simulate::Ground;

/// What counts as a write.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRules {
    /// Tools that write files.
    pub tools: Vec<String>,
    /// Milliseconds within which writes count as one invalidation.
    pub debounce_ms: u32,
}

/// Counts writes session by session.
pub fn run(ground: &Ground<'_>, rules: &WorkspaceRules) -> Workspace {
    let timeline = ground.timeline;
    let writes: BTreeSet<_> = rules.tools.iter().filter_map(|tool| timeline.names.find(tool)).collect();
    let mut found = Workspace::default();
    let (mut sessions, mut roots) = (BTreeSet::new(), BTreeSet::new());
    for chain in &timeline.chains {
        let mut last = NO_TIME;
        for index in chain.requests.clone() {
            let request = &timeline.requests[index as usize];
            let is_write = |call: &&ToolCall| writes.contains(&call.tool) && call.file & ToolCall::MARKDOWN != 0;
            let calls: Vec<&ToolCall> = calls_of(ground, request).filter(is_write).collect();
            if calls.is_empty() {
                continue;
            }
            let instructions = calls.iter().filter(|call| call.file & ToolCall::WORKSPACE != 0).count();
            sessions.insert(chain.session);
            roots.insert(timeline.sessions[chain.session as usize].project);
            found.writes += calls.len() as u64;
            found.instruction_writes += instructions as u64;
            let quiet = last == NO_TIME || request.end.saturating_sub(last) > Millis::from(rules.debounce_ms);
            last = request.end;
            if quiet {
                found.invalidations += 1;
                followed(ground, index, &mut found);
            }
        }
    }
    (found.sessions, found.roots) = (sessions.len() as u64, roots.len() as u64);
    found
}

fn calls_of<'a>(ground: &Ground<'a>, request: &Request) -> impl Iterator<Item = &'a ToolCall> {
    let timeline = ground.timeline;
    request.outputs.clone().filter_map(|block| timeline.calls.get(timeline.blocks[block as usize].call as usize))
}

/// What the next request of the chain shows, and what it would have paid for a voided prefix.
fn followed(ground: &Ground<'_>, index: u32, found: &mut Workspace) {
    let request = &ground.timeline.requests[index as usize];
    let end = ground.timeline.chains[request.chain as usize].requests.end;
    let next = (index + 1..end).find(|&next| ground.timeline.requests[next as usize].context() > 0);
    let Some(next) = next.filter(|_| request.context() > 0) else { return };
    found.followed_by_break.add(causes::of(ground, request, next).is_some());
    let prior = &ground.priors[next as usize];
    let at_risk = (request.usage.cache_read + request.usage.cache_creation).saturating_sub(prior.still);
    let request = &ground.timeline.requests[next as usize];
    found.cost_at_risk += causes::premium(ground, request, at_risk, 0, prior.class);
}
