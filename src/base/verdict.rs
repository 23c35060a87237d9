//! How a figure stands to its target: *pass* and *fail* only where its whole interval says so, else *open*.

/// What a figure should reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Reached, even at the worse end of its interval.
    Pass,
    /// Missed, even at the better end.
    Fail,
    /// The interval reaches across the target: nobody knows yet.
    Open,
    /// Nothing to judge, or no target.
    NotApplicable,
}

impl Verdict {
    /// Of an interval.
    pub fn of((lower, upper): (f64, f64), target: Target) -> Self {
        let (reached, missed) = match target {
            Target::AtLeast(least) => (lower >= least, upper < least),
            Target::AtMost(most) => (upper <= most, lower > most),
        };
        match (reached, missed) {
            (true, _) => Self::Pass,
            (_, true) => Self::Fail,
            _ => Self::Open,
        }
    }

    /// In reports.
    pub fn key(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Open => "open",
            Self::NotApplicable => "n/a",
        }
    }
}
