//! Reads log files in parallel: pieces of at most [`PIECE_BYTES`], largest first, each with one reused buffer per
//! worker. A piece owns the lines that begin in it, so any cutting of a file gives the same rows.

use std::cmp::Reverse;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::files;
use crate::lines::{Line, LineBuffer, Lines};
use crate::logs::discover::Packing;
use crate::logs::message::Guide;
use crate::logs::record::Extractor;
use crate::logs::take::{Both, TakeLines};
use crate::model::damage::Reason;
use crate::model::trace::FileTrace;

/// Size of the pieces into which a large file is cut.
pub const PIECE_BYTES: u64 = 16 << 20;

/// A file to read, from an offset on.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file.
    pub path: &'a Path,
    /// How it is packed.
    pub packing: Packing,
    /// Where to begin: 0, or behind a line feed.
    pub from: u64,
    /// Where to end: the size when the file was listed. What is appended later waits for the next run.
    pub to: u64,
}

/// What reading a file gave.
#[derive(Debug, Default)]
pub struct Reading {
    /// Rows and counts.
    pub trace: FileTrace,
    /// Whether the file ends without a line feed: its last line may still be growing.
    pub open_tail: bool,
    /// Why the file could not be opened, if it could not.
    pub failure: Option<String>,
}

struct Piece {
    job: usize,
    start: u64,
    end: u64,
}

/// Reads all jobs; the results stand in the order of the jobs. `advance` is told of bytes as they are done.
pub fn read_all(
    jobs: &[Job<'_>],
    guide: Guide<'_>,
    pool: &rayon::ThreadPool,
    advance: &(dyn Fn(u64) + Sync),
) -> Vec<Reading> {
    let mut pieces = cut(jobs);
    pieces.sort_by_key(|piece| (Reverse(piece.end - piece.start), piece.job, piece.start));
    let next = AtomicUsize::new(0);
    let read: Vec<Vec<(usize, u64, Reading)>> = pool.broadcast(|_| {
        let mut buffer = LineBuffer::default();
        let mut done = Vec::new();
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let reading = read_piece(&jobs[piece.job], piece, guide, &mut buffer);
            advance(piece.end - piece.start);
            done.push((piece.job, piece.start, reading));
        }
        done
    });
    let mut by_job: Vec<Vec<(u64, Reading)>> = Vec::new();
    by_job.resize_with(jobs.len(), Vec::new);
    for (job, start, reading) in read.into_iter().flatten() {
        by_job[job].push((start, reading));
    }
    pool.install(|| by_job.into_par_iter().map(|pieces| join(pieces, guide)).collect())
}

/// Reads one stream to its end, for instance standard input; how it is packed is told by its first bytes.
pub fn read_stream(source: impl Read, guide: Guide<'_>) -> Reading {
    let mut extractor = Extractor::new(guide);
    let open_tail = read_stream_into(source, &mut extractor);
    Reading { trace: extractor.finish(), open_tail, failure: None }
}

/// The same, while another reader takes the lines as well.
pub fn read_stream_with(source: impl Read, guide: Guide<'_>, other: &mut impl TakeLines) -> Reading {
    let mut extractor = Extractor::new(guide);
    let open_tail = read_stream_into(source, &mut Both(&mut extractor, other));
    Reading { trace: extractor.finish(), open_tail, failure: None }
}

/// The same for any reader; true if the stream ends without a line feed.
pub fn read_stream_into(source: impl Read, reader: &mut impl TakeLines) -> bool {
    match unpacked(source) {
        Ok((source, on_error)) => {
            let mut buffer = LineBuffer::default();
            take_lines(Lines::new(source, &mut buffer), u64::MAX, on_error, reader)
        }
        Err(_) => {
            reader.file_damage(Reason::Unreadable);
            false
        }
    }
}

/// A stream unpacked, and what a failure of it means.
fn unpacked<'s>(mut source: impl Read + 's) -> std::io::Result<(Box<dyn Read + 's>, Reason)> {
    let mut head = Vec::new();
    source.by_ref().take(4).read_to_end(&mut head)?;
    let magic = head.clone();
    let whole = std::io::Cursor::new(head).chain(source);
    Ok(match magic.as_slice() {
        [0x1F, 0x8B, ..] => (Box::new(flate2::read::MultiGzDecoder::new(whole)), Reason::BrokenCompression),
        [0x28, 0xB5, 0x2F, 0xFD] => (Box::new(zstd::stream::read::Decoder::new(whole)?), Reason::BrokenCompression),
        _ => (Box::new(whole), Reason::Unreadable),
    })
}

fn unreadable(cause: &std::io::Error) -> Reading {
    let mut reading = Reading { failure: Some(cause.to_string()), ..Reading::default() };
    reading.trace.counters.damage.add(Reason::Unreadable, 0);
    reading
}

