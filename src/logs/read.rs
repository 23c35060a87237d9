//! Reads log files in parallel: pieces of at most [`PIECE_BYTES`], largest first, each with one reused buffer per
//! worker. A piece owns the lines that begin in it, so any cutting of a file gives the same rows.

use std::cmp::Reverse;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use rayon::prelude::*;

use crate::base::damage::Reason;
use crate::base::files;
use crate::base::id::Id;
use crate::base::lines::{LineBuffer, LineReader, ReadLine};
use crate::base::unpack::{Packing, unpack};
use crate::logs::discover::{Hashing, LogFile};
use crate::logs::message::ExtractionGuide;
use crate::logs::record::Extractor;
use crate::logs::take::{TakeLines, TakeRecords};
use crate::logs::timeline::beside::add_agent_file;
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::timeline::{TimelineBeside, TimelineGuide, TimelineReader};
use crate::logs::trace::FileTrace;
use crate::logs::twofold::Twofold;

/// Rises when the same log gives other rows: then the logs that are on disk are read anew.
pub const READING: &str = "15";

/// Size of the pieces into which a large file is cut.
pub const PIECE_BYTES: u64 = 16 << 20;

/// Files that are read together, and their bytes for each worker: enough that no worker waits long for the others, few enough
/// that what a reading needs besides its rows does not add up.
pub const BATCH_FILES: usize = 1024;
const BATCH_BYTES: u64 = 4 * PIECE_BYTES;

/// A file to read, from an offset on.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub path: &'a Path,
    pub packing: Packing,
    /// Where to begin: 0, or behind a line feed.
    pub from: u64,
    /// Where to end: the size when the file was listed. What is appended later waits for the next run.
    pub to: u64,
    /// Whether a name for its content is wanted, see [`FileReading::content`].
    pub named: bool,
}

impl<'a> Job<'a> {
    /// All of a file, without a name for its content.
    pub fn of(file: &'a LogFile) -> Self {
        Self { path: &file.path, packing: file.packing, from: 0, to: file.bytes, named: false }
    }

    /// Whether a piece is all of the file.
    fn is_whole(&self, piece: &Piece) -> bool {
        piece.start == 0 && (self.packing != Packing::Plain || piece.end == self.to)
    }

    /// Whether all of the file goes by in one piece, as it stands on the disk.
    pub fn is_one_piece(&self) -> bool {
        self.packing == Packing::Plain && self.from == 0 && self.to <= PIECE_BYTES
    }
}

/// What reading a file gave.
#[derive(Debug, Default)]
pub struct FileReading {
    /// Rows and counts.
    pub trace: FileTrace,
    /// Whether the file ends without a line feed: its last line may still be growing.
    pub open_tail: bool,
    /// Why the system did not let it be read to its end, if it did not. What was read is no fact about the file then.
    pub failure: Option<String>,
    /// Name of all of the file, if that was wanted and all of it went by in one piece.
    pub content: Option<Id>,
    /// What it says for a timeline, if that was wanted and all of it went by in one piece.
    pub timeline: Option<FileTimeline>,
    /// The same of a file, packed.
    pub packed: Option<Vec<u8>>,
}

/// A piece of a file.
pub struct Piece {
    /// Number of the job.
    pub job: usize,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

/// Reads all jobs and hands what each gave to `take`, in their order, while the next ones are read, until it says that this is
/// enough. `advance` is told of bytes as they are done. Never are more than twice [`BATCH_FILES`] read that were not taken.
pub fn read_all(
    jobs: &[Job<'_>],
    guide: ExtractionGuide<'_>,
    pool: &rayon::ThreadPool,
    advance: &(dyn Fn(u64) + Sync),
    take: &mut dyn FnMut(FileReading) -> ControlFlow<()>,
) {
    let (hand_on, read) = mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        let mut batches = batches(jobs, BATCH_BYTES * pool.current_num_threads() as u64);
        scope.spawn(move || batches.try_for_each(|batch| hand_on.send(read_batch(batch, guide, pool, advance))));
        let _is_enough = read.into_iter().flatten().try_for_each(take);
    });
}

