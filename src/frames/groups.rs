//! Rows of a Polars frame that agree in some columns, and what each such group adds up to. Frames hold numbers only: names
//! are symbols, so that grouping never touches text.

use std::collections::BTreeMap;

use polars::prelude::*;
pub(super) use polars::prelude::{Column, DataFrame};

use crate::base::error::{Error, Result};
use crate::base::names::Sym;

/// A frame of some columns.
pub(super) fn frame(rows: usize, columns: Vec<Column>) -> Result<DataFrame> {
    DataFrame::new(rows, columns).map_err(fault)
}

/// What each row says, as a column.
pub(super) fn column<R, T>(name: &str, rows: &[R], value: impl Fn(&R) -> T) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    Column::new(name.into(), rows.iter().map(value).collect::<Vec<T>>())
}

/// Columns that are fields of the rows and called like them.
macro_rules! columns {
    ($rows:expr => $($field:ident),+) => {
        vec![$(crate::frames::groups::column(stringify!($field), $rows, |row| row.$field)),+]
    };
}

/// Puts the sums of columns over a group into the fields that are called like them.
macro_rules! sums {
    ($group:expr => $row:ident: $($field:ident),+) => {
        $($row.$field = $group.sum(stringify!($field))?;)+
    };
}

pub(super) use {columns, sums};

/// A row for each group of rows that agree in some columns of numbers (`u32`), in the order of these.
pub(super) fn grouped<T>(frame: &DataFrame, by: &[&str], row: impl Fn(&FrameGroup<'_>) -> Result<T>) -> Result<Vec<T>> {
    let keys = frame.select_to_vec(by).map_err(fault)?;
    let groups = frame.group_by_with_series(keys, false, false).map_err(fault)?.into_groups();
    let each = groups.iter().map(|rows| {
        let group = FrameGroup { frame, rows: IdxCa::from_vec("rows".into(), places(rows)) };
        let keys = by.iter().map(|name| group.key(name)).collect::<Result<Vec<u32>>>()?;
        Ok((keys, row(&group)?))
    });
    let mut rows = each.collect::<Result<Vec<_>>>()?;
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn places(group: GroupsIndicator<'_>) -> Vec<IdxSize> {
    match group {
        GroupsIndicator::Idx((_, rows)) => rows.to_vec(),
        GroupsIndicator::Slice([first, count]) => (first..first + count).collect(),
    }
}

/// Some rows of a frame.
pub(super) struct FrameGroup<'f> {
    frame: &'f DataFrame,
    rows: IdxCa,
}

impl FrameGroup<'_> {
    /// Its rows.
    pub(super) fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// A number in which its rows agree.
    pub(super) fn key(&self, name: &str) -> Result<u32> {
        let first = self.rows.get(0).unwrap_or_default() as usize;
        let value = self.frame.column(name).and_then(|column| column.get(first)).map_err(fault)?;
        value.extract().ok_or_else(|| fault(format!("{name} is no number")))
    }

    /// The same of a name.
    pub(super) fn name(&self, name: &str) -> Result<Sym> {
        self.key(name).map(Sym)
    }

    /// Those of its rows for which a column of conditions holds.
    pub(super) fn only(&self, condition: &str) -> Result<Self> {
        let holds = self.column(condition)?;
        let rows = self.rows.filter(holds.bool().map_err(fault)?).map_err(fault)?;
        Ok(Self { rows, ..*self })
    }

    /// The sum of a column; of conditions, how often they hold.
    pub(super) fn sum(&self, name: &str) -> Result<u64> {
        let column = self.frame.column(name).map_err(fault)?;
        // Numbers are added up where they stand: taking them out first costs more than adding them.
        if let Ok(Ok(numbers)) = column.u32().map(|numbers| numbers.cont_slice()) {
            let numbers = self.rows.iter().flatten().map(|row| u64::from(numbers[row as usize]));
            return Ok(numbers.sum());
        }
        if let Ok(Ok(numbers)) = column.u64().map(|numbers| numbers.cont_slice()) {
            return Ok(self.rows.iter().flatten().map(|row| numbers[row as usize]).sum());
        }
        let wide = self.column(name)?.cast(&DataType::UInt64);
        let sum = wide.and_then(|column| column.sum_reduce()).map_err(fault)?;
        Ok(sum.value().extract().unwrap_or_default())
    }

    /// Different numbers in a column (`u32`). Polars would hand each group to threads of its own and wait for them.
    pub(super) fn distinct(&self, name: &str) -> Result<u64> {
        Ok(self.counts(name)?.len() as u64)
    }

    /// How often each number stands in a column (`u32`).
    pub(super) fn counts(&self, name: &str) -> Result<BTreeMap<u32, u64>> {
        let mut counts = BTreeMap::new();
        self.column(name)?
            .u32()
            .map_err(fault)?
            .iter()
            .flatten()
            .for_each(|number| *counts.entry(number).or_default() += 1);
        Ok(counts)
    }

    /// Numbers in a column, without nulls.
    pub(super) fn known(&self, name: &str) -> Result<u64> {
        let column = self.column(name)?;
        Ok((column.len() - column.null_count()) as u64)
    }

    /// The quantile of a column, the lower element; none if all are null.
    pub(super) fn quantile(&self, name: &str, share: f64) -> Result<Option<i64>> {
        let quantile = self.column(name)?.quantile_reduce(share, QuantileMethod::Lower).map_err(fault)?;
        Ok(quantile.value().extract())
    }

    /// The smallest and the largest number of a column, 0 if all are null.
    pub(super) fn extremes(&self, name: &str) -> Result<[i64; 2]> {
        let column = self.column(name)?;
        let ends = [column.min_reduce(), column.max_reduce()].map(|end| Ok(end.map_err(fault)?.value().extract()));
        let [min, max]: [Result<Option<i64>>; 2] = ends;
        Ok([min?.unwrap_or_default(), max?.unwrap_or_default()])
    }

    fn column(&self, name: &str) -> Result<Column> {
        self.frame.column(name).and_then(|column| column.take(&self.rows)).map_err(fault)
    }
}

/// A query that Polars refuses is a fault of ours.
fn fault(cause: impl std::fmt::Display) -> Error {
    Error::failed(format!("aggregating: {cause}")).hint("this is a fault of devboy; please report it")
}
