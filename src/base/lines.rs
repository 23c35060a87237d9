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
pub struct ReadLine<'a> {
    /// A line without its line feed; none if one over [`LINE_BYTES_MAX`] was passed over.
    pub bytes: Option<&'a [u8]>,
    /// Whether a line feed followed.
    pub terminated: bool,
}

/// A buffer that a worker keeps from file to file. All of it may be written to; what was read is a part of it.
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
    /// End of what was read.
    end: usize,
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
        Self {
            source,
            buffer: &mut buffer.bytes,
            start: 0,
            end: 0,
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

    /// The next line; `None` at the end of the stream. If the source fails, it does so after the whole lines that came
    /// before.
    pub fn next_line(&mut self) -> std::io::Result<Option<ReadLine<'_>>> {
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let (start, end) = (self.start, self.scanned + length);
                self.start = end + 1;
                self.scanned = self.start;
                self.offset += (self.start - start) as u64;
                return Ok(Some(self.line(start, end, true)));
            }
            self.scanned = self.end;
            if let Some(cause) = self.failed.take() {
                return Err(cause);
            }
            if self.ended {
                let (start, end) = (self.start, self.end);
                self.start = end;
                self.offset += (end - start) as u64;
                return Ok((end > start).then(|| self.line(start, end, false)));
            }
            if self.end - self.start > LINE_BYTES_MAX {
                let terminated = self.pass_over(u64::MAX)?;
                return Ok(Some(ReadLine { bytes: None, terminated }));
            }
            self.fill();
        }
    }

    fn line(&self, start: usize, end: usize, terminated: bool) -> ReadLine<'_> {
        ReadLine { bytes: (end - start <= LINE_BYTES_MAX).then(|| &self.buffer[start..end]), terminated }
    }

    /// Makes room by moving the unfinished line to the front (and growing when it fills the buffer), then reads.
    fn fill(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.scanned -= self.start;
        self.start = 0;
        let held = self.end;
        let target = if held * 2 > BUFFER_BYTES { (held * 2).min(LINE_BYTES_MAX + BUFFER_BYTES) } else { BUFFER_BYTES };
        self.size_to(target);
        if let Err(cause) = self.read_up_to(target) {
            self.failed = Some(cause);
        }
    }

    /// Reads until the buffer is filled up to `target`, or the stream ends.
    fn read_up_to(&mut self, target: usize) -> std::io::Result<()> {
        while self.end < target && !self.ended {
            match self.source.read(&mut self.buffer[self.end..target]) {
                Ok(read) => {
                    self.end += read;
                    self.ended = read == 0;
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }

    /// Gives the buffer room for at least so many bytes; what was read stays.
    fn size_to(&mut self, target: usize) {
        if target >= LARGE_BYTES && self.large.is_none() {
            // A poisoned lock only means that another worker panicked; the unit inside cannot be broken.
            self.large = Some(LARGE_BUFFER.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        }
        if target < LARGE_BYTES && self.buffer.capacity() >= LARGE_BYTES {
            self.buffer.truncate(target);
            self.buffer.shrink_to(target);
            self.large = None;
        }
        if self.buffer.is_empty() {
            // Zeroes as the system gives them, which are not written.
            *self.buffer = vec![0; target];
        } else if self.buffer.len() < target {
            self.buffer.reserve_exact(target - self.buffer.len());
            self.buffer.resize(target, 0);
        }
    }

    /// Drops what is held and reads on to behind the next line feed (true), to the end of the stream, or until the
    /// offset `limit` is passed.
    pub fn pass_over(&mut self, limit: u64) -> std::io::Result<bool> {
        self.offset += (self.end - self.start) as u64;
        loop {
            (self.start, self.scanned, self.end) = (0, 0, 0);
            self.size_to(BUFFER_BYTES);
            self.read_up_to(BUFFER_BYTES)?;
            if let Some(length) = memchr(b'\n', &self.buffer[..self.end]) {
                self.start = length + 1;
                self.scanned = self.start;
                self.offset += self.start as u64;
                return Ok(true);
            }
            self.offset += self.end as u64;
            if self.ended || self.offset > limit {
                (self.start, self.scanned) = (self.end, self.end);
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
