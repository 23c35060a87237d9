//! Logs to a timeline: what is a request, what it brought into its context, and what happened in between.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::base::id::Id;
use crate::base::tokenizer::TokenCounts;
use crate::logs::assemble::standings_of;
use crate::logs::message::ExtractionGuide;
use crate::logs::timeline;
use crate::logs::timeline::assemble::{SourceTimeline, assemble};
use crate::logs::timeline::requests::{BlockKind, Marks, NONE, Request, SegmentCause, Timeline, ToolCall, Trigger};
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::timeline::{TimelineGuide, TokenCounter};
use crate::logs::trace::Place;
use crate::tests::log_builder::*;
use crate::whatif::sim::unforeseen::Occasion;

/// Counts bytes and words instead of tokens.
struct Plain;

impl TokenCounter for Plain {
    fn tokens(&mut self, text: &str) -> TokenCounts {
        [text.len() as u32, text.split_whitespace().count() as u32]
    }
}

/// What the reading needs.
pub fn timeline_guide() -> TimelineGuide<'static> {
    static RULES: OnceLock<TimelineRules> = OnceLock::new();
    static PLAIN: fn() -> Box<dyn TokenCounter> = || Box::new(Plain);
    let rules = RULES.get_or_init(TimelineRules::shipped);
    let ExtractionGuide { vocabulary, endpoints, .. } = guide();
    TimelineGuide { vocabulary, endpoints, rules, with_words: true, token_counter: Some(&PLAIN) }
}

/// The rows of one file.
pub fn rows(log: impl AsRef<[u8]>) -> FileTimeline {
    timeline::read_stream(log.as_ref(), timeline_guide()).0
}

/// The timeline of files, given as name and text.
pub fn timeline_of(files: &[(&str, &str)]) -> Timeline {
    assemble(sources_of(files), timeline_guide().rules)
}

/// What a timeline of files is made of.
pub fn sources_of(files: &[(&str, &str)]) -> Vec<SourceTimeline> {
    let read: Vec<(Id, FileTimeline)> =
        files.iter().map(|(name, log)| (Id::pseudonym(name.as_bytes()), rows(log))).collect();
    let standings = standings_of(&Told::of(files).corpus);
    let named = read.into_iter().map(|(key, file)| SourceTimeline::new(key, file, standings[&key]));
    named.collect()
}

/// A timeline as text: equal for equal timelines.
pub fn told(timeline: &Timeline) -> String {
    let Timeline { names, sessions, chains, segments, requests, blocks, boundaries, clearings, .. } = timeline;
    let Timeline { references, sources, utterances, words, skipped, added, stated_costs, unbilled, .. } = timeline;
    // Words of copies may lie between those of the utterances: only the latter are told.
    let words_of = |range: &Range<u32>| words.of(range.clone()).collect::<Vec<_>>();
    let utterances: Vec<_> =
        utterances.iter().map(|row| (row.block, words_of(&row.terms), words_of(&row.words))).collect();
    let calls = numbered_by_chain(timeline);
    format!(
        "{:?}\n{sessions:?}\n{chains:?}\n{segments:?}\n{requests:?}\n{blocks:?}\n{calls:?}\n{boundaries:?}\n\
         {clearings:?}\n{references:?}\n{sources:?}\n{utterances:?}\n{skipped:?}\n{added:?}\n{stated_costs:?}\n{unbilled:?}",
        names.texts()
    )
}

/// Calls whose paths and texts are numbered as their chains come to them: nothing else about these numbers says anything.
fn numbered_by_chain(timeline: &Timeline) -> Vec<ToolCall> {
    let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut numbered = |chain, number| {
        let next = known.len() as u32;
        if number == NONE { NONE } else { *known.entry((chain, number)).or_insert(next) }
    };
    let renumbered = |call: &ToolCall| {
        let chain = timeline.request(timeline.request_of_block(call.asked)).chain;
        ToolCall { path: numbered(chain, call.path), text: numbered(chain, call.text), ..*call }
    };
    timeline.calls.iter().map(renumbered).collect()
}

/// Records of which each follows the one before.
pub fn linked(records: Vec<Record>) -> Vec<Record> {
    let mut before: Option<String> = None;
    let mut out = Vec::new();
    for record in records {
        let fields: Value = serde_json::from_str(&record.to_string()).unwrap();
        let uuid = fields["uuid"].as_str().unwrap().to_owned();
        // A boundary follows nothing.
        let parent = before.filter(|_| fields["subtype"] != "compact_boundary");
        out.push(record.link(&uuid, parent.as_deref()));
        before = Some(uuid);
    }
    out
}

