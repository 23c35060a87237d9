//! Plain data that every stage shares. No files, no command line, no frames.

pub mod body_facts;
pub mod body_shape;
pub mod corpus;
pub mod current;
pub mod damage;
pub mod effectiveness;
pub mod event;
pub mod finding;
pub mod fingerprint;
pub mod history;
pub mod id;
pub mod journal;
pub mod key_path;
pub mod model_id;
pub mod names;
pub mod projection;
pub mod savings;
pub mod stats;
pub mod tokenizer;
pub mod tool_model;
pub mod trace;
pub mod values;
