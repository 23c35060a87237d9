//! Marks of drawings. A drawing is stretched to its place, so it holds shapes only; words stand beside it as text.

use crate::report::html::Html;

/// Width and height of every drawing, in units of its own.
pub const SIZE: (f64, f64) = (1000.0, 300.0);

/// Colours that tell series apart.
pub const COLORS: usize = 8;

/// The colour of a series.
pub fn color(index: usize) -> String {
    format!("var(--c{})", index % COLORS)
}

/// A drawing with what `inner` draws.
pub fn drawing(html: &mut Html, label: &str, inner: impl FnOnce(&mut Html)) {
    let view = format!("0 0 {} {}", SIZE.0, SIZE.1);
    let attributes =
        [("viewBox", view.as_str()), ("preserveAspectRatio", "none"), ("role", "img"), ("aria-label", label)];
    html.element("svg", &attributes, inner);
}

/// A filled rectangle with its title.
pub fn rectangle(html: &mut Html, (x, y, width, height): (f64, f64, f64, f64), fill: &str, title: &str) {
    let [x, y, width, height] = [x, y, width, height].map(number);
    let attributes =
        [("x", x.as_str()), ("y", y.as_str()), ("width", width.as_str()), ("height", height.as_str()), ("fill", fill)];
    html.element("rect", &attributes, |html| _ = html.leaf("title", &[], title));
}

/// A line through points.
pub fn line(html: &mut Html, points: &[(f64, f64)], stroke: &str, width: f64, title: &str) {
    let width = number(width);
    let attributes = [
        ("d", path(points)),
        ("fill", "none".to_owned()),
        ("stroke", stroke.to_owned()),
        ("stroke-width", width),
        ("vector-effect", "non-scaling-stroke".to_owned()),
        ("stroke-linejoin", "round".to_owned()),
    ];
    let attributes: Vec<(&str, &str)> = attributes.iter().map(|(name, value)| (*name, value.as_str())).collect();
    html.element("path", &attributes, |html| _ = html.leaf("title", &[], title));
}

/// A round mark: the end of a line without length, so that stretching does not touch it.
pub fn dot(html: &mut Html, (x, y): (f64, f64), stroke: &str, width: f64, title: &str) {
    let at = format!("M{} {}h0", number(x), number(y));
    let width = number(width);
    let attributes = [
        ("d", at.as_str()),
        ("stroke", stroke),
        ("stroke-width", width.as_str()),
        ("stroke-linecap", "round"),
        ("vector-effect", "non-scaling-stroke"),
    ];
    html.element("path", &attributes, |html| _ = html.leaf("title", &[], title));
}

/// A curve from one point to another, level at both ends.
pub fn curve(html: &mut Html, (from, to): ((f64, f64), (f64, f64)), stroke: &str, width: f64, title: &str) {
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
