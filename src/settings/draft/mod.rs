//! A configuration text in the making: each change is one splice at a place that the [`DocumentOutline`] names, so comments,
//! order, number spelling, line endings and a byte order mark survive because nobody touches them.

mod removal;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use toml_edit::{InlineTable, Value};

use super::document::{at_line, read};
use super::outline::{DocumentOutline, Site, SiteForm};
use super::schema::SchemaNode;
use super::{CURRENT_VERSION, SettingsFile, lists};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::settings::write::WantedValue;
use crate::settings::{lines, outline, schema, values};

/// A text in the making, read anew after every splice.
pub(super) struct DocumentDraft<'f> {
    path: &'f Path,
    text: String,
    outline: DocumentOutline,
    tree: Value,
    ends_open: bool,
}

impl<'f> DocumentDraft<'f> {
    pub(super) fn of(file: &'f SettingsFile) -> Result<Self> {
        let text = if file.existed { file.text.clone() } else { format!("schema_version = {CURRENT_VERSION}\n") };
        let (outline, tree) = read(&file.path, &text)?;
        let ends_open = text.len() > lines::after_mark(&text) && !text.ends_with('\n');
        Ok(Self { path: &file.path, text, outline, tree, ends_open })
    }

    /// Makes all changes in their order. New entries of one table that follow each other go in together, so that the
    /// text is not read anew for each of them.
    pub(super) fn change_all(&mut self, changes: &[WantedValue]) -> Result<()> {
        let mut rest = changes;
        while let Some(first) = rest.first() {
            let mut seen = BTreeSet::new();
            let absent = rest.iter().take_while(|change| change.value.is_none()).count();
            let beside = rest.iter().take_while(|change| self.is_new_block_beside(first, change));
            let blocks = beside.map(|change| &change.key).take_while(|key| seen.insert(*key)).count();
            match (absent, blocks) {
                (1.., _) => self.remove(&rest[..absent])?,
                (0, 2..) => self.insert_blocks(&rest[..blocks])?,
                (0, _) => self.change(first)?,
            }
            rest = &rest[absent.max(blocks).max(1)..];
        }
        Ok(())
    }

    /// Whether a change adds a block of its own with the same parent as `first`.
    fn is_new_block_beside(&self, first: &WantedValue, change: &WantedValue) -> bool {
        matches!(change.value, Some(Value::InlineTable(_)))
            && change.key.parent() == first.key.parent()
            && !self.exists(&change.key)
            && matches!(
                self.place(&change.key),
                Ok(KeyPlacement::Block | KeyPlacement::Section(_) | KeyPlacement::Root)
            )
    }

    fn insert_blocks(&mut self, changes: &[WantedValue]) -> Result<()> {
        let eol = lines::ending(&self.text);
        let mut blocks: Vec<String> = Vec::new();
        for change in changes {
            self.refuse_pinned(&change.key)?;
            if let Some(Value::InlineTable(table)) = &change.value {
                blocks.push(values::table(&change.key, table, eol));
            }
        }
        let first = &changes[0].key;
        self.insert_block(first, &blocks.join(eol))?;
        self.raise_version(first)
    }

    /// Makes one change; a section that the stated version does not know raises the version.
    fn change(&mut self, change: &WantedValue) -> Result<()> {
        let Some(value) = &change.value else { return self.remove(std::slice::from_ref(change)) };
        let old = self.text.clone();
        self.set(&change.key, value)?;
        if old == self.text { Ok(()) } else { self.raise_version(&change.key) }
    }

    /// Sets a key to a value, whatever form either has.
    pub(super) fn set(&mut self, key: &KeyPath, value: &Value) -> Result<()> {
        if self.holds(key, value) {
            return Ok(());
        }
        if let Value::InlineTable(table) = value {
            return self.set_table(key, table);
        }
        self.refuse_pinned(key)?;
        if !self.outline.blocks(key).is_empty() {
            return lists::update_blocks(self, key, value);
        }
        match self.outline.at(key).cloned() {
            Some(site) if site.form == SiteForm::Header => self.refuse(key, "is a table in this file"),
            Some(site) => self.replace(&site, key, value),
            None if self.exists(key) => self.refuse(key, "is a table in this file"),
            None => self.insert(key, value),
        }
    }

