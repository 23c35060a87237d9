//! How long the calls of each tool took, as measured.

use crate::base::names::Sym;
use crate::planner::contexts::Told;

/// Median time from call to answer, by tool; waits for permission are in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latencies(Vec<Option<u64>>);

impl Latencies {
    /// Measures the sessions wanted, over calls that ran; the lower of two middle values.
    pub fn measure(told: Told<'_>, wanted: &[bool]) -> Self {
        let mut times = vec![Vec::new(); told.tools.texts().len()];
        for call in told.history.calls.iter().filter(|call| call.ran()) {
            if let (true, Some(latency)) =
                (wanted[told.history.chains[call.chain as usize].session as usize], call.latency_ms)
            {
                times[call.tool.0 as usize].push(u64::from(latency));
            }
        }
        let median = |mut times: Vec<u64>| {
            times.sort_unstable();
            times.get(times.len().saturating_sub(1) / 2).copied()
        };
        Self(times.into_iter().map(median).collect())
    }

    /// The median in milliseconds, if the tool was ever timed.
    pub fn median_ms(&self, tool: Sym) -> Option<u64> {
        self.0.get(tool.0 as usize).copied().flatten()
    }
}
