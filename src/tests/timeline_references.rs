//! What answers take up from their contexts: where lines and identifiers are found, and where they are not.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::base::id::Id;
use crate::base::words;
use crate::logs::timeline::identifiers::{UUID_BYTES, telling_runs};
use crate::logs::timeline::requests::{BlockKind, ReferenceKind, Timeline};
use crate::logs::timeline::rules::TimelineRules;
use crate::tests::log_builder::*;
use crate::tests::timeline::{check, linked, says, timeline_of};

fn one(records: Vec<Record>) -> Timeline {
    let timeline = timeline_of(&[("f", &log(&linked(records)))]);
    check(&timeline);
    timeline
}

fn call(message: &str, call: &str, tool: &str, input: &Value) -> Record {
    assistant(message, &[json!({ "type": "tool_use", "id": call, "name": tool, "input": input })])
}

fn edit(message: &str, old: &str) -> Record {
    let input = json!({ "file_path": "/w/a.rs", "old_string": old, "new_string": "let answer = forty_two();" });
    call(message, &format!("e-{message}"), "Edit", &input)
}

/// Where an edit of `old` finds its line in what a tool answered: the ends in code points.
fn ends(answer: &str, old: &str) -> Vec<u32> {
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c", "Read"),
        answers("c", answer),
        edit("m2", old),
        answers("e-m2", "done"),
        says("m3", "bye"),
    ]);
    let [found] =
        timeline.references.iter().filter(|row| row.kind == ReferenceKind::EditSource).collect::<Vec<_>>()[..]
    else {
        panic!("one edit gives one reference: {:?}", timeline.references);
    };
    assert_eq!((found.request, timeline.calls[found.call as usize].id), (1, Id::of(b"e-m2")));
    let sources = &timeline.sources[found.sources.start as usize..found.sources.end as usize];
    assert!(sources.iter().all(|source| timeline.blocks[source.block as usize].kind == BlockKind::ToolResult));
    sources.iter().map(|source| source.end_chars).collect()
}

const LINE: &str = "let total = first_part + second_part;";

#[test]
fn the_longest_line_of_an_edit_is_found_however_a_tool_prints_it() {
    for prefix in ["", "    ", "     7→    ", "7\t", "12:", "12-  ", "src/a.rs:12:", "src/a-b.rs-12-    ", "+", "-  "]
    {
        let answer = format!("head\n{prefix}{LINE}\ntail");
        let end = "head\n".len() + prefix.chars().count() + LINE.len();
        assert_eq!(ends(&answer, &format!("{{\n  {LINE}\n}}")), [end as u32], "behind {prefix:?}");
    }
}

#[test]
fn ends_are_counted_in_code_points() {
    assert_eq!(ends(&format!("größe→\n{LINE}"), LINE), [7 + LINE.len() as u32]);
}

#[test]
fn an_edit_of_what_nobody_showed_has_no_source() {
    assert!(ends("something else entirely, and long", LINE).is_empty());
    // Part of a line is not the line.
    assert!(ends(&format!("{LINE} // and more"), LINE).is_empty());
}

#[test]
fn short_lines_say_nothing() {
    let timeline = one(vec![user("p", "}"), edit("m1", "}\nreturn;"), says("m2", "x")]);
    assert!(timeline.references.iter().all(|row| row.kind != ReferenceKind::EditSource));
}

#[test]
fn each_edit_of_several_is_one_reference() {
    let edits = json!({ "file_path": "/w/a", "edits": [
        { "old_string": LINE, "new_string": "1" },
        { "old_string": "a line that was never seen before", "new_string": "2" },
    ]});
    let timeline = one(vec![user("p", LINE), call("m1", "c", "MultiEdit", &edits), says("m2", "x")]);
    let lengths: Vec<usize> = timeline.references.iter().map(|row| row.sources.len()).collect();
    assert_eq!(lengths, [1, 0]);
}

