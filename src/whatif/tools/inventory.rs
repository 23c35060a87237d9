//! The tools of a timeline: those of the catalog in its order, then those that were used and that it does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::base::data::fitting;
use crate::base::id::Id;
use crate::base::names::means;
use crate::base::words;
use crate::logs::timeline::requests::{BlockKind, NONE, Timeline};
use crate::whatif::catalog::read::MCP_PREFIX;
use crate::whatif::catalog::{Catalog, DefinitionSource, SizeFormula, ToolDefinition};
use crate::whatif::tools::{ToolSet, Tools};

/// One tool.
#[derive(Clone, PartialEq, Debug)]
pub struct Tool {
    /// What is known about it.
    pub definition: ToolDefinition,
    /// Tokens of its definition; none where its text is not what a client sends.
    pub tokens: Option<u64>,
    /// Terms of name and description for the relevance filter: hash and count, by hash.
    pub terms: Vec<(u64, u32)>,
    /// Words of name, description and tags for the keyword scorer, the same way.
    pub words: Vec<(u64, u32)>,
    /// Those words as they are written, by hash.
    pub texts: Vec<String>,
}

/// A call as far as tool lists are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedCall {
    /// Index into [`Timeline::calls`].
    pub call: u32,
    /// Index into [`Inventory::tools`].
    pub tool: u32,
}

/// All tools, and their calls by request.
#[derive(Clone, PartialEq, Debug)]
pub struct Inventory {
    /// Where the definitions come from.
    pub source: DefinitionSource,
    /// The tools, in catalog order.
    pub tools: Vec<Tool>,
    /// How many of them stand in the catalog; the others were used without standing there.
    pub listed: u32,
    pub file_tokens: Vec<u64>,
    uses: Vec<ListedCall>,
    by_request: Vec<Range<u32>>,
}

impl Inventory {
    /// The tools of the catalog (none: what was used), with shipped words for those that it does not have. Words of the
    /// stop list do not count.
    pub fn new(timeline: &Timeline, known: &Tools) -> Self {
        let Tools { catalog, shipped, rules, stop, .. } = known;
        let mut definitions = catalog.as_ref().map(|(catalog, _)| newest(catalog)).unwrap_or_default();
        let listed = definitions.len() as u32;
        let known = definitions.iter().map(|known| known.name.clone()).collect::<BTreeSet<_>>();
        let used = timeline.calls.iter().map(|call| timeline.names.text(call.tool)).collect::<BTreeSet<_>>();
        definitions.extend(used.into_iter().filter(|name| !known.contains(*name)).map(|name| unlisted(name, shipped)));
        let tools: Vec<Tool> =
            definitions.into_iter().map(|definition| Tool::new(definition, &rules.sizes, stop)).collect();
        let files = catalog.as_ref().map_or(0, |(catalog, _)| catalog.files.len());
        let of_file =
            |file| tools.iter().filter(move |tool| tool.definition.file == file).filter_map(|tool| tool.tokens);
        let file_tokens = (0..files).map(|file| of_file(file).sum()).collect();
        let source = catalog.as_ref().map_or(DefinitionSource::Names, |(_, source)| *source);
        let (uses, by_request) = uses(timeline, &tools);
        Self { source, listed, file_tokens, tools, uses, by_request }
    }

    /// Calls of a request's answer, in order.
    pub fn uses(&self, request: u32) -> &[ListedCall] {
        let range = &self.by_request[request as usize];
        &self.uses[range.start as usize..range.end as usize]
    }

    /// Calls of several requests.
    pub fn uses_of(&self, requests: Range<u32>) -> impl Iterator<Item = ListedCall> + '_ {
        requests.flat_map(|request| self.uses(request).iter().copied())
    }

    /// Every tool.
    pub fn all(&self) -> ToolSet {
        (0..self.tools.len() as u32).collect()
    }

    /// Tools that a list of names means: names as they stand, or up to a trailing `*`; surrounding blanks do not count.
    pub fn matching(&self, patterns: &[String]) -> ToolSet {
        let is_meant = |name: &str| patterns.iter().any(|pattern| means(pattern.trim(), name));
        (0..).zip(&self.tools).filter(|(_, tool)| is_meant(&tool.definition.name)).map(|(index, _)| index).collect()
    }

    /// Says which names of the list `always` mean no tool: none of these, and none of the client's own.
    pub fn unknown(&self, always: &[String], tools: &Tools) -> Option<String> {
        let own = tools.shipped.definitions.iter();
        let names: Vec<&str> =
            self.tools.iter().map(|tool| &tool.definition).chain(own).map(|known| known.name.as_str()).collect();
        let is_unknown = |pattern: &&String| !names.iter().any(|name| means(pattern.trim(), name));
        let unknown: Vec<&str> = always.iter().filter(is_unknown).map(|pattern| pattern.trim()).collect();
        (!unknown.is_empty()).then(|| format!("no tool has these names of `always`: {}", unknown.join(", ")))
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.tools.iter().position(|tool| tool.definition.name == name).map(|index| index as u32)
    }

    /// A number for a set of definitions as it is sent: equal for equal bytes; 0 for all of them.
    pub fn edition(&self, head: &ToolSet) -> u64 {
        if head.len() == self.tools.len() {
            return 0;
        }
        let names = head.iter().map(|tool| self.tools[*tool as usize].definition.name.as_str());
        let names = names.collect::<Vec<_>>();
        xxhash_rust::xxh3::xxh3_64(names.join("\n").as_bytes()) | 1
    }

    /// Tokens by tool in a session with a static prefix of `prefix` tokens; those of unknown size count as nothing. With
    /// `by_prefix`, a file of definitions that is larger than that prefix was not sent and its sizes do not count (policies.md 5.2).
    pub fn sizes(&self, prefix: Option<u64>, by_prefix: bool) -> Vec<u64> {
        let was_sent = |tool: &Tool| {
            let total = self.file_tokens.get(tool.definition.file).copied().unwrap_or(0);
            !by_prefix || prefix.is_none_or(|prefix| prefix >= total)
        };
        self.tools.iter().map(|tool| tool.tokens.filter(|_| was_sent(tool)).unwrap_or(0)).collect()
    }

    /// Sizes that share evenly what a static prefix leaves beside the system prompt, among the tools that a project used.
    pub fn inferred_sizes(&self, used: &ToolSet, prefix: u64, system_tokens: u64) -> Vec<u64> {
        let total = prefix.saturating_sub(system_tokens);
        let count = (used.len() as u64).max(1);
        let mut sizes = vec![0; self.tools.len()];
        for (place, &tool) in (0..).zip(used) {
            sizes[tool as usize] = total / count + u64::from(place < total % count);
        }
        sizes
    }

    /// The tools that each project used.
    pub fn used_by_project(&self, timeline: &Timeline) -> BTreeMap<Id, ToolSet> {
        let mut used = BTreeMap::<Id, ToolSet>::new();
        for chain in &timeline.chains {
            let project = timeline.sessions[chain.session as usize].project;
            used.entry(project).or_default().extend(self.uses_of(chain.requests.clone()).map(|used| used.tool));
        }
        used
    }
}

