//! Rows of all pieces in one table, and that table in an order that knows nothing of files, pieces and threads.
//!
//! Sessions are numbered by their runs: a recorder that names a session by its process id gives two sessions one name as
//! soon as the system hands that id out again.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use crate::base::id::Id;
use crate::base::names::{Names, Sym};
use crate::logs::trace::Millis;
use crate::telemetry::log::{EncodedTokens, EventLog, RecordedAs, RecordedEvent, encodings_of};
use crate::telemetry::parse::{ParsedRows, RowTexts, SIDE};
use crate::telemetry::read::TelemetryRequest;

/// So many runs more than sessions are taken for sessions that stand in pieces.
const RUNS_MIN: usize = 1_000;

/// What the pieces gave so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    texts: RowTexts,
    events: Vec<RecordedEvent>,
    encodings: Vec<EncodedTokens>,
}

/// Where symbols went.
#[derive(Debug, Default)]
pub(super) struct Routes {
    names: Vec<Sym>,
    sessions: Vec<Sym>,
    agents: Vec<Sym>,
}

impl Routes {
    fn renumber(&self, event: &mut RecordedEvent) {
        event.tool = self.names[event.tool.0 as usize];
        event.endpoint = self.names[event.endpoint.0 as usize];
        event.session = self.sessions[event.session as usize].0;
        if event.chain > SIDE {
            event.chain = self.agents[(event.chain - SIDE) as usize].0 + SIDE;
        }
    }
}

impl Gathered {
    /// Moves the events of a piece here; its buffers are left empty for the next one.
    pub(super) fn take(&mut self, rows: &mut ParsedRows, texts: &RowTexts, routes: &mut Routes) {
        extend(&mut routes.names, &mut self.texts.names, &texts.names);
        extend(&mut routes.sessions, &mut self.texts.sessions, &texts.sessions);
        extend(&mut routes.agents, &mut self.texts.agents, &texts.agents);
        let encodings_before = u32::try_from(self.encodings.len()).expect("fewer than 2^32 encodings");
        self.encodings.append(&mut rows.encodings);
        self.events.extend(rows.events.drain(..).map(|mut event| {
            routes.renumber(&mut event);
            if event.encodings_count > 0 {
                event.encodings_start += encodings_before;
            }
            event
        }));
    }

    /// The log, and how many copies of its events stood elsewhere. Names and sessions are numbered by their text, chains by
    /// session and name with the main thread first, encodings by event. In a window that begins somewhere the partitions of
    /// each chain count from the first that is left: what ended before is none of the window's.
    pub(super) fn into_log(self, request: &TelemetryRequest) -> (EventLog, u64) {
        let Self { texts, mut events, encodings } = self;
        events.shrink_to_fit();
        let (names, name_ranks) = sorted(&texts.names);
        let (sessions, session_ranks) = sorted(&texts.sessions);
        let (_, agent_ranks) = sorted(&texts.agents);
        let ranks = Routes { names: name_ranks, sessions: session_ranks, agents: agent_ranks };
        events.par_iter_mut().for_each(|event| ranks.renumber(event));
        let sessions = number_sessions(&mut events, sessions.texts(), request.recycled_gap_ms);
        let has_copies = sort(&mut events, sessions.len(), &encodings);
        if request.window.start > Millis::MIN {
            count_partitions_anew(&mut events);
        }
        let copies = if has_copies { merge_copies(&mut events, &encodings) } else { 0 };
        let encodings = in_order(&mut events, &encodings);
        let log = EventLog {
            names: names.into(),
            sessions: sessions.into(),
            events,
            encodings: encodings.into(),
            ..EventLog::default()
        };
        (log, copies)
    }
}

/// Interns what is new in a worker's table.
fn extend(routes: &mut Vec<Sym>, all: &mut Names, own: &Names) {
    let new = &own.texts()[routes.len()..];
    routes.extend(new.iter().map(|text| all.intern(text)));
}