#[test]
fn what_an_answer_wrote_itself_is_no_source_of_it_but_one_of_the_next() {
    let write = json!({ "file_path": "/w/a.rs", "content": format!("fn main() {{\n    {LINE}\n}}\n") });
    let timeline = one(vec![
        user("p", "go"),
        call("m1", "w", "Write", &write).link("a1", None),
        edit("m1", LINE).link("a2", None),
        answers("w", "ok"),
        edit("m2", LINE),
        says("m3", "x"),
    ]);
    let sources: Vec<Vec<BlockKind>> = timeline
        .references
        .iter()
        .map(|row| &timeline.sources[row.sources.start as usize..row.sources.end as usize])
        .map(|sources| sources.iter().map(|source| timeline.blocks[source.block as usize].kind).collect())
        .collect();
    assert_eq!(sources, [vec![], vec![BlockKind::ToolUsage; 2]]);
    let first = timeline.sources[0];
    let input = write.to_string();
    let value_end = input.find("\\n}\\n\"").unwrap() + "\\n}\\n\"".len();
    assert_eq!(first.end_chars as usize, value_end, "an input is taken as a whole up to the end of the value");
}

#[test]
fn the_first_place_and_the_latest_are_kept() {
    let places_max = TimelineRules::shipped().references.sources_max;
    let mut records = vec![user("p", "go")];
    for number in 0..9 {
        records.push(asks(&format!("m{number}"), &format!("c{number}"), "Bash"));
        records.push(answers(&format!("c{number}"), LINE));
    }
    records.push(edit("last", LINE));
    let timeline = one(records);
    let [found] = &timeline.references[..] else { panic!("{:?}", timeline.references) };
    let blocks: Vec<u32> = timeline.sources.iter().map(|source| source.block).collect();
    let results: Vec<u32> = timeline.calls[..9].iter().map(|call| call.answered).collect();
    let mut expected = vec![results[0]];
    expected.extend(&results[10 - places_max..]);
    assert_eq!(blocks, expected);
    assert!(found.cut);
}

/// Identifiers that `said` takes up from `shown`: kind and where they end in it.
fn taken_up(shown: &str, said: &str) -> Vec<(ReferenceKind, u32)> {
    let timeline = one(vec![user("p", shown), says("m1", said), user("q", "again"), says("m2", said)]);
    assert!(timeline.references.iter().all(|row| row.request == 0), "only where it is first written");
    let source =
        |row: &crate::logs::timeline::requests::Reference| timeline.sources[row.sources.start as usize].end_chars;
    timeline.references.iter().map(|row| (row.kind, source(row))).collect()
}

#[test]
fn identifiers_are_known_by_their_form() {
    use ReferenceKind::*;
    for (word, kind) in [
        ("src/main.rs", Path),
        ("/usr/lib", Path),
        ("./run", Path),
        ("~/notes", Path),
        ("https://example.org/a?b=c", Url),
        ("deadbeef1", Hex),
        ("0b7c9d2e-58a1-4f3c-9e4d-112233445566", Uuid),
        ("ABC-123", Ticket),
        ("read_whole_file", Symbol),
        ("readWholeFile", Symbol),
        ("sha256digester", Symbol),
    ] {
        let shown = format!("see ({word}), or not");
        let end = shown.find(')').unwrap() as u32;
        assert_eq!(taken_up(&shown, &format!("I read `{word}`.")), [(kind, end)], "{word}");
        assert!(taken_up("nothing here", &format!("I read {word}.")).is_empty(), "{word} is of the model's own making");
    }
}

#[test]
fn prose_is_no_identifier() {
    for word in ["and/or", "12345678", "extraordinarily", "Extraordinarily", "// comment", "facade", "A-1", "1.5/2.5"] {
        assert!(taken_up(&format!("so {word} it is"), &format!("yes, {word} it is")).is_empty(), "{word}");
    }
}

#[test]
fn a_place_in_a_file_is_a_place_in_that_file() {
    assert_eq!(taken_up("src/main.rs:12:5: error", "in src/main.rs:90"), [(ReferenceKind::Path, 11)]);
}

#[test]
fn the_file_that_a_call_names_is_taken_up_from_where_it_was_listed() {
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "g", "Glob"),
        answers("g", "/w/a.rs\n/w/deep/b.rs"),
        call("m2", "r", "Read", &json!({ "file_path": "/w/deep/b.rs" })),
        answers("r", "x"),
        call("m3", "r2", "Read", &json!({ "file_path": "/w/deep/b.rs" })),
    ]);
    let [found] = &timeline.references[..] else { panic!("{:?}", timeline.references) };
    assert_eq!((found.kind, found.request), (ReferenceKind::ReadPath, 1));
    assert_eq!(timeline.calls[found.call as usize].id, Id::of(b"r"));
    assert_eq!(timeline.sources[0].end_chars, 20);
}

