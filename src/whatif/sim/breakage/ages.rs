//! How old the newest verbatim sources of edits are, in human turns, and what follows for a policy that keeps only the
//! last turns. A property of the log alone: the yardstick for every simulated loss.

use crate::base::stats::Share;
use crate::logs::timeline::requests::{BlockKind, Marks, Reference, ReferenceKind, Timeline};
use crate::whatif::sim::breakage::rows::{AgeRow, EditAges, RiskRow};

use crate::whatif::sim::breakage::files::request_of;
use crate::whatif::sim::breakage::sheet::Sheet;

/// Measures every edit of the timeline. The current turn has age 0.
pub fn edit_ages(timeline: &Timeline, sheet: &Sheet) -> EditAges {
    let edits = timeline.references.iter().filter(|reference| reference.kind == ReferenceKind::EditSource);
    let ages: Vec<Option<u32>> = edits.map(|edit| age(timeline, edit)).collect();
    let between = |from: u32, to: Option<u32>| {
        let inside = ages.iter().flatten().filter(|&&age| age >= from && to.is_none_or(|to| age <= to)).count();
        inside as u64
    };
    let rows = sheet.ages.from.iter().enumerate().map(|(place, &from)| {
        let to = sheet.ages.from.get(place + 1).map(|&next| next - 1);
        AgeRow { from, to, edits: between(from, to) }
    });
    let all = ages.len() as u64;
    let risk = sheet.risk.iter().map(|point| {
        let at_risk = Share::new(between(point.kept_turns, None), all);
        let distance = (at_risk.value() * 100.0 - point.expected_percent).abs();
        RiskRow {
            kept_turns: point.kept_turns,
            at_risk,
            expected_percent: point.expected_percent,
            is_met: all > 0 && distance <= sheet.bars.risk_tolerance_points,
        }
    });
    EditAges {
        edits: all,
        unsourced: ages.iter().filter(|age| age.is_none()).count() as u64,
        ages: rows.collect(),
        risk: risk.collect(),
    }
}

/// Sources stand in the order of their blocks, so the last one is the newest.
fn age(timeline: &Timeline, edit: &Reference) -> Option<u32> {
    let sources = &timeline.sources[edit.sources.start as usize..edit.sources.end as usize];
    let turn = turn_of(timeline, sources.last()?.block);
    Some(timeline.requests[edit.request as usize].turn.saturating_sub(turn))
}

/// The human turn of a block within its chain. Results that came before the person wrote belong to the turn before.
pub fn turn_of(timeline: &Timeline, block: u32) -> u32 {
    let request = &timeline.requests[request_of(timeline, block) as usize];
    let is_human = |&index: &u32| timeline.blocks[index as usize].kind == BlockKind::Human;
    let opened = request.inputs.clone().find(is_human).filter(|_| request.marks.has(Marks::HUMAN));
    if opened.is_some_and(|human| block < human) { request.turn.saturating_sub(1) } else { request.turn }
}
