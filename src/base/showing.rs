//! How a tool response shows the text of files, and what an encoding keeps of it.
//!
//! An agent quotes from what it was shown, for instance to edit it. What it may want to quote has to stand in an
//! encoding as it stands in the file.

/// How the lines of a file stand in a result, strictest first; 0 also where nobody looked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, strum::FromRepr)]
#[repr(u8)]
pub enum Showing {
    /// Each line may be one of a file as a whole: `cat`, diffs.
    #[default]
    Lines = 0,
    /// Behind a number, or a path and a number, where there is one; else as above.
    Rows = 1,
    /// No text of files.
    Nothing = 2,
}

impl Showing {
    /// The showing with this number; the strictest for one that does not exist.
    pub fn from_number(number: u8) -> Self {
        Self::from_repr(number).unwrap_or_default()
    }
}

/// What stands in an encoding byte for byte, line by line and in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, strum::FromRepr, strum::IntoStaticStr)]
#[strum(const_into_str)]
#[repr(u8)]
pub enum KeptLines {
    /// Some line does not.
    #[default]
    #[strum(serialize = "no")]
    Nothing = 0,
    /// All lines, but numbers and paths in front of them may be left out or stand elsewhere.
    #[strum(serialize = "text of numbered lines and hits")]
    Texts = 1,
    /// All lines of the body.
    #[strum(serialize = "yes")]
    Lines = 2,
}

impl KeptLines {
    /// What is kept by number; nothing for one that does not exist.
    pub fn from_number(number: u8) -> Self {
        Self::from_repr(number).unwrap_or_default()
    }

    /// Whether an agent can quote from the encoding whatever it could quote from the result.
    pub fn suits(self, showing: Showing) -> bool {
        match showing {
            Showing::Nothing => true,
            Showing::Rows => self >= Self::Texts,
            Showing::Lines => self == Self::Lines,
        }
    }
}
