//! Where every key of a document stands in its text, as one flat list in file order; and `# pin`, the mark by which a person
//! keeps devboy's hands off a key. Headers, dotted keys, inline tables and lists of tables all become [`Site`]s, which are
//! looked up, never searched for, so that a file costs no more than its length.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Key, Table, Value};

use crate::base::key_path::KeyPath;
use crate::settings::lines::{comment_after, comments_above};

/// How a site is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SiteForm {
    /// `[a.b]`
    Header,
    /// `[[a.b]]`; the path ends in the position.
    ListHeader,
    /// `key = value` on lines of its own, the key possibly dotted.
    Entry,
    /// `key = value` inside an inline table.
    Inline,
    /// A value inside a list.
    Element,
}

/// One written key.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) path: KeyPath,
    pub(super) form: SiteForm,
    /// Where the key starts (of a header: its bracket).
    pub(super) start: usize,
    /// The value (of a header: the header).
    pub(super) value: Range<usize>,
    /// The header or inline table that the key is written in.
    pub(super) host: KeyPath,
    pub(super) is_inline_table: bool,
}

/// All sites of a document, in file order.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentOutline {
    sites: Vec<Site>,
    /// Places in `sites` by path, each list in file order. Paths below a path follow it.
    by_path: BTreeMap<KeyPath, Vec<usize>>,
    /// Where each line but the first starts.
    line_starts: Vec<usize>,
}

impl DocumentOutline {
    /// Lists the sites of a parsed document.
    pub(super) fn of(document: &Document<String>) -> Self {
        let mut outline = Self::default();
        outline.table(document.as_table(), &KeyPath::default(), &KeyPath::default());
        outline.sites.sort_by_key(|site| site.start);
        for (place, site) in outline.sites.iter().enumerate() {
            outline.by_path.entry(site.path.clone()).or_default().push(place);
        }
        outline.line_starts = memchr::memchr_iter(b'\n', document.raw().as_bytes()).map(|end| end + 1).collect();
        outline
    }

    /// All sites.
    pub(super) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The first site that writes exactly this key.
    pub(super) fn at(&self, path: &KeyPath) -> Option<&Site> {
        self.all_at(path).next()
    }

    /// All sites that write exactly this key, in file order.
    pub(super) fn all_at(&self, path: &KeyPath) -> impl Iterator<Item = &Site> {
        self.by_path.get(path).into_iter().flatten().map(|&place| &self.sites[place])
    }

    /// The sites of the key and of everything below it, in file order.
    pub(super) fn under(&self, path: &KeyPath) -> impl DoubleEndedIterator<Item = &Site> {
        let below = self.by_path.range(path.clone()..).take_while(|(below, _)| below.starts_with(path));
        let mut places: Vec<usize> = below.flat_map(|(_, places)| places.iter().copied()).collect();
        places.sort_unstable();
        places.into_iter().map(|place| &self.sites[place])
    }

    /// The 1-based line where a key, or the first thing below it, is written.
    pub(super) fn line_of(&self, key: &KeyPath) -> Option<usize> {
        let site = self.at(key).or_else(|| self.under(key).next())?;
        Some(1 + self.line_starts.partition_point(|&start| start <= site.start))
    }

    /// Whether the key is a list, and so has elements for children.
    pub(super) fn is_list(&self, path: &KeyPath) -> bool {
        let is_element = |site: &&Site| matches!(site.form, SiteForm::Element | SiteForm::ListHeader);
        self.under(path).filter(is_element).any(|site| site.path.parent().as_ref() == Some(path))
    }

    /// The blocks of a list that is written as `[[path]]`.
    pub(super) fn blocks(&self, path: &KeyPath) -> Vec<&Site> {
        let is_block = |site: &&Site| site.form == SiteForm::ListHeader && site.path.parent().as_ref() == Some(path);
        self.under(path).filter(is_block).collect()
    }

