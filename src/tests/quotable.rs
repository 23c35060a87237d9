//! What an agent quotes from stands in what is sent, byte for byte; and what is said of it is counted, not promised.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::base::body_shape::{KeptLines, Showing};
use crate::facts::encode::{EncodeAttempt, Params, Subject, attempt, find};
use crate::facts::quotable::Quotable;
use crate::facts::shape::classify;
use crate::logs::endpoint::{EndpointArguments, Endpoints};
use crate::replay::quotes::Quotes;
use crate::shell::arguments::Exit;
use crate::tests::harness::Home;
use crate::tests::log_builder::cases;

const KNOBS: Params = Params { recursion_depth: 5, numbered_every: 10 };

fn written(id: &str, body: &str) -> Option<String> {
    let (_, format) = find(id).unwrap();
    match attempt(format, &Subject::new(body, classify(body.as_bytes())), KNOBS) {
        EncodeAttempt::Proven(text) => Some(text),
        EncodeAttempt::Refused => None,
        EncodeAttempt::Unproven => panic!("{id} loses something of {body:?}"),
    }
}

/// A line of a file, some of which look like marks of a format.
fn content() -> impl Strategy<Value = String> {
    let start = select(vec!["", " ", "    ", "\t", "\t\t", "- ", "12: ", "+", "$a"]);
    let rest = select(vec!["", "x", "let y = 1;", "fn f():", "--", "[end]", "3-4", "a/b:", "日本 }"]);
    (start, rest).prop_map(|(start, rest)| format!("{start}{rest}"))
}

/// The text behind the digits and the separator at the start of a line: the marks that a reader knows from the tools.
fn behind_number(line: &str) -> Option<&str> {
    let bare = line.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = bare.len() < line.trim_start_matches(' ').len();
    [":", "-", "→", "\t"].iter().filter(|_| numbered).find_map(|mark| bare.strip_prefix(mark))
}