    /// The text as it stands.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where everything stands in it.
    pub(super) fn outline(&self) -> &DocumentOutline {
        &self.outline
    }

    fn holds(&self, key: &KeyPath, value: &Value) -> bool {
        match values::find(&self.tree, key) {
            Some(found) => values::same(found, value),
            None => is_empty_list(value) && matches!(SchemaNode::root().find(key), Some(SchemaNode::List(_))),
        }
    }

    fn set_table(&mut self, key: &KeyPath, table: &InlineTable) -> Result<()> {
        let by_key = || values::in_order(key, table).into_iter().map(|(name, value)| (key.child(name), value));
        if self.exists(key) {
            return by_key().try_for_each(|(key, value)| self.set(&key, value));
        }
        self.refuse_pinned(key)?;
        match self.place(key)? {
            KeyPlacement::Block | KeyPlacement::Section(_) | KeyPlacement::Root => {
                let blocks = values::table(key, table, lines::ending(&self.text));
                self.insert_block(key, &blocks)
            }
            KeyPlacement::Beside(_) if !table.is_empty() => by_key().try_for_each(|(key, value)| self.set(&key, value)),
            KeyPlacement::Beside(_) | KeyPlacement::Inline(_) => self.insert(key, &Value::InlineTable(table.clone())),
        }
    }

    fn replace(&mut self, site: &Site, key: &KeyPath, value: &Value) -> Result<()> {
        let old = values::find(&self.tree, key).cloned();
        if site.is_inline_table {
            return self.refuse(key, "is a table in this file");
        }
        if old.is_some_and(|old| lists::differ_in_fields_only(&old, value)) {
            return lists::update_fields(self, key, value);
        }
        if lists::update_lines(self, site, key, value)? {
            return Ok(());
        }
        let value = values::ordered(key, value);
        let first = self.outline.at(&key.child("0")).map(|element| element.start);
        let own_line = first.filter(|start| self.text[site.value.start..*start].contains('\n'));
        let spelled = match own_line.filter(|_| !is_empty_list(&value)) {
            Some(start) => {
                let indents = [start, site.start].map(|offset| lines::indent(&self.text, offset));
                values::tall_list(&value, indents[0], indents[1], lines::ending(&self.text))
            }
            None => values::spelled(&value),
        };
        self.splice(site.value.clone(), &spelled)
    }

    fn insert(&mut self, key: &KeyPath, value: &Value) -> Result<()> {
        let value = &values::ordered(key, value);
        match self.place(key)? {
            KeyPlacement::Inline(table) => self.insert_inline(&table, &key.below(&table.path), value),
            KeyPlacement::Beside(site) => {
                let line = values::assignment(&key.below(&site.host), value);
                self.insert_line(site.value.end, site.start, &line)
            }
            KeyPlacement::Root => self.insert_at_root(&values::assignment(key, value)),
            KeyPlacement::Section(_) | KeyPlacement::Block if values::is_table_list(value) => {
                self.append_blocks(key, value)
            }
            KeyPlacement::Section(header) => {
                let last = self.last_entry_of(&header.path).unwrap_or(header);
                let name = KeyPath::from([key.leaf().unwrap_or_default()]);
                self.insert_line(last.value.end, last.start, &values::assignment(&name, value))
            }
            KeyPlacement::Block => {
                let parent = key.parent().unwrap_or_default();
                let table = InlineTable::from_iter(key.leaf().map(|name| (name, value.clone())));
                let blocks = values::table(&parent, &table, lines::ending(&self.text));
                self.insert_block(&parent, &blocks)
            }
        }
    }