    fn table(&mut self, table: &Table, path: &KeyPath, host: &KeyPath) {
        for (key, item) in table.iter().filter_map(|(key, _)| table.get_key_value(key)) {
            let below = path.child(key.get());
            match item {
                Item::Value(value) => self.entry(SiteForm::Entry, key, value, &below, host),
                Item::Table(inner) => self.inner_table(inner, &below, host),
                Item::ArrayOfTables(list) => {
                    for (position, block) in list.iter().enumerate() {
                        self.header(SiteForm::ListHeader, block, &below.child(position.to_string()));
                    }
                }
                Item::None => {}
            }
        }
    }

    fn inner_table(&mut self, table: &Table, path: &KeyPath, host: &KeyPath) {
        match table.is_implicit() || table.is_dotted() {
            true => self.table(table, path, host),
            false => self.header(SiteForm::Header, table, path),
        }
    }

    fn header(&mut self, form: SiteForm, table: &Table, path: &KeyPath) {
        let span = table.span().unwrap_or_default();
        let host = KeyPath::default();
        self.sites.push(Site {
            path: path.clone(),
            form,
            start: span.start,
            value: span,
            host,
            is_inline_table: false,
        });
        self.table(table, path, path);
    }

    fn entry(&mut self, form: SiteForm, key: &Key, value: &Value, path: &KeyPath, host: &KeyPath) {
        let span = value.span().unwrap_or_default();
        let start = key.span().map_or(span.start, |key| key.start);
        self.push_value(form, start, span, value, path, host);
    }

    fn push_value(
        &mut self,
        form: SiteForm,
        start: usize,
        span: Range<usize>,
        value: &Value,
        path: &KeyPath,
        host: &KeyPath,
    ) {
        let is_inline_table = value.is_inline_table();
        self.sites.push(Site { path: path.clone(), form, start, value: span, host: host.clone(), is_inline_table });
        match value {
            Value::InlineTable(table) => self.inline_table(table, path, path),
            Value::Array(array) => {
                for (position, element) in array.iter().enumerate() {
                    let span = element.span().unwrap_or_default();
                    let below = path.child(position.to_string());
                    self.push_value(SiteForm::Element, span.start, span, element, &below, path);
                }
            }
            _ => {}
        }
    }

    fn inline_table(&mut self, table: &InlineTable, path: &KeyPath, host: &KeyPath) {
        for (key, item) in table.iter().filter_map(|(key, _)| table.get_key_value(key)) {
            let below = path.child(key.get());
            match item.as_value() {
                Some(Value::InlineTable(dotted)) if dotted.is_dotted() => self.inline_table(dotted, &below, host),
                Some(value) => self.entry(SiteForm::Inline, key, value, &below, host),
                None => {}
            }
        }
    }
}

/// Whether the key, or a table that contains it, is marked; a list is also pinned by a mark inside it.
pub(super) fn is_pinned(text: &str, outline: &DocumentOutline, key: &KeyPath) -> bool {
    let is_list = outline.is_list(key);
    let above = key.upwards();
    let marked_above = above.into_iter().any(|path| outline.all_at(&path).any(|site| has_mark(text, site)));
    marked_above || (is_list && outline.under(key).any(|site| has_mark(text, site)))
}

/// Whether a mark stands on the key itself, above it, below it or inside it.
pub(super) fn touches_pin(text: &str, outline: &DocumentOutline, key: &KeyPath) -> bool {
    is_pinned(text, outline, key) || outline.under(key).any(|site| has_mark(text, site))
}

fn has_mark(text: &str, site: &Site) -> bool {
    let beside = comment_after(text, site.value.end);
    let opening = opening_comment(text, site);
    let mut above = comments_above(text, site.start).map(|range| &text[range]);
    beside.is_some_and(is_mark) || opening.is_some_and(is_mark) || above.any(is_mark)
}

/// The comment behind the opening bracket of a value of several lines.
fn opening_comment<'t>(text: &'t str, site: &Site) -> Option<&'t str> {
    let value = &text[site.value.clone()];
    let opens = value.starts_with(['[', '{']) && value.contains('\n');
    if opens { comment_after(text, site.value.start + 1) } else { None }
}

fn is_mark(comment: &str) -> bool {
    let words = comment.trim_start().trim_start_matches('#').trim_start();
    let is_pin = words.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("pin"));
    is_pin && !words[3..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
}
