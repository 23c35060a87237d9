//! What is said of a tool response: in published words its shape (Paper 2), and the layer that sent it; and how it shows the
//! text of files. What an agent may want to quote has to stand in an encoding as it stands in the file.

/// The eleven shapes (in published spelling); 0 stands for "not looked at".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
#[derive(strum::IntoStaticStr, strum::EnumString, strum::FromRepr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum BodyShape {
    /// Not classified.
    #[default]
    Unknown = 0,
    /// No JSON members at all.
    Empty = 1,
    /// Running text.
    Prose = 2,
    /// Numbered lines (`12→text`).
    NumberedList = 3,
    /// Lines that start with `- ` or `* `.
    BulletList = 4,
    /// Fenced code.
    CodeBlock = 5,
    /// A pipe table somewhere in the text.
    MarkdownTable = 6,
    /// A JSON object with containers inside, or a mixed array.
    NestedObject = 7,
    /// A JSON object of scalars.
    FlatObject = 8,
    /// A JSON array of objects.
    ArrayOfObjects = 9,
    /// A JSON array of scalars.
    ArrayOfPrimitives = 10,
}

impl BodyShape {
    /// How many there are.
    pub const COUNT: usize = <Self as strum::VariantArray>::VARIANTS.len();

    /// The shape with this number.
    pub fn from_number(number: u8) -> Self {
        Self::from_repr(number).unwrap_or_default()
    }

    /// Whether a body of this shape is one JSON value.
    pub fn is_json(self) -> bool {
        matches!(self, Self::NestedObject | Self::FlatObject | Self::ArrayOfObjects | Self::ArrayOfPrimitives)
    }
}

/// The four layers (published names).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::EnumString)]
#[repr(u8)]
pub enum LayerId {
    /// A hint stands for the body.
    L0 = 0,
    /// The template of the endpoint.
    L1 = 1,
    /// The router's choice.
    L2 = 2,
    /// As it is.
    L3 = 3,
}

impl LayerId {
    /// All layers, in order.
    pub const ALL: [Self; 4] = [Self::L0, Self::L1, Self::L2, Self::L3];

    /// The name in telemetry and reports.
    pub fn key(self) -> &'static str {
        ["L0", "L1", "L2", "L3"][self as usize]
    }
}

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
    /// Whether an agent can quote from the encoding whatever it could quote from the result.
    pub fn suits(self, showing: Showing) -> bool {
        match showing {
            Showing::Nothing => true,
            Showing::Rows => self >= Self::Texts,
            Showing::Lines => self == Self::Lines,
        }
    }
}
