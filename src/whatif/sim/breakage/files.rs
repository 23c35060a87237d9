//! Which file a call is about, when the chain named it before, and when it was last read. And the yardsticks of the log alone
//! for every simulated loss: how old the newest verbatim sources of edits are, in human turns, and how often a file is read
//! that the chain has read before, after real compactions and everywhere else.

use std::ops::Range;

use crate::base::id::IdMap;
use crate::base::names::Sym;
use crate::base::stats::Share;
use crate::logs::timeline::requests::{BlockKind, Marks, NONE, Reference, ReferenceKind, Timeline};
use crate::whatif::compaction::outcome::Rereads;
use crate::whatif::sim::breakage::rows::{EditAges, RiskRow, SourceAgeRow};
use crate::whatif::sim::breakage::{BreakageThresholds, FileTools};
use crate::whatif::sim::figures::Portion;

/// The calls that a request answered with, as indices into [`Timeline::calls`].
pub fn calls_of(timeline: &Timeline, request: u32) -> Range<usize> {
    let outputs = &timeline.request(request).outputs;
    let start = timeline.calls.partition_point(|call| call.asked < outputs.start);
    start..start + timeline.calls[start..].iter().take_while(|call| call.asked < outputs.end).count()
}

/// What a call does with the file that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    Edit,
    /// Anything else.
    Other,
}

/// Calls on files, call by call parallel to [`Timeline::calls`].
pub struct Files {
    /// What a call does.
    pub access: Vec<Access>,
    before: Vec<u32>,
    /// Block of the newest result of reading the same file before a call, or [`NONE`].
    pub reading: Vec<u32>,
}

impl Files {
    /// Goes through all calls once.
    pub fn of(timeline: &Timeline, tools: &FileTools) -> Self {
        let syms = |names: &[String]| names.iter().filter_map(|name| timeline.names.find(name)).collect::<Vec<Sym>>();
        let (read, edit) = (syms(&tools.read), syms(&tools.edit));
        let access: Vec<Access> = timeline
            .calls
            .iter()
            .map(|call| match call.tool {
                _ if call.path == NONE => Access::Other,
                tool if read.contains(&tool) => Access::Read,
                tool if edit.contains(&tool) => Access::Edit,
                _ => Access::Other,
            })
            .collect();
        let mut files =
            Self { access, before: vec![NONE; timeline.calls.len()], reading: vec![NONE; timeline.calls.len()] };
        files.link(timeline);
        files
    }

    /// Calls of one request are made at once: they link to earlier requests, not to each other.
    fn link(&mut self, timeline: &Timeline) {
        let mut newest: IdMap<(u32, u32), (u32, u32)> = IdMap::default();
        for request in 0..u32::try_from(timeline.requests.len()).expect("fewer than 2^32 requests") {
            let chain = timeline.request(request).chain;
            let calls = calls_of(timeline, request);
            for index in calls.clone() {
                let known = newest.get(&(timeline.calls[index].path, chain)).copied();
                (self.before[index], self.reading[index]) = known.unwrap_or((NONE, NONE));
            }
            for index in calls {
                let call = &timeline.calls[index];
                if call.path == NONE {
                    continue;
                }
                let entry = newest.entry((call.path, chain)).or_insert((NONE, NONE));
                entry.0 = u32::try_from(index).expect("fewer than 2^32 calls");
                if self.access[index] == Access::Read && call.answered != NONE && !call.is_error {
                    entry.1 = call.answered;
                }
            }
        }
    }

    /// Earlier calls of the chain that name the same file, newest first.
    pub fn before(&self, call: usize) -> impl Iterator<Item = u32> {
        let link = |call: usize| Some(self.before[call]).filter(|&before| before != NONE);
        std::iter::successors(link(call), move |&before| link(before as usize))
    }
}

