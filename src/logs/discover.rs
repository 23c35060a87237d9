//! Where logs are: the roots, every log file below them once, and what could not be opened; and what tells a file that has only
//! grown from one that was rewritten, and the same content at another place: all of it.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use crate::base::files;
use crate::base::id::Id;
use crate::base::unpack::Packing;
use crate::base::walk::{FoundFile, Walk};

/// A place to look for logs, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// A directory, a file, or `-` for standard input.
    pub path: PathBuf,
    /// Who named it: `--input-dir`, `CLAUDE_CONFIG_DIR` or `default`.
    pub origin: &'static str,
}

/// The origin of places that nobody named.
pub const DEFAULT: &str = "default";
/// The origin of a place that somebody named on the command line.
pub const NAMED: &str = "--input-dir";

/// The variables that decide where logs are looked for.
#[derive(Clone, Debug, Default)]
pub struct PlaceVariables {
    /// `CLAUDE_CONFIG_DIR`: a comma list that replaces the defaults.
    pub claude_config_dir: Option<String>,
    pub xdg_config_home: Option<PathBuf>,
    pub home: Option<PathBuf>,
}

/// The roots to read: those given, else those of `CLAUDE_CONFIG_DIR`, else the two defaults.
pub fn roots(given: &[PathBuf], places: &PlaceVariables) -> Vec<Root> {
    if !given.is_empty() {
        return given.iter().map(|path| Root { path: path.clone(), origin: NAMED }).collect();
    }
    let listed = places.claude_config_dir.as_deref().unwrap_or_default();
    let listed: Vec<&str> = listed.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if !listed.is_empty() {
        let root = |entry: &&str| Root { path: Path::new(entry).join("projects"), origin: "CLAUDE_CONFIG_DIR" };
        return listed.iter().map(root).collect();
    }
    let config = places.xdg_config_home.clone().or_else(|| places.home.as_ref().map(|home| home.join(".config")));
    let defaults = [config.map(|dir| dir.join("claude")), places.home.as_ref().map(|home| home.join(".claude"))];
    defaults.into_iter().flatten().map(|dir| Root { path: dir.join("projects"), origin: DEFAULT }).collect()
}

/// Whether a root stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new("/dev/stdin")
}

/// One log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Path as it is shown.
    pub path: PathBuf,
    /// Path with links resolved; names the file in the lake.
    pub canonical: PathBuf,
    /// Index of the root under which it was found.
    pub root: usize,
    /// The name of the directory that stands for the project: the first one below the root, or that in which the log of the
    /// session stands. Logs of subagents stand two below that one.
    pub directory: Arc<str>,
    /// Size at the time of the listing.
    pub bytes: u64,
    /// Modification time, nanoseconds since 1970.
    pub modified_ns: i64,
    /// Status-change time where the system has one, else 0.
    pub changed_ns: i64,
    /// Number in its file system where the system has one, else 0.
    pub inode: u64,
    pub packing: Packing,
}

/// What a look at the roots gave.
#[derive(Clone, Debug, Default)]
pub struct LogListing {
    /// Log files, sorted by path.
    pub files: Vec<LogFile>,
    /// Canonical paths of the roots, in their order; empty where a root is not there.
    pub roots: Vec<PathBuf>,
    /// Roots that are not there, by index.
    pub missing: Vec<usize>,
    /// What could not be opened, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Whether standard input was asked for.
    pub stdin: bool,
}

