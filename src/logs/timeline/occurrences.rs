//! What stood where before, by hash, in bounded memory: what nobody spoke of for long is forgotten.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use smallvec::SmallVec;

use crate::base::id::IdHasher;
use crate::logs::timeline::requests::Occurrence;

type OccurrenceTable<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// What is known of one text. There are millions of them, and most texts have one place: what others have besides stands
/// elsewhere.
#[derive(Default, Clone)]
pub struct OccurrenceEntry {
    first: Option<Occurrence>,
    /// Whether the model wrote it.
    pub written: bool,
    later: Option<Box<Later>>,
}

/// The places of a text behind the first one.
#[derive(Default, Clone)]
struct Later {
    /// The latest ones, in order; as many as are kept as a rule stand right here.
    places: SmallVec<[Occurrence; 3]>,
    /// Whether places between them and the first one were left out.
    cut: bool,
}

impl OccurrenceEntry {
    /// Where it stood: the first place and the latest ones, in order.
    pub fn places(&self) -> impl Iterator<Item = Occurrence> {
        self.first.into_iter().chain(self.later.iter().flat_map(|later| &later.places).copied())
    }

    /// Whether places between the first and the latest ones were left out.
    pub fn is_cut(&self) -> bool {
        self.later.as_ref().is_some_and(|later| later.cut)
    }

    /// Adds a place; of several in one block the first stands. At most `places_max` are kept.
    pub fn add(&mut self, place: Occurrence, places_max: usize) {
        let Some(first) = self.first else {
            self.first = Some(place);
            return;
        };
        let latest = self.later.as_ref().and_then(|later| later.places.last()).unwrap_or(&first);
        if latest.block == place.block {
            return;
        }
        let later = self.later.get_or_insert_default();
        if later.places.len() + 1 >= places_max.max(2) {
            later.places.remove(0);
            later.cut = true;
        }
        later.places.push(place);
    }
}

/// Two generations of entries: when the younger one is full, the older one is dropped.
#[derive(Default)]
pub struct Occurrences<V = OccurrenceEntry> {
    younger: OccurrenceTable<V>,
    older: OccurrenceTable<V>,
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
