//! The lake's table of contents: which log files it knows, how far each was read, and which segments hold their rows.
//!
//! No path and no text of a log stands in it: files are named by pseudonym, and pseudonyms are sealed. It is replaced as a
//! whole by a rename, so a reader sees the lake before a run or after it, never in between. Its second line is the checksum
//! of the first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use smallvec::SmallVec;

use crate::base::damage::Damage;
use crate::base::files;
use crate::base::id::Id;
use crate::base::names::Names;
use crate::frames::tables::SCHEMA_VERSION;
use crate::frames::{bodies, tables, timelines, values};
use crate::logs::trace::{Counters, FileRows};

/// File name of the manifest.
pub const FILE_NAME: &str = "manifest.json";

/// Names what makes rows and facts: the data files and the versions of the tables. Rows of a source that something else
/// made are made anew when its file is next looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Of rows and values.
    #[serde(rename = "made_by")]
    pub rows: Id,
    /// Of facts about bodies.
    #[serde(rename = "facts_made_by")]
    pub facts: Id,
}

impl Maker {
    /// The maker that goes by the texts of these data files.
    pub fn of(row_rules: &str, fact_rules: &str) -> Self {
        let named = |rules: &str, tables: &[(&str, u32)]| Id::pseudonym(format!("{tables:?} {rules}").as_bytes());
        let rows = [&tables::VERSIONS[..], &values::VERSIONS].concat();
        Self { rows: named(row_rules, &rows), facts: named(fact_rules, &bodies::VERSIONS) }
    }
}

/// One log file as the lake knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SourceLine")]
pub struct StoredSource {
    /// Number that its rows carry. A file that is read anew gets a new one.
    pub number: u32,
    /// Number that its timeline carries, where it is not that of the rows ([`Self::timeline`]).
    #[serde(rename = "timeline", skip_serializing_if = "Option::is_none")]
    pub kept_timeline: Option<u32>,
    /// Pseudonym of its canonical path.
    pub key: Id,
    /// Pseudonyms of the roots under which it was found, in order ([`Self::found_under`]).
    #[serde(serialize_with = "one_by_one")]
    pub roots: SmallVec<[Id; 2]>,
    /// Pseudonym of the name of its project directory.
    pub directory: Id,
    /// Size when it was read.
    pub bytes: u64,
    /// Modification time when it was read.
    pub modified_ns: i64,
    /// Status-change time when it was read.
    pub changed_ns: i64,
    /// Number of the file in its file system.
    pub inode: u64,
    /// Hash of all that was read: tells growth from rewriting, and the same file at another place.
    pub content: Id,
    /// What made its rows, and the facts about its bodies if any were made.
    #[serde(flatten)]
    pub maker: Maker,
    /// The file ended without a line feed: when it grows, it is read anew.
    pub open_tail: bool,
    /// In how many goes it was read: the halves of a call may come from two of them.
    pub readings: u32,
    /// Vocabularies in which its bodies were counted, one bit each; 0 after a light reading.
    pub tier: u8,
    /// What was counted; shared by all who know the file.
    #[serde(flatten, serialize_with = "each_its_own")]
    pub counters: Arc<Counters>,
}

impl StoredSource {
    /// Number that its timeline carries. It stays when the file is read anew and is what it was: whoever wants other facts about its
    /// bodies reads no timeline, and the log may be gone before anybody does.
    pub fn timeline(&self) -> u32 {
        self.kept_timeline.unwrap_or(self.number)
    }

    /// Brings together what belongs together of its rows; what was read in one go is folded already.
    pub fn fold(&self, rows: &mut FileRows, names: &Names) {
        if self.readings > 1 {
            rows.fold(names);
        }
    }

    /// Adds roots, each once.
    pub fn found_under(&mut self, roots: impl IntoIterator<Item = Id>) {
        self.roots.extend(roots);
        self.roots.sort_unstable();
        self.roots.dedup();
    }
}

/// What several share stands in the file as if it were each one's own.
fn each_its_own<S: Serializer>(counters: &Arc<Counters>, to: S) -> Result<S::Ok, S::Error> {
    Counters::serialize(counters, to)
}

fn one_by_one<S: Serializer>(roots: &[Id], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(roots)
}

