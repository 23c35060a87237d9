//! The page of the levers: everything that can be set in Claude Code, and what devboy does with it.

use crate::base::data::Data;
use crate::base::error::Result;
use crate::settings::claude::levers::{Fate, Lever, Levers, Scope};

/// What can be set in Claude Code, as Markdown.
///
/// # Errors
/// If a file of levers does not fit.
pub fn documentation(data: &Data) -> Result<String> {
    let levers = Levers::load(data)?;
    let head = "\n## Levers of Claude Code\n\nWhat can be set in Claude Code about tokens, cache and cost \
                (`rules/levers/`), and what devboy does with it: a rule writes it where it pays, a hint is told and never \
                written, the rest is left alone. A client that does not know a lever ignores it at best, so it is \
                proposed only if every version seen in the last weeks does.\n";
    Ok(levers.all().fold(head.to_owned(), |out, lever| out + &section(lever)))
}

fn section(lever: &Lever) -> String {
    let fate = match lever.fate() {
        Fate::Rule(rule) => format!("rule {rule}"),
        Fate::Hint => "a hint".to_owned(),
        Fate::LeftAlone(reason) => format!("left alone: {reason}"),
    };
    let scopes: Vec<&str> = lever.scopes.iter().copied().map(Scope::key).collect();
    let mut lines = vec![
        format!("\n### {}\n\n{}\n", lever.name, lever.does),
        format!("- devboy: {fate}"),
        format!("- takes {}; default: {}", lever.takes(), lever.default_words()),
        format!("- {}, by {}", lever.place.key(), scopes.join(", ")),
        format!("- client versions: {}", lever.versions()),
    ];
    if !lever.gives_way_to.is_empty() {
        lines.push(format!("- gives way to {}", lever.gives_way_to.join(", ")));
    }
    lines.push(format!("- in a log: {}", lever.log));
    lines.push(format!("- source: {} [{}]\n", lever.source, lever.confidence.key()));
    lines.join("\n")
}
