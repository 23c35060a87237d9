//! Work grows with the size of the logs and no faster: counted in comparisons and look-ups of ids, not timed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::base::data::{Data, typed};
use crate::base::files::WriteStep;
use crate::base::files::faults::Fault;
use crate::base::id::{Id, IdMap, work};
use crate::base::names::Names;
use crate::base::unpack::Packing;
use crate::frames::tool_use::MinedCall;
use crate::logs::assemble::{Kept, assemble, standings_of};
use crate::logs::corpus::{Corpus, RowSource};
use crate::logs::history::History;
use crate::logs::read::{BATCH_FILES, Job, read_all};
use crate::logs::timeline::assemble::{SourceTimeline, assemble as assemble_timeline};
use crate::logs::trace::Millis;
use crate::mine::patterns::Patterns;
use crate::mine::sessions::sessions;
use crate::mine::tools::{ToolGuide, ToolUseRules};
use crate::mine::totals::totals;
use crate::mine::{patterns, tools};
use crate::tests::harness::{Home, session};
use crate::tests::log_builder::*;
use crate::tests::timeline::{rows, timeline_guide};

/// A reading is more than its rows: thousands of them wait for nobody.
#[test]
fn readings_of_many_files_are_not_held_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.jsonl");
    let text = log(&call(1));
    std::fs::write(&path, &text).unwrap();
    let job = Job { path: &path, packing: Packing::Plain, from: 0, to: text.len() as u64, named: false };
    let jobs = vec![job; 5 * BATCH_FILES + 1];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let (read, mut taken, mut most) = (AtomicUsize::new(0), 0, 0);
    let count = |_| {
        read.fetch_add(1, Ordering::Relaxed);
    };
    read_all(&jobs, guide(), &pool, &count, &mut |reading| {
        assert_eq!(reading.trace.rows.calls.len(), 1);
        most = most.max(read.load(Ordering::Relaxed) - taken);
        taken += 1;
        ControlFlow::Continue(())
    });
    println!("{most} readings of {taken} at once");
    assert!(taken == jobs.len() && most <= 2 * BATCH_FILES, "{most} readings of {taken} at once");
}

