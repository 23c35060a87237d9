//! Parts of contexts that need not be there, by what they cost from the moment they came in.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::Id;
use crate::base::names::{Sym, is_of_mcp_server};
use crate::cost::findings::carried::{CarriedCosts, Costs, PartItem};
use crate::cost::findings::thresholds::ContextPart;
use crate::cost::findings::{Advice, BillEvidence, Case, FindingBasis, MadeOf, Waits};
use crate::cost::outcomes::outcomes;
use crate::cost::server_calls::server_calls;
use crate::logs::timeline::requests::{Added, Addition, Block, BlockKind, Timeline};
use crate::logs::trace::Millis;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::Sides;

/// Every kind of part. A new one is one line here.
const KINDS: &[fn(&BillEvidence<'_>, &mut CarriedCosts<'_>) -> Vec<Parts>] = &[calls, images, servers, hooks];

/// Some parts, with the case that they are.
struct Parts {
    case: Case,
    /// The items that were asked about.
    items: Vec<PartItem>,
}

impl Parts {
    /// The name of a finding, what happens and what to do; the key of `devboy cost` that shows it best; what the names of
    /// its items are.
    fn of(
        [id, what, advice]: [&String; 3],
        by: &str,
        kinds: &[&'static str],
        items: impl IntoIterator<Item = PartItem>,
    ) -> Self {
        let case = Case {
            id: id.clone(),
            what: what.clone(),
            advice: Advice::Do(advice.clone()),
            made_of: MadeOf::by(kinds),
            ..Case::of(FindingBasis::Shared, &["cost", "--by", by])
        };
        Self { case, items: items.into_iter().collect() }
    }
}

/// A case for each kind of part.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let mut carried = CarriedCosts::new(evidence);
    let parts: Vec<Parts> = KINDS.iter().flat_map(|kind| kind(evidence, &mut carried)).collect();
    let (costs, bill) = (carried.costs(), evidence.bill());
    let whole = evidence.charged(|request| {
        let charge = bill.charge(request);
        Some((charge.spent, charge.cost))
    });
    parts.into_iter().filter_map(|parts| case(parts, &costs, &whole)).collect()
}

fn case(Parts { mut case, items }: Parts, costs: &[Costs], whole: &BTreeMap<(u32, Sym), Sides>) -> Option<Case> {
    case.sides = whole.clone();
    for item in items {
        for (&key, &cost) in &costs[item.item] {
            if let Some(sides) = case.sides.get_mut(&key) {
                sides.policy.cost = sides.policy.cost.less(&cost);
            }
            case.made_of.add(item.names.clone(), key, 0, cost, Cost::default());
        }
        for (key, count) in item.counts {
            *case.counts.entry(key).or_default() += count;
            case.made_of.add(item.names.clone(), key, count, Cost::default(), Cost::default());
        }
    }
    (!case.counts.is_empty()).then_some(case)
}

/// Calls that failed, and readings of what was there already: those that the sheet names, by how their calls ended, each by
/// the tool that was called.
fn calls(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let timeline = &evidence.workload.timeline;
    let outcomes = outcomes(timeline);
    let mut of = |part: &ContextPart| {
        let mut items: BTreeMap<Sym, PartItem> = BTreeMap::new();
        let is_part = |call: u32| outcomes.get(call as usize) == Some(&part.of.outcome());
        for (index, block) in (0..).zip(&timeline.blocks).filter(|(_, block)| is_part(block.call)) {
            let tool = timeline.calls[block.call as usize].tool;
            let name = || vec![timeline.names.text(tool).to_owned()];
            let item = items.entry(tool).or_insert_with(|| carried.item(name()));
            carried.block(item.item, index, 1.0);
        }
        for (_, call) in timeline.counted_calls().filter(|(call, _)| is_part(*call)) {
            if let Some(item) = items.get_mut(&call.tool) {
                *item.counts.entry(evidence.key(timeline.request_of_block(call.asked))).or_default() += 1;
            }
        }
        Parts::of([&part.id, &part.what, &part.advice], "outcome", &["tool"], items.into_values())
    };
    evidence.thresholds.part.iter().map(&mut of).collect()
}

/// Images and documents, in prompts and in results of tools, by the tool that brought them.
fn images(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let timeline = &evidence.workload.timeline;
    let mut items: BTreeMap<String, PartItem> = BTreeMap::new();
    for (index, block) in (0..).zip(&timeline.blocks).filter(|(_, block)| images_of(block) > 0) {
        let tool = timeline.calls.get(block.call as usize).map(|call| timeline.names.text(call.tool).to_owned());
        let name = tool.unwrap_or_else(|| "(in prompts)".to_owned());
        let item = items.entry(name.clone()).or_insert_with(|| carried.item(vec![name]));
        if timeline.counts_block(index) {
            *item.counts.entry(evidence.key(timeline.request_of_block(index))).or_default() += images_of(block);
        }
        carried.block(item.item, index, image_share(evidence, block));
    }
    let section = &evidence.thresholds.images;
    vec![Parts::of([&section.id, &section.what, &section.advice], "content", &["tool"], items.into_values())]
}

