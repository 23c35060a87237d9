//! The body of one tool result: decoded, measured and named in one pass, then forgotten.
//!
//! Up to [`WINDOW_BYTES`] of text are held, up to [`STUDIED_BYTES`] where a [`BodyStudy`] looks at it; a longer body streams
//! through, so a result of any length costs the same memory.

use std::borrow::Cow;

use xxhash_rust::xxh3::Xxh3;

use crate::base::id::Id;
use crate::base::json::TextSink;
use crate::logs::trace::Handle;

/// Looks closer at bodies and calls while their text is there; what it finds out it keeps.
pub trait BodyStudy {
    /// A whole body with its name.
    fn body(&mut self, id: Id, text: &[u8]);
    /// More of a body over [`STUDIED_BYTES`]; `is_first` says that it begins here. Tells how many bytes it took: those up
    /// to a place where the text can be cut, or none if there is no such place yet.
    fn part(&mut self, text: &[u8], is_first: bool) -> usize;
    /// The name of the body whose parts were taken, and what is left of it.
    fn rest(&mut self, id: Id, text: &[u8]);
    /// The `tool_use` id of a call.
    fn call(&mut self, id: &[u8]) -> Handle;
    /// What a call of a message quotes of earlier results.
    fn quote(&mut self, message: Id, call: Id, text: &str);
}

/// How much of a body is held as text. Longer ones have no shape and no values.
pub const WINDOW_BYTES: usize = 1 << 20;
/// How much of a body is held for a study: no model is shown a result of this size.
pub const STUDIED_BYTES: usize = 8 << 20;
/// How much of the start of a longer body is kept, enough to recognise how it begins.
const HEAD_BYTES: usize = 512;

/// What is known of a body once its text is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// XXH3-128 of the text.
    pub id: Id,
    /// Length in Unicode code points (half a UTF-16 pair counts as one).
    pub chars: u64,
    /// Length in bytes of UTF-8.
    pub bytes: u64,
}

/// Collects a body. Reused from result to result.
#[derive(Default)]
pub struct Body<'v> {
    window: Vec<u8>,
    /// How much is held before some of it has to go.
    held_bytes_max: usize,
    head: Vec<u8>,
    spilled: Option<Box<Xxh3>>,
    chars: u64,
    bytes: u64,
    /// Half UTF-16 pairs seen since the last [`Body::clear`].
    pub lone_surrogates: u64,
    /// Who looks closer.
    pub study: Option<Box<dyn BodyStudy + 'v>>,
}

impl<'v> Body<'v> {
    /// An empty body.
    pub fn new(study: Option<Box<dyn BodyStudy + 'v>>) -> Self {
        let mut body = Self { study, ..Self::default() };
        body.clear();
        body
    }

    fn window_bytes_max(&self) -> usize {
        if self.study.is_some() { STUDIED_BYTES } else { WINDOW_BYTES }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.held_bytes_max = self.window_bytes_max();
        self.window.clear();
        self.window.shrink_to(self.held_bytes_max);
        self.head.clear();
        self.spilled = None;
        self.chars = 0;
        self.bytes = 0;
        self.lone_surrogates = 0;
    }

    /// The start of the text; the whole text if it is short.
    pub fn head(&self) -> &[u8] {
        if self.spilled.is_some() { &self.head } else { &self.window }
    }

    /// The whole text, unless the body was longer than [`WINDOW_BYTES`].
    pub fn whole(&self) -> Option<&[u8]> {
        (self.spilled.is_none() && self.window.len() <= WINDOW_BYTES).then_some(&*self.window)
    }

    /// Measures what was collected, and lets the study look at it.
    pub fn measure(&mut self) -> Measured {
        let id = match &mut self.spilled {
            None => Id::of(&self.window),
            Some(hasher) => {
                hasher.update(&self.window);
                Id(hasher.digest128().to_be_bytes())
            }
        };
        match (&mut self.study, &self.spilled) {
            (Some(study), None) => study.body(id, &self.window),
            (Some(study), Some(_)) => study.rest(id, &self.window),
            (None, _) => {}
        }
        let chars = self.chars + code_points(&self.window);
        let bytes = self.bytes + self.window.len() as u64;
        Measured { id, chars, bytes }
    }

    /// Lets go of what is held, or of as much of it as the study can take.
    fn spill(&mut self) {
        let held = self.window.len();
        let is_first = self.spilled.is_none();
        let taken = self.study.as_mut().map_or(held, |study| study.part(&self.window, is_first));
        // Looking again at every piece would take the square of its time.
        self.held_bytes_max = if taken == 0 { 2 * held } else { self.window_bytes_max() };
        if taken == 0 {
            return;
        }
        let gone = &self.window[..taken];
        if is_first {
            self.head.extend_from_slice(&gone[..HEAD_BYTES.min(taken)]);
        }
        self.spilled.get_or_insert_with(|| Box::new(Xxh3::new())).update(gone);
        self.chars += code_points(gone);
        self.bytes += taken as u64;
        self.window.drain(..taken);
    }
}

impl TextSink for Body<'_> {
    fn push(&mut self, piece: &[u8]) {
        for part in piece.chunks(self.window_bytes_max()) {
            if self.window.len() + part.len() > self.held_bytes_max {
                self.spill();
            }
            self.window.extend_from_slice(part);
        }
    }

    fn lone_surrogate(&mut self) {
        self.lone_surrogates += 1;
    }
}

/// Code points of UTF-8 or WTF-8: every byte that does not continue a character. Counted in runs that fit a byte, so
/// that the compiler can use wide registers.
pub fn code_points(text: &[u8]) -> u64 {
    text.chunks(255).map(|run| u64::from(run.iter().map(|&byte| u8::from(byte & 0xC0 != 0x80)).sum::<u8>())).sum()
}

/// The text of some bytes; what is no UTF-8 is replaced.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}
