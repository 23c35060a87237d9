//! One body to one row of facts: here text ends.

mod body;
mod studies;

pub use body::Desk;
pub use studies::Studies;