/// Jobs that follow each other, of so many bytes at least, and of [`BATCH_FILES`] at most.
fn batches<'j, 'p>(mut jobs: &'j [Job<'p>], bytes: u64) -> impl Iterator<Item = &'j [Job<'p>]> {
    std::iter::from_fn(move || {
        let mut sum = 0;
        let is_more = |job: &&Job<'_>| {
            let is_more = sum < bytes;
            sum += job.to - job.from;
            is_more
        };
        let (batch, rest) = jobs.split_at(jobs.iter().take(BATCH_FILES).take_while(is_more).count());
        jobs = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

fn read_batch(
    jobs: &[Job<'_>],
    guide: ExtractionGuide<'_>,
    pool: &rayon::ThreadPool,
    advance: &(dyn Fn(u64) + Sync),
) -> Vec<FileReading> {
    let pieces = cut(jobs, PIECE_BYTES);
    let sizes: Vec<u64> = pieces.iter().map(|piece| piece.end - piece.start).collect();
    let read = largest_first(pool, &sizes, &LineBuffer::default, &|buffer, index| {
        let piece = &pieces[index];
        let reading = read_piece(&jobs[piece.job], piece, guide, buffer);
        advance(sizes[index]);
        reading
    });
    let mut read = read.into_iter();
    let of_job = |own: &[Piece]| read.by_ref().take(own.len()).collect();
    let by_job: Vec<Vec<FileReading>> = pieces.chunk_by(|one, other| one.job == other.job).map(of_job).collect();
    pool.install(|| by_job.into_par_iter().map(|pieces| join(pieces, guide)).collect())
}

/// Does some work on each of several things, the largest first. A worker goes on with what `begin` gave it from one to the
/// next. What came of them stands in the order of the sizes.
pub(super) fn largest_first<W, T: Send>(
    pool: &rayon::ThreadPool,
    sizes: &[u64],
    begin: &(dyn Fn() -> W + Sync),
    work: &(dyn Fn(&mut W, usize) -> T + Sync),
) -> Vec<T> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&index| Reverse(sizes[index]));
    let next = AtomicUsize::new(0);
    let done: Vec<Vec<(usize, T)>> = pool.broadcast(|_| {
        let mut worker = begin();
        let mut done = Vec::new();
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((index, work(&mut worker, index)));
        }
        done
    });
    let mut done: Vec<(usize, T)> = done.into_iter().flatten().collect();
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Reads one stream to its end, for instance standard input; how it is packed is told by its first bytes.
pub fn read_stream(source: impl Read, guide: ExtractionGuide<'_>) -> FileReading {
    let mut light = Extractor::new(guide);
    let end = read_stream_into(source, &mut light);
    FileReading { trace: light.finish(), ..end }
}

/// The same, both ways.
pub fn read_stream_twofold(
    source: impl Read,
    guide: ExtractionGuide<'_>,
    timeline: TimelineReader<'_, '_>,
) -> FileReading {
    let mut reader = Twofold { light: Extractor::new(guide), timeline };
    let end = read_stream_into(source, &mut reader);
    reader.finish(end)
}

/// The same for any reader; tells how it ended.
pub fn read_stream_into(source: impl Read, reader: &mut impl TakeLines) -> FileReading {
    match unpacked(source) {
        Ok((source, packing)) => {
            let mut buffer = LineBuffer::default();
            take_lines(LineReader::new(source, &mut buffer), u64::MAX, packing, reader)
        }
        Err(cause) => {
            reader.file_damage(Reason::Unreadable);
            FileReading { failure: Some(cause.to_string()), ..FileReading::default() }
        }
    }
}

/// A stream unpacked, and how it was packed.
fn unpacked<'s>(mut source: impl Read + 's) -> std::io::Result<(Box<dyn Read + 's>, Packing)> {
    let mut head = Vec::new();
    source.by_ref().take(4).read_to_end(&mut head)?;
    let packing = Packing::of_start(&head);
    Ok((unpack(packing, std::io::Cursor::new(head).chain(source))?, packing))
}

