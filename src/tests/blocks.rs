//! Bytes that are looked at together say the same as bytes that are looked at one by one.

use std::array::from_fn;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::base::block::{line_ends, portable, within};
use crate::logs::listed::WordBounds;

#[test]
fn every_byte_is_told_from_every_range() {
    for first in 0..=u8::MAX {
        for length in [0, 1, 15, 127, 128, 255] {
            let Some(last) = first.checked_add(length) else { continue };
            for start in (0..=u8::MAX).step_by(16) {
                let block: [u8; 16] = from_fn(|place| start + place as u8);
                let expected = (0..16)
                    .filter(|place| (first..=last).contains(&block[*place]))
                    .fold(0, |mask, place| mask | 1 << place);
                assert_eq!(within(&block, [(first, last)]), expected, "{first}..={last} from {start}");
                assert_eq!(portable(&block, [(first, last)]), expected, "{first}..={last} from {start}");
            }
        }
    }
}

/// Words of a text, byte by byte, and whether each has a mark.
fn words_one_by_one(text: &[u8]) -> Vec<(usize, usize, bool)> {
    let is_separator = |byte: &u8| *byte <= b' ' || b"\"'`<>|(){}[],;=*?!$&^\\".contains(byte);
    let mut words = Vec::new();
    let mut start = 0;
    for word in text.split(is_separator) {
        let end = start + word.len();
        if start < end {
            words.push((start, end, word.iter().any(|byte| matches!(byte, b'.' | b'/' | b':' | b'0'..=b'9'))));
        }
        start = end + 1;
    }
    words
}

fn words(text: &[u8]) -> Vec<(usize, usize, bool)> {
    let mut bounds = WordBounds::of(text);
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        let start = bounds.start(at, text.len());
        if start == text.len() {
            return words;
        }
        let (end, is_marked) = bounds.end(start);
        words.push((start, end, is_marked));
        at = end;
    }
}

proptest! {
    #[test]
    fn lines_end_at_line_feeds_and_at_the_end(text in vec(select(b"\n\n\n\r\0\x8a ab".as_slice()), 0..200)) {
        let ends = memchr::memchr_iter(b'\n', &text).chain([text.len()]);
        prop_assert!(line_ends(&text).eq(ends));
    }

    #[test]
    fn within_any_ranges(block in any::<[u8; 16]>(), ends in any::<[(u8, u8); 5]>()) {
        let ranges = ends.map(|(one, other)| (one.min(other), one.max(other)));
        prop_assert_eq!(within(&block, ranges), portable(&block, ranges));
    }

    #[test]
    fn words_of_any_text(text in vec(prop_oneof![3 => any::<u8>(), 5 => b'a'..=b'e', 1 => select(&b"./:7 \n,\\"[..])], 0..300)) {
        prop_assert_eq!(words(&text), words_one_by_one(&text));
    }
}

#[test]
fn every_byte_separates_or_does_not() {
    for byte in 0..=u8::MAX {
        for before in [0, 3, 62, 63, 64, 127] {
            let text = [&b"x".repeat(before)[..], &[byte], b"yz"].concat();
            assert_eq!(words(&text), words_one_by_one(&text), "{byte} behind {before}");
        }
    }
}
