//! Totals of the *input* by the plainest definitions there are, so that a short independent program can check them: a file is
//! one trace, records stand in line order, nothing is deduplicated but API messages. What devboy makes of it is in
//! [`crate::logs::history`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::{Names, Sym};
use crate::base::stats::quantile_place;
use crate::logs::assemble::files_of_input;
use crate::logs::corpus::{Corpus, SourceRows};
use crate::logs::trace::{MarkKind, MarkRow, Millis, SUMMARY_WITHIN_RECORDS, Status, ToolResult, ToolUse, Usage};

/// Lags for which directly-follows totals are given.
const LAGS: [usize; 3] = [1, 2, 3];
/// Bodies shorter than this many code points do not count as repeats.
const REPEAT_CHARS_MIN: u32 = 200;
/// Entries of the small cache.
const LRU_SIZE: usize = 5;

/// Calls and sizes of one tool.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq, Eq)]
pub struct ToolTotals {
    /// `tool_use` blocks.
    pub calls: u64,
    /// Files with at least one.
    pub files: u64,
    /// Median size of the paired results in code points (lower element); none without a result.
    pub p50: Option<u32>,
    /// 90th percentile of the same.
    pub p90: Option<u32>,
}

/// Outcome of the paired calls, as `is_error` tells it.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq, Eq)]
pub struct StatusTotals {
    /// Results without `is_error: true`.
    pub ok: u64,
    /// Results with it, whatever their text.
    pub error: u64,
}

/// Token fields of all messages.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq, Eq)]
pub struct UsageTotals {
    /// See [`Usage::input`].
    pub input_tokens: u64,
    /// See [`Usage::output`].
    pub output_tokens: u64,
    /// See [`Usage::cache_creation`].
    pub cache_creation_input_tokens: u64,
    /// See [`Usage::cache_read`].
    pub cache_read_input_tokens: u64,
}

/// Exact repeats of bodies within a file and partition.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq, Eq)]
pub struct RepeatTotals {
    /// Bodies of at least 200 code points.
    pub eligible_ge200: u64,
    /// Of these, seen before.
    pub repeat_unlimited: u64,
    /// Of these, among the five most recently used.
    pub repeat_lru5: u64,
    /// Code points of all repeats.
    pub repeat_chars: u64,
}

/// Totals over a set of files.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq, Eq)]
pub struct Totals {
    pub files: u64,
    /// JSON objects.
    pub records: u64,
    /// Lines that hold something that is no JSON.
    pub bad_fragments: u64,
    /// Arrays and bare values.
    pub non_objects: u64,
    /// Distinct `sessionId`.
    pub sessions: u64,
    /// `tool_use` blocks.
    pub tool_uses: u64,
    /// Distinct `tool_use` ids.
    pub tool_uses_distinct: u64,
    /// Calls with a result in the same file.
    pub paired: u64,
    /// Calls without.
    pub unanswered: u64,
    /// Results without a call in the same file.
    pub orphan_results: u64,
    /// Outcome of the paired calls.
    pub status: StatusTotals,
    /// `compact_boundary` records.
    pub compact_boundaries: u64,
    /// Summaries without a boundary close before.
    pub compact_summaries_alone: u64,
    /// By tool name.
    pub tools: BTreeMap<String, ToolTotals>,
    /// Pairs of calls of a file at lag 1, 2, 3.
    pub edge_total: BTreeMap<String, u64>,
    /// API messages (distinct `message.id` with usage, `<synthetic>` left out).
    pub messages: u64,
    /// Their tokens, per-field maximum over the copies of a message.
    pub usage: UsageTotals,
    /// Messages by model.
    pub models: BTreeMap<String, u64>,
    pub dedup: RepeatTotals,
    /// Records by type.
    pub types: BTreeMap<String, u64>,
}

/// Computes the totals of all files.
pub fn totals(corpus: &Corpus) -> Totals {
    let mut sums = TotalSums::default();
    sums.add(&files_of_input(corpus).collect::<Vec<_>>(), &corpus.names);
    sums.finish(&corpus.names)
}

/// The exact repeats among the results of a file that came within a window.
pub fn repeats(file: &SourceRows, window: Range<Millis>) -> RepeatTotals {
    let mut sums = TotalSums { window: Some(window), ..TotalSums::default() };
    let answers = answers(file);
    sums.add_repeats(&answers, &standing(&answers), &file.rows.marks);
    sums.totals.dedup
}

