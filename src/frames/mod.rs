//! The only room that names Polars, Arrow and Parquet: the tables of the lake, the lake itself, and queries that return
//! typed rows.

pub mod contribution;
pub mod fingerprint;
pub mod light;
pub mod projection;
pub mod tool_use;

pub mod bodies;
mod columns;
pub mod edge;
pub mod endpoint;
pub mod export;
pub mod few_rows;
mod groups;
pub mod input;
pub mod lake;
pub mod manifest;
pub mod new_facts;
pub mod new_rows;
mod new_table;
pub mod new_timelines;
pub mod packed;
mod sealed;
mod stored;
pub mod sync;
pub mod tables;
pub mod timelines;
pub mod values;
mod written;
