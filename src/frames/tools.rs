//! Calls with what is known of each in a Polars frame, summed up by tool or by server.

use polars::prelude::*;

use crate::base::error::Result;
use crate::frames::columns::{Collected, fault};
use crate::frames::tool_use::{MinedCall, Reread, ToolUsage};

/// Names of the quantiles in the queries.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];
/// A column that says yes or no.
type Flag = (&'static str, fn(&MinedCall) -> bool);
/// All of them.
const FLAGS: [Flag; 13] = [
    ("ran", |call| call.ran),
    ("sized", |call| call.sized),
    ("failed", |call| call.failed),
    ("rejected", |call| call.rejected),
    ("open", |call| call.open),
    ("empty", |call| call.empty),
    ("in_empty_run", |call| call.in_empty_run),
    ("repeatable", |call| call.repeatable),
    ("repeat", |call| call.repeat),
    ("reads", |call| call.reads),
    ("reread_same", |call| call.reread == Some(Reread::Same)),
    ("reread_overlapping", |call| call.reread == Some(Reread::Overlapping)),
    ("reread_other", |call| call.reread == Some(Reread::Other)),
];

/// One row per call.
pub struct ToolFrame {
    calls: LazyFrame,
}

impl ToolFrame {
    /// The frame of some calls.
    ///
    /// # Errors
    /// If the columns do not fit together, which is a fault of devboy.
    pub fn new(calls: &[MinedCall]) -> Result<Self> {
        let of = |value: fn(&MinedCall) -> u32| calls.iter().map(value).collect::<Vec<u32>>();
        let mut columns: Vec<Column> = vec![
            Column::new("tool".into(), of(|call| call.tool.0)),
            Column::new("server".into(), of(|call| call.server)),
            Column::new("session".into(), of(|call| call.session)),
            Column::new("chars".into(), of(|call| call.chars)),
            Column::new("bytes".into(), of(|call| call.bytes)),
            Column::new("tokens".into(), of(|call| call.tokens)),
            Column::new("counted".into(), calls.iter().map(|call| call.counted).collect::<Vec<bool>>()),
            Column::new("input_bytes".into(), of(|call| call.input_bytes)),
            Column::new("latency_ms".into(), calls.iter().map(|call| call.latency_ms).collect::<Vec<Option<u32>>>()),
            Column::new("empty_run".into(), of(|call| call.empty_run)),
        ];
        let flags =
            FLAGS.iter().map(|(name, of)| Column::new((*name).into(), calls.iter().map(of).collect::<Vec<bool>>()));
        columns.extend(flags);
        Ok(Self { calls: DataFrame::new(calls.len(), columns).map_err(fault)?.lazy() })
    }

    /// Sums by tool (`"tool"`) or server (`"server"`), with the number of each; names are left empty.
    ///
    /// # Errors
    /// If Polars refuses the query, which is a fault of devboy.
    pub fn uses(&self, by: &str) -> Result<Vec<(u32, ToolUsage)>> {
        let whole = |of: Expr, name: &str| of.cast(DataType::UInt64).alias(name);
        let mut sums = vec![
            whole(len(), "calls"),
            whole(col("session").n_unique(), "sessions"),
            whole(col("tokens").cast(DataType::UInt64).sum(), "tokens"),
            whole(col("counted").sum(), "counted"),
            whole(col("input_bytes").cast(DataType::UInt64).sum(), "input_bytes"),
            whole(col("latency_ms").drop_nulls().len(), "timed"),
            whole(col("empty_run").max(), "empty_run"),
        ];
        sums.extend(FLAGS.iter().map(|(name, _)| whole(col(*name).sum(), name)));
        for (name, share) in QUANTILES {
            let of = |values: Expr, what: &str| {
                whole(values.quantile(lit(share), QuantileMethod::Lower), &format!("{what}_{name}"))
            };
            sums.push(of(col("chars").filter(col("sized")), "chars"));
            sums.push(of(col("bytes").filter(col("sized")), "bytes"));
            sums.push(of(col("latency_ms").drop_nulls(), "latency"));
        }
        let order = SortMultipleOptions::default();
        let found = self.calls.clone().group_by([col(by)]).agg(sums).sort([by], order).collect().map_err(fault)?;
        let columns = Collected(&found);
        (0..found.height()).map(|row| Ok((columns.number(by, row)? as u32, read(&columns, row)?))).collect()
    }
}

fn read(columns: &Collected<'_>, row: usize) -> Result<ToolUsage> {
    let number = |name: &str| columns.number(name, row);
    let quantiles = |what: &str| -> Result<[u64; 3]> {
        let [p50, p90, p99] = QUANTILES.map(|(name, _)| columns.number(&format!("{what}_{name}"), row));
        Ok([p50?, p90?, p99?])
    };
    Ok(ToolUsage {
        name: String::new(),
        calls: number("calls")?,
        sessions: number("sessions")?,
        ran: number("ran")?,
        sized: number("sized")?,
        failed: number("failed")?,
        rejected: number("rejected")?,
        open: number("open")?,
        empty: number("empty")?,
        empty_in_runs: number("in_empty_run")?,
        empty_run_max: number("empty_run")?,
        repeatable: number("repeatable")?,
        repeats: number("repeat")?,
        reads: number("reads")?,
        rereads_same: number("reread_same")?,
        rereads_overlapping: number("reread_overlapping")?,
        rereads_other: number("reread_other")?,
        chars: quantiles("chars")?,
        bytes: quantiles("bytes")?,
        timed: number("timed")?,
        latency_ms: quantiles("latency")?,
        response_tokens: number("tokens")?,
        counted: number("counted")?,
        input_bytes: number("input_bytes")?,
    })
}
