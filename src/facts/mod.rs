//! What a body (the text of a tool result) is, and how else it can be written: shape and inner formats, formats with their
//! proofs, hints, and the knapsack that makes a body fit.

pub mod analysis_pool;
pub mod body_analyzer;
pub mod body_facts;
pub mod tokens;

pub mod budget;
pub mod cell;
pub mod encode;
pub mod hints;
pub mod inner_formats;
pub mod json_tree;
pub mod knapsack;
pub mod legacy;
pub mod markdown;
pub mod near_ref;
pub mod numbered;
pub mod outline;
pub mod quotable;
pub mod shape;
