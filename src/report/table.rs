//! A table of texts in every form a report can have, and a listing as such a table and as JSON. Beside tables stand
//! paragraphs with a hanging indent: on a terminal they are wrapped to its width, elsewhere they are one line.

use std::borrow::Cow;
use std::io::Write;

use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};
use serde_json::{Map, Value, json};

use crate::base::error::Result;
use crate::base::listing::{ColumnValues, Listing};
use crate::base::visible::visible;
use crate::report::html::Html;
use crate::report::numbers::{counted, percent, thousands};
use crate::report::wrapped::columns;
use crate::report::{escape, narrow, wrapped};

/// How a report is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum TableFormat {
    /// For people.
    #[default]
    #[value(alias = "text")]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values.
    Csv,
    /// Markdown.
    Md,
}

impl TableFormat {
    /// A sentence of a report, in which names from outside may stand.
    pub fn sentence(self, words: &str) -> Cow<'_, str> {
        if self == Self::Md { escape::sentence(words) } else { visible(words) }
    }

    /// What stands before an entry of a list.
    pub fn bullet(self) -> &'static str {
        if self == Self::Md { "- " } else { "" }
    }

    /// Begins a part of a report.
    pub fn heading(self, out: &mut dyn Write, text: &str) -> Result<()> {
        match self {
            Self::Md => Ok(writeln!(out, "\n### {text}\n")?),
            _ => Ok(writeln!(out, "\n{text}")?),
        }
    }
}

