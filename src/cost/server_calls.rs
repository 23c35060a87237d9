//! What projects called of MCP servers.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::base::names::{Sym, mcp_server};
use crate::logs::timeline::requests::Timeline;

/// What a project called of MCP servers: calls by tool. One that only requests outside of the window made is there with none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCalls {
    /// Of tools of servers.
    pub tools: BTreeMap<Sym, u64>,
    /// Of tools that ask for resources: no call says of which server.
    pub resources: BTreeMap<Sym, u64>,
}

/// What was called of MCP servers, by project.
pub fn server_calls(timeline: &Timeline, resource_tools: &[String]) -> BTreeMap<Id, ServerCalls> {
    let mut called: BTreeMap<Id, ServerCalls> = BTreeMap::new();
    for request in &timeline.requests {
        let outputs = &timeline.blocks[request.outputs.start as usize..request.outputs.end as usize];
        for call in outputs.iter().filter_map(|block| timeline.calls.get(block.call as usize)) {
            let tool = timeline.names.text(call.tool);
            let is_resource = resource_tools.iter().any(|known| known == tool);
            if !is_resource && mcp_server(tool).is_none() {
                continue;
            }
            let of_project = called.entry(timeline.session_of(request).project).or_default();
            let calls = if is_resource { &mut of_project.resources } else { &mut of_project.tools };
            *calls.entry(call.tool).or_default() += u64::from(request.counts());
        }
    }
    called
}
