//! Changes to lists, element by element, so that one that stays keeps its place, its comments and the spelling of what
//! did not change. The elements of a list of tables (`follow_up`) are known by their `tool`.
//!
//! Takes keys out of an inline table: the comma that goes with each, or the whole line where each has its own.

use std::ops::Range;

use toml_edit::{InlineTable, Value};

use super::draft::Draft;
use super::spell;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::settings::outline;
use crate::settings::outline::Site;

/// The field that names an element.
const NAME: &str = "tool";

/// Whether both lists name the same elements in the same order, and no field was taken away.
pub(super) fn differ_in_fields_only(old: &Value, new: &Value) -> bool {
    let (old, new) = (tables(old), tables(new));
    let keeps = |old: &InlineTable, new: &InlineTable| old.iter().all(|(field, _)| new.contains_key(field));
    let matches = |(old, new): (&&InlineTable, &&InlineTable)| name(old) == name(new) && keeps(old, new);
    !old.is_empty() && old.len() == new.len() && old.iter().zip(&new).all(matches)
}

/// Sets the fields of every element in place.
pub(super) fn update_fields(draft: &mut Draft<'_>, list: &KeyPath, new: &Value) -> Result<()> {
    tables(new).into_iter().enumerate().try_for_each(|(position, fields)| {
        let element = list.child(position.to_string());
        fields.iter().try_for_each(|(field, value)| draft.set(&element.child(field), value))
    })
}

/// Brings a list that is written as `[[list]]` blocks to the new elements: those no longer wanted go, those that stay
/// are edited where they are, new ones come last.
pub(super) fn update_blocks(draft: &mut Draft<'_>, list: &KeyPath, new: &Value) -> Result<()> {
    let old = draft.get(list).unwrap_or_else(|| Value::Array(toml_edit::Array::new()));
    let mut wanted: Vec<_> = tables(new).into_iter().map(Some).collect();
    let kept: Vec<_> = tables(&old).into_iter().map(|table| take(&mut wanted, name(table))).collect();
    for position in (0..kept.len()).rev().filter(|position| kept[*position].is_none()) {
        draft.remove_block(&list.child(position.to_string()))?;
    }
    for (position, fields) in kept.into_iter().flatten().enumerate() {
        update_block(draft, &list.child(position.to_string()), fields)?;
    }
    let added: Vec<_> = wanted.into_iter().flatten().map(|table| Value::InlineTable(table.clone())).collect();
    draft.append_blocks(list, &Value::Array(added.into_iter().collect()))
}

/// Brings a list with one element per line to the new elements, line by line, so that the comments between and behind
/// the others stay. `false`: the list is written or changed in another way, and nothing was done.
pub(super) fn update_lines(draft: &mut Draft<'_>, site: &Site, list: &KeyPath, new: &Value) -> Result<bool> {
    let (Some(old), Some(new)) = (draft.get(list), new.as_array()) else { return Ok(false) };
    let old: Vec<_> = old.as_array().into_iter().flatten().cloned().collect();
    let is_kept = |value: &Value| new.iter().any(|wanted| spell::same(value, wanted));
    let kept: Vec<_> = old.iter().filter(|value| is_kept(value)).collect();
    let keeps_order =
        !kept.is_empty() && kept.len() <= new.len() && kept.iter().zip(new).all(|(a, b)| spell::same(a, b));
    if !keeps_order || !has_line_each(draft, site, list, old.len()) {
        return Ok(false);
    }
    let gone: Vec<_> = (0..old.len()).rev().filter(|position| !is_kept(&old[*position])).collect();
    gone.iter().try_for_each(|position| draft.remove_lines(&list.child(position.to_string())))?;
    new.iter()
        .skip(kept.len())
        .enumerate()
        .try_for_each(|(nth, value)| append_line(draft, &list.child((kept.len() + nth - 1).to_string()), value))?;
    Ok(true)
}

fn has_line_each(draft: &Draft<'_>, site: &Site, list: &KeyPath, length: usize) -> bool {
    let elements = || (0..length).filter_map(|position| draft.outline().at(&list.child(position.to_string())));
    let starts = elements().all(|element| outline::starts_line(draft.text(), element.start));
    let ends = elements().all(|element| outline::next(draft.text(), element.value.end) < site.value.end);
    starts && ends
}

fn append_line(draft: &mut Draft<'_>, last: &KeyPath, value: &Value) -> Result<()> {
    let Some(site) = draft.outline().at(last).cloned() else { return Ok(()) };
    let end = site.value.end;
    if !draft.text()[end..].trim_start().starts_with(',') {
        draft.splice(end..end, ",")?;
    }
    draft.insert_line(end, site.start, &format!("{},", spell::value(value)))
}

fn update_block(draft: &mut Draft<'_>, block: &KeyPath, fields: &InlineTable) -> Result<()> {
    let old = draft.get(block).unwrap_or_else(|| Value::InlineTable(InlineTable::new()));
    for (field, _) in old.as_inline_table().into_iter().flatten().filter(|(field, _)| !fields.contains_key(field)) {
        draft.remove_lines(&block.child(field))?;
    }
    fields.iter().try_for_each(|(field, value)| draft.set(&block.child(field), value))
}

fn take<'t>(wanted: &mut [Option<&'t InlineTable>], wanted_name: Option<&str>) -> Option<&'t InlineTable> {
    wanted.iter_mut().find(|table| table.is_some_and(|table| name(table) == wanted_name))?.take()
}

fn tables(list: &Value) -> Vec<&InlineTable> {
    list.as_array().into_iter().flatten().filter_map(Value::as_inline_table).collect()
}

fn name(table: &InlineTable) -> Option<&str> {
    table.get(NAME)?.as_str()
}

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
            return outline::start(self.text, pair.start)..outline::next(self.text, pair.end);
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
        outline::starts_line(self.text, pair.start) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    }

    fn rest_of_line(&self, pair: &Range<usize>) -> &str {
        &self.text[pair.end..outline::next(self.text, pair.end)]
    }
}

/// Where each `key = value` stands. A site of a dotted key starts at the last of its names, so the start is found from
/// what stands before it: the end of the pair before, or the start of the line.
fn ranges(text: &str, inside_start: usize, own: &[(&Site, bool)]) -> Vec<Range<usize>> {
    let mut floor = inside_start;
    let range = |(site, _): &(&Site, bool)| {
        let before = text[floor.max(outline::start(text, site.start))..site.start].trim_start();
        let names = before.strip_prefix(',').unwrap_or(before).trim_start();
        floor = site.value.end;
        site.start - names.len()..site.value.end
    };
    own.iter().map(range).collect()
}
