//! MCP servers that a project is given and never calls: what their instructions and the names of their tools cost, as far as
//! the log has them. Definitions of tools are in no log and not counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::Id;
use crate::base::names::{Sym, is_of_mcp_server, mcp_server};
use crate::cost::findings::BillEvidence;
use crate::cost::findings::carried::{CarriedCosts, PartItem};
use crate::cost::findings::parts::Parts;
use crate::cost::groups::requests_of_blocks;
use crate::logs::timeline::requests::{Added, Addition, NONE, Timeline};

/// A server in a project.
type ServerInProject = (Id, Sym);

/// Those that no call of the project is for.
pub fn parts(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let (timeline, sheet) = (&evidence.workload.timeline, &evidence.sheet.servers);
    let used = used(timeline, &sheet.resource_tools);
    let project = |addition: &Addition| timeline.session_of(timeline.request(addition.with)).project;
    let offered = || timeline.added.iter().filter(|addition| addition.what == Added::Server && addition.chars > 0);
    let mut sessions: BTreeMap<ServerInProject, BTreeSet<Id>> = BTreeMap::new();
    for addition in offered() {
        let session = timeline.session_of(timeline.request(addition.with)).id;
        sessions.entry((project(addition), addition.name)).or_default().insert(session);
    }
    let is_unused = |place: &ServerInProject| {
        let server = timeline.names.text(place.1);
        let is_for = |tool: &Sym| is_of_mcp_server(timeline.names.text(*tool), server);
        let is_called = used.get(&place.0).is_some_and(|used| used.any_server || used.tools.iter().any(is_for));
        !is_called && sessions.get(place).map_or(0, BTreeSet::len) as u64 >= sheet.sessions_min
    };
    let mut items: BTreeMap<ServerInProject, PartItem> = BTreeMap::new();
    let mut told: BTreeSet<(u32, Sym, u32)> = BTreeSet::new();
    let mut came = Vec::new();
    let per_token = evidence.workload.sizes.rules.chars_per_token.text;
    for addition in offered().filter(|addition| is_unused(&(project(addition), addition.name))) {
        let place = (project(addition), addition.name);
        let names = vec![timeline.names.text(place.1).to_owned(), place.0.to_string()];
        let item = items.entry(place).or_insert_with(|| carried.item(names));
        came.push((item.item, addition.with, f64::from(addition.chars) / per_token));
        // A server that comes with its instructions and its tools came once.
        let chain = timeline.requests[addition.with as usize].chain;
        let counts = timeline.request(addition.with).counts();
        if counts && told.insert((chain, addition.name, addition.with)) {
            *item.counts.entry(evidence.key(addition.with)).or_default() += 1;
        }
    }
    carried.unlogged(&came);
    let kinds = ["server", "project"];
    vec![Parts::of([&sheet.id, &sheet.what, &sheet.advice], "content", &kinds, items.into_values())]
}

/// What a project called.
#[derive(Default)]
struct Called {
    /// MCP tools.
    tools: BTreeSet<Sym>,
    /// Whether a resource of some server was asked for: no call says of which.
    any_server: bool,
}

/// What was called of MCP servers, by project.
fn used(timeline: &Timeline, resource_tools: &[String]) -> BTreeMap<Id, Called> {
    let requests = requests_of_blocks(timeline);
    let mut used: BTreeMap<Id, Called> = BTreeMap::new();
    for call in &timeline.calls {
        let Some(&request) = requests.get(call.asked as usize).filter(|request| **request != NONE) else { continue };
        let tool = timeline.names.text(call.tool);
        let called = used.entry(timeline.session_of(timeline.request(request)).project).or_default();
        if mcp_server(tool).is_some() {
            called.tools.insert(call.tool);
        }
        called.any_server |= resource_tools.iter().any(|known| known == tool);
    }
    used
}