fn cut(jobs: &[Job<'_>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (job, file) in jobs.iter().enumerate() {
        let step = if file.packing == Packing::Plain { PIECE_BYTES } else { u64::MAX };
        let mut start = file.from;
        loop {
            let end = start.saturating_add(step).min(file.to);
            pieces.push(Piece { job, start, end });
            start = end;
            if start >= file.to {
                break;
            }
        }
    }
    pieces
}

fn read_piece(job: &Job<'_>, piece: &Piece, guide: Guide<'_>, buffer: &mut LineBuffer) -> Reading {
    let opened = open(job, piece).and_then(|source| {
        let mut lines = Lines::new(source, buffer);
        if job.packing != Packing::Plain {
            return Ok(read_lines(lines, u64::MAX, guide, Reason::BrokenCompression));
        }
        // One byte before the piece tells whether its first byte begins a line.
        let mut owned = piece.end - piece.start;
        if piece.start > job.from {
            owned += 1;
            if !lines.pass_over(owned)? {
                return Ok(Reading::default());
            }
        }
        Ok(read_lines(lines, owned, guide, Reason::Unreadable))
    });
    opened.unwrap_or_else(|cause| unreadable(&cause))
}

fn open(job: &Job<'_>, piece: &Piece) -> std::io::Result<Box<dyn Read>> {
    let mut file = files::open(job.path)?;
    Ok(match job.packing {
        Packing::Plain => {
            let start = if piece.start > job.from { piece.start - 1 } else { piece.start };
            file.seek(SeekFrom::Start(start))?;
            Box::new(file.take(job.to - start))
        }
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file))),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(file)?),
    })
}

/// Takes all lines that begin before the offset `owned` of the stream; a failing stream is counted as `on_error`.
fn read_lines<R: Read>(lines: Lines<'_, R>, owned: u64, guide: Guide<'_>, on_error: Reason) -> Reading {
    let mut extractor = Extractor::new(guide);
    let open_tail = take_lines(lines, owned, on_error, &mut extractor);
    Reading { trace: extractor.finish(), open_tail, failure: None }
}

/// Hands the lines that begin before the offset `owned` to `reader`; true if the last one has no line feed.
fn take_lines<R: Read>(mut lines: Lines<'_, R>, owned: u64, on_error: Reason, reader: &mut impl TakeLines) -> bool {
    let mut open_tail = false;
    while lines.offset() < owned {
        match lines.next_line() {
            Ok(None) => break,
            Ok(Some(Line::Text { bytes, terminated })) => {
                reader.line(bytes, !terminated);
                open_tail = !terminated;
            }
            Ok(Some(Line::Oversize { terminated })) => {
                reader.oversize_line();
                open_tail = !terminated;
            }
            Err(cause) => {
                // What the system says is no fact about the content.
                let is_system = cause.raw_os_error().is_some();
                reader.file_damage(if is_system { Reason::Unreadable } else { on_error });
                break;
            }
        }
    }
    open_tail
}

/// Hands all lines of a file to `reader`, in their order.
pub fn read_whole(job: &Job<'_>, buffer: &mut LineBuffer, reader: &mut impl TakeLines) {
    let on_error = if job.packing == Packing::Plain { Reason::Unreadable } else { Reason::BrokenCompression };
    match open(job, &Piece { job: 0, start: job.from, end: job.to }) {
        Ok(source) => drop(take_lines(Lines::new(source, buffer), u64::MAX, on_error, reader)),
        Err(_) => reader.file_damage(Reason::Unreadable),
    }
}

/// Reads each file as a whole with a reader of its own, one worker a file, the largest first. Tells what came of them, in the order of the jobs.
pub fn read_each<R: TakeLines, T: Send>(
    jobs: &[Job<'_>],
    pool: &rayon::ThreadPool,
    begin: &(dyn Fn(usize) -> R + Sync),
    end: &(dyn Fn(R) -> T + Sync),
) -> Vec<T> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| (Reverse(jobs[job].to), job));
    let next = AtomicUsize::new(0);
    let read: Vec<Vec<(usize, T)>> = pool.broadcast(|_| {
        let mut buffer = LineBuffer::default();
        let mut done = Vec::new();
        while let Some(&job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut reader = begin(job);
            read_whole(&jobs[job], &mut buffer, &mut reader);
            done.push((job, end(reader)));
        }
        done
    });
    let mut files: Vec<(usize, T)> = read.into_iter().flatten().collect();
    files.sort_by_key(|(job, _)| *job);
    files.into_iter().map(|(_, made)| made).collect()
}

/// Joins the pieces of one file in their order.
fn join(mut pieces: Vec<(u64, Reading)>, guide: Guide<'_>) -> Reading {
    pieces.sort_by_key(|(start, _)| *start);
    if pieces.len() == 1 {
        return pieces.swap_remove(0).1;
    }
    let mut whole = Reading::default();
    for (_, piece) in pieces {
        whole.open_tail |= piece.open_tail;
        whole.failure = whole.failure.or(piece.failure);
        whole.trace.append(piece.trace);
    }
    whole.trace.fold(&guide.values.data_tools);
    whole
}
