//! Where telemetry may lie, every file of it below those places once, and which of these are read: no event may count twice, and
//! none that is known to lie outside the window.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::base::unpack::{Packing, unpack};
use crate::base::visible::Shown as _;
use crate::base::walk::{FoundFile, Walk};
use crate::base::{files, numbers};
use crate::logs::trace::{Millis, NO_TIME};
use crate::telemetry::annotate::ANNOTATED;

/// A place to look for telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryPlace {
    /// A directory or a file.
    pub path: PathBuf,
    /// Who named it: `--input-dir`, `default`, `DEVBOY_TELEMETRY_DIR` or `telemetry.path`.
    pub origin: &'static str,
    pub found: bool,
}

/// What decides where telemetry is looked for.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub home: Option<PathBuf>,
    /// `DEVBOY_TELEMETRY_DIR`.
    pub telemetry_dir: Option<PathBuf>,
    /// `telemetry.path` of the configuration.
    pub configured: Option<PathBuf>,
}

/// The places to read: those given, else every one to which a live pipeline is known to write.
pub fn places(given: &[PathBuf], around: &Surroundings) -> Vec<TelemetryPlace> {
    let place = |path: PathBuf, origin| TelemetryPlace { path, origin, found: false };
    if !given.is_empty() {
        return given.iter().map(|path| place(path.clone(), "--input-dir")).collect();
    }
    let mut places = Vec::new();
    if let Some(home) = &around.home {
        let written = home.join(".config").join("devboy").join("telemetry");
        places.push(place(written.join("events"), "default"));
        places.push(place(written.join("sessions.jsonl"), "default"));
        places.push(place(home.join(".devboy").join("telemetry"), "default"));
    }
    places.extend(around.telemetry_dir.clone().map(|path| place(path, "DEVBOY_TELEMETRY_DIR")));
    places.extend(around.configured.clone().map(|path| place(path, "telemetry.path")));
    places
}

/// One file of telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFile {
    /// Path as it is shown.
    pub path: PathBuf,
    /// Path with links resolved.
    pub canonical: PathBuf,
    /// Size at the time of the listing.
    pub bytes: u64,
    /// Modification time; [`NO_TIME`] where the system has none.
    pub modified_ms: Millis,
    /// How it is packed, by its name.
    pub packing: Packing,
}

/// What a look at the places gave.
#[derive(Debug, Default)]
pub struct FoundTelemetry {
    /// Files by path.
    pub files: Vec<EventFile>,
    /// What could not be opened and why.
    pub notes: Vec<String>,
}

/// Lists every file below the places once, however many links lead to it, and marks the places that are there.
pub fn event_files(places: &mut [TelemetryPlace]) -> FoundTelemetry {
    let (mut found, mut walk) = (FoundTelemetry::default(), Walk::default());
    for place in places {
        match walk.place(&place.path) {
            Ok(_) => place.found = true,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => found.odd(&place.path, &cause),
        }
    }
    walk.unreadable.iter().for_each(|(path, cause)| found.odd(path, cause));
    walk.files.into_iter().for_each(|file| found.file(file));
    found.note_passed_over(&walk.others);
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    // Of texts without a second spelling bytes tell as much as parts, and sooner.
    let mut seen = HashSet::new();
    found.files.retain(|file| seen.insert(file.canonical.clone().into_os_string()));
    found
}

impl FoundTelemetry {
    fn odd(&mut self, path: &Path, cause: &std::io::Error) {
        self.notes.push(format!("{}: {cause}", path.shown()));
    }

    /// Tells of files that look like telemetry and do not end as it does (`s.jsonl.1`, `S.JSONL`).
    fn note_passed_over(&mut self, others: &[PathBuf]) {
        let passed_over: BTreeSet<&PathBuf> = others.iter().filter(|path| looks_like_lines(path)).collect();
        let Some(first) = passed_over.first() else { return };
        let files = numbers::counted(passed_over.len() as u64, "file");
        let endings = "`.jsonl`, `.jsonl.gz` or `.jsonl.zst`";
        let first = first.shown();
        self.notes.push(format!(
            "not read: {files} with `.jsonl` inside the name but not at its end (first: {first}); rename them to end in \
             {endings}, or name each with --input-dir"
        ));
    }

