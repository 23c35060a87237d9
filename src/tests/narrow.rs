//! Lines on a terminal: none is wider than it, and no word is broken where that can be helped.

use std::io::Write as _;

use serde_json::json;

use super::harness::{Home, session};
use super::log_builder;
use super::report_page::{OPUS, Told, place};
use crate::report::table::{Table, TableFormat};
use crate::report::wrapped::Wrapped;

fn table() -> Table {
    let mut table = Table::new(&["tool", "#first", "#carried", "#per 1,000 calls", "verdict"]);
    for name in
        ["Read", "(system prompt and tool definitions)", "mcp__lantern_keeper__blink_twice_and_wait", "(thinking)"]
    {
        table.row([
            name.to_owned(),
            "$34.85".to_owned(),
            "[$0.59 … $2.01]".to_owned(),
            "$1,164.94".to_owned(),
            "may be chance".to_owned(),
        ]);
    }
    table
}

fn written(width: u16) -> String {
    let mut out = Vec::new();
    table().write(&mut out, TableFormat::Table, Some(width)).unwrap();
    String::from_utf8(out).unwrap()
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
}

#[test]
fn a_table_is_as_narrow_as_the_terminal_and_breaks_no_word() {
    for width in 30..200 {
        let out = written(width);
        assert!(widest(&out) <= width.into(), "{width}: {}\n{out}", widest(&out));
        // Below that names are cut.
        if width >= 58 {
            let words =
                ["Read", "(system", "definitions)", "(thinking)", "$1,164.94", "$34.85", "chance", "blink_", "carried"];
            words.iter().for_each(|word| assert!(out.contains(word), "{width}: {word} is broken\n{out}"));
        }
        if width >= 58 {
            assert!(out.contains("[$0.59 … $2.01]"), "{width}: there is room for numbers\n{out}");
        }
    }
    assert!(written(120).contains('│') && !written(50).contains('│'));
    let lines = |width| written(width).lines().count();
    assert!(lines(200) < lines(80) && lines(80) <= lines(50));
}

/// Numbers stand there in full; a name that leaves no room is cut.
#[test]
fn wide_letters_and_empty_cells_are_no_trouble() {
    let mut table = Table::new(&["a", "#b"]);
    table.row(["".to_owned(), "".to_owned()]);
    table.row(["x".repeat(300), "1".repeat(40)]);
    for width in [1, 2, 5, 20, 60] {
        let mut out = Vec::new();
        table.write(&mut out, TableFormat::Table, Some(width)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('1').count(), 40, "{width}: {text}");
        assert!(text.contains('…') && text.matches('x').count() < usize::from(width), "{width}: {text}");
        assert!(width < 5 || widest(&text) <= width.into(), "{width}: {text}");
    }
}

