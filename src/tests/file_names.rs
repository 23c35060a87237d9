//! What logs are called decides nothing: with other names the same tables come out, row by row.

use crate::tests::harness::{Home, session};

/// A command line of every kind whose tables list tools, links, sessions or requests.
const COMMANDS: [&[&str]; 11] = [
    &["mine", "tools"],
    &["mine", "sessions"],
    &["mine", "edges", "--min-count", "1"],
    &["mine", "edges", "--concurrency", "flat", "--min-count", "1"],
    &["mine", "patterns"],
    &["mine", "projections"],
    &["tune", "from-claude-logs", "--dry-run"],
    &["replay"],
    &["replay", "--planner"],
    &["replay", "--policy", "prompt-cache", "--per-session"],
    &["replay", "--policy", "history-trim"],
];

/// Sessions alike in all but the names of their tools, so that every row has one that ties with it.
fn logs() -> Vec<String> {
    let renamed = |name: &str, grep: &str, read: &str| {
        let text = session(name, 12).replace("\"name\":\"Grep\"", &format!("\"name\":\"{grep}\""));
        text.replace("\"name\":\"Read\"", &format!("\"name\":\"{read}\""))
    };
    vec![renamed("one", "Grep", "Read"), renamed("two", "LS", "NotebookRead"), renamed("six", "Glob", "BashOutput")]
}

fn told(names: [&str; 3]) -> Vec<String> {
    let home = Home::new();
    for (name, text) in names.iter().zip(logs()) {
        home.write(&format!(".claude/projects/p/{name}.jsonl"), text);
    }
    let out = COMMANDS.iter().flat_map(|command| {
        ["table", "json"].map(|form| home.run(&[&command[..], &["--format", form, "--no-lake"]].concat()).out)
    });
    let dir = home.path("").display().to_string();
    out.map(|text| text.replace(dir.trim_end_matches('/'), "HOME")).collect()
}

/// A name is bytes; some of them are no text.
#[cfg(unix)]
#[test]
fn a_log_whose_name_is_no_utf_8_is_read() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    home.write(".claude/projects/p/one.jsonl", session("one", 3));
    let name = std::ffi::OsStr::from_bytes(b"tw\xFF\xFEo.jsonl");
    std::fs::write(home.logs().join("p").join(name), session("two", 4)).unwrap();
    for lake in [&[][..], &["--no-lake"], &[]] {
        let report = home.json(&[&["ingest"], lake].concat());
        assert_eq!((&report["inputs"]["files"], &report["totals"]["tool_uses"]), (&2.into(), &7.into()));
    }
}

#[test]
fn what_files_are_called_changes_no_table() {
    let expected = told(["a", "b", "c"]);
    for names in [["c", "b", "a"], ["b", "c", "a"]] {
        for (number, (found, expected)) in told(names).iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "{:?} with files named {names:?}", COMMANDS[number / 2]);
        }
    }
}
