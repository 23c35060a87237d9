//! The layers of the pipeline, by their published names.

/// The four layers (published names).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
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
