//! What the live pipeline records: one event per response and one summary per session, in the published JSONL schema.
//! Written by `event` and `summary`, read by the rest.

pub mod log;

mod annotate;
mod event;
mod field;
mod gather;
mod parse;
mod places;
mod read;
mod retention;
mod runs;
mod select;
mod summary;

pub use annotate::{Annotated, Citations, Definition, Pass, annotate, annotated_path, is_annotated};
pub use event::{CONTEXT_EVENT, ContextLine, PipelineEvent};
pub use parse::{Counts, Vocabulary};
pub use places::{Place, Surroundings, places};
pub use read::{Listing, Request, Telemetry};
pub use retention::{Limits, Sifted, StoredFile, TelemetryRules, sift, stored_files};
pub use summary::{SessionSummary, SummaryLine};
