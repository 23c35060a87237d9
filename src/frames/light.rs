//! Light rows of one person's week as Parquet: a row for each call that counts in what the person adds to a pool, without
//! any text of a log. Written and read as strictly as counts are ([`crate::frames::contribution`]).

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use crate::base::error::Result;
use crate::frames::contribution::{
    Contribution, ContributionResult, NamedColumns, about, encoded, longs, read_table, rows_of, text, texts,
};

/// A number that is not known, or that there is none of.
pub const NONE: i64 = -1;
/// What the file says that it is.
const WHAT: &str = "light rows";

/// The numbers of a call, in the order of their columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Place among the calls of its chain.
    Position,
    /// What it counts in: 1 its endpoint, 2 its tool and what followed, 3 both.
    CountsIn,
    /// Number of the shape of the answer.
    Shape,
    /// Inner formats of the answer, a bit each.
    InnerFormats,
    /// Columns of the Markdown table of the answer.
    Columns,
    Bytes,
    /// Tokens of the answer as it is.
    Baseline,
    /// Tokens of it that the pipeline would have saved.
    Saved,
    /// Other bodies since the context was last shown this one; [`NONE`] if it never was.
    Distance,
    /// Milliseconds from the call to its answer; [`NONE`] if unknown.
    Latency,
    /// Class of the time since the call before it in the chain; [`NONE`] for the first.
    Gap,
}

impl Number {
    /// How many there are.
    pub const COUNT: usize = 11;
    /// All of them with their columns.
    pub const ALL: [(Self, &'static str); Self::COUNT] = [
        (Self::Position, "position"),
        (Self::CountsIn, "counts_in"),
        (Self::Shape, "shape"),
        (Self::InnerFormats, "inner_formats"),
        (Self::Columns, "columns"),
        (Self::Bytes, "bytes"),
        (Self::Baseline, "baseline_tokens"),
        (Self::Saved, "saved_tokens"),
        (Self::Distance, "repeat_distance"),
        (Self::Latency, "latency_ms"),
        (Self::Gap, "gap"),
    ];
}

/// A call as it may leave. Ordered by session, chain and position.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LightCall {
    /// Keyed mark of the session.
    pub session: String,
    /// Keyed mark of the main thread or subagent.
    pub chain: String,
    pub numbers: [i64; Number::COUNT],
    /// Name of the tool, as it leaves.
    pub tool: String,
    /// Name of the endpoint, as it leaves; empty where the call does not count in one.
    pub endpoint: String,
    /// The tools one, two and three steps later, as they leave, with a space between them.
    pub after: [String; AFTER.len()],
}

impl LightCall {
    /// One of its numbers.
    pub fn number(&self, number: Number) -> i64 {
        self.numbers[number as usize]
    }

    /// Sets one of its numbers.
    pub fn set(&mut self, number: Number, value: impl Into<i64>) {
        self.numbers[number as usize] = value.into();
    }
}

/// The columns with the tools one, two and three steps later.
pub const AFTER: [&str; 3] = ["after_1", "after_2", "after_3"];
/// Columns of text before the numbers.
const TEXTS: usize = 4;

/// The bytes of a file of light rows.
pub fn write(of: &Contribution, calls: &[LightCall]) -> Result<Vec<u8>> {
    encoded(WHAT, columns(calls), &about(of))
}

fn columns(calls: &[LightCall]) -> NamedColumns {
    let mut columns = vec![
        ("session", texts(calls.iter().map(|call| &*call.session))),
        ("chain", texts(calls.iter().map(|call| &*call.chain))),
        ("tool", texts(calls.iter().map(|call| &*call.tool))),
        ("endpoint", texts(calls.iter().map(|call| &*call.endpoint))),
    ];
    columns.extend(Number::ALL.map(|(number, name)| (name, longs(calls.iter().map(|call| call.number(number))))));
    let after = |(at, name): (usize, _)| (name, texts(calls.iter().map(move |call| &*call.after[at])));
    columns.extend(AFTER.into_iter().enumerate().map(after));
    columns
}

/// Reads at most so many light rows; what is given with them is whose they are, without counts.
pub fn read(bytes: Vec<u8>, rows_max: usize) -> ContributionResult<(Contribution, Vec<LightCall>)> {
    let (of, batches) = read_table(bytes, WHAT, &columns(&[]), rows_max)?;
    Ok((of, rows_of(&batches).map(|(batch, row)| call(batch, row)).collect()))
}

fn call(batch: &RecordBatch, row: usize) -> LightCall {
    let number = |at: usize| batch.column(TEXTS + at).as_primitive::<Int64Type>().value(row);
    let first = TEXTS + Number::COUNT;
    LightCall {
        session: text(batch, 0, row),
        chain: text(batch, 1, row),
        tool: text(batch, 2, row),
        endpoint: text(batch, 3, row),
        numbers: std::array::from_fn(number),
        after: std::array::from_fn(|at| text(batch, first + at, row)),
    }
}

#[cfg(test)]
#[path = "../tests/odd_light_rows.rs"]
pub mod hostile;
