//! The formats for text bodies: what is ordinary is written shorter, what is hostile is left alone, nothing is lost.

use std::fmt::Write;

use proptest::prelude::*;
use proptest::sample::select;

use crate::facts::encode::{EncodeAttempt, Format, Params, REGISTER, Subject, attempt};
use crate::facts::markdown::{Document, MarkdownPart};
use crate::facts::numbered;
use crate::facts::shape::classify;
use crate::tests::log_builder::cases;

const KNOBS: Params = Params { recursion_depth: 3, numbered_every: 10 };
const TEXT_FORMATS: [&str; 4] = ["csv_from_md", "numbered_compact", "grouped_paths", "named_strings"];

fn format(id: &str) -> &'static Format {
    REGISTER.iter().find(|format| format.id == id).expect("a registered format")
}

/// What a format writes; a text that does not read back is a failure.
fn written(id: &str, body: &str) -> Option<String> {
    match attempt(format(id), &Subject::new(body, classify(body.as_bytes())), KNOBS) {
        EncodeAttempt::Proven(text) => Some(text),
        EncodeAttempt::Refused => None,
        EncodeAttempt::Unproven => panic!("{id} loses something of {body:?}"),
    }
}

fn assert_written(id: &str, body: &str, expected: &str) {
    assert_eq!(written(id, body).as_deref(), Some(expected), "{id} of {body:?}");
}

// Markdown.

#[test]
fn one_table_is_plain_csv() {
    let table = "| id | name | status |\n|----|------|--------|\n| 1 | a | ok |";
    assert_written("csv_from_md", table, "id,name,status\n1,a,ok\n");
    assert_written("csv_from_md", &format!("{table}\n"), "id,name,status\n1,a,ok\n");
    assert_written("csv_from_md", "| a |\n|---|\n", "a\n");
    assert_written("csv_from_md", "| a |\n|---|\n|  |\n", "a\n\n");
}

#[test]
fn cells_keep_what_csv_and_markdown_have_marks_for() {
    let table = "|  a \\| b | say \"x\" |\n| --- | --- |\n| 1,5 | `p\\|q` |\n| ünï | \\\\ |\n";
    assert_written("csv_from_md", table, "a | b,\"say \"\"x\"\"\"\n\"1,5\",`p|q`\nünï,\\\\\n");
}

#[test]
fn text_around_tables_stays() {
    let body = "# Title\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\nBetween.\n| c |\n|:-:|\n| 3 |\n\nEnd";
    let expected = "# Title\n\n```csv\na,b\n1,2\n```\n\nBetween.\n```csv c\nc\n3\n```\n\nEnd";
    assert_written("csv_from_md", body, expected);
    assert_written("csv_from_md", "| a | b | c |\n|:--|---|--:|\n", "```csv l-r\na,b,c\n```\n");
}

#[test]
fn fences_are_longer_than_those_of_the_body() {
    let body = "```csv\nx,y\n```\n\n| ````a | b |\n|---|---|\n| 1 | 2 |\n";
    let expected = "```csv\nx,y\n```\n\n`````csv\n````a,b\n1,2\n`````\n";
    assert_written("csv_from_md", body, expected);
    assert_written("csv_from_md", "| ```csv |\n|---|\n| 1 |\n", "````csv\n```csv\n1\n````\n");
}

#[test]
fn tables_that_could_not_be_written_back_stay() {
    for body in [
        "| a | b |\n|---|---|\n| 1 |\n",
        "| a | b |\n|---|---|\n| 1 | 2 | 3 |\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\nlazy\n",
        "| a | b |\r\n|---|---|\r\n| 1 | 2 |\r\n",
        "a | b\n--|--\n1 | 2\n",
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n",
        "> | a | b |\n> |---|---|\n> | 1 | 2 |\n",
        "- x\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |\n",
        "    | a | b |\n    |---|---|\n    | 1 | 2 |\n",
        "<div>\n| a | b |\n|---|---|\n</div>\n",
        "| a | b |\n\n|---|---|\n",
    ] {
        assert_eq!(Document::parse(body).parts, [MarkdownPart::Text(body.to_owned())], "{body:?}");
        assert_eq!(written("csv_from_md", body), None, "{body:?}");
    }
}

