//! The Arrow schema of the facts about bodies: one row per body and one per proven encoding. They belong to no log file,
//! so they stand in segments of their own.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_array::RecordBatch;

use crate::base::body_shape::{KeptLines, Showing};
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::{Names, Sym};
use crate::base::seal::{Seal, Way};
use crate::base::tokenizer::Size;
use crate::facts::body_facts::{BodyFacts, Encoding, LineHashes, NearField, NearSignature};
use crate::frames::columns::{BatchColumns, Column, ColumnResult, RowSchema, blobs, field, fields};

/// The tables, by the name of their files.
pub const TABLES: [&str; 2] = ["bodies", "encodings"];

/// Versions of the tables and of the meaning of their columns.
pub const VERSIONS: [(&str, u32); 2] = [("bodies", 6), ("encodings", 3)];

/// Rows that are written and read together: they hold many lines, so few of them stand in memory as columns.
#[cfg(not(test))]
pub const GROUP_ROWS: usize = 1 << 12;
/// The same in tests, where every log has some groups.
#[cfg(test)]
pub const GROUP_ROWS: usize = 4;

/// The batch of one of [`TABLES`]; `formats` are the names of the formats by number.
pub fn batch(table: &str, facts: &[&BodyFacts], formats: &[&str]) -> ColumnResult<RecordBatch> {
    let columns = match table {
        "bodies" => bodies().columns(facts, &Names::default()),
        _ => encoding_columns(facts, formats),
    };
    RecordBatch::try_from_iter_with_nullable(columns)
}

/// The facts in a batch of bodies, without their encodings, as far as it has their columns.
pub fn read(batch: &RecordBatch) -> ColumnResult<Vec<BodyFacts>> {
    bodies().rows(&BatchColumns(batch), &mut Names::default())
}

/// Columns that tell in which vocabularies bodies were counted.
pub const COUNTED_COLUMNS: [&str; 2] = ["body", "counted"];

/// Columns of what is shown of facts before they are read.
pub const SEEN_COLUMNS: [&str; 4] = ["body", "bytes", "line_witnesses", "texts"];

/// What is shown of facts before they are read ([`crate::facts::body_facts::WantedFacts::see`]), of a batch as it stands on
/// disk: of all texts only those of quotes are opened, which are few.
pub fn seen(batch: &RecordBatch, seal: &Seal) -> ColumnResult<Vec<BodyFacts>> {
    let columns = BatchColumns(batch);
    let (bodies, bytes) = (columns.ids("body")?, columns.u32("bytes")?);
    let (witnesses, texts) = (columns.blobs("line_witnesses")?, columns.blobs("texts")?);
    let seen = |row| {
        let mut facts = BodyFacts::default();
        let opened = |hash: &[u8; 8]| seal.hash_64(Way::FromDisk, u64::from_le_bytes(*hash)).to_le_bytes();
        facts.lines.set_witnesses(witnesses.value(row).as_chunks().0.iter().flat_map(opened).collect());
        // What has no size is no body but a quote.
        if bytes.value(row) == 0 {
            let hashes = unpack_hashes(texts.value(row));
            facts.texts = LineHashes::of_hashes(hashes.hashes().iter().map(|hash| seal.hash_32(Way::FromDisk, *hash)));
        }
        if facts.lines.is_empty() && facts.texts.is_empty() {
            return None;
        }
        facts.body = seal.id(Way::FromDisk, Id(bodies.value(row).try_into().unwrap_or_default()));
        Some(facts)
    };
    Ok((0..batch.num_rows()).filter_map(seen).collect())
}

/// Encodings of bodies of one segment, body by body, with what is lost in each.
#[derive(Default)]
pub struct StoredEncodings {
    rows: Vec<(Encoding, Box<[u8]>)>,
    /// Where those of a body stand.
    places: IdMap<Id, Range<u32>>,
    /// The body of the last ones.
    last: Option<Id>,
}

