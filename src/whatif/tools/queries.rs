//! What was asked for when a turn began: the words of the person and of the messages before, as hashes with counts.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::logs::timeline::requests::{BlockKind, Timeline, Utterance};
use crate::logs::timeline::words::Word;
use crate::whatif::tools::inventory::StopWords;

/// Words with their counts, by hash.
pub type Bag = BTreeMap<u64, u32>;

/// Which of the two kinds of words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordKind {
    /// Of the relevance filter.
    Terms,
    /// Of the keyword scorer.
    Words,
}

/// Turns of a chain: from one message of a person to the next, tool chains included.
pub fn turns(timeline: &Timeline, chain: u32) -> Vec<Range<u32>> {
    let requests = timeline.chain(chain).requests.clone();
    let mut turns: Vec<Range<u32>> = Vec::new();
    for request in requests {
        let number = timeline.request(request).turn;
        match turns.last_mut() {
            Some(turn) if timeline.request(turn.start).turn == number => turn.end = request + 1,
            _ => turns.push(request..request + 1),
        }
    }
    turns
}

/// The part of a turn that counts: from its first request that does; none if none does.
pub fn counted_part(timeline: &Timeline, turn: &Range<u32>) -> Option<Range<u32>> {
    let start = turn.clone().find(|&request| timeline.request(request).counts())?;
    Some(start..turn.end)
}

/// Reads queries off a timeline.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    timeline: &'a Timeline,
    stop: &'a StopWords,
    kind: WordKind,
}

impl<'a> Queries<'a> {
    /// Words of one kind, without those of the stop list.
    pub fn new(timeline: &'a Timeline, stop: &'a StopWords, kind: WordKind) -> Self {
        Self { timeline, stop, kind }
    }

    /// Words that people wrote right before a request, of those that begin within `chars` code points of each text (whole
    /// steps of [`Word::STEP_CHARS`]). A word counts as often as it stands in the text, behind them as well.
    pub fn asked(&self, request: u32, chars: Option<u32>) -> Bag {
        let inputs = self.timeline.request(request).inputs.clone();
        let mut bag = Bag::new();
        for utterance in self.between(inputs) {
            if self.timeline.blocks[utterance.block as usize].kind == BlockKind::Human {
                self.add(&mut bag, utterance, chars);
            }
        }
        bag
    }

    /// Words of the last `count` texts of a chain before what came in with a request.
    pub fn before(&self, request: u32, count: usize) -> Bag {
        let request = self.timeline.request(request);
        let first = self.timeline.chain(request.chain).requests.start;
        let first = self.timeline.request(first).inputs.start;
        let earlier = self.between(first..request.inputs.start);
        let mut bag = Bag::new();
        for utterance in &earlier[earlier.len().saturating_sub(count)..] {
            self.add(&mut bag, utterance, None);
        }
        bag
    }

    fn between(&self, blocks: Range<u32>) -> &'a [Utterance] {
        let all = &self.timeline.utterances;
        let from = all.partition_point(|utterance| utterance.block < blocks.start);
        let to = all.partition_point(|utterance| utterance.block < blocks.end);
        &all[from..to.max(from)]
    }

    fn add(&self, bag: &mut Bag, utterance: &Utterance, chars: Option<u32>) {
        let range = match self.kind {
            WordKind::Terms => utterance.terms.clone(),
            WordKind::Words => utterance.words.clone(),
        };
        let start = |word: &Word| usize::from(word.position) * Word::STEP_CHARS;
        let near = |word: &Word| chars.is_none_or(|chars| start(word) < chars as usize);
        for word in self.timeline.words.of(range).filter(near).filter(|word| !self.stop.contains(word.hash)) {
            *bag.entry(word.hash).or_default() += u32::from(word.count);
        }
    }
}
