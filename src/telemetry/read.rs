//! Reads telemetry in parallel: pieces of at most [`PIECE_BYTES`], each with one reused buffer per worker.
//! A piece owns the lines that begin in it, and rows are ordered when all are there: neither the cutting nor the number
//! of threads shows in what comes out.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use crate::base::damage::Reason;
use crate::base::lines::LineBuffer;
use crate::base::unpack;
use crate::base::visible::Shown as _;
use crate::logs::read::{Job, PIECE_BYTES, Piece, cut, take_piece};
use crate::logs::trace::Millis;
use crate::telemetry::gather::{Gathered, Routes};
use crate::telemetry::log::EventLog;
use crate::telemetry::parse::{ParseCounts, Parser};
use crate::telemetry::places::{EventFile, FileSelection, TelemetryPlace, event_files, select};

/// What is wanted of the telemetry.
#[derive(Clone, Debug)]
pub struct TelemetryRequest {
    /// Only events of this time.
    pub window: Range<Millis>,
    /// Silence, in milliseconds, behind which a process id is taken to have been handed out again.
    pub recycled_gap_ms: u64,
}

/// What one file gave.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRead {
    pub path: PathBuf,
    pub bytes: u64,
    /// Modification time; [`crate::logs::trace::NO_TIME`] if unknown.
    pub modified_ms: Millis,
    /// Lines, events, damage.
    pub counts: ParseCounts,
}

/// The files that are to be read.
#[derive(Debug)]
pub struct TelemetryListing {
    places: Vec<TelemetryPlace>,
    selection: FileSelection,
}

/// All telemetry of some places.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// Events in their order, whatever files they stood in.
    pub log: EventLog,
    /// Files by path.
    pub files: Vec<FileRead>,
    pub places: Vec<TelemetryPlace>,
    /// Files that were not read because another one of the same name begins with all that they hold.
    pub copies: u64,
    /// Events that were merged with one of the same id, time and figures: they stood in copies of a file, or were emitted twice.
    pub copied_events: u64,
    /// Files that were not read because they were last written before the window.
    pub files_outside_window: u64,
    /// What else the user should know.
    pub notes: Vec<String>,
}

impl TelemetryListing {
    /// Looks at the places. Files last written before `since` are left out.
    pub fn new(mut places: Vec<TelemetryPlace>, since: Millis) -> Self {
        let found = event_files(&mut places);
        let mut selection = select(found.files, since);
        selection.notes.extend(found.notes);
        Self { places, selection }
    }

    /// Whether there is no file of telemetry at all.
    pub fn is_empty(&self) -> bool {
        self.selection.files.is_empty()
    }

    /// Reads the files. `advance` is told of bytes as they are done.
    pub fn read(
        self,
        request: &TelemetryRequest,
        pool: &rayon::ThreadPool,
        advance: &(dyn Fn(u64) + Sync),
    ) -> Telemetry {
        self.read_cut(request, pool, advance, PIECE_BYTES)
    }

    /// The same with pieces of another size.
    pub(crate) fn read_cut(
        self,
        request: &TelemetryRequest,
        pool: &rayon::ThreadPool,
        advance: &(dyn Fn(u64) + Sync),
        piece_bytes: u64,
    ) -> Telemetry {
        let Self { places, selection: FileSelection { files, copies, outside_window, mut notes } } = self;
        let whole = files.iter().map(|file| Job {
            path: &file.path,
            packing: file.packing,
            from: 0,
            to: file.bytes,
            named: false,
        });
        let jobs: Vec<Job<'_>> = whole.collect();
        let pieces = in_order(cut(&jobs, piece_bytes));
        let gathered = Mutex::new(Gathered::default());
        let next = AtomicUsize::new(0);
        let done = pool.broadcast(|_| work(&jobs, &pieces, &next, request, &gathered, advance));
        let gathered = gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (log, copied_events) = pool.install(|| gathered.into_log(request));

        let mut done: Vec<(&Piece, ParseCounts)> = done.into_iter().flatten().collect();
        done.sort_by_key(|(piece, _)| (piece.job, piece.start));
        let mut counts = vec![ParseCounts::default(); files.len()];
        for (piece, of_piece) in done {
            counts[piece.job].absorb(&of_piece);
        }
        let files: Vec<FileRead> =
            files.into_iter().zip(counts).map(|(file, counts)| file_read(file, counts)).collect();
        notes.extend(files.iter().flat_map(lacking));
        Telemetry { log, files, places, copies, copied_events, files_outside_window: outside_window, notes }
    }
}

fn file_read(file: EventFile, mut counts: ParseCounts) -> FileRead {
    // Each piece of a file that cannot be read has said so.
    if let Some(spot) = counts.damage.0.get_mut(&Reason::Unreadable) {
        spot.count = 1;
    }
    FileRead { path: file.path, bytes: file.bytes, modified_ms: file.modified_ms, counts }
}

/// Says what of a file is in no report.
fn lacking(file: &FileRead) -> Vec<String> {
    let of = |reason: Reason, what: &str| {
        (file.counts.damage.count(reason) > 0).then(|| format!("{} {what}", file.path.shown()))
    };
    let unread = of(Reason::Unreadable, "could not be read to its end: what was read of it counts");
    unread.into_iter().chain(of(Reason::UnpacksTooLarge, unpack::TOO_LARGE)).collect()
}

/// In the order of the files: mostly that is the order of sessions, in which events end, and pieces are small enough that the
/// last one keeps no thread alone for long. But for packed files, which are one piece each: the largest come first.
fn in_order(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| std::cmp::Reverse((piece.end - piece.start).max(PIECE_BYTES)));
    pieces
}

/// One worker: takes pieces until none is left, and hands the events of each over before it takes the next; those of one piece
/// wait for the next if another worker is about to do the same. Gives what each piece held besides events.
fn work<'p>(
    jobs: &[Job<'_>],
    pieces: &'p [Piece],
    next: &AtomicUsize,
    request: &TelemetryRequest,
    gathered: &Mutex<Gathered>,
    advance: &(dyn Fn(u64) + Sync),
) -> Vec<(&'p Piece, ParseCounts)> {
    let mut parser = Parser::new(&request.window);
    let mut routes = Routes::default();
    let mut buffer = LineBuffer::default();
    let (mut done, mut waits) = (Vec::new(), false);
    while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
        take_piece(&jobs[piece.job], piece, &mut buffer, &mut parser);
        waits = !waits && matches!(gathered.try_lock(), Err(TryLockError::WouldBlock));
        if !waits {
            hand_over(gathered, &mut parser, &mut routes);
        }
        done.push((piece, std::mem::take(&mut parser.rows.counts)));
        advance(piece.end - piece.start);
    }
    hand_over(gathered, &mut parser, &mut routes);
    done
}

fn hand_over(gathered: &Mutex<Gathered>, parser: &mut Parser<'_>, routes: &mut Routes) {
    // A poisoned lock only means that another worker panicked, which the pool will pass on.
    let mut all = gathered.lock().unwrap_or_else(PoisonError::into_inner);
    all.take(&mut parser.rows, &parser.texts, routes);
}