/// Whether each content line stands in the encoding, in order. A mark of the format is no line of a file.
fn holds(encoded: &str, contents: &[String]) -> Result<(), String> {
    let mut lines = encoded.split('\n');
    for content in contents {
        let is_shown = |line: &str| line == content && line != "[end]" || behind_number(line) == Some(content.as_str());
        if !lines.any(is_shown) {
            return Err(format!("{content:?} is not in {encoded:?}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn hits_and_their_context_can_be_quoted(
        files in prop::collection::vec((1u32..2000, prop::collection::vec((any::<bool>(), content()), 2..14)), 1..4),
        relative in any::<bool>(), trailer in select(vec!["", "\n", "\n12 files", "\n\ndone:"]),
    ) {
        let (mut lines, mut contents) = (Vec::new(), Vec::new());
        for (place, (first, rows)) in files.iter().enumerate() {
            let path = if relative && files.len() == 1 { String::new() } else { format!("src/some/file_{place}.rs") };
            for (number, (hit, content)) in (*first..).zip(rows) {
                let mark = if *hit || number == *first { ':' } else { '-' };
                let path = if path.is_empty() { String::new() } else { format!("{path}{mark}") };
                lines.push(format!("{path}{number}{mark}{content}"));
                contents.push(content.clone());
            }
            lines.push("--".to_owned());
        }
        let body = lines.join("\n") + trailer;
        if let Some(encoded) = written("grouped_paths", &body) {
            prop_assert_eq!(holds(&encoded, &contents), Ok(()));
        }
    }

    #[test]
    fn numbered_lines_can_be_quoted_whatever_they_begin_with(
        first in 1u32..2000, width in select(vec![0usize, 6]), separator in select(vec!["→", "\t"]),
        contents in prop::collection::vec(content(), 2..40), trailer in select(vec!["", "\n", "\n\n<note>"]),
    ) {
        let lines: Vec<String> =
            (first..).zip(&contents).map(|(number, line)| format!("{number:>width$}{separator}{line}")).collect();
        let encoded = written("numbered_compact", &(lines.join("\n") + trailer)).unwrap();
        prop_assert_eq!(holds(&encoded, &contents), Ok(()));
        // A tab is either always the end of a number or never.
        let ends_number = encoded.split('\n').any(|line| {
            line.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('\t')
                && !line.starts_with('\t')
        });
        prop_assert!(!(ends_number && encoded.split('\n').any(|line| line.starts_with('\t'))), "{encoded:?}");
    }

    #[test]
    fn what_is_said_to_be_kept_is_there(contents in prop::collection::vec(content(), 1..20), lost in 0usize..20) {
        let body = contents.join("\n");
        prop_assert_eq!(Quotable::of(&body).kept(&body), KeptLines::Lines);
        let lost = lost % contents.len();
        let mut changed = contents;
        changed[lost] = format!(" {} ", changed[lost]);
        prop_assert_eq!(Quotable::of(&body).kept(&changed.join("\n")), KeptLines::Nothing);
        changed.remove(lost);
        prop_assert_eq!(Quotable::of(&body).kept(&changed.join("\n")) == KeptLines::Lines, false);
    }
}

#[test]
fn marks_and_blanks_are_no_lines_of_a_file() {
    let body = "a.rs:1:x\na.rs-2-  y\na.rs-3-[end]\n";
    let quotable = Quotable::of(body);
    assert_eq!(quotable.kept("a.rs:\n1:x\n  y\n3-[end]\n"), KeptLines::Texts);
    assert_eq!(quotable.kept("a.rs:\n1:x\n   y\n3-[end]\n"), KeptLines::Nothing, "a blank too much");
    assert_eq!(quotable.kept("a.rs:\n1:x\n  y\n[end]\n"), KeptLines::Nothing, "a mark for a line");
    assert_eq!(quotable.kept("a.rs:\n  y\n1:x\n3-[end]\n"), KeptLines::Nothing, "another order");
}

#[test]
fn calls_are_told_by_what_they_show() {
    let endpoints = Endpoints::shipped();
    let of = |tool: &str, input: EndpointArguments<'_>| endpoints.file_text.showing(tool, input);
    for (expected, commands) in [
        (
            Showing::Lines,
            &[
                "cat x.json",
                "cd a && cat x",
                "sed -n '1,5p' x",
                "git diff",
                "git show HEAD~1",
                "xargs -n1 cat < list",
                "find . -name '*.rs' -exec head -3 {} \\;",
                "ssh host 'cat /etc/hosts'",
                "bash -c \"cd x; tail y\"",
                "grep foo x",
                "rg -tc foo",
                "/bin/cat x",
                "cat x | head",
                "diff a b",
                "cargo test || cat log",
                "echo \"$(cat x)\"",
                "cd a; printf '%s' `head -3 x`",
                "tr a-z A-Z < x",
                "git commit -m \"$(cat <<'EOF'\nit's\nEOF\n)\" && git show HEAD",
            ][..],
        ),
        (
            Showing::Rows,
            &[
                "grep -n foo x",
                "grep -rn foo . | head -5",
                "cat -n x | sed -n '3,4p'",
                "rg --line-number x",
                "cat x | grep -n y",
            ],
        ),
        (
            Showing::Nothing,
            &[
                "ls -la | head",
                "cargo test 2>&1 | tail -40",
                "find . | sort | uniq",
                "grep -rl foo .",
                "rg --files | head",
                "git status",
                "git diff --stat",
                "ps aux | grep -n x",
                "echo hi",
                "echo \"$(date)\"",
                "git commit -m \"$(cat <<'EOF'\nx\nEOF\n)\"",
                "cat_of=$(cat x)",
                "make | tr a b",
                "",
                "make |\n tail -3",
                "git show --stat",
            ],
        ),
    ] {
        for command in commands {
            assert_eq!(
                of("Bash", EndpointArguments { command: Some(command), ..EndpointArguments::default() }),
                expected,
                "{command}"
            );
        }
    }
    let mode = |mode| of("Grep", EndpointArguments { output_mode: Some(mode), ..EndpointArguments::default() });
    assert_eq!((mode("content"), mode("files_with_matches")), (Showing::Rows, Showing::Nothing));
    let tool = |tool| of(tool, EndpointArguments::default());
    assert_eq!((tool("Read"), tool("Edit"), tool("Glob")), (Showing::Rows, Showing::Rows, Showing::Nothing));
    assert_eq!((tool("mcp__files__read_file"), tool("mcp__issues__get")), (Showing::Lines, Showing::Nothing));
    assert_eq!((tool("ExitPlanMode"), tool("WebFetch")), (Showing::Lines, Showing::Nothing));
}

#[test]
fn edits_are_counted_by_their_lines() {
    let count = |lines: &[Option<bool>]| {
        let mut quotes = Quotes::default();
        quotes.add(lines);
        (quotes.edits, quotes.at_risk)
    };
    assert_eq!(count(&[Some(true)]), (1, 0));
    assert_eq!(count(&[None]), (0, 0));
    assert_eq!(count(&[None, Some(true), None]), (1, 0), "first and last may be parts of lines");
    assert_eq!(count(&[Some(true), None, Some(true)]), (0, 0));
    assert_eq!(count(&[Some(true), Some(false)]), (1, 1));
    assert_eq!(count(&[]), (0, 0));
}

/// A session of calls: tool, input, result.
fn log(session: &str, calls: &[(&str, Value, &str)]) -> String {
    let mut lines = String::new();
    for (number, (tool, input, result)) in calls.iter().enumerate() {
        let record = |kind: &str, half: &str, content: Value| {
            let message = json!({ "id": format!("msg_{session}_{number}"), "model": "claude-opus-4-6", "role": kind,
                "content": [content], "usage": { "input_tokens": 1, "output_tokens": 1 } });
            let record = json!({ "isSidechain": false, "cwd": "/w", "sessionId": session, "version": "2.1.9", "type": kind,
                "timestamp": format!("2026-10-30T00:00:{number:02}.000Z"), "uuid": format!("{half}{session}{number}"),
                "message": message });
            format!("{record}\n")
        };
        let id = format!("toolu_{session}_{number}");
        lines += &record("assistant", "a", json!({ "type": "tool_use", "id": id, "name": tool, "input": input }));
        lines += &record("user", "u", json!({ "type": "tool_result", "tool_use_id": id, "content": result }));
    }
    lines
}

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

fn edit(old: &str) -> Value {
    json!({ "file_path": "/w/x", "old_string": old, "new_string": "y" })
}

fn replayed(logs: &str) -> Value {
    let home = Home::new();
    home.write(".claude/projects/p/s.jsonl", logs);
    let first = home.json(&["replay", "--reproducible"])["replay"].clone();
    for entry in std::fs::read_dir(home.lake()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "memo") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let again = home.json(&["replay", "--reproducible"])["replay"].clone();
    assert_eq!(first, again, "from the lake");
    first
}

fn saved(replay: &Value, arm: usize) -> u64 {
    replay["arms"][arm]["savings"]["saved_tokens"].as_u64().unwrap()
}

#[test]
fn text_of_files_is_sent_in_quotable_formats_only() {
    let paths: String =
        (0..40).map(|n| format!("{n} uses /home/someone/work/a-long-project/src/module/file_{n}.rs twice\n")).collect();
    let json: String = serde_json::to_string_pretty(&vec![json!({ "id": 1, "name": "some name" }); 20]).unwrap();
    for body in [&paths, &json] {
        let by = |command: &str| saved(&replayed(&log("s", &[("Bash", bash(command), body)])), 1);
        assert!(by("some-tool --list") > 0);
        assert_eq!(by("cat listing"), 0);
        assert_eq!(by("ssh host 'cat listing'"), 0);
    }
}

#[test]
fn later_edits_at_risk_are_counted() {
    let body: String =
        (0..40).map(|n| format!("{n} uses /home/someone/work/a-long-project/src/module/file_{n}.rs twice\n")).collect();
    let line = "7 uses /home/someone/work/a-long-project/src/module/file_7.rs twice";
    let other = "something that nobody showed";
    let counts = |command: &str, old: &str| {
        let replay = replayed(&log("s", &[("Bash", bash(command), &body), ("Edit", edit(old), "done")]));
        let counts = &replay["arms"][1]["later_edits"];
        (counts["quoting"].as_u64().unwrap(), counts["at_risk"].as_u64().unwrap())
    };
    assert_eq!(counts("some-tool --list", line), (1, 1), "named strings stand in it");
    assert_eq!(counts("some-tool --list", other), (0, 0));
    assert_eq!(counts("some-tool --list", "}\n{\n--"), (0, 0), "brackets stand everywhere");
    assert_eq!(counts("cat listing", line), (1, 0), "sent as it is");
    assert_eq!(counts("cat listing", &format!("  {line}\npart of the next")), (1, 0));
}

#[test]
fn lines_that_a_context_is_shown_twice_are_referred_to() {
    let lines = |from: usize, to: usize| -> String {
        (from..to).map(|n| format!("{n:>6}\tlet value_{n} = compute({n});\n")).collect()
    };
    let (first, overlapping, apart) = (lines(1, 60), lines(20, 80), lines(100, 160));
    let read = || json!({ "file_path": "/w/x" });
    let references = |texts: &[&String]| {
        let calls: Vec<_> = texts.iter().map(|text| ("Read", read(), text.as_str())).collect();
        let replay = replayed(&log("s", &calls));
        assert_eq!(replay["arms"][1]["hints_expanded"]["different"], 0);
        replay["arms"][1]["hints"]["lines"].as_u64().unwrap()
    };
    assert_eq!(references(&[&first, &overlapping]), 1);
    assert_eq!(references(&[&first, &apart]), 0);
    // A number that comes again means the first line that has it.
    assert_eq!(references(&[&format!("{first}{first}"), &overlapping]), 1);
}

#[test]
fn one_format_is_printed_and_read_back() {
    let home = Home::new();
    let hits = "src/a.rs:1:x\nsrc/a.rs-2-  y\nsrc/a.rs-3-\nlast\n";
    let numbered: String = (1..30).map(|n| format!("{n:>6}\t\tline {n}\n")).collect();
    let table = "# T\n\n|  a | b |\n|---|---|\n| 1 | 2 |\n";
    let tight = "# T\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n";
    let json = r#"{ "a": 1.0, "list": [ {"b": "c"}, {"b": null} ] }"#;
    let compact = r#"{"a":1.0,"list":[{"b":"c"},{"b":null}]}"#;
    // What a report would write out is a part of the body.
    let hidden = "     1→a\u{200d}b\r\n     2→\u{2028}\r\n     3→\u{1b}[1m\r\n";
    for (format, body, expected) in [
        ("grouped_paths", hits, hits),
        ("numbered_compact", numbered.as_str(), numbered.as_str()),
        ("numbered_compact", hidden, hidden),
        ("csv_from_md", table, tight),
        ("json_pretty", json, compact),
        ("mckp_v2", json, compact),
    ] {
        let encoded = home.run_with(&["encode", "--as", format], body.as_bytes());
        assert_eq!(encoded.exit, Exit::Done, "{format}: {}", encoded.err);
        let decoded = home.run_with(&["decode", "--as", format], encoded.out.as_bytes());
        assert_eq!((decoded.exit, decoded.out.as_str()), (Exit::Done, expected), "{format}");
    }
    let refused = home.run_with(&["encode", "--as", "kv"], b"plain text");
    assert_eq!((refused.exit, refused.out.as_str()), (Exit::Failed, ""));
    assert!(refused.err.contains("kv does not apply"), "{}", refused.err);
    assert_eq!(home.run_with(&["decode", "--as", "csv"], b"no, \"csv").exit, Exit::Failed);
    assert_eq!(home.run_with(&["encode", "--as", "nonsense"], b"x").exit, Exit::Usage);
    let file = home.run(&["encode", "body.json"]);
    assert!(file.exit == Exit::Usage && file.err.contains("devboy encode [OPTIONS] < FILE"), "{}", file.err);
}

#[test]
fn encode_says_what_can_be_quoted() {
    let home = Home::new();
    let hits = "src/a.rs:1:x\nsrc/a.rs-2-  y\nsrc/a.rs-3-z\nsrc/a.rs-4-z\n".repeat(3);
    let winner = |more: &[&str]| {
        let outcome = home.run_with(&[&["encode", "--extended-formats", "--json"], more].concat(), hits.as_bytes());
        let document: Value = serde_json::from_str(&outcome.out).unwrap();
        let rows = document["candidates"].as_array().unwrap();
        let row = rows.iter().find(|row| row["format"] == "grouped_paths").unwrap();
        (document["winner"].clone(), row["quotable"].clone(), row["eligible"].clone())
    };
    let texts = json!("text of numbered lines and hits");
    assert_eq!(winner(&[]), (json!("grouped_paths"), texts.clone(), json!(true)));
    assert_eq!(winner(&["--tool", "Bash", "--command", "cat log"]), (Value::Null, texts, json!(false)));
}
