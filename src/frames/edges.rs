//! Calls as events of a process in a Polars frame, and the pairs that follow each other.

use polars::prelude::*;

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::frames::columns::{Collected, fault};
use crate::frames::edge::{Activity, EdgeSum, EndSum, Turns};

/// One row per call.
pub struct EdgeFrame {
    calls: LazyFrame,
}

impl EdgeFrame {
    /// The frame of some calls, in any order.
    ///
    /// # Errors
    /// If the columns do not fit together, which is a fault of devboy.
    pub fn new(activities: &[Activity]) -> Result<Self> {
        let of = |value: fn(&Activity) -> u32| activities.iter().map(value).collect::<Vec<u32>>();
        let at = |value: fn(&Activity) -> Option<i64>| activities.iter().map(value).collect::<Vec<Option<i64>>>();
        let frame = df!(
            "case" => of(|row| row.case),
            "session" => of(|row| row.session),
            "place" => activities.iter().map(|row| row.place).collect::<Vec<u64>>(),
            "turn" => of(|row| row.turn),
            "tool" => of(|row| row.tool.0),
            "asked" => at(|row| row.asked),
            "answered" => at(|row| row.answered),
        );
        Ok(Self { calls: frame.map_err(fault)?.lazy() })
    }

    /// Pairs at one lag, within a context.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn follows(&self, lag: u32, turns: Turns) -> Result<Vec<EdgeSum>> {
        let earlier = self.calls.clone().select([
            (col("place") + lit(u64::from(lag))).alias("next"),
            col("case"),
            col("session"),
            col("turn"),
            col("tool").alias("from"),
            col("answered"),
        ]);
        let later = self.calls.clone().select([
            col("place"),
            col("case").alias("then"),
            col("turn").alias("turn_then"),
            col("tool").alias("to"),
            col("asked"),
        ]);
        let across = || col("turn").neq(col("turn_then"));
        let pairs = earlier
            .join(later, [col("next")], [col("place")], JoinArgs::new(JoinType::Inner))
            .filter(col("case").eq(col("then")));
        let pairs = match turns {
            Turns::All => pairs,
            Turns::Within => pairs.filter(across().not()),
            Turns::Across => pairs.filter(across()),
        };
        let gap = |share: f64| {
            let gaps = (col("asked") - col("answered")).drop_nulls();
            gaps.quantile(lit(share), QuantileMethod::Lower).cast(DataType::Int64)
        };
        let sums = [
            len().cast(DataType::UInt64).alias("count"),
            across().sum().cast(DataType::UInt64).alias("across"),
            distinct("case", "cases"),
            distinct("session", "sessions"),
            gap(0.5).alias("gap_p50"),
            gap(0.9).alias("gap_p90"),
        ];
        edges(pairs, &sums, Some(lag))
    }

    /// Calls that another tool follows at any time in their context.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn eventually(&self) -> Result<Vec<EdgeSum>> {
        let last =
            self.calls.clone().group_by([col("case"), col("tool").alias("to")]).agg([col("place").max().alias("last")]);
        let pairs = self
            .calls
            .clone()
            .select([col("case"), col("session"), col("place"), col("tool").alias("from")])
            .join(last, [col("case")], [col("case")], JoinArgs::new(JoinType::Inner))
            .filter(col("place").lt(col("last")));
        let none = || lit(NULL).cast(DataType::Int64);
        let sums = [
            len().cast(DataType::UInt64).alias("count"),
            lit(0_u64).alias("across"),
            distinct("case", "cases"),
            distinct("session", "sessions"),
            none().alias("gap_p50"),
            none().alias("gap_p90"),
        ];
        edges(pairs, &sums, None)
    }

    /// Calls of every tool, and the contexts that begin and end with it; by symbol.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn ends(&self) -> Result<Vec<EndSum>> {
        let bounds = [col("place").min().alias("first"), col("place").max().alias("last")];
        let bounds = self.calls.clone().group_by([col("case")]).agg(bounds);
        let cases_at = |end: &str| col("case").filter(col("place").eq(col(end))).n_unique().cast(DataType::UInt64);
        let found = self
            .calls
            .clone()
            .join(bounds, [col("case")], [col("case")], JoinArgs::new(JoinType::Inner))
            .group_by([col("tool")])
            .agg([
                len().cast(DataType::UInt64).alias("calls"),
                cases_at("first").alias("starts"),
                cases_at("last").alias("ends"),
                distinct("session", "sessions"),
            ])
            .sort(["tool"], SortMultipleOptions::default())
            .collect()
            .map_err(fault)?;
        let columns = Collected(&found);
        let [tool, calls, starts, ends, sessions] =
            ["tool", "calls", "starts", "ends", "sessions"].map(|name| columns.numbers(name));
        let (tool, calls, starts, ends, sessions) = (tool?, calls?, starts?, ends?, sessions?);
        let row = |row: usize| EndSum {
            tool: Sym(tool[row] as u32),
            calls: calls[row],
            starts: starts[row],
            ends: ends[row],
            sessions: sessions[row],
        };
        Ok((0..found.height()).map(row).collect())
    }
}

fn distinct(column: &str, name: &str) -> Expr {
    col(column).n_unique().cast(DataType::UInt64).alias(name)
}

fn edges(pairs: LazyFrame, sums: &[Expr], lag: Option<u32>) -> Result<Vec<EdgeSum>> {
    let found = pairs
        .group_by([col("from"), col("to")])
        .agg(sums)
        .sort(["from", "to"], SortMultipleOptions::default())
        .collect()
        .map_err(fault)?;
    let columns = Collected(&found);
    let [from, to, count, across, cases, sessions] =
        ["from", "to", "count", "across", "cases", "sessions"].map(|name| columns.numbers(name));
    let (from, to, count, across, cases, sessions) = (from?, to?, count?, across?, cases?, sessions?);
    let (p50, p90) = (columns.signed_or_none("gap_p50")?, columns.signed_or_none("gap_p90")?);
    let row = |row: usize| EdgeSum {
        from: Sym(from[row] as u32),
        to: Sym(to[row] as u32),
        lag,
        count: count[row],
        across_turns: across[row],
        cases: cases[row],
        sessions: sessions[row],
        gap_ms_p50: p50[row],
        gap_ms_p90: p90[row],
        chance: None,
    };
    Ok((0..found.height()).map(row).collect())
}
