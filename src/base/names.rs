//! Interned names: tools, models, versions, record types. Rows carry a number, reports look the text up. By this door names
//! come in from logs and telemetry: what a terminal would obey or an eye would miss is written out here ([`visible`]).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::base::visible::visible;

/// Index into a [`Names`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Sym(pub u32);

/// A table of distinct names. Symbol 0 is always the empty name.
#[derive(Debug, Clone)]
pub struct Names {
    texts: Vec<String>,
    index: HashMap<String, Sym, BuildHasherDefault<TextHasher>>,
}

/// Texts, each once.
pub type TextSet<'t> = HashSet<&'t str, BuildHasherDefault<TextHasher>>;

/// Hashes texts: several are looked up for every record, and lines of bodies by the million.
#[derive(Default)]
pub struct TextHasher(u64);

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// The end of a text, which tells nothing where it is all that is hashed.
    fn write_u8(&mut self, _byte: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Default for Names {
    fn default() -> Self {
        let (empty, text) = (Sym(0), String::new());
        Self { texts: vec![text.clone()], index: [(text, empty)].into_iter().collect() }
    }
}

impl Names {
    /// The symbol of `text`, made on first sight.
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.index.get(text) {
            return sym;
        }
        let text = visible(text);
        match self.index.get(&*text) {
            Some(&sym) => sym,
            None => self.add(text.into_owned()),
        }
    }

    /// A symbol of its own for a visible text; found by it unless another one has the same.
    fn add(&mut self, text: String) -> Sym {
        let sym = Sym(u32::try_from(self.texts.len()).expect("fewer than 2^32 distinct names"));
        self.index.entry(text.clone()).or_insert(sym);
        self.texts.push(text);
        sym
    }

    /// The symbol of `text`, if it has one.
    pub fn find(&self, text: &str) -> Option<Sym> {
        self.index.get(&*visible(text)).copied()
    }

    /// The text of a symbol of this table.
    pub fn text(&self, sym: Sym) -> &str {
        &self.texts[sym.0 as usize]
    }

    /// All texts in the order of their symbols.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// A table with the given names, symbol by symbol; the first must be the empty one.
    pub fn from_texts(texts: Vec<String>) -> Self {
        let mut names = Self::default();
        let is_there = usize::from(texts.first().is_some_and(String::is_empty));
        for text in texts.into_iter().skip(is_there) {
            names.add(visible(&text).into_owned());
        }
        names
    }

    /// Takes over another table's names; returns where each of its symbols went.
    pub fn absorb(&mut self, other: &Self) -> Vec<Sym> {
        other.texts.iter().map(|text| self.intern(text)).collect()
    }
}

/// The MCP server of a tool, as its name has it: what stands between `mcp__` and the first `__` behind it, all of the rest
/// where there is none. None of a tool of the client's own.
pub fn mcp_server(tool: &str) -> Option<&str> {
    let rest = tool.strip_prefix("mcp__")?;
    Some(rest.split_once("__").map_or(rest, |(server, _)| server))
}

/// Whether a name of a list means a tool; `*` at its end stands for anything.
pub fn means(pattern: &str, tool: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == tool, |start| tool.starts_with(start))
}

/// Whether a tool is listed: by its name, or one of an MCP server by what follows the server's.
pub fn is_listed(tool: &str, listed: &[String]) -> bool {
    let bare = tool.strip_prefix("mcp__").and_then(|rest| rest.rsplit_once("__")).map(|(_, name)| name);
    listed.iter().any(|name| name == tool || Some(name.as_str()) == bare)
}

/// Whether a tool is one of an MCP server, whose name (as it stands in the names of its tools) may hold `__` itself. Of two
/// servers of which one is called like the beginning of the other, both have it.
pub fn is_of_mcp_server(tool: &str, server: &str) -> bool {
    let rest = tool.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(server));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
}

/// The name of an MCP server as it stands in the names of its tools, where only letters, digits, `_` and `-` can.
pub fn mcp_server_in_tools(server: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    server.chars().map(plain).collect()
}
