//! What the README and the page on pipelines show is what their commands print, of a made-up history and of `testdata`.

use super::harness::Home;
use super::report_page::{Told, place};

/// The outputs that the page on pipelines shows, in their order, each with its command.
const OF_PIPELINES: [&[&str]; 4] = [
    &["tune", "from-claude-logs", "--tools", "--dry-run", "--input-dir", "testdata/claude-home"],
    &["replay", "--input-dir", "testdata/claude-home"],
    &["tune", "analyze", "--from-claude-logs", "--dry-run", "--input-dir", "testdata/claude-home"],
    &["ingest", "--input-dir", "testdata/claude-home"],
];

/// Columns of the terminal that is shown.
const WIDTH: u16 = 100;

fn blocks(page: &'static str) -> Vec<Vec<&'static str>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.extend(language.is_empty().then_some(block));
        }
    }
    blocks
}

/// Whether a shown line is this one; behind `…` at its end anything may follow.
fn is(shown: &str, printed: &str) -> bool {
    let start = shown.strip_suffix('…').filter(|start| !start.trim().is_empty());
    shown == printed || start.is_some_and(|start| printed.starts_with(start))
}

/// Lines follow each other as they are printed; `…` on a line of its own stands for any number.
fn assert_shown(shown: &[&str], printed: &str, command: &[&str]) {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let (mut at, mut skips) = (0, false);
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

/// Three weeks of two projects: in one contexts grow far, in the other the model is changed in the middle.
fn made_up_weeks() -> Home {
    let home = Home::new();
    let (opus, sonnet) = ("claude-opus-5", "claude-sonnet-5");
    for day in 0..20 {
        let name = if day % 3 < 2 { "lantern" } else { "orchard" };
        let mut told = Told::new(&format!("{name}-{day}"), &format!("/home/user/{name}"), day * 86_400 + 32_400);
        if name == "lantern" {
            told.ask(opus, 0, 20_000, 800);
            (0..u64::from(34 + day * 7 % 9))
                .for_each(|turn| _ = told.ask_at_length(opus, 20_000 + turn * 12_000, 12_000));
        } else {
            let (held, turns) = (20_000 + 9_000 * u64::from(day), u64::from(day % 4));
            told.ask(opus, 0, held, 500);
            (0..turns).for_each(|turn| _ = told.ask(opus, held + turn * 1_000, 1_000, 500));
            let held = held + (turns + 1) * 1_000;
            told.ask(sonnet, 0, held, 500).ask(opus, 0, held + 1_000, 500);
        }
        told.text = told.text.replace("2.1.40", "2.1.288").replace("2026-01-", "2026-10-");
        place(&home, &told);
    }
    home
}

#[test]
fn the_readme_shows_the_page_of_a_made_up_history() {
    let blocks = blocks(include_str!("../../README.md"));
    assert_eq!(blocks.len(), 1, "the README shows one page");
    assert_shown(&blocks[0], &made_up_weeks().on_a_terminal(&[], WIDTH), &["devboy"]);
}

#[test]
fn the_page_on_pipelines_shows_what_its_commands_print() {
    let blocks = blocks(include_str!("../../docs/pipeline.md"));
    assert_eq!(blocks.len(), OF_PIPELINES.len(), "a block was added: add its command to OF_PIPELINES");
    for (shown, command) in blocks.iter().zip(OF_PIPELINES) {
        let home = Home::new();
        // As on a second run, with everything known.
        home.run(command);
        let plain = [command, &["--color", "never"]].concat();
        assert_shown(shown, &home.on_a_terminal(&plain, WIDTH), command);
    }
}
