//! The lake's table of contents: which log files it knows, how far each was read, and which segments hold their rows.
//!
//! No path and no text of a log stands in it: files are named by pseudonym. It is replaced as a whole by a rename, so a
//! reader sees the lake before a run or after it, never in between.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::frames::tables::SCHEMA_VERSION;
use crate::model::damage::{Damage, Reason, Spot};
use crate::model::id::Id;
use crate::model::trace::Counters;

/// File name of the manifest.
pub const FILE_NAME: &str = "manifest.json";

/// One log file as the lake knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSource {
    /// Number that its rows carry. A file that is read anew gets a new one.
    pub number: u32,
    /// Pseudonym of its canonical path.
    pub key: Id,
    /// Pseudonyms of the roots under which it was found.
    pub roots: Vec<Id>,
    /// Pseudonym of the name of its project directory.
    pub directory: Id,
    /// Size when it was read.
    pub bytes: u64,
    /// Modification time when it was read.
    pub modified_ns: i64,
    /// Status-change time when it was read.
    pub changed_ns: i64,
    /// Hash of samples of what was read: tells growth from rewriting.
    pub probe: Id,
    /// The file ended without a line feed: when it grows, it is read anew.
    pub open_tail: bool,
    /// In how many goes it was read: the halves of a call may come from two of them.
    pub readings: u32,
    /// Vocabularies in which its bodies were counted, one bit each; 0 after a light reading.
    pub tier: u8,
    /// What was counted.
    pub counters: Counters,
}

/// The table of contents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Schema that the segments were written with.
    pub schema: u32,
    /// Names the vocabulary by which the rows were made.
    pub words: Id,
    /// Next number of a source.
    pub next_source: u32,
    /// Next number of a segment.
    pub next_segment: u32,
    /// Segments in order.
    pub segments: Vec<u32>,
    /// Segments with facts about bodies, in order: what a later one says holds.
    pub body_segments: Vec<u32>,
    /// Segments with timelines, in order: what a later one says holds.
    pub timeline_segments: Vec<u32>,
    /// Names of the tools of MCP servers that were called, so that their pseudonyms in telemetry can be read.
    pub mcp_tools: BTreeSet<String>,
    /// Rows in the segments, dead ones included.
    pub rows: u64,
    /// Sources by key.
    pub sources: BTreeMap<Id, StoredSource>,
}

/// Why a manifest was not used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is none: the lake is new.
    Absent,
    /// It was written by a later devboy.
    Newer(u32),
    /// It cannot be read, for the reason given.
    Broken(String),
}

impl Manifest {
    /// An empty lake.
    pub fn new() -> Self {
        Self { schema: SCHEMA_VERSION, next_source: 1, next_segment: 1, ..Self::default() }
    }

    /// Reads the manifest of a lake.
    pub fn load(dir: &Path) -> Result<Self, Unusable> {
        let text = match std::fs::read(dir.join(FILE_NAME)) {
            Ok(text) => text,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Err(Unusable::Absent),
            Err(cause) => return Err(Unusable::Broken(cause.to_string())),
        };
        let stored: Stored = match serde_json::from_slice(&text) {
            Ok(stored) => stored,
            // A later schema may look different: its version decides before the rest is called broken.
            Err(cause) => match serde_json::from_slice::<SchemaOnly>(&text) {
                Ok(SchemaOnly { schema }) if schema > SCHEMA_VERSION => return Err(Unusable::Newer(schema)),
                _ => return Err(Unusable::Broken(cause.to_string())),
            },
        };
        if stored.schema > SCHEMA_VERSION {
            return Err(Unusable::Newer(stored.schema));
        }
        stored.unpack().ok_or_else(|| Unusable::Broken("an id is malformed".to_owned()))
    }

    /// The manifest as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&Stored::pack(self)).expect("a manifest holds nothing that JSON cannot express")
    }
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: u32,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: u32,
    words: String,
    next_source: u32,
    next_segment: u32,
    segments: Vec<u32>,
    #[serde(default)]
    body_segments: Vec<u32>,
    #[serde(default)]
    timeline_segments: Vec<u32>,
    #[serde(default)]
    mcp_tools: BTreeSet<String>,
    rows: u64,
    sources: Vec<StoredEntry>,
}

