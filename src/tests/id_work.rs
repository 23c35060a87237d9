//! Counts how often ids are compared or looked up: work that tests can hold against the size of its input.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn step() {
    STEPS.set(STEPS.get() + 1);
}

/// Steps of this thread while something was done.
pub fn of(done: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    done();
    STEPS.get() - before
}
