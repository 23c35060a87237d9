//! Lines of a byte stream in bounded memory: found with memchr in one reused buffer that grows only for long lines.

use std::io::Read;
use std::sync::{Mutex, MutexGuard};

use memchr::memchr;

/// Longest line that is read, in bytes. Anything longer is counted and passed over.
pub const LINE_BYTES_MAX: usize = 100_000_000;
/// The buffer's usual size. It fits a second-level cache.
const BUFFER_BYTES: usize = 512 << 10;
/// From this size on a buffer counts as large: only one worker holds a large one at a time.
const LARGE_BYTES: usize = 8 << 20;

static LARGE_BUFFER: Mutex<()> = Mutex::new(());

/// One step of reading.
pub enum ReadLine<'a> {
    /// A line without its line feed; `terminated` says whether there was one.
    Text {
        /// The bytes.
        bytes: &'a [u8],
        /// Whether a line feed followed.
        terminated: bool,
    },
    /// A line over [`LINE_BYTES_MAX`] was passed over.
    Oversize {
        /// Whether a line feed followed.
        terminated: bool,
    },
}

/// A buffer that a worker keeps from file to file.
#[derive(Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
}

/// Reads a stream line by line.
pub struct LineReader<'b, R> {
    source: R,
    buffer: &'b mut Vec<u8>,
    /// Start of what is not yet handed out.
    start: usize,
    /// Up to here the buffer is known to hold no line feed.
    scanned: usize,
    ended: bool,
    failed: Option<std::io::Error>,
    large: Option<MutexGuard<'static, ()>>,
    /// Offset in the stream of the first byte not yet handed out.
    offset: u64,
}

impl<'b, R: Read> LineReader<'b, R> {
    /// Lines of `source`.
    pub fn new(source: R, buffer: &'b mut LineBuffer) -> Self {
        buffer.bytes.clear();
        Self {
            source,
            buffer: &mut buffer.bytes,
            start: 0,
            scanned: 0,
            ended: false,
            failed: None,
            large: None,
            offset: 0,
        }
    }

    /// Offset in the stream of the next line.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line; `None` at the end of the stream.
    ///
    /// # Errors
    /// What the source failed with, after the whole lines that came before.
    pub fn next_line(&mut self) -> std::io::Result<Option<ReadLine<'_>>> {
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.scanned..]) {
                let (start, end) = (self.start, self.scanned + length);
                self.start = end + 1;
                self.scanned = self.start;
                self.offset += (self.start - start) as u64;
                return Ok(Some(self.line(start, end, true)));
            }
            self.scanned = self.buffer.len();
            if let Some(cause) = self.failed.take() {
                return Err(cause);
            }
            if self.ended {
                let (start, end) = (self.start, self.buffer.len());
                self.start = end;
                self.offset += (end - start) as u64;
                return Ok((end > start).then(|| self.line(start, end, false)));
            }
            if self.buffer.len() - self.start > LINE_BYTES_MAX {
                let terminated = self.pass_over(u64::MAX)?;
                return Ok(Some(ReadLine::Oversize { terminated }));
            }
            self.fill();
        }
    }

    fn line(&self, start: usize, end: usize, terminated: bool) -> ReadLine<'_> {
        if end - start > LINE_BYTES_MAX {
            return ReadLine::Oversize { terminated };
        }
        ReadLine::Text { bytes: &self.buffer[start..end], terminated }
    }

    /// Makes room by moving the unfinished line to the front (and growing when it fills the buffer), then reads.
    fn fill(&mut self) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        let held = self.buffer.len();
        let target = if held * 2 > BUFFER_BYTES { (held * 2).min(LINE_BYTES_MAX + BUFFER_BYTES) } else { BUFFER_BYTES };
        self.size_to(target);
        let room = (target - held) as u64;
        match self.source.by_ref().take(room).read_to_end(self.buffer) {
            Ok(read) => self.ended = (read as u64) < room,
            Err(cause) => self.failed = Some(cause),
        }
    }

    fn size_to(&mut self, target: usize) {
        if target >= LARGE_BYTES && self.large.is_none() {
            // A poisoned lock only means that another worker panicked; the unit inside cannot be broken.
            self.large = Some(LARGE_BUFFER.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        }
        if target < LARGE_BYTES && self.buffer.capacity() >= LARGE_BYTES {
            self.buffer.shrink_to(target);
            self.large = None;
        }
        self.buffer.reserve_exact(target.saturating_sub(self.buffer.len()));
    }

    /// Drops what is held and reads on to behind the next line feed (true), to the end of the stream, or until the
    /// offset `limit` is passed.
    pub fn pass_over(&mut self, limit: u64) -> std::io::Result<bool> {
        self.offset += (self.buffer.len() - self.start) as u64;
        loop {
            self.buffer.clear();
            self.start = 0;
            self.scanned = 0;
            self.size_to(BUFFER_BYTES);
            let read = self.source.by_ref().take(BUFFER_BYTES as u64).read_to_end(self.buffer)?;
            self.ended = read < BUFFER_BYTES;
            if let Some(length) = memchr(b'\n', self.buffer) {
                self.start = length + 1;
                self.scanned = self.start;
                self.offset += self.start as u64;
                return Ok(true);
            }
            self.offset += read as u64;
            if self.ended || self.offset > limit {
                self.start = read;
                self.scanned = read;
                return Ok(false);
            }
        }
    }
}

impl<R> Drop for LineReader<'_, R> {
    fn drop(&mut self) {
        if self.buffer.capacity() >= LARGE_BYTES {
            *self.buffer = Vec::new();
        }
    }
}
