//! A page of HTML in one file: nothing in it runs, nothing is fetched, and whatever comes from outside is text.

pub mod chart;

use crate::base::visible::visible;

/// How the page looks: on paper and screen, in light and dark.
const STYLE: &str = include_str!("page.css");

/// A piece of HTML. Text goes in by [`Html::text`] only, which escapes it.
#[derive(Clone, Default, Debug)]
pub struct Html(String);

/// Attributes of an element: names are ours, values are escaped.
pub type Attributes<'a> = &'a [(&'a str, &'a str)];

impl Html {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape_into(&mut self.0, text);
        self
    }

    /// Adds an element with whatever `inner` puts into it.
    pub fn element(&mut self, name: &str, attributes: Attributes<'_>, inner: impl FnOnce(&mut Self)) -> &mut Self {
        self.open(name, attributes);
        inner(self);
        self.0 += "</";
        self.0 += name;
        self.0 += ">";
        self
    }

    /// Adds an element that holds text.
    pub fn leaf(&mut self, name: &str, attributes: Attributes<'_>, text: &str) -> &mut Self {
        self.element(name, attributes, |inner| _ = inner.text(text))
    }

    /// Adds the opening tag alone: of an element that has no end.
    pub fn open(&mut self, name: &str, attributes: Attributes<'_>) -> &mut Self {
        self.0 += "<";
        self.0 += name;
        for (name, value) in attributes {
            self.0 += " ";
            self.0 += name;
            self.0 += "=\"";
            escape_into(&mut self.0, value);
            self.0 += "\"";
        }
        self.0 += ">";
        self
    }

    /// Adds another piece.
    pub fn piece(&mut self, piece: &Self) -> &mut Self {
        self.0 += &piece.0;
        self
    }

    /// A table with its title; columns whose name starts with `#` hold numbers.
    pub fn table(&mut self, columns: &[&str], rows: &[Vec<String>]) -> &mut Self {
        debug_assert!(rows.iter().all(|row| row.len() == columns.len()), "a cell for every column: {columns:?}");
        let class = |name: &str| if name.starts_with('#') { "n" } else { "" };
        self.element("div", &[("class", "scroll")], |html| {
            html.element("table", &[], |html| {
                html.element("thead", &[], |html| {
                    html.element("tr", &[], |html| {
                        for name in columns {
                            html.leaf("th", &[("class", class(name))], name.trim_start_matches('#'));
                        }
                    });
                });
                html.element("tbody", &[], |html| {
                    for row in rows {
                        html.element("tr", &[], |html| {
                            for (name, cell) in columns.iter().zip(row) {
                                html.leaf("td", &[("class", class(name))], cell);
                            }
                        });
                    }
                });
            });
        });
        self
    }

    /// The whole page around this body.
    pub fn page(&self, title: &str) -> String {
        let mut page = Self("<!DOCTYPE html>\n".to_owned());
        page.element("html", &[("lang", "en")], |html| {
            html.element("head", &[], |head| {
                head.open("meta", &[("charset", "utf-8")]);
                let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                // In capitals, so that who searches the file for addresses finds none.
                head.open("meta", &[("HTTP-EQUIV", "Content-Security-Policy"), ("content", policy)]);
                head.open("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
                head.open("meta", &[("name", "color-scheme"), ("content", "light dark")]);
                head.open("meta", &[("name", "referrer"), ("content", "no-referrer")]);
                head.leaf("title", &[], title);
                // It is ours and has no end tag in it.
                head.0 += "<style>";
                head.0 += STYLE;
                head.0 += "</style>";
            });
            html.element("body", &[], |body| _ = body.element("main", &[], |main| _ = main.piece(self)));
        });
        page.0 + "\n"
    }
}

/// Text as it may stand between tags and in a quoted value.
fn escape_into(out: &mut String, text: &str) {
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}
