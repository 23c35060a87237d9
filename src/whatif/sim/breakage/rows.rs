//! What a changed context broke: the classes of breaks, and how old the sources of edits are. Breaks are added up by class:
//! events, sessions, rate and examples, beside what the same detector says of the log as it is.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::base::stats::Share;
use crate::logs::timeline::requests::{NONE, Reference, ReferenceKind, Timeline};
use crate::whatif::sim::breakage::detect::{Detectors, ShownBlocks};
use crate::whatif::sim::breakage::files::Access;
use crate::whatif::sim::figures::Portion;

/// How sure it is that something broke.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// The log's next step would have been refused, or would have needed another request.
    Hard,
    /// The model may have known it from elsewhere.
    Soft,
    /// The simulation itself is wrong, unless the simulated rule is known to do this.
    Bug,
}

/// Kinds of breaks (policies.md 1.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum BreakClass {
    /// An edit whose old text stood in the context of the log and no longer does.
    EditSourceLost,
    /// The same for an identifier that the model wrote.
    RefLost,
    /// The same for the path of a file that is read or edited: the file would have been read again.
    RereadPredicted,
    /// A tool was used that was not offered.
    ToolMiss,
    /// A miss that the allowed retries did not mend.
    Unrecovered,
    /// A result was removed before any request could see it.
    ClearedBeforeSeen,
    /// A request lost messages that the policy had promised to keep.
    ProtectedDropped,
    /// A call without its result, or the reverse.
    OrphanPair,
    /// The context, as it is sent in the end, is longer than the window.
    Overflow,
    /// A hint that points at something removed.
    DanglingRef,
}

impl BreakClass {
    /// All classes, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether all its events are events of another class as well.
    pub fn is_part_of_another(self) -> bool {
        self == Self::Unrecovered
    }

    /// What so many of its events are, behind their number.
    pub fn words(self, events: u64) -> &'static str {
        let (one, many) = match self {
            Self::EditSourceLost => ("edit of text that is gone", "edits of text that is gone"),
            Self::RefLost => ("mention of text that is gone", "mentions of text that is gone"),
            Self::RereadPredicted => ("file to be read again", "files to be read again"),
            Self::ToolMiss => ("call of a hidden tool", "calls of a hidden tool"),
            Self::Unrecovered => ("that nothing makes good", "that nothing makes good"),
            Self::ClearedBeforeSeen => ("result cleared before it was seen", "results cleared before they were seen"),
            Self::ProtectedDropped => {
                ("request that lost what was to be kept", "requests that lost what was to be kept")
            }
            Self::OrphanPair => {
                ("call without its result, or the reverse", "calls without their result, or the reverse")
            }
            Self::Overflow => ("context longer than the window", "contexts longer than the window"),
            Self::DanglingRef => ("hint at text that is gone", "hints at text that is gone"),
        };
        if events == 1 { one } else { many }
    }

    /// How sure it is.
    pub fn strength(self) -> Strength {
        match self {
            Self::RefLost | Self::RereadPredicted => Strength::Soft,
            Self::OrphanPair => Strength::Bug,
            _ => Strength::Hard,
        }
    }
}

/// One break.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Break {
    /// Index of the request whose answer shows it.
    pub request: u32,
    /// Index of the call that shows it, or [`crate::logs::timeline::requests::NONE`].
    pub call: u32,
    pub class: BreakClass,
    /// Block of the newest result of reading the file at stake, [`crate::logs::timeline::requests::NONE`] without one.
    pub reading: u32,
    /// Tokens of that result: what reading the file again would bring. 0 without one.
    pub reread_tokens: u64,
    /// Whether the call is itself a reading, so that the log's own bill has it already.
    pub is_reading: bool,
    /// Whether the log has more occurrences than were kept, so that the break may be none.
    pub is_upper_bound: bool,
}

impl Break {
    /// Of something that is no reading.
    pub fn new(class: BreakClass, request: u32, call: u32) -> Self {
        Self { request, call, class, reading: NONE, reread_tokens: 0, is_reading: false, is_upper_bound: false }
    }
}

