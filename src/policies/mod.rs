//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it. [`sizes`] says how large its blocks
//! are, [`contexts`] lays them out, [`drive`] sends every request again, [`oracle`] is the cache, [`priors`] what it can
//! know (from [`clock`]s, too), [`cache_knobs`] what can be set about it, [`money`] what tokens cost, [`bill`] what they did
//! cost. [`prompt_cache`] is the policy that changes nothing but the cache, with [`causes`] of breaks and three reports of
//! its own; [`calibration`] holds tokenizers against the bill.

pub mod bill;
pub mod cache_knobs;
pub mod calibration;
pub mod causes;
pub mod clock;
pub mod contexts;
pub mod drive;
pub mod hot_cache;
pub mod money;
pub mod oracle;
pub mod priors;
pub mod prompt_cache;
pub mod sizes;
pub mod threshold_model;
pub mod view;
pub mod workspace_report;
