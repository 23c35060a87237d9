//! What every room stands on: names, files, text, statistics, errors.

pub mod backtest;
pub mod body_shape;
pub mod bootstrap;
pub mod damage;
pub mod data;
pub mod error;
pub mod files;
pub mod id;
pub mod json;
pub mod key_path;
pub mod lines;
pub mod listing;
pub mod model_id;
pub mod names;
pub mod numbers;
pub mod progress;
pub mod pseudonyms;
pub mod seal;
pub mod significance;
pub mod stats;
pub mod sums;
pub mod tokenizer;
pub mod unpack;
pub mod visible;
pub mod words;