fn one(records: Vec<Record>) -> Timeline {
    timeline_of(&[("f", &log(&linked(records)))])
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A record with a text of the model.
pub fn says(message: &str, said: &str) -> Record {
    assistant(message, &[text(said)])
}

fn kinds(timeline: &Timeline, range: &Range<u32>) -> Vec<BlockKind> {
    timeline.blocks[range.start as usize..range.end as usize].iter().map(|block| block.kind).collect()
}

fn ids(timeline: &Timeline) -> Vec<Id> {
    timeline.requests.iter().map(|request| request.id).collect()
}

fn id(name: &str) -> Id {
    Id::of(name.as_bytes())
}

fn usage(read: u64, write: u64) -> Value {
    json!({
        "input_tokens": 4, "output_tokens": 7, "cache_read_input_tokens": read, "cache_creation_input_tokens": write,
    })
}

fn causes(timeline: &Timeline) -> Vec<(SegmentCause, u32)> {
    timeline.segments.iter().map(|segment| (segment.cause, segment.after)).collect()
}

#[test]
fn records_of_one_message_are_one_request_with_the_largest_usage() {
    let timeline = one(vec![
        user("p", "go"),
        says("m", "first").link("a1", None).usage(3, 1),
        asks("m", "c", "Read").link("a2", None).usage(3, 9).at(2),
    ]);
    assert_eq!(timeline.requests.len(), 1);
    let request = &timeline.requests[0];
    assert_eq!((request.usage().input, request.usage().output), (3, 9));
    assert_eq!(kinds(&timeline, &request.inputs), [BlockKind::Human]);
    assert_eq!(kinds(&timeline, &request.outputs), [BlockKind::Text, BlockKind::ToolUsage]);
    assert_eq!((request.start, request.end), (START_MS, START_MS + 2_000));
}

#[test]
fn a_call_that_stands_twice_in_a_record_is_one() {
    let calls = ["c1", "c2", "c1"].map(|call| tool_use(call, "Read"));
    let timeline = one(vec![user("p", "go"), assistant("m", &calls)]);
    assert_eq!(timeline.calls.iter().map(|call| call.id).collect::<Vec<_>>(), [id("c1"), id("c2")]);
    assert_eq!(kinds(&timeline, &timeline.requests[0].outputs), [BlockKind::ToolUsage; 2]);
    assert_eq!(timeline.skipped["duplicate_block"], 1);
}

#[test]
fn a_directory_is_one_project_however_its_end_is_spelled() {
    let projects = ["/home/u/lantern", "/home/u/lantern/", "/home/u/lantern//"].map(|cwd| {
        let records = [user("p", "go").set("cwd", cwd), says("m", "well").set("cwd", cwd)];
        let project = one(records.to_vec()).sessions[0].project;
        let told = Told::of(&[("f", &log(&records))]);
        assert_eq!(
            (told.history.sessions[0].project, told.history.sessions[0].project_name),
            (project, Id::pseudonym(b"lantern"))
        );
        project
    });
    assert_eq!(projects, [Id::pseudonym(b"/home/u/lantern"); 3]);
}

#[test]
fn what_came_in_since_the_request_before_is_its_input() {
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c1", "Read").link("a1", None),
        answers("c1", "one").at(1),
        asks("m1", "c2", "Read").link("a2", None),
        answers("c2", "two").at(2),
        user("note", vec![text("<system-reminder>look</system-reminder>")]).at(3),
        says("m2", "done").at(4),
    ]);
    let [first, second] = &timeline.requests[..] else { panic!("{:?}", timeline.requests) };
    assert_eq!(kinds(&timeline, &first.outputs), [BlockKind::ToolUsage; 2]);
    assert_eq!(kinds(&timeline, &second.inputs), [BlockKind::ToolResult, BlockKind::ToolResult, BlockKind::Injected]);
    assert_eq!(second.start, START_MS + 3_000);
    assert_eq!(causes(&timeline), [(SegmentCause::Start, NONE)]);
    let results: Vec<u32> = timeline.calls.iter().map(|call| call.answered).collect();
    assert_eq!(results, [second.inputs.start, second.inputs.start + 1]);
}

