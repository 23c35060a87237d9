//! Steps that fail on purpose, below a directory.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::files::WriteStep;

static PLANS: Mutex<Vec<Arc<Plan>>> = Mutex::new(Vec::new());

/// Which step fails, and how.
struct Plan {
    under: PathBuf,
    step: WriteStep,
    /// Steps of this kind until the first that fails.
    left: Mutex<usize>,
    /// Whether all after it fail, too.
    lasts: bool,
    error: i32,
}

/// Fails steps while it lives.
pub struct Fault(Arc<Plan>);

impl Fault {
    /// Lets the `nth` step of a kind fail below `under`, counted from 0, with an error number of the system; `lasts`
    /// lets all later ones fail as well.
    pub fn new(under: &Path, step: WriteStep, nth: usize, lasts: bool, error: i32) -> Self {
        let plan = Arc::new(Plan { under: under.to_owned(), step, left: Mutex::new(nth), lasts, error });
        PLANS.lock().unwrap_or_else(PoisonError::into_inner).push(plan.clone());
        Self(plan)
    }

    /// Counts the steps of a kind below `under` and lets none fail.
    pub fn none(under: &Path, step: WriteStep) -> Self {
        Self::new(under, step, usize::MAX - 1, false, 0)
    }

    /// Steps that did not fail.
    pub fn passed(&self) -> usize {
        usize::MAX - 1 - *self.0.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the step was reached.
    pub fn has_struck(&self) -> bool {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) == usize::MAX
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        PLANS.lock().unwrap_or_else(PoisonError::into_inner).retain(|plan| !Arc::ptr_eq(plan, &self.0));
    }
}

impl Plan {
    fn strikes(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match *left {
            usize::MAX => self.lasts,
            0 => {
                *left = usize::MAX;
                true
            }
            _ => {
                *left -= 1;
                false
            }
        }
    }
}

pub(crate) fn step(step: WriteStep, path: &Path) -> Result<()> {
    let plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let hit = plans.iter().find(|plan| plan.step == step && path.starts_with(&plan.under) && plan.strikes());
    hit.map_or(Ok(()), |plan| Err(Error::from_raw_os_error(plan.error)))
}