/// Measures every edit of the timeline. The current turn has age 0.
pub fn edit_ages(timeline: &Timeline, thresholds: &BreakageThresholds) -> EditAges {
    let edits = timeline.counted_references().filter(|reference| reference.kind == ReferenceKind::EditSource);
    let ages: Vec<Option<u32>> = edits.map(|edit| age(timeline, edit)).collect();
    let between = |from: u32, to: Option<u32>| {
        let inside = ages.iter().flatten().filter(|&&age| age >= from && to.is_none_or(|to| age <= to)).count();
        inside as u64
    };
    let rows = thresholds.ages.from.iter().enumerate().map(|(place, &from)| {
        let to = thresholds.ages.from.get(place + 1).map(|&next| next - 1);
        SourceAgeRow { from, to, edits: between(from, to) }
    });
    let all = ages.len() as u64;
    let risk = thresholds.risk.iter().map(|point| {
        let at_risk = Share::new(between(point.kept_turns, None), all);
        let distance = (at_risk.value() * 100.0 - point.expected_percent).abs();
        RiskRow {
            kept_turns: point.kept_turns,
            at_risk,
            expected_percent: point.expected_percent,
            is_met: (all > 0).then_some(distance <= thresholds.bars.risk_tolerance_points),
        }
    });
    EditAges {
        edits: all,
        unsourced: ages.iter().filter(|age| age.is_none()).count() as u64,
        ages: rows.collect(),
        risk: risk.collect(),
    }
}

/// Sources stand in the order of their blocks, so the last one is the newest.
fn age(timeline: &Timeline, edit: &Reference) -> Option<u32> {
    let sources = &timeline.sources[edit.sources.start as usize..edit.sources.end as usize];
    let turn = turn_of(timeline, sources.last()?.block);
    Some(timeline.request(edit.request).turn.saturating_sub(turn))
}

/// The human turn of a block within its chain. Results that came before the person wrote belong to the turn before.
pub fn turn_of(timeline: &Timeline, block: u32) -> u32 {
    let request = timeline.request(timeline.request_of_block(block));
    let is_human = |&index: &u32| timeline.blocks[index as usize].kind == BlockKind::Human;
    let opened = request.inputs.clone().find(is_human).filter(|_| request.marks.has(Marks::HUMAN));
    if opened.is_some_and(|human| block < human) { request.turn.saturating_sub(1) } else { request.turn }
}

/// Counts the readings within the sheet's number of tool calls after each compaction, and the rest as the control.
pub fn rereads(timeline: &Timeline, files: &Files, thresholds: &BreakageThresholds) -> Rereads {
    let (mut compactions, mut compactions_with_one, mut reads, mut reads_again) = (0, 0, 0, 0);
    let mut is_after = vec![false; timeline.calls.len()];
    for (place, boundary) in timeline.boundaries.iter().enumerate() {
        let requests = &timeline.chain(boundary.chain).requests;
        if boundary.request >= requests.end {
            continue; // nothing was asked after it
        }
        let next = timeline.boundaries[place + 1..].iter().filter(|later| later.chain == boundary.chain);
        let end = next.map(|later| later.request).filter(|&later| later > boundary.request).min();
        let calls = (boundary.request..end.unwrap_or(requests.end)).flat_map(|request| calls_of(timeline, request));
        let old = timeline.request(boundary.request).inputs.start;
        let mut again = 0;
        for call in calls.take(thresholds.report.calls_after) {
            is_after[call] = true;
            if files.access[call] == Access::Read {
                reads += 1;
                let was_read = files.before(call).any(|earlier| {
                    files.access[earlier as usize] == Access::Read && timeline.calls[earlier as usize].asked < old
                });
                again += u64::from(was_read);
            }
        }
        compactions += 1;
        reads_again += again;
        compactions_with_one += u64::from(again > 0);
    }
    let counted = timeline.counted_calls().map(|(call, _)| call as usize);
    let readings = counted.filter(|&call| !is_after[call] && files.access[call] == Access::Read);
    let mut elsewhere = Portion::default();
    readings.for_each(|call| elsewhere.count(files.reading[call] != NONE));
    let elsewhere = Share::new(elsewhere.k, elsewhere.n);
    Rereads { compactions, compactions_with_one, reads, reads_again, elsewhere }
}
