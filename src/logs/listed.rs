//! What a result in text lists: paths, addresses and ids, in the order in which they stand there; and where the words of a
//! text begin and end.

use std::ops::Range;

use memchr::{memchr, memmem, memrchr};

use crate::base::block::{MASK_BYTES, line_ends, masks};
use crate::logs::path::has_drive;
use crate::logs::value_draft::ValueDraft;
use crate::logs::values::{List, ValueKind};

/// Names of the lists.
pub const EXTRACTORS: [&str; 3] = ["path", "url", "id"];
const PATH: usize = 0;
const URL: usize = 1;
const ID: usize = 2;

/// Bits of a class.
const SLASH: u8 = 1;
const DOT: u8 = 2;
const DIGIT: u8 = 4;
const COLON: u8 = 8;

/// What a byte is to a word.
fn class(byte: u8) -> u8 {
    match byte {
        b'/' => SLASH,
        b'.' => DOT,
        b'0'..=b'9' => DIGIT,
        b':' => COLON,
        _ => 0,
    }
}

/// Drafts the lists of a text. A text with numbered lines is a file, not a list.
pub(super) fn scan(draft: &mut ValueDraft<'_>, text: &[u8]) {
    let rules = draft.rules;
    let caps = [rules.paths_max, rules.urls_max, rules.ids_max];
    for (name, cap) in EXTRACTORS.into_iter().zip(caps) {
        draft.list(name, cap);
    }
    let mut text = text;
    if text.len() > rules.scan_bytes {
        text = &text[..rules.scan_bytes];
        text = &text[..memrchr(b'\n', text).unwrap_or(text.len())];
        draft.flag(List::CUT);
    }
    if is_numbered(text) {
        return;
    }
    let mut head: &[u8] = b"";
    let mut bounds = WordBounds::of(text);
    let mut start = 0;
    for end in line_ends(text) {
        line(draft, &mut bounds, start..end, &mut head);
        start = end + 1;
    }
}

/// Drafts what the published planner takes for paths in an answer of Glob, and in one of Grep: it looks at lines, whatever
/// they say (Paper 3).
pub(super) fn take(draft: &mut ValueDraft<'_>, text: &[u8]) {
    let most = draft.rules.taken_max;
    let lines = || text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    draft.take(List::LINE, lines().take(most));
    let mut heads: Vec<&[u8]> = Vec::new();
    for line in lines() {
        let head = line[..memchr(b':', line).unwrap_or(line.len())].trim_ascii();
        if !head.is_empty() && !heads.contains(&head) {
            heads.push(head);
            if heads.len() == most {
                break;
            }
        }
    }
    draft.take(List::HEAD, heads.into_iter());
}

/// Whether the first line that is not blank begins with its number.
fn is_numbered(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && (text[digits..].starts_with(b"\t") || text[digits..].starts_with("→".as_bytes()))
}

