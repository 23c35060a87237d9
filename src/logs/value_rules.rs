//! What counts as a value: paths, addresses and ids by their form alone, and the one spelling of each. Numbers and words
//! stand in `rules/projections.toml`.

use memchr::{memchr, memmem, memrchr};
use serde::Deserialize;

use crate::base::names::is_listed;
use crate::logs::path::has_drive;
use crate::logs::values::List;

/// Longest word that a list of words can hold, in bytes.
const WORD_BYTES_MAX: usize = 16;

/// `rules/projections.toml`.
#[derive(Deserialize, Debug, Clone)]
pub struct ValueRules {
    pub scan_bytes: usize,
    pub paths_max: u16,
    pub urls_max: u16,
    pub ids_max: u16,
    pub leaves_max: u16,
    pub json_paths_max: usize,
    pub json_values_max: usize,
    pub json_depth_max: usize,
    pub arguments_max: usize,
    pub argument_depth_max: usize,
    text_bytes_min: usize,
    text_bytes_max: usize,
    digits_min: usize,
    key_bytes_max: usize,
    id_bytes_min: usize,
    id_bytes_max: usize,
    id_digits_max: usize,
    path_bytes_min: usize,
    path_bytes_max: usize,
    path_arguments: Vec<String>,
    data_tools: Vec<String>,
    listing_tools: Vec<String>,
    /// What it takes of one answer.
    pub taken_max: usize,
    extensions: WordSet,
    file_names: WordSet,
}

impl ValueRules {
    /// The rules compiled into this program.
    #[cfg(any(test, fuzzing))]
    pub fn shipped() -> Self {
        crate::base::data::Data::default().parsed("projections.toml").expect("a test reads it")
    }

    /// Whether a list is kept of the answers of a tool.
    pub fn keeps(&self, tool: &str, list: &List) -> bool {
        !(list.is_json() && is_listed(tool, &self.data_tools) || list.is_taken() && !self.is_listing(tool))
    }

    /// Whether the published planner takes the answers of a tool apart by lines.
    pub fn is_listing(&self, tool: &str) -> bool {
        self.listing_tools.iter().any(|name| name == tool)
    }

    /// Whether a word is the name of a file that is known as a whole.
    pub fn is_known_name(&self, word: &[u8]) -> bool {
        self.file_names.has(word)
    }

    /// Whether the last component of a path has a known ending or is known as a whole.
    pub fn is_file_name(&self, name: &[u8]) -> bool {
        let ending = &name[name.len().saturating_sub(WORD_BYTES_MAX)..];
        let known = memrchr(b'.', ending).is_some_and(|dot| self.extensions.has_lower(&ending[dot + 1..]));
        known || self.file_names.has(name)
    }

    /// Whether a word is a path.
    pub fn is_path(&self, word: &[u8]) -> bool {
        let is_long = (self.path_bytes_min..=self.path_bytes_max).contains(&word.len());
        if !is_long || matches!(word[0], b'-' | b'@' | b'#' | b'%') {
            return false;
        }
        let Some(slash) = memrchr(b'/', word) else { return word[0] != b'.' && self.is_file_name(word) };
        if has_double_slash(word) {
            return false;
        }
        let led = [&b"./"[..], b"../", b"~/"].iter().any(|start| word.starts_with(start));
        led || (word[0] == b'/' && slash > 0) || self.is_file_name(&word[slash + 1..])
    }

    /// Whether a text is too long for a path.
    pub fn is_over_long(&self, text: &[u8]) -> bool {
        text.len() > self.path_bytes_max
    }

    /// Whether a line without blanks names a file or directory.
    pub fn is_path_line(&self, line: &[u8]) -> bool {
        // A line that ends with a dash is an empty one around a match.
        let is_odd = matches!(line, [b'-' | b'#' | b'@' | b'%', ..] | [.., b'-']);
        if line.len() < 2 || line.len() > self.path_bytes_max || is_odd {
            return false;
        }
        if has_drive(line) {
            return true;
        }
        let in_directory = || memchr(b'/', line).is_some() && !has_double_slash(line);
        memchr(b':', line).is_none() && (in_directory() || self.is_path(line))
    }

    /// Whether the start of a line, up to a colon, is the file that the line is from; `numbered` says that a line number
    /// follows.
    pub fn is_path_head(&self, head: &[u8], numbered: bool) -> bool {
        let name = memrchr(b'/', head).map_or(head, |slash| &head[slash + 1..]);
        let in_directory = || name.len() < head.len() && !has_double_slash(head);
        head.len() <= self.path_bytes_max
            && ((self.is_file_name(name) && self.is_path(head)) || (numbered && in_directory()))
    }

