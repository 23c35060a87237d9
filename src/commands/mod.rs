//! The imperative shell, a file per command: only here is output opened, the clock read and a result printed.

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
