//! The replay: every kind of hint that must not be shown is not shown, the books balance, and the stack agrees with a
//! plain re-implementation.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::prelude::*;

use super::{hint_texts, range_references};
use crate::base::body_shape::{BodyShape, KeptLines, LayerId, Showing};
use crate::base::id::{Id, work};
use crate::base::key_path::KeyPath;
use crate::base::pseudonyms::published_tool;
use crate::base::tokenizer::{Bpe, Size};
use crate::facts::analysis_pool::{AnalysisPool, FactsTaker};
use crate::facts::body_analyzer::BodyAnalyzer;
use crate::facts::body_facts::{BodyFacts, BodyLine, Encoding, witness};
use crate::facts::encode::Params;
use crate::facts::hints::{ShownAs, Wording};
use crate::facts::numbered::segments;
use crate::facts::shape::Description;
use crate::facts::tokens::Counter;
use crate::facts::{encode, hints, near_ref};
use crate::logs::trace::Handle;
use crate::replay::reach::Reach;
use crate::replay::runs::Windows;
use crate::replay::savings::{Tally, total};
use crate::replay::tape::{BodyAtHand, Endpoint, Response, SessionProfiles};
use crate::replay::{
    Decision, EffectsBaseline, HistoryPiece, Ledger, ReplayOptions, Scenario, SentAs, SessionProfile, Tape, TapeEntry,
    ToolKind, bounds, replay, replay_each,
};
use crate::settings::tool_model::ToolModel;
use crate::settings::{AgentClass, Effective, Settings, SettingsFile, what_if};
use crate::telemetry::PipelineEvent;

pub(super) const OPTIONS: ReplayOptions = ReplayOptions { extended: false, invalidate: true, counting: None };
const RANGE_LINES_MIN: usize = 5;
pub(super) const EXTENDED: ReplayOptions = ReplayOptions { extended: true, ..OPTIONS };

fn size(tokens: u32) -> Size {
    Size { bytes: tokens * 4, tokens: [tokens, tokens] }
}

/// A body of prose with that many tokens, named by a number.
pub(super) fn prose(name: u8, tokens: u32) -> BodyFacts {
    let body = Id([name; 16]);
    BodyFacts { body, raw: size(tokens), shape: BodyShape::Prose as u8, counted: 3, ..BodyFacts::default() }
}

pub(super) fn encoded(mut facts: BodyFacts, shape: BodyShape, format: &str, tokens: u32) -> BodyFacts {
    facts.shape = shape as u8;
    facts.forms.measures =
        Description { columns: 4, items: 40, fields: 40, key_stability: 1.0, ..facts.forms.measures };
    facts.forms.encodings.push(Encoding {
        format: encode::find(format).unwrap().0,
        depth: 0,
        size: size(tokens),
        kept: KeptLines::Lines,
    });
    facts
}

/// Responses of one session in order; `with` changes what matters to a test.
pub(super) struct Story {
    pub(super) tape: Tape,
    pub(super) settings: Settings,
}

impl Story {
    pub(super) fn new(facts: Vec<BodyFacts>) -> Self {
        let endpoint =
            |tool: &str, kind| Endpoint { tool: tool.to_owned(), class: tool.to_owned(), kind, shipped: None };
        let endpoints = vec![
            endpoint("Read", ToolKind::FileRead),
            endpoint("Bash", ToolKind::Other),
            endpoint("Edit", ToolKind::FileMutate),
        ];
        let sessions = vec![SessionProfile { model: String::new(), class: AgentClass::Default }; 2];
        let (responses, evictions, encodings) = (Vec::new(), Vec::new(), Vec::new());
        let (windows, range_lines_min) = (Windows::default(), RANGE_LINES_MIN);
        let tape = Tape {
            responses,
            evictions,
            facts,
            endpoints,
            sessions: SessionProfiles::new(&sessions),
            range_lines_min,
            encodings,
            windows,
            quotes: Vec::new(),
        };
        Self { tape, settings: Effective::built_in().settings }
    }

    pub(super) fn set(mut self, key: &str, value: &str) -> Self {
        let file = SettingsFile::missing(std::path::Path::new("x.toml"));
        let change = (key.parse::<KeyPath>().unwrap(), value.parse().unwrap());
        self.settings = what_if(&file, &[change]).unwrap();
        self
    }

    pub(super) fn show(mut self, body: u32, with: impl FnOnce(&mut Response)) -> Self {
        let handle = Handle { short: 0, bytes: 8, tokens: [4, 4] };
        let mut response = Response {
            showing: Showing::Nothing,
            body,
            endpoint: 0,
            session: 0,
            chain: 0,
            partition: 0,
            path: Id::NONE,
            outcome: TapeEntry::Answer,
            ran: true,
            handle,
            body_at_hand: BodyAtHand::default(),
        };
        with(&mut response);
        self.tape.responses.push(response);
        self.tape.derive();
        self
    }

    fn again(self, body: u32) -> Self {
        self.show(body, |_| {})
    }

    pub(super) fn evict(mut self, response: u32) -> Self {
        self.tape.evictions.push((self.tape.responses.len() as u32, response));
        self
    }

    fn ledger(&self, options: ReplayOptions) -> Ledger {
        replay(&self.tape, &Scenario::new(&self.settings, &self.tape, options))
    }

    fn decisions(&self, options: ReplayOptions) -> Vec<Decision> {
        let mut decisions = Vec::new();
        let scenario = Scenario::new(&self.settings, &self.tape, options);
        replay_each(&self.tape, &scenario, &mut |_, decision| decisions.push(*decision));
        decisions
    }

    fn last(&self) -> SentAs {
        self.decisions(OPTIONS).last().unwrap().what
    }
}

