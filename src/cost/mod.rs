//! The bill: what each part of every context cost, what stands out in it, and the first page.

pub mod attribution;
pub mod bill;
pub mod findings;
pub mod groups;
pub mod page;
pub mod shares;
pub mod tables;
