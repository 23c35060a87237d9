//! Rows of a lake that are read a few at a time give what all of them give.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::base::names::{Names, Sym};
use crate::frames::few_rows::{FewRows, PARTED, StoredFile, whole};
use crate::frames::input::{Input, RowCount};
use crate::frames::lake::Lake;
use crate::frames::new_rows::ROWS_WAITING;
use crate::frames::tables::TABLES;
use crate::logs::corpus::RowSource;
use crate::logs::history::History;
use crate::logs::overview::Overview;
use crate::logs::trace::{CallRow, FileRows};
use crate::mine::totals::{TotalSums, totals};
use crate::tests::harness::{Home, session};
use crate::tests::log_builder::cases;
use crate::tests::log_stories::{Folder, any_folder, texts};
use crate::tests::timeline_corpus::input;

/// A lake to which each of these groups of logs came in a run of its own; a log that comes again has grown.
fn home_of(runs: &[Vec<(String, String)>]) -> Home {
    let home = Home::new();
    for run in runs {
        for (name, text) in run {
            home.write(&format!(".claude/projects/{name}.jsonl"), text);
        }
        home.json(&["ingest", "--allow-empty"]);
    }
    home
}

#[test]
fn families_are_read_in_rounds_and_those_that_stand_together_in_one() {
    let of = |name: &str, calls: usize| (format!("-p/{name}"), session(name, calls));
    let begun = of("one", 60).1.split_inclusive('\n').take(7).collect();
    let home = home_of(&[
        vec![("-p/one".to_owned(), begun)],
        vec![of("two", 4)],
        vec![of("one", 60)],
        vec![of("x", 5), of("y", 6)],
    ]);
    let lake = Lake::open(&home.lake()).unwrap();
    let file = |number: u32, key| StoredFile { source: number, key, stands_alone: false };
    let known = lake.manifest.sources.values();
    let mut files: Vec<StoredFile> = known.map(|stored| file(stored.number, stored.key)).collect();
    files.sort_by_key(|file| file.source);
    let mut names = Names::default();
    let (rows, search) = whole(&lake, &files, &mut names).unwrap();
    let few = FewRows::open(&lake, &files, &PARTED, search).unwrap();
    assert!(lake.manifest.segments.len() >= 4, "each run has rows of its own");
    assert_eq!(few.rounds(u64::MAX).len(), 1);

    let rounds = few.rounds(1);
    let round_of = |number: u32| {
        let holds = |round: &Vec<Vec<usize>>| round.iter().flatten().any(|&file| files[file].source == number);
        rounds.iter().position(holds)
    };
    assert_eq!(rounds.len(), 2);
    assert_eq!(round_of(3), round_of(4), "their rows stand in the same groups");

    let all = lake.load(&["calls", "messages", "marks"], &mut names, &|_| true).unwrap();
    let loaded = rounds.iter().flat_map(|round| few.load(round, &files, &mut names).unwrap());
    let mut loaded: Vec<(u32, FileRows)> = loaded.map(|(file, rows)| (files[file].source, rows)).collect();
    loaded.sort_by_key(|(source, _)| *source);
    assert_eq!(loaded, all);
    assert_eq!(few.rows()[0], all.iter().map(|(_, rows)| rows.calls.len()).sum::<usize>());
    assert!(rows.iter().all(|rows| !rows.sessions.is_empty() && rows.calls.is_empty()));
}

#[test]
fn the_first_rows_of_a_lake_go_to_disk_as_logs_are_read_and_are_read_from_there() {
    let names = ["one", "two", "three"];
    let logs: Vec<(String, String)> = names.map(|name| (format!("-p/{name}"), session(name, 20))).into();
    let home = Home::new();
    for (name, text) in &logs {
        home.write(&format!(".claude/projects/{name}.jsonl"), text);
    }
    let opened = || input(home.logs().to_str().unwrap(), home.lake().to_str());
    let told = |input: &mut Input| {
        let (overview, totals, names) = input.overview_seeing(&TotalSums::add).unwrap();
        (overview, totals.finish(&names))
    };
    let mut first = opened();
    let said = told(&mut first);
    assert_eq!((said.1.files, said.1.tool_uses_distinct, said.0.sessions), (3, 60, 3));
    let calls = |source: &RowSource, calls: &[CallRow], names: &Names| {
        let tool = |row: &CallRow| names.text(row.asked.unwrap().tool).to_owned();
        let row = |row: &CallRow| (row.call, tool(row), row.answered.map(|answered| (answered.body, answered.ts)));
        Some((source.key, calls.iter().map(row).collect::<Vec<_>>()))
    };
    let rows = first.of_calls(&calls);

    let lake = Lake::open(&home.lake()).unwrap();
    let file = |number: u32, key| StoredFile { source: number, key, stands_alone: false };
    let files: Vec<StoredFile> = lake.manifest.sources.values().map(|stored| file(stored.number, stored.key)).collect();
    let few = FewRows::open(&lake, &files, &PARTED, whole(&lake, &files, &mut Names::default()).unwrap().1).unwrap();
    assert_eq!(few.rounds(1).len(), 3, "no group waited for the rows of another log");
    assert_eq!(lake.manifest.segments[0].rows, rows_of(&lake));

    // What is held until all is read says the same.
    let mut without = input(home.logs().to_str().unwrap(), None);
    assert_eq!((told(&mut without), without.of_calls(&calls)), (said, rows));
}