#[test]
fn sizes_are_those_of_the_text() {
    let input = json!({ "file_path": "/a/ö.md", "limit": 2 });
    let ask = json!({ "type": "tool_use", "id": "c", "name": "Read", "input": input });
    let parts = json!([text("één"), { "type": "image", "source": {} }, text("zwei")]);
    let spaced = asks("m1", "x", "T").to_string().replace(r#""input":{}"#, r#""input": { "a" : "b c" }"#);
    let mut records = linked(vec![user("p", "hé"), assistant("m1", &[ask]), answers("c", parts), says("m2", "")]);
    records.insert(1, records[0].clone().link("q", Some("p")));
    let file = log(&records) + &spaced.replace("u-m1", "late") + "\n";
    let timeline = timeline_of(&[("f", &file)]);
    let chars = |kind| -> Vec<u32> {
        timeline.blocks.iter().filter(|block| block.kind == kind).map(|block| block.chars).collect()
    };
    assert_eq!(chars(BlockKind::Human)[0], 2);
    let compact = r#"{"file_path":"/a/ö.md","limit":2}"#;
    assert_eq!(chars(BlockKind::ToolUsage), [compact.chars().count() as u32, r#"{"a":"b c"}"#.len() as u32]);
    assert_eq!(chars(BlockKind::ToolResult), [8], "three and four characters, and the line feed between");
    let result = timeline.blocks.iter().find(|block| block.kind == BlockKind::ToolResult).unwrap();
    assert_eq!(result.bytes as usize, "één\nzwei".len());
    assert_eq!(result.tokens, ["één\nzwei".len() as u32, 2]);
    assert_eq!(timeline.skipped["media_in_result"], 1);
    assert!(timeline.blocks[0].is_string && !result.is_string);
}

#[test]
fn a_turn_begins_where_a_user_record_brings_text() {
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c", "Read"),
        answers("c", "x"),
        says("m2", "done"),
        user("meta", "Caveat").set("isMeta", true),
        says("m3", "hm"),
        user("wrapped", "<command-name>/model</command-name>"),
        says("m4", "new model"),
    ]);
    let turns: Vec<u32> = timeline.requests.iter().map(|request| request.turn).collect();
    assert_eq!(turns, [0, 0, 0, 1]);
    let marks: Vec<Marks> = timeline.requests.iter().map(|request| request.marks).collect();
    assert_eq!(marks, [Marks::HUMAN, Marks::default(), Marks::META, Marks::HUMAN]);
    let human = timeline.blocks.iter().filter(|block| block.kind == BlockKind::Human).count();
    assert_eq!(human, 1, "what a command expands to was written by nobody");
}

/// Images cannot be compared, and of nothing there is nothing to compare.
#[test]
fn what_came_with_an_image_is_named_by_no_text() {
    let image = json!({ "type": "image", "source": {} });
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c1", "Read"),
        answers("c1", vec![image.clone()]),
        asks("m2", "c2", "Read"),
        answers("c2", vec![text("the page"), image]),
        asks("m3", "c3", "Read"),
        answers("c3", ""),
        asks("m4", "c4", "Read"),
        answers("c4", "a file"),
        says("m5", "done"),
    ]);
    let named: Vec<bool> = timeline.calls.iter().map(|call| call.text != NONE).collect();
    assert_eq!(named, [false, false, false, true]);
}

#[test]
fn a_document_that_the_client_puts_in_is_no_prompt() {
    let media = |kind: &str| json!({ "type": kind, "source": {} });
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c1", "Read"),
        answers("c1", "PDF file read"),
        user("pdf", vec![media("document")]).set("isMeta", true),
        says("m2", "ok"),
        user("shot", vec![media("image")]),
        says("m3", "ok"),
        user("both", vec![text("look"), media("image")]),
        user("note", "[Image: source: shot.png]").set("isMeta", true),
        says("m4", "ok"),
    ]);
    let of = |request: &Request| (timeline.was_prompted(request), Occasion::of(&timeline, request, 0));
    let told: Vec<_> = timeline.requests.iter().map(of).collect();
    let (image, nothing) = ((true, Occasion::Media), Occasion::None);
    assert_eq!(told, [(true, nothing), (false, nothing), image, image]);
}

#[test]
fn a_prompt_sent_while_the_model_worked_is_one() {
    let queued = |mode: &str| {
        let attachment = json!({ "type": "queued_command", "commandMode": mode, "prompt": "wait" });
        Record::new("attachment", mode).set("attachment", attachment)
    };
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c", "Read"),
        answers("c", "x"),
        queued("prompt"),
        says("m2", "ok"),
        queued("task-notification"),
        says("m3", "ok"),
        Record::new("attachment", "a").set("attachment", json!({ "type": "task_reminder" })),
        says("m4", "ok"),
    ]);
    let inputs: Vec<_> = timeline.requests.iter().map(|request| kinds(&timeline, &request.inputs)).collect();
    assert_eq!(inputs[1], [BlockKind::ToolResult, BlockKind::Human]);
    assert_eq!(inputs[2], [BlockKind::Injected]);
    assert_eq!(inputs[3], []);
    assert!(timeline.requests[1].marks.has(Marks::HUMAN) && !timeline.requests[2].marks.has(Marks::HUMAN));
    assert_eq!(timeline.skipped["attachment:task_reminder"], 1);
}

#[test]
fn a_compaction_and_its_summary_open_one_segment() {
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "c", "Read"),
        answers("c", "never sent"),
        boundary("b").set("compactMetadata", json!({ "trigger": "manual", "preTokens": 155_031 })),
        compact_summary("s", None),
        user("q", "more"),
        says("m2", "done"),
    ]);
    assert_eq!(causes(&timeline), [(SegmentCause::Start, NONE), (SegmentCause::Compaction, NONE)]);
    let [boundary] = &timeline.boundaries[..] else { panic!("{:?}", timeline.boundaries) };
    assert_eq!((boundary.request, boundary.trigger, boundary.pre_tokens), (1, Trigger::Manual, Some(155_031)));
    let request = &timeline.requests[1];
    assert!(request.marks.has(Marks::COMPACTION));
    assert_eq!(kinds(&timeline, &request.inputs), [BlockKind::Summary, BlockKind::Human]);
    assert_eq!(boundary.summary, request.inputs.start);
    assert_eq!(timeline.calls[0].answered, NONE);
    assert_eq!(timeline.skipped["compacted_before_sent"], 1);
}