fn one_body() -> Story {
    Story::new(vec![prose(1, 500), prose(2, 500), prose(3, 500)])
}

#[test]
fn a_repeat_in_the_same_context_is_answered_by_a_reference_to_the_response_that_showed_it() {
    assert_eq!(one_body().again(0).again(0).last(), SentAs::Reference(0));
    // The hit does not become the target of later hints.
    assert_eq!(one_body().again(0).again(0).again(0).last(), SentAs::Reference(0));
}

#[test]
fn nothing_refers_over_a_compaction() {
    assert_eq!(one_body().again(0).show(0, |r| r.partition = 1).last(), SentAs::AsIs);
}

#[test]
fn nothing_refers_to_a_result_that_a_micro_compaction_cleared() {
    let story = one_body().again(0).evict(0).again(0);
    assert_eq!(story.last(), SentAs::AsIs);
    // It was shown again then, and that copy can be referred to.
    assert_eq!(story.again(0).last(), SentAs::Reference(1));
}

#[test]
fn nothing_refers_across_subagents_and_sessions() {
    assert_eq!(one_body().again(0).show(0, |r| r.chain = 1).last(), SentAs::AsIs);
    assert_eq!(one_body().again(0).show(0, |r| (r.session, r.chain) = (1, 1)).last(), SentAs::AsIs);
    // Back on the main thread of the tape the context is another one as well: chains are laid out whole.
    assert_eq!(one_body().again(0).show(1, |r| r.chain = 1).again(0).last(), SentAs::AsIs);
}

#[test]
fn nothing_refers_to_a_failure_or_an_answer_with_images() {
    for outcome in [TapeEntry::Failure, TapeEntry::Mixed] {
        assert_eq!(one_body().show(0, |r| r.outcome = outcome).again(0).last(), SentAs::AsIs, "{outcome:?}");
        assert_eq!(one_body().again(0).show(0, |r| r.outcome = outcome).last(), SentAs::AsIs, "{outcome:?}");
    }
}

#[test]
fn a_body_that_was_shown_re_encoded_is_never_called_identical() {
    let facts = vec![encoded(prose(1, 500), BodyShape::MarkdownTable, "csv_from_md", 300)];
    let decisions = Story::new(facts).again(0).again(0).decisions(OPTIONS);
    assert!(matches!(decisions[0].what, SentAs::Encoded(_)));
    assert_eq!(decisions[1].what, SentAs::Reference(0));
    let frame = |shown| u64::from(hints::reference_size(shown, Wording::Standard).tokens[0]);
    assert_eq!(decisions[1].tokens, frame(ShownAs::Encoded) + 4);
    assert_ne!(frame(ShownAs::Encoded), frame(ShownAs::AsIs), "the test can tell them apart");
    for shown in [ShownAs::AsIs, ShownAs::Encoded] {
        for wording in [Wording::Terse, Wording::Standard, Wording::Verbose("other")] {
            let text = hint_texts::reference("abcd1234", shown, wording);
            assert_eq!(text.contains("encoded"), shown == ShownAs::Encoded, "{text}");
            assert!(shown == ShownAs::AsIs || !text.contains("identical"), "{text}");
        }
    }
}

/// Two JSON objects that differ in one scalar, and a third that differs from the second.
fn near_bodies() -> Vec<BodyFacts> {
    let text = |status: &str| format!(r#"{{"status":"{status}","jobs":[{}],"id":7}}"#, "1,".repeat(400) + "1");
    let mut counter = Counter::new(Bpe::O200kBase);
    ["pending", "running", "success"]
        .iter()
        .zip(1..)
        .map(|(status, name)| {
            let text = text(status);
            let mut measure = |piece: &str| {
                let tokens = counter.count(piece) as u32;
                Size { bytes: piece.len() as u32, tokens: [tokens, tokens] }
            };
            let mut facts = prose(name, 800);
            facts.shape = BodyShape::NestedObject as u8;
            facts.near = near_ref::signature(&text, &mut measure).map(Box::new);
            facts
        })
        .collect()
}

fn near_story() -> Story {
    Story::new(near_bodies()).set("dedup.near_ref_enabled", "true")
}

#[test]
fn a_near_reference_costs_what_its_text_costs_and_is_counted() {
    let story = near_story().again(0).again(1);
    let decision = story.decisions(OPTIONS)[1];
    assert_eq!(decision.what, SentAs::NearReference(0));
    let text = hint_texts::near_reference("abcd1234", &[("status", "pending", "running")]);
    let mut counter = Counter::new(Bpe::O200kBase);
    let handle = counter.count(" abcd1234");
    assert_eq!(decision.tokens - 4, counter.count(&text) - handle, "{text}");
    assert_eq!(story.ledger(OPTIONS).near_refs, 1);
    assert_eq!(Story { settings: Effective::built_in().settings, ..story }.last(), SentAs::AsIs, "off by default");
}

#[test]
fn nothing_refers_to_a_body_of_which_only_a_delta_was_shown() {
    let decisions = near_story().again(0).again(1).again(1).decisions(OPTIONS);
    assert_eq!(decisions[2].what, SentAs::NearReference(0), "the delta against what was shown, not against the delta");
    // Success against running would be near too, but running was never shown.
    assert_eq!(near_story().again(0).again(1).again(2).last(), SentAs::NearReference(0));
}

#[test]
fn near_references_stay_within_their_endpoint_and_their_limit() {
    assert_eq!(near_story().again(0).show(1, |r| r.endpoint = 1).last(), SentAs::AsIs);
    let limited = near_story().set("hints.types.near_ref.max_per_session", "0");
    let limited = Story { settings: Settings { dedup: near_story().settings.dedup, ..limited.settings }, ..limited };
    assert_eq!(limited.again(0).again(1).last(), SentAs::AsIs);
}

#[test]
fn near_bodies_differ_in_scalars_of_the_same_type_and_in_nothing_else() {
    let body = |first: &str, rest: &str| format!(r#"{{"status":{first},"rest":"{}"{rest}}}"#, "x".repeat(600));
    let mut measure = |piece: &str| Size { bytes: piece.len() as u32, tokens: [1, 1] };
    let mut near = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|text| near_ref::signature(text, &mut measure));
        a.zip(b).and_then(|(a, b)| near_ref::delta(&a, &b)).is_some()
    };
    assert!(near(&body("\"a\"", ""), &body("\"b\"", "")));
    assert!(near(&body("12", ""), &body("34", "")));
    for (a, b) in [
        (body("\"12\"", ""), body("12", "")),
        (body("null", ""), body("\"x\"", "")),
        (body("\"a\"", ""), body("\"a\"", "")),
        (body("\"a\"", ""), body("\"b\"", " ")),
        (body("\"a\"", ""), body("\"b\"", ",\"more\":1")),
        (body("\"a\"", ""), body("\"b, c: d\"", "")),
        (body("\"a\"", ""), body("\"b→c\"", "")),
        (body("\"a\"", ""), body("\"b]\"", "")),
        (body("\"a\"", ""), body("\"b\\n\"", "")),
        (body("\"a\"", ""), body("\"\"", "")),
        (body("\"a\"", ""), body(&format!("\"{}\"", "b".repeat(60)), "")),
        (body("[1]", ""), body("[2]", "")),
    ] {
        assert!(!near(&a, &b), "{} {}", &a[..20], &b[..20]);
    }
}