fn rows_of(lake: &Lake) -> u64 {
    let all = lake.load(&TABLES, &mut Names::default(), &|_| true).unwrap();
    let rows = |FileRows { chains, calls, messages, marks, sessions }: &FileRows| {
        chains.len() + calls.len() + messages.len() + marks.len() + sessions.len()
    };
    all.iter().map(|(_, file)| rows(file) as u64).sum()
}

/// The same with symbols of other names.
fn renamed(mut history: History, from: &Names, to: &Names) -> History {
    let new = |sym: &mut Sym| *sym = to.find(from.text(*sym)).unwrap();
    history.sessions.iter_mut().for_each(|row| new(&mut row.version));
    for call in Arc::make_mut(&mut history.calls) {
        new(&mut call.tool);
        new(&mut call.endpoint);
    }
    history.messages.iter_mut().for_each(|row| new(&mut row.model));
    history
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn answers_are_the_same_however_many_rows_wait_before_they_are_written(folder in any_folder()) {
        let logs = Home::new();
        for (name, text) in texts(&folder) {
            logs.write(&format!(".claude/projects/-p/{name}.jsonl"), text);
        }
        let calls = |source: &RowSource, calls: &[CallRow], names: &Names| {
            let row = |row: &CallRow| (row.call, row.asked.map(|asked| names.text(asked.tool).to_owned()));
            Some((source.key, calls.iter().map(row).collect::<Vec<_>>()))
        };
        // From each log by itself to none before all are read.
        let answers = [1, 8, 64, 4_096].map(|rows| {
            let home = Home::new();
            ROWS_WAITING.lock().unwrap().insert(home.lake(), rows);
            let mut opened = input(logs.logs().to_str().unwrap(), home.lake().to_str());
            let (overview, sums, names) = opened.overview_seeing(&TotalSums::add).unwrap();
            let stored = rows_of(&Lake::open(&home.lake()).unwrap());
            ROWS_WAITING.lock().unwrap().remove(&home.lake());
            ((overview, sums.finish(&names), opened.of_calls(&calls), stored), opened.named_history())
        });
        let (first, (history, names)) = &answers[0];
        for (answer, (other, own)) in &answers {
            prop_assert_eq!(answer, first);
            prop_assert_eq!(&renamed(other.clone(), own, names), history);
        }
    }

    #[test]
    fn a_history_is_the_same_however_few_rows_are_read_at_once(
        folders in prop::collection::vec(any_folder(), 1..4),
        grows in any::<prop::sample::Index>(),
    ) {
        let in_folder = |(number, folder): (u32, &Folder)| {
            let placed = texts(folder).into_iter().map(move |(name, text)| (format!("-{number}/{name}"), text));
            placed.collect::<Vec<(String, String)>>()
        };
        let mut runs: Vec<Vec<(String, String)>> = (0..).zip(&folders).map(in_folder).collect();
        let all = runs.concat();
        // One log comes in two pieces.
        if let Some((name, text)) = all.get(grows.index(all.len().max(1))) {
            let half = text.split_inclusive('\n').take(text.lines().count() / 2).collect();
            runs.insert(0, vec![(name.clone(), half)]);
        }
        let home = home_of(&runs);
        let (logs, lake) = (home.logs(), home.lake());
        let opened = || input(logs.to_str().unwrap(), lake.to_str());
        let (mut few, mut one) = (opened(), opened());
        few.rows_at_once = 1;
        one.corpus();
        let count: RowCount = |file, _| [file.rows.calls.len() as u64, file.rows.messages.len() as u64, 1];
        for input in [&mut few, &mut one] {
            input.find_values();
            input.count(count);
        }
        let ((of_few, few_names), (of_all, names)) = (few.named_history(), one.named_history());
        let unasked: RowCount = |_, _| panic!("it was counted");
        prop_assert_eq!(few.counted(unasked), one.counted(unasked));
        let (few_values, values) = (few.values(&of_few), one.values(&of_all));
        for call in 0..of_all.calls.len() {
            prop_assert_eq!(few_values.input(call).map(|given| given.value), values.input(call).map(|given| given.value));
        }
        prop_assert_eq!(renamed(of_few, &few_names, &names), of_all.clone());
        let calls = |source: &RowSource, calls: &[CallRow], _: &Names| Some((source.key, calls.len()));
        prop_assert_eq!(few.of_calls(&calls), one.of_calls(&calls));

        let (mut few, mut one) = (opened(), opened());
        few.rows_at_once = 1;
        let all = totals(one.corpus());
        for input in [&mut few, &mut one] {
            let (_, sums, names) = input.overview_seeing(&TotalSums::add).unwrap();
            prop_assert_eq!(&sums.finish(&names), &all);
        }

        let mut summed = opened();
        summed.sum_messages();
        let (sums, summed_names) = summed.named_history();
        prop_assert!(sums.messages.is_empty() && sums.details.is_empty());
        let models = |history: &History, names: &Names| {
            let models = history.summed_messages().models.into_iter();
            models.map(|((model, session), sums)| ((names.text(model).to_owned(), session), sums)).collect::<BTreeMap<_, _>>()
        };
        prop_assert_eq!(models(&sums, &summed_names), models(&of_all, &names));
        prop_assert_eq!(Overview::of(&sums), Overview::of(&of_all));
    }
}
