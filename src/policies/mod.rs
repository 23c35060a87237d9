//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it.

pub mod arg_check;
pub mod catalog;
pub mod predictors;
pub mod tool_filter;
pub mod tools;
pub mod view;