/// The same names in alphabetical order, and the new number of each old symbol. The empty name stays the first.
fn sorted(names: &Names) -> (Names, Vec<Sym>) {
    let mut texts = names.texts().to_vec();
    texts.sort_unstable();
    let sorted = Names::from_texts(texts);
    let ranks = names.texts().iter().map(|text| sorted.find(text).unwrap_or_default()).collect();
    (sorted, ranks)
}

/// Puts the events in order and numbers the chains: sessions first, which mostly stand in one piece each, then each one by
/// itself. Says whether there are copies, which mostly there are not.
fn sort(events: &mut [RecordedEvent], sessions: usize, encodings: &[EncodedTokens]) -> bool {
    let runs = runs(events);
    if runs.len() > 2 * sessions + RUNS_MIN {
        // Sessions that are mixed with each other, event by event.
        events.par_sort_unstable_by(|a, b| order(a, b, encodings));
    } else {
        bring_together(events, runs);
    }
    let chains = events.par_chunk_by_mut(|a, b| a.session == b.session).map(|session| {
        let order = |a: &RecordedEvent, b: &RecordedEvent| order(a, b, encodings);
        if !session.is_sorted_by(|a, b| order(a, b).is_le()) {
            session.sort_unstable_by(order);
        }
        let has_copies = session.windows(2).any(|pair| is_copy(&pair[1], &pair[0], encodings));
        (number_chains(session), has_copies)
    });
    let (chains, copies): (Vec<u32>, Vec<bool>) = chains.collect();
    // Each session has events, and they stand in the order of their numbers.
    let first = sums_before(&chains);
    events.par_iter_mut().for_each(|event| event.chain += first[event.session as usize]);
    copies.contains(&true)
}

/// Where events of one session stand together.
fn runs(events: &[RecordedEvent]) -> Vec<Range<usize>> {
    let runs = events.par_chunk_by(|a, b| a.session == b.session).map(<[RecordedEvent]>::len);
    let mut start = 0;
    let range = |length| {
        start += length;
        start - length..start
    };
    runs.collect::<Vec<usize>>().into_iter().map(range).collect()
}

/// Moves whole runs to their places by session, in place: there is no room for a second copy of all events. Files are read in
/// order, so that most runs only change places with their neighbours: such stretches are put in order side by side.
fn bring_together(events: &mut [RecordedEvent], mut runs: Vec<Range<usize>>) {
    runs.sort_by_key(|run| (events[run.start].session, run.start));
    let (mut stretches, mut rest) = (Vec::new(), events);
    let (mut start, mut first, mut held, mut end) = (0, 0, 0, 0);
    for (at, run) in runs.iter().enumerate() {
        (held, end) = (held + run.len(), end.max(run.end));
        // What belongs up to here is all that stands there.
        if held == end {
            let stretch;
            (stretch, rest) = std::mem::take(&mut rest).split_at_mut(end - start);
            stretches.push((stretch, start, &runs[first..=at]));
            (start, first) = (end, at + 1);
        }
    }
    let unordered = stretches.into_par_iter().filter(|(.., runs)| runs.len() > 1);
    unordered.for_each(|(events, start, runs)| put_in_order(events, start, runs));
}

/// Moves runs that stand behind a place to where the list has them.
fn put_in_order(events: &mut [RecordedEvent], start: usize, runs: &[Range<usize>]) {
    // Where each event comes from, run by run; followed around each circle of moves once.
    let mut from: Vec<u32> = Vec::with_capacity(events.len());
    runs.iter().for_each(|run| from.extend((run.start - start) as u32..(run.end - start) as u32));
    for start in 0..events.len() {
        let mut to = start;
        let lifted = events[start];
        loop {
            let source = std::mem::replace(&mut from[to], to as u32) as usize;
            if source == to {
                break;
            }
            if source == start {
                events[to] = lifted;
                break;
            }
            events[to] = events[source];
            to = source;
        }
    }
}

