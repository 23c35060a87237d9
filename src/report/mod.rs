//! How results look: tables in four forms, the JSON envelope, numbers, findings, aggregates.

pub mod sharing;

pub mod envelope;
pub mod escape;
pub mod html;
pub mod listing;
mod narrow;
pub mod numbers;
pub mod paragraph;
pub mod table;