/// The uses of tools in a file with their calls, in their order. Progress records are no calls of the file.
pub(super) fn asked(file: &SourceRows) -> Vec<(&ToolUse, Id)> {
    let recorded = file.rows.calls.iter().filter(|row| !row.progress);
    let mut asked: Vec<_> = recorded.filter_map(|row| Some((row.asked.as_ref()?, row.call))).collect();
    asked.sort_by_key(|(asked, _)| asked.block);
    asked
}

/// The results of a file with their calls, in their order.
pub(super) fn answers(file: &SourceRows) -> Vec<(&ToolResult, Id)> {
    let recorded = file.rows.calls.iter().filter(|row| !row.progress);
    let mut answers: Vec<_> = recorded.filter_map(|row| Some((row.answered.as_ref()?, row.call))).collect();
    answers.sort_by_key(|(answered, _)| answered.block);
    answers
}

/// The last result of an id is the one that stands. What has no id answers nothing.
pub(super) fn standing<'r>(answers: &[(&'r ToolResult, Id)]) -> IdMap<Id, &'r ToolResult> {
    answers.iter().map(|&(answered, id)| (id, answered)).filter(|(id, _)| id.is_some()).collect()
}

#[derive(Default)]
struct ToolSums {
    calls: u64,
    files: u64,
    chars: Vec<u32>,
}

/// [`Totals`] on their way.
#[derive(Default)]
pub struct TotalSums {
    /// Results outside are no repeats, and nothing repeats them; none where all count.
    window: Option<Range<Millis>>,
    totals: Totals,
    sessions: IdSet<Id>,
    /// Distinct calls of the files at hand.
    calls: IdSet<Id>,
    tools: BTreeMap<Sym, ToolSums>,
    /// Messages of the files at hand, with what went in and came out, and what was written to the cache and read from it.
    messages: IdMap<Id, ([u64; 4], Sym)>,
    /// Messages of the others.
    models: BTreeMap<Sym, u64>,
    edges: [u64; LAGS.len()],
}

impl TotalSums {
    /// Adds files, of which no others repeat a call or a message: those of all would be most of what is held.
    pub fn add(&mut self, files: &[&SourceRows], names: &Names) {
        files.iter().for_each(|file| self.add_file(file, names));
        self.totals.tool_uses_distinct += std::mem::take(&mut self.calls).len() as u64;
        let messages = std::mem::take(&mut self.messages);
        self.totals.messages += messages.len() as u64;
        // Sums and counts do not depend on the order of the map.
        #[expect(clippy::iter_over_hash_type)]
        for (tokens, model) in messages.values() {
            let UsageTotals { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } =
                &mut self.totals.usage;
            let sums = [input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens];
            sums.into_iter().zip(tokens).for_each(|(sum, own)| *sum = sum.saturating_add(*own));
            *self.models.entry(*model).or_default() += 1;
        }
    }

    fn add_file(&mut self, file: &SourceRows, names: &Names) {
        let counters = &file.source.counters;
        self.totals.files += 1;
        self.totals.records += counters.records;
        self.totals.bad_fragments += counters.bad_fragments;
        self.totals.non_objects += counters.non_objects;
        for (kind, count) in &counters.types {
            *self.totals.types.entry(kind.clone()).or_default() += count;
        }
        self.sessions.extend(file.rows.sessions.iter().map(|row| row.session));
        for row in file.rows.messages.iter().filter(|row| row.has_usage && row.has_id) {
            let Usage { input, output, cache_creation, cache_read, .. } = row.usage;
            let tokens = [input, output, cache_creation, cache_read];
            let entry = self.messages.entry(row.id).or_insert((tokens, row.model));
            entry.0.iter_mut().zip(tokens).for_each(|(most, own)| *most = own.max(*most));
            // Of two names the one that sorts last, as in the history.
            if names.text(row.model) > names.text(entry.1) {
                entry.1 = row.model;
            }
        }
        self.add_calls(file);
    }