#[test]
fn an_edit_drops_what_was_read_from_the_file_and_nothing_else() {
    let (here, there) = (Id([1; 16]), Id([2; 16]));
    let edited = |path| {
        one_body()
            .show(0, move |r| r.path = here)
            .show(1, move |r| (r.endpoint, r.path) = (2, path))
            .show(0, move |r| r.path = here)
    };
    assert_eq!(edited(here).last(), SentAs::AsIs);
    assert_eq!(edited(there).last(), SentAs::Reference(0));
    let kept = edited(here).decisions(ReplayOptions { invalidate: false, ..OPTIONS });
    assert_eq!(kept.last().unwrap().what, SentAs::Reference(0), "without the rule the reference would hold");
    // An edit that was refused never ran.
    let refused = one_body()
        .show(0, move |r| r.path = here)
        .show(1, move |r| (r.endpoint, r.path, r.ran, r.outcome) = (2, here, false, TapeEntry::Failure))
        .show(0, move |r| r.path = here);
    assert_eq!(refused.last(), SentAs::Reference(0));
    // The answer of the edit itself may be tiny: it drops all the same.
    let tiny = Story::new(vec![prose(1, 500), prose(2, 3)])
        .show(0, move |r| r.path = here)
        .show(1, move |r| (r.endpoint, r.path) = (2, here))
        .show(0, move |r| r.path = here);
    assert_eq!(tiny.last(), SentAs::AsIs);
}

#[test]
fn a_value_model_drops_answers_by_tool() {
    let story = |set: bool| {
        let story = one_body();
        let story = if set { story.set("tools.Bash.invalidates", "[\"Read\"]") } else { story };
        story.again(0).show(1, |r| r.endpoint = 1).again(0)
    };
    assert_eq!(story(false).last(), SentAs::Reference(0));
    assert_eq!(story(true).last(), SentAs::AsIs);
}

#[test]
fn a_shipped_value_model_drops_answers_unless_the_tool_has_a_block() {
    let story = |key: &str, value: &str| {
        let mut story = one_body().set(key, value);
        story.tape.endpoints[1].shipped = Some(ToolModel { invalidates: vec!["Read".into()], ..ToolModel::default() });
        story.again(0).show(1, |r| r.endpoint = 1).again(0).last()
    };
    assert_eq!(story("dedup.lru_size", "5"), SentAs::AsIs);
    assert_eq!(
        story("tools.\"*\".speculate", "false"),
        SentAs::AsIs,
        "that block is for tools of which nothing is known"
    );
    assert_eq!(story("tools.Bash.speculate", "false"), SentAs::Reference(0), "a block stands for the whole model");
}

#[test]
fn what_a_call_makes_stale_is_known_by_tool_however_many_endpoints_that_has() {
    let mut story = one_body();
    let shipped = Some(ToolModel { invalidates: vec!["Read".into()], ..ToolModel::default() });
    let endpoint = |number: u32| Endpoint {
        tool: "Read".into(),
        class: number.to_string(),
        kind: ToolKind::FileRead,
        shipped: shipped.clone(),
    };
    story.tape.endpoints.extend((0..100).map(endpoint));
    let scenario = Scenario::new(&story.settings, &story.tape, OPTIONS);
    assert!(scenario.endpoints[3..].iter().all(|policy| policy.invalidates.len() == 1));
    assert_eq!(story.again(0).show(1, |r| r.endpoint = 50).again(0).last(), SentAs::AsIs);
}

