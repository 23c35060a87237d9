//! What stands on disk tells equal from different, and nothing else.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::harness::{Home, session};
use crate::base::id::Id;
use crate::base::seal::{Seal, Way, secret_file};
use crate::base::words;
use crate::frames::lake::Lake;

proptest! {
    #[test]
    fn a_seal_is_undone_by_its_own_secret(secret: [u8; 32], id: [u8; 16], wide: u64, narrow: u32) {
        let seal = Seal::new(&secret);
        prop_assert_eq!(seal.id(Way::FromDisk, seal.id(Way::ToDisk, Id(id))), Id(id));
        prop_assert_eq!(seal.hash_64(Way::FromDisk, seal.hash_64(Way::ToDisk, wide)), wide);
        prop_assert_eq!(seal.hash_32(Way::FromDisk, seal.hash_32(Way::ToDisk, narrow)), narrow);
    }

    #[test]
    fn secrets_make_different_numbers(one: [u8; 32], other: [u8; 32], wide in 1_u64..) {
        prop_assume!(one != other);
        prop_assert_ne!(Seal::new(&one).hash_64(Way::ToDisk, wide), Seal::new(&other).hash_64(Way::ToDisk, wide));
        prop_assert_ne!(Seal::new(&one).check(), Seal::new(&other).check());
    }
}

#[test]
fn none_stays_none_and_nothing_else_becomes_none() {
    let seal = Seal::new(&[7; 32]);
    assert_eq!(
        (seal.id(Way::ToDisk, Id::NONE), seal.hash_64(Way::ToDisk, 0), seal.hash_32(Way::ToDisk, 0)),
        (Id::NONE, 0, 0)
    );
    let sealed: BTreeSet<u32> = (0..100_000).map(|number| seal.hash_32(Way::ToDisk, number)).collect();
    assert_eq!(sealed.len(), 100_000);
    assert!((1..100_000).all(|number| seal.hash_32(Way::ToDisk, number) != 0));
}

#[test]
fn a_bit_more_changes_half_of_the_bits() {
    let seal = Seal::new(&[7; 32]);
    let changed: u32 = (0..6400_u64)
        .map(|n| (seal.hash_64(Way::ToDisk, n) ^ seal.hash_64(Way::ToDisk, n ^ 1 << (n % 64))).count_ones())
        .sum();
    assert!((31.0..33.0).contains(&(f64::from(changed) / 6400.0)), "{changed}");
}

/// Whoever has the lake and not the secret tries every string of up to three letters and a list of words: hashed as the
/// program hashes them, and computed back as the hash of short texts can be.
#[test]
fn without_the_secret_no_word_is_found() {
    let letters: Vec<String> = ('a'..='z').chain('0'..='9').map(String::from).collect();
    let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
    let pairs: Vec<String> = pairs.collect();
    let triples = pairs.iter().flat_map(|pair| letters.iter().map(move |c| format!("{pair}{c}")));
    let mut words: Vec<String> = pairs.iter().cloned().chain(triples).collect();
    words.extend(["password", "hunter2", "secret", "token", "admin", "gitlab", "login"].map(String::from));
    let guessed: BTreeSet<u64> = words.iter().map(|word| words::hash(word)).collect();
    let seal = Seal::new(&[9; 32]);
    let on_disk: Vec<u64> = words.iter().map(|word| seal.hash_64(Way::ToDisk, words::hash(word))).collect();
    assert_eq!(on_disk.iter().filter(|hash| guessed.contains(hash)).count(), 0);
    assert_eq!(
        on_disk.iter().filter(|hash| guessed.contains(&seal.hash_64(Way::FromDisk, **hash))).count(),
        words.len()
    );
}

const LOG: &str = ".claude/projects/-home-u-p/one.jsonl";
const QUESTIONS: [&[&str]; 3] = [&["mine", "tools"], &["mine", "edges"], &["replay", "--policy", "prompt-cache"]];

/// What a command answers, without what it says about its input.
fn answer(home: &Home, question: &[&str]) -> (serde_json::Value, String) {
    let mut report = home.json(&[question, &["--reproducible"]].concat());
    let inputs = report.as_object_mut().unwrap().remove("inputs").unwrap_or_default();
    (report, inputs["notes"].to_string())
}

fn move_lake(from: &Home, to: &Home) {
    std::fs::create_dir_all(to.lake()).unwrap();
    for entry in std::fs::read_dir(from.lake()).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.lake().join(entry.file_name())).unwrap();
    }
}

/// The same logs under two secrets: every answer is the same, and no bytes on disk are.
#[test]
fn answers_do_not_depend_on_the_secret() {
    let homes = [Home::new(), Home::new()];
    for home in &homes {
        home.write(LOG, session("one", 12));
    }
    for question in QUESTIONS {
        let [one, other] = homes.each_ref().map(|home| answer(home, question).0);
        assert_eq!(one, other, "{question:?}");
    }
    let [one, other] = homes.each_ref().map(|home| std::fs::read(secret_file(&home.lake())).unwrap());
    assert!(one.len() == 32 && one != other);
    let ids = homes.each_ref().map(|home| Lake::open(&home.lake()).unwrap().manifest.sources.len());
    assert_eq!(ids, [1, 1]);
}

/// A lake that is carried off without its secret still counts, and knows nothing by name.
#[test]
fn without_its_secret_a_lake_still_counts() {
    let home = Home::new();
    home.write(LOG, session("one", 12));
    let known: Vec<_> = QUESTIONS.iter().map(|question| answer(&home, question).0).collect();
    let sources = |home: &Home| Lake::open(&home.lake()).unwrap().manifest.sources.clone();
    let thief = Home::new();
    std::fs::create_dir_all(thief.path(".claude/projects")).unwrap();
    move_lake(&home, &thief);
    let stolen = answer(&thief, QUESTIONS[0]).0;
    assert_eq!(stolen, known[0]);
    assert!(sources(&home).keys().all(|key| !sources(&thief).contains_key(key)));
}

/// A secret that is gone costs a reading of the logs, and that is said.
#[test]
fn a_lost_secret_is_told_and_the_logs_are_read_anew() {
    let home = Home::new();
    home.write(LOG, session("one", 12));
    let known: Vec<_> = QUESTIONS.iter().map(|question| answer(&home, question).0).collect();
    std::fs::remove_file(secret_file(&home.lake())).unwrap();
    let (again, notes) = answer(&home, QUESTIONS[0]);
    assert!(again == known[0] && notes.contains("sealed by another secret"), "{notes}");
    for (question, known) in QUESTIONS.iter().zip(&known) {
        let (again, notes) = answer(&home, question);
        assert!(again == *known && !notes.contains("sealed"), "{question:?}: {notes}");
    }
}