#[test]
fn a_summary_without_its_boundary_is_a_compaction_as_well() {
    let timeline =
        one(vec![user("p", "go"), says("m1", "a"), compact_summary("s", None), says("m2", "b"), boundary("b")]);
    let requests: Vec<_> = timeline.boundaries.iter().map(|row| (row.request, row.trigger)).collect();
    assert_eq!(requests, [(1, Trigger::Unknown), (2, Trigger::Auto)]);
    assert_eq!(timeline.boundaries[1].summary, NONE);
    assert_eq!(timeline.segments.len(), 2);
}

#[test]
fn a_clearing_names_the_calls_whose_results_went() {
    let mut clearing = micro_compaction("b", &["c1", "c2"]);
    clearing = clearing.set(
        "microcompactMetadata",
        json!({ "trigger": "auto", "preTokens": 60_000, "tokensSaved": 20_134, "compactedToolIds": ["c1", "c2"] }),
    );
    let timeline = one(vec![user("p", "go"), asks("m1", "c1", "Read"), answers("c1", "x"), clearing, says("m2", "b")]);
    let [clearing] = &timeline.clearings[..] else { panic!("{:?}", timeline.clearings) };
    assert_eq!((clearing.request, clearing.pre_tokens, clearing.tokens_saved), (1, Some(60_000), Some(20_134)));
    assert_eq!(clearing.calls, [id("c1"), id("c2")]);
    assert_eq!(timeline.requests[1].marks, Marks::MICROCOMPACTION);
    assert_eq!(timeline.segments.len(), 1);
}

#[test]
fn parallel_results_are_no_rewind() {
    let timeline = timeline_of(&[(
        "f",
        &log(&[
            user("p", "go"),
            asks("m1", "c1", "Read").link("a1", Some("p")),
            asks("m1", "c2", "Read").link("a2", Some("a1")),
            answers("c2", "two").link("r2", Some("a2")),
            answers("c1", "one").link("r1", Some("a1")),
            says("m2", "done").link("a3", Some("r1")),
        ]),
    )]);
    assert_eq!(timeline.segments.len(), 1);
    assert_eq!(timeline.requests[1].inputs.len(), 2);
}

#[test]
fn behind_a_rewind_only_what_is_new_comes_in() {
    let timeline = timeline_of(&[(
        "f",
        &log(&[
            user("p", "go"),
            asks("m1", "c1", "Read").link("a1", Some("p")),
            answers("c1", "one").link("r1", Some("a1")),
            says("m2", "wrong").link("a2", Some("r1")),
            user("q", "no").link("q", Some("a2")),
            says("m3", "sorry").link("a3", Some("q")),
            // Back to where the result had come in: it is in the context, what followed it is not.
            user("again", "rather this").link("again", Some("r1")),
            says("m4", "right").link("a4", Some("again")),
        ]),
    )]);
    assert_eq!(causes(&timeline), [(SegmentCause::Start, NONE), (SegmentCause::Rewind, 0)]);
    let last = &timeline.requests[3];
    assert_eq!(last.marks, Marks(Marks::HUMAN.0 | Marks::REWIND.0));
    assert_eq!(kinds(&timeline, &last.inputs), [BlockKind::ToolResult, BlockKind::Human]);
    assert_eq!(timeline.blocks[last.inputs.start as usize].record, id("r1"));
    assert_eq!(timeline.calls[0].answered, timeline.requests[1].inputs.start, "where it first came in");
}

#[test]
fn a_prompt_that_was_taken_back_unanswered_is_left_out() {
    let timeline = timeline_of(&[(
        "f",
        &log(&[
            user("p", "go"),
            says("m1", "ok").link("a1", Some("p")),
            user("typo", "mroe").link("typo", Some("a1")),
            user("more", "more").link("more", Some("a1")),
            says("m2", "ok").link("a2", Some("more")),
        ]),
    )]);
    assert_eq!(timeline.segments.len(), 1);
    assert_eq!(timeline.requests[1].inputs.len(), 1);
    assert_eq!(timeline.skipped["abandoned"], 1);
}

#[test]
fn a_context_that_shrinks_without_a_reason_opens_a_segment() {
    let sized = |message: &str, read| says(message, "x").message("usage", usage(read, 0));
    let timeline = one(vec![
        user("p", "go"),
        sized("m1", 10_000),
        user("q", "go"),
        sized("m2", 9_500),
        user("r", "go"),
        sized("m3", 8_999),
    ]);
    assert_eq!(causes(&timeline), [(SegmentCause::Start, NONE), (SegmentCause::Shrink, 1)]);
    assert_eq!(timeline.requests[2].segment, 1);
}