    /// Where a key that the file does not have belongs: its nearest ancestor in the file decides.
    fn place(&self, key: &KeyPath) -> Result<KeyPlacement> {
        let parent = key.parent().unwrap_or_default();
        let Some(ancestor) = parent.upwards().find(|path| self.exists(path)) else {
            return Ok(if parent.0.is_empty() { KeyPlacement::Root } else { KeyPlacement::Block });
        };
        let is_dotted = |site: &&Site| {
            matches!(site.form, SiteForm::Entry | SiteForm::Inline) && site.host.0.len() < ancestor.0.len()
        };
        match self.outline.at(&ancestor) {
            Some(site) if site.is_inline_table => Ok(KeyPlacement::Inline(site.clone())),
            Some(site) if matches!(site.form, SiteForm::Header | SiteForm::ListHeader) && ancestor == parent => {
                Ok(KeyPlacement::Section(site.clone()))
            }
            Some(site) if site.form == SiteForm::Header => Ok(KeyPlacement::Block),
            Some(_) => self.refuse(&ancestor, "is not a table in this file"),
            None if self.outline.is_list(&ancestor) => self.refuse(&ancestor, "has no such element"),
            None => Ok(match self.outline.under(&ancestor).rfind(is_dotted) {
                Some(site) if site.form == SiteForm::Inline => {
                    self.outline.at(&site.host).cloned().map_or(KeyPlacement::Block, KeyPlacement::Inline)
                }
                Some(site) => KeyPlacement::Beside(site.clone()),
                None => KeyPlacement::Block,
            }),
        }
    }

    fn insert_inline(&mut self, table: &Site, key: &KeyPath, value: &Value) -> Result<()> {
        let new = values::assignment(key, value);
        let is_own = |site: &&Site| site.form == SiteForm::Inline && site.host == table.path;
        let Some(last) = self.outline.under(&table.path).rfind(is_own).cloned() else {
            let inside = table.value.start + 1..table.value.end - 1;
            let is_bare = lines::is_blank(&self.text[inside.clone()]);
            return self.splice(if is_bare { inside } else { inside.start..inside.start }, &format!(" {new} "));
        };
        let (end, line_end) = (last.value.end, lines::next(&self.text, last.value.end));
        let rest = self.text[end..line_end].trim_start();
        let has_own_line =
            rest.strip_prefix(',').map(str::trim_start).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'));
        match has_own_line {
            true => self.insert_line(end, last.start, &format!("{new},")),
            false => self.splice(end..end, &format!(", {new}")),
        }
    }

    fn insert_at_root(&mut self, line: &str) -> Result<()> {
        let is_root = |site: &&Site| site.form == SiteForm::Entry && site.host.0.is_empty();
        if let Some(last) = self.outline.sites().iter().rfind(is_root).cloned() {
            return self.insert_line(last.value.end, last.start, line);
        }
        let top = lines::after_attached_comments(&self.text, lines::after_mark(&self.text));
        self.insert_paragraph(top, &format!("{line}{}", lines::ending(&self.text)))
    }

    /// Adds a line behind the one that holds `offset`, indented like the line of `like`.
    pub(super) fn insert_line(&mut self, offset: usize, like: usize, line: &str) -> Result<()> {
        let (at, eol) = (lines::next(&self.text, offset), lines::ending(&self.text));
        let line = format!("{}{line}", lines::indent(&self.text, like));
        let closed = self.text[..at].ends_with('\n');
        self.splice(at..at, &if closed { line + eol } else { format!("{eol}{line}") })
    }

    /// Adds blocks behind the last relative of `path`: its own kin, else its siblings, else at the end.
    fn insert_block(&mut self, path: &KeyPath, blocks: &str) -> Result<()> {
        if path.upwards().skip(1).any(|above| self.outline.is_list(&above)) {
            return self.refuse(path, "lies inside a list, where devboy adds no tables");
        }
        let relative = path.upwards().find_map(|path| self.outline.under(&path).map(|site| site.value.end).max());
        let at = match relative {
            Some(end) => lines::after_attached_comments(&self.text, lines::next(&self.text, end)),
            None => self.text.len(),
        };
        self.insert_paragraph(at, blocks)
    }

    /// Adds whole lines at the start of a line, with a blank line on either side unless the text begins or ends there.
    fn insert_paragraph(&mut self, at: usize, paragraph: &str) -> Result<()> {
        let eol = lines::ending(&self.text);
        let (before, after) = (&self.text[lines::after_mark(&self.text)..at], &self.text[at..]);
        let lead = match before {
            "" => String::new(),
            open if !open.ends_with('\n') => eol.repeat(2),
            spaced if lines::is_blank(spaced.lines().next_back().unwrap_or_default()) => String::new(),
            _ => eol.to_owned(),
        };
        let tail = if lines::is_blank(after.lines().next().unwrap_or_default()) { "" } else { eol };
        let paragraph = match self.ends_open && after.is_empty() {
            true => paragraph.trim_end_matches(['\r', '\n']),
            false => paragraph,
        };
        self.splice(at..at, &format!("{lead}{paragraph}{tail}"))
    }

