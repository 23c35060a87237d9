//! The bill, and what stands out in it: the first page.

pub mod findings;
pub mod page;
