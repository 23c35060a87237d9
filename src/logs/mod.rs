//! Claude Code logs to rows: find the files, read their lines once in bounded memory, survive damage and count it,
//! pair calls with results, and tell sessions, chains and partitions apart.

pub mod assemble;
pub mod body;
pub mod discover;
pub mod endpoint;
pub mod glue;
pub mod message;
pub mod path;
pub mod probe;
pub mod read;
pub mod record;
pub mod shell;
pub mod time;
pub mod vocabulary;
