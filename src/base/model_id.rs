//! One spelling for the many ids under which the same model appears in logs, price lists and configurations.

/// The id as a profile variant spells it: `claude-sonnet-4.6` for `eu.anthropic.claude-sonnet-4-6-20260101-v1:0`. Every id
/// loses its vendor and its date; ids of Claude also lose release marks (`-v1:0`, `[1m]`, `-latest`), and their version follows
/// the family with a point: `claude-3-5-haiku-20241022` is `claude-haiku-3.5`.
pub fn normalise(id: &str) -> String {
    let id = id.trim().to_ascii_lowercase();
    let id = without_vendor(&id);
    match from_claude(id) {
        Some(claude) => claude_name(without_marks(claude, true)),
        None => without_marks(id, false).to_owned(),
    }
}

/// The family of a normalised id with its major version, and the minor one: `claude-fable-5` and 1 for `claude-fable-5.1`. None
/// without a minor version.
pub fn minor_version(normalised: &str) -> Option<(&str, u32)> {
    let (family, minor) = normalised.rsplit_once('.')?;
    Some((family, minor.parse().ok()?))
}

/// `openrouter/anthropic/claude-…`, `eu.anthropic.claude-…`: paths, then leading words before a point.
fn without_vendor(id: &str) -> &str {
    let mut id = id.rsplit_once('/').map_or(id, |(_, name)| name);
    while let Some((word, rest)) = id.split_once('.') {
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            break;
        }
        id = rest;
    }
    id
}

/// The part of the id that starts at the word `claude`, if it has one.
fn from_claude(id: &str) -> Option<&str> {
    let start = id.find("claude")?;
    let is_word = !id[..start].ends_with(|before: char| before.is_alphanumeric());
    let name = &id[start..];
    let ends = name["claude".len()..].chars().next();
    (is_word && ends.is_none_or(|next| !next.is_alphanumeric())).then_some(name)
}

/// Cuts marks off the end until none is left.
fn without_marks(id: &str, is_claude: bool) -> &str {
    let mut id = id;
    while let Some(shorter) = without_mark(id, is_claude) {
        id = shorter;
    }
    id
}

fn without_mark(id: &str, is_claude: bool) -> Option<&str> {
    let always = without_date(id).or_else(|| without_release(id)).or_else(|| without_at(id));
    if !is_claude {
        return always;
    }
    let variant = || id.rsplit_once(':').map(|(name, _)| name);
    let latest = || id.strip_suffix("-latest");
    let window = || id.rsplit_once('[').filter(|(_, mark)| mark.ends_with(']')).map(|(name, _)| name);
    let has_digit = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    let revision =
        || id.rsplit_once("-v").filter(|(name, digits)| is_number(digits) && has_digit(name)).map(|(name, _)| name);
    always.or_else(variant).or_else(latest).or_else(window).or_else(revision)
}

/// `-20250929` or `-2025-09-29`.
fn without_date(id: &str) -> Option<&str> {
    let compact = id.rsplit_once('-').filter(|(_, date)| is_date(date)).map(|(name, _)| name);
    compact.or_else(|| {
        let start = id.len().checked_sub("-2025-09-29".len())?;
        let (name, date) = (id.get(..start)?, id.get(start..)?);
        let shape = date.bytes().enumerate().all(|(at, byte)| (byte == b'-') == matches!(at, 0 | 5 | 8));
        (shape && is_date(&date.replace('-', ""))).then_some(name)
    })
}

/// `-v1:0`
fn without_release(id: &str) -> Option<&str> {
    let (name, release) = id.rsplit_once("-v")?;
    let (major, minor) = release.split_once(':')?;
    (is_number(major) && is_number(minor)).then_some(name)
}

/// `@20250929`, `@default`
fn without_at(id: &str) -> Option<&str> {
    id.rsplit_once('@').map(|(name, _)| name).filter(|name| !name.is_empty())
}

fn is_date(digits: &str) -> bool {
    let part = |range| digits.get(range).and_then(|part: &str| part.parse::<u32>().ok()).unwrap_or_default();
    let in_range =
        (2000..2100).contains(&part(0..4)) && (1..=12).contains(&part(4..6)) && (1..=31).contains(&part(6..8));
    digits.len() == 8 && is_number(digits) && in_range
}

/// Words first, then the version with points; a trailing `.0` says nothing.
fn claude_name(id: &str) -> String {
    let parts = id.split(['-', '.', '_']).filter(|part| !part.is_empty());
    let (numbers, words): (Vec<_>, Vec<_>) = parts.partition(|part| is_number(part) && part.len() <= 2);
    let numbers = if let [major, "0"] = numbers.as_slice() { vec![*major] } else { numbers };
    let (family, rest) = words.split_at(words.len().min(2));
    let version = numbers.join(".");
    let named = family.iter().copied().chain([version.as_str()]).chain(rest.iter().copied());
    named.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
