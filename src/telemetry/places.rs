//! Where telemetry may lie, and every file of it below those places once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::base::numbers;
use crate::base::unpack::Packing;
use crate::base::visible::Shown as _;
use crate::base::walk::{FoundFile, Walk};
use crate::logs::trace::{Millis, NO_TIME};

/// A place to look for telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryPlace {
    /// A directory or a file.
    pub path: PathBuf,
    /// Who named it: `--input-dir`, `default`, `DEVBOY_TELEMETRY_DIR` or `telemetry.path`.
    pub origin: &'static str,
    /// Whether it was there.
    pub found: bool,
}

/// What decides where telemetry is looked for.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The home directory.
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
    canonical: PathBuf,
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
    let mut seen = BTreeSet::new();
    found.files.retain(|file| seen.insert(file.canonical.clone()));
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
