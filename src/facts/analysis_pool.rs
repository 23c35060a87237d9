//! Hands out desks to the workers that read logs, and collects the facts: every body is studied once, by the worker that
//! meets it first.

use std::sync::Mutex;

use crate::base::id::{Id, IdSet};
use crate::facts::body_analyzer::BodyAnalyzer;
use crate::facts::body_facts::BodyFacts;
use crate::facts::encode::Params;
use crate::facts::{hints, quotable};
use crate::logs::body::BodyStudy;
use crate::logs::trace::Handle;

/// Locks over which the known bodies are spread.
const SHARDS: usize = 64;

/// The study of all bodies of a run.
pub struct AnalysisPool<'t> {
    vocabularies: u8,
    params: Params,
    known: Vec<Mutex<IdSet<Id>>>,
    idle: Mutex<Vec<BodyAnalyzer>>,
    found: Mutex<Vec<BodyFacts>>,
    taker: Option<FactsTaker<'t>>,
}

/// Takes facts while bodies are studied.
#[derive(Clone, Copy)]
pub struct FactsTaker<'t> {
    /// How many facts it takes at once.
    pub rows: usize,
    /// Called by whichever worker has enough.
    pub take: &'t (dyn Fn(&[BodyFacts]) + Sync),
}

impl<'t> AnalysisPool<'t> {
    /// A study that counts in the given vocabularies (one bit each) and passes over bodies that are known.
    pub fn new(vocabularies: u8, params: Params, known: impl Iterator<Item = Id>) -> Self {
        let mut shards: Vec<IdSet<Id>> = vec![IdSet::default(); SHARDS];
        for id in known {
            shards[shard(id)].insert(id);
        }
        let known = shards.into_iter().map(Mutex::new).collect();
        Self { vocabularies, params, known, idle: Mutex::default(), found: Mutex::default(), taker: None }
    }

    /// The same with somebody who takes what is found, if there is one.
    #[must_use]
    pub fn with_taker(self, taker: Option<FactsTaker<'t>>) -> Self {
        Self { taker, ..self }
    }

    /// An analyst with an analyzer of its own.
    pub fn begin(&self) -> Box<dyn BodyStudy + '_> {
        let analyzer = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let analyzer = analyzer.unwrap_or_else(|| BodyAnalyzer::new(self.vocabularies, self.params));
        Box::new(Analyst { pool: self, analyzer: Some(analyzer), found: Vec::new() })
    }

    /// The facts found that nobody took, by name of the body.
    pub fn finish(self) -> Vec<BodyFacts> {
        let mut found = self.found.into_inner().unwrap_or_default();
        found.sort_unstable_by_key(|facts| facts.body);
        found
    }

    /// Takes what an analyst found, and hands on as much as is enough.
    fn add(&self, facts: &mut Vec<BodyFacts>) {
        let Ok(mut found) = self.found.lock() else { return };
        found.append(facts);
        let Some(FactsTaker { rows, take }) = self.taker.filter(|taker| found.len() >= taker.rows) else { return };
        let whole = found.len() - found.len() % rows;
        let rest = found.split_off(whole);
        let enough = std::mem::replace(&mut *found, rest);
        // The others go on meanwhile.
        drop(found);
        enough.chunks(rows).for_each(take);
    }

    fn is_new(&self, id: Id) -> bool {
        self.known[shard(id)].lock().is_ok_and(|mut known| known.insert(id))
    }
}

fn shard(id: Id) -> usize {
    id.0[0] as usize % SHARDS
}

struct Analyst<'s> {
    pool: &'s AnalysisPool<'s>,
    /// Given back at the end.
    analyzer: Option<BodyAnalyzer>,
    found: Vec<BodyFacts>,
}

impl BodyStudy for Analyst<'_> {
    fn body(&mut self, id: Id, text: &[u8]) {
        if let Some(analyzer) = self.analyzer.as_mut().filter(|_| self.pool.is_new(id)) {
            self.found.push(analyzer.facts(id, text));
        }
    }

    fn part(&mut self, text: &[u8], is_first: bool) -> usize {
        self.analyzer.as_mut().map_or(text.len(), |analyzer| analyzer.part(text, is_first))
    }

    fn rest(&mut self, id: Id, text: &[u8]) {
        if let Some(analyzer) = self.analyzer.as_mut() {
            let facts = analyzer.rest(id, text);
            self.found.extend(self.pool.is_new(id).then_some(facts));
        }
    }

    fn quote(&mut self, message: Id, call: Id, text: &str) {
        let body = BodyFacts::quoted_by(message, call);
        if self.pool.is_new(body) {
            let (counted, texts) = (self.pool.vocabularies, quotable::quoted_texts(text));
            self.found.push(BodyFacts { body, counted, texts, ..BodyFacts::default() });
        }
    }

    fn call(&mut self, id: &[u8]) -> Handle {
        let short = Id::pseudonym(id).0;
        let short = u32::from_be_bytes([short[0], short[1], short[2], short[3]]);
        let text = String::from_utf8_lossy(id);
        let name = hints::handle(&text);
        let size = self.analyzer.as_mut().map(|analyzer| analyzer.measure(&format!(" {name}"))).unwrap_or_default();
        let narrow = |tokens| u8::try_from(tokens).unwrap_or(u8::MAX);
        Handle { short, bytes: name.len() as u8, tokens: size.tokens.map(narrow) }
    }
}

impl Drop for Analyst<'_> {
    fn drop(&mut self) {
        if let (Some(analyzer), Ok(mut idle)) = (self.analyzer.take(), self.pool.idle.lock()) {
            idle.push(analyzer);
        }
        self.pool.add(&mut self.found);
    }
}
