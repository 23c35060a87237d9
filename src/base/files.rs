//! The door to the disk: every file that devboy opens, makes or replaces goes through here.
//!
//! Only regular files are opened, and never by waiting for a pipe. What devboy keeps for itself is private to the user,
//! is never reached through a symbolic link, and is replaced as a whole. In tests any step can be made to fail.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use xxhash_rust::xxh3::Xxh3;

use crate::base::id::Id;
use crate::base::visible::Shown as _;

/// How long another program's lock is waited for.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 400 } else { 10_000 });
/// How often to look whether it is gone.
const PAUSE: Duration = Duration::from_millis(20);

/// Bytes of a file that are read at a time, where it is not held as a whole.
const PIECE_BYTES: usize = 1 << 17;

/// A step that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStep {
    /// Opening a file or a directory to read it.
    Open,
    /// Reading bytes.
    #[cfg(test)]
    Read,
    /// Making a file, or opening one to write.
    Create,
    /// Writing bytes.
    Write,
    /// Waiting until bytes are on the disk.
    Sync,
    /// Putting one file in the place of another.
    Rename,
    /// Making a directory.
    MakeDir,
}

/// Opens a regular file to read it. Links are followed; a pipe, a socket or a device is refused without waiting for it,
/// except for what the user hands over already open (`/dev/stdin`, `/dev/fd/…`). An error if it is no regular file.
pub fn open(path: &Path) -> Result<SourceFile> {
    step(WriteStep::Open, path)?;
    if path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") {
        return Ok(SourceFile::new(File::open(path)?, path));
    }
    let file = without_waiting(OpenOptions::new().read(true), true).open(path)?;
    Ok(SourceFile::new(regular(file)?, path))
}

/// A file that is read.
#[derive(Debug)]
pub struct SourceFile {
    file: File,
    /// For whoever lets reading fail.
    #[cfg(test)]
    path: PathBuf,
}

impl SourceFile {
    #[cfg(test)]
    fn new(file: File, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }

    #[cfg(not(test))]
    fn new(file: File, _: &Path) -> Self {
        Self { file }
    }
}

impl Read for SourceFile {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        #[cfg(test)]
        step(WriteStep::Read, &self.path)?;
        self.file.read(buffer)
    }
}

impl Seek for SourceFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.file.seek(to)
    }
}

/// The content of a regular file; see [`open`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    whole(open(path)?)
}