/// How many images a block holds.
fn images_of(block: &Block) -> u64 {
    if block.kind == BlockKind::Media { 1 } else { block.media.into() }
}

/// What of a block they are: in a result they stand beside its text.
fn image_share(evidence: &BillEvidence<'_>, block: &Block) -> f64 {
    let rules = &evidence.workload.sizes.rules;
    if block.kind == BlockKind::Media {
        return 1.0;
    }
    rules.framing.media * f64::from(block.media) / rules.estimate(block)
}

type ServerInProject = (Id, Sym);

/// MCP servers that a project is given and never calls: what their instructions and the names of their tools cost, as far as the
/// log has them. Definitions of tools are in no log and not counted. One that the last sessions are not given was taken out.
fn servers(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let (timeline, section) = (&evidence.workload.timeline, &evidence.thresholds.servers);
    let called = server_calls(timeline, &section.resource_tools);
    let project = |addition: &Addition| timeline.session_of(timeline.request(addition.with)).project;
    let offered = || timeline.added.iter().filter(|addition| addition.what == Added::Server && addition.chars > 0);
    let mut sessions: BTreeMap<ServerInProject, BTreeSet<Id>> = BTreeMap::new();
    for addition in offered() {
        let session = timeline.session_of(timeline.request(addition.with)).id;
        sessions.entry((project(addition), addition.name)).or_default().insert(session);
    }
    let of_project = sessions_of_projects(timeline);
    let is_unused = |place: &ServerInProject| {
        let Some(sessions) = sessions.get(place).filter(|given| given.len() as u64 >= section.sessions_min) else {
            return false;
        };
        let server = timeline.names.text(place.1);
        let is_for = |tool: &Sym| is_of_mcp_server(timeline.names.text(*tool), server);
        let is_called =
            called.get(&place.0).is_some_and(|called| !called.resources.is_empty() || called.tools.keys().any(is_for));
        let had = of_project.get(&place.0).into_iter().flatten().map(|(_, id)| sessions.contains(id));
        !is_called && !evidence.thresholds.lately.is_over(&had.collect::<Vec<bool>>())
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
    vec![Parts::of([&section.id, &section.what, &section.advice], "content", &kinds, items.into_values())]
}

/// The sessions of each project, in the order in which they began.
fn sessions_of_projects(timeline: &Timeline) -> BTreeMap<Id, BTreeSet<(Millis, Id)>> {
    let mut sessions: BTreeMap<Id, BTreeSet<(Millis, Id)>> = BTreeMap::new();
    for session in timeline.requests.iter().map(|request| timeline.session_of(request)) {
        sessions.entry(session.project).or_default().insert((session.ts_first, session.id));
    }
    sessions
}

/// Hooks, by the event at which they run: what their texts cost in contexts, and how long somebody waited for them.
fn hooks(evidence: &BillEvidence<'_>, carried: &mut CarriedCosts<'_>) -> Vec<Parts> {
    let (timeline, section) = (&evidence.workload.timeline, &evidence.thresholds.hooks);
    let per_token = evidence.workload.sizes.rules.chars_per_token.text;
    let mut items: BTreeMap<Sym, PartItem> = BTreeMap::new();
    let mut came = Vec::new();
    for addition in timeline.added.iter().filter(|addition| addition.what == Added::Hook) {
        let names = vec![timeline.names.text(addition.name).to_owned()];
        let item = items.entry(addition.name).or_insert_with(|| carried.item(names));
        came.push((item.item, addition.with, f64::from(addition.chars) / per_token));
        if timeline.request(addition.with).counts() {
            *item.counts.entry(evidence.key(addition.with)).or_default() += 1;
        }
    }
    carried.unlogged(&came);
    let mut parts = Parts::of([&section.id, &section.what, &section.advice], "content", &["hook"], items.into_values());
    parts.case.waits = waits(evidence);
    vec![parts]
}

/// How long hooks ran: those of one run side by side, so that the slowest counts. By session.
fn waits(evidence: &BillEvidence<'_>) -> Option<Waits> {
    let timeline = &evidence.workload.timeline;
    let mut runs: BTreeMap<(u32, Sym, Id), u64> = BTreeMap::new();
    let mut by_session: BTreeMap<u32, u64> = BTreeMap::new();
    let session =
        |addition: &Addition| timeline.chains[timeline.requests[addition.with as usize].chain as usize].session;
    let ran = timeline.added.iter().filter(|addition| addition.what == Added::Hook && addition.millis > 0);
    for addition in ran.filter(|addition| timeline.request(addition.with).counts()) {
        let millis = u64::from(addition.millis);
        if addition.run.is_some() {
            let slowest = runs.entry((session(addition), addition.name, addition.run)).or_default();
            *slowest = millis.max(*slowest);
        } else {
            *by_session.entry(session(addition)).or_default() += millis;
        }
    }
    runs.iter().for_each(|((session, ..), millis)| *by_session.entry(*session).or_default() += millis);
    (!by_session.is_empty())
        .then_some(Waits { by_session, seconds_a_day_min: evidence.thresholds.hooks.seconds_a_day_min })
}
