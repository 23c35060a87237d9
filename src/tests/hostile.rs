//! Names that try to be more than names, in every place where a log has one, through every command and form: no output may
//! obey them, and each stays a well-formed file of its kind.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{Home, Outcome};
use super::log_builder::*;
use crate::base::visible::{visible, visible_json};
use crate::report::escape;
use crate::report::table::{Table, TableFormat};
use crate::shell::arguments::Exit;

/// Forty names; the long one is made where it is used.
const NAMES: [&str; 39] = [
    "\x1b[31mred",
    "\x1b[2J\x1b[H",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07",
    "\x1b]0;title\x07",
    "\u{9b}31mred",
    "back\rfront",
    "bell\x07",
    "nul\0nul",
    "back\x08\x08\x08space",
    "del\x7fete",
    "tab\tbed",
    "\t=1+1",
    "\r=1+1",
    "line\n+evil = true",
    "line\n-evil = true\n@@ -1 +1 @@",
    "line\nrm -rf ~",
    "line\n\n[tools]\nevil = 1",
    "line\r\ncrlf",
    "\u{85}nel",
    "a\u{2028}b\u{2029}c",
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-1+1+cmd|' /C calc'!A0",
    "@SUM(1,2)",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt;",
    "| a | b |",
    "`code` ``more``",
    "*bold* _em_ __init__ ~~gone~~",
    "[link](https://evil.example)",
    "www.evil.example and https://evil.example",
    "\u{202e}txt.exe",
    "\u{2066}iso\u{2069}",
    "zero\u{200b}width\u{feff}",
    "emoji 👩\u{200d}💻",
    "..",
    "quote\"comma,semi;back\\slash",
    "p123abc",
];

fn names() -> Vec<String> {
    NAMES.iter().map(|name| (*name).to_owned()).chain(["long ".repeat(2048)]).collect()
}

/// Another statement of what no output may hold.
fn is_harmful(c: char) -> bool {
    let hidden = "\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\
                  \u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\u{61c}";
    c != '\n' && (c < ' ' || ('\x7f'..='\u{9f}').contains(&c) || hidden.contains(c))
}

/// Three steps of a session in which everything that has a name is called `name`.
fn session(name: &str, number: usize) -> String {
    let step = |place: usize, tool: &str| {
        let id = format!("c{number}-{place}");
        let input = json!({ name: name, "file_path": format!("/w/{name}"), "subagent_type": name, "model": name });
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        let model = if place == 1 { name } else { "claude-opus-4-6" };
        let grown = 2_000 * (place as u64 + 1);
        let usage = json!({
            "input_tokens": 5, "output_tokens": 20,
            "cache_creation_input_tokens": 2_000, "cache_read_input_tokens": 16_000 + grown,
        });
        let asked = assistant(&format!("m{number}-{place}"), &[block]).message("model", model).message("usage", usage);
        let text = json!([{ "id": number, name: name, "text": "word ".repeat(80) }]).to_string();
        [asked, answers(&id, text.as_str())]
    };
    let server = format!("mcp__{name}__{name}");
    let tools = ["Agent", name, &server, "Grep", name, &server, "Read"];
    let first = user(&format!("h{number}"), "please");
    let records = tools.iter().enumerate().flat_map(|(place, tool)| step(place, tool));
    let mut text = String::new();
    for (place, record) in std::iter::once(first).chain(records).enumerate() {
        let record = record.session(name).set("cwd", format!("/home/u/{name}")).set("gitBranch", name);
        text += &record.set("version", name).at((number * 600 + place * 7) as u32).line();
    }
    text + "{ damaged\n"
}

/// A home whose logs, folders and files have all the names.
fn home() -> Home {
    let home = Home::new();
    for (number, name) in names().iter().enumerate() {
        let cut =
            |bytes: usize| -> Vec<u8> { name.bytes().filter(|byte| !matches!(byte, b'/' | 0)).take(bytes).collect() };
        let (mut folder, mut file) = (cut(200), cut(200));
        // The end of a cut name, and this one, are no UTF-8.
        if number % 10 == 0 {
            folder.push(0xff);
        }
        if name == ".." {
            folder.insert(0, b'x');
        }
        file.extend(b".jsonl");
        let folder = home.logs().join(OsString::from_vec(folder));
        std::fs::create_dir_all(&folder).unwrap();
        let file = OsString::from_vec(file);
        std::fs::write(folder.join(file), session(name, number)).unwrap();
    }
    home
}

