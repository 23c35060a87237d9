//! Edges as a graph: for Graphviz and for Mermaid (the thicker the oftener, labels with count and confidence), and in two layers,
//! as on the page of `devboy mine edges` for a browser.

use std::collections::BTreeMap;

use crate::base::stats::Share;
use crate::frames::edge::Edge;
use crate::mine::tables;
use crate::report::html::chart::FlowLink;
use crate::report::html::{Html, chart};
use crate::report::numbers::{counted, thousands};

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

/// Most edges of one drawing: more lines cannot be told apart.
const EDGES_DRAWN: usize = 40;

/// Draws follow-ups: the earlier tools on the left, the later ones on the right.
pub fn figure(html: &mut Html, label: &str, follow_ups: &[&Edge], caption: &str) {
    let distinct = |name: fn(&Edge) -> &String| {
        let mut names: Vec<String> = Vec::new();
        for name in follow_ups.iter().map(|edge| name(edge)) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    };
    let (left, right) = (distinct(|one| &one.from), distinct(|one| &one.to));
    let link = |one: &&Edge| -> Option<FlowLink> {
        let place = |names: &[String], name: &String| names.iter().position(|known| known == name);
        let (count, percent) = (one.sum.count, 100.0 * one.confidence.value());
        let title = format!("{} → {}: {} times ({percent:.0} %)", one.from, one.to, thousands(count));
        Some((place(&left, &one.from)?, place(&right, &one.to)?, count as f64, title))
    };
    let links: Vec<FlowLink> = follow_ups.iter().filter_map(link).collect();
    html.element("figure", &[], |html| {
        chart::layers(html, label, &left, &right, &links);
        html.leaf("figcaption", &[], caption);
    });
}

/// The page: a drawing for each lag, and under it its edges as a table. `found` is how many edges are more than chance, shown or
/// not, and how many there are; `about` says how they were counted.
pub fn page(edges: &[Edge], found: (u64, u64), about: &[String]) -> String {
    let mut significant: Vec<&Edge> = edges.iter().filter(|edge| edge.significant).collect();
    significant.sort_by(|a, b| b.sum.count.cmp(&a.sum.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    let mut html = Html::new();
    html.leaf("h1", &[], "What follows what");
    let (few, all) = (thousands(found.0), counted(found.1, "edge"));
    let shown = match significant.len() as u64 {
        shown if shown < found.0 => format!(" {} of them are shown.", thousands(shown)),
        _ => String::new(),
    };
    html.leaf("p", &[], &format!("{few} of {all} between tools are more than chance.{shown}"));
    let mut lags: Vec<Option<u32>> = significant.iter().map(|edge| edge.sum.lag).collect();
    // What follows at any time has no lag and comes last.
    lags.sort_by_key(|lag| lag.unwrap_or(u32::MAX));
    lags.dedup();
    for lag in lags {
        let here: Vec<&Edge> = significant.iter().copied().filter(|edge| edge.sum.lag == lag).collect();
        one_lag(&mut html, lag, &here);
    }
    html.leaf("h2", &[], "How the figures come about");
    about.iter().for_each(|line| _ = html.leaf("p", &[("class", "soft")], line));
    html.page("devboy mine edges")
}

fn one_lag(html: &mut Html, lag: Option<u32>, edges: &[&Edge]) {
    let title = match lag {
        None => "At any time later".to_owned(),
        Some(1) => "The next step".to_owned(),
        Some(lag) => format!("{lag} steps later"),
    };
    let drawn = &edges[..EDGES_DRAWN.min(edges.len())];
    html.leaf("h2", &[], &title);
    let which = match edges.len() - drawn.len() {
        0 => "all that are more than chance".to_owned(),
        _ => format!("the {EDGES_DRAWN} most frequent of {} that are more than chance", thousands(edges.len() as u64)),
    };
    let caption = format!("Left: a tool. Right: the tools that follow it; {which}. The thicker the more often.");
    figure(html, &format!("which tool follows which: {title}"), drawn, &caption);
    let row = |edge: &&Edge| {
        let Share { k, n, .. } = edge.confidence;
        vec![
            edge.from.clone(),
            edge.to.clone(),
            thousands(edge.sum.count),
            thousands(edge.sum.sessions),
            format!("{} of {}", thousands(k), thousands(n)),
            tables::interval(&edge.confidence),
            edge.lift.map(|lift| format!("{lift:.2}")).unwrap_or_default(),
            edge.q.map(|q| if q < 0.001 { "< 0.001".to_owned() } else { format!("{q:.3}") }).unwrap_or_default(),
        ]
    };
    let columns = ["tool", "next", "#times", "#sessions", "#steps", "#% of them (95 %)", "#lift", "#q"];
    html.table(&columns, &drawn.iter().map(row).collect::<Vec<_>>());
}
