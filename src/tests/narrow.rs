//! Lines on a terminal: none is wider than it, and no word is broken where that can be helped.

use serde_json::json;

use super::harness::Home;
use super::report_page::{OPUS, Told, place};
use crate::report::table::{Table, TableFormat};

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
        if width >= 50 {
            let words =
                ["Read", "(system", "definitions)", "(thinking)", "$1,164.94", "$34.85", "chance", "blink_", "carried"];
            words.iter().for_each(|word| assert!(out.contains(word), "{width}: {word} is broken\n{out}"));
        }
        if width >= 75 {
            assert!(out.contains("[$0.59 … $2.01]"), "{width}: there is room for numbers\n{out}");
        }
    }
    assert!(written(120).contains('│') && !written(50).contains('│'));
    let lines = |width| written(width).lines().count();
    assert!(lines(200) < lines(80) && lines(80) <= lines(50));
}

/// Nothing is lost: without blanks every cell stands there, line by line.
#[test]
fn wide_letters_and_empty_cells_are_no_trouble() {
    let mut table = Table::new(&["a", "#b"]);
    table.row(["".to_owned(), "".to_owned()]);
    table.row(["x".repeat(300), "1".repeat(40)]);
    for width in [1, 2, 5, 20, 60] {
        let mut out = Vec::new();
        table.write(&mut out, TableFormat::Table, Some(width)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!((text.matches('x').count(), text.matches('1').count()), (300, 40), "{width}: {text}");
        assert!(width < 5 || widest(&text) <= width.into(), "{width}: {text}");
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
