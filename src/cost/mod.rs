//! The bill: what each part of every context cost, what stands out in it, and the first page.

pub mod asked_session;
pub mod attribution;
pub mod bill;
pub mod findings;
pub mod groups;
pub mod outcomes;
pub mod page;
mod places;
pub mod server_calls;
pub mod session;
pub mod session_tables;
pub mod shares;
pub mod shown_names;
pub mod summary;
pub mod tables;
