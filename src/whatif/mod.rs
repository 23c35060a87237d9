//! Other ways to treat the context of a model, replayed over the requests of the logs: one folder for each policy.

pub mod backtest;
pub mod chosen;
pub mod client;
pub mod recorded;
pub mod workload;

pub mod arg_check;
pub mod calibration;
pub mod catalog;
pub mod clearing;
pub mod compaction;
pub mod history_trim;
pub mod pick_tools;
pub mod pipeline;
pub mod prompt_cache;
pub mod report;
pub mod requests;
pub mod sim;
pub mod simulation;
pub mod sweep;
pub mod tool_filter;
pub mod tools;
