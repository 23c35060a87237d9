//! Texts read as the numbers and truth values that a schema wants in their places.

use serde_json::Value;

use crate::whatif::arg_check::schema::Schema;
use crate::whatif::arg_check::walk::{SchemaFault, SchemaWalk};

/// Alternatives inside alternatives that are looked into.
const DEPTH_MAX: usize = 50;

impl Schema {
    /// Whether arguments fit once texts are read as what is wanted in their places.
    pub fn coerces(&self, arguments: &Value) -> bool {
        Coercion { schema: self, steps: 0, depth: 0 }.coerced(&self.root, arguments).is_some()
    }
}

/// A search for readings of texts. All its walks share one number of steps, so that alternatives in alternatives end.
struct Coercion<'s> {
    schema: &'s Schema,
    steps: usize,
    /// Alternatives inside each other that are being looked into.
    depth: usize,
}

impl Coercion<'_> {
    /// A value that fits a part of the schema, made of another by reading texts. Each round changes at least one text into
    /// something else, so the rounds end.
    fn coerced(&mut self, part: &Value, value: &Value) -> Option<Value> {
        let mut candidate = value.clone();
        loop {
            let mut walk = SchemaWalk::going_on(self.schema, self.steps);
            walk.hold(part, &candidate);
            self.steps = walk.steps;
            let fits = walk.faults.is_empty();
            let changes: Vec<_> = walk.faults.iter().filter_map(|fault| self.change(fault)).collect();
            if changes.is_empty() {
                return fits.then_some(candidate);
            }
            for (pointer, value) in changes {
                if let Some(place) = candidate.pointer_mut(&pointer) {
                    *place = value;
                }
            }
        }
    }

    /// What stands where something does not fit, read otherwise.
    fn change(&mut self, fault: &SchemaFault<'_>) -> Option<(String, Value)> {
        let read = match (fault.keyword, fault.wanted) {
            ("type", types) => read_as(types, fault.value.as_str()?.trim()),
            ("anyOf" | "oneOf", Value::Array(alternatives)) if self.depth < DEPTH_MAX => {
                self.depth += 1;
                let read = alternatives.iter().find_map(|one| self.coerced(one, fault.value));
                self.depth -= 1;
                read.filter(|read| read != fault.value)
            }
            _ => None,
        };
        Some((fault.pointer.clone(), read?))
    }
}

/// The number or truth value that a text says, if one of these types is wanted.
fn read_as(types: &Value, text: &str) -> Option<Value> {
    let wanted = |name: &str| match types {
        Value::Array(types) => types.iter().any(|one| one == name),
        one => one == name,
    };
    let number = || serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
    let truth = || match text {
        "true" | "1" => Some(Value::Bool(true)),
        "false" | "0" => Some(Value::Bool(false)),
        _ => None,
    };
    let is_number = wanted("integer") || wanted("number");
    is_number.then(number).flatten().or_else(|| wanted("boolean").then(truth).flatten())
}
