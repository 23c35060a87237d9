//! Packed files as streams of bounded memory: what unpacks to more than an honest log would is given up before it fills
//! anything, and by a name of its own.

use std::cell::Cell;
use std::io::{BufReader, Error, ErrorKind, Read, Result};
use std::path::Path;
use std::rc::Rc;

use crate::base::damage::Reason;

/// Bytes that any file may unpack to: what a plain file of this size costs, however little was packed. A piece of a plain
/// file is as large.
const FREE_BYTES: u64 = 16 << 20;
/// Bytes beyond these that each packed byte may unpack to. Logs of work come to 3 to 10, generated ones without any
/// variety to 80; a file of one repeated byte to 1,000 (gzip) or 30,000 (zstd).
const RATIO: u64 = 200;
/// Bytes that one file may unpack to at all: all logs of a machine that devboy is made for.
const BYTES_MAX: u64 = 10_000_000_000;
/// Logarithm of the largest window of a zstd frame, which the decoder holds in memory: 8 MB, what RFC 8878 asks of every
/// decoder and all of `zstd -1` to `-19` keep to. `--ultra` and `--long` go further.
const WINDOW_LOG_MAX: u32 = 23;
/// Says so of a file, behind its name.
pub const TOO_LARGE: &str =
    "unpacks to more than is read of a packed file: the rest of it is missing; unpack it to have it read";
/// Bytes that are unpacked at a time.
const STEP_BYTES: usize = 128 << 10;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// Endings of names.
    const ENDINGS: [(&str, Self); 3] = [(".jsonl", Self::Plain), (".jsonl.gz", Self::Gzip), (".jsonl.zst", Self::Zstd)];

    /// How a file of lines is packed, by the ending of its name, whatever bytes stand before; none if it is no such file.
    pub fn of(path: &Path) -> Option<Self> {
        Self::split_name(path).map(|(_, packing)| packing)
    }

    /// The name of a file of lines without its ending, as bytes, and how it is packed.
    pub fn split_name(path: &Path) -> Option<(&[u8], Self)> {
        let name = path.file_name()?.as_encoded_bytes();
        Self::ENDINGS.iter().find_map(|(ending, packing)| Some((name.strip_suffix(ending.as_bytes())?, *packing)))
    }

    /// How a stream is packed, by its first bytes.
    pub fn of_start(start: &[u8]) -> Self {
        match start {
            [0x1F, 0x8B, ..] => Self::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// What it says of a file that reading it failed.
    pub fn damage(self, cause: &Error) -> Reason {
        // What the system says is no fact about the content.
        match cause.kind() {
            _ if self == Self::Plain || cause.raw_os_error().is_some() => Reason::Unreadable,
            ErrorKind::FileTooLarge => Reason::UnpacksTooLarge,
            _ => Reason::BrokenCompression,
        }
    }
}

/// Says that a file unpacks to more than is taken.
fn too_large() -> Error {
    Error::new(ErrorKind::FileTooLarge, "unpacks to more than is read of a packed file")
}

/// The content of a packed stream. An error if a decoder cannot be made. Reading fails where the content breaks off, or
/// where it grows too large; see [`Packing::damage`].
pub fn unpack<'s>(packing: Packing, source: impl Read + 's) -> Result<Box<dyn Read + 's>> {
    let packed = Rc::new(Cell::new(0));
    let counted = CountingReader { source, bytes: packed.clone() };
    let content: Box<dyn Read + 's> = match packing {
        Packing::Plain => return Ok(Box::new(counted.source)),
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(counted))),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(counted)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
    };
    Ok(Box::new(UnpackedContent { content, packed, given: 0 }))
}

/// A stream whose bytes are counted as they are taken.
pub struct CountingReader<R> {
    pub source: R,
    /// Bytes that were taken.
    pub bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

/// What comes out of a decoder, as long as it is not too much for what went in.
struct UnpackedContent<'s> {
    content: Box<dyn Read + 's>,
    /// Bytes that went in.
    packed: Rc<Cell<u64>>,
    /// Bytes that came out.
    given: u64,
}

impl Read for UnpackedContent<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let room = buffer.len().min(STEP_BYTES);
        let read = self.content.read(&mut buffer[..room]).map_err(or_window)?;
        self.given += read as u64;
        let allowed = FREE_BYTES.saturating_add(RATIO.saturating_mul(self.packed.get())).min(BYTES_MAX);
        if self.given > allowed { Err(too_large()) } else { Ok(read) }
    }
}

/// The failure of a decoder, by its right name if the window is to blame.
fn or_window(cause: Error) -> Error {
    /// `ZSTD_error_frameParameter_windowTooLarge`; the library gives codes as negative sizes.
    const WINDOW_TOO_LARGE: usize = 16_usize.wrapping_neg();
    let name = zstd::zstd_safe::get_error_name(WINDOW_TOO_LARGE);
    let is_window = cause.get_ref().is_some_and(|inner| inner.to_string() == name);
    if is_window { too_large() } else { cause }
}