/// Leaves one of all events that are the same in everything but what is known only later (annotations, how a race ended) and
/// the names of content and file, which stand beside each other, and says how many went: nobody calls a tool twice under one
/// id, so the others stood in copies of a file, or in what devboy emitted under the key of another cache. What is known stays,
/// and of two names the same one for all copies of a content or file.
/// Responses without the id of a call may be alike by chance; they all stay.
fn merge_copies(events: &mut Vec<RecordedEvent>, encodings: &[EncodedTokens]) -> u64 {
    let before = events.len();
    events.dedup_by(|next, kept| {
        let is_copy = is_copy(next, kept, encodings);
        if is_copy {
            (kept.body, kept.path) = (kept.body.min(next.body), kept.path.min(next.path));
            kept.plan.cited = kept.plan.cited.max(next.plan.cited);
            kept.plan.race = kept.plan.race.max(next.plan.race);
        }
        is_copy
    });
    (before - events.len()) as u64
}

/// Whether an event is the same as the one before it, as far as [`merge_copies`] asks.
fn is_copy(next: &RecordedEvent, kept: &RecordedEvent, encodings: &[EncodedTokens]) -> bool {
    let has_identity = next.call != 0 || next.what != RecordedAs::Response;
    has_identity
        && (next.session, next.ts, next.call) == (kept.session, kept.ts, kept.call)
        && recorded_order(&unnamed(kept), &unnamed(next), encodings).is_eq()
}

/// An event but for the names of its content and file, as far as it has any.
fn unnamed(event: &RecordedEvent) -> RecordedEvent {
    let body = if event.body.is_some() { Id([u8::MAX; 16]) } else { Id::NONE };
    RecordedEvent { body, path: u32::from(event.path > 0), ..*event }
}

/// The order of a log, and behind it everything else that tells two events apart: equals are the same in all fields.
fn order(a: &RecordedEvent, b: &RecordedEvent, encodings: &[EncodedTokens]) -> Ordering {
    let known_later = |event: &RecordedEvent| (event.plan.cited, event.plan.race);
    recorded_order(a, b, encodings).then_with(|| known_later(a).cmp(&known_later(b)))
}

fn recorded_order(a: &RecordedEvent, b: &RecordedEvent, encodings: &[EncodedTokens]) -> Ordering {
    let rest = |event: &RecordedEvent| {
        let plan = event.plan;
        (
            (event.step, event.tool, event.endpoint, event.path, event.bytes, event.shape, event.inner_formats),
            (event.depth, event.columns, event.rows, event.items, event.key_stability.to_bits()),
            (event.layer, event.format, event.baseline, event.sent, event.weight.to_bits()),
            (event.content, event.handle_tokens, event.what, plan.prefetched, plan.predicted, plan.declined),
        )
    };
    let encoded = |event: &RecordedEvent| {
        let costs = encodings_of(event, encodings).iter();
        costs.map(|cost| (cost.format, cost.depth, cost.tokens))
    };
    a.key().cmp(&b.key()).then_with(|| rest(a).cmp(&rest(b))).then_with(|| encoded(a).cmp(encoded(b)))
}

/// Gives each chain of a session a number of its own, in the order of the events; how many there are.
fn number_chains(session: &mut [RecordedEvent]) -> u32 {
    let mut chains = 0;
    for chain in session.chunk_by_mut(|a, b| a.chain == b.chain) {
        chain.iter_mut().for_each(|event| event.chain = chains);
        chains += 1;
    }
    chains
}

/// Makes the first partition of each chain the first.
fn count_partitions_anew(events: &mut [RecordedEvent]) {
    for chain in events.chunk_by_mut(|a, b| a.chain == b.chain) {
        let first = chain[0].partition;
        chain.iter_mut().for_each(|event| event.partition -= first);
    }
}

