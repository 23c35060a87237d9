//! What a changed context broke: the classes of breaks with their counts, and how old the sources of edits are.

use serde::Serialize;

use crate::base::stats::Share;

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
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
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
    /// A message was dropped that the policy had promised to keep.
    ProtectedDropped,
    /// A call without its result, or the reverse.
    OrphanPair,
    /// The context grew past the window.
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
            Self::ProtectedDropped => ("message dropped that was to be kept", "messages dropped that were to be kept"),
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
    /// What broke.
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
    /// What broke.
    pub class: BreakClass,
    /// How sure it is.
    pub strength: Strength,
    /// Breaks.
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
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Breakage {
    /// Classes with at least one event, in the order of [`BreakClass::ALL`].
    pub classes: Vec<ClassCount>,
    /// Tokens that reading again would bring, each lost reading once and without those that the log reads again itself:
    /// the penalty to hold against a saving.
    pub reread_tokens: u64,
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
    /// Edits.
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
    /// By age.
    pub ages: Vec<SourceAgeRow>,
    /// Edits whose source is nowhere in the chain before.
    pub unsourced: u64,
    /// The curve that follows.
    pub risk: Vec<RiskRow>,
}
