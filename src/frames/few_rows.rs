//! The rows of the lake a few files at a time: all together they are most of what is in memory. First it is found out which files
//! belong together, by ids alone; then the rows of a few families are read, and dropped before the next ones come.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::Names;
use crate::base::seal::Way;
use crate::frames::lake::{ALL, Lake, Trouble};
use crate::frames::manifest::LakeSegment;
use crate::frames::sealed;
use crate::frames::stored::StoredTable;
use crate::frames::tables::{self, SourcesWithIds};
use crate::logs::assemble::families::FamilySearch;
use crate::logs::trace::FileRows;

/// Tables that are read as a whole: a row or two of each file.
const WHOLE: [&str; 2] = ["chains", "sessions"];
/// The others.
pub const PARTED: [&str; 3] = ["calls", "messages", "marks"];
/// Rows that are read at once.
pub const ROWS_AT_ONCE: u64 = 1 << 17;
/// More of them are if otherwise one of so many row groups would be read twice: it holds rows of neighbours.
const GROUPS_READ_TWICE: usize = 8;

/// A file in the lake.
#[derive(Clone, Copy)]
pub struct StoredFile {
    /// The number of its source.
    pub source: u32,
    pub key: Id,
    /// Whether it belongs to no other file, whatever it holds.
    pub stands_alone: bool,
}

/// What each file has of the tables that are read as a whole, and a search for families that knows the ids in them.
pub fn whole(lake: &Lake, files: &[StoredFile], names: &mut Names) -> Result<(Vec<FileRows>, FamilySearch), Trouble> {
    let wanted: IdSet<u32> = files.iter().map(|file| file.source).collect();
    let mut known: IdMap<u32, FileRows> =
        lake.load(&WHOLE, names, &|source| wanted.contains(&source))?.into_iter().collect();
    let rows: Vec<FileRows> = files.iter().map(|file| known.remove(&file.source).unwrap_or_default()).collect();
    let mut search = FamilySearch::default();
    for (place, (file, rows)) in (0..).zip(files.iter().zip(&rows)).filter(|(_, (file, _))| !file.stands_alone) {
        let sessions = rows.sessions.iter().map(|row| row.session).chain(rows.chains.iter().map(|key| key.session));
        // Ids of the other tables are looked at as they stand on disk.
        let sealed = sessions.chain([file.key]).map(|id| lake.seal.id(Way::ToDisk, id));
        sealed.for_each(|id| search.add(place, &id));
    }
    Ok((rows, search))
}

/// Tables that were opened and looked through.
pub struct FewRows<'l> {
    lake: &'l Lake,
    tables: Vec<(&'l LakeSegment, &'static str, StoredTable)>,
    /// By file: its rows in each of [`PARTED`], and the row groups that hold them, as table and group.
    rows: Vec<[u64; PARTED.len()]>,
    groups: Vec<BTreeSet<(u32, u32)>>,
    /// How many row groups hold rows of these files.
    all_groups: usize,
    /// Which files belong together, as places among them.
    families: Vec<Vec<usize>>,
}