fn unreadable(cause: &std::io::Error) -> FileReading {
    let mut reading = FileReading { failure: Some(cause.to_string()), ..FileReading::default() };
    reading.trace.counters.damage.add(Reason::Unreadable, 0);
    reading
}

/// Cuts files that are not packed in pieces of at most so many bytes.
pub fn cut(jobs: &[Job<'_>], piece_bytes: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (job, file) in jobs.iter().enumerate() {
        let step = if file.packing == Packing::Plain { piece_bytes } else { u64::MAX };
        // A file that holds nothing is one piece as well.
        let starts = (file.from..file.to.max(file.from + 1)).step_by(step as usize);
        pieces.extend(starts.map(|start| Piece { job, start, end: start.saturating_add(step).min(file.to) }));
    }
    pieces
}

fn read_piece(job: &Job<'_>, piece: &Piece, guide: ExtractionGuide<'_>, buffer: &mut LineBuffer) -> FileReading {
    // A timeline is made from the first line to the last.
    let guide = ExtractionGuide { timeline: guide.timeline.filter(|_| job.is_whole(piece)), ..guide };
    let read = if job.named && job.is_one_piece() {
        open(job, piece).map(|source| {
            let mut source = Hashing::new(source);
            let reading = read_lines(LineReader::new(&mut source, buffer), u64::MAX, guide, job.packing);
            let content = reading.failure.is_none().then(|| source.name());
            FileReading { content, ..reading }
        })
    } else {
        let own = own_lines(job, piece, buffer);
        own.map(|own| own.map(|(lines, owned)| read_lines(lines, owned, guide, job.packing)).unwrap_or_default())
    };
    let mut reading = read.unwrap_or_else(|cause| unreadable(&cause));
    if let (Some(mut file), Some(beside)) = (reading.timeline.take(), guide.timeline) {
        add_agent_file(job.path, &mut file);
        reading.packed = Some((beside.pack)(&mut file));
    }
    reading
}

/// Lines, and the offset in their stream before which those begin that are meant.
type OwnLines<'b> = (LineReader<'b, Box<dyn Read>>, u64);

/// The lines that begin in a piece; none if none begins there.
fn own_lines<'b>(job: &Job<'_>, piece: &Piece, buffer: &'b mut LineBuffer) -> std::io::Result<Option<OwnLines<'b>>> {
    let mut lines = LineReader::new(open(job, piece)?, buffer);
    let mut owned = if job.packing == Packing::Plain { piece.end - piece.start } else { u64::MAX };
    // One byte before the piece tells whether its first byte begins a line.
    if piece.start > job.from {
        owned += 1;
        if !lines.pass_over(owned)? {
            return Ok(None);
        }
    }
    Ok(Some((lines, owned)))
}

/// Hands the lines that begin in a piece to `reader`; a failing file is counted.
pub fn take_piece(job: &Job<'_>, piece: &Piece, buffer: &mut LineBuffer, reader: &mut impl TakeLines) {
    match own_lines(job, piece, buffer) {
        Ok(Some((lines, owned))) => drop(take_lines(lines, owned, job.packing, reader)),
        Ok(None) => {}
        Err(_) => reader.file_damage(Reason::Unreadable),
    }
}

fn open(job: &Job<'_>, piece: &Piece) -> std::io::Result<Box<dyn Read>> {
    let mut file = files::open(job.path)?;
    let start = if piece.start > job.from { piece.start - 1 } else { piece.start };
    file.seek(SeekFrom::Start(start))?;
    unpack(job.packing, file.take(job.to - start))
}