fn assert_harmless(command: &[&str], outcome: &Outcome) {
    for (stream, text) in [("stdout", &outcome.out), ("stderr", &outcome.err)] {
        let found = text.char_indices().find(|(_, c)| is_harmful(*c));
        let around = found.map(|(at, c)| (c, text[..at].lines().last().unwrap_or_default().to_owned()));
        assert!(around.is_none(), "{command:?}: {stream} holds {around:?}");
        let forged = text
            .lines()
            .find(|line| ["+evil", "-evil", "rm -rf", "evil =", "[tools]"].iter().any(|at| line.starts_with(at)));
        assert!(forged.is_none(), "{command:?}: {stream} has the line {forged:?}");
    }
}

/// Rows of a CSV file, by RFC 4180.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty(), "an unfinished row: {cell} {row:?}");
    rows
}

fn assert_csv(command: &[&str], text: &str) {
    let rows = csv_rows(text);
    for row in &rows {
        assert_eq!(row.len(), rows[0].len(), "{command:?}: {row:?}");
        for cell in row {
            let is_number = cell.trim_end_matches(['%', ' ']).parse::<f64>().is_ok();
            assert!(!cell.starts_with(['=', '+', '-', '@']) || is_number || cell == "-", "{command:?}: {cell:?}");
        }
    }
}

fn assert_markdown(command: &[&str], text: &str) {
    assert!(!text.contains('<'), "{command:?}: {text}");
    for (at, found) in text.match_indices("://").chain(text.match_indices("](")) {
        assert!(text[..at].ends_with('\\'), "{command:?}: {found} of a link in {text}");
    }
    let cells = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    for block in text.split("\n\n").filter(|block| block.starts_with('|')) {
        let counts: Vec<usize> = block.lines().map(cells).collect();
        assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{command:?}: {counts:?} cells in\n{block}");
    }
}

/// An answer in one paragraph, which begins with a word or a number, then a unified diff with hunks as long as they say, and
/// comments beside it.
fn assert_diff(command: &[&str], text: &str) {
    let mut left = (0_usize, 0_usize);
    let answer = text.lines().take_while(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric())).count();
    for line in text.lines().skip(answer) {
        let count = |side: &str| side.split_once(',').map_or(1, |(_, count)| count.parse().unwrap());
        match line.as_bytes().first() {
            _ if left != (0, 0) => {
                let (old, new) = match line.as_bytes().first() {
                    Some(b'-') => (1, 0),
                    Some(b'+') => (0, 1),
                    Some(b' ') => (1, 1),
                    _ => panic!("{command:?}: in a hunk: {line}"),
                };
                left = (left.0 - old, left.1 - new);
            }
            Some(b'@') => {
                let sides: Vec<&str> = line.split(' ').collect();
                left = (count(&sides[1][1..]), count(&sides[2][1..]));
            }
            None | Some(b'#') => {}
            _ => assert!(line.starts_with("--- ") || line.starts_with("+++ "), "{command:?}: beside the diff: {line}"),
        }
    }
    assert_eq!(left, (0, 0), "{command:?}: a hunk ends early");
}

const COMMANDS: [&[&str]; 31] = [
    &["ingest"],
    &["doctor"],
    &["mine", "edges"],
    &["mine", "edges", "--ends"],
    &["mine", "tools"],
    &["mine", "tools", "--servers"],
    &["mine", "patterns"],
    &["mine", "sessions"],
    &["mine", "projections", "--explain"],
    &["mine", "fingerprints"],
    &["mine", "compare", "..2026-01-02T06:00:00Z", "2026-01-02T06:00:01Z.."],
    &["tune", "from-claude-logs", "--dry-run", "--explain"],
    &["tune", "from-claude-logs", "--dry-run", "--explain", "--tools"],
    &["tune", "analyze", "--from-claude-logs", "--dry-run", "--explain"],
    &["tune", "show"],
    &["tune", "history", "--explain"],
    &["cost", "--by", "tool,server,project,session,branch,file-kind", "--all"],
    &["session"],
    &["replay"],
    &["replay", "--sweep", "dedup.lru_size=2,3"],
    &["replay", "--planner"],
    &["replay", "--policy", "all"],
    &["replay", "--policy", "prompt-cache", "--explain", "--per-session"],
    &["replay", "--policy", "compaction", "--explain", "--show-content"],
    &["replay", "--policy", "history-trim", "--explain", "--show-content"],
    &["replay", "--policy", "pipeline", "--explain"],
    &["replay", "--policy", "tool-filter", "--explain"],
    &["replay", "--policy", "pick-tools", "--explain"],
    &["replay", "--policy", "arg-check", "--explain", "--show-content"],
    &["mine", "edges", "--format", "dot"],
    &["mine", "edges", "--format", "mermaid"],
];

