//! What there is to say of an input: its fields in every JSON report, notes, and why there is nothing in it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::damage::Reason;
use crate::base::error::{Error, Result};
use crate::base::names::Names;
use crate::base::visible::{Shown as _, quoted};
use crate::base::{files, numbers};
use crate::frames::input::{HeldRows, Input, SeeFiles};
use crate::frames::manifest::StoredSource;
use crate::logs::corpus::RowSource;
use crate::logs::discover::{DEFAULT, NAMED, Root, is_stdin};
use crate::logs::overview::{Holds, InProgress, Overview};
use crate::logs::read::Failure;
use crate::logs::trace::NO_TIME;
use crate::logs::window;
use crate::telemetry;

/// Bytes of a file that tell whether it is telemetry.
const HEAD_BYTES: u64 = 64 << 10;

const NS_PER_MS: i64 = 1_000_000;

/// Files that an error names; a note is written for each of them where a report is.
const HINTS_MAX: usize = 10;

impl Input {
    /// Notes what the report is about, and what it holds of subagents that are known from progress records only.
    pub fn report_holds(&mut self, holds: Holds) -> Result<()> {
        let Overview { subagents_in_progress, answering_in_progress, sessions, span_ms, .. } = self.overview()?;
        let is_of_answers = holds == Holds::FirstChunks;
        let subagents = if is_of_answers { answering_in_progress } else { subagents_in_progress };
        self.covers = Some((sessions, span_ms));
        self.in_progress = Some(InProgress { subagents, holds });
        Ok(())
    }

    /// The line that says what a report is about: "logs: 8 sessions, 2026-10-21 … 2026-10-23, projects named like "api"".
    pub fn covered(&self, is_named: bool) -> String {
        let (sessions, span) = self.covers.unwrap_or_default();
        let days = span.map(|(first, last)| format!(", {}", numbers::days(first, last))).unwrap_or_default();
        let projects = match &self.project {
            Some(project) if is_named => format!(", projects named like \"{project}\""),
            Some(_) => ", some of the projects".to_owned(),
            None => String::new(),
        };
        format!("logs: {}{days}{projects}", numbers::counted(sessions, "session"))
    }

    /// The same of a report about one session, which has so many of them.
    pub fn report_holds_of(&mut self, subagents: u64, holds: Holds) {
        self.in_progress = Some(InProgress { subagents, holds });
    }

    /// The places that somebody named and that are not there, one sentence each.
    pub fn missing_places(&self) -> Vec<String> {
        let missing = self.listing.missing.iter().filter_map(|&index| self.roots.get(index));
        let named = missing.filter(|root| root.origin != DEFAULT);
        named.map(|root| format!("{} ({}) does not exist", root.path.shown(), root.origin)).collect()
    }

    /// Files that are deleted from disk and live on in the lake.
    pub fn kept(&self) -> u64 {
        self.sources.iter().filter(|source| source.path.is_none()).count() as u64
    }

    /// Notes how many of them may hold something in the window: what is told rests on what was kept of them.
    pub fn note_kept(&mut self) {
        let is_in_window = |stored: &StoredSource| stored.modified_ns / NS_PER_MS >= self.window.start;
        let is_kept = |(source, stored): &(&RowSource, &StoredSource)| {
            source.path.is_none() && !source.is_sidecar() && is_in_window(stored)
        };
        let kept = self.sources.iter().zip(&self.selected).filter(is_kept).count() as u64;
        if kept > 0 {
            let (logs, why) = (numbers::counted(kept, "log"), self.kept_words());
            let (verb, of) = if kept == 1 { ("is", "it") } else { ("are", "them") };
            let part = if self.window == window::ALL { "" } else { " as far as it lies in the window" };
            self.note([format!(
                "{logs} {verb} {why}; what was kept of {of} counts{part} (--no-lake: only what is on disk)"
            )]);
        }
    }