impl<'l> FewRows<'l> {
    /// Looks through some of [`PARTED`]. `search` knows the ids of other tables, if anybody asks which files belong together.
    pub fn open(
        lake: &'l Lake,
        files: &[StoredFile],
        tables: &[&'static str],
        mut search: FamilySearch,
    ) -> Result<Self, Trouble> {
        let places: IdMap<u32, usize> = files.iter().enumerate().map(|(place, file)| (file.source, place)).collect();
        let (rows, groups) = (vec![[0; PARTED.len()]; files.len()], vec![BTreeSet::new(); files.len()]);
        let mut few = Self { lake, tables: Vec::new(), rows, groups, all_groups: 0, families: Vec::new() };
        let has_some = |segment: &&LakeSegment| segment.sources.iter().any(|source| places.contains_key(source));
        for segment in lake.manifest.segments.iter().filter(has_some) {
            for &table in tables.iter().filter(|table| segment.tables.contains_key(**table)) {
                few.look_through(segment, table, (files, &places), &mut search)?;
            }
        }
        few.families = search.finish(files.len());
        Ok(few)
    }

    /// Takes down the ids of a table, and which of its row groups hold what.
    fn look_through(
        &mut self,
        segment: &'l LakeSegment,
        table: &'static str,
        (files, places): (&[StoredFile], &IdMap<u32, usize>),
        search: &mut FamilySearch,
    ) -> Result<(), Trouble> {
        let stored = self.lake.stored(segment, table)?;
        let kind = PARTED.iter().position(|name| *name == table).unwrap_or_default();
        let (number, mut group) = (self.tables.len() as u32, 0);
        let mut take = |(sources, ids): SourcesWithIds| {
            let mut is_wanted = false;
            for run in sources.chunk_by(|one, next| one == next) {
                if let Some(&place) = places.get(&run[0]) {
                    self.rows[place][kind] += run.len() as u64;
                    self.groups[place].insert((number, group));
                    is_wanted = true;
                }
            }
            for run in ids.chunk_by(|one, next| one.0 == next.0) {
                if let Some(&place) = places.get(&run[0].0).filter(|place| !files[**place].stands_alone) {
                    run.iter().for_each(|(_, id)| search.add(place as u32, id));
                }
            }
            self.all_groups += usize::from(is_wanted);
            group += 1;
            Ok(())
        };
        let is_wanted = |column: &str| tables::ID_COLUMNS.contains(&column);
        let read = stored.each_group(&is_wanted, &|batch| tables::ids(table, &batch), &mut take);
        read.map_err(|cause| self.lake.trouble(segment, table, cause))?;
        self.tables.push((segment, table, stored));
        Ok(())
    }

    /// How many rows of calls and of messages there are.
    pub fn rows(&self) -> [usize; 2] {
        let sum = |kind: usize| self.rows.iter().map(|rows| rows[kind] as usize).sum();
        [sum(0), sum(1)]
    }

    /// The families in rounds: those of a round are read together. They are so many that they have so many rows, and more if
    /// otherwise much of the lake would be read twice.
    pub fn rounds(&self, mut rows_max: u64) -> Vec<Vec<Vec<usize>>> {
        loop {
            let rounds = self.rounds_of(rows_max);
            let read: usize = rounds.iter().map(|round| self.groups_of(round).len()).sum();
            if rounds.len() < 2 || read <= self.all_groups + self.all_groups / GROUPS_READ_TWICE {
                return rounds;
            }
            rows_max *= 2;
        }
    }

    fn rounds_of(&self, rows_max: u64) -> Vec<Vec<Vec<usize>>> {
        let mut rounds: Vec<Vec<Vec<usize>>> = Vec::new();
        let mut rows = 0;
        for family in &self.families {
            if rounds.is_empty() || rows >= rows_max {
                rounds.push(Vec::new());
                rows = 0;
            }
            rows += family.iter().flat_map(|&file| self.rows[file]).sum::<u64>();
            rounds.last_mut().into_iter().for_each(|round| round.push(family.clone()));
        }
        rounds
    }

    fn groups_of(&self, round: &[Vec<usize>]) -> BTreeSet<(u32, u32)> {
        round.iter().flatten().flat_map(|&file| &self.groups[file]).copied().collect()
    }

    /// The rows of some families that stand in the other tables, by file.
    pub fn load(
        &self,
        round: &[Vec<usize>],
        files: &[StoredFile],
        names: &mut Names,
    ) -> Result<Vec<(usize, FileRows)>, Trouble> {
        let wanted: Vec<usize> = round.iter().flatten().copied().collect();
        let mut files: Vec<_> = wanted.iter().map(|&file| (files[file].source, FileRows::default())).collect();
        let places: IdMap<u32, usize> = files.iter().enumerate().map(|(place, (source, _))| (*source, place)).collect();
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (table, group) in self.groups_of(round) {
            groups.entry(table).or_default().push(group as usize);
        }
        for (number, groups) in groups {
            let (segment, table, stored) = &self.tables[number as usize];
            let opened = |batch| sealed::pass(batch, &self.lake.seal, Way::FromDisk);
            let mut take =
                |batch| tables::read(table, &batch, names, &mut files, &mut |source| places.get(&source).copied());
            let read = stored.some_groups(&groups, ALL, &opened, &mut take);
            read.map_err(|cause| self.lake.trouble(segment, table, cause))?;
        }
        Ok(wanted.into_iter().zip(files).map(|(file, (_, rows))| (file, rows)).collect())
    }
}