fn in_order(events: &mut [RecordedEvent], encodings: &[EncodedTokens]) -> Vec<EncodedTokens> {
    let mut ordered = Vec::new();
    if encodings.is_empty() {
        return ordered;
    }
    ordered.reserve_exact(encodings.len());
    for event in events.iter_mut().filter(|event| event.encodings_count > 0) {
        let start = u32::try_from(ordered.len()).expect("as many encodings as before");
        ordered.extend_from_slice(encodings_of(event, encodings));
        event.encodings_start = start;
    }
    ordered
}

/// Numbers the sessions by name, and the runs of a session named by a process id (`mcp_123`) one after the other in the
/// order of time: a new one begins where the partition of a chain falls, or behind a gap of more than `gap_ms`. Returns
/// the names; the second run is called `mcp_123#2`.
///
/// [`RecordedEvent::session`] is the place of the name in `names` before, and that in what is returned afterwards.
fn number_sessions(events: &mut [RecordedEvent], names: &[String], gap_ms: u64) -> Vec<String> {
    let mut runs = vec![0_u32; names.len()];
    for run in self::runs(events) {
        runs[events[run.start].session as usize] = 1;
    }
    let rows = recycled_rows(events, names);
    let run_of_row = split(events, &rows, &mut runs, gap_ms);
    let first = sums_before(&runs);
    events.par_iter_mut().for_each(|event| event.session = first[event.session as usize]);
    for (row, run) in rows.into_iter().zip(run_of_row) {
        events[row as usize].session += run;
    }
    names.iter().zip(runs).flat_map(|(name, count)| (1..=count).map(|run| run_name(name, run))).collect()
}

/// What all counts before each come to.
fn sums_before(counts: &[u32]) -> Vec<u32> {
    let sum_of = |sum: &mut u32, count: &u32| Some(std::mem::replace(sum, *sum + count));
    counts.iter().scan(0, sum_of).collect()
}

fn run_name(session: &str, run: u32) -> String {
    if run == 1 { session.to_owned() } else { format!("{session}#{run}") }
}

/// Whether a recorder named a session by the id of its process.
pub(super) fn is_process_id(session: &str) -> bool {
    let digits = session.strip_prefix("mcp_").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The events of sessions named by a process id, by session and time. Of equal times the smaller partition comes first,
/// so that none falls where nobody can tell.
fn recycled_rows(events: &[RecordedEvent], names: &[String]) -> Vec<u32> {
    let recycled: Vec<bool> = names.iter().map(|name| is_process_id(name)).collect();
    if !recycled.contains(&true) {
        return Vec::new();
    }
    let mut rows: Vec<u32> =
        (0..).zip(events).filter(|(_, event)| recycled[event.session as usize]).map(|(row, _)| row).collect();
    rows.sort_unstable_by_key(|&row| {
        let event = &events[row as usize];
        (event.session, event.ts, event.partition, event.chain)
    });
    rows
}

/// The run of each row, counted from 0 within its session; `runs` is raised to their number.
fn split(events: &[RecordedEvent], rows: &[u32], runs: &mut [u32], gap_ms: u64) -> Vec<u32> {
    let mut before: Option<(u32, Millis)> = None;
    let mut partitions: BTreeMap<u32, u32> = BTreeMap::new();
    let mut run_of_row = Vec::with_capacity(rows.len());
    for &row in rows {
        let event = &events[row as usize];
        let run = &mut runs[event.session as usize];
        match before {
            Some((session, ts)) if session == event.session => {
                let falls = partitions.get(&event.chain).is_some_and(|&last| event.partition < last);
                if falls || event.ts.abs_diff(ts) > gap_ms {
                    *run += 1;
                    partitions.clear();
                }
            }
            _ => partitions.clear(),
        }
        before = Some((event.session, event.ts));
        partitions.insert(event.chain, event.partition);
        run_of_row.push(*run - 1);
    }
    run_of_row
}