/// `head` is the file that the lines before were from.
fn line<'t>(draft: &mut ValueDraft<'_>, bounds: &mut WordBounds<'t>, place: Range<usize>, head: &mut &'t [u8]) {
    let line = &bounds.text[place.clone()];
    if !head.is_empty() && line.starts_with(head) {
        match line.get(head.len()) {
            Some(b':') => return draft.add_path(PATH, head, ValueKind::Head),
            Some(b'-') => return draft.flag(List::CONTEXT),
            _ => {}
        }
    }
    let bare = line.trim_ascii();
    if bare.is_empty() {
        return;
    }
    let start = if has_drive(bare) { 3 } else { 0 };
    let stop = bare[start..].iter().position(|byte| matches!(byte, b' ' | b'\t' | b':')).map(|stop| start + stop);
    match stop.map(|stop| (stop, bare[stop])) {
        Some((stop, b':')) => {
            let digits = bare[stop + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let ends = matches!(bare.get(stop + 1 + digits), None | Some(b':' | b' ' | b'\t'));
            if stop > 0 && draft.rules.is_path_head(&bare[..stop], digits > 0 && ends) {
                *head = &bare[..stop];
                return draft.add_path(PATH, head, ValueKind::Head);
            }
        }
        None if draft.rules.is_path_line(bare) => {
            *head = b"";
            return draft.add_path(PATH, bare, ValueKind::Line);
        }
        _ => {}
    }
    let is_diff = || [&b"diff --git "[..], b"--- ", b"+++ "].iter().any(|start| line.starts_with(start));
    words(draft, bounds, place, &is_diff);
}

fn words(draft: &mut ValueDraft<'_>, bounds: &mut WordBounds<'_>, line: Range<usize>, is_diff: &dyn Fn() -> bool) {
    let text = &bounds.text[..line.end];
    let mut at = line.start;
    loop {
        let start = bounds.start(at, line.end);
        if start >= line.end {
            return;
        }
        let (mut end, mut is_marked) = bounds.end(start);
        // A path of Windows goes on behind its back-slashes.
        while text.get(end) == Some(&b'\\') && has_drive(&text[start..]) {
            let (next, has_mark) = bounds.end(end + 1);
            (end, is_marked) = (next, is_marked || has_mark);
        }
        at = end;
        let mut found = &text[start..end];
        let classes = if is_marked { found.iter().fold(0, |classes, &byte| classes | class(byte)) } else { 0 };
        if classes & (COLON | SLASH) == COLON | SLASH
            && let Some(url) = url_in(found)
        {
            let behind = &text[start + url..];
            let url_bytes = behind.iter().position(|byte| ends_url(*byte)).unwrap_or(behind.len());
            draft.add_url(URL, &behind[..url_bytes]);
            found = &found[..url];
            at = start + url + url_bytes;
        }
        if classes != 0 {
            word(draft, found, classes, is_diff);
        } else if draft.rules.is_known_name(found) {
            draft.add_path(PATH, found, ValueKind::Token);
        }
    }
}

fn word(draft: &mut ValueDraft<'_>, word: &[u8], classes: u8, is_diff: &dyn Fn() -> bool) {
    if word.len() < 3 {
        return;
    }
    let word = if classes & (COLON | DOT) == 0 { word } else { without_place(word) };
    let may_be_path = classes & (SLASH | DOT) != 0 || draft.rules.is_known_name(word);
    if may_be_path && draft.rules.is_path(word) {
        let is_side = matches!(word, [b'a' | b'b', b'/', ..]) && is_diff();
        return draft.add_path(PATH, if is_side { &word[2..] } else { word }, ValueKind::Token);
    }
    if classes & DIGIT != 0
        && let Some(id) = draft.rules.id_in(word)
    {
        draft.add_word(ID, id);
    }
}

/// Where an address begins in a word.
fn url_in(word: &[u8]) -> Option<usize> {
    let scheme = memmem::find(word, b"://").filter(|at| at + 3 < word.len())?;
    let begins = |name: &[u8]| word[..scheme].ends_with(name).then(|| scheme - name.len());
    begins(b"https").or_else(|| begins(b"http"))
}

fn ends_url(byte: u8) -> bool {
    byte <= b' ' || b"<>\"'`\\^{}|".contains(&byte)
}

/// A word without the line and column behind it, and without punctuation.
fn without_place(mut word: &[u8]) -> &[u8] {
    loop {
        while let [rest @ .., b'.' | b',' | b':'] = word {
            word = rest;
        }
        match memrchr(b':', word) {
            Some(colon) if colon > 1 && word[colon + 1..].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') => {
                word = &word[..colon];
            }
            _ => return word,
        }
    }
}

/// What stands between words: blanks and control characters, quotes, brackets, and signs that no path has.
const SEPARATORS: [(u8, u8); 8] =
    [(0, b'"'), (b'$', b'$'), (b'&', b'*'), (b',', b','), (b';', b'?'), (b'[', b'^'), (b'`', b'`'), (b'{', b'}')];

/// Dot, slash, digits, colon.
const MARKS: [(u8, u8); 1] = [(b'.', b':')];

/// The bounds of the words of a text.
pub struct WordBounds<'t> {
    pub text: &'t [u8],
    /// What is known of the bytes from here: a bit for each.
    from: usize,
    separators: u64,
    marks: u64,
}

impl<'t> WordBounds<'t> {
    /// The bounds in a text.
    pub fn of(text: &'t [u8]) -> Self {
        let mut bounds = Self { text, from: 0, separators: 0, marks: 0 };
        bounds.look(0);
        bounds
    }

    /// Where the first word at or behind a place begins; not before `end` if there is none before that.
    pub fn start(&mut self, mut at: usize, end: usize) -> usize {
        while at < end {
            let place = self.place_of(at);
            let words = !self.separators >> place;
            if words != 0 {
                return at + words.trailing_zeros() as usize;
            }
            at = self.from + MASK_BYTES;
        }
        end
    }

    /// Where the word that goes on at a place ends, and whether it has a mark from there on.
    pub fn end(&mut self, mut at: usize) -> (usize, bool) {
        let mut is_marked = false;
        while at < self.text.len() {
            let place = self.place_of(at);
            let (separators, marks) = (self.separators >> place, self.marks >> place);
            if separators != 0 {
                let before = (1_u64 << separators.trailing_zeros()) - 1;
                return (at + separators.trailing_zeros() as usize, is_marked || marks & before != 0);
            }
            is_marked |= marks != 0;
            at = self.from + MASK_BYTES;
        }
        (self.text.len(), is_marked)
    }

    /// The bit of a byte, whose bounds are known then.
    fn place_of(&mut self, at: usize) -> usize {
        let place = at % MASK_BYTES;
        if at - place != self.from {
            self.look(at - place);
        }
        place
    }

    fn look(&mut self, from: usize) {
        #[cfg(test)]
        crate::base::id::work::step();
        self.from = from;
        [self.separators] = masks(&self.text[from..], [SEPARATORS]);
        [self.marks] = masks(&self.text[from..], [MARKS]);
    }
}
