//! Claude Code logs to rows: find the files, read their lines once in bounded memory, survive damage and count it,
//! pair calls with results, and tell sessions, chains and partitions apart.

pub mod copies;
pub mod corpus;
pub mod history;
pub mod trace;
pub mod values;

pub mod assemble;
pub mod body;
pub mod call_texts;
pub mod content;
pub mod definitions;
pub mod discover;
pub mod endpoint;
mod envelope;
pub mod field;
pub mod leaves;
pub mod listed;
pub mod message;
pub mod message_sums;
pub mod named;
pub mod overview;
pub mod path;
pub mod read;
pub mod record;
pub mod shell;
pub mod take;
pub mod timeline;
mod twofold;
pub mod value_draft;
pub mod value_rules;
pub mod vocabulary;
pub mod window;
