//! Rows of any aggregate as named, typed columns: what CSV, JSON, Markdown and Parquet are all written from, so that the
//! forms cannot disagree.

use crate::base::stats::Share;

/// The values of one column.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnValues {
    Texts(Vec<String>),
    /// Whole numbers, or nothing.
    Wholes(Vec<Option<i64>>),
    /// Numbers, or nothing.
    Reals(Vec<Option<f64>>),
    /// Yes or no, or nothing.
    Flags(Vec<Option<bool>>),
}

/// A table of named columns of equal length.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    pub rows: usize,
    pub columns: Vec<(&'static str, ColumnValues)>,
}

/// Makes a [`Listing`] of rows, column by column.
pub struct Columns<'a, R> {
    rows: &'a [R],
    columns: Vec<(&'static str, ColumnValues)>,
}

impl<'a, R> Columns<'a, R> {
    /// No columns yet.
    pub fn of(rows: &'a [R]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a column of text.
    #[must_use]
    pub fn text(mut self, name: &'static str, value: impl Fn(&R) -> String) -> Self {
        self.columns.push((name, ColumnValues::Texts(self.rows.iter().map(value).collect())));
        self
    }

    /// Adds a column of counts.
    #[must_use]
    pub fn count(self, name: &'static str, value: impl Fn(&R) -> u64) -> Self {
        self.whole(name, |row| i64::try_from(value(row)).ok())
    }

    /// Adds a column of whole numbers.
    #[must_use]
    pub fn whole(mut self, name: &'static str, value: impl Fn(&R) -> Option<i64>) -> Self {
        self.columns.push((name, ColumnValues::Wholes(self.rows.iter().map(value).collect())));
        self
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn real(mut self, name: &'static str, value: impl Fn(&R) -> Option<f64>) -> Self {
        self.columns.push((name, ColumnValues::Reals(self.rows.iter().map(value).collect())));
        self
    }

    /// Adds three columns: a share and both ends of its interval.
    #[must_use]
    pub fn share(self, [share, lower, upper]: [&'static str; 3], value: impl Fn(&R) -> Option<Share>) -> Self {
        self.real(share, |row| value(row).map(|share| share.value()))
            .real(lower, |row| value(row).map(|share| share.lower))
            .real(upper, |row| value(row).map(|share| share.upper))
    }

    /// Adds a column of yes and no.
    #[must_use]
    pub fn flag(self, name: &'static str, value: impl Fn(&R) -> bool) -> Self {
        self.flag_or_none(name, |row| Some(value(row)))
    }

    /// Adds a column of yes, no and nothing.
    #[must_use]
    pub fn flag_or_none(mut self, name: &'static str, value: impl Fn(&R) -> Option<bool>) -> Self {
        self.columns.push((name, ColumnValues::Flags(self.rows.iter().map(value).collect())));
        self
    }

    /// The table.
    pub fn finish(self) -> Listing {
        Listing { rows: self.rows.len(), columns: self.columns }
    }
}

/// Adds columns of counts that are fields of the row and called like them, to a listing or to a table.
macro_rules! counts {
    ($columns:expr, $($field:ident),+) => {
        $columns$(.count(stringify!($field), |row| row.$field))+
    };
}

pub(crate) use counts;
