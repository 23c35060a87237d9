//! What every command about money opens: the logs, the simulation of their requests, and the bill.

use crate::base::error::Result;
use crate::commands::input::QuestionArgs;
use crate::cost::bill::Bill;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::shell::context::Context;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::workload::{Workload, oracle};

/// Logs with their requests and prices.
pub struct BilledLogs {
    /// The logs.
    pub input: Input,
    /// Their requests, sizes and prices.
    pub workload: Workload,
    /// The cache as it is shipped.
    pub cache: CacheRules,
}

impl BilledLogs {
    /// Reads the logs.
    ///
    /// # Errors
    /// If there are none, if no request with usage lies in the window (unless `asked` allows that), or if a data file does not fit.
    pub fn open(asked: &QuestionArgs, context: &mut Context<'_>) -> Result<Self> {
        let mut input = asked.read(0, Some(TimelineDetail::default()), context)?;
        input.expect_records(&asked.input)?;
        input.report_holds(Holds::FirstChunks)?;
        let timeline = input.timeline(TimelineDetail::default())?;
        if !timeline.counted().any(|(_, request)| request.is_billed()) && !asked.input.allow_empty {
            return Err(input.nothing_in_window("requests with usage"));
        }
        let cache = oracle(&PolicyConfigs::load(&input.data)?)?;
        let mut workload = Workload::new(timeline, None, &input.data, false, true)?;
        workload.timeline.rename_tools(&input.vocabulary.tool_aliases);
        let notes = workload.notes(&cache);
        input.notes.extend(notes);
        Ok(Self { input, workload, cache })
    }

    /// Their bill.
    pub fn bill(&self) -> Bill<'_> {
        Bill::new(&self.workload, self.cache.cache.class_unknown)
    }
}