#[test]
fn an_endpoint_without_l0_stays_out_of_the_cache() {
    let off = || one_body().set("dedup.enabled_per_endpoint.Bash", "false");
    assert_eq!(off().show(0, |r| r.endpoint = 1).show(0, |r| r.endpoint = 1).last(), SentAs::AsIs);
    assert_eq!(off().show(0, |r| r.endpoint = 1).again(0).last(), SentAs::AsIs, "it is no target");
    let crowd = |story: Story| (0..2).fold(story.set("dedup.lru_size", "1").again(0), |story, _| story);
    assert_eq!(crowd(one_body()).show(1, |r| r.endpoint = 1).again(0).last(), SentAs::AsIs);
    let quiet = Story {
        settings: {
            let file = SettingsFile::missing(std::path::Path::new("x.toml"));
            let change = |key: &str, value: &str| (key.parse::<KeyPath>().unwrap(), value.parse().unwrap());
            let changes = [change("dedup.lru_size", "1"), change("dedup.enabled_per_endpoint.Bash", "false")];
            what_if(&file, &changes).unwrap()
        },
        ..one_body()
    };
    assert_eq!(quiet.again(0).show(1, |r| r.endpoint = 1).again(0).last(), SentAs::Reference(0), "it evicts nobody");
}

#[test]
fn a_hint_is_shown_only_if_it_is_cheaper_than_what_would_be_sent_otherwise() {
    let facts = || vec![encoded(prose(1, 60), BodyShape::MarkdownTable, "csv_from_md", 9)];
    let decisions = Story::new(facts()).again(0).again(0).decisions(OPTIONS);
    assert!(matches!(decisions[1].what, SentAs::Encoded(_)), "nine tokens of CSV beat the hint");
    let small = Story::new(vec![prose(1, 10)]).set("dedup.min_body_chars", "1").again(0).again(0);
    assert_eq!(small.last(), SentAs::AsIs);
}

#[test]
fn templates_act_only_where_they_are_active_known_and_cheaper() {
    let facts = || vec![encoded(prose(1, 500), BodyShape::NestedObject, "mr_diff_fence", 300)];
    let with = |story: Story| story.set("templates.endpoint_overrides.Read", "\"mr_diff_fence\"").again(0);
    let decision = with(Story::new(facts())).decisions(OPTIONS)[0];
    assert_eq!((decision.layer, decision.tokens), (LayerId::L1, 300));
    assert_eq!(Story::new(facts()).again(0).decisions(OPTIONS)[0].layer, LayerId::L3, "the router does not use it");
    let dear = vec![encoded(prose(1, 500), BodyShape::NestedObject, "mr_diff_fence", 500)];
    assert_eq!(with(Story::new(dear)).decisions(OPTIONS)[0].layer, LayerId::L3);
}

#[test]
fn the_depth_of_the_session_decides_which_deep_encoding_holds() {
    let deep = encode::find("pipeline_deep_mckp").unwrap().0;
    let mut facts = encoded(prose(1, 500), BodyShape::NestedObject, "json_compact", 450);
    let row = |depth, tokens| Encoding { format: deep, depth, size: size(tokens), kept: KeptLines::Lines };
    facts.forms.encodings.extend([row(0, 440), row(2, 430), row(6, 100)]);
    let at = |profile: &str| {
        let story = Story::new(vec![facts.clone()]).set("profiles.agent.active", &format!("\"{profile}\""));
        story.again(0).decisions(OPTIONS)[0].tokens
    };
    assert_eq!(at("default"), 430, "depth 5");
    assert_eq!(at("file_search_heavy"), 430, "depth 3");
    assert_eq!(at("marathon_refactor"), 100, "depth 7");
}

#[test]
fn published_and_extended_formats_are_kept_apart() {
    let facts = || vec![encoded(prose(1, 500), BodyShape::NumberedList, "numbered_compact", 350)];
    let story = Story::new(facts()).again(0);
    assert_eq!(story.decisions(OPTIONS)[0].layer, LayerId::L3);
    assert_eq!(story.decisions(EXTENDED)[0].tokens, 350);
    // A configuration that lists one is for a pipeline that knows it.
    let listed = Story::new(facts()).set("mckp.formats_enabled", "[\"kv\", \"numbered_compact\"]").again(0);
    assert_eq!(listed.decisions(OPTIONS)[0].tokens, 350);
    let others = Story::new(facts()).set("mckp.formats_enabled", "[\"kv\", \"grouped_paths\"]").again(0);
    assert_eq!(others.decisions(OPTIONS)[0].layer, LayerId::L3);
}

/// A body of numbered lines; each line has its own text.
fn numbered(name: u8, lines: &[(u32, u32)]) -> BodyFacts {
    let text = |number: u32, text: u32| witness(&format!("{number} {text}"));
    let line = |&(number, line): &(u32, u32)| BodyLine { number, text: text(number, line), size: size(20) };
    let mut facts = prose(name, 20 * lines.len() as u32);
    facts.shape = BodyShape::NumberedList as u8;
    facts.lines = lines.iter().map(line).collect();
    facts
}

#[test]
fn lines_that_were_shown_are_referred_to_in_runs() {
    let first: Vec<(u32, u32)> = (1..=40).map(|number| (number, 0)).collect();
    let mut changed = first.clone();
    changed[20].1 = 7;
    let facts = || vec![numbered(1, &first), numbered(2, &changed)];
    let story = Story::new(facts()).again(0).again(1);
    let decision = story.decisions(EXTENDED)[1];
    assert_eq!(decision.what, SentAs::RangeReference);
    let hint = |first, last| u64::from(hints::range_size(first, last).tokens[0]) + 4;
    assert_eq!(decision.tokens, hint(1, 20) + 20 + hint(22, 40));
    assert_eq!(story.decisions(OPTIONS)[1].what, SentAs::AsIs, "published pipelines do not know it");
    let apart = |with: fn(&mut Response)| Story::new(facts()).again(0).show(1, with);
    assert_eq!(apart(|r| r.partition = 1).decisions(EXTENDED)[1].what, SentAs::AsIs);
    assert_eq!(apart(|r| r.chain = 1).decisions(EXTENDED)[1].what, SentAs::AsIs);
    assert_eq!(Story::new(facts()).again(0).evict(0).again(1).decisions(EXTENDED)[1].what, SentAs::AsIs);
    let failed = Story::new(facts()).show(0, |r| r.outcome = TapeEntry::Failure).again(1);
    assert_eq!(failed.decisions(EXTENDED)[1].what, SentAs::AsIs);
    // Only what was really shown can be referred to: the changed line counts as shown by the second response.
    let third = Story::new(facts()).again(0).again(1).again(1);
    assert_eq!(third.decisions(EXTENDED)[2].what, SentAs::RangeReference);
}

