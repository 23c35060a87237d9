//! Every file of lines below some places, through whatever links, each directory once.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use crate::base::unpack::Packing;

/// A file that was found. Several links may lead to it, and it may be anything that is no directory.
pub struct FoundFile {
    /// Path as it is shown.
    pub path: PathBuf,
    /// Path with links resolved.
    pub canonical: PathBuf,
    /// How it is packed, by its name.
    pub packing: Packing,
}

/// What a look at places gave so far.
#[derive(Default)]
pub struct Walk {
    /// Files of lines, by their names; and those that are places themselves, whatever they are called.
    pub files: Vec<FoundFile>,
    /// Files with other names.
    pub others: Vec<PathBuf>,
    /// What could not be looked at, and why.
    pub unreadable: Vec<(PathBuf, Error)>,
    directories: BTreeSet<PathBuf>,
}

impl Walk {
    /// Looks at a place, a directory or a file; gives its canonical path.
    pub fn place(&mut self, path: &Path) -> Result<PathBuf> {
        let canonical = std::fs::canonicalize(path)?;
        let mut open = Vec::new();
        if canonical.is_dir() {
            open.push((path.to_owned(), canonical.clone()));
        } else {
            let packing = Packing::of(path).unwrap_or(Packing::Plain);
            self.files.push(FoundFile { path: path.to_owned(), canonical: canonical.clone(), packing });
        }
        while let Some((path, canonical)) = open.pop() {
            if self.directories.insert(canonical.clone()) {
                self.directory(path, &canonical, &mut open);
            }
        }
        Ok(canonical)
    }

    /// Takes what a directory holds, by name: of two links to the same directory always the same one is followed.
    fn directory(&mut self, path: PathBuf, canonical: &Path, open: &mut Vec<(PathBuf, PathBuf)>) {
        let read = match std::fs::read_dir(&path) {
            Ok(read) => read,
            Err(cause) => return self.unreadable.push((path, cause)),
        };
        let (entries, failed): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
        self.unreadable.extend(failed.into_iter().filter_map(|entry| Some((path.clone(), entry.err()?))));
        let mut entries: Vec<DirEntry> = entries.into_iter().flatten().collect();
        entries.sort_by_cached_key(DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if let Err(cause) = self.entry(&entry, path.clone(), canonical, open) {
                self.unreadable.push((path, cause));
            }
        }
    }

    fn entry(
        &mut self,
        entry: &DirEntry,
        path: PathBuf,
        parent: &Path,
        open: &mut Vec<(PathBuf, PathBuf)>,
    ) -> Result<()> {
        let (kind, packing) = (entry.file_type()?, Packing::of(&path));
        let is_directory = kind.is_dir() || kind.is_symlink() && path.is_dir();
        // Where no link leads anywhere else, asking the system for every file is most of the work.
        let canonical =
            || if kind.is_symlink() { std::fs::canonicalize(&path) } else { Ok(parent.join(entry.file_name())) };
        match packing {
            _ if is_directory => open.push((path.clone(), canonical()?)),
            Some(packing) => self.files.push(FoundFile { canonical: canonical()?, path, packing }),
            None => self.others.push(path),
        }
        Ok(())
    }
}