impl Tool {
    fn new(definition: ToolDefinition, formula: &SizeFormula, stop: &StopWords) -> Self {
        let tokens = definition.is_real.then(|| formula.tokens(&definition.canonical()));
        let text = format!("{} {}", definition.name, definition.description);
        let terms = counted(words::terms(&text), stop).into_iter().map(|(hash, (count, _))| (hash, count)).collect();
        // Of an MCP tool the words are those of its server and of its own name (policies.md 6.2).
        let name = definition.name.strip_prefix(MCP_PREFIX).unwrap_or(&definition.name);
        let tagged = format!("{name} {} {}", definition.description, definition.tags.join(" "));
        let found = counted(words::words(&tagged), stop);
        let texts = found.values().map(|(_, text)| text.clone()).collect();
        let words = found.into_iter().map(|(hash, (count, _))| (hash, count)).collect();
        Self { definition, tokens, terms, words, texts }
    }
}

fn counted<'a>(pieces: impl Iterator<Item = words::TextWord<'a>>, stop: &StopWords) -> BTreeMap<u64, (u32, String)> {
    let mut counts = BTreeMap::<u64, (u32, String)>::new();
    for piece in pieces.filter(|piece| !stop.contains(piece.hash())) {
        counts.entry(piece.hash()).or_insert_with(|| (0, piece.text().into_owned())).0 += 1;
    }
    counts
}

/// One definition per name, the newest, where the name first stands.
fn newest(catalog: &Catalog) -> Vec<ToolDefinition> {
    let mut seen = BTreeSet::new();
    let first = catalog.definitions.iter().filter(|definition| seen.insert(&definition.name));
    first.filter_map(|definition| catalog.find(&definition.name)).cloned().collect()
}

/// A tool that was used and is in no catalog of the user; no file is its own.
fn unlisted(name: &str, shipped: &Catalog) -> ToolDefinition {
    let known = shipped.find(name).cloned().unwrap_or_default();
    ToolDefinition { name: name.to_owned(), is_real: false, file: usize::MAX, ..known }
}

fn uses(timeline: &Timeline, tools: &[Tool]) -> (Vec<ListedCall>, Vec<Range<u32>>) {
    let by_name = (0u32..).zip(tools).map(|(index, tool)| (tool.definition.name.as_str(), index));
    let by_name = by_name.collect::<BTreeMap<_, _>>();
    let mut uses = Vec::new();
    let by_request = timeline.requests.iter().map(|request| {
        let first = uses.len() as u32;
        for block in &timeline.blocks[request.outputs.start as usize..request.outputs.end as usize] {
            if block.kind == BlockKind::ToolUsage && block.call != NONE {
                let name = timeline.names.text(timeline.calls[block.call as usize].tool);
                uses.push(ListedCall { call: block.call, tool: by_name[name] });
            }
        }
        first..uses.len() as u32
    });
    let by_request = by_request.collect();
    (uses, by_request)
}

/// Words that say nothing about which tool is meant, as hashes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StopWords {
    pub version: u32,
    hashes: BTreeSet<u64>,
}

impl StopWords {
    /// Reads `rules/policies/stop_words.toml`; `place` is where it stands, for messages.
    pub fn parse(text: &str, place: &str) -> crate::base::error::Result<Self> {
        #[derive(serde::Deserialize)]
        struct Sheet {
            version: u32,
            words: Vec<String>,
        }
        let sheet: Sheet = fitting(text, place)?;
        Ok(Self { version: sheet.version, hashes: sheet.words.iter().map(|word| words::hash(word)).collect() })
    }

    /// Whether the word with this hash says nothing.
    pub fn contains(&self, hash: u64) -> bool {
        self.hashes.contains(&hash)
    }
}
