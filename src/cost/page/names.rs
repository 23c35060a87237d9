//! How projects are called on the page: as people write them, or by letters on a page that is shared.

use std::collections::BTreeMap;

/// Names by pseudonym.
#[derive(Clone, Default, Debug)]
pub struct Names(BTreeMap<String, String>);

/// Hex digits of a project whose name is not known.
const DIGITS: usize = 8;

impl Names {
    /// Working directories, by pseudonym: each is called by its last part, with as many parts before it as tell it from the
    /// others.
    pub fn of_directories(directories: &BTreeMap<String, String>) -> Self {
        let parts = |path: &str| -> Vec<String> {
            path.split(['/', '\\']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let all: BTreeMap<&String, Vec<String>> = directories.iter().map(|(id, path)| (id, parts(path))).collect();
        let tail = |parts: &[String], length: usize| parts[parts.len().saturating_sub(length)..].join("/");
        let is_unique = |id: &String, name: &str, length: usize| {
            all.iter().all(|(other, parts)| *other == id || tail(parts, length) != name || *parts == all[id])
        };
        let name = |(id, parts): (&&String, &Vec<String>)| {
            let length = (1..=parts.len()).find(|&length| is_unique(id, &tail(parts, length), length));
            let length = length.unwrap_or(parts.len());
            let start = if length < parts.len() { "…/" } else { "/" };
            ((*id).clone(), format!("{start}{}", tail(parts, length)))
        };
        Self(all.iter().map(name).collect())
    }

    /// Letters in this order: `project A`, …, `project Z`, `project A1`.
    pub fn letters<'p>(projects: impl IntoIterator<Item = &'p String>) -> Self {
        let letter = |(index, id): (usize, &String)| {
            let letter = char::from(b'A' + (index % 26) as u8);
            let round = if index < 26 { String::new() } else { (index / 26).to_string() };
            (id.clone(), format!("project {letter}{round}"))
        };
        Self(projects.into_iter().enumerate().map(letter).collect())
    }

    /// The name of a project.
    pub fn project(&self, id: &str) -> String {
        self.0.get(id).cloned().unwrap_or_else(|| format!("project {}", id.get(..DIGITS).unwrap_or(id)))
    }
}