#[test]
fn layout_is_no_difference_and_everything_else_is() {
    let document = Document::parse("x\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
    assert_eq!(Document::parse("x\n\n|a  |b|\n|:-:|-|\n|1|2|").parts.len(), 2);
    assert_eq!(document, Document::parse("x\n\n|  a|b  |\n|-|------|\n|1| 2 |"));
    for other in [
        "x\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n",
        "x\n\n| a | b |\n|---|---|\n| 1 | 3 |\n",
        "x \n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "x\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    ] {
        assert_ne!(document, Document::parse(other), "{other:?}");
    }
}

#[test]
fn tight_is_without_the_padding_of_tables() {
    let padded = "x\n\n|  a    | b \\| c |\n|:------|--------|\n|  1    |        |\n";
    let document = Document::parse(padded);
    assert_eq!(document.tight(), "x\n\n| a | b \\| c |\n| :-- | --- |\n| 1 |  |\n");
    assert_eq!(Document::parse(&document.tight()), document);
}

#[test]
fn long_monotonous_bodies_lose_nothing() {
    let rows = "| some | cells \\| here |\n".repeat(1_000);
    assert!(written("csv_from_md", &format!("| a | b |\n|---|---|\n{rows}")).is_some());
    for hostile in ["[", "*", "|", "- ", "1→", "1:", "a-1-", "a:1:", "/a", "a/", "$a", "a/b:1:\n", "1-\n", "1→\n", "\n"]
    {
        let body = hostile.repeat(16_000 / hostile.len());
        for id in TEXT_FORMATS {
            written(id, &body);
        }
    }
}

// Numbered lines.

#[test]
fn numbers_are_written_where_they_do_not_follow() {
    let body = "     8→fn main() {\n     9→    work();\n    10→}\n    11→\n    12→// x\n    20→a\n    21→b";
    assert_written("numbered_compact", body, "     8→fn main() {\n    work();\n10→}\n\n// x\n20→a\nb");
    let tabs = "98\tx\n99\t\ty\n100\tz\n101\tw\n";
    assert_written("numbered_compact", tabs, "[→ stands for a tab]\n98→x\n\ty\n100→z\nw\n");
}

#[test]
fn text_after_numbered_lines_is_marked() {
    let body = "Read 2 lines\n  1→a\n  2→b\n\n<note>\n  7→c\n  8→d\nmore\n";
    assert_written("numbered_compact", body, "Read 2 lines\n  1→a\nb\n[end]\n\n<note>\n  7→c\nd\n[end]\nmore\n");
}

#[test]
fn lines_that_look_like_marks_keep_their_numbers() {
    let body = "1→a\n2→[end]\n3→ 7→x\n4→[end] \n5→";
    assert_written("numbered_compact", body, "1→a\n2→[end]\n3→ 7→x\n[end] \n5→");
    let widths = "   9→a\n  10→b\n11→c\n12→d\n 007→e\n 008→f\n";
    assert_written("numbered_compact", widths, "   9→a\n10→b\n[end]\n11→c\nd\n 007→e\n008→f\n");
}

#[test]
fn bodies_without_a_sequence_are_refused() {
    for body in ["", "1→a", "1→a\n3→b\n", "1. a\n2. b\n", "fn main() {}\n"] {
        assert_eq!(written("numbered_compact", body), None, "{body:?}");
        assert_eq!(numbered::lines(body), None, "{body:?}");
    }
}

#[test]
fn numbered_lines_know_where_they_are() {
    let body = "head\n  7→a\r\n  8→\nx";
    let lines = numbered::lines(body).expect("two lines in sequence");
    let seen: Vec<_> = lines.into_iter().map(|(number, span)| (number, &body[span])).collect();
    assert_eq!(seen, [(7, "  7→a\r"), (8, "  8→")]);
    let texts: Vec<_> = seen.iter().filter_map(|(_, line)| Some(numbered::split(line)?.1)).collect();
    assert_eq!(texts, ["a\r", ""]);
}

// Search hits and path lists.

#[test]
fn hits_stand_below_their_path() {
    let body =
        "src/a.rs:1:use x;\nsrc/a.rs-2-\nsrc/a.rs-3-fn f() {\n--\nsrc/a.rs:7:x()\nb.rs:1:x\nc.rs:1:x\nc.rs:2:x\nend";
    let expected = "src/a.rs:\n1:use x;\n\nfn f() {\n--\n7:x()\n[end]\nb.rs:1:x\nc.rs:\n1:x\n2:x\n[end]\nend";
    assert_written("grouped_paths", body, expected);
}

#[test]
fn hits_in_one_file_need_no_heading() {
    assert_written("grouped_paths", "7:a\n8-b\n9- c\n10-d\n11-e\n--\n20-x", "7:a\nb\n c\n10-d\ne\n--\n20-x");
}

#[test]
fn context_lines_may_have_a_directory_of_their_own() {
    let body = "a/b.rs:7:x\n/w/a/b.rs-8-y\na/b.rs-9-z: w\n/w/a/b.rs-10-y\n";
    assert_written("grouped_paths", body, "[context lines without ':' are from /w/]\na/b.rs:\n7:x\ny\nz: w\n10-y\n");
}

#[test]
fn paths_stand_below_their_directory() {
    let body = "Found 4\n/w/src/main/a.rs\n/w/src/main/b.rs\n/w/src/main/deep/c.rs\n\nx";
    assert_written("grouped_paths", body, "Found 4\n/w/src/main/:\na.rs\nb.rs\ndeep/c.rs\n\nx");
    let two = "/w/src/main/one/a.rs\n/w/src/main/one/b.rs\n/w/tests/other/c.rs\n/w/tests/other/d.rs\n(cut)";
    assert_written("grouped_paths", two, "/w/src/main/one/:\na.rs\nb.rs\n/w/tests/other/:\nc.rs\nd.rs\n[end]\n(cut)");
}

#[test]
fn lines_that_look_like_part_of_a_group_end_it() {
    let body = "a.rs:1:x\na.rs:2:y\n 3 z\n7:pathless\nb.rs:\n8:more\nd/:\n9:x";
    let expected = "a.rs:\n1:x\n2:y\n[end]\n 3 z\n7:pathless\n[end]\nb.rs:\n[end]\n8:more\n[end]\nd/:\n[end]\n9:x";
    assert_written("grouped_paths", body, expected);
    assert_written("grouped_paths", "a.rs:7:x\na.rs-08-y", "a.rs:\n7:x\n08-y");
    let names = "/w/src/main/a.rs\n/w/src/main/b.rs\n/w/src/main/[end]";
    assert_written("grouped_paths", names, "/w/src/main/:\na.rs\nb.rs\n[end]\n/w/src/main/[end]");
    assert_eq!(written("grouped_paths", "a.rs:1:x\na.rs:2:y\n[end]"), None);
    assert_eq!(written("grouped_paths", "plain text\nand: more\n10:30 o'clock\n"), None);
}

// Named strings.

#[test]
fn repeated_strings_are_named() {
    let mut body = String::new();
    for name in ["one", "two", "three", "four", "five"] {
        writeln!(body, "{} \t/home/someone/work/a-project/{name}.rs\t(0.1 s)", name.len()).unwrap();
    }
    let expected = "$a=/home/someone/work/a-project\n\n3 \t$a/one.rs\t(0.1 s)\n3 \t$a/two.rs\t(0.1 s)\n\
                    5 \t$a/three.rs\t(0.1 s)\n4 \t$a/four.rs\t(0.1 s)\n4 \t$a/five.rs\t(0.1 s)\n";
    assert_written("named_strings", &body, expected);
    let shell = body.replace("one.rs", "$a$b$");
    assert_written("named_strings", &shell, &expected.replace("$a", "$c").replace("one.rs", "$a$b$"));
    let letters: String = ('a'..='z').map(|letter| format!("${letter}")).collect();
    assert_eq!(written("named_strings", &format!("{body}{letters}")), None);
}

#[test]
fn short_and_varied_bodies_are_not_named() {
    let varied: String = (0..200).map(|n| format!("{} is line {n} of {}\n", n * 7919 % 1000, n * 31)).collect();
    for body in ["", "/a/long/path/to/a/file /a/long/path/to/a/file", varied.as_str()] {
        assert_eq!(written("named_strings", body), None, "{body:?}");
    }
}

// Properties.

fn word() -> impl Strategy<Value = &'static str> {
    select(vec![
        "let", "x", "=", "value", "//", "fn", "{", "}", "", "\tindent", "    if", "日本", "é", "a|b", "0", "\r",
    ])
}