/// When colours are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Columns and rows.
pub struct Table {
    headers: Vec<String>,
    /// Which columns hold numbers.
    numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; those whose name starts with `#` hold numbers (the mark is not shown).
    pub fn new(columns: &[&str]) -> Self {
        Self {
            headers: columns.iter().map(|name| name.trim_start_matches('#').to_owned()).collect(),
            numeric: columns.iter().map(|name| name.starts_with('#')).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Nothing in a cell can end its line or move a cursor.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| visible(&cell).into_owned()).collect());
    }

    /// Adds a cell to each row. What knows the type of the rows is compiled for every column: here it is known no more.
    fn column(&mut self, name: &str, numeric: bool, cells: Vec<String>) {
        self.headers.push(name.to_owned());
        self.numeric.push(numeric);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(visible(&cell).into_owned()));
    }

    /// Adds the table to a page.
    pub fn html(&self, html: &mut Html) {
        let mark = |(name, numeric): (&String, &bool)| format!("{}{name}", if *numeric { "#" } else { "" });
        let columns: Vec<String> = self.headers.iter().zip(&self.numeric).map(mark).collect();
        html.table(&columns.iter().map(String::as_str).collect::<Vec<_>>(), &self.rows);
    }

    /// Changes every cell.
    pub fn change_cells(&mut self, change: impl FnMut(&mut String)) {
        self.rows.iter_mut().flatten().for_each(change);
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table. JSON has its own document, so it is never asked for here.
    pub fn write(&self, out: &mut dyn Write, format: TableFormat, width: Option<u16>) -> Result<()> {
        match format {
            TableFormat::Csv => self.write_csv(out),
            TableFormat::Md => self.write_markdown(out),
            TableFormat::Table | TableFormat::Json => match width {
                Some(width) if self.fits_boxes(width) => Ok(writeln!(out, "{}", self.boxed(width))?),
                Some(width) => {
                    let rows: Vec<&[String]> =
                        std::iter::once(&self.headers).chain(&self.rows).map(Vec::as_slice).collect();
                    narrow::write(out, &rows, &self.numeric, width)
                }
                None => self.write_plain(out),
            },
        }
    }

    /// The first so many rows, and how many there are besides. Files of data have all of them.
    pub fn write_top(&self, out: &mut dyn Write, format: TableFormat, width: Option<u16>, top: usize) -> Result<()> {
        if self.rows.len() <= top || format == TableFormat::Csv {
            return self.write(out, format, width);
        }
        let rows = self.rows[..top].to_vec();
        let cut = Self { headers: self.headers.clone(), numeric: self.numeric.clone(), rows };
        cut.write(out, format, width)?;
        let gap = if format == TableFormat::Md { "\n" } else { "" };
        Ok(writeln!(out, "{gap}{} with --all", counted((self.rows.len() - top) as u64, "more row"))?)
    }

    /// Without a terminal a row is a line: columns stand under each other, two blanks apart, and nothing is broken. A blank
    /// begins it, so that no name from outside is taken for a line of a diff.
    fn write_plain(&self, out: &mut dyn Write) -> Result<()> {
        let length = |text: &String| columns(text);
        let widths: Vec<usize> = (0..self.headers.len())
            .map(|index| {
                let cells = self.rows.iter().filter_map(|row| row.get(index)).map(length);
                cells.chain([length(&self.headers[index])]).max().unwrap_or_default()
            })
            .collect();
        for row in std::iter::once(&self.headers).chain(&self.rows) {
            let cell = |((text, width), numeric): ((&String, &usize), &bool)| {
                let gap = " ".repeat(width - length(text));
                if *numeric { gap + text } else { text.clone() + &gap }
            };
            let cells: Vec<String> = row.iter().zip(&widths).zip(&self.numeric).map(cell).collect();
            writeln!(out, " {}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }

    fn boxed(&self, width: u16) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table
            .load_style(presets::UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width)
            .set_header(&self.headers)
            .add_rows(&self.rows);
        let widths = self.widths_min();
        for (index, (column, numeric)) in table.column_iter_mut().zip(&self.numeric).enumerate() {
            if *numeric {
                column.set_cell_alignment(CellAlignment::Right);
            }
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(widths[index])));
        }
        table
    }

    /// Whether lines can be drawn between the columns without breaking a word or a number.
    fn fits_boxes(&self, width: u16) -> bool {
        // Every column has a line beside it.
        self.widths_min().into_iter().map(|width| u32::from(width) + 1).sum::<u32>() < u32::from(width)
    }

    /// The widths below which a word or a number would be broken, with a blank on either side.
    fn widths_min(&self) -> Vec<u16> {
        let word = |text: &String| text.split(' ').map(columns).max().unwrap_or_default();
        let least = |(index, numeric): (usize, &bool)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let cells = cells.map(|cell| if *numeric { columns(cell) } else { word(cell) });
            u16::try_from(cells.chain([word(&self.headers[index])]).max().unwrap_or_default() + 2).unwrap_or(u16::MAX)
        };
        self.numeric.iter().enumerate().map(least).collect()
    }

    fn write_csv(&self, out: &mut dyn Write) -> Result<()> {
        let names = self.headers.iter().map(|name| escape::csv_text(name));
        writeln!(out, "{}", names.collect::<Vec<_>>().join(","))?;
        for row in &self.rows {
            // Thousands separators are for people.
            let cell = |(cell, numeric): (&String, &bool)| {
                if *numeric { escape::csv_number(&cell.replace(',', "")) } else { escape::csv_text(cell) }
            };
            writeln!(out, "{}", row.iter().zip(&self.numeric).map(cell).collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }

    fn write_markdown(&self, out: &mut dyn Write) -> Result<()> {
        let line = |cells: &[String]| cells.iter().map(|cell| escape::markdown(cell)).collect::<Vec<_>>().join(" | ");
        writeln!(out, "| {} |", line(&self.headers))?;
        let rule = |numeric: &bool| if *numeric { "--:" } else { "---" };
        writeln!(out, "| {} |", self.numeric.iter().map(rule).collect::<Vec<_>>().join(" | "))?;
        self.rows.iter().try_for_each(|row| Ok(writeln!(out, "| {} |", line(row))?))
    }
}

/// Makes a [`Table`] of rows, column by column.
pub struct TableBuilder<R> {
    rows: Vec<R>,
    table: Table,
}

impl<R> TableBuilder<R> {
    /// No columns yet.
    pub fn of(rows: impl IntoIterator<Item = R>) -> Self {
        let rows: Vec<R> = rows.into_iter().collect();
        let cells = vec![Vec::new(); rows.len()];
        Self { rows, table: Table { headers: Vec::new(), numeric: Vec::new(), rows: cells } }
    }

    /// Adds a column of text.
    #[must_use]
    pub fn text(self, name: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(name, false, cell)
    }

    /// Adds a column of numbers as people read them.
    #[must_use]
    pub fn number(self, name: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(name, true, cell)
    }

    /// Adds a column of counts.
    #[must_use]
    pub fn count(self, name: &str, value: impl Fn(&R) -> u64) -> Self {
        self.number(name, |row| thousands(value(row)))
    }

    fn column(mut self, name: &str, numeric: bool, cell: impl Fn(&R) -> String) -> Self {
        self.table.column(name, numeric, self.rows.iter().map(cell).collect());
        self
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }
}

/// The width of the terminal, if there is one and it says: one that nobody sized says 0.
pub fn terminal_width() -> Option<u16> {
    comfy_table::Table::new().width().filter(|&columns| columns > 0)
}

/// `first` stands before the first line; on a terminal the others hang behind it. Ends with a line feed.
pub fn paragraph(first: &str, text: &str, width: Option<u16>) -> String {
    let text = visible(text);
    width.map_or_else(|| format!("{first}{text}\n"), |width| wrapped::wrapped(first, &text, width))
}

/// How numbers are spelled: whole ones, and others.
type Spelling<'a> = (&'a dyn Fn(i64) -> String, &'a dyn Fn(f64) -> String);

/// All columns as texts; what is missing is empty. Numbers have all their digits, so that they can be read back.
pub fn table(listing: &Listing) -> Table {
    spelled(listing, (&|value| value.to_string(), &|value| value.to_string()))
}

/// The same for people: shares and the like with four decimals.
pub fn rounded(listing: &Listing) -> Table {
    spelled(listing, (&|value| value.to_string(), &four_decimals))
}

/// The same for people, where all that is not whole is a share of 1, with headings for the names of columns.
pub fn of_shares(listing: &Listing, headings: &[(&str, &str)]) -> Table {
    let whole = |value: i64| format!("{}{}", if value < 0 { "−" } else { "" }, thousands(value.unsigned_abs()));
    let mut table = spelled(listing, (&whole, &percent));
    for header in &mut table.headers {
        if let Some((_, heading)) = headings.iter().find(|(name, _)| name == header) {
            *header = (*heading).to_owned();
        }
    }
    table
}

fn spelled(listing: &Listing, spelling: Spelling<'_>) -> Table {
    let mut table = Table { headers: Vec::new(), numeric: Vec::new(), rows: vec![Vec::new(); listing.rows] };
    for (name, values) in &listing.columns {
        let numeric = matches!(values, ColumnValues::Wholes(_) | ColumnValues::Reals(_));
        table.column(name, numeric, (0..listing.rows).map(|row| cell(values, row, spelling)).collect());
    }
    table
}

fn four_decimals(value: f64) -> String {
    let text = format!("{value:.4}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "0" | "-0" if value > 0.0 => "<0.0001".to_owned(),
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

fn cell(values: &ColumnValues, row: usize, (whole, real): Spelling<'_>) -> String {
    match values {
        ColumnValues::Texts(values) => values[row].clone(),
        ColumnValues::Wholes(values) => values[row].map(whole).unwrap_or_default(),
        ColumnValues::Reals(values) => values[row].map(real).unwrap_or_default(),
        ColumnValues::Flags(values) => values[row].map(|value| value.to_string()).unwrap_or_default(),
    }
}

/// One object per row; what is missing is null.
pub fn json(listing: &Listing) -> Value {
    let object = |row: usize| {
        let field = |(name, values): &(&'static str, ColumnValues)| ((*name).to_owned(), value(values, row));
        Value::Object(listing.columns.iter().map(field).collect::<Map<String, Value>>())
    };
    (0..listing.rows).map(object).collect()
}

fn value(values: &ColumnValues, row: usize) -> Value {
    match values {
        ColumnValues::Texts(values) => json!(values[row]),
        ColumnValues::Wholes(values) => json!(values[row]),
        ColumnValues::Reals(values) => json!(values[row]),
        ColumnValues::Flags(values) => json!(values[row]),
    }
}
