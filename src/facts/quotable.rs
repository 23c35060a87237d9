//! What an agent can quote from a body, and whether it can quote it from an encoding as well.
//!
//! The line of a file is what stands behind a number (`12→`) or behind path and number of a search hit (`src/a.rs:12:`);
//! any other line of a body may be one as a whole. It has to stand in an encoding as a line of its own, or behind a mark of
//! the same kind. This is checked on the real bytes of every encoding.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::base::body_shape::{KeptLines, Showing};
use crate::base::names::TextSet;
use crate::facts::body_facts::{LineHashes, Text};
use crate::facts::encode::grouped_paths::END;
use crate::facts::encode::grouped_paths::lines::{BodyItem, Hits};
use crate::facts::numbered::{self, split_lines};

/// Keeps hashes of lines apart from all other hashes.
const SEED: u64 = 0x7175_6f74_6564;

/// A body, line by line.
pub struct Quotable<'a> {
    hits: Hits<'a>,
    lines: Vec<ShownLine<'a>>,
}

#[derive(Clone, Copy)]
struct ShownLine<'a> {
    whole: &'a str,
    /// The line of a file that it shows.
    text: &'a str,
}

impl<'a> Quotable<'a> {
    /// The lines of a body.
    pub fn of(body: &'a str) -> Self {
        let hits = Hits::find(body);
        let lines = split_lines(body).map(|whole| ShownLine { whole, text: text_of(&hits, whole) }).collect();
        Self { hits, lines }
    }

    /// What an encoding keeps: all lines in their order, or at least what stands behind numbers and paths.
    pub fn kept(&self, encoded: &str) -> KeptLines {
        if self.follow(encoded, |line, shown| shown == line.whole) {
            return KeptLines::Lines;
        }
        // A mark of the format is no line of a file, even if some file has such a line.
        let shows = |line: &ShownLine<'_>, shown: &str| {
            let is_mark = shown == END && line.whole != END;
            !is_mark && (shown == line.text || text_of(&self.hits, shown) == line.text)
        };
        if self.follow(encoded, shows) { KeptLines::Texts } else { KeptLines::Nothing }
    }

    /// Whether each line is shown by some line of the encoding, all in order.
    fn follow(&self, encoded: &str, shows: impl Fn(&ShownLine<'_>, &str) -> bool) -> bool {
        let mut encoded = split_lines(encoded);
        self.lines.iter().all(|line| encoded.any(|shown| shows(line, shown)))
    }

    /// How the body shows the text of files, by its look alone.
    pub fn look(&self) -> Showing {
        let starts = |mark: &str| self.lines.iter().any(|line| line.whole.starts_with(mark));
        if starts("@@ -") || starts("diff --git ") {
            Showing::Lines
        } else if self.hits.is_some() || self.lines.iter().any(|line| numbered::split(line.whole).is_some()) {
            Showing::Rows
        } else {
            Showing::Nothing
        }
    }

    /// The lines that can be quoted, each once, with the formats that lose them: `lossy` are encodings by number of the
    /// format.
    pub fn texts(&self, lossy: &[(u8, String)]) -> LineHashes {
        let shown: Vec<(u8, TextSet<'_>)> = lossy
            .iter()
            .map(|(format, encoded)| {
                (*format, split_lines(encoded).flat_map(|l| [l, text_of(&self.hits, l)]).collect())
            })
            .collect();
        let mut texts = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            // What looks like a number may be part of the line.
            let whole = Some(line.whole).filter(|whole| whole.len() > line.text.len());
            for text in [Some(line.text), whole].into_iter().flatten() {
                let Some(hash) = hash_of(text) else { continue };
                let lost = shown.iter().filter(|(_, shown)| !shown.contains(text));
                texts.push(Text { hash, lost_in: lost.fold(0, |lost, (format, _)| lost | 1 << format) });
            }
        }
        texts.sort_unstable_by_key(|text| text.hash);
        texts.dedup_by(|next, one| {
            let same = next.hash == one.hash;
            one.lost_in |= if same { next.lost_in } else { 0 };
            same
        });
        texts.into_iter().collect()
    }
}

/// The lines of a text that is quoted, in order.
pub fn quoted_texts(text: &str) -> LineHashes {
    split_lines(text).filter_map(hash_of).map(|hash| Text { hash, lost_in: 0 }).collect()
}

/// Names a line, whatever stands around it: the marks of a diff and white space, since a quote may begin behind them. A
/// line of brackets alone has no name: it stands everywhere, and nobody can tell what it was quoted from.
fn hash_of(line: &str) -> Option<u32> {
    let bare = line.trim().trim_start_matches(['+', '-']).trim_start();
    bare.contains(char::is_alphanumeric).then(|| xxh3_64_with_seed(bare.as_bytes(), SEED) as u32)
}

/// What stands behind the number, or path and number, of a line; the line itself where there is none.
fn text_of<'l>(hits: &Hits<'l>, line: &'l str) -> &'l str {
    if let Some((_, text)) = numbered::split(line) {
        return text;
    }
    match hits.read(line) {
        BodyItem::Row(row) => row.text(),
        BodyItem::Text(_) | BodyItem::Path => line,
    }
}