/// Nanoseconds since 1970 of the last modification; 0 where the system does not say.
pub fn modified_ns(meta: &Metadata) -> i64 {
    let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

/// Whether the first `bytes` of a file may be others now than when it had this time and number: it was replaced, cut off or
/// written anew. What is appended does no harm.
pub fn is_disturbed(path: &Path, (bytes, modified, inode): (u64, i64, u64)) -> bool {
    let Ok(meta) = std::fs::metadata(path) else { return true };
    let is_rewritten = meta.len() == bytes && modified_ns(&meta) != modified;
    files::inode(&meta) != inode || meta.len() < bytes || is_rewritten
}

/// Lists every log file under the roots once, however many links lead to it.
pub fn list(roots: &[Root]) -> LogListing {
    let (mut listing, mut walk, mut seen) = (LogListing::default(), Walk::default(), HashSet::new());
    for (index, root) in roots.iter().enumerate() {
        listing.roots.push(PathBuf::new());
        if is_stdin(&root.path) {
            listing.stdin = true;
            continue;
        }
        match walk.place(&root.path) {
            Ok(canonical) => listing.roots[index] = canonical,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => listing.missing.push(index),
            Err(cause) => listing.unreadable.push((root.path.clone(), cause.to_string())),
        }
        walk.others.clear();
        let unreadable = walk.unreadable.drain(..).map(|(path, cause)| (path, cause.to_string()));
        listing.unreadable.extend(unreadable);
        let mut directories = Directories { root: &listing.roots[index], last: None };
        // Of canonical paths bytes tell as much as parts, and sooner.
        let mut is_new = |found: &FoundFile| seen.insert(found.canonical.clone().into_os_string());
        let found: Vec<(Arc<str>, FoundFile)> = walk
            .files
            .drain(..)
            .filter(|found| is_new(found))
            .map(|found| (directories.of(&found.canonical), found))
            .collect();
        let looked_at = found.into_par_iter().map(|(directory, found)| log_file(index, directory, found));
        for file in looked_at.collect::<Vec<_>>() {
            match file {
                Ok(file) => listing.files.push(file),
                Err(unreadable) => listing.unreadable.push(unreadable),
            }
        }
    }
    listing.files.sort_by(|a, b| a.path.cmp(&b.path));
    listing
}

/// A file that was found under a root, or why it cannot be read.
fn log_file(root: usize, directory: Arc<str>, found: FoundFile) -> Result<LogFile, (PathBuf, String)> {
    let FoundFile { path, canonical, packing } = found;
    let meta = match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() => meta,
        Ok(other) => return Err((path, files::oddity(&other).unwrap_or_default().to_owned())),
        Err(cause) => return Err((path, cause.to_string())),
    };
    Ok(LogFile {
        path,
        canonical,
        root,
        directory,
        bytes: meta.len(),
        modified_ns: modified_ns(&meta),
        changed_ns: files::changed_ns(&meta),
        inode: files::inode(&meta),
        packing,
    })
}

/// Which directories stand for projects, of files that come directory by directory.
struct Directories<'r> {
    /// The canonical path of the root.
    root: &'r Path,
    /// Where the last file stands, whether it is an agent's, and what came out.
    last: Option<(PathBuf, bool, Arc<str>)>,
}

impl Directories<'_> {
    fn of(&mut self, file: &Path) -> Arc<str> {
        let parent = file.parent().unwrap_or(file);
        let is_agent = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"agent-"));
        if let Some((_, _, known)) = self.last.as_ref().filter(|last| last.1 == is_agent && last.0 == parent) {
            return Arc::clone(known);
        }
        let name: Arc<str> = directory_of(file, is_agent, self.root).into();
        self.last = Some((parent.to_owned(), is_agent, Arc::clone(&name)));
        name
    }
}

/// See [`LogFile::directory`].
fn directory_of(file: &Path, is_agent: bool, root: &Path) -> String {
    let is_inside = |dir: &&Path| dir.starts_with(root);
    let mut inside = file.ancestors().skip(1).take_while(is_inside);
    let session = inside.find(|dir| dir.ends_with("subagents")).and_then(Path::parent);
    // Somebody may have called a directory of other logs that.
    let session = session.filter(|dir| is_agent || dir.parent().as_ref().is_some_and(is_inside));
    let own = session.unwrap_or(file).parent();
    let below = own.and_then(|own| own.strip_prefix(root).ok());
    let mut parts = below.into_iter().flat_map(Path::components).map(|part| part.as_os_str());
    let first = parts.find(|part| *part != "projects");
    first.or(own.and_then(Path::file_name)).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Bytes that are read at once, of a file that has as many.
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
pub fn digest(path: &Path, start: u64, bytes: u64) -> std::io::Result<Digest> {
    let mut file = files::open(path)?.take(bytes);
    // Most files are small, and there may be many.
    let step_bytes = bytes.clamp(1, STEP_BYTES as u64) as usize;
    let (mut hasher, mut buffer, mut done) = (Xxh3::new(), vec![0; step_bytes], 0);
    let mut digest = Digest::default();
    loop {
        if done == start {
            digest.start = named(&hasher);
        }
        let room = if done < start { buffer.len().min((start - done) as usize) } else { buffer.len() };
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

/// Hashes what is read through it, so that a file which is read anyway is not read a second time for its name.
pub struct Hashing<R> {
    source: R,
    hasher: Xxh3,
}

impl<R> Hashing<R> {
    /// Nothing has been read so far.
    pub fn new(source: R) -> Self {
        Self { source, hasher: Xxh3::new() }
    }

    /// The name of what has been read: that of [`Digest::whole`].
    pub fn name(&self) -> Id {
        named(&self.hasher)
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

fn named(hasher: &Xxh3) -> Id {
    Id(hasher.digest128().to_be_bytes())
}
