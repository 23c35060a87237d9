//! The bill, shared out over what caused it: who brought a block into a context, and what it cost from then on.

pub mod attribution;
pub mod bill;
pub mod groups;
pub mod shares;
pub mod tables;
