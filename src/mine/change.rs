//! What changed between two sides of a comparison.

use std::collections::BTreeMap;

use crate::base::stats::Share;

/// A side: logs, a window of them, or a published table.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Pairs by tools and lag, and the sessions with one where they are known.
    pub edges: BTreeMap<(String, String, u32), (u64, Option<u64>)>,
    /// Sizes of answers by tool.
    pub sizes: BTreeMap<String, SizeSide>,
}

/// Sizes of the answers of one tool.
#[derive(Clone, Debug, Default)]
pub struct SizeSide {
    /// Answers.
    pub n: u64,
    /// Their median in code points.
    pub median: u64,
    /// Sessions with one, where they are known.
    pub sessions: Option<u64>,
    /// The single sizes, ascending, where they are known.
    pub chars: Option<Vec<u32>>,
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    /// A follow-up.
    Edge,
    /// The size of answers.
    Size,
}

impl What {
    /// The name in reports.
    pub fn key(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Size => "size",
        }
    }
}

/// One edge or size on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// What it is about.
    pub what: What,
    /// The tool; of an edge the earlier one.
    pub name: String,
    /// The later tool of an edge.
    pub to: String,
    /// Lag of an edge.
    pub lag: Option<u32>,
    /// Of an edge, pairs of all pairs of the earlier tool; of a size, answers beyond one side's median.
    pub a: Share,
    /// The same on the second side.
    pub b: Share,
    /// Median size on the first side.
    pub median_a: Option<u64>,
    /// Median size on the second side.
    pub median_b: Option<u64>,
    /// The fewest sessions behind it on a side that has it, where that is known.
    pub sessions_min: Option<u64>,
    /// Probability of such a difference if nothing changed.
    pub p: Option<f64>,
    /// The same after Benjamini–Hochberg.
    pub q: Option<f64>,
    /// Whether the change is more than chance.
    pub changed: bool,
}
