//! The words of what people and the model wrote, as hashes without order.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::words::{Piece, terms, words};
use crate::logs::timeline::requests::{Utterance, Word};

/// The words of the start of a text, at most `chars_max` code points; none if there are none.
pub fn utterance(block: u32, text: &str, chars_max: usize, out: &mut Vec<Word>) -> Option<Utterance> {
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(end, _)| end);
    let text = &text[..end];
    let terms = count(terms(text), out);
    let words = count(words(text), out);
    (!terms.is_empty() || !words.is_empty()).then_some(Utterance { block, terms, words })
}

/// Adds each word once, by hash.
fn count<'t>(pieces: impl Iterator<Item = Piece<'t>>, out: &mut Vec<Word>) -> Range<u32> {
    let mut counted: BTreeMap<u64, (u16, u8)> = BTreeMap::new();
    for piece in pieces {
        let position = u8::try_from(piece.start_chars / Word::STEP_CHARS).unwrap_or(u8::MAX);
        let (count, _) = counted.entry(piece.hash()).or_insert((0, position));
        *count = count.saturating_add(1);
    }
    let start = out.len() as u32;
    out.extend(counted.into_iter().map(|(hash, (count, position))| Word { hash, count, position }));
    start..out.len() as u32
}
