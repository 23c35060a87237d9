//! `# pin`: the mark by which a person keeps devboy's hands off a key.

use super::lines;
use super::outline::{Outline, Site};
use crate::base::key_path::KeyPath;

/// Whether the key, or a table that contains it, is marked; a list is also pinned by a mark inside it.
pub(super) fn is_pinned(text: &str, outline: &Outline, key: &KeyPath) -> bool {
    let is_list = outline.is_list(key);
    let above = key.upwards();
    let marked_above = above.into_iter().any(|path| outline.all_at(&path).any(|site| has_mark(text, site)));
    marked_above || (is_list && outline.under(key).any(|site| has_mark(text, site)))
}

/// Whether a mark stands on the key itself, above it, below it or inside it.
pub(super) fn touches_pin(text: &str, outline: &Outline, key: &KeyPath) -> bool {
    is_pinned(text, outline, key) || outline.under(key).any(|site| has_mark(text, site))
}

fn has_mark(text: &str, site: &Site) -> bool {
    let beside = lines::comment_after(text, site.value.end);
    let opening = opening_comment(text, site);
    let mut above = lines::comments_above(text, site.start).map(|range| &text[range]);
    beside.is_some_and(is_mark) || opening.is_some_and(is_mark) || above.any(is_mark)
}

/// The comment behind the opening bracket of a value of several lines.
fn opening_comment<'t>(text: &'t str, site: &Site) -> Option<&'t str> {
    let value = &text[site.value.clone()];
    let opens = value.starts_with(['[', '{']) && value.contains('\n');
    if opens { lines::comment_after(text, site.value.start + 1) } else { None }
}

fn is_mark(comment: &str) -> bool {
    let words = comment.trim_start().trim_start_matches('#').trim_start();
    let is_pin = words.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("pin"));
    is_pin && !words[3..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
}
