//! What stages write down while they run, for whoever made them: the driver owns the stages and gives nothing back.

use std::sync::{Arc, Mutex, PoisonError};

/// A list shared by a stage and its maker.
#[derive(Debug)]
pub struct Journal<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Journal<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Journal<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Ord> Journal<T> {
    /// Writes an entry.
    pub fn push(&self, entry: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Takes all entries out, sorted: chains may have run in any order.
    pub fn take(&self) -> Vec<T> {
        let mut entries = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        entries.sort_unstable();
        entries
    }
}