/// Whoever has enough waits for what is being read, and for no more.
#[test]
fn a_reading_ends_once_it_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.jsonl");
    std::fs::write(&path, log(&call(1))).unwrap();
    let to = std::fs::metadata(&path).unwrap().len();
    let jobs = vec![Job { path: &path, packing: Packing::Plain, from: 0, to, named: false }; 5 * BATCH_FILES];
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let (read, mut taken) = (AtomicUsize::new(0), 0);
    let count = |_| {
        read.fetch_add(1, Ordering::Relaxed);
    };
    read_all(&jobs, guide(), &pool, &count, &mut |_| {
        taken += 1;
        if taken == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let read = read.into_inner();
    assert!(taken == 3 && read <= 2 * BATCH_FILES, "{taken} taken, {read} read");
}

/// What bringing a lake up to date costs: files opened, reads, steps of ids, for new, known and grown logs.
fn upkeep(files: usize) -> [[u64; 3]; 3] {
    let home = Home::new();
    let name = |number: usize| format!(".claude/projects/p{}/{number}.jsonl", number % 7);
    let write = |number: usize, calls: usize| drop(home.write(&name(number), session(&format!("s{number}"), calls)));
    (0..files).for_each(|number| write(number, 1));
    let steps = || {
        let logs = home.logs();
        let (open, read) = (Fault::none(&logs, WriteStep::Open), Fault::none(&logs, WriteStep::Read));
        let ids = work::of(|| drop(home.json(&["ingest", "--threads", "1"])));
        [open.passed() as u64, read.passed() as u64, ids]
    };
    let (new, known) = (steps(), steps());
    (0..files).for_each(|number| write(number, 2));
    [new, known, steps()]
}

#[test]
fn a_lake_costs_the_same_for_each_file_however_many_there_are() {
    let [few, many] = [200, 400].map(upkeep);
    for (run, (few, many)) in ["new", "known", "grown"].iter().zip(few.iter().zip(&many)) {
        println!("{run}: {few:?} {many:?}");
        for (few, many) in few.iter().zip(many) {
            assert!(*many as f64 <= 2.3 * *few as f64, "{run}: {few} steps for 200 files, {many} for 400");
        }
    }
    // A new file once; a known one not at all; one that has grown for the hash of what was known of it, for its new rows, and as a
    // whole for its timeline.
    assert_eq!([few[0][0], few[1][0], few[2][0]], [200, 0, 600]);
}

/// Names of projects are no reason to look through all logs: rows say which log has which.
#[test]
fn names_are_read_from_the_logs_that_have_them() {
    let home = Home::new();
    for number in 0..60 {
        let place = if number == 41 { "/work/elsewhere" } else { "/work/here" };
        let records = call(number).map(|record| record.session(&format!("s{number}")).set("cwd", place));
        home.write(&format!(".claude/projects/p/s{number}.jsonl"), log(&records));
    }
    let projects = || home.json(&["replay", "--threads", "1"])["replay"]["arms"][0]["projects"].clone();
    let first = projects();
    assert!(first.to_string().contains("/elsewhere"), "{first:#}");
    let open = Fault::none(&home.logs(), WriteStep::Open);
    assert_eq!(projects(), first);
    assert_eq!(open.passed(), 2);
}

/// Files of one kind, of a size.
type Shape = (&'static str, fn(usize) -> Vec<String>);

fn call(number: usize) -> [Record; 2] {
    let at = number as u32 % 80_000;
    let (message, call) = (format!("m{number}"), format!("c{number}"));
    [asks(&message, &call, "Read").at(at), answers(&call, format!("body {number}")).at(at)]
}

fn calls(count: usize) -> Vec<Record> {
    (0..count).flat_map(call).collect()
}

/// A long file whose results are cleared again and again.
fn cleared(size: usize) -> Vec<String> {
    let clear = |at: usize| micro_compaction(&format!("x{at}"), &[&format!("c{at}")]).at(at as u32);
    vec![log(&(0..size).flat_map(|at| call(at).into_iter().chain([clear(at)])).collect::<Vec<_>>())]
}

/// Many files of a call each.
fn many_files(size: usize) -> Vec<String> {
    (0..size).map(|at| log(&call(at).map(|record| record.session(&format!("s{at}"))))).collect()
}

/// Many sessions in one file.
fn many_sessions(size: usize) -> Vec<String> {
    vec![many_files(size).concat()]
}

/// The same file many times.
fn many_copies(size: usize) -> Vec<String> {
    vec![log(&calls(20)); size]
}

/// Parts of one file.
fn many_parts(size: usize) -> Vec<String> {
    let whole = calls(size);
    let parts = (0..size / 10).map(|at| log(&whole[at * 20..(at + 1) * 20]));
    std::iter::once(log(&whole)).chain(parts).collect()
}

/// A subagent for each call, inside the main file, and all of them again in progress records.
fn many_side_chains(size: usize) -> Vec<String> {
    let inline = (0..size).flat_map(|at| {
        let [asked, answered] = call(at);
        let (first, second) = (format!("u{at}"), format!("v{at}"));
        [asked.inline().link(&first, None), answered.inline().link(&second, Some(&first))]
    });
    let progress = (0..size).map(|at| agent_progress(&format!("a{at}"), &call(at)[0]));
    vec![log(&inline.chain(progress).collect::<Vec<_>>())]
}

/// A conversation that begins anew before each call.
fn many_beginnings(size: usize) -> Vec<String> {
    let turn = |at: usize| std::iter::once(user(&format!("p{at}"), "go").at(at as u32)).chain(call(at));
    vec![log(&(0..size).flat_map(turn).collect::<Vec<_>>())]
}

/// One that goes back to its first prompt before each call.
fn many_rewinds(size: usize) -> Vec<String> {
    let prompt = |at: usize| user(&format!("p{at}"), "go").link(&format!("p{at}"), Some("root")).at(at as u32);
    let turn = |at: usize| std::iter::once(prompt(at)).chain(call(at));
    vec![log(&(0..size).flat_map(turn).collect::<Vec<_>>())]
}

/// A message of many parts, each of which stands twice.
fn many_parts_of_an_answer(size: usize) -> Vec<String> {
    let part = |at: usize| {
        let text = json!({ "type": "text", "text": format!("part {at}") });
        assistant("m", &[text, tool_use(&format!("c{at}"), "Read")])
    };
    let twice = |at: usize| [0, 1].map(|copy| part(at).link(&format!("u{at}-{copy}"), None));
    vec![log(&(0..size).flat_map(twice).collect::<Vec<_>>())]
}

/// A file that is read again and again, ten lines at a time.
fn many_reads(size: usize) -> Vec<String> {
    let read = |at: usize| {
        let input = json!({ "file_path": "/src/a.rs", "offset": 10 * at + 1, "limit": 10 });
        let block = json!({ "type": "tool_use", "id": format!("c{at}"), "name": "Read", "input": input });
        [assistant(&format!("m{at}"), &[block]), answers(&format!("c{at}"), format!("body {at}"))]
    };
    vec![log(&(0..size).flat_map(read).collect::<Vec<_>>())]
}

/// Addresses of one site, as long as each other, each told by an answer and asked for later.
fn many_addresses(size: usize) -> Vec<String> {
    let address = |at: usize| format!("https://site.example/page/{at:06}");
    let asked = |name: &str, at: usize, input: Value| {
        let block =
            json!({ "type": "tool_use", "id": format!("{name}{at}"), "name": "mcp__site__get", "input": input });
        assistant(&format!("m-{name}{at}"), &[block])
    };
    let told =
        |at: usize| [asked("c", at, json!({})), answers(&format!("c{at}"), json!({ "url": address(at) }).to_string())];
    let used = |at: usize| [asked("d", at, json!({ "url": address(at) })), answers(&format!("d{at}"), "fine")];
    vec![log(&(0..size).flat_map(told).chain((0..size).flat_map(used)).collect::<Vec<_>>())]
}

/// Lines in which no word is.
fn many_signs(size: usize) -> Vec<String> {
    vec![log(&[asks("m", "c", "Bash"), answers("c", "}\n".repeat(10 * size))])]
}

/// Sessions with running totals of what they cost.
fn many_totals(size: usize) -> Vec<String> {
    let total = |at: usize| {
        let usage = json!({ "claude-sonnet-5": { "inputTokens": 3, "outputTokens": 5, "costUSD": 0.1 } });
        json!({ "type": "cost-state", "sessionId": format!("s{at}"), "totalCostUSD": 0.1, "modelUsage": usage })
    };
    (0..size).zip(many_files(size)).map(|(at, log)| format!("{log}{}\n", total(at))).collect()
}

const SHAPES: [Shape; 13] = [
    ("cleared results", cleared),
    ("many files", many_files),
    ("many sessions in a file", many_sessions),
    ("many copies", many_copies),
    ("many parts of a copy", many_parts),
    ("many side chains", many_side_chains),
    ("many beginnings", many_beginnings),
    ("many rewinds", many_rewinds),
    ("many parts of an answer", many_parts_of_an_answer),
    ("many reads", many_reads),
    ("many addresses", many_addresses),
    ("many totals", many_totals),
    ("many signs", many_signs),
];

/// All tools read, none changes anything.
static TOOLS: LazyLock<ToolGuide<'static>> = LazyLock::new(|| {
    static RULES: LazyLock<ToolUseRules> = LazyLock::new(|| ToolUseRules {
        bytes_per_token: 4.0,
        reading_tools: BTreeSet::from(["Read".to_owned()]),
        lines_max: 2_000,
    });
    static EXACT: LazyLock<IdMap<Id, u32>> = LazyLock::new(IdMap::default);
    static NONE: BTreeSet<String> = BTreeSet::new();
    ToolGuide { rules: &RULES, changing: &NONE, exact: &EXACT }
});