/// Where a break can be looked up: ids only.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BreakExample {
    /// Pseudonym of the session.
    pub session: String,
    /// Hash of `message.id` of the answer.
    pub message: String,
    /// Hash of the `tool_use` id; empty where the break shows in text.
    pub call: String,
    /// Hash of the `uuid` of the record.
    pub record: String,
}

/// The breaks of one class.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClassCount {
    pub class: BreakClass,
    pub strength: Strength,
    pub events: u64,
    /// Of these, how many the log shows too few occurrences for to be sure.
    pub upper_bound: u64,
    /// Sessions with at least one.
    pub sessions: u64,
    /// Events per 1,000 requests of the replay.
    pub per_1k_requests: f64,
    /// Tokens of the files to be read again, every event by itself.
    pub reread_tokens: u64,
    /// What the same detector says of the log as it is: for lost things nothing of all that was checked, for readings
    /// the share that repeats an earlier one although nothing was removed. None where the log has no such case.
    pub control: Option<Share>,
    /// The first few.
    pub examples: Vec<BreakExample>,
}

/// All breaks of a replay.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Breakage {
    /// Classes with at least one event, in the order of [`BreakClass::ALL`].
    pub classes: Vec<ClassCount>,
    /// Tokens that reading again would bring, each lost reading once and without those that the log reads again itself:
    /// the penalty to hold against a saving.
    pub reread_tokens: u64,
    /// Steps of the log that surely break, and others that may: several events can be of one step.
    #[serde(skip)]
    pub steps: (u64, u64),
}

impl Breakage {
    /// Events of a class.
    pub fn events(&self, class: BreakClass) -> u64 {
        self.classes.iter().find(|count| count.class == class).map_or(0, |count| count.events)
    }

    /// Events that are so sure, each once.
    pub fn events_of(&self, strength: Strength) -> u64 {
        let classes = self.classes.iter().filter(|one| one.strength == strength && !one.class.is_part_of_another());
        classes.map(|one| one.events).sum()
    }
}

/// How many edits have a newest source of this age.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SourceAgeRow {
    /// Smallest age in human turns.
    pub from: u32,
    /// Largest; none for the last row.
    pub to: Option<u32>,
    pub edits: u64,
}

/// Edits that lose their source when all but the last turns are cut.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RiskRow {
    /// Human turns that are kept, the current one included.
    pub kept_turns: u32,
    /// Edits at risk of all edits.
    pub at_risk: Share,
    /// The share measured on the reference corpus (policies.md 1.7), in percent.
    pub expected_percent: f64,
    /// Whether the share lies within the tolerance of the bar; none without edits.
    pub is_met: Option<bool>,
}

/// Ages of the newest verbatim sources of edits.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EditAges {
    /// All edits with a line that is long enough to be looked for.
    pub edits: u64,
    pub ages: Vec<SourceAgeRow>,
    /// Edits whose source is nowhere in the chain before.
    pub unsourced: u64,
    /// The curve that follows.
    pub risk: Vec<RiskRow>,
}

/// Sums the breaks of a replay over `requests` requests. The order of `breaks` does not matter.
pub fn tally(detectors: &Detectors<'_>, breaks: &[Break], requests: u64) -> Breakage {
    let mut breaks = breaks.to_vec();
    breaks.sort_unstable();
    let classes = BreakClass::ALL.iter().copied().filter_map(|class| {
        let events: Vec<&Break> = breaks.iter().filter(|event| event.class == class).collect();
        (!events.is_empty()).then(|| count(detectors, class, &events, requests))
    });
    let steps = steps(&breaks);
    let so_sure = |strength| steps.iter().filter(|(_, of)| *of == strength).count() as u64;
    Breakage {
        classes: classes.collect(),
        reread_tokens: penalty(&breaks),
        steps: (so_sure(Strength::Hard), so_sure(Strength::Soft)),
    }
}