impl StoredEncodings {
    /// Adds those of a batch; `formats` are the names of the formats by number. Those in formats that this program lacks are
    /// left out.
    pub fn add(&mut self, batch: &RecordBatch, formats: &[&str]) -> ColumnResult<()> {
        let numbers: BTreeMap<&str, u8> = formats.iter().copied().zip(0..).collect();
        let (columns, mut names) = (BatchColumns(batch), Names::default());
        let lost = columns.blobs("lost")?;
        for (row, encoding) in encodings().rows(&columns, &mut names)?.into_iter().enumerate() {
            let EncodingRow { body, format, depth, size, kept } = encoding;
            self.last = Some(body);
            let Some(&format) = numbers.get(names.text(format)) else { continue };
            let kept = KeptLines::from_repr(kept).unwrap_or_default();
            let place = self.rows.len() as u32;
            self.rows.push((Encoding { format, depth, size, kept }, lost.value(row).into()));
            self.places.entry(body).or_insert(place..place).end = place + 1;
        }
        Ok(())
    }

    /// Whether the last ones are of a body that is not among these. Since they stand in the order of their bodies, there are no
    /// more then of any of these.
    pub fn go_beyond(&self, bodies: &IdSet<Id>) -> bool {
        self.last.is_some_and(|last| !bodies.contains(&last))
    }

    /// Drops those of these bodies, which stand before the others.
    pub fn let_go_of(&mut self, bodies: &IdSet<Id>) {
        self.places.retain(|body, _| !bodies.contains(body));
        let first = self.places.values().map(|place| place.start).min().unwrap_or(self.rows.len() as u32);
        self.rows.drain(..first as usize);
        self.places.values_mut().for_each(|place| *place = place.start - first..place.end - first);
        self.last = self.last.filter(|_| !self.rows.is_empty());
    }

    /// Gives a body its own.
    pub fn give(&self, facts: &mut BodyFacts) {
        let own =
            self.places.get(&facts.body).map_or(&[][..], |place| &self.rows[place.start as usize..place.end as usize]);
        if !own.is_empty() {
            facts.forms.encodings = own.iter().map(|(encoding, _)| *encoding).collect();
        }
        own.iter().for_each(|(encoding, lost)| unpack_lost(lost, encoding.format, &mut facts.texts));
    }
}

/// Columns of measures. Most are 0, for which nothing is kept.
macro_rules! measures {
    ($schema:expr, $($field:ident),+) => {
        $schema$(.column(
            stringify!($field),
            (
                |row| row.forms.measures.$field,
                |row, value| {
                    if value != row.forms.measures.$field {
                        row.forms.measures.$field = value;
                    }
                },
            ),
        ))+
    };
}

/// A column of a size that few bodies have; [`set_published`] comes before it.
macro_rules! published {
    ($($path:tt)+) => {
        (
            |row| row.forms.published.map(|size| size.$($path)+).unwrap_or_default(),
            |row, value| {
                if row.forms.published.is_some() {
                    row.forms.published.get_or_insert_default().$($path)+ = value;
                }
            },
        )
    };
}

fn set_published(row: &mut BodyFacts, is_published: bool) {
    if is_published {
        row.forms.published = Some(Size::default());
    }
}

fn bodies() -> RowSchema<BodyFacts> {
    let schema = fields!(RowSchema::<BodyFacts>::new(), body, sha, counted, chars)
        .column("bytes", field!(raw.bytes))
        .column("tokens_o200k", field!(raw.tokens[0]))
        .column("tokens_cl100k", field!(raw.tokens[1]));
    let schema = fields!(schema, shape, inner_formats);
    let schema = measures!(schema, depth, items, fields, columns, rows, key_stability);
    fields!(schema, preview, oversize, unproven)
        .column("published", (|row| row.forms.published.is_some(), set_published))
        .column("published_bytes", published!(bytes))
        .column("published_o200k", published!(tokens[0]))
        .column("published_cl100k", published!(tokens[1]))
        .column(
            "near_witness",
            (
                |row| row.near.as_deref().map(pack_near).unwrap_or_default(),
                |row, bytes: Vec<u8>| row.near = unpack_near(&bytes).map(Box::new),
            ),
        )
        .column(
            "line_witnesses",
            (|row| row.lines.witnesses().into(), |row, bytes: Box<[u8]>| row.lines.set_witnesses(bytes)),
        )
        .column("line_sizes", (|row| row.lines.sizes().into(), |row, bytes: Box<[u8]>| row.lines.set_sizes(bytes)))
        .column("look", (|row| row.look as u8, |row, number| row.look = Showing::from_repr(number).unwrap_or_default()))
        .column("texts", (|row| pack_hashes(&row.texts), |row, bytes: Vec<u8>| row.texts = unpack_hashes(&bytes)))
}

