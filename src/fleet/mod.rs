//! Many people, one pool: what one person may give, on what a published row stands, and how much of it counts at home.

pub mod contribute;
pub mod folder;
pub mod lend;
pub mod light;
pub mod limits;
pub mod naming;
pub mod pool;
pub mod roster;
pub mod sums;
pub mod tables;

mod check;
mod measure;
mod standing;
