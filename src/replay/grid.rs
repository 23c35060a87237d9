//! `--sweep KEY=A,B,…`: keys, the values that they take, and all combinations.

use toml_edit::Value;

use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;

/// Cells of a grid that are run at most.
const CELLS_MAX: usize = 10_000;

/// A key that is swept, and the values that it takes.
pub type Axis = (KeyPath, Vec<Value>);

/// Reads `--sweep`.
///
/// # Errors
/// If one is not `KEY=a,b,c`, or a key comes twice.
pub fn axes(texts: &[String]) -> Result<Vec<Axis>> {
    let axes: Vec<Axis> = texts.iter().map(|text| axis(text)).collect::<Result<_>>()?;
    for (place, (key, _)) in axes.iter().enumerate() {
        if axes[..place].iter().any(|(other, _)| other == key) {
            return Err(
                Error::usage(format!("--sweep {key}: given twice")).hint("give all its values at once: KEY=A,B")
            );
        }
    }
    Ok(axes)
}

/// `KEY=a,b,c`: a key and the values that it takes.
fn axis(text: &str) -> Result<Axis> {
    let odd =
        || Error::usage(format!("--sweep {text}: not KEY=A,B,…")).hint("for example --sweep dedup.lru_size=3,5,10");
    let (key, values) = text.split_once('=').ok_or_else(odd)?;
    let key: KeyPath = key.trim().parse()?;
    // What is no TOML value is a bare word.
    let value = |part: &str| part.trim().parse().unwrap_or_else(|_| Value::from(part.trim()));
    let values: Vec<Value> = split_outside_brackets(values).into_iter().map(value).collect();
    if values.iter().any(|value| value.as_str() == Some("")) {
        return Err(odd());
    }
    Ok((key, values))
}

/// Splits at commas that stand in no list and no string.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start) = (0_usize, false, 0);
    let mut parts = Vec::new();
    for (place, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if depth == 0 && !quoted => {
                parts.push(&text[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// All combinations, the last axis changing fastest.
///
/// # Errors
/// If there are too many of them.
pub fn grid(axes: &[Axis]) -> Result<Vec<Vec<Value>>> {
    let count: usize = axes.iter().map(|(_, values)| values.len()).product();
    if count > CELLS_MAX {
        return Err(Error::usage(format!("the grid has {count} cells; {CELLS_MAX} are run at most")));
    }
    let mut cells = vec![Vec::new()];
    for (_, values) in axes {
        let with = |cell: &Vec<Value>, value: &Value| {
            let mut cell = cell.clone();
            cell.push(value.clone());
            cell
        };
        cells = cells.iter().flat_map(|cell| values.iter().map(|value| with(cell, value))).collect();
    }
    Ok(cells)
}
