//! What policies about tool lists share: which tools there are ([`inventory`]), what is known of
//! them ([`known`]), what was asked for, which of them each request would have been shown and missed ([`plan`]), and what that does to contexts ([`stage`]).

pub mod inventory;
pub mod known;
pub mod plan;
pub mod stage;

use std::collections::BTreeSet;

/// Tools, by index into [`inventory::Inventory::tools`], which is catalog order.
pub type ToolSet = BTreeSet<u32>;