pub fn line() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 0..6).prop_map(|words| words.join(" "))
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(select(vec!["src", "deep-2-er", "b.rs", "日本", "Main_File", "v1.2", "x-3"]), 1..4)
        .prop_map(|names| format!("lib/{}.rs", names.join("/")))
}

/// A file as it is shown: the encoder has to apply.
fn numbered_body() -> impl Strategy<Value = String> {
    let numbers = (1u32..2000, select(vec![0usize, 3, 6]), select(vec!["→", "\t"]));
    (numbers, prop::collection::vec(line(), 12..60), select(vec!["", "\n", "\n\n<note>\n1. x\n</note>"])).prop_map(
        |((first, width, separator), lines, trailer)| {
            let lines = lines.iter().zip(first..).map(|(line, number)| format!("{number:>width$}{separator}{line}"));
            lines.collect::<Vec<_>>().join("\n") + trailer
        },
    )
}

/// What a search shows: hits with context in some files.
fn search_body() -> impl Strategy<Value = String> {
    let file = (path(), 1u32..500, prop::collection::vec((any::<bool>(), line()), 3..9));
    prop::collection::vec(file, 1..6).prop_map(|files| {
        let mut body = String::new();
        for (path, first, lines) in files {
            for (number, (hit, text)) in (first..).zip(lines) {
                let mark = if hit || number == first { ':' } else { '-' };
                writeln!(body, "{path}{mark}{number}{mark}{text}").unwrap();
            }
            body.push_str("--\n");
        }
        body
    })
}