#[test]
fn what_stands_in_one_context_does_not_stand_in_another() {
    let mut records = linked(vec![user("p", LINE), says("m1", "ok")]);
    records.extend(linked(vec![user("x", "go").agent("a"), edit("m2", LINE).agent("a")]));
    let timeline = timeline_of(&[("f", &log(&records))]);
    let [found] = &timeline.references[..] else { panic!("{:?}", timeline.references) };
    assert!(found.sources.is_empty());
}

#[test]
fn a_fork_takes_up_what_it_was_forked_with() {
    let original = linked(vec![user("p", LINE).at(0), says("m1", "ok").at(1), says("m9", "more").at(9)]);
    let mut fork: Vec<Record> = original[..2].iter().map(|record| record.clone().session("fork")).collect();
    fork.push(edit("m2", LINE).session("fork").link("a2", Some("u-m1")).at(20));
    let timeline = timeline_of(&[("a", &log(&original)), ("b", &log(&fork))]);
    check(&timeline);
    let [found] = &timeline.references[..] else { panic!("{:?}", timeline.references) };
    let [source] = timeline.sources[..] else { panic!("{:?}", timeline.sources) };
    assert_eq!(timeline.blocks[source.block as usize].record, Id::of(b"p"));
    assert_eq!(found.request, 2);
}

#[test]
fn words_are_kept_as_hashes_with_their_counts() {
    let long = format!("Fix the toolUse parser, fix it. {}tailword", "ab ".repeat(2_000));
    let timeline =
        one(vec![user("p", long), says("m1", "a snake_case name"), user("q", "<bash-input>ls</bash-input>")]);
    assert_eq!(timeline.utterances.len(), 2);
    let of = |range: &std::ops::Range<u32>| timeline.words.of(range.clone()).collect::<Vec<_>>();
    let find = |range, word: &str| of(range).into_iter().find(|known| known.hash == words::hash(word));
    let [prompt, answer] = &timeline.utterances[..] else { panic!("two texts") };
    assert_eq!(find(&prompt.terms, "fix").unwrap().count, 2);
    assert_eq!(find(&prompt.terms, "tooluse").unwrap().position, 0);
    assert_eq!(find(&prompt.words, "tool").unwrap().count, 1);
    assert!(find(&prompt.words, "tooluse").is_none() && find(&prompt.terms, "tool").is_none());
    assert!(find(&prompt.terms, "tailword").is_none(), "only the start of a text is taken");
    assert!(find(&answer.terms, "snake_case").is_some() && find(&answer.words, "snake").is_some());
    assert!(of(&prompt.terms).is_sorted_by_key(|word| word.hash));
}

/// Runs byte by byte, as `telling_runs` says them.
fn runs_of(text: &[u8]) -> Vec<(usize, usize)> {
    let is_inside = |byte: &u8| byte.is_ascii_graphic() && !b"\"'`()[]{}<>,;|*=\\".contains(byte);
    let mut found = Vec::new();
    let mut start = 0;
    for run in text.split(|byte| !is_inside(byte)) {
        let end = start + run.len();
        let is_mark = |byte: &u8| byte.is_ascii_digit() || b"_/".contains(byte);
        let tells = run.iter().any(is_mark) || run.iter().skip(1).any(u8::is_ascii_uppercase);
        if tells || run.len() >= UUID_BYTES {
            found.push((start, end));
        }
        start = end + 1;
    }
    found
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn runs_are_found_wherever_blocks_end(
        pieces in prop::collection::vec(
            prop_oneof![
                4 => "[a-z.:-]{1,40}".prop_map(String::into_bytes),
                2 => "[a-zA-Z]{1,70}".prop_map(String::into_bytes),
                2 => "[a-z0-9_/]{1,140}".prop_map(String::into_bytes),
                3 => "[ \n\"'`()\\[\\]{}<>,;|*=\\\\é→]{1,3}".prop_map(String::into_bytes),
                1 => prop::collection::vec(any::<u8>(), 1..80),
            ],
            0..12,
        ),
    ) {
        let text = pieces.concat();
        let mut found = Vec::new();
        telling_runs(&text, |start, end| found.push((start, end)));
        prop_assert_eq!(found, runs_of(&text));
    }
}