#[test]
fn hostile_names_are_only_looked_at() {
    let home = home();
    // A journal and a configuration with something in them.
    let written = home.run(&["tune", "from-claude-logs", "--tools"]);
    assert_eq!(written.exit, Exit::Done, "{}", written.err);
    assert_harmless(&["tune", "from-claude-logs"], &written);
    assert_diff(&["tune", "from-claude-logs"], &written.out);
    let config = std::fs::read_to_string(home.config()).unwrap();
    assert!(!config.contains("\\u{") && !config.contains(is_harmful), "{config}");
    let forms: [&[&str]; 5] =
        [&["-v"], &["--json"], &["--format", "csv"], &["--format", "md"], &["--format", "md", "--names"]];
    // Nothing is left out.
    let tools = home.json(&["mine", "tools", "--names"]);
    let listed: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|row| row["tool"].as_str().unwrap()).collect();
    for name in names() {
        for tool in [name.clone(), format!("mcp__{name}__{name}")] {
            assert!(listed.contains(&&*visible(&tool)), "{tool:?} is not listed");
        }
    }
    for command in COMMANDS {
        let named: &[&str] = if command[0] == "mine" { &["--names"] } else { &[] };
        if command.contains(&"--format") {
            let outcome = home.run(&[command, named].concat());
            assert_harmless(command, &outcome);
            let starts = ["digraph", "flowchart", "  ", "}"];
            assert!(
                outcome.out.lines().all(|line| starts.iter().any(|start| line.starts_with(start))),
                "{}",
                outcome.out
            );
            continue;
        }
        for form in forms {
            let asked = [command, if form.contains(&"--names") { &[] } else { named }, form].concat();
            let outcome = home.run(&asked);
            assert!(matches!(outcome.exit, Exit::Done | Exit::Gate), "{asked:?}: {}", outcome.err);
            assert_harmless(&asked, &outcome);
            match form {
                ["--json"] => drop(serde_json::from_str::<Value>(&outcome.out).unwrap()),
                ["--format", "csv"] => assert_csv(&asked, &outcome.out),
                ["--format", "md", ..] => assert_markdown(&asked, &outcome.out),
                _ if command[0] == "tune" && command.contains(&"--dry-run") => assert_diff(&asked, &outcome.out),
                _ => assert!(outcome.out.lines().all(|line| !line.starts_with('+')), "{asked:?}"),
            }
        }
    }
}

#[test]
fn hostile_words_are_harmless_in_errors() {
    let home = Home::new();
    for name in names().iter().filter(|name| !name.contains('\0')) {
        let commands: [&[&str]; 8] = [
            &["ingest", "--input-dir", name],
            &["ingest", "--project", name, "--allow-empty"],
            &["tune", "show", "--config", name],
            &["tune", "undo", name],
            &["replay", "--policy", name],
            &["replay", "--sweep", name],
            &["replay", "--since", name],
            &["mine", "tools", "--rules-dir", name],
        ];
        for command in commands {
            assert_harmless(command, &home.run(command));
        }
    }
}

