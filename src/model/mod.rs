//! Plain data that every stage shares. No files, no command line, no frames.

pub mod body_facts;
pub mod body_shape;
pub mod change;
pub mod corpus;
pub mod current;
pub mod damage;
pub mod edge;
pub mod effectiveness;
pub mod event;
pub mod finding;
pub mod fingerprint;
pub mod history;
pub mod id;
pub mod journal;
pub mod key_path;
pub mod listing;
pub mod model_id;
pub mod names;
pub mod pattern;
pub mod savings;
pub mod significance;
pub mod stats;
pub mod tokenizer;
pub mod tool_model;
pub mod tool_use;
pub mod trace;
