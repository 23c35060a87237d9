//! Code of other crates that may panic on hostile bytes runs here in a thread of its own: a panic stops that thread and is
//! reported to its caller, also in a release, which unwinds nothing and ends at any other panic.

use std::cell::RefCell;
use std::sync::{Once, mpsc};
use std::{panic, thread};

thread_local! {
    /// Tells who waits that this thread panicked; only threads of [`contained`] have it.
    static STOP: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// What some work gives; none if it panicked or no thread could be had. In a release the thread of a panic sleeps until the
/// program ends and keeps what it holds, so work is given no more than a few megabytes.
pub fn contained<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(stop_where_contained);
    let (tell, told) = mpsc::channel();
    let run = move || {
        let stopped = tell.clone();
        STOP.set(Some(Box::new(move || drop(stopped.send(None)))));
        let done = work();
        STOP.take();
        drop(tell.send(Some(done)));
    };
    thread::Builder::new().spawn(run).ok()?;
    told.recv().ok().flatten()
}

/// The hook runs on the thread that panics. Where nothing is unwound it does not come back: the program would end. Nobody can
/// take the hook away from then on, so elsewhere it does, and the thread unwinds.
fn stop_where_contained() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| match STOP.take() {
        Some(stop) => {
            stop();
            while cfg!(panic = "abort") {
                thread::park();
            }
        }
        None => usual(panic),
    }));
}
