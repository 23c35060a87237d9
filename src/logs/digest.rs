//! Tells a file that has only grown from one that was rewritten, and the same content at another place, by all of it.

use std::io::{Read, Result};
use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use crate::files;
use crate::model::id::Id;

/// Bytes that are read at once.
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
    let (mut hasher, mut buffer, mut done) = (Xxh3::new(), vec![0; STEP_BYTES], 0);
    let mut digest = Digest::default();
    loop {
        if done == start {
            digest.start = named(&hasher);
        }
        let room = if done < start { (start - done).min(STEP_BYTES as u64) as usize } else { STEP_BYTES };
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

fn named(hasher: &Xxh3) -> Id {
    Id(hasher.digest128().to_be_bytes())
}