/// Lines that mean something to some format, in any order.
pub fn hostile_body() -> impl Strategy<Value = String> {
    let mark = select(vec![
        "[end]",
        "--",
        "12:a",
        "12-a",
        "13-b",
        "13:b",
        "14-",
        " c",
        "",
        " ",
        "a/b.rs:12:x",
        "a/b.rs-13-x",
        "a/b.rs-14-x: y",
        "/w/a/b.rs-14-x",
        "/w/a/b.rs-13-",
        "a/b.rs:",
        "a/b/:",
        "a/b/c",
        "a/b/d",
        "a/b/12-x",
        "a/b/[end]",
        "a/b/x:",
        "a/c",
        "x:",
        "7:",
        "/w/b.rs:1:x",
        "b.rs:1:x",
        "b.rs:2:y:",
        "2024-01-02:3:x",
        "C:\\a\\b.rs:4:x",
        "C:\\a\\b.rs-5-x",
        "  12→a",
        "  13→b",
        "12→a",
        "13→b",
        "14\tc",
        "013→a",
        "   14→  15→x",
        "  13→[end]",
        "  14→",
        "999999999→a",
        "1000000000→a",
        "9:x",
        "10-x",
        "[context lines without ':' are from /w/]",
        "```csv",
        "```",
        "````csv l",
        "| a | b |",
        "|---|:-:|",
        "|-|",
        "| a |",
        "| 1 |",
        "| 1 | 2 |",
        "| a \\| b | `c|d` |",
        "  | x\\\\| | y |",
        "a | b",
        "> quote",
        "- item",
        "    code",
        "# h",
        "$a",
        "$a=b",
        "$b=/home/someone/work/project",
        "> [range-ref: one, lines 1-2]",
        "\r",
        "a/b.rs:12:x\r",
        "é:1:x",
    ]);
    let line = prop_oneof![8 => mark.prop_map(str::to_owned), 1 => line(), 1 => ".{0,12}"];
    (prop::collection::vec(line, 0..24), select(vec!["", "\n"])).prop_map(|(lines, end)| lines.join("\n") + end)
}

