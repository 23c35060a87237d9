//! Any bytes as a log: read, put together, summed up. Lines must be counted exactly and sums must come out even.
#![no_main]

use std::sync::LazyLock;

use devboy::readers::shape;
use devboy::readers::assemble::assemble;
use devboy::readers::endpoint::Endpoints;
use devboy::readers::message::ExtractionGuide;
use devboy::readers::read;
use devboy::readers::value_rules::ValueRules;
use devboy::readers::vocabulary::Vocabulary;
use devboy::readers::totals::totals;
use devboy::readers::corpus::{Corpus, RowSource};
use libfuzzer_sys::fuzz_target;

static WORDS: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::shipped);
static ENDPOINTS: LazyLock<Endpoints> = LazyLock::new(Endpoints::shipped);
static VALUES: LazyLock<ValueRules> = LazyLock::new(ValueRules::shipped);

fuzz_target!(|bytes: &[u8]| {
    let guide = ExtractionGuide {
        vocabulary: &WORDS,
        endpoints: &ENDPOINTS,
        values: &VALUES,
        with_values: true,
        classify: shape::classify,
        study: None,
        timeline: None,
    };
    let reading = read::read_stream(bytes, guide);
    let counters = reading.trace.counters.clone();
    assert_eq!(counters.lines, bytes.split_inclusive(|&byte| byte == b'\n').count() as u64);
    assert_eq!(u64::from(counters.items), counters.records + counters.bad_fragments + counters.non_objects);
    let mut corpus = Corpus::default();
    corpus.push(RowSource { counters: counters.into(), ..RowSource::default() }, reading.trace);
    let history = assemble(&corpus);
    assert_eq!(history.calls.len(), history.chains.iter().map(|chain| chain.calls.len()).sum::<usize>());
    let sums = totals(&corpus);
    assert_eq!(sums.tool_uses, sums.paired + sums.unanswered);
});
