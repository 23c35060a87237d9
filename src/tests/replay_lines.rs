//! References to lines: they rest on the past only, say what is so, and cost what their texts cost, over contexts
//! of many bodies with their real texts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::range_references;
use crate::base::body_shape::Showing;
use crate::base::id::{Id, work};
use crate::base::names::{Names, Sym};
use crate::base::tokenizer::Size;
use crate::facts::body_analyzer::BodyAnalyzer;
use crate::facts::body_facts::{BodyFacts, BodyLine, BodyLines, WantedFacts, keep_wanted, witness};
use crate::facts::encode::Params;
use crate::facts::numbered::segments;
use crate::logs::history::{Call, CallDetails, Chain, History};
use crate::logs::trace::{Handle, Place, ResultKind, Status};
use crate::replay::laid_out_calls::LaidOutCalls;
use crate::replay::lines_of_contexts::LinesOfContexts;
use crate::replay::runs::{LineRun, Windows};
use crate::replay::savings::Expanded;
use crate::replay::tape::{BodyAtHand, Endpoint, Response, SessionProfiles};
use crate::replay::{
    Decision, ReplayOptions, Scenario, SentAs, SessionProfile, Tape, TapeEntry, ToolKind, replay, replay_expanded,
};
use crate::settings::{AgentClass, Effective};

const EXTENDED: ReplayOptions = ReplayOptions { extended: true, invalidate: true, counting: None };
const RANGE_LINES_MIN: usize = 5;

/// Texts as they were shown, one behind the other, in one context unless said otherwise.
struct Read {
    texts: Vec<String>,
    tape: Tape,
}

impl Read {
    /// One response per text, in the partition that is given with it.
    fn new(shown: &[(String, u32)]) -> Self {
        let mut desk = BodyAnalyzer::new(1, Params { recursion_depth: 5, numbered_every: 10 });
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        let mut facts: Vec<BodyFacts> = Vec::new();
        let mut responses = Vec::new();
        for (index, (text, partition)) in shown.iter().enumerate() {
            let body = *numbers.entry(text).or_insert_with(|| {
                // No other format: what is tested is references to lines.
                let mut row = desk.facts(Id::of(text.as_bytes()), text.as_bytes());
                row.forms.encodings.clear();
                facts.push(row);
                facts.len() as u32 - 1
            });
            let handle = desk.measure(&format!(" {}", name(index as u32)));
            let handle = Handle { short: 0, bytes: 8, tokens: handle.tokens.map(|tokens| tokens as u8) };
            responses.push(Response {
                body,
                endpoint: 0,
                session: 0,
                chain: 0,
                partition: *partition,
                path: Id::NONE,
                outcome: TapeEntry::Answer,
                ran: true,
                handle,
                showing: Showing::Rows,
                body_at_hand: BodyAtHand::default(),
            });
        }
        let endpoint = Endpoint { tool: "Read".into(), class: "Read".into(), kind: ToolKind::FileRead, shipped: None };
        let tape = Tape {
            responses,
            evictions: Vec::new(),
            facts,
            endpoints: vec![endpoint],
            sessions: SessionProfiles::new(&[SessionProfile { model: String::new(), class: AgentClass::Default }]),
            range_lines_min: RANGE_LINES_MIN,
            encodings: Vec::new(),
            windows: Windows::default(),
            quotes: Vec::new(),
        };
        let mut read = Self { texts: shown.iter().map(|(text, _)| text.clone()).collect(), tape };
        read.tape.derive();
        read
    }

    fn decide(&self) -> (Vec<(Decision, Vec<LineRun>)>, Expanded) {
        decide(&self.tape)
    }
}

fn decide(tape: &Tape) -> (Vec<(Decision, Vec<LineRun>)>, Expanded) {
    decide_over(tape, &tape.facts)
}

/// The same, with runs told by places among all lines of these facts.
fn decide_over(tape: &Tape, whole: &[BodyFacts]) -> (Vec<(Decision, Vec<LineRun>)>, Expanded) {
    let mut decisions = Vec::new();
    let scenario = Scenario::new(&Effective::built_in().settings, tape, EXTENDED);
    let (_, expanded) = replay_expanded(tape, &scenario, &mut |index, decision, runs| {
        let body = tape.responses[index as usize].body;
        decisions.push((*decision, runs.iter().map(|run| among_all_lines(tape, whole, body, run)).collect()));
    });
    (decisions, expanded)
}