#[test]
fn the_three_figures_follow_the_reporting_rule() {
    let mut tally = Tally::default();
    (tally.responses, tally.baseline, tally.sent) = ([1, 0, 1, 1], [100, 0, 100, 100], [10, 0, 70, 100]);
    let savings = tally.savings();
    assert!((savings.dedup.unwrap() - 0.30).abs() < 1e-12);
    assert!((savings.encoder.unwrap() - 0.15).abs() < 1e-12);
    assert!((savings.combined.unwrap() - 0.40).abs() < 1e-12);
    assert!(tally.balances());
    tally.sent[3] = 99;
    assert!(!tally.balances(), "the last layer cannot save");
    (tally.sent[3], tally.sent[2]) = (100, 101);
    assert!(!tally.balances(), "nothing may grow");
    assert_eq!(Tally::default().savings().combined, None, "a share of nothing is no number");
}

#[test]
fn hints_cost_what_their_texts_cost() {
    let mut counters = [Bpe::O200kBase, Bpe::Cl100kBase].map(Counter::new);
    for (text, tokens) in hints::FRAMES.iter().copied() {
        for (counter, tokens) in counters.iter_mut().zip(tokens) {
            assert_eq!(text.split('@').map(|part| counter.count(part)).sum::<u64>(), u64::from(tokens), "{text}");
        }
    }
    for id in ["toolu_01A1b2C3d4E5", "tc_1", "474aed5c", "call-77", "toolu_vrtx_0199zzZZ", "x", "ABCDEFGH"] {
        let handle = hints::handle(id);
        for (place, counter) in counters.iter_mut().enumerate() {
            let name = counter.count(&format!(" {handle}")) as u32;
            for shown in [ShownAs::AsIs, ShownAs::Encoded] {
                for wording in [Wording::Terse, Wording::Standard, Wording::Verbose("file-read")] {
                    let text = hint_texts::reference(handle, shown, wording);
                    let size = hints::reference_size(shown, wording);
                    assert_eq!(counter.count(&text), u64::from(size.tokens[place] + name), "{text}");
                    assert_eq!(text.len(), size.bytes as usize + handle.len(), "{text}");
                }
            }
            for (first, last) in [(1, 5), (9, 10), (99, 104), (998, 1000), (1234, 99_999), (100_000, 1_000_000)] {
                let text = hint_texts::range_reference(handle, first, last);
                let size = hints::range_size(first, last);
                assert_eq!(counter.count(&text), u64::from(size.tokens[place] + name), "{text}");
                assert_eq!(text.len(), size.bytes as usize + handle.len(), "{text}");
            }
        }
    }
}

#[test]
fn names_and_fingerprints_are_the_published_ones() {
    let analysis = AnalysisPool::new(1, Params { recursion_depth: 5, numbered_every: 10 }, std::iter::empty());
    let mut analyst = analysis.begin();
    for (id, short) in [("tc_1", "474aed5c"), ("tc_2", "94236e8f"), ("tc_42", "7c76906f")] {
        assert_eq!(format!("{:08x}", analyst.call(id.as_bytes()).short), short);
    }
    let body = "x".repeat(500);
    analyst.body(Id::of(body.as_bytes()), body.as_bytes());
    analyst.body(Id::of(body.as_bytes()), body.as_bytes());
    drop(analyst);
    let facts = analysis.finish();
    assert_eq!(facts.len(), 1, "a body is studied once");
    assert_eq!(facts[0].sha.to_string(), "c38c2bf3055c516a98ac5d97f30e7c36");
    assert_eq!(Id::pseudonym(b"/src/main.rs").to_string()[..8], *"6ee21a7d");
    assert_eq!(published_tool("mcp__gitlab__get_issue"), "mcp__p9d96d9__get_issue");
    assert_eq!(published_tool("mcp__gitlab"), "mcp__p9d96d9");
    assert_ne!(published_tool("mcp__p9d96d9__get_issue"), "mcp__p9d96d9__get_issue");
    assert_eq!(published_tool("Bash"), "Bash");
}

#[test]
fn facts_are_handed_on_as_soon_as_there_are_enough() {
    let taken: Mutex<Vec<Vec<Id>>> = Mutex::default();
    let take = |facts: &[BodyFacts]| taken.lock().unwrap().push(facts.iter().map(|facts| facts.body).collect());
    let taker = FactsTaker { rows: 4, take: &take };
    let params = Params { recursion_depth: 5, numbered_every: 10 };
    let analysis = AnalysisPool::new(1, params, std::iter::empty()).with_taker(Some(taker));
    let sizes = || taken.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>();
    let mut number = 0;
    for (bodies, expected) in [(3, &[][..]), (2, &[4]), (0, &[4]), (10, &[4, 4, 4]), (1, &[4, 4, 4, 4])] {
        let mut analyst = analysis.begin();
        for _ in 0..bodies {
            number += 1;
            let body = format!("body {number}");
            // Whoever has it is no longer here; it is known all the same.
            (0..2).for_each(|_| analyst.body(Id::of(body.as_bytes()), body.as_bytes()));
        }
        drop(analyst);
        assert_eq!(sizes(), expected, "after {number} bodies");
    }
    let rest = analysis.finish();
    let all: BTreeSet<Id> = taken.lock().unwrap().concat().into_iter().chain(rest.iter().map(|row| row.body)).collect();
    assert_eq!((rest.len(), all.len()), (0, number));
}