/// Steps of everything that is done with the rows of logs, reading included.
fn steps(texts: &[String]) -> [u64; 3] {
    let mut corpus = Corpus::default();
    let reading = work::of(|| {
        for (number, text) in texts.iter().enumerate() {
            let trace = trace(text);
            let counters = trace.counters.clone().into();
            let key = Id::pseudonym(&number.to_le_bytes());
            corpus.push(RowSource { key, path: None, bytes: 0, counters }, trace);
        }
    });
    let history = work::of(|| {
        let history = assemble(&mut corpus, &|_| (), Kept::default()).0;
        totals(&corpus);
        sessions(&history, &corpus.names, &Default::default());
        tools::calls(&history, &corpus.names, &TOOLS);
    });
    let timeline = work::of(|| {
        let standings = standings_of(&corpus);
        let files: Vec<_> = texts.iter().map(rows).collect();
        let source = |(number, file): (usize, _)| {
            let key = Id::pseudonym(&number.to_le_bytes());
            SourceTimeline::new(key, file, standings[&key])
        };
        let sources: Vec<_> = files.into_iter().enumerate().map(source).collect();
        let timeline = assemble_timeline(sources, timeline_guide().rules);
        drop(timeline.within(&(Millis::MIN..Millis::MAX - 1)));
    });
    [reading, history, timeline]
}

