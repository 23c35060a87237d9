//! The bill, shared out over what caused it: who brought a block into a context, and what it cost from then on.

pub mod attribution;
pub mod bill;
pub mod groups;
pub mod session;
pub mod session_tables;
pub mod shares;
pub mod summary;
pub mod tables;