#[test]
fn an_event_is_written_and_read_in_the_published_schema() {
    let text = concat!(
        r#"{"session_hash":"s1","tool_call_id_hash":"94236e8f","tool_name_anon":"Bash","endpoint_class":"Bash","#,
        r#""response_chars":500,"shape":"unknown","inner_formats":[],"#,
        r#""content_sha_prefix_hex":"c38c2bf3055c516a98ac5d97f30e7c36","is_dedup_hit":true,"layer_used":"L0","#,
        r#""tokens_baseline":63,"tokens_final":13,"context_partition":0,"is_sidechain":false,"ts_ms":0,"#,
        r#""sample_rate_applied":1.0}"#
    );
    let event: PipelineEvent = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&event).unwrap(), text, "additions are left out when they say nothing");
    let newer = text.replace("\"ts_ms\":0", "\"ts_ms\":0,\"somebody_elses\":1");
    assert_eq!(serde_json::from_str::<PipelineEvent>(&newer).unwrap(), event);
}

#[test]
fn hint_texts_have_the_published_shapes() {
    let at = |wording| hint_texts::reference("474aed5c", ShownAs::AsIs, wording);
    assert_eq!(at(Wording::Terse), "> [ref: 474aed5c]\n");
    assert_eq!(at(Wording::Standard), "> [ref: 474aed5c, byte-identical]\n");
    assert_eq!(at(Wording::Verbose("file-read")), "> [ref: 474aed5c, byte-identical, from: file-read]\n");
    let near = hint_texts::near_reference("tc_42", &[("status", "pending", "success"), ("duration", "12", "34")]);
    assert_eq!(near, "> [near-ref: tc_42, status: pending→success, duration: 12→34]\n");
}

/// Exact references alone, by the plainest means: a list per context, searched from its end.
fn plain_hits(story: &Story, capacity: usize) -> BTreeSet<u32> {
    let mut hits = BTreeSet::new();
    let mut cache: Vec<u32> = Vec::new();
    let mut context = None;
    for (index, response) in (0..).zip(&story.tape.responses) {
        let here = (response.session, response.chain, response.partition);
        if context.replace(here) != Some(here) {
            cache.clear();
        }
        if response.outcome != TapeEntry::Answer || story.tape.facts_of(response).raw.bytes < 200 {
            continue;
        }
        if let Some(place) = cache.iter().position(|&body| body == response.body) {
            cache.remove(place);
            hits.insert(index);
        }
        cache.push(response.body);
        if cache.len() > capacity {
            cache.remove(0);
        }
    }
    hits
}

#[test]
fn the_clairvoyant_cache_keeps_what_l0_keeps_and_saves_what_is_large() {
    let facts = || vec![prose(0, 20), prose(1, 100), prose(2, 5_000)];
    let of = |bodies: &[u32]| {
        let story = Story::new(facts()).set("dedup.lru_size", "1");
        let story = bodies.iter().fold(story, |story, &body| story.again(body));
        let scenario = Scenario::new(&story.settings, &story.tape, OPTIONS);
        (story.ledger(OPTIONS).total.saved_by(LayerId::L0), bounds(&story.tape, &scenario))
    };
    // One of two repeats can be answered.
    let (_, found) = of(&[1, 2, 1, 2]);
    assert!(found.clairvoyant > 4_900 && found.clairvoyant < found.unlimited, "{found:?}");
    // A body that is too small takes nobody's place.
    let (saved, found) = of(&[0, 1, 0, 1]);
    assert!(saved > 0 && saved <= found.clairvoyant, "{saved} {found:?}");
}

/// Anybody who can change, see or miss the answers of any of the three tools.
pub(super) fn reaches() -> impl Strategy<Value = Reach> {
    let tools = || prop::sample::subsequence(vec!["Read", "Bash", "Edit"], 0..=3);
    (tools(), tools(), any::<bool>(), any::<bool>()).prop_map(|(changes, except, sees_all, previews)| {
        let names = |tools: Vec<&str>| tools.into_iter().map(str::to_owned).collect();
        Reach { changes: names(changes), except: names(except), sees_all, previews, ..Reach::default() }
    })
}

pub(super) fn stories() -> impl Strategy<Value = Vec<(u32, u32, u32, u32, bool)>> {
    let response = (0_u32..6, 0_u32..2, 0_u32..2, 0_u32..3, prop::bool::weighted(0.1));
    // Contexts are laid out one behind the other.
    prop::collection::vec(response, 0..80).prop_map(|mut rows| {
        rows.sort_by_key(|&(_, session, chain, partition, _)| (session, chain, partition));
        rows
    })
}

/// A file as it is shown, with a trailer that differs each time.
fn shown_file(texts: &[u8], separator: &str, trailer: u8) -> String {
    let line = |(number, text): (usize, &u8)| format!("{:>6}{separator}let value_{text} = {text};\n", number + 1);
    texts.iter().enumerate().map(line).collect::<String>() + &format!("{:>6}{separator}end {trailer}", texts.len() + 1)
}

