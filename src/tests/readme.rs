//! What the README shows is what its commands print on the logs in `testdata`.

use super::harness::Home;
use crate::shell::arguments::Exit;

const README: &str = include_str!("../../README.md");

/// The shown outputs in their order, each with its command.
const SHOWN: [&[&str]; 5] = [
    &["report", "--input-dir", "testdata/claude-home"],
    &["tune", "from-claude-logs", "--tools", "--dry-run", "--input-dir", "testdata/claude-home"],
    &["replay", "--input-dir", "testdata/claude-home"],
    &["tune", "analyze", "--from-claude-logs", "--dry-run", "--input-dir", "testdata/claude-home"],
    &["ingest", "--input-dir", "testdata/claude-home"],
];

/// Columns of the terminal that the README shows.
const WIDTH: u16 = 100;

fn blocks() -> Vec<Vec<&'static str>> {
    let mut blocks = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.extend(language.is_empty().then_some(block));
        }
    }
    blocks
}

/// Whether a shown line is this one; behind `…` anything may follow.
fn is(shown: &str, printed: &str) -> bool {
    let start = shown.split('…').next().unwrap_or_default();
    shown == printed || shown.contains('…') && !start.trim().is_empty() && printed.starts_with(start)
}

/// Lines follow each other as they are printed; `…` on a line of its own stands for any number.
fn assert_shown(shown: &[&str], printed: &str, command: &[&str]) {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let (mut at, mut skips) = (0, true);
    for line in shown {
        if line.trim() == "…" {
            skips = true;
            continue;
        }
        let found = printed[at..].iter().position(|printed| is(line, printed));
        let near = printed[at..].iter().take(6).copied().collect::<Vec<_>>().join("\n");
        let Some(found) = found else { panic!("{command:?} does not print\n{line}\nbut goes on with\n{near}") };
        assert!(skips || found == 0, "{command:?} prints before\n{line}\nalso\n{near}");
        (at, skips) = (at + found + 1, false);
    }
}

#[test]
fn the_readme_shows_what_its_commands_print() {
    let blocks = blocks();
    assert_eq!(blocks.len(), SHOWN.len(), "a block was added to the README: add its command to SHOWN");
    for (shown, command) in blocks.iter().zip(SHOWN) {
        let home = Home::new();
        // As on a second run, with everything known.
        home.run(command);
        let outcome = home.run_at_width(command, WIDTH);
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        let home = home.path("").to_str().unwrap().trim_end_matches('/').to_owned();
        // On a terminal, the head goes out before the report and the last note behind it.
        let (head, last) = outcome.err.trim_end().rsplit_once('\n').unwrap_or_default();
        let printed = format!("{head}\n{}{last}\n", outcome.out).replace(&home, "~");
        let printed = printed.trim_start_matches('\n');
        assert_shown(shown, printed, command);
    }
}
