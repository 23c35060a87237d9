//! A timeline of real logs, to look at: `DEVBOY_LOGS=<folder> cargo test timeline_of_real_logs -- --ignored --nocapture`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;

use crate::frames::input::Input;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::logs::timeline;
use crate::logs::timeline::requests::{Marks, ReferenceKind, SegmentCause, Timeline};
use crate::logs::trace::{Millis, Place, Usage, compare_versions};
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::{Context, Env};
use crate::tests::timeline::{timeline_guide, told};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The input of a command on a folder of logs.
pub(super) fn input(logs: &str, lake: Option<&str>) -> Input {
    let mut words = vec!["devboy", "--input-dir", logs, "--quiet"];
    match lake {
        Some(lake) => words.extend(["--lake", lake]),
        None => words.push("--no-lake"),
    }
    let line = Line::parse_from(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut context = Context {
        out: &mut out,
        err: &mut err,
        input: &mut &b""[..],
        env: Env::default(),
        pseudonyms: crate::base::pseudonyms::Pseudonyms::default(),
        now_ms: super::harness::NOW_MS,
        width: None,
        out_is_terminal: false,
        err_is_terminal: false,
    };
    Input::read(&line.input, Millis::MIN..Millis::MAX, (0, None), &line.output, &mut context).unwrap()
}

/// Share of warm requests within a turn that read exactly what the one before had read and written (policies.md F4).
fn identity(timeline: &Timeline, later: bool) -> (u64, u64) {
    let (mut equal, mut all) = (0, 0);
    for segment in &timeline.segments {
        let requests = &timeline.requests[segment.requests.start as usize..segment.requests.end as usize];
        for pair in requests.windows(2) {
            let (before, now) = (&pair[0], &pair[1]);
            let warm = now.start - before.end < 240_000 && now.usage().cache_read > 0;
            let same = now.model == before.model && now.version == before.version && now.marks == Marks::default();
            let version = timeline.names.text(now.version);
            let asked = compare_versions(version, "2.1.42").is_gt() == later;
            if asked && warm && same && before.usage().cache_creation + before.usage().cache_read > 0 {
                all += 1;
                equal += u64::from(now.usage().cache_read == before.usage().cache_read + before.usage().cache_creation);
            }
        }
    }
    (equal, all)
}

#[test]
#[ignore = "needs a folder of logs in DEVBOY_LOGS"]
fn timeline_of_real_logs() {
    let logs = std::env::var("DEVBOY_LOGS").expect("DEVBOY_LOGS names a folder of logs");
    assert!(PathBuf::from(&logs).is_dir());
    let lake = std::env::var("DEVBOY_LAKE").ok();
    let mut input = input(&logs, lake.as_deref());
    let begin = Instant::now();
    let timeline =
        input.timeline(TimelineDetail { tokens: true, words: TextWords::All, ..TimelineDetail::default() }).unwrap();
    println!("timeline in {:?}", begin.elapsed());
    let begin = Instant::now();
    let again =
        input.timeline(TimelineDetail { tokens: true, words: TextWords::All, ..TimelineDetail::default() }).unwrap();
    println!("again in {:?}", begin.elapsed());
    assert!(told(&timeline) == told(&again), "the lake gives another timeline than the logs");
    let history = input.history();
    let sum = |of: &dyn Fn(&Usage) -> u64, progress: bool| -> u64 {
        let place = |chain: u32| timeline.chains[chain as usize].place == Place::Progress;
        timeline.requests.iter().filter(|r| place(r.chain) == progress).map(|r| of(&r.usage())).sum()
    };
    let billed = || history.messages.iter().filter(|message| message.billed);
    println!("requests {}, billed messages {}", timeline.requests.len(), billed().count());
    println!(
        "sessions {} chains {} blocks {} calls {}",
        timeline.sessions.len(),
        timeline.chains.len(),
        timeline.blocks.len(),
        timeline.calls.len()
    );
    type Field<'f> = (&'f str, &'f dyn Fn(&Usage) -> u64);
    let fields: [Field<'_>; 4] = [
        ("input", &|u| u.input),
        ("output", &|u| u.output),
        ("write", &|u| u.cache_creation),
        ("read", &|u| u.cache_read),
    ];
    for (name, of) in fields {
        let ingest: u64 = billed().map(|message| of(&message.usage)).sum();
        println!("{name}: own {} progress {} ingest {ingest}", sum(of, false), sum(of, true));
    }
    let compactions: usize = history.chains.iter().map(|chain| chain.compactions.len()).sum();
    println!("boundaries {} (ingest {compactions}), clearings {}", timeline.boundaries.len(), timeline.clearings.len());
    let mut causes: BTreeMap<SegmentCause, usize> = BTreeMap::new();
    timeline.segments.iter().for_each(|segment| *causes.entry(segment.cause).or_default() += 1);
    println!("segments {causes:?}");
    for bit in 0..12 {
        let count = timeline.requests.iter().filter(|r| r.marks.0 >> bit & 1 == 1).count();
        println!("mark {bit}: {count}");
    }
    let mut kinds: BTreeMap<_, (u64, u64, u64)> = BTreeMap::new();
    for block in &timeline.blocks {
        let sums = kinds.entry(block.kind).or_default();
        *sums = (sums.0 + 1, sums.1 + u64::from(block.chars), sums.2 + u64::from(block.tokens[0]));
    }
    println!("blocks {kinds:?}");
    for (name, later) in [("up to 2.1.42", false), ("later", true)] {
        let (equal, all) = identity(&timeline, later);
        println!("identity, versions {name}: {equal} of {all}: {:.4}", equal as f64 / all as f64);
    }
    let mut references: BTreeMap<_, (u64, u64, u64)> = BTreeMap::new();
    let mut ages: BTreeMap<String, u64> = BTreeMap::new();
    let of_block = |block: u32| timeline.requests.partition_point(|request| request.outputs.end <= block) as u32;
    for reference in &timeline.references {
        let sums = references.entry(reference.kind).or_default();
        *sums = (sums.0 + 1, sums.1 + u64::from(reference.sources.is_empty()), sums.2 + u64::from(reference.cut));
        if reference.kind == ReferenceKind::EditSource {
            let newest = timeline.sources[reference.sources.start as usize..reference.sources.end as usize].last();
            let turn = |request: u32| timeline.requests[request as usize].turn;
            let age = newest.map(|source| turn(reference.request) - turn(of_block(source.block)));
            let age = match age {
                None => "none".to_owned(),
                Some(age @ 0..=2) => age.to_string(),
                Some(3..=7) => "3-7".to_owned(),
                Some(8..=19) => "8-19".to_owned(),
                Some(_) => ">=20".to_owned(),
            };
            *ages.entry(age).or_default() += 1;
        }
    }
    println!("utterances {} words {}", timeline.utterances.len(), timeline.words.rows().len());
    println!("references (all, without source, cut) {references:?}, sources {}", timeline.sources.len());
    println!("edits by age of their newest source {ages:?}");
    for source in input.sources.iter().filter(|source| !source.is_sidecar()) {
        let log = std::fs::File::open(source.path.as_ref().expect("it is on disk")).unwrap();
        let counted = timeline::read_stream(log, timeline_guide()).1;
        assert_eq!((counted.records, counted.bad_fragments), (source.counters.records, source.counters.bad_fragments));
    }
    println!("skipped {:?}", timeline.skipped);
}
