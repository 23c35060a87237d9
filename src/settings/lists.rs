//! Changes to lists, element by element, so that one that stays keeps its place, its comments and the spelling of what
//! did not change. The elements of a list of tables (`follow_up`) are known by their `tool`.

use toml_edit::{InlineTable, Value};

use super::draft::DocumentDraft;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::settings::outline::Site;
use crate::settings::{lines, values};

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
pub(super) fn update_fields(draft: &mut DocumentDraft<'_>, list: &KeyPath, new: &Value) -> Result<()> {
    tables(new).into_iter().enumerate().try_for_each(|(position, fields)| {
        let element = list.child(position.to_string());
        fields.iter().try_for_each(|(field, value)| draft.set(&element.child(field), value))
    })
}

/// Brings a list that is written as `[[list]]` blocks to the new elements: those no longer wanted go, those that stay
/// are edited where they are, new ones come last.
pub(super) fn update_blocks(draft: &mut DocumentDraft<'_>, list: &KeyPath, new: &Value) -> Result<()> {
    let old = draft.get(list).unwrap_or_else(|| Value::Array(toml_edit::Array::new()));
    let mut wanted: Vec<_> = tables(new).into_iter().map(Some).collect();
    let kept: Vec<_> = tables(&old).into_iter().map(|table| take(&mut wanted, name(table))).collect();
    for position in (0..kept.len()).rev().filter(|position| kept[*position].is_none()) {
        draft.cut(&[&list.child(position.to_string())])?;
    }
    for (position, fields) in kept.into_iter().flatten().enumerate() {
        update_block(draft, &list.child(position.to_string()), fields)?;
    }
    let added: Vec<_> = wanted.into_iter().flatten().map(|table| Value::InlineTable(table.clone())).collect();
    draft.append_blocks(list, &Value::Array(added.into_iter().collect()))
}

/// Brings a list with one element per line to the new elements, line by line, so that the comments between and behind
/// the others stay. `false`: the list is written or changed in another way, and nothing was done.
pub(super) fn update_lines(draft: &mut DocumentDraft<'_>, site: &Site, list: &KeyPath, new: &Value) -> Result<bool> {
    let (Some(old), Some(new)) = (draft.get(list), new.as_array()) else { return Ok(false) };
    let old: Vec<_> = old.as_array().into_iter().flatten().cloned().collect();
    let is_kept = |value: &Value| new.iter().any(|wanted| values::same(value, wanted));
    let kept: Vec<_> = old.iter().filter(|value| is_kept(value)).collect();
    let keeps_order =
        !kept.is_empty() && kept.len() <= new.len() && kept.iter().zip(new).all(|(a, b)| values::same(a, b));
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

fn has_line_each(draft: &DocumentDraft<'_>, site: &Site, list: &KeyPath, length: usize) -> bool {
    let elements = || (0..length).filter_map(|position| draft.outline().at(&list.child(position.to_string())));
    let starts = elements().all(|element| lines::starts_line(draft.text(), element.start));
    let ends = elements().all(|element| lines::next(draft.text(), element.value.end) < site.value.end);
    starts && ends
}

fn append_line(draft: &mut DocumentDraft<'_>, last: &KeyPath, value: &Value) -> Result<()> {
    let Some(site) = draft.outline().at(last).cloned() else { return Ok(()) };
    let end = site.value.end;
    if !draft.text()[end..].trim_start().starts_with(',') {
        draft.splice(end..end, ",")?;
    }
    draft.insert_line(end, site.start, &format!("{},", values::spelled(value)))
}

fn update_block(draft: &mut DocumentDraft<'_>, block: &KeyPath, fields: &InlineTable) -> Result<()> {
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
