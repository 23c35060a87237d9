//! What is tried (`rules/policies/claude_settings.toml`).

use serde::Deserialize;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::whatif::prompt_cache::params::Class;

/// The sheet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// How sessions are told apart.
    pub split: Split,
    /// Lifetimes.
    pub ttl: Ttl,
    /// Windows.
    pub window: Window,
    /// Sizes of results.
    pub results: Results,
}

/// How sessions are told apart.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Sessions that a value is chosen on, of a hundred.
    pub earlier_percent: u64,
    /// Days before the last request whose client versions count.
    pub version_days: i64,
}

/// Lifetimes that are tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ttl {
    /// Which.
    pub values: Vec<Class>,
}

/// Windows that are tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// In tokens.
    pub tokens: Vec<u64>,
}

/// Sizes of results that are tried.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Characters of shell output.
    pub bash_chars: Vec<u64>,
    /// Tokens of results of MCP tools.
    pub mcp_tokens: Vec<u64>,
    /// Tokens of readings.
    pub read_tokens: Vec<u64>,
    /// Characters that stay of what is too long.
    pub preview_chars: u32,
    /// Tokens of the words about where the rest is.
    pub preview_tokens: u32,
    /// Tools that run shell commands.
    pub bash_tools: Vec<String>,
    /// Tools that read files.
    pub read_tools: Vec<String>,
}

/// The data file.
const FILE: &str = "policies/claude_settings.toml";

impl Sheet {
    /// Reads the sheet.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn load(data: &Data) -> Result<Self> {
        let file = data.file(FILE)?;
        let sheet: Self = file.parsed()?;
        if sheet.split.earlier_percent == 0 || sheet.split.earlier_percent >= 100 {
            return Err(Error::failed(format!("{}: earlier_percent is no part of a hundred", file.place)));
        }
        Ok(sheet)
    }
}
