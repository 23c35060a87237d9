//! Which file a call is about, when the chain named it before, and when it was last read.

use std::ops::Range;

use crate::base::id::{Id, IdMap};
use crate::base::names::Sym;
use crate::logs::timeline::requests::{NONE, Timeline};
use crate::whatif::sim::breakage::FileTools;

/// The request that a block belongs to.
pub fn request_of(timeline: &Timeline, block: u32) -> u32 {
    let behind = timeline.requests.partition_point(|request| request.inputs.start <= block);
    u32::try_from(behind.saturating_sub(1)).expect("fewer than 2^32 requests")
}

/// The calls that a request answered with, as indices into [`Timeline::calls`].
pub fn calls_of(timeline: &Timeline, request: u32) -> Range<usize> {
    let outputs = &timeline.request(request).outputs;
    let start = timeline.calls.partition_point(|call| call.asked < outputs.start);
    start..start + timeline.calls[start..].iter().take_while(|call| call.asked < outputs.end).count()
}

/// What a call does with the file that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads it.
    Read,
    /// Edits it.
    Edit,
    /// Anything else.
    Other,
}

/// Calls on files, call by call parallel to [`Timeline::calls`].
pub struct Files {
    access: Vec<Access>,
    before: Vec<u32>,
    reading: Vec<u32>,
}

impl Files {
    /// Goes through all calls once.
    pub fn of(timeline: &Timeline, tools: &FileTools) -> Self {
        let syms = |names: &[String]| names.iter().filter_map(|name| timeline.names.find(name)).collect::<Vec<Sym>>();
        let (read, edit) = (syms(&tools.read), syms(&tools.edit));
        let access: Vec<Access> = timeline
            .calls
            .iter()
            .map(|call| match call.tool {
                _ if !call.path.is_some() => Access::Other,
                tool if read.contains(&tool) => Access::Read,
                tool if edit.contains(&tool) => Access::Edit,
                _ => Access::Other,
            })
            .collect();
        let mut files =
            Self { access, before: vec![NONE; timeline.calls.len()], reading: vec![NONE; timeline.calls.len()] };
        files.link(timeline);
        files
    }

    /// Calls of one request are made at once: they link to earlier requests, not to each other.
    fn link(&mut self, timeline: &Timeline) {
        let mut newest: IdMap<(Id, u32), (u32, u32)> = IdMap::default();
        for request in 0..u32::try_from(timeline.requests.len()).expect("fewer than 2^32 requests") {
            let chain = timeline.request(request).chain;
            let calls = calls_of(timeline, request);
            for index in calls.clone() {
                let known = newest.get(&(timeline.calls[index].path, chain)).copied();
                (self.before[index], self.reading[index]) = known.unwrap_or((NONE, NONE));
            }
            for index in calls {
                let call = &timeline.calls[index];
                if !call.path.is_some() {
                    continue;
                }
                let entry = newest.entry((call.path, chain)).or_insert((NONE, NONE));
                entry.0 = u32::try_from(index).expect("fewer than 2^32 calls");
                if self.access[index] == Access::Read && call.answered != NONE && !call.is_error {
                    entry.1 = call.answered;
                }
            }
        }
    }

    /// What a call does.
    pub fn access(&self, call: usize) -> Access {
        self.access[call]
    }

    /// Earlier calls of the chain that name the same file, newest first.
    pub fn before(&self, call: usize) -> impl Iterator<Item = u32> {
        let link = |call: usize| Some(self.before[call]).filter(|&before| before != NONE);
        std::iter::successors(link(call), move |&before| link(before as usize))
    }

    /// Block of the newest result of reading the same file before this call, or [`NONE`].
    pub fn reading(&self, call: usize) -> u32 {
        self.reading[call]
    }
}
