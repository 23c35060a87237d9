//! Malformed lines, counted by reason with the first place of each. Nothing is dropped without a number here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Why a piece of input was not taken as it stands.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Debug,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(const_into_str, serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Two or more JSON objects on one line; all were recovered.
    Glued,
    /// The file ends inside a record: a write was interrupted or is still going on.
    TornTail,
    /// A record breaks off in the middle of the file.
    TornRecord,
    /// A line (or the rest of one) that is not JSON.
    ParseError,
    /// Bytes that are not UTF-8; replaced by U+FFFD and read.
    InvalidUtf8,
    /// A byte-order mark before a record; ignored.
    Bom,
    /// A line ended by CR LF; read.
    Crlf,
    /// NUL bytes around a record; ignored.
    Nul,
    /// Half of a UTF-16 pair in a `\u` escape; kept as such.
    LoneSurrogate,
    /// A line of white space.
    BlankLine,
    /// An array where a record should be.
    Array,
    /// A number, string, `true`, `false` or `null` where a record should be.
    Scalar,
    /// A field that the record type needs is absent.
    MissingField,
    /// A field with a value of another type than the record type has.
    MistypedField,
    /// A number that cannot be: a negative count, a size over 2^32, a share outside of 0 to 1.
    OutOfRange,
    /// A word that devboy does not know where a field has a fixed list of them.
    UnknownValue,
    /// A record type that devboy does not know; counted by name.
    UnknownType,
    /// A line over the line limit; skipped.
    Oversize,
    /// Containers nested deeper than devboy follows; skipped.
    TooDeep,
    /// The name of a tool is no name (over-long or with control characters); kept as it is in counts, never configured.
    OddToolName,
    /// A compressed file that breaks off or is damaged; what came before is used.
    BrokenCompression,
    /// A compressed file that unpacks to far more than a log would; what came before the limit is used.
    UnpacksTooLarge,
    /// A file or directory that could not be opened or read.
    Unreadable,
}

impl Reason {
    /// All reasons, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// What became of the input, in a few words.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Glued => "two records on a line, all recovered",
            Self::TornTail => "the file ends inside a record",
            Self::TornRecord => "a record breaks off; skipped",
            Self::ParseError => "not JSON; skipped",
            Self::InvalidUtf8 => "bytes that are not UTF-8, replaced",
            Self::Bom => "byte-order mark, ignored",
            Self::Crlf => "CR LF line end, read",
            Self::Nul => "NUL bytes: ignored around a record; records that they overwrote are missing",
            Self::LoneSurrogate => "half a UTF-16 pair, kept",
            Self::BlankLine => "blank line",
            Self::Array => "an array instead of a record; skipped",
            Self::Scalar => "a bare value instead of a record; skipped",
            Self::MissingField => "a needed field is absent",
            Self::MistypedField => "a field of another type",
            Self::OutOfRange => "a number that cannot be; skipped",
            Self::UnknownValue => "a word that is not known; counted as none",
            Self::UnknownType => "a record type that is not known; counted",
            Self::Oversize => "line over 100 MB; skipped",
            Self::TooDeep => "nested too deep; skipped",
            Self::OddToolName => "a tool name that is no name",
            Self::BrokenCompression => "compressed data breaks off",
            Self::UnpacksTooLarge => "unpacks to too much; the rest skipped",
            Self::Unreadable => "could not be read",
        }
    }
}

/// Count of one reason and the line where it was seen first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "(u64, u64)")]
pub struct FirstSeen {
    /// How often.
    pub count: u64,
    /// First line, counted from 1; 0 stands for the file as a whole.
    pub line: u64,
}

impl From<FirstSeen> for (u64, u64) {
    fn from(spot: FirstSeen) -> Self {
        (spot.count, spot.line)
    }
}

/// The damage of one file (or one piece of it).
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Damage(pub BTreeMap<Reason, FirstSeen>);

impl Damage {
    /// Counts one more case at `line`.
    pub fn add(&mut self, reason: Reason, line: u64) {
        self.add_spot(reason, FirstSeen { count: 1, line });
    }

    /// Takes over the damage of a later piece whose first line is `lines_before + 1`.
    pub fn absorb(&mut self, later: &Self, lines_before: u64) {
        for (&reason, spot) in &later.0 {
            let line = if spot.line == 0 { 0 } else { spot.line + lines_before };
            self.add_spot(reason, FirstSeen { count: spot.count, line });
        }
    }

    fn add_spot(&mut self, reason: Reason, spot: FirstSeen) {
        let entry = self.0.entry(reason).or_insert(FirstSeen { count: 0, line: spot.line });
        entry.count += spot.count;
        entry.line = entry.line.min(spot.line);
    }

    /// How often `reason` occurred.
    pub fn count(&self, reason: Reason) -> u64 {
        self.0.get(&reason).map_or(0, |spot| spot.count)
    }
}