#[test]
fn a_fork_repeats_nothing_and_goes_on_from_where_it_was_forked() {
    let original =
        linked(vec![user("p", "go"), asks("m1", "c", "Read").at(1), answers("c", "x"), says("m2", "done").at(2)]);
    let mut fork: Vec<Record> = original[..3].iter().map(|record| record.clone().session("s-fork")).collect();
    fork.push(says("m3", "other").session("s-fork").link("a3", Some("r-c")).at(50));
    let (original, fork) = (log(&original), log(&fork));
    for files in [[("a", &original[..]), ("b", &fork[..])], [("b", &fork[..]), ("a", &original[..])]] {
        let timeline = timeline_of(&files);
        assert_eq!(ids(&timeline), [id("m1"), id("m2"), id("m3")]);
        assert_eq!(causes(&timeline), [(SegmentCause::Start, NONE), (SegmentCause::Start, 0)]);
        assert_eq!(timeline.chains.len(), 2);
        assert_eq!(timeline.skipped["duplicate_record"], 3);
        let came_in = [0, 1, 2].map(|request: usize| kinds(&timeline, &timeline.requests[request].inputs));
        let results = || vec![BlockKind::ToolResult];
        assert_eq!(came_in, [vec![BlockKind::Human], results(), results()]);
    }
}

#[test]
fn a_fork_has_every_result_of_calls_that_were_made_at_once() {
    let original = [
        user("p", "go").link("p", None),
        asks("m1", "c", "Read").link("a1", Some("p")).at(1),
        asks("m1", "d", "Read").link("a2", Some("a1")).at(1),
        answers("c", "x").link("c1", Some("a1")),
        answers("d", "y").link("d1", Some("a2")),
        says("m2", "done").link("a3", Some("d1")).at(2),
    ];
    let mut fork: Vec<Record> = original[..5].iter().map(|record| record.clone().session("s-fork")).collect();
    fork.push(says("m3", "other").session("s-fork").link("a4", Some("d1")).at(50));
    let timeline = timeline_of(&[("a", &log(&original)), ("b", &log(&fork))]);
    let came_in = [1, 2].map(|request: usize| kinds(&timeline, &timeline.requests[request].inputs));
    assert_eq!(came_in, [[BlockKind::ToolResult; 2]; 2]);
}

#[test]
fn a_result_that_a_fork_is_sent_again_is_of_the_same_call_where_ids_come_again() {
    let original = [
        user("p", "go").link("p", None).at(1),
        asks("m1", "c", "Read").link("a1", Some("p")).at(1),
        answers("c", "x").link("c1", Some("a1")).at(2),
        says("m2", "done").link("a2", Some("c1")).at(3),
    ];
    let other = [
        user("q", "go").link("q", None).at(10),
        asks("m3", "c", "Bash").link("a3", Some("q")).at(11),
        answers("c", "y").link("c2", Some("a3")).at(12),
        says("m4", "done").link("a4", Some("c2")).at(13),
    ];
    let other = other.map(|record| record.session("s-other"));
    let mut fork: Vec<Record> = original[..3].iter().map(|record| record.clone().session("s-fork")).collect();
    fork.push(says("m5", "other").session("s-fork").link("a5", Some("c1")).at(50));
    let timeline = timeline_of(&[("a", &log(&original)), ("b", &log(&other)), ("c", &log(&fork))]);
    let results = timeline.blocks.iter().filter(|block| block.kind == BlockKind::ToolResult);
    let tools = results.map(|result| timeline.names.text(timeline.calls[result.call as usize].tool));
    assert_eq!(tools.collect::<Vec<_>>(), ["Read", "Bash", "Read"]);
}

#[test]
fn a_subagent_counts_once_where_it_is_best_recorded() {
    let inner = linked(vec![user("ap", "look"), asks("am", "ac", "Grep"), answers("ac", "x"), says("am2", "found")]);
    let own = log(&inner.iter().map(|record| record.clone().agent("a7")).collect::<Vec<_>>());
    let mut main = linked(vec![user("p", "go"), asks("m", "c", "Task")]);
    main.extend(
        inner.iter().enumerate().map(|(at, record)| agent_progress("a7", record).link(&format!("p{at}"), None)),
    );
    let main = log(&main);
    let alone = timeline_of(&[("main", &main)]);
    let places: Vec<Place> = alone.chains.iter().map(|chain| chain.place).collect();
    assert_eq!(places, [Place::Main, Place::Progress]);
    assert_eq!(alone.requests_of(1).len(), 2);
    assert_eq!(kinds(&alone, &alone.requests_of(1)[1].inputs), [BlockKind::ToolResult]);
    let both = timeline_of(&[("main", &main), ("agent", &own)]);
    let places: Vec<Place> = both.chains.iter().map(|chain| chain.place).collect();
    assert_eq!(places, [Place::Main, Place::AgentFile]);
    assert_eq!(both.skipped["superseded_progress"], 4);
    assert_eq!(both.chains[1].agent, id("a7"));
    let people = both.blocks.iter().filter(|block| block.kind == BlockKind::Human).count();
    assert_eq!(people, 1, "to a subagent its parent speaks");
}

