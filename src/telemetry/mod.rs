//! What the live pipeline records: one event per response and one summary per session, in the published JSONL schema.

mod event;
mod summary;

pub use event::{PipelineEvent, anonymous_tool};
pub use summary::{SessionSummary, SummaryLine};
