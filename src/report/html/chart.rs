//! Plots: stacked columns, a line over time, bars, a heat map, a graph in two layers. Each takes figures and gives a
//! figure. A drawing is stretched to its place, so it holds shapes only; words stand beside it as text.

use crate::report::html::Html;

/// Columns of stacked parts.
pub struct StackedColumns<'a> {
    /// Name of each column.
    pub names: &'a [String],
    pub parts: &'a [String],
    /// By column and part.
    pub values: &'a [Vec<f64>],
    /// How a value is written.
    pub write: fn(f64) -> String,
}

/// Draws columns; the axis is labelled with the largest sum.
pub fn columns(html: &mut Html, label: &str, chart: &StackedColumns<'_>) {
    let sum = |values: &Vec<f64>| values.iter().sum::<f64>();
    let most = chart.values.iter().map(sum).fold(0.0, f64::max);
    key(html, chart.parts);
    html.element("div", &[("class", "plot")], |html| {
        drawing(html, label, |html| {
            let step = SIZE.0 / chart.names.len().max(1) as f64;
            for (at, (name, values)) in chart.names.iter().zip(chart.values).enumerate() {
                let mut top = SIZE.1;
                for (part, &value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                    let height = share(value, most) * SIZE.1;
                    top -= height;
                    let place = (step * (at as f64 + 0.1), top, step * 0.8, height);
                    let title = format!("{name}, {}: {}", chart.parts[part], (chart.write)(value));
                    rectangle(html, place, &color(part), &title);
                }
            }
        });
        html.leaf("span", &[("class", "top")], &(chart.write)(most));
    });
    ends(html, chart.names.first(), chart.names.last());
}

/// One line over time.
pub struct PlotLine {
    pub name: String,
    /// Points: place on the axis, value.
    pub points: Vec<(f64, f64)>,
    /// Marks on it: place, value, colour, title.
    pub marks: Vec<(f64, f64, &'static str, String)>,
}

/// Draws a line, with a band around zero if there is one.
pub fn curve(html: &mut Html, label: &str, curve: &PlotLine, band: Option<f64>, write: fn(f64) -> String) {
    let (left, right) = range(curve.points.iter().map(|point| point.0));
    let (mut low, mut high) = range(curve.points.iter().map(|point| point.1).chain([0.0]));
    if let Some(band) = band {
        (low, high) = (low.min(-band), high.max(band));
    }
    let x = |value: f64| share(value - left, right - left) * SIZE.0;
    let y = |value: f64| SIZE.1 - share(value - low, high - low) * SIZE.1;
    html.element("div", &[("class", "plot")], |html| {
        drawing(html, label, |html| {
            if let Some(band) = band {
                let title = format!("the simulation's own error: ± {}", write(band).trim_start_matches('+'));
                rectangle(html, (0.0, y(band), SIZE.0, y(-band) - y(band)), "var(--line)", &title);
            }
            let points: Vec<(f64, f64)> = curve.points.iter().map(|point| (x(point.0), y(point.1))).collect();
            line(html, &points, &curve.name);
            for (at, value, fill, title) in &curve.marks {
                dot(html, (x(*at), y(*value)), fill, title);
            }
        });
        html.leaf("span", &[("class", "top")], &write(high));
    });
}

/// Smallest and largest; the whole is one wide where there is nothing.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    if low < high { (low, high) } else { (0.0, high.max(1.0)) }
}

/// Part of a whole, from nothing to all of it.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// Words under both ends of an axis.
pub fn ends(html: &mut Html, first: Option<&String>, last: Option<&String>) {
    html.element("div", &[("class", "ends")], |html| {
        for end in [first, last].into_iter().flatten() {
            html.leaf("span", &[], end);
        }
    });
}

/// The colours of series.
pub fn key(html: &mut Html, names: &[String]) {
    html.element("div", &[("class", "key")], |html| {
        for (index, name) in names.iter().enumerate() {
            html.element("span", &[], |html| {
                html.leaf("i", &[("style", &format!("background:{}", color(index)))], "");
                html.text(name);
            });
        }
    });
}

/// Bars, each of parts, with what is written behind it.
pub fn bars(html: &mut Html, parts: &[String], rows: &[(String, Vec<f64>, String)], write: fn(f64) -> String) {
    let most = rows.iter().map(|(_, values, _)| values.iter().sum::<f64>()).fold(0.0, f64::max);
    if parts.len() > 1 {
        key(html, parts);
    }
    html.element("div", &[("class", "bars")], |html| {
        for (name, values, written) in rows {
            html.element("div", &[("class", "row")], |html| {
                html.leaf("span", &[("class", "name")], name);
                html.element("span", &[("class", "bar")], |html| {
                    for (part, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                        let style = format!("width:{:.2}%;background:{}", 100.0 * share(*value, most), color(part));
                        let of = parts.get(part).map(|part| format!("{part}: ")).unwrap_or_default();
                        let title = format!("{name}, {of}{}", write(*value));
                        html.leaf("span", &[("style", &style), ("title", &title)], "");
                    }
                });
                html.leaf("span", &[("class", "v")], written);
            });
        }
    });
}