/// Takes all lines that begin before the offset `owned` of the stream; a failing stream is counted.
fn read_lines<R: Read>(
    lines: LineReader<'_, R>,
    owned: u64,
    guide: ExtractionGuide<'_>,
    packing: Packing,
) -> FileReading {
    let mut light = Extractor::new(guide);
    let Some(TimelineBeside { rules, with_words, .. }) = guide.timeline else {
        let end = take_lines(lines, owned, packing, &mut light);
        return FileReading { trace: light.finish(), ..end };
    };
    let ExtractionGuide { vocabulary, endpoints, .. } = guide;
    let timeline_guide = TimelineGuide { vocabulary, endpoints, rules, with_words, token_counter: None };
    let timeline = TimelineReader::new(timeline_guide, None);
    let mut reader = Twofold { light, timeline };
    let end = take_lines(lines, owned, packing, &mut reader);
    reader.finish(end)
}

/// Hands the lines that begin before the offset `owned` to `reader`; tells how they ended.
fn take_lines<R: Read>(
    mut lines: LineReader<'_, R>,
    owned: u64,
    packing: Packing,
    reader: &mut impl TakeLines,
) -> FileReading {
    let mut end = FileReading::default();
    while lines.offset() < owned {
        match lines.next_line() {
            Ok(None) => break,
            Ok(Some(ReadLine { bytes, terminated })) => {
                match bytes {
                    Some(line) => reader.line(line, !terminated),
                    None => reader.oversize_line(),
                }
                end.open_tail = !terminated;
            }
            Err(cause) => {
                let damage = packing.damage(&cause);
                reader.file_damage(damage);
                end.failure = (damage == Reason::Unreadable).then(|| cause.to_string());
                break;
            }
        }
    }
    end
}

/// Hands all lines of a file to `reader`, in their order. Says why the system did not let it be read to its end, if it did
/// not.
pub fn read_whole(job: &Job<'_>, buffer: &mut LineBuffer, reader: &mut impl TakeLines) -> Option<String> {
    match open(job, &Piece { job: 0, start: job.from, end: job.to }) {
        Ok(source) => take_lines(LineReader::new(source, buffer), u64::MAX, job.packing, reader).failure,
        Err(cause) => {
            reader.file_damage(Reason::Unreadable);
            Some(cause.to_string())
        }
    }
}

/// A file of which a reader did not see all, and why.
pub type Failure = (PathBuf, String);

/// Reads each file as a whole with a reader of its own, one worker a file, the largest first. Tells what came of them, in
/// the order of the jobs, and which of them are not or not all in it.
pub fn read_each<R: TakeRecords, T: Send>(
    jobs: &[Job<'_>],
    pool: &rayon::ThreadPool,
    begin: &(dyn Fn(usize) -> R + Sync),
    end: &(dyn Fn(R) -> T + Sync),
) -> (Vec<T>, Vec<Failure>) {
    let read = largest_first(pool, &sizes_of(jobs), &LineBuffer::default, &|buffer, job| {
        let mut reader = begin(job);
        let failure = read_whole(&jobs[job], buffer, &mut reader);
        (end(reader), failure)
    });
    let mut failures = Vec::new();
    let made = read.into_iter().zip(jobs).map(|((made, failure), job)| {
        failures.extend(failure.map(|why| (job.path.to_owned(), why)));
        made
    });
    (made.collect(), failures)
}

/// By what [`largest_first`] takes whole files.
pub(super) fn sizes_of(jobs: &[Job<'_>]) -> Vec<u64> {
    jobs.iter().map(|job| job.to).collect()
}

/// Joins the pieces of one file, which stand in their order.
fn join(mut pieces: Vec<FileReading>, guide: ExtractionGuide<'_>) -> FileReading {
    if pieces.len() == 1 {
        return pieces.swap_remove(0);
    }
    let mut whole = FileReading::default();
    // Doubling as they grow would take half as much again.
    whole.trace.rows.calls.reserve_exact(pieces.iter().map(|piece| piece.trace.rows.calls.len()).sum());
    whole.trace.rows.messages.reserve_exact(pieces.iter().map(|piece| piece.trace.rows.messages.len()).sum());
    for piece in pieces {
        whole.open_tail |= piece.open_tail;
        whole.failure = whole.failure.or(piece.failure);
        whole.trace.append(piece.trace);
    }
    whole.trace.fold(guide.values);
    whole
}
