//! The page about formats and the formats say the same: every example on it is written and read as it stands there.

use std::collections::BTreeSet;

use crate::facts::encode::{EncodeAttempt, Params, REGISTER, Subject, attempt, find};
use crate::facts::shape::classify;

const PAGE: &str = include_str!("../../docs/formats.md");

/// The blocks of the page: the words behind ` ```text `, and the text.
fn blocks() -> Vec<(Vec<&'static str>, String)> {
    let mut blocks = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let info = line.trim_start_matches('`');
        let fence = &line[..line.len() - info.len()];
        if fence.len() < 3 {
            continue;
        }
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != fence).collect();
        blocks.push((info.split(' ').skip(1).collect(), text.join("\n")));
    }
    blocks
}

#[test]
fn examples_on_the_page_are_what_is_written_and_read() {
    let mut body = String::new();
    let mut seen = BTreeSet::new();
    for (words, text) in blocks() {
        let [kind, id] = words[..] else { continue };
        if kind == "body" {
            body = text;
            continue;
        }
        let (_, format) = find(id).unwrap_or_else(|| panic!("{id} is a format"));
        let subject = Subject::new(&body, classify(body.as_bytes()));
        let read = (format.decode)(&text).unwrap_or_else(|| panic!("{id} reads\n{text}"));
        assert!(subject.says(&read), "{id}: {read:?}\nis not\n{body}");
        if kind == "encoding" {
            let written = attempt(format, &subject, Params { recursion_depth: 5, numbered_every: 10 });
            assert_eq!(written, EncodeAttempt::Proven(text), "{id} of\n{body}");
        }
        seen.insert(id);
    }
    let plain = BTreeSet::from(["json_compact", "json_pretty"]);
    let all: BTreeSet<&str> = REGISTER.iter().map(|format| format.id).filter(|id| !plain.contains(id)).collect();
    assert_eq!(seen, all, "every format has an example");
}