/// A run by places among all lines of its body: a tape takes lines that nobody shares together.
fn among_all_lines(tape: &Tape, whole: &[BodyFacts], body: u32, run: &LineRun) -> LineRun {
    let first = tape.windows.lines_of(body)[run.lines.start];
    let start = whole[body as usize].lines.iter().position(|line| line == first).unwrap();
    LineRun { lines: start..start + run.lines.len(), ..*run }
}

fn name(response: u32) -> String {
    format!("aB3dE{response:03}")
}

/// Lines of a file from a line on; the text of each line tells its number and its version.
fn numbered(from: usize, versions: &[u8]) -> String {
    let line = |(at, version): (usize, &u8)| format!("{:>6}\tlet value_{version} = compute({version});\n", from + at);
    versions.iter().enumerate().map(line).collect()
}

/// Reads of parts of a file that is edited between them.
fn reads() -> impl Strategy<Value = Vec<(String, u32)>> {
    let flags = (prop::bool::weighted(0.05), prop::bool::weighted(0.1));
    let read = (0_usize..50, 1_usize..40, 0_usize..60, 0_u8..4, flags);
    prop::collection::vec(read, 1..24).prop_map(|reads| {
        let (mut file, mut partition) = (vec![0_u8; 60], 0);
        let mut shown = Vec::new();
        for (number, (from, length, edited, version, (compacted, twice))) in reads.into_iter().enumerate() {
            file[edited] = version;
            partition += u32::from(compacted);
            let end = (from + length).min(file.len());
            // A line at the end that tells reads apart, so that few of them are equal as a whole.
            let text = numbered(from + 1, &file[from..end]);
            // The numbers of another file, which are the same.
            let other = if twice { numbered(from + 1, &vec![9; end - from]) } else { String::new() };
            let text = text + &other + &format!("read {}", number % 7);
            shown.push((text, partition));
        }
        shown
    })
}

fn evictions() -> impl Strategy<Value = Vec<(u32, u32)>> {
    prop::collection::vec((0_u32..24, 0_u32..24), 0..4).prop_map(|pairs| {
        let mut pairs: Vec<(u32, u32)> = pairs.into_iter().filter(|(before, gone)| gone < before).collect();
        pairs.sort_unstable();
        pairs
    })
}

/// A call that is shown a text in a partition.
fn call(text: &str, partition: u32) -> Call {
    Call {
        id: Id::NONE,
        message: Id::NONE,
        tool: Sym::default(),
        chain: 0,
        step: 0,
        partition,
        turn: 0,
        ts: 0,
        latency_ms: None,
        status: Status::Ok,
        kind: ResultKind::Text,
        chars: text.len() as u32,
        bytes: text.len() as u32,
        body: Id::of(text.as_bytes()),
        shape: 0,
        endpoint: Sym::default(),
        says_nothing: false,
    }
}

/// Calls of one tool in one chain.
fn laid_out(calls: impl Iterator<Item = Call>) -> LaidOutCalls {
    let calls: Vec<Call> = calls.collect();
    let (agent, place) = (Id::NONE, Place::Main);
    let chain = Chain { session: 0, agent, place, calls: 0..calls.len(), compactions: Vec::new() };
    let details = vec![CallDetails { showing: Showing::Rows, ..CallDetails::default() }; calls.len()];
    let history = History { chains: vec![chain], calls: calls.into(), details: details.into(), ..History::default() };
    let mut names = Names::default();
    names.intern("Read");
    let endpoint_of = |tool: &str, class: &str| Endpoint {
        tool: tool.into(),
        class: class.into(),
        kind: ToolKind::FileRead,
        shipped: None,
    };
    LaidOutCalls::new(&history, &names, &endpoint_of)
}

