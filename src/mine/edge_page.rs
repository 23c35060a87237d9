//! Follow-ups between tools as a graph in two layers, and `devboy mine edges` as a page for a browser.

use crate::base::stats::Share;
use crate::frames::edge::Edge;
use crate::mine::tables;
use crate::report::html::chart::FlowLink;
use crate::report::html::{Html, chart};
use crate::report::numbers::{counted, thousands};

/// A follow-up between tools that is more than chance.
pub struct PageEdge {
    /// The earlier tool.
    pub from: String,
    /// The later tool.
    pub to: String,
    /// How often.
    pub count: u64,
    /// In how many of a hundred cases.
    pub percent: f64,
}

impl PageEdge {
    /// Of an edge.
    fn of(edge: &Edge) -> Self {
        let Edge { from, to, .. } = edge;
        Self { from: from.clone(), to: to.clone(), count: edge.sum.count, percent: 100.0 * edge.confidence.value() }
    }
}

/// Most edges of one drawing: more lines cannot be told apart.
const EDGES_DRAWN: usize = 40;

/// Draws follow-ups: the earlier tools on the left, the later ones on the right.
pub fn figure(html: &mut Html, label: &str, follow_ups: &[PageEdge], caption: &str) {
    let distinct = |name: fn(&PageEdge) -> &String| {
        let mut names: Vec<String> = Vec::new();
        for name in follow_ups.iter().map(name) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    };
    let (left, right) = (distinct(|one| &one.from), distinct(|one| &one.to));
    let link = |one: &PageEdge| -> Option<FlowLink> {
        let place = |names: &[String], name: &String| names.iter().position(|known| known == name);
        let title = format!("{} → {}: {} times ({:.0} %)", one.from, one.to, thousands(one.count), one.percent);
        Some((place(&left, &one.from)?, place(&right, &one.to)?, one.count as f64, title))
    };
    let links: Vec<FlowLink> = follow_ups.iter().filter_map(link).collect();
    html.element("figure", &[], |html| {
        chart::layers(html, label, &left, &right, &links);
        html.leaf("figcaption", &[], caption);
    });
}

/// The page: a drawing for each lag, and under it its edges as a table. `about` says how they were counted.
pub fn page(edges: &[Edge], about: &[String]) -> String {
    let mut significant: Vec<&Edge> = edges.iter().filter(|edge| edge.significant).collect();
    significant.sort_by(|a, b| b.sum.count.cmp(&a.sum.count).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    let mut html = Html::new();
    html.leaf("h1", &[], "What follows what");
    let (few, all) = (thousands(significant.len() as u64), counted(edges.len() as u64, "edge"));
    html.leaf("p", &[], &format!("{few} of {all} between tools are more than chance."));
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
    figure(
        html,
        &format!("which tool follows which: {title}"),
        &drawn.iter().map(|edge| PageEdge::of(edge)).collect::<Vec<_>>(),
        &caption,
    );
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
