//! Takes keys out of an inline table: the comma that goes with each, or the whole line where each has its own.

use std::ops::Range;

use crate::settings::lines;
use crate::settings::outline::Site;

/// What to cut out of a table that stays; `own` are its keys in the order of the text, and whether they go.
pub(super) fn cuts(text: &str, table: &Site, own: &[(&Site, bool)]) -> Vec<Range<usize>> {
    let inside = table.value.start + 1..table.value.end - 1;
    let pairs = Pairs { text, ranges: ranges(text, inside.start, own) };
    let gone = || (0..own.len()).filter(|index| own[*index].1);
    match own.iter().rposition(|(_, is_gone)| !is_gone) {
        Some(last_kept) => gone().map(|index| pairs.cut(index, last_kept)).collect(),
        None if own.is_empty() => Vec::new(),
        None if may_hold_comment(&text[inside.clone()]) => gone().map(|index| pairs.alone(index)).collect(),
        None => vec![inside],
    }
}

/// Whether there may be a comment in an inline table: it would need a line to end on.
pub(super) fn may_hold_comment(table: &str) -> bool {
    table.contains('#') && table.contains('\n')
}

struct Pairs<'t> {
    text: &'t str,
    /// `key = value`, without the commas.
    ranges: Vec<Range<usize>>,
}

impl Pairs<'_> {
    /// One of the keys with one comma beside it.
    fn cut(&self, index: usize, last_kept: usize) -> Range<usize> {
        let pair = &self.ranges[index];
        if self.has_own_lines(index) {
            return lines::start(self.text, pair.start)..lines::next(self.text, pair.end);
        }
        let cut = match index < last_kept {
            true => pair.start..self.ranges[index + 1].start,
            false => self.ranges[index - 1].end..pair.end,
        };
        let has_comment = |range: Range<usize>| self.text[range].contains('#');
        let strikes_comment = has_comment(cut.start..pair.start) || has_comment(pair.end..cut.end);
        if strikes_comment { self.alone(index) } else { cut }
    }

    /// One of the keys and the comma behind it, nothing else.
    fn alone(&self, index: usize) -> Range<usize> {
        let pair = &self.ranges[index];
        let rest = self.rest_of_line(pair);
        pair.start..pair.end + rest.trim_start().strip_prefix(',').map_or(0, |behind| rest.len() - behind.len())
    }

    fn has_own_lines(&self, index: usize) -> bool {
        let pair = &self.ranges[index];
        let rest = self.rest_of_line(pair).trim();
        let without_comma = if index + 1 == self.ranges.len() { Some(rest) } else { None };
        let rest = rest.strip_prefix(',').map(str::trim_start).or(without_comma);
        lines::starts_line(self.text, pair.start) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    }

    fn rest_of_line(&self, pair: &Range<usize>) -> &str {
        &self.text[pair.end..lines::next(self.text, pair.end)]
    }
}

/// Where each `key = value` stands. A site of a dotted key starts at the last of its names, so the start is found from
/// what stands before it: the end of the pair before, or the start of the line.
fn ranges(text: &str, inside_start: usize, own: &[(&Site, bool)]) -> Vec<Range<usize>> {
    let mut floor = inside_start;
    let range = |(site, _): &(&Site, bool)| {
        let before = text[floor.max(lines::start(text, site.start))..site.start].trim_start();
        let names = before.strip_prefix(',').unwrap_or(before).trim_start();
        floor = site.value.end;
        site.start - names.len()..site.value.end
    };
    own.iter().map(range).collect()
}