#[derive(Serialize, Deserialize)]
struct StoredEntry {
    number: u32,
    key: String,
    roots: Vec<String>,
    directory: String,
    bytes: u64,
    modified_ns: i64,
    changed_ns: i64,
    probe: String,
    open_tail: bool,
    readings: u32,
    #[serde(default)]
    tier: u8,
    lines: u64,
    items: u32,
    blocks: u32,
    records: u64,
    bad_fragments: u64,
    non_objects: u64,
    known_records: u64,
    types: BTreeMap<String, u64>,
    damage: BTreeMap<String, (u64, u64)>,
}

impl Stored {
    fn pack(manifest: &Manifest) -> Self {
        Self {
            schema: manifest.schema,
            words: manifest.words.to_string(),
            next_source: manifest.next_source,
            next_segment: manifest.next_segment,
            segments: manifest.segments.clone(),
            body_segments: manifest.body_segments.clone(),
            timeline_segments: manifest.timeline_segments.clone(),
            mcp_tools: manifest.mcp_tools.clone(),
            rows: manifest.rows,
            sources: manifest.sources.values().map(StoredEntry::pack).collect(),
        }
    }

    fn unpack(self) -> Option<Manifest> {
        let sources = self.sources.into_iter().map(StoredEntry::unpack).collect::<Option<Vec<_>>>()?;
        Some(Manifest {
            schema: self.schema,
            words: Id::from_hex(&self.words)?,
            next_source: self.next_source,
            next_segment: self.next_segment,
            segments: self.segments,
            body_segments: self.body_segments,
            timeline_segments: self.timeline_segments,
            mcp_tools: self.mcp_tools,
            rows: self.rows,
            sources: sources.into_iter().map(|source| (source.key, source)).collect(),
        })
    }
}

impl StoredEntry {
    fn pack(source: &StoredSource) -> Self {
        let counters = &source.counters;
        let damage = counters.damage.0.iter();
        Self {
            number: source.number,
            key: source.key.to_string(),
            roots: source.roots.iter().map(Id::to_string).collect(),
            directory: source.directory.to_string(),
            bytes: source.bytes,
            modified_ns: source.modified_ns,
            changed_ns: source.changed_ns,
            probe: source.probe.to_string(),
            open_tail: source.open_tail,
            readings: source.readings,
            tier: source.tier,
            lines: counters.lines,
            items: counters.items,
            blocks: counters.blocks,
            records: counters.records,
            bad_fragments: counters.bad_fragments,
            non_objects: counters.non_objects,
            known_records: counters.known_records,
            types: counters.types.clone(),
            damage: damage.map(|(reason, spot)| (reason.key().to_owned(), (spot.count, spot.line))).collect(),
        }
    }

    fn unpack(self) -> Option<StoredSource> {
        let spot = |(key, (count, line)): (String, (u64, u64))| Some((Reason::from_key(&key)?, Spot { count, line }));
        Some(StoredSource {
            number: self.number,
            key: Id::from_hex(&self.key)?,
            roots: self.roots.iter().map(|root| Id::from_hex(root)).collect::<Option<_>>()?,
            directory: Id::from_hex(&self.directory)?,
            bytes: self.bytes,
            modified_ns: self.modified_ns,
            changed_ns: self.changed_ns,
            probe: Id::from_hex(&self.probe)?,
            open_tail: self.open_tail,
            readings: self.readings,
            tier: self.tier,
            counters: Counters {
                lines: self.lines,
                items: self.items,
                blocks: self.blocks,
                records: self.records,
                bad_fragments: self.bad_fragments,
                non_objects: self.non_objects,
                known_records: self.known_records,
                types: self.types,
                damage: Damage(self.damage.into_iter().map(spot).collect::<Option<_>>()?),
            },
        })
    }
}