    fn add_calls(&mut self, file: &SourceRows) {
        let asked = asked(file);
        let answered = answers(file);
        let results = standing(&answered);
        let mut seen_tools = BTreeSet::new();
        for (asked, id) in &asked {
            let tool = self.tools.entry(asked.tool).or_default();
            tool.calls += 1;
            tool.files += u64::from(seen_tools.insert(asked.tool));
            self.calls.insert(*id);
            self.totals.tool_uses += 1;
            let Some(result) = results.get(id) else {
                self.totals.unanswered += 1;
                continue;
            };
            self.totals.paired += 1;
            tool.chars.push(result.chars);
            let failed = !matches!(result.status, Status::Ok);
            self.totals.status.error += u64::from(failed);
            self.totals.status.ok += u64::from(!failed);
        }
        let known: IdSet<Id> = asked.iter().map(|&(_, id)| id).collect();
        let nameless = answered.iter().filter(|(_, id)| !id.is_some()).count();
        let orphans = nameless + results.keys().filter(|id| !known.contains(id)).count();
        self.totals.orphan_results += orphans as u64;
        for (sum, lag) in self.edges.iter_mut().zip(LAGS) {
            *sum += asked.len().saturating_sub(lag) as u64;
        }
        self.add_repeats(&answered, &results, &file.rows.marks);
    }

    /// Repeats in result order; a cache per partition of the file.
    fn add_repeats(&mut self, answered: &[(&ToolResult, Id)], results: &IdMap<Id, &ToolResult>, marks: &[MarkRow]) {
        let partitions = self.partition_starts(marks);
        let (mut recent, mut seen) = (VecDeque::new(), IdSet::default());
        let mut current = 0;
        for (answered, id) in answered {
            let body = results.get(id).unwrap_or(answered);
            let partition = partitions.partition_point(|&start| start <= body.record);
            if partition != current {
                recent.clear();
                seen.clear();
                current = partition;
            }
            let is_outside = self.window.as_ref().is_some_and(|window| !window.contains(&body.ts));
            if body.chars < REPEAT_CHARS_MIN || is_outside {
                continue;
            }
            let sums = &mut self.totals.dedup;
            sums.eligible_ge200 += 1;
            if !seen.insert(body.body) {
                sums.repeat_unlimited += 1;
                sums.repeat_chars += u64::from(body.chars);
            }
            if let Some(index) = recent.iter().position(|&known| known == body.body) {
                sums.repeat_lru5 += 1;
                recent.remove(index);
            }
            recent.push_back(body.body);
            if recent.len() > LRU_SIZE {
                recent.pop_front();
            }
        }
    }

    /// Records at which a partition of the file begins: boundaries, and summaries without one.
    fn partition_starts(&mut self, marks: &[MarkRow]) -> Vec<u32> {
        let mut starts = Vec::new();
        let mut last_boundary = None;
        for mark in marks {
            match mark.kind {
                MarkKind::Boundary => {
                    last_boundary = Some(mark.record);
                    self.totals.compact_boundaries += 1;
                    starts.push(mark.record);
                }
                MarkKind::Summary if last_boundary.is_none_or(|b| mark.record - b > SUMMARY_WITHIN_RECORDS) => {
                    self.totals.compact_summaries_alone += 1;
                    starts.push(mark.record);
                }
                _ => {}
            }
        }
        starts
    }

    /// The totals; `names` are what symbols mean.
    pub fn finish(self, names: &Names) -> Totals {
        let mut totals = self.totals;
        totals.sessions = self.sessions.len() as u64;
        for (tool, mut sums) in self.tools {
            sums.chars.sort_unstable();
            let row = ToolTotals {
                calls: sums.calls,
                files: sums.files,
                p50: quantile_lower(&sums.chars, 0.5),
                p90: quantile_lower(&sums.chars, 0.9),
            };
            totals.tools.insert(names.text(tool).to_owned(), row);
        }
        totals.edge_total = LAGS.iter().zip(self.edges).map(|(lag, sum)| (lag.to_string(), sum)).collect();
        totals.models = self.models.into_iter().map(|(model, count)| (names.text(model).to_owned(), count)).collect();
        totals
    }
}

/// The element at `floor(share × (n − 1))` of sorted values; none when there are none.
pub fn quantile_lower(sorted: &[u32], share: f64) -> Option<u32> {
    quantile_place(sorted.len(), share).map(|place| sorted[place])
}
