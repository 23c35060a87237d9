//! Reads files for a timeline: one worker a file, from its first line to its last, the largest first.

#[cfg(any(test, fuzzing))]
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::lines::LineBuffer;
use crate::logs::read;
use crate::logs::read::Job;
use crate::logs::timeline::beside::add_agent_file;
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::timeline::{Reader, TimelineGuide};
use crate::logs::trace::Counters;

/// Reads all jobs; the rows stand in the order of the jobs. `advance` is told of bytes as they are done.
pub fn read_all(
    jobs: &[Job<'_>],
    guide: TimelineGuide<'_>,
    pool: &rayon::ThreadPool,
    advance: &(dyn Fn(u64) + Sync),
) -> Vec<(FileTimeline, Counters)> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| (std::cmp::Reverse(jobs[job].to), job));
    let next = AtomicUsize::new(0);
    let read: Vec<Vec<_>> = pool.broadcast(|_| {
        let mut buffer = LineBuffer::default();
        let mut gauge = (guide.gauge)();
        let mut done = Vec::new();
        while let Some(&job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut reader = Reader::new(guide, &mut *gauge);
            read::read_whole(&jobs[job], &mut buffer, &mut reader);
            advance(jobs[job].to);
            let (mut file, counters) = reader.finish();
            add_agent_file(jobs[job].path, &mut file);
            done.push((job, (file, counters)));
        }
        done
    });
    let mut files: Vec<_> = read.into_iter().flatten().collect();
    files.sort_unstable_by_key(|(job, _)| *job);
    files.into_iter().map(|(_, file)| file).collect()
}

/// Reads one stream to its end; how it is packed is told by its first bytes.
#[cfg(any(test, fuzzing))]
pub fn read_stream(source: impl Read, guide: TimelineGuide<'_>) -> (FileTimeline, Counters) {
    let mut gauge = (guide.gauge)();
    let mut reader = Reader::new(guide, &mut *gauge);
    read::read_stream_into(source, &mut reader);
    reader.finish()
}
