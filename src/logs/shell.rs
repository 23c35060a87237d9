//! The simple commands of a shell line, as far as one must understand a shell to know which programs it runs.
//!
//! Quotes, substitutions, redirections, comments and here-documents are taken for what they are; nothing is expanded.
//! What a shell would refuse is read as far as it makes sense. One pass, no recursion.

use std::borrow::Cow;

use memchr::memchr;

/// A word of a command, quotes resolved. Most stand in the text as they are.
pub(super) type Word<'a> = Cow<'a, str>;

/// Words kept of a command. What follows is only read over.
const WORDS_MAX: usize = 64;
/// Shifts for which the end of a here-document is looked for.
const SHIFTS_MAX: u8 = 64;

/// Iterates over the simple commands of a text, each as its words with quotes resolved. Of a substitution the `$` or back-tick
/// that begins it is left in its word; the commands in it stand apart.
#[derive(Default)]
pub struct Commands<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    words: Vec<Word<'a>>,
    /// The word at hand, if one has begun.
    word: Option<Cow<'a, [u8]>>,
    /// The next word is the target of a redirection, or the end mark of a here-document.
    target: Option<Target>,
    /// End marks of here-documents that begin on the next line.
    end_marks: Vec<Cow<'a, [u8]>>,
    /// What looked like here-documents in substitutions so far.
    shifts: u8,
    /// What the last command puts the output of in its place.
    pub substituted: Vec<Word<'a>>,
    /// Whether a comment was met so far.
    pub has_comment: bool,
    /// Whether the last command reads what the one before writes, and no file or here-document.
    pub is_piped: bool,
    /// The same for the one at hand.
    reads_pipe: bool,
}

/// Bytes that outside of quotes are part of a word and nothing else.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let special = b" \t\r\n'\"\\$`#<>&;|()";
    let mut place = 0;
    while place < special.len() {
        plain[special[place] as usize] = false;
        place += 1;
    }
    plain
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    File,
    EndMark,
}

impl<'a> Iterator for Commands<'a> {
    type Item = Vec<Word<'a>>;

    fn next(&mut self) -> Option<Vec<Word<'a>>> {
        self.substituted.clear();
        while let Some(byte) = self.take() {
            let is_pipe = byte == b'|' && self.rest.first() != Some(&b'|');
            let ends = self.step(byte);
            if ends && !self.words.is_empty() {
                self.is_piped = std::mem::replace(&mut self.reads_pipe, is_pipe);
                return Some(std::mem::take(&mut self.words));
            }
        }
        self.end_word();
        self.is_piped = self.reads_pipe;
        (!self.words.is_empty()).then(|| std::mem::take(&mut self.words))
    }
}

impl<'a> Commands<'a> {
    /// The commands of a text.
    pub fn of(text: &'a str) -> Self {
        Self { text: text.as_bytes(), rest: text.as_bytes(), ..Self::default() }
    }

    fn take(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// The last bytes that were taken.
    fn taken(&self, count: usize) -> &'a [u8] {
        let end = self.text.len() - self.rest.len();
        &self.text[end - count..end]
    }

    fn push(&mut self, bytes: &'a [u8]) {
        match &mut self.word {
            Some(word) if !word.is_empty() => word.to_mut().extend_from_slice(bytes),
            word => *word = Some(Cow::Borrowed(bytes)),
        }
    }

    /// Takes the byte that was taken last, and the run of such bytes that follows it, into the word.
    fn push_run(&mut self, is_plain: impl Fn(u8) -> bool) {
        let count = self.rest.iter().take_while(|&&byte| is_plain(byte)).count();
        self.rest = &self.rest[count..];
        self.push(self.taken(1 + count));
    }

    /// Takes one byte outside of quotes; true if it ends a command.
    fn step(&mut self, byte: u8) -> bool {
        match byte {
            b' ' | b'\t' | b'\r' => self.end_word(),
            b'\'' => self.single_quoted(),
            b'"' => self.double_quoted(),
            b'\\' => self.escaped(),
            b'$' | b'`' => self.substitution(byte),
            b'#' if self.word.is_none() => {
                self.has_comment = true;
                self.skip_until(b'\n');
            }
            b'<' | b'>' => self.redirection(byte),
            b'&' if self.rest.first() == Some(&b'>') => self.end_word(),
            b'(' if self.word.as_ref().is_some_and(|word| word.ends_with(b"=")) => self.skip_nested(b')'),
            b'(' if self.word.is_some() && self.rest.starts_with(b")") => {
                // The name of a function that is defined here; its body is looked at.
                self.word = None;
                self.take();
            }
            b'\n' => return self.end_line(),
            b';' | b'&' | b'|' | b'(' | b')' => {
                self.end_word();
                return true;
            }
            _ => self.push_run(|byte| PLAIN[byte as usize]),
        }
        false
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.target.take() {
            Some(Target::EndMark) => self.end_marks.push(word),
            Some(Target::File) => {}
            // Braces only group commands.
            None if self.words.is_empty() && matches!(&*word, b"{" | b"}") => {}
            None if self.words.len() < WORDS_MAX => self.words.push(text(word)),
            None => {}
        }
    }

