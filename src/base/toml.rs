//! TOML as types: small, since it is compiled once for every type that is read. What does not fit is told with its line. A key
//! that a type has no field for is a mistake, unless the type is called [`PART`].

use std::fmt;
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use toml_edit::{Document, Item, TableLike, Value};

/// What serde knows a type by that takes a part of a table and leaves the rest: `#[serde(rename = "part")]`.
const PART: &str = "part";

/// The bytes of a text where something stands, if it stands anywhere.
type Span = Option<Range<usize>>;

/// Why a text does not fit.
#[derive(Debug)]
pub struct TomlFault {
    pub message: String,
    /// The bytes that it is about.
    pub span: Span,
    /// Its line, from 1 on.
    pub line: usize,
}

impl TomlFault {
    /// `place:line: message`.
    pub fn at(&self, place: &str) -> String {
        format!("{place}:{}: {}", self.line, self.message)
    }

    /// With the line in which it stands.
    fn numbered(self, text: &str) -> Self {
        let before = self.span.as_ref().map_or(0, |span| span.start);
        Self { line: 1 + text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count(), ..self }
    }

    /// The place of a value, unless a part of it is to blame.
    fn within(mut self, span: Span) -> Self {
        self.span = self.span.or(span);
        self
    }
}

impl fmt::Display for TomlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TomlFault {}

impl de::Error for TomlFault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None, line: 1 }
    }
}

/// A text as a type.
pub fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, TomlFault> {
    let document = document(text)?;
    T::deserialize(Node::Table(document.as_table())).map_err(|fault| fault.numbered(text))
}

fn document(text: &str) -> Result<Document<&str>, TomlFault> {
    Document::parse(text).map_err(|cause| {
        TomlFault { message: cause.message().replace('\n', ", "), span: cause.span(), line: 1 }.numbered(text)
    })
}

/// A value, or a table of them.
#[derive(Clone, Copy)]
enum Node<'a> {
    Value(&'a Value),
    Table(&'a dyn TableLike),
    Tables(&'a toml_edit::ArrayOfTables),
}

impl<'a> Node<'a> {
    /// None for a key without a value, which no text has.
    fn of(item: &'a Item) -> Option<Self> {
        Some(match item {
            Item::None => return None,
            Item::Value(Value::InlineTable(table)) => Node::Table(table),
            Item::Value(value) => Node::Value(value),
            Item::Table(table) => Node::Table(table),
            Item::ArrayOfTables(tables) => Node::Tables(tables),
        })
    }

    fn of_value(value: &'a Value) -> Self {
        value.as_inline_table().map_or(Node::Value(value), |table| Node::Table(table))
    }

    fn parts(self) -> ListParts<'a> {
        match self {
            Node::Value(Value::Array(items)) => {
                ListParts(Box::new(items.iter().map(|item| (Node::of_value(item), item.span()))))
            }
            Node::Tables(tables) => ListParts(Box::new(tables.iter().map(|table| (Node::Table(table), table.span())))),
            Node::Value(_) | Node::Table(_) => ListParts(Box::new(std::iter::empty())),
        }
    }

    fn span(self) -> Span {
        match self {
            Node::Value(value) => value.span(),
            Node::Tables(tables) => tables.span(),
            Node::Table(_) => None,
        }
    }

    /// Says where the value stands that is to blame.
    fn within<T>(self, visited: Result<T, TomlFault>) -> Result<T, TomlFault> {
        visited.map_err(|fault| fault.within(self.span()))
    }

    /// What a list or a table is where something else is expected, or something else where they are.
    fn unfit(self, expected: &dyn Expected) -> TomlFault {
        let found = match self {
            Node::Table(_) | Node::Value(Value::InlineTable(_)) => Unexpected::Map,
            Node::Value(Value::Array(_)) | Node::Tables(_) => Unexpected::Seq,
            Node::Value(Value::String(text)) => Unexpected::Str(text.value()),
            Node::Value(Value::Integer(number)) => Unexpected::Signed(*number.value()),
            Node::Value(Value::Float(number)) => Unexpected::Float(*number.value()),
            Node::Value(Value::Boolean(truth)) => Unexpected::Bool(*truth.value()),
            Node::Value(Value::Datetime(_)) => Unexpected::Other("date"),
        };
        TomlFault::invalid_type(found, expected).within(self.span())
    }
}

/// What asks for one value, of whatever kind.
macro_rules! single {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TomlFault> {
            self.deserialize_str(visitor)
        }
    )+};
}

