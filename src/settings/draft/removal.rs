//! Takes keys out of a text: which bytes go with them, and which blank lines stood there for their sake alone. All cuts are
//! found in one look at the outline. What devboy added is cut the way it was added; out of an inline table a key goes with its
//! comma, or with its line where each has its own.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::base::key_path::KeyPath;
use crate::settings::lines;
use crate::settings::outline::{DocumentOutline, Site, SiteForm};

/// What to cut so that the keys and everything below them are gone: ranges in the order of the text that do not touch.
///
/// A key goes with the comment beside it, a block also with the comments directly above it. A `[header]` that loses its
/// last key goes too unless there is a comment in its block, and so does an inline table inside another one.
pub(super) fn cuts(text: &str, outline: &DocumentOutline, keys: &[&KeyPath]) -> Vec<Range<usize>> {
    let mut removal = Removal::new(text, outline.sites(), keys);
    removal.mark_emptied();
    let blocks = joined(removal.blocks(), |between| lines::is_blank(&text[between]));
    let blocks = blocks.into_iter().map(|block| with_blank_line(text, block));
    let cuts = blocks.chain(removal.single_lines()).chain(removal.inline_pairs());
    let mut cuts = joined(cuts.collect(), |between| between.is_empty());
    if let Some(last) = cuts.last_mut() {
        last.start -= line_end_to_drop(text, last);
    }
    cuts
}

struct Removal<'t> {
    text: &'t str,
    sites: &'t [Site],
    /// Which sites go.
    gone: Vec<bool>,
}

impl<'t> Removal<'t> {
    fn new(text: &'t str, sites: &'t [Site], keys: &[&KeyPath]) -> Self {
        let is_below = |site: &Site| keys.iter().any(|key| site.path.starts_with(key));
        Self { text, sites, gone: sites.iter().map(is_below).collect() }
    }

    /// Marks the tables that lose all they have. Inner ones stand behind outer ones, so they are asked first.
    fn mark_emptied(&mut self) {
        for index in (0..self.sites.len()).rev() {
            let table = &self.sites[index];
            self.gone[index] |= match table.form {
                SiteForm::Header => self.is_emptied(table, SiteForm::Entry) && !self.has_comment(table),
                SiteForm::Inline => {
                    self.is_emptied(table, SiteForm::Inline) && !may_hold_comment(&self.text[table.value.clone()])
                }
                SiteForm::ListHeader | SiteForm::Entry | SiteForm::Element => false,
            };
        }
    }

    fn is_emptied(&self, table: &Site, form: SiteForm) -> bool {
        let mut own = self.own(&table.path, form).peekable();
        own.peek().is_some() && own.all(|(_, is_gone)| is_gone)
    }

    /// The keys written directly in a table, in the order of the text, and whether they go.
    fn own(&self, table: &KeyPath, form: SiteForm) -> impl Iterator<Item = (&'t Site, bool)> {
        let sites = self.sites.iter().zip(self.gone.iter().copied());
        sites.filter(move |(site, _)| site.form == form && site.host == *table)
    }

