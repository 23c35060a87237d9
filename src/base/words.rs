//! How a text falls into words: one rule for the reader of logs, which keeps hashes only, and for tool catalogs and
//! stop lists, whose words must hash to the same.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

/// Shortest term of the relevance filter, in bytes (policies.md 5.1).
const TERM_BYTES_MIN: usize = 3;
/// Shortest word of the keyword scorer, in code points (policies.md 6.2).
const WORD_CHARS_MIN: usize = 2;
/// Up to here a word is brought to lower case on the stack.
const SHORT_BYTES_MAX: usize = 32;

/// A word of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextWord<'a> {
    /// As it stands in the text.
    run: &'a str,
    /// Where it begins, in code points from the start of the text.
    pub start_chars: usize,
}

impl<'a> TextWord<'a> {
    /// In lower case.
    pub fn text(&self) -> Cow<'a, str> {
        lower(self.run)
    }

    /// See [`hash`].
    pub fn hash(&self) -> u64 {
        hash(self.run)
    }
}

/// Terms of the relevance filter: runs of letters, digits and `_`, of at least three bytes.
pub fn terms(text: &str) -> impl Iterator<Item = TextWord<'_>> {
    let runs =
        Runs { rest: text, chars: 0, inside: |c: char| c.is_alphanumeric() || c == '_', breaks: |_, _, _| false };
    runs.filter(|piece| is_measured(piece, |text| text.len() >= TERM_BYTES_MIN))
}

/// Words of the keyword scorer: runs of letters and digits, split where camelCase begins a new word (`toolUse` is tool,
/// use; `HTTPServer` is http, server), of at least two characters.
pub fn words(text: &str) -> impl Iterator<Item = TextWord<'_>> {
    let runs = Runs { rest: text, chars: 0, inside: char::is_alphanumeric, breaks: begins_hump };
    runs.filter(|piece| is_measured(piece, |text| text.chars().nth(WORD_CHARS_MIN - 1).is_some()))
}

/// Whether a word is long enough, in lower case: of letters beyond ASCII that is not as long as what stands in the text.
fn is_measured(piece: &TextWord<'_>, is_long_enough: impl Fn(&str) -> bool) -> bool {
    if piece.run.is_ascii() { is_long_enough(piece.run) } else { is_long_enough(&piece.text()) }
}

/// XXH3-64 of a word in lower case: how words are kept.
pub fn hash(word: &str) -> u64 {
    // Most words with capitals are short and ASCII.
    let mut short = [0; SHORT_BYTES_MAX];
    match short.get_mut(..word.len()).filter(|_| word.is_ascii()) {
        Some(copy) => {
            copy.copy_from_slice(word.as_bytes());
            copy.make_ascii_lowercase();
            xxh3_64(copy)
        }
        None => xxh3_64(lower(word).as_bytes()),
    }
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.to_lowercase())
}

/// Whether `this` begins a new word after `before`: a capital after a small letter or digit, or the last capital of
/// several, which belongs to the small letters behind it.
fn begins_hump(before: char, this: char, after: Option<char>) -> bool {
    this.is_uppercase() && (!before.is_uppercase() || after.is_some_and(char::is_lowercase))
}

/// Runs of characters.
struct Runs<'a, I, B> {
    rest: &'a str,
    /// Code points before `rest`.
    chars: usize,
    inside: I,
    /// Whether a new run begins between two characters, given the one that follows.
    breaks: B,
}

impl<'a, I: Fn(char) -> bool, B: Fn(char, char, Option<char>) -> bool> Iterator for Runs<'a, I, B> {
    type Item = TextWord<'a>;

    fn next(&mut self) -> Option<TextWord<'a>> {
        let mut chars = self.rest.char_indices().peekable();
        while chars.next_if(|&(_, outside)| !(self.inside)(outside)).is_some() {
            self.chars += 1;
        }
        let (start, mut before) = chars.next()?;
        let start_chars = self.chars;
        self.chars += 1;
        let mut end = self.rest.len();
        while let Some((at, this)) = chars.next() {
            let after = chars.peek().map(|&(_, after)| after);
            if !(self.inside)(this) || (self.breaks)(before, this, after) {
                end = at;
                break;
            }
            before = this;
            self.chars += 1;
        }
        let run = &self.rest[start..end];
        self.rest = &self.rest[end..];
        Some(TextWord { run, start_chars })
    }
}
