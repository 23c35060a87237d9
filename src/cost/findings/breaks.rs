//! What a change would have taken away that was needed later: edits of text that was gone, and steps that name it.

use std::collections::BTreeMap;

use crate::base::names::Sym;
use crate::report::numbers::{counted, usd};
use crate::whatif::client::Trial;

/// What is missed, by session and model.
#[derive(Default)]
pub struct Breaks {
    /// Edits of text that was gone, and steps that only name it.
    by: BTreeMap<(u32, Sym), (u64, u64)>,
    /// Dollars of reading it again, in the whole logs, where the figures do not hold them already.
    again_usd: Option<f64>,
}

impl Breaks {
    /// Those of a setting of the client, with the dollars of reading it again, if these are known.
    pub fn of(trial: &Trial, again_usd: Option<f64>) -> Self {
        let by = trial.by_model.iter().map(|(key, tried)| (*key, (tried.hard, tried.soft))).collect();
        Self { by, again_usd }
    }

    /// Those of some sessions and models, or of all of them, in words; none if nothing is missed.
    pub fn told(&self, inside: &[(u32, Sym)], is_whole: bool) -> Option<String> {
        let inside = inside.iter().filter_map(|key| self.by.get(key));
        let (hard, soft) = inside.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let parts = [
            (hard > 0).then(|| counted(hard, "edit")),
            (soft > 0).then(|| format!("{} that only name it", counted(soft, "later step"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let again = self.again_usd.filter(|_| is_whole).map(|again| format!(" (reading it again: {})", usd(again)));
        let again = again.unwrap_or_default();
        (!parts.is_empty())
            .then(|| format!("it would have dropped text that is needed by {}{again}", parts.join(" and ")))
    }
}