#[test]
fn the_names_of_telemetry_are_only_looked_at() {
    let home = home();
    let emitted = home.path("recorded").to_string_lossy().into_owned();
    assert_eq!(home.run(&["replay", "-q", "--emit-telemetry", &emitted]).exit, Exit::Done);
    // A recorder that passes names on as they are.
    let mut line: Value = std::fs::read_dir(&emitted)
        .unwrap()
        .find_map(|file| {
            serde_json::from_str(std::fs::read_to_string(file.unwrap().path()).unwrap().lines().next()?).ok()
        })
        .unwrap();
    let mut text = String::new();
    for (number, name) in names().iter().enumerate() {
        for field in ["session_hash", "tool_name_anon", "endpoint_class", "agent_chain"] {
            line[field] = json!(name);
        }
        line["tool_call_id_hash"] = json!(format!("{number:08x}"));
        text += &format!("{line}\n");
    }
    home.write("recorded/odd.jsonl", text);
    let commands: [&[&str]; 4] = [
        &["tune", "analyze", "--dry-run", "--explain", "--input-dir", &emitted],
        &["mine", "fingerprints", "--from-telemetry", "--names", "--input-dir", &emitted],
        &["annotate", "--dry-run", &emitted],
        &["replay", "--policy", "all", "--from-telemetry", "--input-dir", &emitted],
    ];
    for command in commands {
        for form in [&["-v"][..], &["--json"], &["--format", "csv"], &["--format", "md"]] {
            let asked = [command, form].concat();
            let outcome = home.run(&asked);
            assert_eq!(outcome.exit, Exit::Done, "{asked:?}: {}", outcome.err);
            assert_harmless(&asked, &outcome);
            match form {
                ["--json"] => drop(serde_json::from_str::<Value>(&outcome.out).unwrap()),
                ["--format", "csv"] => assert_csv(&asked, &outcome.out),
                ["--format", "md"] => assert_markdown(&asked, &outcome.out),
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_text_is_one_cell_of_each_kind(text in any::<String>(), other in "[-=+@|<>&_*`\\[\\]\\\\,\"\\n\\t a-c:/.w]{0,12}") {
        for cell in [text, other] {
            let mut table = Table::new(&["a", "b"]);
            table.row([cell.clone(), "end".to_owned()]);
            let written = |format| {
                let mut out = Vec::new();
                table.write(&mut out, format, None).unwrap();
                String::from_utf8(out).unwrap()
            };
            let csv = csv_rows(&written(TableFormat::Csv));
            let guard = if csv[1][0].starts_with('\'') && !cell.starts_with('\'') { "'" } else { "" };
            prop_assert_eq!(&csv[1][0], &format!("{guard}{}", visible(&cell)));
            assert_csv(&[], &written(TableFormat::Csv));
            assert_markdown(&[], &written(TableFormat::Md));
            prop_assert!(!written(TableFormat::Table).contains(is_harmful));
            prop_assert_eq!(escape::plain(&escape::markdown(&cell)), visible(&cell).into_owned());
            prop_assert_eq!(escape::plain(&escape::sentence(&cell)), visible(&cell).into_owned());
            let document = json!({ "cell": cell }).to_string();
            let shown = visible_json(&document);
            prop_assert!(!shown.contains(is_harmful));
            prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json!({ "cell": cell }));
        }
    }
}

#[test]
fn commands_in_a_sentence_of_markdown_are_code_and_all_else_is_text() {
    for (words, told) in [
        ("try `devboy tune undo 1a`, or *that*", "try `devboy tune undo 1a`, or \\*that\\*"),
        ("`devboy a`, `devboy b`", "`devboy a`, `devboy b`"),
        // What somebody else wrote is no mark-up, whatever stands around it.
        ("`<b>` and `devboy a`", "\\`&lt;b&gt;\\` and `devboy a`"),
        ("`x` `devboy a <b>` `devboy c`", "\\`x\\` \\`devboy a &lt;b&gt;\\` `devboy c`"),
        ("`devboy [a](b)`", "\\`devboy \\[a\\](b)\\`"),
        ("``devboy a``", "\\``devboy a`\\`"),
        ("`devboy a", "\\`devboy a"),
    ] {
        assert_eq!(TableFormat::Md.sentence(words), told);
    }
}

#[test]
fn a_loss_has_the_sign_of_all_other_numbers() {
    use crate::base::numbers::percent;
    assert_eq!([-0.95, -0.0001, 0.0, 0.949].map(percent), ["−95.0 %", "0.0 %", "0.0 %", "94.9 %"]);
}
