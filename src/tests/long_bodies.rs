//! Results too long to be held: what is known of them is what would be known if they were.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::log_builder::cases;
use crate::base::id::Id;
use crate::base::json::{Cursor, TextSink};
use crate::base::seal::{SECRET_BYTES, Seal};
use crate::base::varint;
use crate::facts::body_analyzer::BodyAnalyzer;
use crate::facts::encode::Params;
use crate::frames::lake::{Lake, Update};
use crate::frames::manifest::StoredSource;
use crate::frames::packed::pack;
use crate::frames::timelines::{Joined, PackedTimeline, batch, groups, read};
use crate::logs::body::{Body, BodyStudy, Measured, STUDIED_BYTES, WINDOW_BYTES, code_points};
use crate::logs::content::read_message;
use crate::logs::timeline::content::ContentDraft;
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::trace::Handle;

/// What a study was handed.
#[derive(Default)]
struct Seen {
    text: Vec<u8>,
    /// The most that was held at once.
    held_bytes_max: usize,
    bodies: Vec<(Id, Vec<u8>)>,
}

/// Takes parts up to the last blank.
struct Blanks<'s>(&'s RefCell<Seen>);

impl BodyStudy for Blanks<'_> {
    fn body(&mut self, id: Id, text: &[u8]) {
        self.0.borrow_mut().bodies.push((id, text.to_vec()));
    }

    fn part(&mut self, text: &[u8], is_first: bool) -> usize {
        let mut seen = self.0.borrow_mut();
        seen.held_bytes_max = seen.held_bytes_max.max(text.len());
        let taken = text.iter().rposition(|&byte| byte == b' ').map_or(0, |place| place + 1);
        if is_first && taken > 0 {
            seen.text.clear();
        }
        seen.text.extend_from_slice(&text[..taken]);
        taken
    }

    fn rest(&mut self, id: Id, text: &[u8]) {
        let mut seen = self.0.borrow_mut();
        let whole = [std::mem::take(&mut seen.text), text.to_vec()].concat();
        seen.bodies.push((id, whole));
    }

    fn call(&mut self, _id: &[u8]) -> Handle {
        Handle::default()
    }

    fn quote(&mut self, _message: Id, _call: Id, _text: &str) {}
}

fn measured(body: &mut Body<'_>, text: &[u8], piece_bytes: usize) -> Measured {
    body.clear();
    text.chunks(piece_bytes).for_each(|piece| body.push(piece));
    body.measure()
}

#[test]
fn a_study_is_handed_all_of_a_body_and_never_much_at_once() {
    let words = b"a caf\xC3\xA9 ".repeat(3 * STUDIED_BYTES / 8 + 1);
    let solid = vec![b'x'; 3 * STUDIED_BYTES];
    let short = vec![b'y'; WINDOW_BYTES];
    let seen = RefCell::default();
    let mut body = Body::new(Some(Box::new(Blanks(&seen))));
    let mut light = Body::new(None);
    for (text, piece_bytes, held_bytes_max) in [
        (&words, 1 << 16, STUDIED_BYTES),
        (&words, usize::MAX, STUDIED_BYTES),
        // Where it cannot be cut, all of it is held.
        (&solid, 1 << 20, 2 * STUDIED_BYTES),
        (&short, 1 << 16, 0),
    ] {
        seen.borrow_mut().held_bytes_max = 0;
        let known = measured(&mut body, text, piece_bytes);
        let expected = Measured { id: Id::of(text), chars: code_points(text), bytes: text.len() as u64 };
        assert_eq!(known, expected);
        assert_eq!(measured(&mut light, text, piece_bytes), expected);
        assert!(seen.borrow().held_bytes_max <= held_bytes_max);
        assert!(seen.borrow_mut().bodies.pop().is_some_and(|(id, whole)| id == expected.id && whole == **text));
        assert_eq!(body.whole().is_some(), text.len() <= WINDOW_BYTES, "whatever a study holds, rows are the same");
        assert_eq!(body.head().first(), text.first());
    }
}