    fn file(&mut self, FoundFile { path, canonical, packing }: FoundFile) {
        match std::fs::metadata(&path) {
            Err(cause) => self.odd(&path, &cause),
            // A pipe would keep the reader waiting.
            Ok(meta) if !meta.is_file() => self.notes.push(format!("{}: not a file", path.shown())),
            Ok(meta) => {
                let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let modified_ms =
                    modified.map_or(NO_TIME, |time| Millis::try_from(time.as_millis()).unwrap_or(NO_TIME));
                self.files.push(EventFile { path, canonical, bytes: meta.len(), modified_ms, packing });
            }
        }
    }
}

/// Whether a name has `.jsonl` in it, large or small. Hidden files are of programs that have not finished writing them.
fn looks_like_lines(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    !name.starts_with('.') && name.contains(".jsonl")
}

/// Bytes at the start of a file by which most pairs are told apart without a second look.
const HEAD_BYTES: u64 = 4096;
/// Bytes compared at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// The files to read and what was left out.
#[derive(Debug, Default)]
pub(super) struct FileSelection {
    /// Files by path.
    pub(super) files: Vec<EventFile>,
    /// Files whose content stands in another file of the same name.
    pub(super) copies: u64,
    /// Files last written before the window.
    pub(super) outside_window: u64,
    /// What to tell the user.
    pub(super) notes: Vec<String>,
}

/// Chooses among files sorted by path.
pub(super) fn select(mut files: Vec<EventFile>, since: Millis) -> FileSelection {
    let before = files.len();
    files.retain(|file| file.modified_ms == NO_TIME || file.modified_ms >= since);
    let outside_window = (before - files.len()) as u64;

    let mut annotated_by = annotated_by(&files);
    let outdated = take_outdated(&files, &mut annotated_by);
    let (annotated, plain): (Vec<usize>, Vec<usize>) = (0..files.len())
        .filter(|place| !outdated.contains_key(place))
        .partition(|&place| original_name(&files[place]).is_some());
    let mut notes = Vec::new();
    let mut unread = copies(&files, plain, &annotated_by, &mut notes);
    // An annotated file stands for its original, also where that is a copy.
    unread.extend(unread.clone().iter().flat_map(|original| annotated_by.get(original).into_iter().flatten()));
    let annotated = annotated.into_iter().filter(|place| !unread.contains(place)).collect();
    unread.extend(copies(&files, annotated, &annotated_by, &mut notes));
    unread.retain(|place| !annotated_by.contains_key(place));
    let copies = unread.len() as u64;
    notes.extend(note(&files, &annotated_by, &unread));
    notes.extend(outdated.values().next().map(|first| {
        let first = files[*first].path.shown();
        format!(
            "written to since they were annotated, so read without that; annotate them again: {} (first: {first})",
            outdated.len()
        )
    }));
    unread.extend(annotated_by.into_keys());
    unread.extend(outdated.into_keys());

    let files = files.into_iter().enumerate().filter(|(place, _)| !unread.contains(place)).map(|(_, file)| file);
    FileSelection { files: files.collect(), copies, outside_window, notes }
}

/// Originals with the annotated files that stand beside them.
type AnnotatedBeside = BTreeMap<usize, Vec<usize>>;

/// The name of the original, without its ending, if this is an annotated file.
fn original_name(file: &EventFile) -> Option<&[u8]> {
    Packing::split_name(&file.path)?.0.strip_suffix(ANNOTATED.as_bytes())
}

fn annotated_by(files: &[EventFile]) -> AnnotatedBeside {
    let mut by_original: BTreeMap<(Option<&Path>, &[u8]), Vec<usize>> = BTreeMap::new();
    for (place, file) in files.iter().enumerate() {
        if let Some(original) = original_name(file) {
            by_original.entry((file.path.parent(), original)).or_default().push(place);
        }
    }
    let annotated_of = |file: &EventFile| {
        let (name, _) = Packing::split_name(&file.path)?;
        by_original.get(&(file.path.parent(), name)).cloned()
    };
    files.iter().enumerate().filter_map(|(place, file)| Some((place, annotated_of(file)?))).collect()
}

