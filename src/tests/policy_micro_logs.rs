//! Clearings of tool results in logs as the client writes them, by the rule of policies.md 3.3 told anew here: each one has to be
//! found again with the very set of calls.

use proptest::prelude::*;
use serde_json::json;

use crate::logs::timeline::requests::Timeline;
use crate::tests::log_builder::*;
use crate::tests::timeline::{linked, timeline_of};
use crate::whatif::clearing::replayed;
use crate::whatif::compaction::CompactionThresholds;
use crate::whatif::compaction::outcome::ClearingsReplayed;

/// Tools that the client clears, and some that it does not.
const TOOLS: [&str; 11] = [
    "Read",
    "Bash",
    "Grep",
    "Glob",
    "WebSearch",
    "WebFetch",
    "Edit",
    "Write",
    "Task",
    "mcp__tracker__get_issue",
    "TodoWrite",
];
const CLEARED: usize = 8;

/// What a client does, independently of how devboy reads it.
#[derive(Default)]
struct Client {
    records: Vec<Record>,
    /// Results in the context: call, whether its tool is cleared, characters by four with a half rounded up.
    standing: Vec<(String, bool, u64)>,
    calls: usize,
    /// Tokens of the context, as billed.
    context: u64,
    clearings: u64,
}

impl Client {
    fn asks(&mut self, tool: usize, chars: usize) {
        self.calls += 1;
        let call = format!("c{}", self.calls);
        let message = format!("m{}", self.calls);
        let usage = json!({
            "input_tokens": 5, "cache_read_input_tokens": self.context, "cache_creation_input_tokens": 0, "output_tokens": 9,
        });
        let asked = assistant(&message, &[tool_use(&call, TOOLS[tool])]).message("usage", usage);
        self.records.push(asked.at(self.calls as u32 * 10));
        self.records.push(answers(&call, "x".repeat(chars)).at(self.calls as u32 * 10 + 5));
        self.standing.push((call, tool < CLEARED, (chars as f64 / 4.0 + 0.5).floor() as u64));
        self.context += chars as u64 / 3 + 90;
    }

    /// Looks whether results have to go: oldest first until 40,000 are left, if that frees 20,000.
    fn looks(&mut self, writes_it_down: bool, compacts: bool) {
        let counted = || self.standing.iter().enumerate().filter(|(_, (_, cleared, _))| *cleared);
        let total: u64 = counted().map(|(_, (.., tokens))| tokens).sum();
        let (mut left, mut gone) = (total, Vec::new());
        for (place, (_, _, tokens)) in counted() {
            if left <= 40_000 {
                break;
            }
            left -= tokens;
            gone.push(place);
        }
        let saved = total - left;
        if saved < 20_000 {
            return;
        }
        let calls: Vec<String> = gone.iter().map(|&place| self.standing[place].0.clone()).collect();
        self.context -= (saved * 4 / 3).min(self.context);
        self.standing.retain(|(call, ..)| !calls.contains(call));
        if !writes_it_down {
            return;
        }
        self.clearings += 1;
        let uuid = format!("clearing {}", self.calls);
        let metadata = json!({
            "trigger": "auto", "preTokens": total, "tokensSaved": saved, "compactedToolIds": calls,
            "clearedAttachmentUUIDs": [],
        });
        let second = self.calls as u32 * 10 + 6;
        let record = Record::new("system", &uuid).set("subtype", "microcompact_boundary");
        self.records.push(record.set("microcompactMetadata", metadata).at(second));
        if compacts {
            self.records.push(boundary(&format!("boundary {}", self.calls)).at(second));
            self.records.push(compact_summary(&format!("summary {}", self.calls), None).at(second));
            self.standing.clear();
            self.context = 20_000;
        }
    }

    fn timeline(self) -> Timeline {
        let mut records = vec![user("p", "go")];
        records.extend(self.records);
        timeline_of(&[("f", &log(&linked(records)))])
    }
}

/// A session of so many calls; a clearing now and then goes unwritten, or a compaction follows it.
fn session(calls: &[(usize, usize)], unwritten: usize, compacted: usize) -> (ClearingsReplayed, u64) {
    let mut client = Client { context: 20_000, ..Client::default() };
    for (number, &(tool, chars)) in calls.iter().enumerate() {
        client.asks(tool, chars);
        client.looks(unwritten == 0 || number % unwritten != 0, compacted > 0 && number % compacted == 0);
    }
    // The model answers once more, so that a clearing at the end stands before a request.
    client.asks(CLEARED, 10);
    let clearings = client.clearings;
    let thresholds = CompactionThresholds::shipped();
    (replayed(&client.timeline(), &thresholds.params.micro, thresholds), clearings)
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn clearings_by_the_described_rule_are_found_with_their_very_sets(
        calls in prop::collection::vec((0..TOOLS.len(), 0_usize..60_000), 40..90),
        unwritten in 0_usize..4,
        compacted in 0_usize..5,
    ) {
        let (found, clearings) = session(&calls, unwritten, compacted);
        prop_assert_eq!(found.checks.len() as u64, clearings);
        prop_assert_eq!(found.equal.n, clearings, "all can be judged");
        // Of 8 at least 7.
        prop_assert!(8 * found.equal.k >= 7 * found.equal.n, "{:?}", found.checks);
        for check in found.checks.iter().filter(|check| check.is_equal()) {
            prop_assert_eq!(Some(check.total_tokens), check.logged_total_tokens);
            prop_assert_eq!(Some(check.saved_tokens), check.logged_saved_tokens);
        }
    }
}

#[test]
fn a_clearing_before_a_compaction_is_not_taken_for_empty() {
    let calls = vec![(0, 40_000); 12];
    let (found, clearings) = session(&calls, 0, 1);
    assert!(clearings > 0);
    assert_eq!((found.equal.k, found.equal.n), (clearings, clearings));
}

#[test]
fn results_of_other_tools_are_neither_counted_nor_cleared() {
    let calls: Vec<(usize, usize)> = (0..30).map(|number| (CLEARED + number % 3, 50_000)).collect();
    let (found, clearings) = session(&calls, 0, 0);
    assert_eq!((clearings, found.checks.len()), (0, 0));
    // Every fourth one has no text at all: it goes along with those around it.
    let chars = |number: usize| if number % 4 == 1 { 0 } else { 30_000 };
    let mixed: Vec<(usize, usize)> = (0..30).map(|number| (number % TOOLS.len(), chars(number))).collect();
    let (found, _) = session(&mixed, 0, 0);
    assert!(found.equal.n > 0 && found.equal.k == found.equal.n);
}

#[test]
fn a_clearing_whose_results_stand_in_no_log_is_not_judged() {
    let metadata = json!({ "preTokens": 60_000, "tokensSaved": 21_000, "compactedToolIds": ["elsewhere"] });
    let lost = Record::new("system", "x").set("subtype", "microcompact_boundary").set("microcompactMetadata", metadata);
    let records =
        vec![user("p", "go"), asks("m1", "c1", "Read"), answers("c1", "short"), lost, asks("m2", "c2", "Read")];
    let thresholds = CompactionThresholds::shipped();
    let found = replayed(&timeline_of(&[("f", &log(&linked(records)))]), &thresholds.params.micro, thresholds);
    assert_eq!((found.checks.len(), found.equal.n, found.is_met), (1, 0, None));
}
