//! A listing as text table and as JSON.

use serde_json::{Map, Value, json};

use crate::base::listing::{Listing, Values};
use crate::report::table::Table;

/// All columns as texts; what is missing is empty. Numbers have all their digits, so that they can be read back.
pub fn table(listing: &Listing) -> Table {
    let headers: Vec<String> = listing.columns.iter().map(|(name, values)| header(name, values)).collect();
    let mut table = Table::new(&headers.iter().map(String::as_str).collect::<Vec<_>>());
    for row in 0..listing.rows {
        table.row(listing.columns.iter().map(|(_, values)| cell(values, row)));
    }
    table
}

/// The name with the mark of a numeric column.
fn header(name: &str, values: &Values) -> String {
    let numeric = matches!(values, Values::Wholes(_) | Values::Reals(_));
    format!("{}{name}", if numeric { "#" } else { "" })
}

fn cell(values: &Values, row: usize) -> String {
    match values {
        Values::Texts(values) => values[row].clone(),
        Values::Wholes(values) => values[row].map(|value| value.to_string()).unwrap_or_default(),
        Values::Reals(values) => values[row].map(|value| value.to_string()).unwrap_or_default(),
        Values::Flags(values) => values[row].to_string(),
    }
}

/// One object per row; what is missing is null.
pub fn json(listing: &Listing) -> Value {
    let object = |row: usize| {
        let field = |(name, values): &(&'static str, Values)| ((*name).to_owned(), value(values, row));
        Value::Object(listing.columns.iter().map(field).collect::<Map<String, Value>>())
    };
    (0..listing.rows).map(object).collect()
}

fn value(values: &Values, row: usize) -> Value {
    match values {
        Values::Texts(values) => json!(values[row]),
        Values::Wholes(values) => json!(values[row]),
        Values::Reals(values) => json!(values[row]),
        Values::Flags(values) => json!(values[row]),
    }
}
