//! Rows of the lake a few at a time: a history of them, family by family; and what each file says by its calls.

use std::ops::Range;

use rayon::ThreadPool;

use crate::base::allocator;
use crate::base::names::Names;
use crate::frames::few_rows::{FewRows, PARTED, StoredFile, whole};
use crate::frames::input::{HeldRows, Input, RowCount, SeeFiles};
use crate::frames::lake::{Lake, Trouble};
use crate::frames::manifest::StoredSource;
use crate::logs::assemble::families::FamilySearch;
use crate::logs::assemble::{Assembly, Kept, logs};
use crate::logs::corpus::{Corpus, RowSource, SourceRows};
use crate::logs::history::History;
use crate::logs::trace::{CallRow, Millis};
use crate::logs::values::CallBlocks;

/// What is made of the calls of a file.
type OfCalls<'a, T> = &'a dyn Fn(&RowSource, &[CallRow], &Names) -> Option<T>;

impl Input {
    /// The history of all rows, where the lake can give them and they are not in memory. None if there is any trouble with it:
    /// whoever reads all at once looks into that.
    pub(super) fn few_at_a_time<S: Default + Send>(
        &mut self,
        held: HeldRows,
        kept: Kept,
        see: SeeFiles<'_, S>,
    ) -> Option<(History, Option<CallBlocks>, S)> {
        if self.holds(HeldRows::All) {
            return None;
        }
        let (stored, mut seen) = (self.stored()?, Seen::<S>::by(self.row_count.0, &self.window));
        let mut see = |files: &[&SourceRows], names: &Names| seen.add(files, names, see);
        let (corpus, history, blocks) = self.pool.install(|| stored.history(held, kept, &mut see)).ok()?;
        self.row_count = (None, seen.count.map(|_| (self.window.clone(), seen.counts)));
        (self.corpus, self.held_rows) = (Some(corpus), held);
        Some((history, blocks, seen.sums))
    }

    /// What `of` makes of the calls of each file, in the order of files; they are not held for it.
    pub fn of_calls<T>(&mut self, of: OfCalls<'_, T>) -> Vec<T> {
        if !self.holds(HeldRows::Calls)
            && let Some(stored) = self.stored()
            && let Ok(made) = stored.of_calls(&self.pool, of)
        {
            return made;
        }
        let Corpus { files, names, .. } = self.calls();
        files.iter().filter_map(|file| of(&file.source, &file.rows.calls, names)).collect()
    }

    fn holds(&self, rows: HeldRows) -> bool {
        self.corpus.is_some() && self.held_rows >= rows
    }

    /// The rows in the lake, if it has all.
    fn stored(&self) -> Option<Stored<'_>> {
        let lake = self.lake.as_ref().filter(|_| self.keeps_rows())?;
        Some(Stored { lake, sources: &self.sources, selected: &self.selected, rows_at_once: self.rows_at_once })
    }
}

/// What was counted of the files of an input, and what somebody else made of them.
pub(super) struct Seen<S> {
    count: Option<RowCount>,
    window: Range<Millis>,
    pub counts: [u64; 3],
    pub sums: S,
}

impl<S: Default> Seen<S> {
    /// Nothing so far.
    pub fn by(count: Option<RowCount>, window: &Range<Millis>) -> Self {
        Self { count, window: window.clone(), counts: [0; 3], sums: S::default() }
    }

    /// Adds files.
    pub fn add(&mut self, files: &[&SourceRows], names: &Names, see: SeeFiles<'_, S>) {
        for (count, file) in self.count.iter().flat_map(|count| files.iter().map(move |file| (count, file))) {
            let of_file = count(file, self.window.clone());
            self.counts.iter_mut().zip(of_file).for_each(|(sum, own)| *sum += own);
        }
        see(&mut self.sums, files, names);
    }
}

/// What rows there are.
struct Stored<'i> {
    lake: &'i Lake,
    sources: &'i [RowSource],
    selected: &'i [StoredSource],
    rows_at_once: u64,
}

impl Stored<'_> {
    fn files(&self, stands_alone: impl Fn(&RowSource) -> bool) -> Vec<StoredFile> {
        let both = self.sources.iter().zip(self.selected);
        let file = |(source, stored): (&RowSource, &StoredSource)| StoredFile {
            source: stored.number,
            key: source.key,
            stands_alone: stands_alone(source),
        };
        both.map(file).collect()
    }

    /// The history with what is held of its rows. `see` is shown all rows of the files of each family that input is counted by.
    fn history(
        &self,
        held: HeldRows,
        kept: Kept,
        see: &mut (dyn FnMut(&[&SourceRows], &Names) + Send),
    ) -> Result<(Corpus, History, Option<CallBlocks>), Trouble> {
        let files = self.files(RowSource::is_sidecar);
        let mut corpus = Corpus::default();
        let (whole, search) = whole(self.lake, &files, &mut corpus.names)?;
        let few = FewRows::open(self.lake, &files, &PARTED, search)?;
        // What it took to find the families.
        allocator::give_back_small_blocks();
        let with_rows = self.sources.iter().cloned().zip(whole).map(|(source, rows)| SourceRows { source, rows });
        corpus.files = with_rows.collect();
        let mut places = vec![None; files.len()];
        logs(&corpus).into_iter().zip(0..).for_each(|((file, _), log)| places[file] = Some(log));
        let rounds = few.rounds(self.rows_at_once);
        let families = rounds.iter().flatten().filter(|family| places[family[0]].is_some()).count();
        let mut assembly = Assembly::begin(&corpus, (families, few.rows()), kept);
        for round in rounds {
            for (file, mut rows) in few.load(&round, &files, &mut corpus.names)? {
                let known = &mut corpus.files[file].rows;
                rows.chains = std::mem::take(&mut known.chains);
                rows.sessions = std::mem::take(&mut known.sessions);
                self.selected[file].fold(&mut rows, &corpus.names);
                *known = rows;
            }
            let logs_of = |family: &Vec<usize>| family.iter().map(|&file| places[file]).collect::<Option<Vec<usize>>>();
            let families: Vec<Vec<usize>> = round.iter().filter_map(logs_of).collect();
            assembly.rank(&corpus, &families);
            for family in &round {
                let is_input = |file: &&usize| places[**file].is_none_or(|log| assembly.is_input(&corpus, log));
                let files: Vec<_> = family.iter().filter(is_input).map(|&file| &corpus.files[file]).collect();
                see(&files, &corpus.names);
            }
            assembly.add(&mut corpus, &families, &|rows| held.cut(rows));
        }
        let (history, blocks) = assembly.finish(&corpus);
        Ok((corpus, history, blocks))
    }

    fn of_calls<T>(&self, pool: &ThreadPool, of: OfCalls<'_, T>) -> Result<Vec<T>, Trouble> {
        let (files, mut names) = (self.files(|_| true), Names::default());
        let few = pool.install(|| FewRows::open(self.lake, &files, &["calls"], FamilySearch::default()))?;
        let mut made = Vec::new();
        for round in few.rounds(self.rows_at_once) {
            for (file, mut rows) in pool.install(|| few.load(&round, &files, &mut names))? {
                self.selected[file].fold(&mut rows, &names);
                made.extend(of(&self.sources[file], &rows.calls, &names));
            }
        }
        Ok(made)
    }
}
