//! The one home of progress bars: on stderr, only on a terminal, only for work that takes a while.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar that may never appear.
pub struct ProgressLine {
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
}

impl ProgressLine {
    /// A bar over `bytes` bytes; shown only if `wanted`.
    pub fn new(bytes: u64, wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("reading logs {bar:30} {decimal_bytes} of {decimal_total_bytes}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, begun: Instant::now(), shown: wanted }
    }

    /// Some bytes are done.
    pub fn advance(&self, bytes: u64) {
        if self.shown && self.bar.is_hidden() && self.begun.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(bytes);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Says something at once while a command goes on; shown only if `wanted`.
pub fn announce(words: &str, wanted: bool) {
    if wanted {
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).println(words);
    }
}