/// A source as it stands in the file, field by field: read so, tens of thousands of them take half of the time.
#[derive(Deserialize)]
struct SourceLine {
    number: u32,
    timeline: Option<u32>,
    key: Id,
    roots: Vec<Id>,
    directory: Id,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
    inode: u64,
    content: Id,
    made_by: Id,
    facts_made_by: Id,
    open_tail: bool,
    readings: u32,
    tier: u8,
    lines: u64,
    items: u32,
    blocks: u32,
    records: u64,
    bad_fragments: u64,
    non_objects: u64,
    known_records: u64,
    types: BTreeMap<String, u64>,
    damage: Damage,
}

impl From<SourceLine> for StoredSource {
    fn from(line: SourceLine) -> Self {
        let SourceLine { number, timeline, key, roots, directory, bytes, modified_ns, changed_ns, .. } = line;
        let SourceLine { inode, content, made_by, facts_made_by, open_tail, readings, tier, lines, items, .. } = line;
        let SourceLine { blocks, records, bad_fragments, non_objects, known_records, types, damage, .. } = line;
        let counters =
            Counters { lines, items, blocks, records, bad_fragments, non_objects, known_records, types, damage };
        Self {
            number,
            kept_timeline: timeline,
            key,
            roots: roots.into(),
            directory,
            bytes,
            modified_ns,
            changed_ns,
            inode,
            content,
            maker: Maker { rows: made_by, facts: facts_made_by },
            open_tail,
            readings,
            tier,
            counters: counters.into(),
        }
    }
}

/// The Parquet files of one writing run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LakeSegment {
    /// Number in the names of its files.
    pub number: u32,
    /// Checksum of each file, by table.
    pub tables: BTreeMap<String, Id>,
    /// Numbers of the sources that have something in it; none of facts about bodies, which belong to no source.
    pub sources: Vec<u32>,
    /// Rows in it, dead ones included, as far as they belong to sources.
    pub rows: u64,
    /// What made it, if it holds facts about bodies.
    pub maker: Id,
}

/// The table of contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// [`crate::base::seal::Seal::check`] of the secret that sealed the lake.
    pub sealed_by: u64,
    /// Next number of a source.
    pub next_source: u32,
    /// Next number of a segment.
    pub next_segment: u32,
    /// Segments in order.
    pub segments: Vec<LakeSegment>,
    /// Segments with facts about bodies, in order: of one maker's, what a later one says holds.
    pub body_segments: Vec<LakeSegment>,
    /// Segments with timelines, in order: what a later one says holds.
    pub timeline_segments: Vec<LakeSegment>,
    /// Names of the tools of MCP servers that were called, so that their pseudonyms in telemetry can be read.
    pub mcp_tools: BTreeSet<String>,
    /// Sources by key.
    #[serde(serialize_with = "by_key")]
    pub sources: BTreeMap<Id, StoredSource>,
}

/// Sources name their keys themselves.
fn by_key<S: Serializer>(sources: &BTreeMap<Id, StoredSource>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(sources.values())
}

/// Why a manifest was not used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is none: the lake is new.
    Absent,
    /// It was written by a later devboy.
    Newer,
    /// It was written by a devboy that laid the lake out in another way.
    Older,
    /// Its content makes no sense, for the reason given.
    Broken(String),
    /// The disk does not give it away, for the reason given. What it holds may be all right.
    Unreadable(String),
}

impl Manifest {
    /// An empty lake.
    pub fn new() -> Self {
        Self { next_source: 1, next_segment: 1, ..Self::default() }
    }

    /// Reads the manifest of a lake, and names it as it stands there.
    pub fn load(dir: &Path) -> Result<(Self, Id), Unusable> {
        match files::read_own(&dir.join(FILE_NAME)) {
            Ok(text) => Ok((Self::parse(&text)?, Id::of(&text))),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Err(Unusable::Absent),
            Err(cause) => Err(Unusable::Unreadable(format!("{FILE_NAME} {cause}"))),
        }
    }

