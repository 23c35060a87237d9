//! Changes single keys of a configuration and leaves every other byte where it is, shows what would change in the form that
//! `patch` reads, and stores a file so that at every moment the old or the new content is on the disk, whole, and two writers
//! never overwrite each other's work. The previous content stays beside it as `<file>.bak`.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use memchr::memmem;
use similar::TextDiff;
use toml_edit::Value;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::key_path::KeyPath;
use crate::base::unpack::{Packing, unpack};
use crate::base::visible::Shown as _;
use crate::settings::draft::DocumentDraft;
use crate::settings::{CURRENT_VERSION, SettingsFile, schema};

/// Longest chain of symbolic links that is followed, as on Linux.
const MAX_LINKS: usize = 40;

/// Bytes at the start of a file, unpacked, by which a log is known: it may begin with long snapshots, which name no session.
const HEAD_BYTES: u64 = 16 << 20;

/// A file that is about to be replaced: locked against other runs, and seen to hold still what was read. A symbolic link stays
/// a link; new files are private to the user, an existing file keeps its mode.
pub struct GuardedFile {
    target: PathBuf,
    old: Option<Vec<u8>>,
    _lock: File,
}

impl GuardedFile {
    /// Takes the lock of the file that is named, else of one beside `path`. `expected_old` is what was read; none: there
    /// was no file. An error if the file holds something else by now, or the disk refuses.
    pub fn take(lock_file: Option<&Path>, path: &Path, expected_old: Option<&str>) -> Result<Self> {
        let target = follow_links(path)?;
        create_private(directory_of(&target))?;
        let beside_it = beside(&target, ".lock");
        let lock_file = lock_file.unwrap_or(&beside_it);
        create_private(directory_of(lock_file))?;
        let _lock = lock(lock_file)?;
        remove_left_over(&target);
        remove_left_over(&beside(&target, ".bak"));
        let old = read_if_present(&target)?;
        if old.as_deref() != expected_old.map(str::as_bytes) {
            return Err(Error::failed(format!("{} changed while devboy was working", path.shown()))
                .hint("nothing was written; run again"));
        }
        Ok(Self { target, old, _lock })
    }

    /// An error if nothing new could be put in its place.
    pub fn expect_room(&self) -> Result<()> {
        mode_to_keep(&self.target)?;
        Staged::new(&self.target, b"", None).map(drop)
    }

    /// Replaces the content, unless it is `new` already. An error if it was not written; inside, if it was and the disk
    /// did not confirm it.
    pub fn replace(&self, new: &str) -> Result<Result<()>> {
        let Self { target, old, .. } = self;
        if old.as_deref() == Some(new.as_bytes()) {
            return Ok(Ok(()));
        }
        let mode = mode_to_keep(target)?;
        let staged = Staged::new(target, new.as_bytes(), mode.as_ref())?;
        if let Some(old) = old {
            Staged::new(&beside(target, ".bak"), old, mode.as_ref())?.commit()?;
        }
        staged.commit()?;
        Ok(sync_directory(directory_of(target)))
    }
}

/// Replaces a file that is devboy's own and can be made again: as a whole, private to the user, without a backup. If
/// the disk refuses, the file is as it was.
pub fn write_private(path: &Path, new: impl AsRef<[u8]>) -> Result<()> {
    not_odd(path)?;
    create_private(directory_of(path))?;
    remove_left_over(path);
    Staged::new(path, new.as_ref(), None)?.commit()
}

/// Replaces a file that another program made: as a whole, with the mode that it has, without a backup. If the disk
/// refuses, the file is as it was.
pub fn write_with_its_mode(path: &Path, new: impl AsRef<[u8]>) -> Result<()> {
    let mode = fs::metadata(path).map_err(|cause| Error::io("reading", path, &cause))?.permissions();
    remove_left_over(path);
    Staged::new(path, new.as_ref(), Some(&mode))?.commit()
}

