//! Tells a file that has only grown from one that was rewritten, and the same content at another place, by all of it.

use std::io::{Read, Result};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::base::files;
use crate::base::id::Id;

/// Bytes that are read at once, of a file that has as many.
const STEP_BYTES: usize = 256 << 10;

/// Hashes of a file as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Of its first bytes, as many as were asked for; [`Id::NONE`] if it has fewer.
    pub start: Id,
    /// Of all of it.
    pub whole: Id,
}

/// Hashes the first `bytes` bytes of a file, and the first `start` of these.
///
/// # Errors
/// Whatever the disk says.
pub fn digest(path: &Path, start: u64, bytes: u64) -> Result<Digest> {
    let mut file = files::open(path)?.take(bytes);
    let (mut hasher, mut buffer, mut done) = (Xxh3::new(), vec![0; step_bytes(bytes)], 0);
    let mut digest = Digest::default();
    loop {
        if done == start {
            digest.start = named(&hasher);
        }
        let room = if done < start { buffer.len().min((start - done) as usize) } else { buffer.len() };
        let read = file.read(&mut buffer[..room])?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        done += read as u64;
    }
    digest.whole = named(&hasher);
    Ok(digest)
}

/// Hashes what is read through it, so that a file which is read anyway is not read a second time for its name.
pub struct Hashing<R> {
    source: R,
    hasher: Xxh3,
}

impl<R> Hashing<R> {
    /// Nothing has been read so far.
    pub fn new(source: R) -> Self {
        Self { source, hasher: Xxh3::new() }
    }

    /// The name of what has been read: that of [`Digest::whole`].
    pub fn name(&self) -> Id {
        named(&self.hasher)
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

/// How much of a file is read at once: most files are small, and there may be many.
fn step_bytes(bytes: u64) -> usize {
    bytes.clamp(1, STEP_BYTES as u64) as usize
}

fn named(hasher: &Xxh3) -> Id {
    Id(hasher.digest128().to_be_bytes())
}
