//! What another context policy would have saved, cost and broken: the requests of the log are sent again as the policy
//! would have sent them, and every variant is priced by one simulator of the provider's prompt cache.
//!
//! [`view`] is a context as it is about to be sent and what a policy may change in it. [`sizes`] says how large its blocks
//! are, [`contexts`] lays them out, [`drive`] sends every request again, [`oracle`] is the cache, [`priors`] what it can
//! know (from [`clock`]s, too), [`cache_knobs`] what can be set about it, [`money`] what tokens cost, [`bill`] what they did
//! cost, [`distance`] where the simulation is off that, [`outcome`] what the difference comes to, [`cells`] in which parts of the
//! logs it is clear, [`breakage`] what a changed context lost. [`params`] reads the settings of
//! a policy; what stages write down is a [`journal`]; [`bias`] say where approximations lean.
//!
//! [`prompt_cache`] changes nothing but the cache, with [`causes`] of breaks and three reports of its own; [`unlogged`]
//! estimates what no log has; [`calibration`]
//! holds tokenizers against the bill. [`compaction`], [`micro`] and [`history_trim`] shorten contexts, [`pipeline`] what
//! comes into them. [`catalog`] reads
//! tool definitions, [`tools`] and [`predictors`] tell which of them a request would have been shown; [`tool_filter`] and
//! [`pick_tools`] are the policies about that, [`arg_check`] checks calls against schemas.

pub mod cache_sim;
pub mod simulate;

pub mod cost;
pub mod figures;

pub mod bill;
pub mod breakage;
pub mod cells;
pub mod distance;
pub mod money;
pub mod params;
pub mod predictors;
pub mod priors;
pub mod sizes;
pub mod threshold_model;
pub mod unforeseen;
pub mod view;
pub mod workspace_report;