#[test]
fn work_grows_with_the_size_of_the_logs() {
    // All of it on this thread, whose steps are counted.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    pool.install(|| {
        for (name, make) in SHAPES {
            let [once, twice, four_times] = [200, 400, 800].map(|size| steps(&make(size)));
            for part in 0..3 {
                let counted = (once[part], twice[part], four_times[part]);
                println!("{name}, part {part}: {counted:?}");
                let grown = counted.2 as f64 / counted.0.max(1) as f64;
                assert!(grown < 5.0, "{name}, part {part}: {counted:?} steps for one, two, four times the size");
            }
        }
    });
}

/// Calls and servers by the ten thousand: to seek each among all others would not end.
#[test]
fn servers_and_calls_of_one_message_are_not_sought_among_all_others() {
    let servers = (0..60_000).map(|at| format!("mcp__server{at}__tool"));
    let names = Names::from_texts(std::iter::once(String::new()).chain(servers.clone()).collect());
    assert_eq!(tools::calls(&History::default(), &names, &TOOLS).1.len(), 60_001);

    let names: Vec<String> = servers.collect();
    let delta = json!({ "type": "deferred_tools_delta", "addedNames": names, "addedLines": names });
    let rows = rows(log(&[user("p", "go"), Record::new("attachment", "n").set("attachment", delta)]));
    assert_eq!(rows.rows.added.len(), 60_000);

    let told = Told::of(&[("f", &log(&[asks("m", "c", "Grep"), asks("n", "d", "Read").at(1)]))]);
    let [grep, read] = [told.history.calls[0], told.history.calls[1]];
    let history = History { calls: Arc::new([vec![grep], vec![read; 200_000]].concat()), ..History::default() };
    let uses = vec![MinedCall::default(); history.calls.len()];
    let mut follows: Patterns = Data::default().read("patterns.toml", typed).unwrap();
    follows.pattern.retain(|pattern| pattern.id == "find_then_fix");
    let found = patterns::count(&history, &uses, &told.corpus.names, &follows.pattern);
    assert_eq!(found[0].matches, 200_000);
}