    /// Adds elements to the end of a list that is written as `[[list]]` blocks.
    pub(super) fn append_blocks(&mut self, list: &KeyPath, elements: &Value) -> Result<()> {
        if is_empty_list(elements) {
            return Ok(());
        }
        let blocks = values::table_list(list, elements, lines::ending(&self.text));
        self.insert_block(list, &blocks)
    }

    /// Takes the keys of these changes out, all in one go.
    fn remove(&mut self, changes: &[WantedValue]) -> Result<()> {
        let there: Vec<_> = changes.iter().map(|change| &change.key).filter(|key| self.exists(key)).collect();
        for key in &there {
            if key.parent().is_some_and(|list| self.outline.is_list(&list)) {
                return self.refuse(key, "is an element of a list, which changes as a whole");
            }
            self.refuse_pinned(key)?;
            if outline::touches_pin(&self.text, &self.outline, key) {
                return self.refuse(key, "holds something marked `# pin`");
            }
        }
        self.cut(&there)
    }

    /// Takes keys out. A block goes with the comments above it and the blank line that set it off.
    pub(super) fn cut(&mut self, keys: &[&KeyPath]) -> Result<()> {
        for range in removal::cuts(&self.text, &self.outline, keys).into_iter().rev() {
            self.text.replace_range(range, "");
        }
        (self.outline, self.tree) = read(self.path, &self.text)?;
        Ok(())
    }

    /// Takes the lines of one key, or of one element that has lines of its own, out.
    pub(super) fn remove_lines(&mut self, key: &KeyPath) -> Result<()> {
        let Some(site) = self.outline.at(key).filter(|site| matches!(site.form, SiteForm::Entry | SiteForm::Element))
        else {
            return Ok(());
        };
        let range = lines::start(&self.text, site.start)..lines::next(&self.text, site.value.end);
        self.splice(range, "")
    }

    /// The value of a key in the draft.
    pub(super) fn get(&self, key: &KeyPath) -> Option<Value> {
        values::find(&self.tree, key).cloned()
    }

    /// A file that states an older version than a section needs is raised to the current one.
    fn raise_version(&mut self, key: &KeyPath) -> Result<()> {
        let stated = values::find(&self.tree, &schema::key()).and_then(Value::as_integer);
        let is_old = stated.is_some_and(|stated| stated < i64::from(schema::needed_for(key)));
        if is_old { self.set(&schema::key(), &Value::from(i64::from(CURRENT_VERSION))) } else { Ok(()) }
    }

    fn last_entry_of(&self, header: &KeyPath) -> Option<Site> {
        let is_own = |site: &&Site| site.form == SiteForm::Entry && site.host == *header;
        self.outline.under(header).rfind(is_own).cloned()
    }

    fn exists(&self, key: &KeyPath) -> bool {
        self.outline.under(key).next().is_some()
    }

    fn refuse_pinned(&self, key: &KeyPath) -> Result<()> {
        if !outline::is_pinned(&self.text, &self.outline, key) {
            return Ok(());
        }
        self.refuse(key, "is marked `# pin`")
    }

    fn refuse<T>(&self, key: &KeyPath, why: &str) -> Result<T> {
        let near = key.upwards().find_map(|path| self.outline.line_of(&path));
        let message = format!("`{key}` {why}, so it was not changed");
        Err(Error::failed(at_line(self.path, near.unwrap_or(1), &message))
            .hint("change this line by hand if you want it"))
    }

    /// Replaces a piece of the text and reads the whole again.
    pub(super) fn splice(&mut self, range: Range<usize>, new: &str) -> Result<()> {
        self.text.replace_range(range, new);
        (self.outline, self.tree) = read(self.path, &self.text)?;
        Ok(())
    }
}

/// Where a new key goes.
enum KeyPlacement {
    Inline(Site),
    /// Below this line, as a dotted key like it.
    Beside(Site),
    /// Among the lines of this header.
    Section(Site),
    /// Among the lines before the first header.
    Root,
    /// Under a header of its own.
    Block,
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.is_empty())
}