/// What a replay is given of the facts of a tape.
fn given(read: &Read, shown: &[(String, u32)]) -> Vec<BodyFacts> {
    let calls = laid_out(shown.iter().map(|(text, partition)| call(text, *partition)));
    let asked_for = LinesOfContexts::new(&calls, RANGE_LINES_MIN);
    read.tape.facts.iter().for_each(|facts| asked_for.see(facts));
    let mut facts = read.tape.facts.clone();
    keep_wanted(&mut facts, &asked_for);
    facts
}

#[test]
fn only_bodies_with_lines_that_their_context_is_shown_twice_are_given_with_lines() {
    let texts = [numbered(1, &[0; 20]), numbered(11, &[0; 20]), numbered(101, &[0; 20]), numbered(111, &[0; 20])];
    let shown: Vec<(String, u32)> = texts.into_iter().zip([0, 0, 0, 1]).collect();
    let given = given(&Read::new(&shown), &shown);
    assert_eq!(given.iter().map(|facts| !facts.lines.is_empty()).collect::<Vec<_>>(), [true, true, false, false]);
    // The same text again, in its own context and in another.
    let again: Vec<(String, u32)> = [(&shown[0].0, 0), (&shown[0].0, 0), (&shown[2].0, 0), (&shown[2].0, 1)]
        .map(|(text, partition)| (text.clone(), partition))
        .into();
    let given = self::given(&Read::new(&again), &again);
    assert_eq!(given.iter().map(|facts| !facts.lines.is_empty()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn lines_that_no_context_is_shown_twice_are_given_as_one() {
    let shown: Vec<(String, u32)> = [numbered(1, &[0; 20]), numbered(11, &[0; 20])].map(|text| (text, 0)).into();
    let whole = Read::new(&shown).tape.facts;
    for (facts, whole) in given(&Read::new(&shown), &shown).iter().zip(whole) {
        let lines: Vec<BodyLine> = facts.lines.iter().collect();
        let kept: Vec<BodyLine> = lines.iter().filter(|line| line.number > 0).copied().collect();
        let is_shared = |line: &BodyLine| (11..=20).contains(&line.number);
        assert_eq!(kept, whole.lines.iter().filter(is_shared).collect::<Vec<_>>());
        // What is before them as one, and what is behind them.
        assert!(lines.len() <= kept.len() + 2);
        assert_eq!(lines.iter().fold(Size::default(), |sum, line| sum.plus(&line.size)), whole.raw);
    }
}

/// Numbers of lines: small ones that follow each other, none, and any.
fn numbers() -> impl Strategy<Value = u32> {
    prop_oneof![0_u32..3, any::<u32>(), Just(u32::MAX)]
}

/// Two lines whose XXH3-64 ends in the same 32 bits.
const TWINS: [&str; 2] = ["     3\tlet limit = 42811;\n", "     3\tlet limit = 46908;\n"];

#[test]
fn lines_with_the_same_short_hash_are_not_taken_for_each_other() {
    let [first, other] = TWINS.map(|twin| xxhash_rust::xxh3::xxh3_64(twin.as_bytes()) as u32);
    assert_eq!(first, other, "the lines collide in a short hash");
    let body = |twin: &str| {
        let line = |number: usize| match number {
            3 => twin.to_owned(),
            _ => format!("{number:>6}\tlet value_{number} = compute({number});\n"),
        };
        (1..=20).map(line).collect::<String>() + "end"
    };
    let read = Read::new(&[(body(TWINS[0]), 0), (body(TWINS[1]), 0)]);
    let (decisions, expanded) = read.decide();
    assert_eq!(decisions[1].0.what, SentAs::RangeReference);
    // The third line is shown, and the two before it are no run. The twentieth goes with the text behind it.
    assert_eq!(decisions[1].1, [LineRun { lines: 3..19, shown_by: 0 }]);
    assert_eq!(expanded, Expanded { same: 1, different: 0 });
}

#[test]
fn a_hint_that_does_not_give_the_body_back_is_counted_as_such() {
    let versions: Vec<u8> = (0..20).collect();
    let mut read = Read::new(&[(numbered(1, &versions) + "one", 0), (numbered(1, &versions) + "two", 0)]);
    assert_eq!(read.decide().1, Expanded { same: 1, different: 0 });
    // The layer still goes by the windows that were numbered before the line changed.
    let first = read.tape.responses[0].body as usize;
    read.tape.windows.change_line_of(first, 7, witness("something else"));
    assert_eq!(read.decide().1, Expanded { same: 0, different: 1 });
}

#[test]
fn the_longest_run_is_referred_to_whoever_showed_a_line_last() {
    // Line by line: one response shows all of a file, a later one two pieces of it.
    let whole: Vec<u8> = (0..60).map(|line| line / 7).collect();
    let piece = numbered(11, &whole[10..16]) + "…\n" + &numbered(31, &whole[30..36]) + "piece";
    let read = Read::new(&[(numbered(1, &whole) + "one", 0), (piece, 0), (numbered(1, &whole) + "three", 0)]);
    let (decisions, _) = read.decide();
    assert_eq!(decisions[2].1, [LineRun { lines: 0..59, shown_by: 0 }]);
}

#[test]
fn a_later_response_does_not_change_what_an_earlier_one_refers_to() {
    let whole: Vec<u8> = (0..40).map(|line| line / 7).collect();
    // A few lines as they were, and more that only a later response shows again.
    let mixed: Vec<u8> = whole[9..12].iter().copied().chain([90, 91, 92, 93, 94, 95]).collect();
    let shown = [
        (numbered(1, &whole) + "one", 0),
        (numbered(10, &mixed) + "two", 0),
        (numbered(1, &whole) + "three", 0),
        (numbered(13, &mixed[3..]) + "four", 0),
    ];
    let (early, late) = (Read::new(&shown[..3]).decide().0, Read::new(&shown).decide().0);
    assert_eq!(early[..], late[..3]);
    assert_eq!(late[2].1, [LineRun { lines: 0..39, shown_by: 0 }]);
    assert_eq!(late[3].1, [LineRun { lines: 0..5, shown_by: 1 }]);
}

#[test]
fn the_work_grows_with_the_lines_however_often_they_were_shown() {
    let looks = |reads: usize| {
        // Runs of six lines that all begin alike, behind lines of their own: every place is looked at, none is long.
        let text = |read: usize| -> String {
            let block = |at: usize| match at % 7 {
                0 => u8::try_from(read % 200).unwrap() + 20,
                _ => 1,
            };
            numbered(1, &(0..70).map(block).collect::<Vec<u8>>()) + &format!("read {read}")
        };
        let read = Read::new(&(0..reads).map(|read| (text(read), 0)).collect::<Vec<_>>());
        let scenario = Scenario::new(&Effective::built_in().settings, &read.tape, EXTENDED);
        work::of(|| _ = replay(&read.tape, &scenario))
    };
    let (few, many) = (looks(40), looks(160));
    assert!(few > 0 && many <= 5 * few, "{few} places for 40 reads, {many} for 160");
}

proptest! {
    #![proptest_config(super::log_builder::cases(96))]

    #[test]
    fn packed_lines_are_the_lines(given in prop::collection::vec((numbers(), any::<u64>(), any::<[u32; 3]>()), 0..40)) {
        let line = |&(number, text, [bytes, a, b]): &(u32, u64, [u32; 3])| BodyLine { number, text, size: Size { bytes, tokens: [a, b] } };
        let given: Vec<BodyLine> = given.iter().map(line).collect();
        let packed: BodyLines = given.iter().copied().collect();
        prop_assert_eq!(packed.len(), given.len());
        prop_assert_eq!(packed.iter().collect::<Vec<_>>(), given);
    }

    #[test]
    fn lines_that_do_not_fit_together_are_read_as_far_as_they_do(witnesses: Vec<u8>, sizes: Vec<u8>) {
        let mut lines = BodyLines::default();
        lines.set_witnesses(witnesses.into());
        lines.set_sizes(sizes.into());
        prop_assert!(lines.iter().count() <= lines.len());
    }

    #[test]
    fn what_is_decided_does_not_depend_on_what_comes_later(shown in reads(), gone in evictions()) {
        let mut whole = Read::new(&shown);
        whole.tape.evictions = gone;
        let decisions = whole.decide().0;
        for cut in (1..shown.len()).rev() {
            // Nothing of what comes later is left, neither the responses nor what follows from them.
            let Read { tape, .. } = &mut whole;
            tape.responses.truncate(cut);
            tape.evictions.retain(|(before, _)| (*before as usize) < cut);
            tape.derive();
            prop_assert_eq!(&decide(tape).0[..], &decisions[..cut], "cut at {}", cut);
        }
    }

    #[test]
    fn what_is_not_given_changes_nothing(shown in reads(), gone in evictions()) {
        let mut read = Read::new(&shown);
        read.tape.evictions = gone;
        let decisions = read.decide();
        let given = given(&read, &shown);
        let whole = std::mem::replace(&mut read.tape.facts, given);
        read.tape.derive();
        prop_assert_eq!(decide_over(&read.tape, &whole), decisions);
    }

    #[test]
    fn passing_over_what_nobody_shares_changes_nothing(shown in reads(), gone in evictions()) {
        let mut read = Read::new(&shown);
        read.tape.evictions = gone;
        let decisions = read.decide();
        read.tape.responses.iter_mut().for_each(|response| response.body_at_hand.shares_lines = true);
        prop_assert_eq!(read.decide(), decisions);
    }

    #[test]
    fn what_was_sent_gives_every_body_back_and_costs_what_was_booked(shown in reads(), gone in evictions()) {
        let mut read = Read::new(&shown);
        read.tape.evictions = gone;
        let (decisions, expanded) = read.decide();
        let mut desk = BodyAnalyzer::new(1, Params { recursion_depth: 5, numbered_every: 10 });
        let mut standing: BTreeMap<String, String> = BTreeMap::new();
        let mut hints = 0;
        for (index, (decision, runs)) in (0_u32..).zip(&decisions) {
            let text = &read.texts[index as usize];
            for (_, gone) in read.tape.evictions.iter().filter(|(before, _)| *before == index) {
                standing.remove(&name(*gone));
            }
            if index > 0 && shown[index as usize].1 != shown[index as usize - 1].1 {
                standing.clear();
            }
            match decision.what {
                SentAs::AsIs => _ = standing.insert(name(index), text.clone()),
                SentAs::Reference(to) => {
                    hints += 1;
                    prop_assert_eq!(standing.get(&name(to)), Some(text));
                }
                SentAs::RangeReference => {
                    hints += 1;
                    let names: Vec<String> = runs.iter().map(|run| name(run.shown_by)).collect();
                    let named: Vec<_> =
                        runs.iter().zip(&names).map(|(run, name)| (run.lines.clone(), name.as_str())).collect();
                    let sent = range_references::write(&segments(text), &named);
                    prop_assert_eq!(decision.tokens, u64::from(desk.measure(&sent).tokens[0]), "{}", sent);
                    let back = range_references::decode(&sent, |id| standing.get(id).map(String::as_str));
                    prop_assert_eq!(back.as_ref(), Some(text), "{}", sent);
                    standing.insert(name(index), sent);
                }
                SentAs::NearReference(_) | SentAs::Encoded(_) => prop_assert!(false, "no other layer has anything to say"),
            }
        }
        prop_assert_eq!(expanded, Expanded { same: hints, different: 0 });
    }
}

#[test]
fn bodies_are_numbered_as_calls_first_need_them_and_what_nobody_knows_is_unstudied() {
    let calls = ["b", "a", "b", "unknown", "c"].map(|text| call(text, 0)).into_iter();
    let silent = Call { status: Status::Unanswered, kind: ResultKind::Absent, ..call("unknown", 0) };
    let mut calls = laid_out(calls.chain([silent]));
    let of = |text: &str| BodyFacts { body: Id::of(text.as_bytes()), ..BodyFacts::default() };
    let mut facts: Vec<BodyFacts> = ["a", "b", "c", "nobody needs it", "b"].map(of).into();
    calls.name_bodies(&mut facts);
    assert_eq!(facts, ["b", "a", "c"].map(of));
    let found: Vec<(u32, TapeEntry)> = calls.responses.iter().map(|call| (call.body, call.outcome)).collect();
    let (answer, no_body) = (TapeEntry::Answer, u32::MAX);
    let unknown = [TapeEntry::Unstudied, TapeEntry::Silent].map(|entry| (no_body, entry));
    assert_eq!(found, [(0, answer), (1, answer), (0, answer), unknown[0], (2, answer), unknown[1]]);
}
