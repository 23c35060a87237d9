//! What policies about tool lists share: which tools there are ([`inventory`]), what is known of them ([`Tools`]), what was
//! asked for when a turn began ([`Queries`]: words as hashes with counts), which of them each request would have been shown and
//! missed ([`plan`]), and what that does to contexts ([`stage`]).

pub mod inventory;
pub mod plan;
pub mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::frames::input::Input;
use crate::logs::definitions::{self, Quote};
use crate::logs::timeline::requests::{BlockKind, Timeline, Utterance};
use crate::logs::timeline::words::Word;
use crate::whatif::arg_check::outcome::{Provider, ProviderSizes};
use crate::whatif::catalog::read::Spec;
use crate::whatif::catalog::{Catalog, CatalogRules, DefinitionSource, read, sizes};
use crate::whatif::tools::inventory::StopWords;

/// Tools, by index into [`inventory::Inventory::tools`], which is catalog order.
pub type ToolSet = BTreeSet<u32>;

/// What is known of tools, for all policies about them.
#[derive(Clone)]
pub struct Tools {
    /// Definitions, and where they come from; none: names of the logs alone. [`DefinitionSource::Names`] where no size among them counts.
    pub catalog: Option<(Catalog, DefinitionSource)>,
    /// In whose shape definitions are measured besides.
    pub provider: Option<Provider>,
    /// Words of built-in tools.
    pub shipped: Catalog,
    /// Sizes of definitions.
    pub rules: CatalogRules,
    /// Words that do not count.
    pub stop: StopWords,
}

impl Tools {
    /// Reads the user's catalogs and the shipped files. An error if a file cannot be read or has none of the known
    /// shapes.
    pub fn read(files: &[String], data: &Data) -> Result<Self> {
        let specs = files.iter().map(|file| Spec::parse(file)).collect::<Result<Vec<_>>>()?;
        let text = |spec: &Spec| {
            let path = std::path::Path::new(&spec.file);
            crate::base::files::read_to_string(path).map_err(|cause| {
                let hint = "name a file that holds what a server answers to `tools/list`, or `server=NAME:FILE`";
                Error::io("reading", path, &cause).hint(hint)
            })
        };
        let texts = specs.iter().map(text).collect::<Result<Vec<_>>>()?;
        let given = specs.iter().zip(texts.iter().map(String::as_str));
        Ok(Self {
            catalog: if specs.is_empty() { None } else { Some((Catalog::read(given)?, DefinitionSource::Given)) },
            provider: None,
            shipped: data.read("catalogs/claude_code.toml", Catalog::shipped)?,
            rules: data.parsed("policies/catalog.toml")?,
            stop: data.read("policies/stop_words.toml", StopWords::parse)?,
        })
    }

    /// Without files of the user, takes the definitions that the logs quote. The lake has none, so logs are read.
    pub fn look_in(&mut self, input: &mut Input) {
        if self.catalog.is_some() {
            return;
        }
        let take = |quote: Quote<'_>| match quote {
            Quote::Searched(text) => read::quoted(text),
            Quote::Attached(value) => read::attached(value),
        };
        let (found, failures) =
            definitions::read_all(&input.jobs(), &self.rules.logged.search_tools, &input.pool, &take);
        input.leave_out(failures);
        self.catalog = Catalog::logged(found).map(|catalog| {
            let source = if catalog.has_sizes() { DefinitionSource::Logged } else { DefinitionSource::Names };
            (catalog, source)
        });
    }

    /// Sizes of the definitions in the shape of a provider, where one is asked for and there are definitions.
    pub fn provider_sizes(&self) -> Option<ProviderSizes> {
        let (catalog, _) = self.catalog.as_ref().filter(|(catalog, _)| catalog.has_sizes())?;
        Some(sizes(catalog, self.provider?, &self.rules))
    }

    /// Why there are none although somebody asked for them.
    pub fn provider_note(&self) -> Option<String> {
        (self.provider.is_some() && self.provider_sizes().is_none())
            .then(|| "sizes in the shape of a provider need definitions: bring them with --tool-catalog".to_owned())
    }

    /// What the user should know about the files of the catalog.
    pub fn notes(&self) -> Vec<String> {
        self.catalog.as_ref().map(|(catalog, _)| catalog.notes()).unwrap_or_default()
    }
}

/// Words with their counts, by hash.
pub type Bag = BTreeMap<u64, u32>;

/// Turns of a chain: from one message of a person to the next, tool chains included.
pub fn turns(timeline: &Timeline, chain: u32) -> Vec<Range<u32>> {
    let requests = timeline.chain(chain).requests.clone();
    let mut turns: Vec<Range<u32>> = Vec::new();
    for request in requests {
        let number = timeline.request(request).turn;
        match turns.last_mut() {
            Some(turn) if timeline.request(turn.start).turn == number => turn.end = request + 1,
            _ => turns.push(request..request + 1),
        }
    }
    turns
}

/// The part of a turn that counts: from its first request that does; none if none does.
pub fn counted_part(timeline: &Timeline, turn: &Range<u32>) -> Option<Range<u32>> {
    let start = turn.clone().find(|&request| timeline.request(request).counts())?;
    Some(start..turn.end)
}

/// Reads queries off a timeline.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    timeline: &'a Timeline,
    stop: &'a StopWords,
    /// Which of the words of a text: terms of the relevance filter, or words of the keyword scorer.
    kind: fn(&Utterance) -> &Range<u32>,
}

impl<'a> Queries<'a> {
    /// Words of one kind, without those of the stop list.
    pub fn new(timeline: &'a Timeline, stop: &'a StopWords, kind: fn(&Utterance) -> &Range<u32>) -> Self {
        Self { timeline, stop, kind }
    }

    /// Words that people wrote right before a request, of those that begin within `chars` code points of each text (whole
    /// steps of [`Word::STEP_CHARS`]). A word counts as often as it stands in the text, behind them as well.
    pub fn asked(&self, request: u32, chars: Option<u32>) -> Bag {
        let inputs = self.timeline.request(request).inputs.clone();
        let mut bag = Bag::new();
        for utterance in self.between(inputs) {
            if self.timeline.blocks[utterance.block as usize].kind == BlockKind::Human {
                self.add(&mut bag, utterance, chars);
            }
        }
        bag
    }

    /// Words of the last `count` texts of a chain before what came in with a request.
    pub fn before(&self, request: u32, count: usize) -> Bag {
        let request = self.timeline.request(request);
        let first = self.timeline.chain(request.chain).requests.start;
        let first = self.timeline.request(first).inputs.start;
        let earlier = self.between(first..request.inputs.start);
        let mut bag = Bag::new();
        for utterance in &earlier[earlier.len().saturating_sub(count)..] {
            self.add(&mut bag, utterance, None);
        }
        bag
    }

    fn between(&self, blocks: Range<u32>) -> &'a [Utterance] {
        let all = &self.timeline.utterances;
        let from = all.partition_point(|utterance| utterance.block < blocks.start);
        let to = all.partition_point(|utterance| utterance.block < blocks.end);
        &all[from..to.max(from)]
    }

    fn add(&self, bag: &mut Bag, utterance: &Utterance, chars: Option<u32>) {
        let range = (self.kind)(utterance).clone();
        let start = |word: &Word| usize::from(word.position) * Word::STEP_CHARS;
        let near = |word: &Word| chars.is_none_or(|chars| start(word) < chars as usize);
        for word in self.timeline.words.of(range).filter(near).filter(|word| !self.stop.contains(word.hash)) {
            *bag.entry(word.hash).or_default() += u32::from(word.count);
        }
    }
}