/// Takes out the annotated files that lack what was recorded since, each with its original, which is read instead.
fn take_outdated(files: &[EventFile], annotated_by: &mut AnnotatedBeside) -> BTreeMap<usize, usize> {
    let mut outdated = BTreeMap::new();
    annotated_by.retain(|&original, annotated| {
        let is_outdated = |annotated: &usize| {
            let [newer, older] = [original, *annotated].map(|place| &files[place]);
            // A file of which old events were dropped is newer as well.
            older.modified_ms < newer.modified_ms
                && lines(older).zip(lines(newer)).is_some_and(|(few, more)| few < more)
        };
        let all = annotated.iter().all(is_outdated);
        if all {
            outdated.extend(annotated.iter().map(|annotated| (*annotated, original)));
        }
        !all
    });
    outdated
}

/// Line ends in a file; none if it cannot be read.
fn lines(file: &EventFile) -> Option<u64> {
    let mut text = unpack(file.packing, files::open(&file.path).ok()?.take(file.bytes)).ok()?;
    let (mut block, mut count) = (vec![0; BLOCK_BYTES], 0);
    loop {
        match text.read(&mut block).ok()? {
            0 => return Some(count),
            read => count += memchr::memchr_iter(b'\n', &block[..read]).count() as u64,
        }
    }
}

/// Says which originals are not read because annotated files stand for them.
fn note(files: &[EventFile], annotated_by: &AnnotatedBeside, unread: &BTreeSet<usize>) -> Option<String> {
    let stands = |annotated: &&usize| !unread.contains(annotated);
    let pairs: Vec<(&EventFile, &EventFile)> = annotated_by
        .iter()
        .filter_map(|(original, annotated)| Some((&files[*original], &files[*annotated.iter().find(stands)?])))
        .collect();
    let (_, first) = pairs.first()?;
    Some(format!("originals read in their annotated form: {} (first: {})", pairs.len(), first.path.shown()))
}

/// Which of some files have nothing but the beginning of another one with the same name, or all of it. Of equal ones
/// that with an annotation stays, or else the first by path. Files that cannot be compared are noted.
fn copies(
    files: &[EventFile],
    among: Vec<usize>,
    annotated_by: &AnnotatedBeside,
    notes: &mut Vec<String>,
) -> BTreeSet<usize> {
    let mut by_name: BTreeMap<Option<&OsStr>, Vec<usize>> = BTreeMap::new();
    for place in among {
        by_name.entry(files[place].path.file_name()).or_default().push(place);
    }
    let mut copies = BTreeSet::new();
    for (_, mut group) in by_name.into_iter().filter(|(_, group)| group.len() > 1) {
        group.sort_by_key(|&place| (std::cmp::Reverse(files[place].bytes), !annotated_by.contains_key(&place), place));
        let mut kept: Vec<(usize, Vec<u8>)> = Vec::new();
        for place in group {
            let file = &files[place];
            let head = head(file).and_then(|head| {
                let mut others = kept.iter().filter(|(_, other)| other.starts_with(&head));
                let is_copy = others.try_fold(false, |is_copy, (other, _)| {
                    Ok::<_, std::io::Error>(is_copy || is_beginning(file, &files[*other])?)
                })?;
                Ok((!is_copy).then_some(head))
            });
            match head {
                Ok(None) => drop(copies.insert(place)),
                Ok(Some(head)) => kept.push((place, head)),
                Err(cause) => notes.push(format!(
                    "{} could not be compared with files of the same name ({cause}): what stands in both counts twice",
                    file.path.shown()
                )),
            }
        }
    }
    copies
}

/// The first bytes of a file.
fn head(file: &EventFile) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    files::open(&file.path)?.take(file.bytes.min(HEAD_BYTES)).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether all of `short` stands at the beginning of `long`, as both were when they were listed.
fn is_beginning(short: &EventFile, long: &EventFile) -> std::io::Result<bool> {
    let mut files = [files::open(&short.path)?.take(short.bytes), files::open(&long.path)?.take(short.bytes)];
    let mut blocks = [Vec::with_capacity(BLOCK_BYTES), Vec::with_capacity(BLOCK_BYTES)];
    let mut left = short.bytes;
    while left > 0 {
        for (file, block) in files.iter_mut().zip(&mut blocks) {
            block.clear();
            file.take(BLOCK_BYTES as u64).read_to_end(block)?;
        }
        if blocks[0].is_empty() || blocks[0] != blocks[1] {
            return Ok(false);
        }
        left -= blocks[0].len() as u64;
    }
    Ok(true)
}