    /// The id in a word of running text.
    pub fn id_in<'t>(&self, word: &'t [u8]) -> Option<&'t [u8]> {
        let edge = |byte: &u8| !b".:#%@~+-_/".contains(byte);
        let start = word.iter().position(edge)?;
        let word = &word[start..=word.iter().rposition(edge)?];
        if !(self.id_bytes_min..=self.id_bytes_max).contains(&word.len()) || !word[0].is_ascii_alphanumeric() {
            return None;
        }
        let (mut digits, mut letters) = (0, 0);
        for byte in word {
            match byte {
                b'0'..=b'9' => digits += 1,
                b'a'..=b'z' | b'A'..=b'Z' => letters += 1,
                b'-' | b'_' => {}
                _ => return None,
            }
        }
        let is_number = digits == word.len() && digits <= self.id_digits_max;
        (is_number || digits > 0 && letters > 0).then_some(word)
    }

    /// Whether a string of JSON is a value; escapes resolved.
    pub fn is_value(&self, text: &[u8]) -> bool {
        let is_short = (self.text_bytes_min..=self.text_bytes_max).contains(&text.len());
        let is_number = || text.len() >= self.digits_min && text.iter().all(u8::is_ascii_digit);
        (is_short || text.len() < self.text_bytes_min && is_number())
            && !text.iter().any(|byte| matches!(byte, b'\n' | b'\t' | b'\r'))
    }

    /// Whether a string of JSON may be a value before its escapes are resolved (six bytes can stand for one).
    pub fn may_be_value(&self, raw: &[u8]) -> bool {
        raw.len() <= 6 * self.text_bytes_max
    }

    /// Whether a number of JSON is a value.
    pub fn is_number_value(&self, literal: &[u8]) -> bool {
        let digits = literal.strip_prefix(b"-").unwrap_or(literal);
        digits.len() >= self.digits_min && digits.iter().all(u8::is_ascii_digit)
    }

    /// Whether an argument holds a path whatever it looks like.
    pub fn is_path_argument(&self, key: &[u8]) -> bool {
        self.path_arguments.iter().any(|name| name.as_bytes() == key)
    }

    /// A key of JSON as it may be kept: identifiers with at most one digit; all others are data and stand as `*`.
    pub fn key<'k>(&self, key: &'k [u8]) -> &'k str {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'@');
        let fits = |byte: &u8| is_letter(*byte) || *byte == b'-' || byte.is_ascii_digit();
        let digits = key.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_name = key.first().is_some_and(|first| is_letter(*first)) && key.iter().all(fits) && digits <= 1;
        let name = if is_name && key.len() <= self.key_bytes_max { std::str::from_utf8(key).ok() } else { None };
        name.unwrap_or("*")
    }
}

fn has_double_slash(text: &[u8]) -> bool {
    memmem::find(text, b"//").is_some()
}

/// Whether a text is an address of the web.
pub fn is_url(text: &[u8]) -> bool {
    text.starts_with(b"https://") || text.starts_with(b"http://")
}

/// Writes an address in its one spelling: `https`, the host in lower case, no fragment, no slash at the end, nothing of
/// the sentence around it.
pub fn normal_url(url: &[u8], out: &mut Vec<u8>) {
    let url = without_sentence(url);
    let url = &url[..memchr(b'#', url).unwrap_or(url.len())];
    let rest = memmem::find(url, b"://").map_or(url, |scheme| &url[scheme + 3..]);
    let host = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    out.clear();
    out.extend_from_slice(b"https://");
    out.extend(rest[..host].iter().map(u8::to_ascii_lowercase));
    let path = &rest[host..];
    out.extend_from_slice(path.strip_suffix(b"/").unwrap_or(path));
}

/// Takes off punctuation and closing brackets that were not opened.
fn without_sentence(mut url: &[u8]) -> &[u8] {
    // By closing bracket: how many more are closed than opened in what is left.
    let mut unopened = [0_i64; 256];
    for byte in url {
        match byte {
            b'(' => unopened[usize::from(b')')] -= 1,
            b'[' => unopened[usize::from(b']')] -= 1,
            b'{' => unopened[usize::from(b'}')] -= 1,
            _ => unopened[usize::from(*byte)] += 1,
        }
    }
    while let [rest @ .., last] = url {
        match last {
            b'.' | b',' | b';' | b':' | b'!' | b'?' | b'*' => {}
            b')' | b']' | b'}' if unopened[usize::from(*last)] > 0 => unopened[usize::from(*last)] -= 1,
            _ => break,
        }
        url = rest;
    }
    url
}

/// A set of short words, made for words that are mostly not in it.
#[derive(Deserialize, Debug, Clone)]
#[serde(try_from = "Vec<String>")]
pub(super) struct WordSet {
    /// Each word as a number, in order.
    packed: Vec<u128>,
    /// One bit per byte with which a word begins.
    first: u128,
}

impl TryFrom<Vec<String>> for WordSet {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Self, String> {
        let mut packed = Vec::with_capacity(words.len());
        let mut first = 0;
        for word in &words {
            match word.as_bytes() {
                [byte @ 0..128, ..] if word.len() <= WORD_BYTES_MAX => first |= 1_u128 << byte,
                _ => return Err(format!("`{word}` is no word of up to {WORD_BYTES_MAX} bytes")),
            }
            packed.push(pack(word.bytes()));
        }
        packed.sort_unstable();
        Ok(Self { packed, first })
    }
}

impl WordSet {
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let begins = word.first().is_some_and(|byte| *byte < 128 && self.first >> byte & 1 == 1);
        begins && word.len() <= WORD_BYTES_MAX && self.packed.binary_search(&pack(word.iter().copied())).is_ok()
    }

    /// The same for a word in any case.
    fn has_lower(&self, word: &[u8]) -> bool {
        let lower = pack(word.iter().map(u8::to_ascii_lowercase));
        word.len() <= WORD_BYTES_MAX && self.packed.binary_search(&lower).is_ok()
    }
}

fn pack(word: impl Iterator<Item = u8>) -> u128 {
    word.fold(0, |packed, byte| packed << 8 | u128::from(byte))
}
