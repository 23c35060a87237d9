//! The body of one tool result: decoded, measured and named in one pass, then forgotten.
//!
//! Up to [`WINDOW_BYTES`] of text are held; a longer body streams through, so a result of any length costs the same
//! memory. Only a [`Study`] needs bodies whole.

use xxhash_rust::xxh3::Xxh3;

use crate::base::id::Id;
use crate::base::json::TextSink;
use crate::logs::trace::Handle;

/// Looks closer at bodies and calls while their text is there; what it finds out it keeps.
pub trait Study {
    /// A whole body with its name.
    fn body(&mut self, id: Id, text: &[u8]);
    /// The `tool_use` id of a call.
    fn call(&mut self, id: &[u8]) -> Handle;
    /// What the call quotes of earlier results.
    fn quote(&mut self, call: Id, text: &str);
}

/// How much of a body is held as text.
pub const WINDOW_BYTES: usize = 1 << 20;
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
pub struct Body {
    window: Vec<u8>,
    window_bytes_max: usize,
    head: Vec<u8>,
    spilled: Option<Box<Xxh3>>,
    chars: u64,
    bytes: u64,
    /// Half UTF-16 pairs seen since the last [`Body::clear`].
    pub lone_surrogates: u64,
}

impl Body {
    /// An empty body of which at most `window_bytes_max` bytes are held.
    pub fn new(window_bytes_max: usize) -> Self {
        Self {
            window: Vec::new(),
            window_bytes_max,
            head: Vec::new(),
            spilled: None,
            chars: 0,
            bytes: 0,
            lone_surrogates: 0,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.window.clear();
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

    /// The whole text, unless the body was longer than the window.
    pub fn whole(&self) -> Option<&[u8]> {
        self.spilled.is_none().then_some(&*self.window)
    }

    /// Measures what was collected.
    pub fn measure(&mut self) -> Measured {
        let id = match &mut self.spilled {
            None => Id::of(&self.window),
            Some(hasher) => {
                hasher.update(&self.window);
                Id(hasher.digest128().to_be_bytes())
            }
        };
        let chars = self.chars + code_points(&self.window);
        let bytes = self.bytes + self.window.len() as u64;
        Measured { id, chars, bytes }
    }

    fn spill(&mut self) {
        if self.spilled.is_none() {
            self.head.extend_from_slice(&self.window[..HEAD_BYTES.min(self.window.len())]);
        }
        self.spilled.get_or_insert_with(|| Box::new(Xxh3::new())).update(&self.window);
        self.chars += code_points(&self.window);
        self.bytes += self.window.len() as u64;
        self.window.clear();
    }
}

impl TextSink for Body {
    fn push(&mut self, piece: &[u8]) {
        for part in piece.chunks(self.window_bytes_max) {
            if self.window.len() + part.len() > self.window_bytes_max {
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