#[test]
fn clearings_share_what_had_come_in_before_them() {
    let [results, clearings] = [|at: usize| format!("c{at}"), |at: usize| format!("x{at}")];
    let call = |at: usize| json!({ "type": "tool_use", "id": results(at), "name": "Read", "input": {} });
    let asked = assistant("m", &(0..4).map(call).collect::<Vec<_>>());
    let answered = |at: usize| answers(&results(at), "body");
    let cleared = |at: usize| micro_compaction(&clearings(at), &["c0"]);
    let records = [
        vec![asked, answered(0), cleared(0), answered(1), answered(2), cleared(1), cleared(2)],
        vec![says("n", "on"), answered(3), cleared(3)],
    ];
    let timeline = one(records.concat());
    let arrived: Vec<Vec<Id>> =
        timeline.clearings.iter().map(|row| row.arrived.iter().map(|(call, _)| *call).collect()).collect();
    let of = |calls: &[usize]| calls.iter().map(|&call| id(&results(call))).collect::<Vec<_>>();
    assert_eq!(arrived, [of(&[0]), of(&[0, 1, 2]), of(&[0, 1, 2]), of(&[3])]);
    let places: Vec<_> = timeline.clearings.iter().map(|row| row.arrived.as_ptr()).collect();
    assert!(places[0] == places[1] && places[1] == places[2], "none has a list of its own");
}

#[test]
fn inline_side_chains_are_told_apart_by_their_first_records() {
    let inline = |name: &str, record: Record, parent: Option<&str>| record.inline().link(name, parent);
    let timeline = timeline_of(&[(
        "f",
        &log(&[
            user("p", "go"),
            says("m", "ok").link("a", Some("p")),
            inline("x1", user("x1", "one"), None),
            inline("y1", user("y1", "two"), None),
            inline("x2", says("mx", "1"), Some("x1")),
            inline("y2", says("my", "2"), Some("y1")),
        ]),
    )]);
    let chains: Vec<(Place, Id)> = timeline.chains.iter().map(|chain| (chain.place, chain.agent)).collect();
    assert_eq!(chains[0], (Place::Main, Id::NONE));
    let agents: std::collections::BTreeSet<Id> = chains[1..].iter().map(|(_, agent)| *agent).collect();
    assert_eq!(agents, [id("x1"), id("y1")].into());
}

#[test]
fn marks_say_what_happened_since_the_request_before() {
    let edit = |name: &str, path: &str| {
        let input = json!({ "file_path": path, "content": "x" });
        json!({ "type": "tool_use", "id": format!("c{path}"), "name": name, "input": input })
    };
    let attachment = |kind: &str| Record::new("attachment", kind).set("attachment", json!({ "type": kind }));
    let hook = json!({ "type": "hook_progress", "hookEvent": "SessionStart", "hookName": "SessionStart:resume" });
    let timeline = one(vec![
        user("p", "go"),
        asks("m1", "k", "Skill"),
        user("skill", "Base directory for this skill: /x").set("isMeta", true),
        says("m2", "x").message("model", "claude-opus-5"),
        attachment("plan_mode"),
        says("m3", "x").message("model", "claude-opus-5"),
        user("stop", "[Request interrupted by user]"),
        user("leave", "<command-name>/exit</command-name>\n<command-message>exit</command-message>"),
        assistant("m4", &[edit("Write", "notes/CLAUDE.md")]).set("version", "2.1.41"),
        assistant("m5", &[edit("Read", ".claude/x")]).set("version", "2.1.41"),
        Record::new("progress", "hook").set("data", hook),
        assistant("m6", &[edit("Edit", "src/claude.md")]).set("version", "2.1.41"),
        says("m7", "x"),
    ]);
    let marks: Vec<u32> = timeline.requests.iter().map(|request| request.marks.0).collect();
    let of = |marks: &[Marks]| marks.iter().fold(0, |bits, mark| bits | mark.0);
    assert_eq!(marks[1], of(&[Marks::SKILL, Marks::META, Marks::MODEL_CHANGE]));
    assert_eq!(marks[2], of(&[Marks::PLAN_MODE, Marks::ATTACHED]));
    let left = [Marks::HUMAN, Marks::INTERRUPT, Marks::RESUME, Marks::MODEL_CHANGE, Marks::VERSION_CHANGE];
    assert_eq!(marks[3], of(&left));
    assert_eq!(marks[4], of(&[Marks::WORKSPACE_EDIT]));
    assert_eq!(marks[5], of(&[Marks::RESUME]));
    assert_eq!(marks[6], of(&[Marks::VERSION_CHANGE]));
    let files: Vec<u8> = timeline.calls.iter().map(|call| call.file).collect();
    let both = ToolCall::MARKDOWN | ToolCall::WORKSPACE;
    assert_eq!(files, [0, both, ToolCall::WORKSPACE, ToolCall::MARKDOWN]);
}