fn count(detectors: &Detectors<'_>, class: BreakClass, events: &[&Break], requests: u64) -> ClassCount {
    let Detectors { timeline, thresholds, .. } = detectors;
    let session = |event: &&Break| timeline.session_of_chain(timeline.request(event.request).chain);
    let sessions: BTreeSet<u32> = events.iter().map(session).collect();
    ClassCount {
        class,
        strength: class.strength(),
        events: events.len() as u64,
        upper_bound: events.iter().filter(|event| event.is_upper_bound).count() as u64,
        sessions: sessions.len() as u64,
        per_1k_requests: events.len() as f64 * 1000.0 / requests.max(1) as f64,
        reread_tokens: events.iter().map(|event| event.reread_tokens).sum(),
        control: control(detectors, class),
        examples: events.iter().take(thresholds.report.examples_max).map(|event| example(timeline, event)).collect(),
    }
}

/// The steps of the log that break, each once and as surely as the surest of its breaks, with their requests: an edit whose
/// text is gone names its file as well.
pub fn steps(breaks: &[Break]) -> Vec<(u32, Strength)> {
    let mut steps: Vec<_> = breaks.iter().map(|one| (one.request, one.call, one.class.strength())).collect();
    // The surest is the least.
    steps.sort_unstable();
    steps.dedup_by_key(|(request, call, _)| (*request, *call));
    steps.into_iter().map(|(request, _, strength)| (request, strength)).collect()
}

/// One reading brings a file back for all that comes after, so each lost reading is paid for once; and what the log
/// reads again by itself is in its bill already.
pub fn penalty(breaks: &[Break]) -> u64 {
    penalties(breaks).map(|event| event.reread_tokens).sum()
}

/// The breaks that are paid for: the first one of each lost reading.
pub fn penalties(breaks: &[Break]) -> impl Iterator<Item = &Break> {
    let mut seen = BTreeSet::new();
    let unpaid = breaks.iter().filter(|event| event.reading != NONE && !event.is_reading);
    unpaid.filter(move |event| seen.insert(event.reading))
}

/// With nothing removed nothing is lost: the trials say on how much that rests.
fn control(detectors: &Detectors<'_>, class: BreakClass) -> Option<Share> {
    let timeline = detectors.timeline;
    let references = |kind: fn(ReferenceKind) -> bool| {
        let found =
            timeline.counted_references().filter(|reference| kind(reference.kind) && is_sourced(timeline, reference));
        Share::new(0, found.count() as u64)
    };
    match class {
        BreakClass::EditSourceLost => Some(references(|kind| kind == ReferenceKind::EditSource)),
        BreakClass::RefLost => {
            Some(references(|kind| !matches!(kind, ReferenceKind::EditSource | ReferenceKind::ReadPath)))
        }
        BreakClass::RereadPredicted => Some(natural_rereads(detectors)),
        _ => None,
    }
}

/// Whether the log's own context shows a source.
pub fn is_sourced(timeline: &Timeline, reference: &Reference) -> bool {
    let sources = &timeline.sources[reference.sources.start as usize..reference.sources.end as usize];
    let shown = ShownBlocks::to(timeline, reference.request);
    sources.iter().any(|source| shown.contains(source.block))
}

/// Readings of a file whose last reading still stands in the log's own context.
fn natural_rereads(detectors: &Detectors<'_>) -> Share {
    let Detectors { timeline, files, .. } = detectors;
    let counted = timeline.counted_calls().map(|(call, _)| call as usize);
    let readings = counted.filter(|&call| files.access[call] == Access::Read);
    let mut again = Portion::default();
    for call in readings {
        let shown = || ShownBlocks::to(timeline, timeline.request_of_block(timeline.calls[call].asked));
        let before = files.reading[call];
        again.count(before != NONE && shown().contains(before));
    }
    Share::new(again.k, again.n)
}

fn example(timeline: &Timeline, event: &Break) -> BreakExample {
    let request = timeline.request(event.request);
    let call = timeline.calls.get(event.call as usize);
    let block = call.map_or(request.outputs.start, |call| call.asked);
    BreakExample {
        session: timeline.session_of(request).id.to_string(),
        message: request.id.to_string(),
        call: call.map_or_else(String::new, |call| call.id.to_string()),
        record: timeline.blocks.get(block as usize).map_or_else(String::new, |block| block.record.to_string()),
    }
}