/// The text of a regular file; see [`open`]. An error if it is no UTF-8.
pub fn read_to_string(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// The content of a file that devboy keeps for itself: not read through a symbolic link. An error if it is a link or no
/// regular file.
pub fn read_own(path: &Path) -> Result<Vec<u8>> {
    whole(open_own(path)?)
}

/// The hash of all bytes of such a file ([`Id::of`]), and their number: it is not in memory as a whole.
pub fn sum_of_own(path: &Path) -> Result<(Id, u64)> {
    let (mut file, mut sum, mut bytes) = (open_own(path)?, Xxh3::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((Id(sum.digest128().to_be_bytes()), bytes)),
            Ok(read) => {
                sum.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// The bytes of such a file from one place to another. An error if it ends before.
pub fn read_own_part(path: &Path, place: &Range<u64>) -> Result<Vec<u8>> {
    let mut file = open_own(path)?;
    file.seek(SeekFrom::Start(place.start))?;
    let mut bytes = vec![0; (place.end - place.start) as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn open_own(path: &Path) -> Result<SourceFile> {
    step(WriteStep::Open, path)?;
    no_link_here(path)?;
    let file = without_waiting(OpenOptions::new().read(true), false).open(path);
    Ok(SourceFile::new(regular(file.map_err(|cause| or_link(path, cause))?)?, path))
}

/// What lies in a directory, by name; all of it or nothing.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>> {
    step(WriteStep::Open, directory)?;
    let mut paths = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn whole(mut file: SourceFile) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file that is not in use yet and waits until it is on the disk. What cannot be written whole is removed. An
/// error if a link or something else stands in its place.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = create(path)?;
    let written = write(&mut file, path, bytes).and_then(|()| sync(&file, path));
    written.inspect_err(|_| remove(path))
}

/// Makes a file with this content, unless there is one by then: that one stays. `temporary` is as in [`replace`]. If
/// the disk refuses, nothing lies beside the file.
pub fn keep_first(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<()> {
    write_new(temporary, bytes)?;
    // Unlike a rename, a link never takes the place of what is there.
    let linked = step(WriteStep::Rename, path).and_then(|()| fs::hard_link(temporary, path));
    remove(temporary);
    match linked {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}

/// Puts new content in the place of a file: whoever opens it sees the old or the new, whole. `temporary` is a name beside
/// it that nobody else uses. If the disk refuses, the file is as it was, and nothing lies beside it.
pub fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<()> {
    // A killed run, or somebody else, may have left something under that name.
    remove(temporary);
    write_new(temporary, bytes)?;
    rename(temporary, path).inspect_err(|_| remove(temporary))?;
    // Where a directory cannot be opened, the system makes the rename durable in its own time.
    let _in_its_own_time = sync_dir(path.parent().unwrap_or(path));
    Ok(())
}

/// A file that is not in use yet and is written piece by piece, so that it need not be in memory as a whole. What is not
/// [`Growing::finish`]ed is removed.
pub struct Growing {
    file: File,
    path: PathBuf,
    sum: Xxh3,
    is_whole: bool,
}

impl Growing {
    /// Begins the file.
    pub fn begin(path: &Path) -> Result<Self> {
        Ok(Self { file: create(path)?, path: path.to_owned(), sum: Xxh3::new(), is_whole: false })
    }

    /// Waits until all is on the disk; gives the hash of all bytes ([`Id::of`]).
    pub fn finish(mut self) -> Result<Id> {
        sync(&self.file, &self.path)?;
        self.is_whole = true;
        Ok(Id(self.sum.digest128().to_be_bytes()))
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        write(&mut self.file, &self.path, bytes)?;
        self.sum.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        if !self.is_whole {
            remove(&self.path);
        }
    }
}

/// Opens a file of devboy's own to write it from its start, private to the user.
pub fn create(path: &Path) -> Result<File> {
    own(OpenOptions::new().create(true).truncate(true).write(true), path)
}

/// The same for a file that must not be there yet.
pub fn create_new(path: &Path) -> Result<File> {
    own(OpenOptions::new().create_new(true).write(true), path)
}

/// Opens a file of devboy's own to read and write it where it is, making it if need be.
pub fn open_or_create(path: &Path) -> Result<File> {
    own(OpenOptions::new().create(true).truncate(false).read(true).write(true), path)
}

fn own(options: &mut OpenOptions, path: &Path) -> Result<File> {
    step(WriteStep::Create, path)?;
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    no_link_here(path)?;
    regular(without_waiting(options, false).open(path).map_err(|cause| or_link(path, cause))?)
}

/// Adds bytes where the file stands.
pub fn write(file: &mut File, path: &Path, bytes: &[u8]) -> Result<()> {
    step(WriteStep::Write, path)?;
    file.write_all(bytes)
}

/// Waits until what was written is on the disk.
pub fn sync(file: &File, path: &Path) -> Result<()> {
    step(WriteStep::Sync, path)?;
    file.sync_all()
}

/// Makes renames in a directory durable. Only Unix can open a directory.
pub fn sync_dir(directory: &Path) -> Result<()> {
    step(WriteStep::Sync, directory)?;
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Puts a file in the place of another. If the disk refuses, both are as they were.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    step(WriteStep::Rename, to)?;
    fs::rename(from, to)
}

/// Removes a file that nobody needs. If that fails it is tried again by whoever tidies up.
pub fn remove(path: &Path) {
    let _tried_again = fs::remove_file(path);
}

/// Makes a directory and those above it, private to the user.
pub fn make_dir(directory: &Path) -> Result<()> {
    step(WriteStep::MakeDir, directory)?;
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|cause| match cause.kind() {
        kind @ ErrorKind::AlreadyExists => Error::new(kind, "is not a directory"),
        _ => cause,
    })
}

/// A lock file that nobody else holds; it is given back when the handle is dropped. `waiting` is called once if somebody
/// else has it. Where the file system knows no locks there is none. An error if the other one did not end in time.
pub fn lock(path: &Path, waiting: &dyn Fn()) -> Result<File> {
    let file = open_or_create(path)?;
    wait(waiting, || file.try_lock())?;
    Ok(file)
}

/// A share in a lock file that nobody else holds alone.
pub fn share(path: &Path) -> Result<File> {
    let file = open_or_create(path)?;
    wait(&|| (), || file.try_lock_shared())?;
    Ok(file)
}

fn wait(waiting: &dyn Fn(), attempt: impl Fn() -> std::result::Result<(), TryLockError>) -> Result<()> {
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(cause)) if cause.kind() == ErrorKind::Unsupported => return Ok(()),
            Err(TryLockError::Error(cause)) => return Err(cause),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= PATIENCE => {
                let told = format!("another program holds it for more than {} s", PATIENCE.as_secs_f32());
                return Err(Error::new(ErrorKind::WouldBlock, told));
            }
            Err(TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut is_told, true) {
                    waiting();
                }
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Whether no process with this number runs any more.
#[cfg(unix)]
pub fn has_ended(process: i32) -> bool {
    let number = rustix::process::Pid::from_raw(process).filter(|_| process > 0);
    number.is_some_and(|number| rustix::process::test_kill_process(number) == Err(rustix::io::Errno::SRCH))
}

/// Whether no process with this number runs any more: nobody knows here.
#[cfg(not(unix))]
pub fn has_ended(_: i32) -> bool {
    false
}

/// What speaks against keeping private files in a directory: somebody else could put files or links there.
pub fn is_exposed(directory: &Path) -> Option<String> {
    let meta = fs::metadata(directory).ok()?;
    exposed(&meta).map(|why| format!("{} {why}", directory.shown()))
}

#[cfg(unix)]
fn exposed(meta: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me && meta.uid() != 0 {
        return Some("belongs to another user");
    }
    (meta.mode() & 0o022 != 0).then_some("can be written to by other users")
}

#[cfg(not(unix))]
fn exposed(_: &Metadata) -> Option<&'static str> {
    None
}

/// Whether terminals show colours without being asked to, by what variables say. One without a name, or named "dumb", shows their
/// codes as they are. So does a console of Windows, unless it is a newer one or another system's.
pub fn shows_colours(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    shows_colours_on(cfg!(windows), variable)
}

/// The same of a system.
pub fn shows_colours_on(is_windows: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_named = variable("TERM").is_some_and(|name| name != "dumb");
    is_named || is_windows && ["WT_SESSION", "ANSICON"].into_iter().any(|name| variable(name).is_some())
}

/// When a file was last written, in milliseconds since 1970; none where the system does not say.
pub fn modified_ms(path: &Path) -> Option<i64> {
    let modified = fs::metadata(path).and_then(|meta| meta.modified()).ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// One name for a file, whatever links lead to its directory. On Windows it is as it was given, from the root on: names there that are
/// resolved are no names for people.
pub fn one_name(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = absolute.parent().filter(|_| cfg!(unix)).and_then(|parent| parent.canonicalize().ok());
    directory.zip(absolute.file_name()).map(|(directory, name)| directory.join(name)).unwrap_or(absolute)
}

/// Where an organisation sets what Claude Code does on its machines.
pub const MANAGED_SETTINGS: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode/managed-settings.json"
} else if cfg!(windows) {
    r"C:\Program Files\ClaudeCode\managed-settings.json"
} else {
    "/etc/claude-code/managed-settings.json"
};

/// When something about a file was changed last, in nanoseconds since 1970; 0 where the system does not say.
#[cfg(unix)]
pub fn changed_ns(meta: &Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec())
}

/// When something about a file was changed last, in nanoseconds since 1970; 0 where the system does not say.
#[cfg(not(unix))]
pub fn changed_ns(_: &Metadata) -> i64 {
    0
}

/// The number of a file on its disk; 0 where the system has none.
#[cfg(unix)]
pub fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

/// The number of a file on its disk; 0 where the system has none.
#[cfg(not(unix))]
pub fn inode(_: &Metadata) -> u64 {
    0
}

/// What a thing is that is no regular file, in words; none for a regular file.
pub fn oddity(meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_file() {
        return None;
    }
    if kind.is_dir() {
        return Some("is a directory");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return Some("is a named pipe and no regular file");
        }
        if kind.is_socket() {
            return Some("is a socket and no regular file");
        }
    }
    Some("is a device and no regular file")
}

fn regular(file: File) -> Result<File> {
    match oddity(&file.metadata()?) {
        None => Ok(file),
        Some(what) => Err(Error::new(ErrorKind::Unsupported, what)),
    }
}

/// The failure to open a file, by its right name if a link is to blame.
fn or_link(path: &Path, cause: Error) -> Error {
    no_link(path).err().unwrap_or(cause)
}

/// Refuses a link before it is opened, where opening cannot be told not to follow it. Files that a synchroniser keeps elsewhere are
/// no links, although they are reparse points, too.
fn no_link_here(path: &Path) -> Result<()> {
    if cfg!(unix) { Ok(()) } else { no_link(path) }
}

/// Refuses a link. An error if the path is one.
pub(crate) fn no_link(path: &Path) -> Result<()> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_symlink());
    if is_link { Err(Error::new(ErrorKind::Unsupported, "is a symbolic link")) } else { Ok(()) }
}

#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions, follows: bool) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    let link = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | link).bits();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.cast_signed())
}

#[cfg(not(unix))]
fn without_waiting(options: &mut OpenOptions, _: bool) -> &mut OpenOptions {
    options
}

#[cfg(not(test))]
fn step(_: WriteStep, _: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
use faults::step;

#[cfg(test)]
#[path = "../tests/faults.rs"]
pub mod faults;
