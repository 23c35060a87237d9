//! A link in the words of a configuration: one name for what to take, and one argument.

use std::collections::BTreeSet;

use crate::base::names::Sym;
use crate::frames::projection::{MinedProjection, Spelling};
use crate::mine::projections::verdicts::Combination;
use crate::mine::projections::{Thresholds, ToldHistory};

/// Values that the runtime takes (published: the planner projects at most three).
const TAKEN_MAX: usize = 3;

/// How the link is written; none if its argument is nested, which a configuration cannot say.
pub(super) fn of(
    told: ToldHistory<'_>,
    thresholds: &Thresholds,
    row: &MinedProjection,
    from: Sym,
    cell: &Combination,
) -> Option<Spelling> {
    if row.argument.contains(['.', '[', '*']) {
        return None;
    }
    let projection = match row.extractor.strip_prefix('$') {
        Some(_) => json(told, thresholds, row, from, cell)?,
        None if row.extractor == "path" => thresholds.path_names.get(&row.from).cloned().unwrap_or("path".to_owned()),
        None => row.extractor.clone(),
    };
    Some(Spelling { projection, projection_arg: row.argument.clone() })
}

/// The bare key where a walk by it finds as much as the path does, since the published runtime walks; else the path.
fn json(
    told: ToldHistory<'_>,
    thresholds: &Thresholds,
    row: &MinedProjection,
    from: Sym,
    cell: &Combination,
) -> Option<String> {
    let key = last_key(&row.extractor)?;
    let calls = 0..told.history.calls.len();
    let lists = calls.filter(|call| told.history.calls[*call].tool == from).flat_map(|call| told.values.lists(call));
    let extractors: BTreeSet<Sym> = lists.map(|(list, _)| list.extractor).collect();
    let paths = extractors.into_iter().map(|sym| told.values.names.text(sym));
    let is_only = paths.filter(|path| last_key(path) == Some(key)).count() == 1;
    if is_only {
        return Some(key.to_owned());
    }
    let count = |taken: &dyn Fn(usize) -> Vec<u64>| {
        cell.hits.iter().filter(|hit| taken(hit.answer).iter().any(|value| hit.values.contains(value))).count() as f64
    };
    let by_path = count(&|answer| walk(told, answer, |path| path == row.extractor));
    let by_key = count(&|answer| walk(told, answer, |path| last_key(path) == Some(key)));
    Some(if by_key >= thresholds.bare_share_min * by_path { key.to_owned() } else { row.extractor.clone() })
}

/// The first values of the lists chosen, taken in turn: in a list of objects, that is the order of the document.
fn walk(told: ToldHistory<'_>, answer: usize, chosen: impl Fn(&str) -> bool) -> Vec<u64> {
    let lists = told.values.lists(answer).filter(|(list, _)| chosen(told.values.names.text(list.extractor)));
    let lists: Vec<_> = lists.map(|(_, values)| values).collect();
    let turn = |index: usize| lists.iter().filter_map(move |values| values.get(index)).map(|listed| listed.value);
    (0..TAKEN_MAX).flat_map(turn).take(TAKEN_MAX).collect()
}

/// `$.data.issues[].id` ends with `id`; a path that ends with a key that was not kept ends with nothing.
fn last_key(path: &str) -> Option<&str> {
    let key = path.rsplit('.').next()?.trim_end_matches("[]");
    (path.starts_with("$") && !matches!(key, "$" | "*")).then_some(key)
}