    /// Reads what [`Manifest::to_json`] wrote.
    pub fn parse(text: &[u8]) -> Result<Self, Unusable> {
        let broken = |why: &str| Unusable::Broken(format!("{FILE_NAME}: {why}"));
        let whole = || {
            let end = text.iter().position(|b| *b == b'\n').ok_or_else(|| broken("it breaks off"))?;
            let (body, sum) = text.split_at(end);
            if sum != checksum_line(body) {
                return Err(broken("its checksum does not fit"));
            }
            serde_json::from_slice::<ManifestText>(body).map_err(|cause| broken(&cause.to_string()))
        };
        let read = whole();
        // Another schema may look different: its version decides before the rest is called broken.
        let head = match &read {
            Ok(ManifestText { schema, tables, .. }) => Some(ManifestHead { schema: *schema, tables: tables.clone() }),
            Err(_) => serde_json::Deserializer::from_slice(text).into_iter().next().and_then(Result::ok),
        };
        match head {
            Some(ManifestHead { schema, .. }) if schema > SCHEMA_VERSION => Err(Unusable::Newer),
            Some(ManifestHead { schema, .. }) if schema < SCHEMA_VERSION => Err(Unusable::Older),
            Some(found) if found.is_later() => Err(Unusable::Newer),
            _ => read.map(Self::from),
        }
    }

    /// The manifest as it stands in the file: a line of JSON and one with its checksum.
    pub fn to_json(&self) -> Vec<u8> {
        let head = ManifestHead { schema: SCHEMA_VERSION, tables: versions().collect() };
        let body = serde_json::to_vec(&Stored { head, manifest: self });
        let body = body.expect("a manifest holds nothing that JSON cannot express");
        let sum = checksum_line(&body);
        [body, sum].concat()
    }

    /// The manifest with another form of every name of a file or directory: sealed, or opened.
    #[must_use]
    pub fn renamed(self, name: impl Fn(Id) -> Id) -> Self {
        let sources = self.sources.into_values().map(|source| {
            let (key, directory, content) = (name(source.key), name(source.directory), name(source.content));
            let mut renamed = StoredSource { key, directory, content, roots: SmallVec::new(), ..source };
            renamed.found_under(source.roots.into_iter().map(&name));
            (key, renamed)
        });
        Self { sources: sources.collect(), ..self }
    }

    /// Numbers of the live sources.
    pub fn live(&self) -> BTreeSet<u32> {
        self.sources.values().map(|source| source.number).collect()
    }
}

fn checksum_line(body: &[u8]) -> Vec<u8> {
    format!("\n\"{}\"\n", Id::of(body)).into_bytes()
}

/// Every table with its version.
fn versions() -> impl Iterator<Item = (&'static str, u32)> {
    tables::VERSIONS.into_iter().chain(values::VERSIONS).chain(bodies::VERSIONS).chain(timelines::VERSIONS)
}

/// The layout of the lake and the versions of its tables.
#[derive(Serialize, Deserialize)]
struct ManifestHead<T: Ord> {
    schema: u32,
    #[serde(default)]
    tables: BTreeMap<T, u32>,
}

impl ManifestHead<String> {
    /// Whether some table was written by a later devboy.
    fn is_later(&self) -> bool {
        versions().any(|(table, version)| self.tables.get(table).is_some_and(|written| *written > version))
    }
}

/// A manifest as it is read: in one go, since it may be long.
#[derive(Deserialize)]
struct ManifestText {
    schema: u32,
    #[serde(default)]
    tables: BTreeMap<String, u32>,
    sealed_by: u64,
    next_source: u32,
    next_segment: u32,
    segments: Vec<LakeSegment>,
    body_segments: Vec<LakeSegment>,
    timeline_segments: Vec<LakeSegment>,
    mcp_tools: BTreeSet<String>,
    sources: Vec<StoredSource>,
}

impl From<ManifestText> for Manifest {
    fn from(text: ManifestText) -> Self {
        let ManifestText { sealed_by, next_source, next_segment, segments, .. } = text;
        let ManifestText { body_segments, timeline_segments, mcp_tools, sources, .. } = text;
        let sources = sources.into_iter().map(|source| (source.key, source)).collect();
        Self { sealed_by, next_source, next_segment, segments, body_segments, timeline_segments, mcp_tools, sources }
    }
}

/// A manifest as it stands in the file.
#[derive(Serialize)]
struct Stored<'m> {
    #[serde(flatten)]
    head: ManifestHead<&'static str>,
    #[serde(flatten)]
    manifest: &'m Manifest,
}
