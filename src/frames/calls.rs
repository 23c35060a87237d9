//! Statistics of tools, from the calls of a history as a Polars frame.
//!
//! Frames hold numbers only: names are symbols, so grouping never touches text.

use std::collections::BTreeMap;

use polars::prelude::*;

use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::stats::ToolStats;
use crate::frames::columns::{Collected, fault};
use crate::logs::history::History;
use crate::logs::trace::ResultKind;

/// One row per call.
fn frame(history: &History) -> Result<LazyFrame> {
    let calls = &history.calls;
    let of = |value: fn(&crate::logs::history::Call) -> u32| calls.iter().map(value).collect::<Vec<u32>>();
    let session = |chain: u32| history.chains[chain as usize].session;
    let frame = df!(
        "tool" => of(|call| call.tool.0),
        "session" => calls.iter().map(|call| session(call.chain)).collect::<Vec<u32>>(),
        "ran" => calls.iter().map(|call| call.ran()).collect::<Vec<bool>>(),
        "kind" => of(|call| call.kind as u32),
        "bytes" => of(|call| call.bytes),
        "latency_ms" => calls.iter().map(|call| call.latency_ms).collect::<Vec<Option<u32>>>(),
        "shape" => of(|call| u32::from(call.shape)),
    );
    Ok(frame.map_err(fault)?.lazy())
}

/// Statistics of every tool, by symbol.
///
/// # Errors
/// If Polars refuses the query, which is a fault of devboy.
pub fn tool_stats(history: &History) -> Result<Vec<ToolStats>> {
    let calls = frame(history)?;
    let sized = || col("ran").and(col("kind").neq(lit(ResultKind::NonText as u32)));
    let quantile =
        |share: f64| col("bytes").filter(sized()).quantile(lit(share), QuantileMethod::Lower).cast(DataType::UInt64);
    let timed = || col("latency_ms").filter(col("ran")).drop_nulls();
    let stats = calls
        .clone()
        .group_by([col("tool")])
        .agg([
            len().cast(DataType::UInt64).alias("calls"),
            col("session").n_unique().cast(DataType::UInt64).alias("sessions"),
            col("ran").sum().cast(DataType::UInt64).alias("ran"),
            sized().sum().cast(DataType::UInt64).alias("sized"),
            quantile(0.5).alias("bytes_p50"),
            quantile(0.99).alias("bytes_p99"),
            timed().len().cast(DataType::UInt64).alias("timed"),
            timed().quantile(lit(0.5), QuantileMethod::Lower).cast(DataType::UInt64).alias("latency_ms_p50"),
        ])
        .sort(["tool"], SortMultipleOptions::default())
        .collect()
        .map_err(fault)?;
    let shapes = shapes(calls)?;
    let mut stats = Collected(&stats).rows::<ToolStats>()?;
    stats.iter_mut().for_each(|row| row.shapes = shapes.get(&row.tool).cloned().unwrap_or_default());
    Ok(stats)
}

/// Answers by tool and shape, where the shape was looked at.
fn shapes(calls: LazyFrame) -> Result<BTreeMap<Sym, BTreeMap<u8, u64>>> {
    let counted = calls
        .filter(col("ran").and(col("shape").gt(lit(0_u32))))
        .group_by([col("tool"), col("shape")])
        .agg([len().cast(DataType::UInt64).alias("calls")])
        .collect()
        .map_err(fault)?;
    let columns = Collected(&counted);
    let mut out: BTreeMap<Sym, BTreeMap<u8, u64>> = BTreeMap::new();
    for row in 0..counted.height() {
        let tool = Sym(columns.number("tool", row)? as u32);
        let shape = columns.number("shape", row)? as u8;
        out.entry(tool).or_default().insert(shape, columns.number("calls", row)?);
    }
    Ok(out)
}