    /// Ends a line and passes over the here-documents that follow it.
    fn end_line(&mut self) -> bool {
        self.end_word();
        for end_mark in std::mem::take(&mut self.end_marks) {
            while !self.rest.is_empty() && self.take_line().trim_ascii() != &*end_mark {}
        }
        true
    }

    fn take_line(&mut self) -> &'a [u8] {
        let line = self.skip_until(b'\n');
        self.take();
        line
    }

    /// Passes over everything before `byte`.
    fn skip_until(&mut self, byte: u8) -> &'a [u8] {
        let (skipped, rest) = self.rest.split_at(memchr(byte, self.rest).unwrap_or(self.rest.len()));
        self.rest = rest;
        skipped
    }

    fn single_quoted(&mut self) {
        let text = self.skip_until(b'\'');
        self.take();
        self.push(text);
    }

    fn double_quoted(&mut self) {
        self.push(b"");
        while let Some(byte) = self.take() {
            match byte {
                b'"' => return,
                b'\\' => self.escaped(),
                b'$' | b'`' => self.substitution(byte),
                _ => self.push_run(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'`')),
            }
        }
    }

    /// What stands behind a back-slash; a line goes on behind one at its end.
    fn escaped(&mut self) {
        match self.take() {
            Some(b'\n') => {}
            Some(b'"' | b'\'' | b'\\' | b'$' | b'`' | b' ') => self.push(self.taken(1)),
            // Of an end mark only what stands behind it.
            Some(_) if self.target == Some(Target::EndMark) => self.push(self.taken(1)),
            Some(_) => self.push(self.taken(2)),
            None => self.push(self.taken(1)),
        }
    }

    /// `$name`, `$(…)`, `${…}` or back-ticks.
    fn substitution(&mut self, byte: u8) {
        self.push(self.taken(1));
        match (byte, self.rest.first()) {
            (b'`', _) => {
                let inner = self.skip_until(b'`');
                self.take();
                self.substituted.push(text(Cow::Borrowed(inner)));
            }
            (_, Some(b'(')) => {
                self.take();
                let rest = self.rest;
                self.skip_nested(b')');
                self.substituted.push(text(Cow::Borrowed(&rest[..rest.len() - self.rest.len()])));
            }
            (_, Some(b'{')) => {
                self.take();
                self.skip_nested(b'}');
            }
            _ => {}
        }
    }

    /// Passes over what an opening bracket encloses, the bracket having been taken.
    fn skip_nested(&mut self, close: u8) {
        let mut closes = vec![close];
        while let Some(close) = closes.last().copied() {
            let Some(byte) = self.take() else { return };
            match byte {
                _ if byte == close => drop(closes.pop()),
                b'\\' => drop(self.take()),
                b'(' => closes.push(b')'),
                b'"' => closes.push(b'"'),
                b'<' if close == b')' && self.rest.starts_with(b"<") => self.skip_document(),
                b'\'' if close != b'"' => {
                    self.skip_until(b'\'');
                    self.take();
                }
                _ => {}
            }
        }
    }

    /// Passes over a here-document in a substitution, the first `<` having been taken: its quotes and brackets are text. What no
    /// line ends is a shift: `$((1 << 2))`.
    fn skip_document(&mut self) {
        let more = self.rest.iter().take_while(|next| **next == b'<').count();
        self.rest = &self.rest[more..];
        if more > 1 || self.shifts == SHIFTS_MAX {
            return;
        }
        let behind = self.rest;
        let opening = self.take_line();
        let start = opening.iter().position(|byte| !b"-'\"\\ ".contains(byte)).unwrap_or(opening.len());
        let length = opening[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let end_mark = &opening[start..start + length];
        while !self.rest.is_empty() {
            if self.take_line().trim_ascii() == end_mark {
                return;
            }
        }
        (self.rest, self.shifts) = (behind, self.shifts + 1);
    }

    /// `>`, `>>`, `<`, `<<`, `<<<`, `>&`, `<(…)` and so on: the next word is no part of the command.
    fn redirection(&mut self, byte: u8) {
        // The number of a file descriptor belongs to the redirection.
        if self.word.as_ref().is_some_and(|word| word.iter().all(u8::is_ascii_digit)) {
            self.word = None;
        }
        self.end_word();
        self.reads_pipe &= byte != b'<';
        let more = self.rest.iter().take_while(|next| **next == byte).count();
        self.rest = &self.rest[more..];
        let opens_document = (byte, more) == (b'<', 1);
        match self.rest.first() {
            Some(b'(') => {
                self.push(self.taken(1));
                self.take();
                return self.skip_nested(b')');
            }
            Some(b'&' | b'|') => drop(self.take()),
            Some(b'-') if opens_document => drop(self.take()),
            _ => {}
        }
        self.target = Some(if opens_document { Target::EndMark } else { Target::File });
    }
}

/// A word. Words are cut at single bytes of ASCII, so that almost all are text as they stand.
fn text(word: Cow<'_, [u8]>) -> Word<'_> {
    match word {
        Cow::Borrowed(word) => String::from_utf8_lossy(word),
        Cow::Owned(word) => Cow::Owned(String::from_utf8_lossy(&word).into_owned()),
    }
}
