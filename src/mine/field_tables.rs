//! Fields of JSON answers as tables and listings.

use crate::base::listing::{Columns, Listing};
use crate::base::stats::Share;
use crate::mine::fields::{FieldUse, FieldUses, GroupNumbers, ToolFields};
use crate::report::numbers::{counted, known, percent, thousands};
use crate::report::table::{Table, TableBuilder};

/// All columns of tools.
pub fn tools(rows: &[ToolFields]) -> Listing {
    Columns::of(rows)
        .text("tool", |row| row.tool.clone())
        .count("answers", |row| row.answers)
        .count("responses", |row| row.responses)
        .count("sessions", |row| row.sessions)
        .count("fields", |row| row.fields)
        .count("followed", |row| row.followed)
        .count("used", |row| row.used)
        .share(["used_share", "used_share_lower", "used_share_upper"], |row| row.share().known())
        .count("tokens", |row| row.tokens)
        .count("tokens_used", |row| row.tokens_used)
        .count("tokens_unused", |row| row.tokens_unused)
        .count("tokens_not_followed", |row| row.tokens_not_followed)
        .finish()
}

/// All columns of fields.
pub fn fields(rows: &[FieldUse], numbers: &GroupNumbers) -> Listing {
    Columns::of(rows)
        .text("tool", |row| row.tool.clone())
        .text("field", |row| row.field.clone())
        .count("responses", |row| row.responses)
        .count("sessions", |row| row.sessions)
        .count("followed", |row| row.followed)
        .count("sessions_followed", |row| row.sessions_followed)
        .count("used", |row| row.used)
        .share(["used_share", "used_share_lower", "used_share_upper"], |row| row.share().known())
        .count("in_arguments", |row| row.in_arguments)
        .count("in_edits", |row| row.in_edits)
        .count("in_texts", |row| row.in_texts)
        .count("tokens", |row| row.tokens)
        .count("tokens_unused", |row| row.tokens_unused)
        .text("group", |row| numbers.group(row).map_or("", |worth| worth.into_str()).to_owned())
        .finish()
}

/// "12.3 % (10.1–15.0 %)"; a dash where nothing was followed.
fn interval(share: &Share) -> String {
    if share.n == 0 {
        return "–".to_owned();
    }
    let ends = [share.lower, share.upper].map(|end| format!("{:.1}", 100.0 * end));
    format!("{} ({})", percent(share.value()), ends.join("–"))
}

/// Tools for people.
pub fn tools_overview(rows: &[ToolFields]) -> Table {
    TableBuilder::of(rows)
        .text("tool", |row| row.tool.clone())
        .number("JSON answers", |row| format!("{} of {}", thousands(row.responses), thousands(row.answers)))
        .count("sessions", |row| row.sessions)
        .count("fields", |row| row.fields)
        .number("used (95 %)", |row| interval(&row.share()))
        .count("tokens", |row| row.tokens)
        .count("of unused fields", |row| row.tokens_unused)
        .count("not followed", |row| row.tokens_not_followed)
        .table()
}

/// Fields for people.
pub fn fields_overview(rows: &[FieldUse], numbers: &GroupNumbers) -> Table {
    TableBuilder::of(rows)
        .text("tool", |row| row.tool.clone())
        .text("field", |row| row.field.clone())
        .count("answers", |row| row.responses)
        .count("sessions", |row| row.sessions)
        .count("followed", |row| row.followed)
        .number("used (95 %)", |row| interval(&row.share()))
        .count("tokens", |row| row.tokens)
        .count("unused", |row| row.tokens_unused)
        .text("group", |row| numbers.group(row).map_or("–", |worth| worth.into_str()).to_owned())
        .table()
}

/// How many answers are JSON at all, and what became of their tokens: the lines above the tables.
pub fn summary(uses: &FieldUses) -> Vec<String> {
    let sum = |of: fn(&ToolFields) -> u64| uses.tools.iter().map(of).sum::<u64>();
    let (responses, tokens, unused) = (sum(|row| row.responses), sum(|row| row.tokens), sum(|row| row.tokens_unused));
    let share = Share::new(sum(|row| row.used), sum(|row| row.followed));
    let of_all = known((uses.answers > 0).then(|| responses as f64 / uses.answers as f64), percent);
    let first = format!(
        "{} of {} ({of_all}) are JSON, of {}: {}.",
        thousands(responses),
        counted(uses.answers, "answer"),
        counted(uses.tools.len() as u64, "tool"),
        counted(tokens, "token"),
    );
    if responses == 0 {
        return vec![first];
    }
    let second = format!(
        "Of {} with a value that can be followed, {} had one that the model wrote again later: {}. The others hold {}.",
        counted(share.n, "field"),
        thousands(share.k),
        interval(&share),
        counted(unused, "token"),
    );
    vec![first, second]
}

/// What the words of the tables mean, for who asks for it.
pub fn legend(numbers: &GroupNumbers) -> Vec<String> {
    vec![
        "A field is used in an answer if the model wrote one of its values later: in an argument, an edit or a text.".into(),
        "Followed are values that say where they are from (ids, paths, addresses, names with signs or mixed case, numbers of \
         three digits). Texts, single words, yes and no are not: they may be read without being repeated."
            .into(),
        "What the model or a person had written before the answer is an echo and not followed.".into(),
        "Short numbers and common names may be met again by chance, so that a share is more likely too high than too low.".into(),
        format!(
            "A group is given from {} answers in {} sessions on (rules/t2_fields.toml).",
            numbers.responses_min, numbers.sessions_min
        ),
    ]
}