/// Each kind of type asks for what it is made of, so that no more than that is compiled for it.
impl<'de> Deserializer<'de> for Node<'_> {
    type Error = TomlFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TomlFault> {
        match self {
            Node::Table(table) => visitor.visit_map(Members::of(table)),
            Node::Value(Value::Array(_)) | Node::Tables(_) => self.deserialize_seq(visitor),
            Node::Value(_) => self.deserialize_str(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TomlFault> {
        match self {
            Node::Table(table) => visitor.visit_map(Members::of(table)),
            Node::Value(_) | Node::Tables(_) => Err(self.unfit(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TomlFault> {
        match self {
            Node::Table(table) if name != PART => {
                visitor.visit_map(Members { fields: Some(fields), ..Members::of(table) })
            }
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TomlFault> {
        match self {
            Node::Value(Value::Array(_)) | Node::Tables(_) => self.within(visitor.visit_seq(self.parts())),
            Node::Value(_) | Node::Table(_) => Err(self.unfit(&visitor)),
        }
    }

    /// Whatever is no list and no table.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TomlFault> {
        self.within(match self {
            Node::Value(Value::String(text)) => visitor.visit_str(text.value()),
            Node::Value(Value::Integer(number)) => visitor.visit_i64(*number.value()),
            Node::Value(Value::Float(number)) => visitor.visit_f64(*number.value()),
            Node::Value(Value::Boolean(truth)) => visitor.visit_bool(*truth.value()),
            Node::Value(Value::Datetime(time)) => visitor.visit_str(&time.value().to_string()),
            Node::Value(Value::Array(_) | Value::InlineTable(_)) | Node::Table(_) | Node::Tables(_) => {
                return Err(self.unfit(&visitor));
            }
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TomlFault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, TomlFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TomlFault> {
        self.within(match self {
            Node::Table(table) => visitor.visit_enum(MapAccessDeserializer::new(Members::of(table))),
            Node::Value(Value::String(name)) => visitor.visit_enum(name.value().as_str().into_deserializer()),
            Node::Value(_) | Node::Tables(_) => Err(de::Error::custom("expected a name")),
        })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, TomlFault> {
        self.deserialize_seq(visitor)
    }

    single! {
        deserialize_bool deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16
        deserialize_i32 deserialize_i64 deserialize_f32 deserialize_f64 deserialize_char deserialize_string
        deserialize_identifier
    }
    forward_to_deserialize_any! { bytes byte_buf unit ignored_any unit_struct tuple_struct }
}

/// The parts of a list, each with its place.
struct ListParts<'a>(Box<dyn Iterator<Item = (Node<'a>, Span)> + 'a>);

impl<'de> SeqAccess<'de> for ListParts<'_> {
    type Error = TomlFault;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TomlFault> {
        let Some((part, span)) = self.0.next() else { return Ok(None) };
        seed.deserialize(part).map(Some).map_err(|fault| fault.within(span))
    }
}

struct Members<'a> {
    table: &'a dyn TableLike,
    rest: Box<dyn Iterator<Item = (&'a str, &'a Item)> + 'a>,
    /// The member whose key was read.
    open: Option<(Node<'a>, Span)>,
    /// The only keys that there may be.
    fields: Option<&'static [&'static str]>,
}

impl<'a> Members<'a> {
    fn of(table: &'a dyn TableLike) -> Self {
        Self { table, rest: table.iter(), open: None, fields: None }
    }

    /// The next key, with its place; its value waits.
    fn step(&mut self) -> Result<Option<(&'a str, Span)>, TomlFault> {
        let member = self.rest.by_ref().find_map(|(key, item)| Some((key, Node::of(item)?)));
        let Some((key, value)) = member else { return Ok(None) };
        let span = self.table.key(key).and_then(toml_edit::Key::span);
        if let Some(fields) = self.fields.filter(|fields| !fields.contains(&key)) {
            return Err(TomlFault::unknown_field(key, fields).within(span));
        }
        self.open = Some((value, span.clone()));
        Ok(Some((key, span)))
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = TomlFault;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, TomlFault> {
        let Some((key, span)) = self.step()? else { return Ok(None) };
        seed.deserialize(IntoDeserializer::<TomlFault>::into_deserializer(key))
            .map(Some)
            .map_err(|fault| fault.within(span))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, TomlFault> {
        let (value, span) = self.open.take().ok_or_else(|| de::Error::custom("a value without a key"))?;
        seed.deserialize(value).map_err(|fault| fault.within(span))
    }
}