#[test]
fn plan_mode_shows_in_the_permission_mode_as_well() {
    let prompt = |name: &str, mode: &str| user(name, "go").set("permissionMode", mode);
    let timeline = one(vec![
        prompt("a", "default"),
        says("m1", "x"),
        prompt("b", "plan"),
        says("m2", "x"),
        prompt("c", "plan"),
        says("m3", "x"),
        prompt("d", "acceptEdits"),
        says("m4", "x"),
    ]);
    let planned: Vec<bool> = timeline.requests.iter().map(|request| request.marks.has(Marks::PLAN_MODE)).collect();
    assert_eq!(planned, [false, true, false, true]);
}

#[test]
fn what_is_no_call_of_the_api_is_no_request() {
    let synthetic = says("m2", "No response requested.").message("model", "<synthetic>");
    let bare = says("m3", "x").message("usage", Value::Null);
    let timeline = one(vec![user("p", "go"), says("m1", "a"), synthetic, bare, user("q", "b"), says("m4", "c")]);
    assert_eq!(ids(&timeline), [id("m1"), id("m4")]);
    assert_eq!((timeline.skipped["synthetic"], timeline.skipped["no_usage"]), (1, 1));
    assert_eq!(timeline.segments.len(), 1, "an answer behind them goes on");
}

/// Some clients give usage with one record of a message only: the calls in its other records were billed with it.
#[test]
fn a_part_without_usage_belongs_to_its_message() {
    let part = |call: &str| asks("m1", call, "Bash").set("uuid", format!("u-{call}"));
    let bare = |call: &str| part(call).message("usage", Value::Null);
    for parts in [[bare("c1"), part("c2")], [part("c1"), bare("c2")]] {
        let [first, second] = parts;
        let timeline =
            one(vec![user("p", "go"), first, second, answers("c1", "x"), answers("c2", "y"), says("m2", "z")]);
        assert_eq!((ids(&timeline), timeline.calls.len()), (vec![id("m1"), id("m2")], 2));
        assert!(!timeline.skipped.contains_key("no_usage"), "{:?}", timeline.skipped);
        assert!(timeline.requests[0].context() > 0);
    }
}

/// A `uuid` that names nothing, or several messages at once, merges none of them.
#[test]
fn messages_with_one_uuid_stay_apart() {
    for uuid in ["", "the same"] {
        let named = |record: Record| record.set("uuid", uuid).set("parentUuid", "");
        let records = [user("p", "go"), says("m1", "a"), user("q", "more"), says("m2", "b")].map(named);
        let timeline = timeline_of(&[("f", &log(&records))]);
        check(&timeline);
        assert_eq!(ids(&timeline), [id("m1"), id("m2")], "{uuid:?}");
    }
}

#[test]
fn a_request_that_the_api_refused_begins_with_its_last_attempt() {
    let refused = || Record::new("system", "").set("subtype", "api_error").set("retryAttempt", 1);
    let timeline = one(vec![
        user("p", "go").at(1),
        refused().at(600),
        refused().at(1_200),
        says("m1", "a").at(1_205),
        refused().at(1_300),
        user("q", "b").at(1_400),
        says("m2", "c").at(1_405),
    ]);
    let [first, second] = &timeline.requests[..] else { panic!("{:?}", timeline.requests) };
    assert_eq!((first.start, first.end), (START_MS + 1_200_000, START_MS + 1_205_000));
    assert!(first.marks.has(Marks::RETRIED));
    assert_eq!(second.start, START_MS + 1_400_000, "an error that nothing waited for");
}

#[test]
fn a_clock_that_runs_backwards_changes_no_order() {
    let timeline =
        one(vec![user("p", "go").at(90), says("m1", "a").at(100), user("q", "b").at(5), says("m2", "c").at(6)]);
    assert_eq!(ids(&timeline), [id("m1"), id("m2")]);
    assert_eq!(timeline.requests[1].start, START_MS + 5_000);
    assert_eq!(timeline.skipped["clock_backwards"], 1);
}