/// A table whose cells are the darker the more they hold.
pub fn heat(html: &mut Html, columns: &[String], rows: &[(String, Vec<f64>)], write: fn(f64) -> String) {
    let most = rows.iter().flat_map(|(_, values)| values).fold(0.0_f64, |most, value| most.max(*value));
    html.element("div", &[("class", "scroll")], |html| {
        html.element("table", &[], |html| {
            html.element("thead", &[], |html| {
                html.element("tr", &[], |html| {
                    html.leaf("th", &[], "");
                    columns.iter().for_each(|name| _ = html.leaf("th", &[], name));
                });
            });
            html.element("tbody", &[], |html| {
                for (name, values) in rows {
                    html.element("tr", &[], |html| {
                        html.leaf("td", &[], name);
                        for (column, value) in columns.iter().zip(values) {
                            let part = 70.0 * share(*value, most).sqrt();
                            let style = format!("background:color-mix(in srgb,var(--c2) {part:.0}%,transparent)");
                            let title = format!("{name}, {column}: {}", write(*value));
                            let cell = [("class", "heat"), ("style", style.as_str()), ("title", title.as_str())];
                            html.leaf("td", &cell, &write(*value));
                        }
                    });
                }
            });
        });
    });
}

/// What leads from the left to the right: indices, weight, title.
pub type FlowLink = (usize, usize, f64, String);

/// A graph in two layers: names on both sides, the thicker the link the more it weighs.
pub fn layers(html: &mut Html, label: &str, left: &[String], right: &[String], links: &[FlowLink]) {
    let rows = left.len().max(right.len()).max(1);
    let y = |row: usize| SIZE.1 * (row as f64 + 0.5) / rows as f64;
    let most = links.iter().map(|link| link.2).fold(0.0, f64::max);
    let side = |html: &mut Html, names: &[String]| {
        html.element("div", &[("class", "side")], |html| {
            names.iter().for_each(|name| _ = html.leaf("div", &[("title", name)], name));
        });
    };
    html.element("div", &[("class", "layers")], |html| {
        side(html, left);
        let height = format!("height:{:.2}rem", rows as f64 * 1.75);
        html.element("div", &[("style", &height)], |html| {
            drawing(html, label, |html| {
                for (from, to, weight, title) in links {
                    let width = 1.0 + 9.0 * share(*weight, most).sqrt();
                    link(html, ((0.0, y(*from)), (SIZE.0, y(*to))), &color(*from), width, title);
                }
            });
        });
        side(html, right);
    });
}

/// Width and height of every drawing, in units of its own.
const SIZE: (f64, f64) = (1000.0, 300.0);

/// Colours that tell series apart.
const COLORS: usize = 8;

/// The colour of a series.
fn color(index: usize) -> String {
    format!("var(--c{})", index % COLORS)
}

fn drawing(html: &mut Html, label: &str, inner: impl FnOnce(&mut Html)) {
    let view = format!("0 0 {} {}", SIZE.0, SIZE.1);
    let attributes =
        [("viewBox", view.as_str()), ("preserveAspectRatio", "none"), ("role", "img"), ("aria-label", label)];
    html.element("svg", &attributes, inner);
}

fn rectangle(html: &mut Html, (x, y, width, height): (f64, f64, f64, f64), fill: &str, title: &str) {
    let [x, y, width, height] = [x, y, width, height].map(number);
    let attributes =
        [("x", x.as_str()), ("y", y.as_str()), ("width", width.as_str()), ("height", height.as_str()), ("fill", fill)];
    html.element("rect", &attributes, |html| _ = html.leaf("title", &[], title));
}

fn line(html: &mut Html, points: &[(f64, f64)], title: &str) {
    let (d, stroke) = (path(points), color(0));
    let attributes = [
        ("d", d.as_str()),
        ("fill", "none"),
        ("stroke", stroke.as_str()),
        ("stroke-width", "2"),
        ("vector-effect", "non-scaling-stroke"),
        ("stroke-linejoin", "round"),
    ];
    html.element("path", &attributes, |html| _ = html.leaf("title", &[], title));
}

/// A round mark: the end of a line without length, so that stretching does not touch it.
fn dot(html: &mut Html, (x, y): (f64, f64), stroke: &str, title: &str) {
    let at = format!("M{} {}h0", number(x), number(y));
    let attributes = [
        ("d", at.as_str()),
        ("stroke", stroke),
        ("stroke-width", "9"),
        ("stroke-linecap", "round"),
        ("vector-effect", "non-scaling-stroke"),
    ];
    html.element("path", &attributes, |html| _ = html.leaf("title", &[], title));
}

/// A curve from one point to another, level at both ends.
fn link(html: &mut Html, (from, to): ((f64, f64), (f64, f64)), stroke: &str, width: f64, title: &str) {
    let middle = number(f64::midpoint(from.0, to.0));
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
    let d = format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}");
    let width = number(width);
    let attributes = [
        ("d", d.as_str()),
        ("fill", "none"),
        ("stroke", stroke),
        ("stroke-width", width.as_str()),
        ("stroke-opacity", "0.6"),
        ("vector-effect", "non-scaling-stroke"),
    ];
    html.element("path", &attributes, |html| _ = html.leaf("title", &[], title));
}

fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        out.push(if index == 0 { 'M' } else { 'L' });
        out += &format!("{} {}", number(*x), number(*y));
    }
    out
}

/// A coordinate with one decimal; nothing that is no number.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
