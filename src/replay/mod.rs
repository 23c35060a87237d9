//! Facts × settings → ledger: what the layered pipeline would have sent in place of every tool response, and what that
//! costs. No text is read here; the same facts can be replayed under any configuration.

pub mod dedup_only;

pub mod compare;
pub mod quotes;
pub mod reach;
pub mod report;
pub mod savings;

mod effects;
pub mod emit;
mod expansion;
pub mod gate;
pub mod input;
pub mod laid_out_calls;
mod layers;
pub mod lines_of_contexts;
pub mod published;
mod recorded;
pub mod runs;
mod scenario;
pub mod scenarios;
mod stack;
pub mod study;
pub mod tape;

pub use effects::{EffectsBaseline, HistoryPiece, SessionTape, SessionTokens};
pub use layers::{Decision, SentAs};
pub use published::{bounds, published_claim};
pub use quotes::quotes;
pub use recorded::{RecordedInput, RecordedLog};
pub use savings::Ledger;
pub use scenario::{ReplayOptions, Scenario};
pub use stack::{replay, replay_each, replay_expanded};
pub use tape::{SessionProfile, Tape, TapeEntry, ToolKind};
