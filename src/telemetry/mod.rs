//! What the live pipeline records: one event per response and one summary per session, in the published JSONL schema.
//! Written by `event`, read by the rest.

pub mod effectiveness;
pub mod log;

mod annotate;
mod event;
mod field;
mod gather;
mod parse;
mod places;
mod read;
mod retention;

pub use annotate::{
    Annotated, Citations, Pass, Standing, UsedWhen, annotate, annotated_path, holds_events, is_annotated,
};
pub use event::{CONTEXT_EVENT, ContextLine, PipelineEvent, SessionSummary, SummaryLine};
pub use parse::ParseCounts;
pub use places::{EventFile, Surroundings, TelemetryPlace, event_files, places};
pub use read::{Telemetry, TelemetryListing, TelemetryRequest};
pub use retention::{RetentionLimits, Sifted, TelemetryRules, sift};
