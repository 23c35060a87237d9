//! The imperative shell: one file per command, each a table of contents of what it does. Only here are files opened for
//! output, the clock read and results printed.

pub mod cli;

pub mod annotate;
pub mod config;
pub mod cost;
pub mod doctor;
pub mod encode;
pub mod ingest;
pub mod input;
pub mod mine;
pub mod planner;
pub mod pool;
pub mod reconcile;
pub mod replay;
pub mod report;
pub mod responses;
pub mod session;
pub mod share;
pub mod tune;
pub mod what_if;