/// Whether a directory can be where the user named it, so that no work is done in vain. An error if something else is
/// there.
pub fn expect_directory(path: &Path) -> Result<()> {
    if path.is_dir() || !path.exists() {
        return Ok(());
    }
    Err(Error::failed(format!("{}: is not a directory", path.shown())).hint("name a directory"))
}

/// Whether a file can be where the user named it, so that no work is done in vain. An error if a log or something else is
/// there, or no directory for it.
pub fn expect_place(path: &Path) -> Result<()> {
    not_odd(path)?;
    if is_log(path) {
        return Err(
            Error::usage(format!("writing {}: that is one of the logs", path.shown())).hint("name another file")
        );
    }
    let directory = directory_of(path);
    if directory.is_dir() {
        return Ok(());
    }
    Err(Error::failed(format!("writing {}: there is no directory {}", path.shown(), directory.shown()))
        .hint("make it, or name another file"))
}

/// Whether records of Claude Code are in a file.
fn is_log(path: &Path) -> bool {
    let mut head = Vec::new();
    let packing = Packing::of(path).unwrap_or(Packing::Plain);
    // What cannot be read, or breaks off, is judged by what came before.
    let _read = files::open(path).and_then(|file| unpack(packing, file)?.take(HEAD_BYTES).read_to_end(&mut head));
    memmem::find(&head, b"\"sessionId\"").is_some()
}

/// Refuses stdout, and a device: it would be gone, and a file in its place.
fn not_odd(path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Err(Error::usage("- stands for stdout, and this goes to a file").hint("name one"));
    }
    let odd = fs::metadata(path).ok().as_ref().and_then(files::oddity);
    odd.map_or(Ok(()), |what| Err(Error::failed(format!("writing {}: {what}", path.shown())).hint("name a file")))
}

/// The same for a file that the user named: a symbolic link stays a link, and what it points to is replaced.
pub fn write_output(path: &Path, new: impl AsRef<[u8]>) -> Result<()> {
    write_private(&follow_links(path)?, new)
}

/// Content that waits under a temporary name; it is removed again unless it is committed.
struct Staged<'t> {
    target: &'t Path,
    temporary: PathBuf,
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // After a commit there is nothing left to remove; otherwise there is nobody left to tell.
        files::remove(&self.temporary);
    }
}

impl<'t> Staged<'t> {
    fn new(target: &'t Path, content: &[u8], mode: Option<&Permissions>) -> Result<Self> {
        let path = temporary_name(target);
        let failed = |cause| not_written("writing", target, &cause);
        let mut file = files::create_new(&path).map_err(failed)?;
        let staged = Self { target, temporary: path.clone() };
        let mut write = || {
            files::write(&mut file, &path, content)?;
            mode.map_or(Ok(()), |mode| file.set_permissions(mode.clone()))?;
            files::sync(&file, &path)
        };
        write().map_err(failed)?;
        Ok(staged)
    }

    fn commit(self) -> Result<()> {
        files::rename(&self.temporary, self.target).map_err(|cause| not_written("replacing", self.target, &cause))
    }
}

/// The error of a file that did not get its new content.
fn not_written(doing: &str, target: &Path, cause: &std::io::Error) -> Error {
    let is_barred = cause.kind() == ErrorKind::PermissionDenied;
    let advice = is_barred.then_some("no permission in that directory: name a file elsewhere");
    let kept = target.exists().then_some("the file itself was not touched");
    Error::io(doing, target, cause).hint(advice.into_iter().chain(kept).collect::<Vec<_>>().join("\n"))
}

/// The file that a chain of links leads to; it need not exist.
fn follow_links(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = directory_of(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(Error::failed(format!("{}: too many symbolic links", path.shown())).hint("the links seem to form a circle"))
}

pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(suffix);
    PathBuf::from(name)
}

fn temporary_name(target: &Path) -> PathBuf {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    beside(target, &format!(".{}-{count}.tmp", std::process::id()))
}

