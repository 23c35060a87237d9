//! Malformed lines, counted by reason with the first place of each. Nothing is dropped without a number here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::EnumMessage as _;

/// Why a piece of input was not taken as it stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumMessage, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Reason {
    #[strum(message = "two records on a line, all recovered")]
    Glued,
    /// The file ends inside a record: a write was interrupted or is still going on.
    #[strum(message = "the file ends inside a record")]
    TornTail,
    #[strum(message = "a record breaks off; skipped")]
    TornRecord,
    /// A file that PowerShell's `>` wrote, for instance.
    #[strum(message = "UTF-16: save it as UTF-8; nothing in it is read")]
    Utf16,
    #[strum(message = "not JSON; skipped")]
    ParseError,
    /// Bytes that are not UTF-8; replaced by U+FFFD and read.
    #[strum(message = "bytes that are not UTF-8, replaced")]
    InvalidUtf8,
    #[strum(message = "byte-order mark, ignored")]
    Bom,
    #[strum(message = "CR LF line end, read")]
    Crlf,
    #[strum(message = "NUL bytes: ignored around a record; records that they overwrote are missing")]
    Nul,
    /// Half of a UTF-16 pair in a `\u` escape; kept as such.
    #[strum(message = "half a UTF-16 pair, kept")]
    LoneSurrogate,
    #[strum(message = "blank line")]
    BlankLine,
    #[strum(message = "an array instead of a record; skipped")]
    Array,
    /// A number, string, `true`, `false` or `null` where a record should be.
    #[strum(message = "a bare value instead of a record; skipped")]
    Scalar,
    #[strum(message = "a needed field is absent")]
    MissingField,
    #[strum(message = "a field of another type, or with a value that cannot be")]
    MistypedField,
    /// A number that cannot be: a negative count, a size over 2^32, a share outside of 0 to 1.
    #[strum(message = "a number that cannot be; skipped")]
    OutOfRange,
    /// A word that devboy does not know where a field has a fixed list of them.
    #[strum(message = "a word that is not known; counted as none")]
    UnknownValue,
    #[strum(message = "a record type that is not known; counted")]
    UnknownType,
    #[strum(message = "line over 100 MB; skipped")]
    Oversize,
    #[strum(message = "nested too deep; skipped")]
    TooDeep,
    /// The name of a tool is no name (over-long or with control characters); kept as it is in counts, never configured.
    #[strum(message = "a tool name that is no name")]
    OddToolName,
    #[strum(message = "compressed data breaks off")]
    BrokenCompression,
    /// A compressed file that unpacks to far more than a log would; what came before the limit is used.
    #[strum(message = "unpacks to too much; the rest skipped")]
    UnpacksTooLarge,
    #[strum(message = "could not be read")]
    Unreadable,
}

impl Reason {
    /// All reasons, in the order of reports.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether it is a way of writing that another system has: `devboy doctor` tells of it, and nobody has to be warned.
    pub fn is_way_of_writing(self) -> bool {
        matches!(self, Self::Crlf | Self::Bom | Self::BlankLine)
    }

    /// What became of the input, in a few words.
    pub fn outcome(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}

/// Count of one reason and the line where it was seen first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "(u64, u64)")]
pub struct FirstSeen {
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