#[test]
fn names_are_cut_before_numbers_are_broken() {
    let mut table = Table::new(&["tool", "#calls", "#tokens"]);
    table.row(["mcplanternkeeper".to_owned(), "10,168".to_owned(), "5,966,915".to_owned()]);
    let at = |width: Option<u16>| {
        let mut out = Vec::new();
        table.write(&mut out, TableFormat::Table, width).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(at(Some(30)), " tool         calls     tokens\n mcpla…eper  10,168  5,966,915\n");
    assert_eq!(at(Some(26)), " mcplanternkeeper\n   calls 10,168;\n   tokens 5,966,915\n");
    assert!(at(None).contains("mcplanternkeeper  10,168"));
}

/// A letter of Chinese, Japanese or Korean is as wide as two others, an accent of its own as none.
#[test]
fn columns_stand_under_each_other_beside_wide_letters() {
    let mut table = Table::new(&["project", "#calls"]);
    table.row(["日本語".to_owned(), "1".to_owned()]);
    table.row(["cafe\u{301}".to_owned(), "10".to_owned()]);
    let at = |width: Option<u16>| {
        let mut out = Vec::new();
        table.write(&mut out, TableFormat::Table, width).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(at(None), " project  calls\n 日本語       1\n cafe\u{301}        10\n");
    let mut long = Table::new(&["project", "#calls", "#tokens"]);
    long.row(["日本語の長い名前".to_owned(), "10,168".to_owned(), "5,966,915".to_owned()]);
    let mut out = Vec::new();
    long.write(&mut out, TableFormat::Table, Some(30)).unwrap();
    let cut = " project      calls     tokens\n 日本…名前   10,168  5,966,915\n";
    assert_eq!(String::from_utf8(out).unwrap(), cut);
    assert_eq!(through("日本語 の 長い 名前 です 日本語\n", Some(24)), "日本語 の 長い 名前 です\n日本語\n");
}

fn through(text: &str, width: Option<u16>) -> String {
    let mut out = Vec::new();
    let mut wrapped = Wrapped::new(&mut out, width);
    // However the text comes in.
    text.as_bytes().chunks(7).for_each(|piece| wrapped.write_all(piece).unwrap());
    wrapped.flush().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn long_lines_are_wrapped_on_a_terminal_and_nowhere_else() {
    let text = "one two three four five six seven eight\n  - a bullet whose words go on and on\n# a note whose words go on and on\n\
                ok    config    a file that is not there yet\nhint: `devboy pool --rows` says it\nno end";
    assert_eq!(through(text, None), text);
    assert_eq!(
        through(text, Some(32)),
        "one two three four five six\nseven eight\n  - a bullet whose words go on\n    and on\n# a note whose words go on and\n# on\n\
         ok    config    a file that is not there yet\nhint: `devboy pool --rows` says\nit\nno end"
    );
    assert!(through(text, Some(40)).contains("\nok    config    a file that is not there\n                yet\n"));
    // What is copied, and what stands in columns.
    let kept = "--- a file\n+++ a file with a name that is long\n@@ -1 +1 @@\n-key = \"a value that goes on and on\"\n\
                a     b     c     d     e     f     g\n";
    assert_eq!(through(kept, Some(24)), kept);
}

/// Notes and reports alike, and what programs read stays as it is.
#[test]
fn prose_of_commands_fits_the_terminal() {
    let home = Home::new();
    home.write(".claude/projects/-home-u-lantern/one.jsonl", session("one", 40));
    for words in ["replay", "ingest", "what-if all", "mine fields", "mine projections --explain", "planner"] {
        let out = home.out_at_width(&words.split(' ').collect::<Vec<_>>(), 60);
        assert!(widest(&out) <= 60, "{words}: {}\n{out}", widest(&out));
    }
    for words in [&["replay", "--json", "--reproducible"][..], &["replay", "--format", "csv"], &["tune", "show"]] {
        assert_eq!(home.out_at_width(words, 40), home.run(words).out, "{words:?}");
    }
}

#[test]
fn pages_and_costs_fit_the_terminal() {
    let home = Home::new();
    for number in 0..12 {
        let mut told = Told::new(&format!("n-{number}"), "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 40_000, 500).call(
            OPUS,
            (40_000, 1_000, 50),
            "mcp__lantern_keeper__blink_twice",
            json!("it blinks"),
        );
        told.ask("claude-sonnet-4-5-20250929", 0, 42_000, 500).ask(OPUS, 0, 43_500, 500).ask(OPUS, 43_500, 900, 500);
        place(&home, &told);
    }
    home.run(&[]);
    for width in [80, 200] {
        for words in
            [&[][..], &["report", "--explain"], &["report", "--finding", "miss_model_swap"], &["cost", "--by", "tool"]]
        {
            let outcome = home.run_at_width(words, width);
            let out = outcome.out + &outcome.err;
            assert!(widest(&out) <= width.into(), "{words:?} at {width}: {}\n{out}", widest(&out));
            let broken = ["definit", "think"].iter().any(|start| {
                out.lines().any(|line| line.split([' ', '│', '┆']).any(|word| word.trim_start_matches('(') == *start))
            });
            assert!(!broken, "{words:?} at {width}: {out}");
        }
    }
}

/// Bars stand above each other, however many requests there are.
#[test]
fn the_drawing_of_a_session_is_no_wider_than_the_terminal() {
    let home = Home::new();
    let mut records = vec![log_builder::user("p", "go on")];
    for number in 0..100_u32 {
        let (message, call) = (format!("m{number}"), format!("c{number}"));
        records.push(log_builder::asks(&message, &call, "Read").at(2 * number + 1));
        records.push(log_builder::answers(&call, "one").at(2 * number + 2));
    }
    home.write(".claude/projects/p/s.jsonl", log_builder::log(&records));
    for (width, room) in [(40, 30), (60, 50), (80, 70), (200, 72)] {
        let out = home.run_at_width(&["session"], width).out;
        let rows: Vec<&str> = out.lines().filter(|line| line.contains('█')).collect();
        let is_whole = |row: &&str| row.chars().count() == 10 + room && row.matches('█').count() == room;
        assert!(rows.len() == 6 && rows.iter().all(is_whole), "{width}: {out}");
    }
}
