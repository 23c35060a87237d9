//! References to ranges of numbered lines, written out and read back: what the program only counts.
//!
//! The unit is the line as it is shown, number and all. A hint `> [range-ref: <id>, lines 40-80]` stands for lines that
//! the named body shows exactly so.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use proptest::prelude::*;

use super::encode_text::{hostile_body, line};
use super::hint_texts::range_reference;
use super::log_builder::cases;
use crate::facts::numbered;
use crate::facts::numbered::BodySegment;

/// How every hint begins.
const HINT_START: &str = "> [range-ref: ";

/// The lines of a body that was shown, by number; of two lines with the same number the first counts.
struct Shown<'a>(HashMap<u32, &'a str>);

impl<'a> Shown<'a> {
    fn new(body: &'a str) -> Self {
        let mut lines = HashMap::new();
        for (number, span) in numbered::lines(body).unwrap_or_default() {
            lines.entry(number).or_insert(&body[span]);
        }
        Self(lines)
    }

    /// How many of these lines, with numbers that follow each other, it shows.
    fn run(&self, lines: &[&str]) -> usize {
        let Some(first) = lines.first().and_then(|line| number(line)) else { return 0 };
        let shown = |(line, expected): (&&str, u32)| self.0.get(&expected) == Some(line);
        lines.iter().copied().zip(first..).take_while(|(line, expected)| shown((line, *expected))).count()
    }
}

fn number(line: &str) -> Option<u32> {
    numbered::split(line).map(|(head, _)| head.number)
}

/// Writes a body with a hint for every run of at least `run_min` lines that one of the bodies in `shown`, given with
/// their names, shows already; of several the one with the longest run, of those the last. None if there is no such
/// run, or the body could be misread. A run that is too short is looked at again from its second line on, so `run_min`
/// has to be small.
pub fn encode(new: &str, shown: &[(&str, &str)], run_min: usize) -> Option<String> {
    if shown.is_empty() || !numbered::has_sequence(new) || new.split('\n').any(|line| line.starts_with(HINT_START)) {
        return None;
    }
    let named = shown.iter().filter(|(id, _)| is_name(id));
    let shown: Vec<(&str, Shown<'_>)> = named.map(|(id, body)| (*id, Shown::new(body))).collect();
    let lines: Vec<&str> = new.split('\n').collect();
    let mut written = Vec::with_capacity(lines.len());
    let (mut at, mut any) = (0, false);
    while at < lines.len() {
        let runs = shown.iter().map(|(id, body)| (body.run(&lines[at..]), *id));
        match runs.max_by_key(|(run, _)| *run) {
            Some((run, id)) if run >= run_min.max(1) => {
                let (first, last) = (number(lines[at])?, number(lines[at + run - 1])?);
                written.push(range_reference(id, first, last).trim_end().to_owned());
                at += run;
                any = true;
            }
            _ => {
                written.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    any.then(|| written.join("\n"))
}

/// Writes a body, cut into stretches, with hints in place of runs of them: each run with the name of the body that
/// shows the same lines, in order.
pub fn write(segments: &[BodySegment<'_>], runs: &[(Range<usize>, &str)]) -> String {
    let mut out = String::new();
    let mut end = 0;
    for (run, id) in runs {
        segments[end..run.start].iter().for_each(|segment| out.push_str(segment.text));
        out.push_str(&range_reference(id, segments[run.start].number, segments[run.end - 1].number));
        end = run.end;
    }
    segments[end..].iter().for_each(|segment| out.push_str(segment.text));
    out
}

/// Puts the lines back that hints stand for; `lookup` gives the body with a name. None if a hint leads nowhere.
pub fn decode<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let mut bodies: BTreeMap<&str, Shown<'a>> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let Some(hint) = line.strip_prefix(HINT_START) else {
            out.push_str(line);
            continue;
        };
        let (id, range) = hint.strip_suffix(']')?.split_once(", lines ")?;
        let (first, last) = range.split_once('-')?;
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if !bodies.contains_key(id) {
            bodies.insert(id, Shown::new(lookup(id)?));
        }
        let body = bodies.get(id)?;
        for number in first..=last {
            if number > first {
                out.push('\n');
            }
            out.push_str(body.0.get(&number)?);
        }
    }
    Some(out)
}

/// Whether a hint with this name reads back.
fn is_name(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

fn file(lines: &[String], from: usize) -> String {
    let numbered = lines.iter().enumerate().map(|(index, line)| format!("{:>6}→{line}", from + index));
    numbered.collect::<Vec<_>>().join("\n")
}

fn lookup<'a>(shown: &'a [(&str, &'a str)], id: &str) -> Option<&'a str> {
    shown.iter().find(|(name, _)| *name == id).map(|(_, body)| *body)
}

#[test]
fn lines_that_were_shown_are_referred_to() {
    let mut lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
    let (old, half) = (file(&lines, 1), file(&lines[..9], 1));
    lines[9] = "changed".to_owned();
    let new = format!("{}\nmore", file(&lines, 1));
    let shown = [("one", half.as_str()), ("two", old.as_str())];
    let hints = "> [range-ref: two, lines 1-9]\n    10→changed\n> [range-ref: two, lines 11-20]\nmore";
    assert_eq!(encode(&new, &shown, 5).as_deref(), Some(hints));
    assert_eq!(decode(hints, |id| lookup(&shown, id)).as_deref(), Some(new.as_str()));
    assert_eq!(decode(hints, |_| None), None);
    assert_eq!(encode(&new, &shown, 11), None);
    assert_eq!(encode(&format!("{new}\n> [range-ref: two, lines 1-9]"), &shown, 5), None);
    assert_eq!(encode(&new, &[("a, b", old.as_str())], 5), None);
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn hints_of_anything_are_read_without_a_panic(text in prop_oneof![hostile_body(), ".{0,80}"]) {
        _ = decode(&text, |_| Some("1→a\n2→b"));
    }

    #[test]
    fn ranges_read_back(
        lines in prop::collection::vec(line(), 12..40),
        edits in prop::collection::vec((0usize..40, line()), 0..4),
        hostile in hostile_body(),
        (first, last) in (0usize..12, 12usize..40),
        run_min in 0usize..8,
    ) {
        let old = file(&lines, 1);
        let part = file(&lines[first..last.min(lines.len())], first + 1);
        let mut changed = lines;
        for (at, line) in edits {
            if let Some(old) = changed.get_mut(at) {
                *old = line;
            }
        }
        let shown = [("one", part.as_str()), ("two", old.as_str()), ("three", hostile.as_str())];
        for new in [file(&changed, 1) + "\nend\n", hostile.clone(), format!("{hostile}\n{part}")] {
            if let Some(hints) = encode(&new, &shown, run_min) {
                prop_assert_eq!(decode(&hints, |id| lookup(&shown, id)), Some(new));
            }
        }
        let again = encode(&old, &shown, 5).expect("shown before");
        prop_assert!(again.lines().count() < old.lines().count());
    }
}
