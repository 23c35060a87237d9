//! What stands on disk tells equal from different, and nothing else.

use std::collections::BTreeSet;

use proptest::prelude::*;

use crate::frames::seal::Seal;
use crate::model::id::Id;
use crate::model::words;

proptest! {
    #[test]
    fn a_seal_is_undone_by_its_own_secret(secret: [u8; 32], id: [u8; 16], wide: u64, narrow: u32) {
        let seal = Seal::new(&secret);
        prop_assert_eq!(seal.open_id(seal.seal_id(Id(id))), Id(id));
        prop_assert_eq!(seal.open_u64(seal.seal_u64(wide)), wide);
        prop_assert_eq!(seal.open_u32(seal.seal_u32(narrow)), narrow);
    }

    #[test]
    fn secrets_make_different_numbers(one: [u8; 32], other: [u8; 32], wide in 1_u64..) {
        prop_assume!(one != other);
        prop_assert_ne!(Seal::new(&one).seal_u64(wide), Seal::new(&other).seal_u64(wide));
        prop_assert_ne!(Seal::new(&one).check(), Seal::new(&other).check());
    }
}

#[test]
fn none_stays_none_and_nothing_else_becomes_none() {
    let seal = Seal::new(&[7; 32]);
    assert_eq!((seal.seal_id(Id::NONE), seal.seal_u64(0), seal.seal_u32(0)), (Id::NONE, 0, 0));
    let sealed: BTreeSet<u32> = (0..100_000).map(|number| seal.seal_u32(number)).collect();
    assert_eq!(sealed.len(), 100_000);
    assert!((1..100_000).all(|number| seal.seal_u32(number) != 0));
}

#[test]
fn a_bit_more_changes_half_of_the_bits() {
    let seal = Seal::new(&[7; 32]);
    let changed: u32 = (0..6400_u64).map(|n| (seal.seal_u64(n) ^ seal.seal_u64(n ^ 1 << (n % 64))).count_ones()).sum();
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
    let on_disk: Vec<u64> = words.iter().map(|word| seal.seal_u64(words::hash(word))).collect();
    assert_eq!(on_disk.iter().filter(|hash| guessed.contains(hash)).count(), 0);
    assert_eq!(on_disk.iter().filter(|hash| guessed.contains(&seal.open_u64(**hash))).count(), words.len());
}
