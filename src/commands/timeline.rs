//! The timeline of an input: a reading of its own, made when a policy asks for it.

use crate::commands::input::Input;
use crate::error::Result;
use crate::extract::Desk;
use crate::logs::discover::LogFile;
use crate::logs::read::Job;
use crate::logs::timeline::assemble::{SourceTimeline, assemble};
use crate::logs::timeline::rules::TimelineRules;
use crate::logs::timeline::{Gauge, TimelineGuide, read};
use crate::model::timeline::Timeline;
use crate::model::timeline_rows::FileTimeline;
use crate::model::tokenizer::VOCABULARIES;
use crate::progress::Progress;

/// Both vocabularies, one bit each.
const VOCABULARY_BITS: u8 = (1 << VOCABULARIES.len()) - 1;

impl Input {
    /// Every request of the logs within the window, with what it added to its context.
    ///
    /// # Errors
    /// If `rules/timeline.toml` does not fit.
    pub fn timeline(&mut self) -> Result<Timeline> {
        let rules = TimelineRules::parse(&self.data.text("timeline.toml")?, &self.data.place("timeline.toml"))?;
        let knobs = self.formats.knobs();
        let gauge = move || -> Box<dyn Gauge> { Box::new(Desk::new(VOCABULARY_BITS, knobs)) };
        let guide = TimelineGuide { vocabulary: &self.vocabulary, rules: &rules, gauge: &gauge };
        let sources: Vec<_> = self.sources.iter().filter(|source| !source.is_sidecar()).collect();
        let listed: Vec<(usize, &LogFile)> = sources
            .iter()
            .enumerate()
            .filter_map(|(index, source)| {
                let path = source.path.as_ref()?;
                Some((index, self.listing.files.iter().find(|file| file.path == *path)?))
            })
            .collect();
        let job = |(_, file): &(usize, &'_ LogFile)| -> (std::path::PathBuf, _, u64) {
            (file.path.clone(), file.packing, file.bytes)
        };
        let paths: Vec<_> = listed.iter().map(job).collect();
        let jobs: Vec<Job<'_>> =
            paths.iter().map(|(path, packing, to)| Job { path, packing: *packing, from: 0, to: *to }).collect();
        let progress = Progress::new(jobs.iter().map(|job| job.to).sum(), false);
        let files: Vec<FileTimeline> = read::read_all(&jobs, guide, &self.pool, &|bytes| progress.advance(bytes))
            .into_iter()
            .map(|(file, _)| file)
            .collect();
        let named =
            listed.iter().zip(&files).map(|((index, _), file)| SourceTimeline { key: sources[*index].key, file });
        Ok(assemble(&named.collect::<Vec<_>>(), rules.shrink_tokens_min))
    }
}
