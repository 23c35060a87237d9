//! The only room that names Polars, Arrow and Parquet: the tables of the lake, the lake itself, and queries that return
//! typed rows.

pub mod contribution;
pub mod edge;
pub mod fingerprint;
pub mod light;
pub mod projection;
pub mod tool_use;

pub mod bodies;
pub mod calls;
mod collected;
mod columns;
pub mod edges;
pub mod endpoints;
pub mod events;
mod export;
pub mod lake;
pub mod listing;
pub mod manifest;
pub mod packed;
pub mod projections;
mod sealed;
pub mod tables;
pub mod timelines;
pub mod tools;
pub mod values;
