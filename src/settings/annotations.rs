//! Shipped value models of tools: Claude Code's own by name, MCP tools by provider and verb.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::base::data::{Data, PUBLISHED_ANNOTATIONS};
use crate::base::error::Result;
use crate::settings::tool_model::ToolModel;

/// All shipped annotations.
#[derive(Debug, Default)]
pub struct Annotations {
    files: Vec<(String, AnnotationFile)>,
}

#[derive(Debug, Deserialize)]
struct AnnotationFile {
    provider: Option<String>,
    #[serde(default)]
    server_names: Vec<String>,
    rate_limit_host: Option<String>,
    tools: BTreeMap<String, ToolModel>,
}

/// An annotation and the file it stands in.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// The value model; names of other tools in it are live names.
    pub model: ToolModel,
    /// "rules/annotations/gitlab.toml".
    pub origin: String,
}

impl Annotations {
    /// Reads all annotation files.
    pub fn load(data: &Data) -> Result<Self> {
        Self::of_files(data, Data::names_in("annotations"))
    }

    /// The annotations as they were published, for comparison: those of Claude Code's own tools, since the published host
    /// never took in a provider's.
    pub fn published() -> Result<Self> {
        Self::of_files(&Data::default(), std::iter::once(PUBLISHED_ANNOTATIONS))
    }

    fn of_files(data: &Data, names: impl Iterator<Item = &'static str>) -> Result<Self> {
        let parse = |name| {
            let file = data.file(name)?;
            let annotations = file.parsed()?;
            Ok((file.place, annotations))
        };
        names.map(parse).collect::<Result<_>>().map(|files| Self { files })
    }

    /// The annotation of a live tool name, if one is shipped.
    pub fn of(&self, tool: &str) -> Option<Annotation> {
        match split_mcp(tool) {
            None => self.files.iter().filter(|(_, file)| file.provider.is_none()).find_map(|(origin, file)| {
                Some(Annotation { model: file.tools.get(tool)?.clone(), origin: origin.clone() })
            }),
            Some((server, verb)) => self.files.iter().find_map(|(origin, file)| {
                file.server_names.iter().any(|name| name.eq_ignore_ascii_case(server)).then_some(())?;
                let prefix = format!("mcp__{server}__");
                let model = file.live(file.tools.get(verb)?, &prefix);
                Some(Annotation { model, origin: origin.clone() })
            }),
        }
    }
}

impl AnnotationFile {
    /// A provider's model with the server's prefix in front of every verb.
    fn live(&self, model: &ToolModel, prefix: &str) -> ToolModel {
        let mut model = model.clone();
        for link in &mut model.follow_up {
            link.tool.insert_str(0, prefix);
        }
        for tool in &mut model.invalidates {
            tool.insert_str(0, prefix);
        }
        if model.rate_limit_host.is_none() {
            model.rate_limit_host.clone_from(&self.rate_limit_host);
        }
        model
    }
}

/// Server and verb of `mcp__<server>__<verb>`: split at the first `__` after the prefix.
pub fn split_mcp(tool: &str) -> Option<(&str, &str)> {
    let (server, verb) = tool.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty() && !verb.is_empty()).then_some((server, verb))
}

/// Whether a name can stand in a configuration: what a tool is called, not what a model garbled.
pub fn is_plain_name(tool: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    !tool.is_empty() && tool.len() <= 128 && tool.chars().all(plain)
}