#[test]
fn a_body_that_breaks_off_leaves_nothing_to_the_next_one() {
    let seen = RefCell::default();
    let mut body = Body::new(Some(Box::new(Blanks(&seen))));
    body.push(&b"broken off ".repeat(STUDIED_BYTES / 5));
    let text = b"the next ".repeat(STUDIED_BYTES / 5);
    measured(&mut body, &text, 1 << 20);
    assert!(seen.borrow().bodies == [(Id::of(&text), text)]);
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn facts_about_a_body_in_parts_are_those_of_the_whole(
        texts in prop::collection::vec("([a-zA-Z']{0,6}[ -~\n\té世]{0,4}){0,8}", 1..6),
    ) {
        let params = Params { recursion_depth: 5, numbered_every: 10 };
        let (mut desk, whole) = (BodyAnalyzer::new(3, params), texts.concat());
        let (mut held, mut is_first) = (String::new(), true);
        for text in &texts {
            held.push_str(text);
            let taken = desk.part(held.as_bytes(), is_first);
            is_first &= taken == 0;
            held.drain(..taken);
        }
        prop_assume!(!is_first);
        let id = Id::of(whole.as_bytes());
        let (known, expected) = (desk.rest(id, held.as_bytes()), desk.facts(id, whole.as_bytes()));
        let told = |facts: crate::facts::body_facts::BodyFacts| (facts.body, facts.sha, facts.counted, facts.chars, facts.raw);
        prop_assert!(known.oversize && known.forms.encodings.is_empty());
        prop_assert_eq!(told(known), told(expected), "{:?}", whole);
    }

    #[test]
    fn a_result_is_measured_alike_however_much_of_it_is_held(
        texts in prop::collection::vec("[ -~é世\n]{0,40}", 1..4),
        held_bytes_max in 0_usize..120,
    ) {
        let parts: Vec<_> = texts.iter().map(|text| serde_json::json!({"type": "text", "text": text})).collect();
        let block = serde_json::json!({"type": "tool_result", "tool_use_id": "c", "content": parts});
        let message = serde_json::json!({"role": "user", "content": [block]}).to_string();
        let whole = texts.join("\n");
        let mut draft = ContentDraft::holding(held_bytes_max);
        prop_assert!(read_message(&mut Cursor::new(message.as_bytes()), &mut draft).unwrap().is_some());
        let block = &draft.blocks[0];
        let held = draft.text_of(block);
        prop_assert_eq!(held, &whole.as_bytes()[..held_bytes_max.min(whole.len())]);
        prop_assert_eq!(code_points(held) + block.beyond.chars, whole.chars().count() as u64);
        prop_assert_eq!(held.len() as u64 + block.beyond.bytes, whole.len() as u64);
    }
}

#[test]
fn rows_of_a_long_timeline_are_cut_and_joined() {
    let sizes = [0, 1, 5, 9 << 20, 3, 4 << 20, (4 << 20) + 1, 2 << 20, 2 << 20, 0];
    let rows = |size: usize| Cow::Owned((0..size).map(|place| (place % 251) as u8).collect());
    let file =
        |(source, &size): (u32, &usize)| PackedTimeline { source, bytes: 7, words: Id::of(b"w"), rows: rows(size) };
    let files: Vec<_> = (0..).zip(&sizes).map(file).collect();
    let seal = Seal::new(&[7; SECRET_BYTES]);
    let (mut joined, mut found) = (Joined::default(), Vec::new());
    for group in groups(&files) {
        let batch = batch(&files, &group, &seal).unwrap();
        assert!(group.len() <= 16 && batch.get_array_memory_size() < 5 << 20);
        read(&batch, &mut |row, around| found.extend(joined.add(row.owned(), around))).unwrap();
    }
    assert!(found == files);
    // A row that is missing costs its file, and no other.
    let (mut joined, mut found) = (Joined::default(), Vec::new());
    for (place, group) in groups(&files).iter().enumerate().filter(|(place, _)| *place != 2) {
        let batch = batch(&files, group, &seal).unwrap();
        read(&batch, &mut |row, around| found.extend(joined.add(row.owned(), around))).unwrap();
        assert!(place != 2);
    }
    let sources: Vec<u32> = found.iter().map(|file| file.source).collect();
    assert_eq!(sources, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_hash_that_is_cut_between_rows_comes_back() {
    let (ids, hashes) = (300_000_usize, 100_001_usize);
    let mut rows = vec![pack(&mut FileTimeline::default())[0], 0];
    varint::put(&mut rows, ids as u64);
    rows.extend((1..=ids as u128).flat_map(u128::to_le_bytes));
    varint::put(&mut rows, hashes as u64);
    rows.extend((1..=hashes as u64).flat_map(u64::to_le_bytes));
    let stored = StoredSource { number: 1, key: Id::of(b"log"), ..StoredSource::default() };
    let timeline = PackedTimeline { source: 1, bytes: 0, words: Id::of(b"w"), rows: Cow::Borrowed(&rows) };
    let dir = tempfile::tempdir().unwrap();
    let lake = Lake::open(&dir.path().join("lake")).unwrap();
    let sources = BTreeMap::from([(stored.key, stored.clone())]);
    let lake = lake
        .commit(
            &mut Update { sources: &sources, next_source: 2, news: None, timelines: None, facts: None, rows: None },
            &|| (),
        )
        .unwrap();
    let lake = lake.commit_timelines(vec![(&stored, timeline)], &|| ()).unwrap();
    let read = lake.load_timelines(true, &|row| Some(row.rows.into_owned())).unwrap();
    assert!(read == BTreeMap::from([(1, rows)]));
}