/// A change is followed only while its cache holds something else.
#[test]
fn many_changes_of_a_rare_endpoint_cost_little_more_than_one() {
    let mut story = Story::new((0..50).map(|name| prose(name, 500)).collect());
    for place in 0..400 {
        story = story.show(place * 7 % 50, |r| r.endpoint = u32::from(place % 40 == 0));
    }
    let file = SettingsFile::missing(std::path::Path::new("x.toml"));
    let key: KeyPath = "endpoint_overrides.Bash.min_body_chars".parse().unwrap();
    let scenario = |settings: &Settings| Scenario::new(settings, &story.tape, OPTIONS);
    let change = |bytes: i64| scenario(&what_if(&file, &[(key.clone(), (100_000 + bytes).into())]).unwrap());
    let changes: Vec<Scenario> = (0..11).map(change).collect();
    let pieces = [HistoryPiece { tape: story.tape.clone(), weights: Vec::new() }];
    let baseline = EffectsBaseline::new(&pieces, scenario(&story.settings));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let steps = |changes: &[Scenario]| pool.install(|| work::of(|| drop(baseline.effects(changes))));
    let [one, ten] = [steps(&changes[..1]), steps(&changes[1..])];
    assert!(one >= 400 && ten < 3 * one, "{one} steps for one change, {ten} for ten");
}

