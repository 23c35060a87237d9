//! The cheapest headings for a list of paths.

/// What a heading costs beside its path, in bytes of path.
const HEADING_BYTES: usize = 12;

/// A run of paths with a common directory.
struct Run {
    start: usize,
    /// Bytes of the directory that all of them have in common.
    length: usize,
    /// Bytes of all paths.
    bytes: usize,
    /// Bytes with the best headings inside.
    cost: usize,
}

/// The cheapest headings for a list of paths: ranges of lines and the length of their directory. A directory is worth a
/// heading of its own, or its lines stand under that of a directory above, or under none.
pub(crate) fn directories(lines: &[&str]) -> Vec<(usize, usize, usize)> {
    let mut chosen: Vec<(usize, usize, usize)> = Vec::new();
    let mut open: Vec<Run> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let shared = lines.get(index + 1).map_or(0, |next| shared_directory(line, next));
        // A path on its own has no directory to share; it would need a heading too, or the end of the group before it.
        let mut run = Run { start: index, length: usize::MAX, bytes: line.len(), cost: line.len() + HEADING_BYTES };
        while let Some(above) = open.pop_if(|above| above.length > shared) {
            run = Run {
                start: above.start,
                length: above.length,
                bytes: above.bytes + run.bytes,
                cost: above.cost + run.cost,
            };
            let count = index + 1 - run.start;
            let grouped = run.bytes - count * run.length + run.length + HEADING_BYTES;
            if grouped <= run.cost {
                run.cost = grouped;
                let inside = chosen.iter().rposition(|(start, ..)| *start < run.start).map_or(0, |last| last + 1);
                chosen.truncate(inside);
                chosen.push((run.start, index + 1, run.length));
            }
        }
        match open.last_mut() {
            Some(same) if same.length == shared => {
                same.bytes += run.bytes;
                same.cost += run.cost;
            }
            _ => open.push(Run { length: shared, ..run }),
        }
    }
    chosen
}

/// Length of the directories that two paths share, in bytes.
fn shared_directory(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    memchr::memrchr(b'/', &one.as_bytes()[..same]).map_or(0, |slash| slash + 1)
}
