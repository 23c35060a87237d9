//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it, [`knobs`] are the settings of a policy.

pub mod knobs;
pub mod view;
