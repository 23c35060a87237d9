//! How many tokens a piece is: byte-pair merging, always the possible merge of lowest rank, the leftmost of several.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;

use crate::facts::tokens::merges::{Merges, Token};

/// Up to so many bytes, a bit each, the next merge is found by looking at all of them.
const SHORT_BYTES_MAX: usize = 64;
/// Enough for the tokens in a window to settle, little enough to stay in the processor's caches.
const WINDOW_BYTES: usize = 1024;

/// How many tokens a piece is; it is not empty.
pub fn count(merges: &Merges, piece: &[u8]) -> u64 {
    if piece.len() <= SHORT_BYTES_MAX { count_short(merges, piece) } else { count_long(merges, piece, WINDOW_BYTES) }
}

/// Counts up to 64 bytes.
fn count_short(merges: &Merges, piece: &[u8]) -> u64 {
    /// A possible merge: the token, then the place in the lower six bits, so that the least one is the next.
    const NONE: u32 = u32::MAX;
    let merge = |left, right, at: usize| merges.join(left, right).map_or(NONE, |token| token << 6 | at as u32);

    let mut tokens = [0; SHORT_BYTES_MAX];
    for (token, byte) in tokens.iter_mut().zip(piece) {
        *token = merges.byte(*byte);
    }
    let mut possible = [NONE; SHORT_BYTES_MAX];
    for at in 1..piece.len() {
        possible[at - 1] = merge(tokens[at - 1], tokens[at], at - 1);
    }
    let possible = &mut possible[..piece.len()];
    // A bit for every byte at which a token starts.
    let mut starts = u64::MAX >> (u64::BITS as usize - piece.len());
    loop {
        let next = possible.iter().copied().min().unwrap_or(NONE);
        if next == NONE {
            return u64::from(starts.count_ones());
        }
        let (token, at) = (next >> 6, next as usize % SHORT_BYTES_MAX);
        let after = |starts: u64| (starts & (!1 << at)).trailing_zeros() as usize;
        let right = after(starts);
        starts ^= 1 << right;
        possible[right] = NONE;
        tokens[at] = token;
        let right = after(starts);
        possible[at] = if right < piece.len() { merge(token, tokens[right], at) } else { NONE };
        let before = starts & !(u64::MAX << at);
        if before != 0 {
            let left = before.ilog2() as usize;
            possible[left] = merge(tokens[left], token, left);
        }
    }
}

/// Counts any piece, window by window, so that memory does not grow with it.
///
/// The tokens of a window are those of the piece, except perhaps near its end. Whether enough was left out there shows
/// at the next window: tokens are right if and only if any two neighbours, merged by themselves, stay what they are. If
/// they do not, everything is done again with larger windows.
///
/// A window must have room for two of the longest tokens (128 bytes).
pub fn count_long(merges: &Merges, piece: &[u8], mut window_bytes: usize) -> u64 {
    let mut count = 0;
    let mut start = 0;
    let mut last_start = 0;
    loop {
        let window = &piece[start..piece.len().min(start + window_bytes)];
        let ends = token_ends(merges, window);
        let (left, right) = (start - last_start, ends[0]);
        if left > 0 && token_ends(merges, &piece[last_start..start + right]) != [left, left + right] {
            window_bytes *= 2;
            (count, start, last_start) = (0, 0, 0);
            continue;
        }
        if start + window.len() == piece.len() {
            return count + ends.len() as u64;
        }
        let settled = ends.partition_point(|end| *end <= window_bytes - window_bytes / 8);
        count += settled as u64;
        last_start = start + if settled > 1 { ends[settled - 2] } else { 0 };
        start += ends[settled - 1];
    }
}

/// Where the tokens of a text end.
fn token_ends(merges: &Merges, text: &[u8]) -> Vec<usize> {
    /// No token, no merge.
    const NONE: Token = Token::MAX;
    let join = |left, right| merges.join(left, right).unwrap_or(NONE);
    // A possible merge: the token, then the place, so that the least one is the next.
    let merge = |token: Token, at: u32| (token != NONE).then(|| Reverse(u64::from(token) << 32 | u64::from(at)));

    let length = text.len() as u32;
    let mut tokens: Vec<Token> = text.iter().map(|byte| merges.byte(*byte)).collect();
    // By start of a token: what it joins to with the next one, where it ends, where the one before it starts.
    let mut joined: Vec<Token> = tokens.windows(2).map(|pair| join(pair[0], pair[1])).collect();
    joined.push(NONE);
    let mut ends: Vec<u32> = (1..=length).collect();
    let mut before: Vec<u32> = (0..length).map(|at| at.saturating_sub(1)).collect();
    let mut queue: BinaryHeap<Reverse<u64>> =
        joined.iter().zip(0..).filter_map(|(token, at)| merge(*token, at)).collect();
    while let Some(Reverse(next)) = queue.pop() {
        let (token, start) = ((next >> 32) as Token, next as u32);
        let at = start as usize;
        if joined[at] != token {
            // One of the two has been joined with another since.
            continue;
        }
        let right = ends[at] as usize;
        let end = ends[right];
        tokens[at] = token;
        ends[at] = end;
        joined[right] = NONE;
        joined[at] = NONE;
        if end < length {
            before[end as usize] = start;
            joined[at] = join(token, tokens[end as usize]);
            queue.extend(merge(joined[at], start));
        }
        if at > 0 {
            let left = before[at];
            joined[left as usize] = join(tokens[left as usize], token);
            queue.extend(merge(joined[left as usize], left));
        }
    }
    iter::successors(ends.first().copied(), |end| ends.get(*end as usize).copied()).map(|end| end as usize).collect()
}
