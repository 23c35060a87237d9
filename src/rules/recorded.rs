//! What rules over recorded responses have in common: how many responses the recorded ones stand for, and by which name a
//! configuration can speak of them.

use crate::frames::fingerprint::{Fingerprint, ToolCosts};
use crate::settings::annotations::is_plain_name;
use crate::settings::finding::{Evidence, Verdict};

/// Subject of a finding about all responses together.
pub const EVERYTHING: &str = "(all)";

/// The recorded responses of one endpoint or tool.
#[derive(Clone, Copy)]
pub struct RecordedSubject<'a> {
    name: &'a str,
    key: Option<&'a str>,
    events: u64,
    calls: f64,
}

impl<'a> RecordedSubject<'a> {
    /// Those of an endpoint.
    pub fn of_endpoint(seen: &'a Fingerprint) -> Self {
        Self { name: &seen.endpoint, key: seen.key.as_deref(), events: seen.events, calls: seen.calls }
    }

    /// Those of a tool.
    pub fn of_tool(seen: &'a ToolCosts) -> Self {
        Self { name: &seen.tool, key: seen.key.as_deref(), events: seen.events, calls: seen.calls }
    }

    /// The name in the configuration, else the recorded one.
    pub fn name(&self) -> &'a str {
        self.key.unwrap_or(self.name)
    }

    /// Why no configuration can speak of them, if none can.
    pub fn unnamed(&self) -> Option<Verdict> {
        match self.key {
            Some(key) if is_plain_name(key) => None,
            Some(_) => Some(Verdict::Skip("the name cannot stand in a configuration".to_owned())),
            None => Some(Verdict::Hold(
                "only a pseudonym of this name was recorded; run `devboy ingest` once over the logs in which it was \
                 called, or name it in the configuration"
                    .to_owned(),
            )),
        }
    }

    /// Measured evidence from all of its responses.
    pub fn evidence(&self, counts: &str) -> Evidence {
        Evidence::of(scaled(self.events, self.calls, counts), self.events)
    }
}

/// Counts in words, with what the events stand for in front where only a part was recorded.
pub fn scaled(events: u64, calls: f64, counts: &str) -> String {
    if calls == events as f64 {
        return counts.to_owned();
    }
    format!("{events} events that stand for {calls:.1} responses\n{counts}")
}
