//! Any bytes as a log: read for a timeline, packed and unpacked, put together. And any bytes as rows from the lake.
#![no_main]

use std::sync::LazyLock;

use devboy::readers::endpoint::Endpoints;
use devboy::readers::packed::{pack, unpack};
use devboy::readers::timeline::assemble::{SourceTimeline, assemble};
use devboy::readers::timeline::rules::TimelineRules;
use devboy::readers::timeline::{TokenCounter, TimelineGuide, read_stream};
use devboy::readers::vocabulary::Vocabulary;
use devboy::readers::id::Id;
use devboy::readers::timeline::rows::FileTimeline;
use devboy::readers::tokenizer::TokenCounts;
use libfuzzer_sys::fuzz_target;

static WORDS: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::shipped);
static ENDPOINTS: LazyLock<Endpoints> = LazyLock::new(Endpoints::shipped);
static RULES: LazyLock<TimelineRules> = LazyLock::new(TimelineRules::shipped);

struct Bytes;

impl TokenCounter for Bytes {
    fn tokens(&mut self, text: &str) -> TokenCounts {
        [text.len() as u32; 2]
    }
}

fn put_together(file: FileTimeline) {
    let sources = vec![SourceTimeline { key: Id::NONE, file, standing: Default::default() }];
    let timeline = assemble(sources, RULES.shrink_tokens_min);
    let end = timeline.requests.last().map_or(0, |request| request.outputs.end);
    assert_eq!(end as usize, timeline.blocks.len());
}

fuzz_target!(|bytes: &[u8]| {
    let token_counter = || -> Box<dyn TokenCounter> { Box::new(Bytes) };
    let guide = TimelineGuide {
        vocabulary: &WORDS,
        endpoints: &ENDPOINTS,
        rules: &RULES,
        with_words: true,
        token_counter: Some(&token_counter),
    };
    let (mut file, counters) = read_stream(bytes, guide);
    assert_eq!(counters.lines, bytes.split_inclusive(|&byte| byte == b'\n').count() as u64);
    let again = unpack(&pack(&mut file)).expect("what was packed can be unpacked");
    assert_eq!(again.rows, file.rows);
    put_together(file);
    if let Some(foreign) = unpack(bytes) {
        put_together(foreign);
    }
});
