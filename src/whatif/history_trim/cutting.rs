//! How much of a text stays when it exceeds its cap.

use serde::Deserialize;

/// Numbers of the cut (`[cutting]` of the sheet).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutNumbers {
    chars_min: u32,
    shrink_to_pct: u32,
    /// Tokens of the mark behind a cut, which come on top of the cap.
    pub suffix_tokens: u32,
}

impl CutNumbers {
    /// Whether shrinking ends.
    pub(crate) fn ends(&self) -> bool {
        self.shrink_to_pct < 100
    }
}

/// Code points of a text that are kept; none if it fits its cap and stays whole. `tokens_of` counts the first so many code
/// points of the text.
///
/// The first try keeps the cap's share of the characters, but not less than a minimum; then it shrinks until it fits, if
/// need be to nothing: a text of characters with several tokens each cannot always fit.
pub fn kept_chars(numbers: &CutNumbers, chars: u32, cap: u32, tokens_of: impl Fn(u32) -> u32) -> Option<u32> {
    let tokens = tokens_of(chars);
    if tokens <= cap || chars == 0 {
        return None;
    }
    let share = u64::from(chars) * u64::from(cap) / u64::from(tokens);
    let mut kept = u32::try_from(share).unwrap_or(chars).max(numbers.chars_min).min(chars);
    while kept > 0 && tokens_of(kept) > cap {
        let shrunk = u64::from(kept) * u64::from(numbers.shrink_to_pct) / 100;
        kept = u32::try_from(shrunk).unwrap_or(0).min(kept - 1);
    }
    Some(kept)
}
