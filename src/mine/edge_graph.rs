//! Edges as a graph for Graphviz and for Mermaid: the thicker the oftener, labels with count and confidence.

use std::collections::BTreeMap;

use crate::frames::edge::Edge;

/// Thinnest and thickest line, in points.
const WIDTH: (f64, f64) = (1.0, 8.0);

/// Name of each node, by tool.
fn nodes(edges: &[&Edge]) -> BTreeMap<String, String> {
    let mut names: Vec<&String> = edges.iter().flat_map(|edge| [&edge.from, &edge.to]).collect();
    names.sort();
    names.dedup();
    (0..).zip(names).map(|(number, name): (u32, _)| (name.clone(), format!("n{number}"))).collect()
}

/// The width of a line: by the square root of the count, since counts span orders of magnitude.
fn width(edge: &Edge, most: u64) -> f64 {
    let share = (edge.sum.count as f64 / most.max(1) as f64).sqrt();
    WIDTH.0 + (WIDTH.1 - WIDTH.0) * share
}

fn label(edge: &Edge) -> String {
    let lag = edge
        .sum
        .lag
        .map_or_else(|| " any time".to_owned(), |lag| if lag == 1 { String::new() } else { format!(" lag {lag}") });
    format!("{} ({:.0}%){lag}", edge.sum.count, 100.0 * edge.confidence.value())
}

fn most(edges: &[&Edge]) -> u64 {
    edges.iter().map(|edge| edge.sum.count).max().unwrap_or_default()
}

/// In the DOT language. Edges that may be chance are dashed.
pub fn dot(edges: &[&Edge]) -> String {
    let nodes = nodes(edges);
    let mut out = "digraph tools {\n  node [shape=box];\n".to_owned();
    for (name, node) in &nodes {
        out += &format!("  {node} [label=\"{}\"];\n", dot_text(name));
    }
    for edge in edges {
        let (from, to) = (&nodes[&edge.from], &nodes[&edge.to]);
        let style = if edge.significant { "solid" } else { "dashed" };
        let (width, label) = (width(edge, most(edges)), label(edge));
        out += &format!("  {from} -> {to} [label=\"{label}\", penwidth={width:.2}, style={style}];\n");
    }
    out + "}\n"
}

/// A quoted string may hold anything but a bare quote; a backslash would begin an escape, an ampersand an entity.
fn dot_text(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// As a Mermaid flowchart. Edges that may be chance are dotted.
pub fn mermaid(edges: &[&Edge]) -> String {
    let nodes = nodes(edges);
    let mut out = "flowchart LR\n".to_owned();
    for (name, node) in &nodes {
        out += &format!("  {node}[\"{}\"]\n", mermaid_text(name));
    }
    for edge in edges {
        let (from, to) = (&nodes[&edge.from], &nodes[&edge.to]);
        let arrow = if edge.significant { "-->" } else { "-.->" };
        out += &format!("  {from} {arrow}|\"{}\"| {to}\n", label(edge));
    }
    for (number, edge) in edges.iter().enumerate() {
        out += &format!("  linkStyle {number} stroke-width:{:.2}px\n", width(edge, most(edges)));
    }
    out
}

/// Everything that could mean something to Mermaid, Markdown or HTML becomes a numbered entity.
fn mermaid_text(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | ' ') => out.push(c),
            c if c.is_control() => out.push(' '),
            c => out += &format!("#{};", c as u32),
        }
    }
    out
}