proptest! {
    #![proptest_config(super::log_builder::cases(64))]

    #[test]
    fn references_to_lines_cost_what_their_text_costs(
        texts in prop::collection::vec(0_u8..3, 20..60),
        edits in prop::collection::vec((0_usize..60, 3_u8..9), 0..6),
        tab in any::<bool>(),
    ) {
        let separator = if tab { "\t" } else { "→" };
        let mut changed = texts.clone();
        for (at, text) in edits {
            changed[at % texts.len()] = text;
        }
        let bodies = [shown_file(&texts, separator, 1), shown_file(&changed, separator, 2)];
        // Every line numbered: the compact form would be cheaper than some references, and is not what is tested.
        let mut desk = BodyAnalyzer::new(1, Params { recursion_depth: 5, numbered_every: 10 });
        let mut facts: Vec<BodyFacts> =
            bodies.iter().map(|body| desk.facts(Id::of(body.as_bytes()), body.as_bytes())).collect();
        facts.iter_mut().for_each(|facts| facts.forms.encodings.clear());
        let mut story = Story::new(facts).again(0).again(1);
        let handle = Handle { short: 0, bytes: 8, tokens: [desk.measure(" a1B2c3D4").tokens[0] as u8, 0] };
        story.tape.responses.iter_mut().for_each(|response| response.handle = handle);
        let decision = story.decisions(EXTENDED)[1];
        let written = range_references::encode(&bodies[1], &[("a1B2c3D4", &bodies[0])], RANGE_LINES_MIN);
        match written {
            Some(text) if decision.what == SentAs::RangeReference => {
                prop_assert_eq!(decision.tokens, u64::from(desk.measure(&text).tokens[0]), "{}", text);
                prop_assert_eq!(range_references::decode(&text, |_| Some(&bodies[0])), Some(bodies[1].clone()));
            }
            Some(text) => prop_assert!(u64::from(desk.measure(&text).tokens[0]) >= u64::from(desk.measure(&bodies[1]).tokens[0])),
            None => prop_assert_eq!(decision.what, SentAs::AsIs),
        }
    }

    #[test]
    fn the_segments_of_a_body_add_up_to_it(
        parts in prop::collection::vec(
            prop_oneof![
                "[ ]{0,4}[0-9]{1,4}(→|\t)[ -~]{0,20}",
                "[ -~\n\t]{0,12}",
                Just("\n\n".to_owned()),
                Just("  7\t/**/\n\n/ 8".to_owned()),
                (1_u32..50).prop_map(|n| format!("{n}\ta\n{}\tb\n{}\t\n", n + 1, n + 2)),
            ],
            0..12,
        ),
    ) {
        let body = parts.join("\n");
        let cut = segments(&body);
        prop_assert!(cut.is_empty() || cut.iter().map(|segment| segment.text).collect::<String>() == body);
        let mut desk = BodyAnalyzer::new(3, Params { recursion_depth: 5, numbered_every: 10 });
        let sum = cut.iter().fold(Size::default(), |sum, segment| sum.plus(&desk.measure(segment.text)));
        prop_assert!(cut.is_empty() || sum == desk.measure(&body), "{:?}", body);
    }

    #[test]
    fn any_story_balances_and_hits_as_a_plain_cache_does(rows in stories(), capacity in 1_usize..7) {
        // Two of them are too small for a hint.
        let facts = (0..6).map(|name| prose(name, [20, 40, 100, 130, 700, 5_000][usize::from(name)])).collect();
        let mut story = Story::new(facts).set("dedup.lru_size", &capacity.to_string());
        for (body, session, chain, partition, failed) in rows {
            story = story.show(body, |r| {
                (r.session, r.chain, r.partition) = (session, session * 2 + chain, partition);
                r.outcome = if failed { TapeEntry::Failure } else { TapeEntry::Answer };
            });
        }
        let scenario = Scenario::new(&story.settings, &story.tape, OPTIONS);
        let mut hits = BTreeSet::new();
        let ledger = replay_each(&story.tape, &scenario, &mut |index, decision| {
            if decision.layer == LayerId::L0 {
                hits.insert(index);
            }
        });
        prop_assert_eq!(&hits, &plain_hits(&story, capacity));
        prop_assert!(ledger.total.balances());
        let total: u64 = story.tape.responses.iter().map(|r| u64::from(story.tape.facts_of(r).raw.tokens[0])).sum();
        prop_assert_eq!(ledger.total.baseline(), total);
        let bounds = bounds(&story.tape, &scenario);
        prop_assert_eq!(bounds.baseline, total);
        prop_assert!(ledger.total.saved_by(LayerId::L0) <= bounds.clairvoyant);
        prop_assert!(bounds.clairvoyant <= bounds.unlimited);
        prop_assert_eq!(story.ledger(OPTIONS), ledger);
    }

    #[test]
    fn the_effect_of_a_change_is_the_difference_of_two_replays(
        rows in stories(),
        kinds in prop::collection::vec((0_u32..3, 0_u8..3, 0_u8..8), 80),
        weights in prop::collection::vec(1_u8..4, 80),
        evicted in prop::collection::vec((0_u32..80, 0_u32..80), 0..6),
        near in any::<bool>(),
        reach in reaches(),
    ) {
        let mut facts: Vec<BodyFacts> = (0..5).map(|name| prose(name, 8 + 30 * u32::from(name))).collect();
        facts.push(encoded(prose(5, 300), BodyShape::ArrayOfObjects, "csv", 18));
        // Known to sessions that look as deep: of the profiles of agents only one does.
        facts[5].forms.encodings[0].depth = 6;
        facts[4] = encoded(prose(4, 128), BodyShape::MarkdownTable, "csv_from_md", 90);
        let mut story = Story::new(facts).set("tools.Bash.invalidates", "[\"Read\"]");
        // The number of a session is not that of its profile.
        let profile = |class| SessionProfile { model: String::new(), class };
        story.tape.sessions = SessionProfiles::new(&[
            profile(AgentClass::Default),
            profile(AgentClass::Default),
            profile(AgentClass::MarathonRefactor),
            profile(AgentClass::Default),
        ]);
        for ((body, session, chain, partition, failed), (endpoint, path, other)) in rows.into_iter().zip(kinds) {
            story = story.show(body, |r| {
                (r.session, r.chain, r.partition) = (2 * session, session * 2 + chain, partition);
                (r.endpoint, r.path) = (endpoint, if path == 0 { Id::NONE } else { Id([path; 16]) });
                r.outcome = match other {
                    0 => TapeEntry::Mixed,
                    1 => TapeEntry::Silent,
                    _ if failed => TapeEntry::Failure,
                    _ => TapeEntry::Answer,
                };
                r.ran = other != 2;
            });
        }
        let count = story.tape.responses.len() as u32;
        story.tape.evictions = evicted.into_iter().filter(|&(before, gone)| gone < before && before < count).collect();
        story.tape.evictions.sort_unstable();
        let keys: &[(&str, &str)] = &[
            ("dedup.lru_size", "1"),
            ("dedup.lru_size", "9"),
            ("dedup.min_body_chars", "1"),
            ("dedup.enabled_per_endpoint.Read", "false"),
            ("endpoint_overrides.Bash.dedup_enabled", "false"),
            ("templates.active", "[]"),
            ("templates.endpoint_overrides.Read", "\"csv_from_md\""),
            ("mckp.formats_enabled", "[]"),
            ("dedup.hint_verbosity", "\"verbose\""),
            ("dedup.near_ref_enabled", "true"),
            ("profiles.agent.variants.marathon_refactor.mckp_recursion_depth", "5"),
            ("profiles.agent.variants.default.mckp_recursion_depth", "7"),
            // Calls that leave the cache alone now, and then do not.
            ("tools.Bash.invalidates", "[]"),
            ("tools.Read.invalidates", "[\"Bash\"]"),
        ];
        let scenario = |settings: &Settings| Scenario::new(settings, &story.tape, OPTIONS).within(&reach, &story.tape);
        let file = SettingsFile::missing(std::path::Path::new("x.toml"));
        let mut base = vec![("tools.Bash.invalidates".parse::<KeyPath>().unwrap(), "[\"Read\"]".parse().unwrap())];
        if near {
            base.push(("dedup.near_ref_enabled".parse().unwrap(), "true".parse().unwrap()));
        }
        let now = scenario(&what_if(&file, &base).unwrap());
        let changed: Vec<Scenario> = keys
            .iter()
            .map(|(key, value)| {
                let mut with = base.clone();
                with.retain(|(known, _)| known.to_string() != *key);
                with.push((key.parse().unwrap(), value.parse().unwrap()));
                scenario(&what_if(&file, &with).unwrap())
            })
            .collect();
        let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
        let pieces = [HistoryPiece { tape: story.tape.clone(), weights: weights.clone() }];
        let baseline = EffectsBaseline::new(&pieces, now.clone());
        let (present, more) = (baseline.present(), baseline.effects(&changed));
        // One by one, and come to from another configuration.
        let other = EffectsBaseline::new(&pieces, changed[5].clone()).under(now.clone());
        let alone = changed.iter().flat_map(|change| other.effects(std::slice::from_ref(change)));
        let totals = |all: &[Option<_>]| all.iter().map(|one| one.as_ref().map(total)).collect::<Vec<_>>();
        prop_assert_eq!(totals(&alone.collect::<Vec<_>>()), totals(&more));
        let saved = |scenario: &Scenario| {
            let (mut baseline, mut saved) = (0.0, 0.0);
            replay_each(&story.tape, scenario, &mut |index, decision| {
                let tokens = story.tape.facts_of(&story.tape.responses[index as usize]).raw.tokens[0];
                baseline += weights[index as usize] * f64::from(tokens);
                saved += weights[index as usize] * (f64::from(tokens) - decision.tokens as f64);
            });
            (baseline, saved)
        };
        prop_assert_eq!((present.baseline, present.saved), saved(&now));
        for ((scenario, more), key) in changed.iter().zip(more).zip(keys) {
            prop_assert_eq!(present.saved + more.as_ref().map_or(0.0, total), saved(scenario).1, "{:?}", key);
        }
    }
}