    /// Why they are not there, as far as that can be told.
    pub fn kept_words(&self) -> &'static str {
        let is_shut = self.listing.unreadable.iter().any(|(path, _)| path.is_dir());
        if is_shut { "deleted, or in a folder that cannot be read" } else { "deleted from disk" }
    }

    /// Where the lake is, if one is used.
    pub fn lake_dir(&self) -> Option<String> {
        self.lake.as_ref().map(|lake| lake.dir.shown())
    }

    /// Fields of every JSON report about the input.
    pub fn json(&self) -> Value {
        let tally = &self.tally;
        json!({
            "roots": self.roots.iter().enumerate().map(|(index, root)| json!({
                "path": root.path.shown(),
                "origin": root.origin,
                "found": !self.listing.missing.contains(&index),
            })).collect::<Vec<_>>(),
            "files": tally.files,
            "bytes": tally.bytes,
            "new": tally.new,
            "grown": tally.grown,
            "rewritten": tally.rewritten,
            "studied": tally.studied,
            "unchanged": tally.unchanged,
            "kept_after_deletion": self.kept(),
            "bytes_read": tally.bytes_read,
            "sidecar_files": self.sources.iter().filter(|source| source.is_sidecar()).count(),
            "unreadable": self.unreadable().iter().map(|(path, why)| json!({
                "path": path.shown(), "reason": why,
            })).collect::<Vec<_>>(),
            "lake": self.lake_dir(),
            "subagents_in_progress_only": self.in_progress.as_ref().map(InProgress::json),
            "notes": self.notes,
        })
    }

    /// Files that could not be read, each with the first reason; those included in which names were looked for.
    pub fn unreadable(&self) -> BTreeMap<PathBuf, String> {
        let mut files = self.closed.lock().map(|closed| closed.clone()).unwrap_or_default();
        files.extend(self.listing.unreadable.iter().rev().cloned());
        files
    }

    /// The window as text for JSON.
    pub fn window_json(&self) -> Value {
        window::json(&self.window)
    }

    /// Whether there is a session log among the files.
    pub fn has_records(&self) -> bool {
        self.sources.iter().any(|source| source.counters.known_records > 0)
    }

    /// The places that were named on the command line, as flags that can be pasted, each behind a blank.
    pub fn named_places(&self) -> String {
        let named = self.roots.iter().filter(|root| root.origin == NAMED);
        named.map(|root| format!(" {NAMED} {}", quoted(&root.path.shown()))).collect()
    }

    /// The command that says more about the same logs. Of standard input they have to be given once more.
    pub fn doctor_command(&self) -> String {
        let is_piped = self.roots.iter().any(|root| root.origin == NAMED && is_stdin(&root.path));
        format!("`{}devboy doctor{}`", if is_piped { "… | " } else { "" }, self.named_places())
    }

    /// Refuses a directory in which logs are looked for: what is written there would be read as one.
    pub fn expect_outside(&self, directory: &Path) -> Result<()> {
        let real = |path: &Path| path.ancestors().find_map(|path| path.canonicalize().ok());
        let place = std::path::absolute(directory).ok().and_then(|path| real(&path));
        let is_inside = |root: &Root| {
            root.path.canonicalize().is_ok_and(|root| place.as_ref().is_some_and(|it| it.starts_with(root)))
        };
        if !self.roots.iter().any(is_inside) {
            return Ok(());
        }
        Err(Error::usage(format!("{}: logs are read from there", directory.shown()))
            .hint("name a directory outside of them"))
    }

    /// The error of an input without a session log.
    pub fn no_records(&self) -> Error {
        let files = |count: usize| numbers::counted(count as u64, "file");
        let closed: BTreeSet<&Path> = self.listing.unreadable.iter().map(|(path, _)| path.as_path()).collect();
        let read = self.sources.iter().filter(|file| file.path.as_deref().is_none_or(|path| !closed.contains(path)));
        let what = match (read.count(), self.sources.as_slice()) {
            (0, [_, ..]) => format!("none of {} could be read", files(self.sources.len())),
            (1, [RowSource { path: Some(path), .. }]) => format!("{} was read, no session record in it", path.shown()),
            (count, _) => format!("{} read, no session record in any", files(count)),
        };
        let unreadable = self.listing.unreadable.iter();
        let mut hints: Vec<String> = unreadable
            .map(|(path, why)| format!("{} could not be read: {why}", path.shown()))
            .take(HINTS_MAX)
            .collect();
        hints.extend(self.sources.iter().filter_map(damaged_where).take(HINTS_MAX));
        let places = self.named_places();
        let mut heads = self.sources.iter().filter_map(|file| file.path.as_deref()).take(HINTS_MAX);
        if heads.any(is_telemetry) {
            let hint = format!(
                "there are events of the pipeline: `devboy tune analyze{places}` reads them, and `devboy mine fingerprints \
                 --from-telemetry{places}`"
            );
            hints.insert(0, hint);
        }
        hints.push(format!("{} says what is there instead; --allow-empty makes this no error", self.doctor_command()));
        Error::failed(format!("{NOTHING_PARSED}: {what}")).hint(hints.join("\n"))
    }

    /// What happened within the window, in numbers.
    pub fn overview(&mut self) -> Result<Overview> {
        // Whoever asks for numbers first asks for the history next.
        self.remember("overview", |input| Ok(Overview::of(input.seen_history().0)))
    }

    /// The same with what `see` makes of all rows ([`Input::history_seeing`]) and what symbols in it mean.
    pub fn overview_seeing<S: Default + Send>(&mut self, see: SeeFiles<'_, S>) -> Result<(Overview, S, Names)> {
        let (history, seen) = self.history_seeing(see);
        self.held = Some((self.window.clone(), history));
        let names = self.corpus_with(HeldRows::Sessions).names.clone();
        Ok((self.overview()?, seen, names))
    }

    /// The error of a window without what is wanted: which one was asked for, and which one is there.
    pub fn nothing_in_window(&mut self, wanted: &str) -> Error {
        if self.window == window::ALL {
            let places = self.named_places();
            return Error::failed(format!("no {wanted} in these logs"))
                .hint(format!("`devboy ingest{places}` says what they hold; --allow-empty makes this no error"));
        }
        // Of rows that were let go of the sessions are left.
        if self.corpus.is_none() {
            self.corpus();
        }
        let files = self.corpus.iter().flat_map(|corpus| &corpus.files);
        let rows = files.flat_map(|file| &file.rows.sessions).filter(|row| row.ts_first != NO_TIME);
        let spans = rows.map(|row| (row.ts_first, row.ts_last));
        let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let hints = [window::there("the logs", span).as_str(), window::WIDEN].join("\n");
        Error::failed(format!("no {wanted} in the window {}", window::words(&self.window))).hint(hints)
    }

    /// Nothing to work on: say where was looked.
    pub(super) fn nothing_found(&self) -> Error {
        let looked = self.roots.iter().enumerate().map(|(index, root)| {
            let unreadable = self.listing.unreadable.iter().find(|(path, _)| path.starts_with(&root.path));
            let state = match unreadable {
                Some((path, why)) if *path == root.path => why.clone(),
                Some((path, why)) => format!("{}: {why}", path.shown()),
                None if self.listing.missing.contains(&index) => "does not exist".to_owned(),
                None => "holds no .jsonl, .jsonl.gz or .jsonl.zst file".to_owned(),
            };
            format!("looked at {} ({}): {state}", root.path.shown(), root.origin)
        });
        let mut hints: Vec<String> = looked.collect();
        let is_absent = self.listing.missing.len() == self.roots.len();
        if let Some(project) = self.project.as_deref().filter(|_| !self.listing.files.is_empty()) {
            let files = self.listing.files.len() as u64;
            let files = format!("{} {}", numbers::counted(files, "file"), if files == 1 { "is" } else { "are" });
            let names: BTreeSet<&str> = self.listing.files.iter().map(|file| &*file.directory).collect();
            let more = names.len().saturating_sub(PROJECTS_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = names.into_iter().take(PROJECTS_NAMED).collect::<Vec<_>>().join(", ");
            return Error::failed(format!("no project is named like \"{project}\""))
                .hint(format!("{files} there, of these projects: {names}{more}"));
        } else if self.roots.is_empty() {
            hints.push("neither HOME nor CLAUDE_CONFIG_DIR is set: name the folder with --input-dir".to_owned());
        } else if is_absent && self.roots.iter().all(|root| root.origin == DEFAULT) {
            // The message names the places.
            hints = vec!["run Claude Code once, set CLAUDE_CONFIG_DIR, or give --input-dir DIR".to_owned()];
        } else {
            hints.push(format!("name the folder of your logs with --input-dir; {} says more", self.doctor_command()));
        }
        Error::failed(self.nowhere()).hint(hints.join("\n"))
    }

    /// What an error calls places without a log: whether they are there at all.
    fn nowhere(&self) -> String {
        if self.roots.is_empty() || self.listing.missing.len() < self.roots.len() {
            return "no Claude Code logs found".to_owned();
        }
        let places: Vec<String> = self.roots.iter().map(|root| root.path.shown()).collect();
        format!("{DIRECTORY_MISSING}: {}", places.join(", "))
    }
}

/// How the published `tune from-claude-logs` begins its two errors; other programs look for these words.
const DIRECTORY_MISSING: &str = "claude logs directory not found";
const NOTHING_PARSED: &str = "no jsonl events parsed — check the path";

/// Projects that an error names.
const PROJECTS_NAMED: usize = 10;

/// Says that a report lacks a file.
pub fn missing((path, why): &Failure) -> String {
    format!("{} is missing from this report: {why}", path.shown())
}

/// Where a file is damaged first, and how, as far as that may be why nothing was found in it.
fn damaged_where(source: &RowSource) -> Option<String> {
    let is_harmless = |reason: &Reason| {
        reason.is_way_of_writing() || matches!(reason, Reason::Glued | Reason::LoneSurrogate | Reason::Unreadable)
    };
    let damage = source.counters.damage.0.iter().filter(|(reason, _)| !is_harmless(reason));
    let (reason, seen) = damage.min_by_key(|(_, seen)| seen.line)?;
    let line = if seen.line == 0 { String::new() } else { format!(":{}", seen.line) };
    Some(format!("{}{line}: {}", source.shown(), reason.outcome()))
}

/// Whether a file begins with events of the pipeline.
fn is_telemetry(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = files::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && telemetry::holds_events(&head)
}
