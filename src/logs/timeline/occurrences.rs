//! What stood where before, by hash, in bounded memory: what nobody spoke of for long is forgotten.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::base::id::IdHasher;
use crate::logs::timeline::requests::Occurrence;

type Table<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// What is known of one text.
#[derive(Default, Clone)]
pub struct Entry {
    /// The first place: most texts have no other, and need no memory of their own.
    first: Option<Occurrence>,
    /// The latest ones, in order.
    latest: Vec<Occurrence>,
    /// Whether places between them were left out.
    pub cut: bool,
    /// Whether the model wrote it.
    pub written: bool,
}

impl Entry {
    /// Where it stood: the first place and the latest ones, in order.
    pub fn places(&self) -> impl Iterator<Item = Occurrence> {
        self.first.into_iter().chain(self.latest.iter().copied())
    }

    /// Adds a place; of several in one block the first stands. At most `places_max` are kept.
    pub fn add(&mut self, place: Occurrence, places_max: usize) {
        let Some(first) = self.first else {
            self.first = Some(place);
            return;
        };
        if self.latest.last().unwrap_or(&first).block == place.block {
            return;
        }
        if self.latest.len() + 1 >= places_max.max(2) {
            self.latest.remove(0);
            self.cut = true;
        }
        self.latest.push(place);
    }
}

/// Two generations of entries: when the younger one is full, the older one is dropped.
#[derive(Default)]
pub struct Occurrences<V = Entry> {
    younger: Table<V>,
    older: Table<V>,
    entries_max: usize,
    /// Entries that were dropped.
    pub forgotten: u64,
}

impl<V: Default> Occurrences<V> {
    /// Nothing yet; at most twice `entries_max` texts are held.
    pub fn new(entries_max: usize) -> Self {
        Self { entries_max, ..Self::default() }
    }

    /// What is known of a text, made on first sight.
    pub fn entry(&mut self, hash: u64) -> &mut V {
        if self.younger.len() >= self.entries_max && !self.younger.contains_key(&hash) {
            self.forgotten += self.older.len() as u64;
            self.older = std::mem::take(&mut self.younger);
        }
        let older = &mut self.older;
        self.younger.entry(hash).or_insert_with(|| older.remove(&hash).unwrap_or_default())
    }

    /// What is known of a text.
    pub fn get(&self, hash: u64) -> Option<&V> {
        self.younger.get(&hash).or_else(|| self.older.get(&hash))
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, hash: u64) -> Option<&mut V> {
        match self.younger.get_mut(&hash) {
            Some(known) => Some(known),
            None => self.older.get_mut(&hash),
        }
    }
}