#[test]
fn a_window_counts_the_requests_that_began_in_it_and_keeps_what_was_sent_before() {
    let timeline = one(vec![
        user("p", "early bird").at(0),
        asks("m1", "c1", "Read").at(1),
        answers("c1", "one").at(10),
        asks("m2", "c2", "Read").at(11),
        answers("c2", "two").at(20),
        boundary("b").at(21),
        compact_summary("s", None).at(22),
        says("m3", "late words").at(23),
    ]);
    let whole = told(&timeline);
    let late = timeline.clone().within(&(START_MS + 10_000..START_MS + 60_000));
    assert_eq!(ids(&late), [id("m1"), id("m2"), id("m3")]);
    let counted: Vec<Id> = late.counted().map(|(_, request)| request.id).collect();
    assert_eq!(counted, [id("m2"), id("m3")]);
    let calls: Vec<Id> = late.counted_calls().map(|(_, call)| call.id).collect();
    assert_eq!((late.calls.len(), calls), (2, vec![id("c2")]));
    let [boundary] = &late.boundaries[..] else { panic!("{:?}", late.boundaries) };
    assert_eq!((boundary.request, late.blocks[boundary.summary as usize].kind), (2, BlockKind::Summary));
    assert_eq!((late.segments.len(), late.utterances.len()), (2, 2));
    let counts: Vec<bool> = (0..late.blocks.len() as u32).map(|block| late.counts_block(block)).collect();
    assert_eq!(counts.iter().filter(|counts| !**counts).count(), 2, "the prompt and the call of m1: {counts:?}");
    let early = timeline.clone().within(&(START_MS..START_MS + 5_000));
    assert_eq!((ids(&early), early.boundaries.len()), (vec![id("m1")], 0));
    assert_eq!(early.calls[0].answered, NONE);
    let nothing = timeline.clone().within(&(0..1));
    assert!(nothing.requests.is_empty() && nothing.sessions.is_empty() && nothing.chains.is_empty());
    assert_eq!(told(&timeline.within(&(i64::MIN..i64::MAX))), whole);
}

#[test]
fn requests_of_a_chain_stand_together_and_all_numbers_fit() {
    let timeline = timeline_of(&[
        ("a", &log(&linked(vec![user("p", "go"), says("m1", "a"), user("q", "b"), says("m2", "c")]))),
        ("b", &log(&linked(vec![user("x", "go").session("t"), says("m3", "a").session("t")]))),
    ]);
    check(&timeline);
    let sum: usize = timeline.chains.iter().map(|chain| chain.requests.len()).sum();
    assert_eq!((sum, timeline.sessions.len()), (3, 2));
}

/// Whatever refers to something refers to something that is there, and lists stand in their order.
pub fn check(timeline: &Timeline) {
    let mut request_end = 0;
    for (number, chain) in timeline.chains.iter().enumerate() {
        assert!((chain.session as usize) < timeline.sessions.len());
        assert_eq!(chain.requests.start, request_end);
        assert!(!chain.requests.is_empty());
        request_end = chain.requests.end;
        let segments = &timeline.segments[chain.segments.start as usize..chain.segments.end as usize];
        let mut at = chain.requests.start;
        for segment in segments {
            assert_eq!((segment.chain as usize, segment.requests.start), (number, at));
            assert!(segment.after == NONE || segment.after < at);
            at = segment.requests.end;
        }
        assert_eq!(at, chain.requests.end);
        assert!(timeline.requests_of(number as u32).is_sorted_by_key(|request: &Request| request.turn));
    }
    assert_eq!(request_end as usize, timeline.requests.len());
    let mut block_end = 0;
    for (number, request) in timeline.requests.iter().enumerate() {
        assert_eq!((request.inputs.start, request.inputs.end), (block_end, request.outputs.start));
        block_end = request.outputs.end;
        assert!(timeline.segments[request.segment as usize].requests.contains(&(number as u32)));
        assert!(timeline.chains[request.chain as usize].requests.contains(&(number as u32)));
        let outputs = kinds(timeline, &request.outputs);
        assert!(outputs.into_iter().all(|kind| kind.is_output() || kind == BlockKind::Media));
    }
    assert_eq!(block_end as usize, timeline.blocks.len());
    for (number, block) in timeline.blocks.iter().enumerate() {
        if block.kind == BlockKind::ToolUsage {
            assert_eq!(timeline.calls[block.call as usize].asked as usize, number);
        } else if block.call != NONE {
            assert_eq!(block.kind, BlockKind::ToolResult);
            assert_ne!(timeline.calls[block.call as usize].answered, NONE);
        }
    }
    assert!(timeline.calls.is_sorted_by_key(|call| call.asked));
    for boundary in &timeline.boundaries {
        let chain = &timeline.chains[boundary.chain as usize].requests;
        assert!((chain.start..=chain.end).contains(&boundary.request));
    }
    assert!(timeline.references.is_sorted_by_key(|reference| reference.request));
    for reference in &timeline.references {
        let sources = &timeline.sources[reference.sources.start as usize..reference.sources.end as usize];
        assert!(sources.is_sorted_by_key(|source| source.block));
        for source in sources {
            assert!(source.end_chars <= timeline.blocks[source.block as usize].chars);
        }
    }
    for utterance in &timeline.utterances {
        let block = &timeline.blocks[utterance.block as usize];
        assert!(matches!(block.kind, BlockKind::Human | BlockKind::Text));
        assert!(utterance.terms.end as usize <= timeline.words.rows().len());
    }
}