    /// The sites of these forms that go.
    fn gone(&self, forms: &'static [SiteForm]) -> impl Iterator<Item = &'t Site> {
        let gone = self.sites.iter().zip(&self.gone).filter(|(_, is_gone)| **is_gone);
        gone.map(|(site, _)| site).filter(|site| forms.contains(&site.form))
    }

    /// Whether a comment stands above, beside, in or directly below a block; those beside its keys do not count.
    fn has_comment(&self, header: &Site) -> bool {
        let mut end = lines::next(self.text, header.value.end);
        let mut around = self.text[header.value.end..end].to_owned();
        for (entry, _) in self.own(&header.path, SiteForm::Entry) {
            around += &self.text[end..lines::start(self.text, entry.start)];
            end = lines::next(self.text, entry.value.end);
        }
        around += lines::comment_after(self.text, end).unwrap_or_default();
        around.contains('#') || lines::comments_above(self.text, header.start).next().is_some()
    }

    /// Whether nothing stays before the first header.
    fn is_top_gone(&self) -> bool {
        self.own(&KeyPath::default(), SiteForm::Entry).all(|(_, is_gone)| is_gone)
    }

    /// What blank lines set off: blocks under a header, and the lines before the first header if none of them stays.
    fn blocks(&self) -> Vec<Range<usize>> {
        let block = |header: &Site| {
            let line = lines::start(self.text, header.start);
            let start = lines::comments_above(self.text, header.start).last().map_or(line, |above| above.start);
            let end =
                self.own(&header.path, SiteForm::Entry).last().map_or(header.value.end, |(last, _)| last.value.end);
            start..lines::next(self.text, end)
        };
        let blocks = self.gone(&[SiteForm::Header, SiteForm::ListHeader]).map(block);
        let top = self.entries().filter(|entry| self.is_top_gone() && entry.host.0.is_empty());
        blocks.chain(top.map(|entry| self.lines_of(entry))).collect()
    }

    /// The lines of keys that go while others of their table stay.
    fn single_lines(&self) -> Vec<Range<usize>> {
        let is_top_gone = self.is_top_gone();
        let entries = self.entries().filter(|entry| !is_top_gone || !entry.host.0.is_empty());
        entries.map(|entry| self.lines_of(entry)).collect()
    }

    /// The keys on lines of their own that do not go as a part of their block.
    fn entries(&self) -> impl Iterator<Item = &'t Site> {
        let blocks: BTreeSet<&KeyPath> =
            self.gone(&[SiteForm::Header, SiteForm::ListHeader]).map(|header| &header.path).collect();
        self.gone(&[SiteForm::Entry]).filter(move |entry| !blocks.contains(&entry.host))
    }

    fn lines_of(&self, entry: &Site) -> Range<usize> {
        lines::start(self.text, entry.start)..lines::next(self.text, entry.value.end)
    }

    /// What goes from inside inline tables that stay.
    fn inline_pairs(&self) -> Vec<Range<usize>> {
        let tables = self.sites.iter().zip(&self.gone).filter(|(site, is_gone)| site.is_inline_table && !**is_gone);
        let own = |table: &Site| self.own(&table.path, SiteForm::Inline).collect::<Vec<_>>();
        tables.flat_map(|(table, _)| pair_cuts(self.text, table, &own(table))).collect()
    }
}

/// The ranges in order; neighbours become one if what stands between them allows it.
fn joined(mut ranges: Vec<Range<usize>>, may_join: impl Fn(Range<usize>) -> bool) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut out: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut().filter(|last| may_join(last.end.min(range.start)..range.start)) {
            Some(last) => last.end = last.end.max(range.end),
            None => out.push(range),
        }
    }
    out
}

/// A block with the blank line that set it off: the one above it if there is just one, else the one below. Where there
/// are more, a person wanted them.
fn with_blank_line(text: &str, block: Range<usize>) -> Range<usize> {
    let (before, after) = (&text[lines::after_mark(text)..block.start], &text[block.end..]);
    let above = before.lines().rev().take_while(|line| lines::is_blank(line)).count();
    let below = after.lines().take_while(|line| lines::is_blank(line)).count();
    let was_set_off = before.is_empty() || above > 0;
    if above == 1 && !lines::is_blank(before) {
        lines::start(text, block.start - 1)..block.end
    } else if below == 1 && !lines::is_blank(after) && was_set_off {
        block.start..lines::next(text, block.end)
    } else {
        block
    }
}

/// The length of the line ending before a cut at the end of a text whose last line is not ended: the line that becomes
/// the last is not ended either.
fn line_end_to_drop(text: &str, cut: &Range<usize>) -> usize {
    if cut.end < text.len() || text.ends_with('\n') {
        return 0;
    }
    let before = &text[lines::after_mark(text)..cut.start];
    before.strip_suffix('\n').map_or(0, |line| before.len() - line.strip_suffix('\r').unwrap_or(line).len())
}

/// What to cut out of a table that stays; `own` are its keys in the order of the text, and whether they go.
fn pair_cuts(text: &str, table: &Site, own: &[(&Site, bool)]) -> Vec<Range<usize>> {
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
fn may_hold_comment(table: &str) -> bool {
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