/// An encoding of a body as its table has it.
#[derive(Clone, Default)]
struct EncodingRow {
    body: Id,
    format: Sym,
    depth: u8,
    size: Size,
    kept: u8,
}

fn encodings() -> RowSchema<EncodingRow> {
    fields!(RowSchema::<EncodingRow>::new(), body, format, depth)
        .column("bytes", field!(size.bytes))
        .column("tokens_o200k", field!(size.tokens[0]))
        .column("tokens_cl100k", field!(size.tokens[1]))
        .column("kept", field!(kept))
}

fn encoding_columns(facts: &[&BodyFacts], formats: &[&str]) -> Vec<Column> {
    let mut names = Names::default();
    let symbols: Vec<Sym> = formats.iter().map(|id| names.intern(id)).collect();
    let of_body = || facts.iter().flat_map(|facts| facts.forms.encodings.iter().map(move |encoding| (facts, encoding)));
    let rows = of_body().map(|(facts, &Encoding { format, depth, size, kept })| EncodingRow {
        body: facts.body,
        format: symbols[format as usize],
        depth,
        size,
        kept: kept as u8,
    });
    let rows: Vec<EncodingRow> = rows.collect();
    let mut columns = encodings().columns(&rows.iter().collect::<Vec<_>>(), &names);
    columns.push(("lost", blobs(of_body().map(|(facts, row)| pack_lost(&facts.texts, row.format))), false));
    columns
}

/// Numbers of a packed list, little-endian.
struct Packed<'a>(&'a [u8]);

impl Packed<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    fn id(&mut self) -> Option<Id> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(Id(*bytes))
    }

    fn size(&mut self) -> Option<Size> {
        Some(Size { bytes: self.u32()?, tokens: [self.u32()?, self.u32()?] })
    }
}

fn pack_size(size: &Size, out: &mut Vec<u8>) {
    for number in [size.bytes].iter().chain(&size.tokens) {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn pack_hashes(texts: &LineHashes) -> Vec<u8> {
    texts.hashes().iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

fn unpack_hashes(bytes: &[u8]) -> LineHashes {
    let mut packed = Packed(bytes);
    LineHashes::of_hashes(std::iter::from_fn(|| packed.u32()))
}

/// One bit per line that a format loses; nothing if it loses none.
fn pack_lost(texts: &LineHashes, format: u8) -> Vec<u8> {
    let mut lost = texts.lost_in(format).peekable();
    if lost.peek().is_none() {
        return Vec::new();
    }
    let mut bits = vec![0; texts.hashes().len().div_ceil(8)];
    lost.for_each(|place| bits[place as usize / 8] |= 1 << (place % 8));
    bits
}

fn unpack_lost(bytes: &[u8], format: u8, texts: &mut LineHashes) {
    let bytes = &bytes[..bytes.len().min(texts.hashes().len().div_ceil(8))];
    let bits = (0..).zip(bytes).flat_map(|(at, byte)| (0..8).map(move |bit| (at * 8 + bit, byte >> bit & 1 == 1)));
    if !bytes.is_empty() {
        texts.lose(format, bits.filter(|(_, is_lost)| *is_lost).map(|(place, _)| place));
    }
}

/// The skeleton, then per field: value, whether it is plain, both sizes.
fn pack_near(near: &NearSignature) -> Vec<u8> {
    let mut out = near.skeleton.0.to_vec();
    for field in &near.fields {
        out.extend_from_slice(&field.value.0);
        out.extend_from_slice(&u32::from(field.plain).to_le_bytes());
        pack_size(&field.old, &mut out);
        pack_size(&field.new, &mut out);
    }
    out
}

fn unpack_near(bytes: &[u8]) -> Option<NearSignature> {
    let mut packed = Packed(bytes);
    let skeleton = packed.id()?;
    let next =
        || Some(NearField { value: packed.id()?, plain: packed.u32()? != 0, old: packed.size()?, new: packed.size()? });
    Some(NearSignature { skeleton, fields: std::iter::from_fn(next).collect() })
}
