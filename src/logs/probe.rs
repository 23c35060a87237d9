//! Tells a file that has only grown from one that was rewritten, by samples of what was read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::model::id::Id;

/// Size of one sample.
const SAMPLE_BYTES: u64 = 4 << 10;
/// Samples per file: the first and last bytes and some in between. Anything inserted or removed shifts the later ones.
const SAMPLES: u64 = 8;

/// Hash of samples of the first `bytes` bytes of a file (of all of them, if they are few).
pub fn probe(path: &Path, bytes: u64) -> std::io::Result<Id> {
    let mut file = File::open(path)?;
    let mut sampled = Vec::new();
    if bytes <= SAMPLE_BYTES * SAMPLES {
        file.take(bytes).read_to_end(&mut sampled)?;
        return Ok(Id::of(&sampled));
    }
    for index in 0..SAMPLES {
        let start = (bytes - SAMPLE_BYTES) * index / (SAMPLES - 1);
        file.seek(SeekFrom::Start(start))?;
        file.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sampled)?;
    }
    Ok(Id::of(&sampled))
}