/// Removes what killed runs left beside a file.
fn remove_left_over(target: &Path) {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return };
    for entry in fs::read_dir(directory_of(target)).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let ours = found.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp"));
        let writer = ours.and_then(|ours| ours.split_once('-')?.0.parse().ok());
        if writer.is_some_and(files::has_ended) {
            files::remove(&entry.path());
        }
    }
}

/// The content of a file; none if there is none.
pub(super) fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>> {
    match files::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::unread(path, &cause)),
    }
}

/// The mode of the existing file. One that its owner made read-only is not replaced behind his back.
fn mode_to_keep(target: &Path) -> Result<Option<Permissions>> {
    let Ok(metadata) = fs::metadata(target) else { return Ok(None) };
    let mode = metadata.permissions();
    if mode.readonly() {
        return Err(Error::failed(format!("{} is read-only", target.shown()))
            .hint("make it writable, or print the changes with --dry-run and put them where the file is made"));
    }
    Ok(Some(mode))
}

/// Waits until no other devboy writes the file. The lock ends with the returned handle.
pub(super) fn lock(path: &Path) -> Result<File> {
    let failed = |cause| {
        Error::io("opening", path, &cause).hint("devboy needs to write in this directory; --output names another file")
    };
    files::lock(path, &|| ()).map_err(|cause| match cause.kind() {
        ErrorKind::WouldBlock => Error::failed(format!("another program holds {}", path.shown()))
            .hint("nothing was written; run again when it is done"),
        _ => failed(cause),
    })
}

/// Makes a directory and those above it, for nobody but the user (0700 on Unix); one that is there stays as it is.
pub fn create_private(directory: &Path) -> Result<()> {
    files::make_dir(directory).map_err(|cause| {
        Error::io("creating", directory, &cause).hint("name a directory, or a place where one can be made")
    })
}

/// Makes the renames durable. Only Unix can open a directory.
pub(super) fn sync_directory(directory: &Path) -> Result<()> {
    files::sync_dir(directory).map_err(|cause| Error::io("syncing", directory, &cause))
}

/// Lines of context around a change.
const CONTEXT: usize = 3;

/// The unified diff from `old` to `new`; empty when they are equal. An empty `old` is a file that does not exist yet.
pub fn unified_diff(old: &str, new: &str, path: &str) -> String {
    if old == new {
        return String::new();
    }
    let before = if old.is_empty() { "/dev/null" } else { path };
    TextDiff::from_lines(old, new).unified_diff().context_radius(CONTEXT).header(before, path).to_string()
}

/// One wanted value.
#[derive(Debug, Clone)]
pub struct WantedValue {
    pub key: KeyPath,
    /// What it shall be. A list of tables (`follow_up`) is a value too; its elements are matched by their `tool`. A table is
    /// added as a block where there is none, else set key by key; keys it does not name stay. None: the key, and all below
    /// it, is taken out, and with it a table that this leaves empty.
    pub value: Option<Value>,
}

impl WantedValue {
    /// The version by which a file that devboy begins is read.
    pub fn version() -> Self {
        Self { key: schema::key(), value: Some(i64::from(CURRENT_VERSION).into()) }
    }
}

/// The text of `file` after the changes. A change that would alter a pinned key is an error; callers ask
/// [`SettingsFile::touches_pin`] first. A value that already holds is left alone, pinned or not.
pub fn apply(file: &SettingsFile, changes: &[WantedValue]) -> Result<String> {
    if changes.is_empty() || (!file.existed && changes.iter().all(|change| change.value.is_none())) {
        return Ok(file.text.clone());
    }
    let mut draft = DocumentDraft::of(file)?;
    draft.change_all(changes)?;
    SettingsFile::parse(&file.path, draft.text()).map_err(|cause| {
        Error::failed(format!("the change does not fit: {}", cause.message)).hint("the file was not touched")
    })?;
    Ok(draft.text().to_owned())
}
