//! Sessions and their runs. A recorder that names a session by its process id gives two sessions one name as soon as the
//! system hands that id out again.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::logs::trace::Millis;
use crate::telemetry::log::RecordedEvent;

/// Numbers the sessions by name, and the runs of a session named by a process id (`mcp_123`) one after the other in the
/// order of time: a new one begins where the partition of a chain falls, or behind a gap of more than `gap_ms`. Returns
/// the names; the second run is called `mcp_123#2`.
///
/// [`RecordedEvent::session`] is the place of the name in `names` before, and that in what is returned afterwards.
pub(super) fn number_sessions(events: &mut [RecordedEvent], names: &[String], gap_ms: u64) -> Vec<String> {
    let mut runs = vec![0_u32; names.len()];
    for event in &*events {
        runs[event.session as usize] = 1;
    }
    let rows = recycled_rows(events, names);
    let run_of_row = split(events, &rows, &mut runs, gap_ms);
    let mut sum = 0;
    let behind = runs.iter().map(|count| {
        sum += count;
        sum
    });
    let first: Vec<u32> = behind.zip(&runs).map(|(behind, count)| behind - count).collect();
    events.par_iter_mut().for_each(|event| event.session = first[event.session as usize]);
    for (row, run) in rows.into_iter().zip(run_of_row) {
        events[row as usize].session += run;
    }
    names.iter().zip(runs).flat_map(|(name, count)| (1..=count).map(|run| run_name(name, run))).collect()
}

fn run_name(session: &str, run: u32) -> String {
    if run == 1 { session.to_owned() } else { format!("{session}#{run}") }
}

fn is_process_id(session: &str) -> bool {
    let digits = session.strip_prefix("mcp_").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The events of sessions named by a process id, by session and time. Of equal times the smaller partition comes first,
/// so that none falls where nobody can tell.
fn recycled_rows(events: &[RecordedEvent], names: &[String]) -> Vec<u32> {
    let recycled: Vec<bool> = names.iter().map(|name| is_process_id(name)).collect();
    if !recycled.contains(&true) {
        return Vec::new();
    }
    let mut rows: Vec<u32> =
        (0..).zip(events).filter(|(_, event)| recycled[event.session as usize]).map(|(row, _)| row).collect();
    rows.sort_unstable_by_key(|&row| {
        let event = &events[row as usize];
        (event.session, event.ts, event.partition, event.chain)
    });
    rows
}

/// The run of each row, counted from 0 within its session; `runs` is raised to their number.
fn split(events: &[RecordedEvent], rows: &[u32], runs: &mut [u32], gap_ms: u64) -> Vec<u32> {
    let mut before: Option<(u32, Millis)> = None;
    let mut partitions: BTreeMap<u32, u32> = BTreeMap::new();
    let mut run_of_row = Vec::with_capacity(rows.len());
    for &row in rows {
        let event = &events[row as usize];
        let run = &mut runs[event.session as usize];
        match before {
            Some((session, ts)) if session == event.session => {
                let falls = partitions.get(&event.chain).is_some_and(|&last| event.partition < last);
                if falls || event.ts.abs_diff(ts) > gap_ms {
                    *run += 1;
                    partitions.clear();
                }
            }
            _ => partitions.clear(),
        }
        before = Some((event.session, event.ts));
        partitions.insert(event.chain, event.partition);
        run_of_row.push(*run - 1);
    }
    run_of_row
}
