//! Contributions that no devboy writes.

use arrow_array::{Float64Array, UInt64Array};

use super::*;

/// A contribution with this odd thing about it.
pub fn odd(like: &Contribution, what: &str) -> Vec<u8> {
    encoded_oddly(what, CONTRIBUTION, count_columns(like.counts.iter()), ("count", like))
}

/// A file of a person's week with this odd thing about it, or about a column of numbers.
pub fn encoded_oddly(
    what: &str,
    kind: &str,
    mut columns: NamedColumns,
    (column, of): (&str, &Contribution),
) -> Vec<u8> {
    let (rows, place) = (columns[0].1.len(), columns.iter().position(|(name, _)| *name == column).unwrap());
    let mut version = vec![("schema_version", SCHEMA_VERSION.to_string())];
    match what {
        "NaN" => columns[place].1 = Arc::new(Float64Array::from(vec![f64::NAN; rows])),
        "2^63" => columns[place].1 = Arc::new(UInt64Array::from(vec![1_u64 << 63; rows])),
        "more columns" => columns.push(("prompt", texts(std::iter::repeat_n("text", rows)))),
        "no version" => version.clear(),
        version_of_it => version[0].1 = version_of_it.to_owned(),
    }
    encoded_as(&version, kind, columns, &about(of)).unwrap()
}