/// Long strings between marks, so that there is something to name.
fn repetitive_body() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "/home/someone/work/project",
        "/home/someone/work/project/src",
        "level=info service=orders",
        "some repeated phrase here",
        "$a",
        "$b",
        "$",
        "a",
        "=",
        "/",
        " ",
        "\n",
        "\n",
        "\n\n",
        "(",
        ")",
        "日本",
        ":",
        "\t",
        "",
    ]);
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

fn table_body() -> impl Strategy<Value = String> {
    let cell = prop_oneof![line().prop_map(|text| text.replace(['|', '\r', '\n'], "\\|")), "[a-z,\"]{0,6}"];
    let rows = (1usize..5).prop_flat_map(move |columns| {
        prop::collection::vec(prop::collection::vec(cell.clone(), columns..=columns), 1..6)
    });
    (rows, any::<bool>(), any::<bool>()).prop_map(|(rows, aligned, alone)| {
        let mut table = if alone { String::new() } else { "Text,\n\n".to_owned() };
        for (index, row) in rows.iter().enumerate() {
            writeln!(table, "|{}|", row.join(" |  ")).unwrap();
            if index == 0 {
                writeln!(table, "|{}", (if aligned { ":--|" } else { "---|" }).repeat(row.len())).unwrap();
            }
        }
        if alone { table } else { table + "\nmore `code`\n" }
    })
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn numbered_bodies_get_shorter(body in numbered_body()) {
        let text = written("numbered_compact", &body).expect("a sequence");
        prop_assert!(text.len() < body.len(), "{text}");
    }

    #[test]
    fn search_results_get_shorter(body in search_body()) {
        let text = written("grouped_paths", &body).expect("several rows of a file");
        prop_assert!(text.len() < body.len(), "{text}");
    }

    #[test]
    fn tables_become_csv(body in table_body()) {
        let text = written("csv_from_md", &body).expect("a table");
        prop_assert!(!text.contains("|---") && !text.contains("|:--"), "{text}");
    }

    #[test]
    fn layout_is_all_that_tight_leaves_out(body in table_body()) {
        let document = Document::parse(&body);
        prop_assert_eq!(&Document::parse(&document.tight()), &document);
        prop_assert!(document.has_table());
    }

    #[test]
    fn nothing_is_lost_of_anything(body in prop_oneof![
        4 => hostile_body(), 2 => repetitive_body(), 1 => ".{0,80}",
        1 => numbered_body(), 1 => search_body(), 1 => table_body(),
    ]) {
        for id in TEXT_FORMATS {
            written(id, &body);
        }
    }

    #[test]
    fn decoders_take_anything(text in prop_oneof![hostile_body(), repetitive_body(), ".{0,80}"]) {
        for id in TEXT_FORMATS {
            _ = (format(id).decode)(&text);
            for found in REGISTER.iter().filter_map(|format| written(format.id, &text)) {
                _ = (format(id).decode)(&found);
            }
        }
    }
}
