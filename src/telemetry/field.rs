//! The fields of a recorded response as they stand on the line: which names are known, what kind of value each must
//! have, and what was found. Nothing is allocated here.

use crate::base::damage::Reason;
use crate::base::json::{Cursor, JsonKind, RawStr};
use crate::logs::field::{FieldResult, span};
use crate::telemetry::log::{NO_ORDER, NO_STEP};

/// How many fields are known.
const COUNT: usize = Field::Data as usize + 1;

/// What must stand in a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FieldKind {
    /// A string.
    Text,
    /// A whole number from 0 to this.
    Count(u32),
    /// A whole number.
    Time,
    /// `true` or `false`.
    Flag,
    /// A number above 0 and at most 1.
    Rate,
    /// A number from 0 to 1.
    Share,
    /// An array.
    List,
    /// Anything.
    Any,
}

struct SchemaField {
    name: &'static str,
    kind: FieldKind,
    /// Without it there is no event.
    needed: bool,
}

const fn needed(name: &'static str, kind: FieldKind) -> SchemaField {
    SchemaField { name, kind, needed: true }
}

const fn optional(name: &'static str, kind: FieldKind) -> SchemaField {
    SchemaField { name, kind, needed: false }
}

macro_rules! schema {
    ($($field:ident: $known:expr,)+) => {
        /// A field of the published schema or one of devboy's additions, in the order in which they are written.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Field {
            $($field),+
        }

        /// Every known field at the place of its number.
        const KNOWN: [SchemaField; COUNT] = [$($known),+];

        impl<'a> EventFields<'a> {
            /// Takes the fields that stand in the order in which they are written. Each is looked for where its name and kind
            /// are known to the compiler: they take a sixth less time.
            fn take_in_order(&mut self, cursor: &mut Cursor<'a>, first: &mut bool) -> FieldResult<()> {
                $(
                    if cursor.take_key(first, const { $known.name.as_bytes() }) {
                        self.take(Field::$field as usize, const { $known.kind }, cursor)?;
                    }
                )+
                Ok(())
            }
        }
    };
}

schema! {
    Session: needed("session_hash", FieldKind::Text),
    Call: needed("tool_call_id_hash", FieldKind::Text),
    Tool: needed("tool_name_anon", FieldKind::Text),
    Endpoint: needed("endpoint_class", FieldKind::Text),
    Bytes: needed("response_chars", FieldKind::Count(u32::MAX)),
    Shape: needed("shape", FieldKind::Text),
    InnerFormats: optional("inner_formats", FieldKind::List),
    Content: optional("content_sha_prefix_hex", FieldKind::Text),
    Path: optional("file_path_hash", FieldKind::Text),
    DedupHit: needed("is_dedup_hit", FieldKind::Flag),
    Layer: optional("layer_used", FieldKind::Text),
    Template: optional("template_id", FieldKind::Text),
    Baseline: needed("tokens_baseline", FieldKind::Count(u32::MAX)),
    Sent: needed("tokens_final", FieldKind::Count(u32::MAX)),
    Partition: needed("context_partition", FieldKind::Count(u32::MAX)),
    Sidechain: needed("is_sidechain", FieldKind::Flag),
    Time: needed("ts_ms", FieldKind::Time),
    Rate: optional("sample_rate_applied", FieldKind::Rate),
    L2Format: optional("l2_format", FieldKind::Text),
    Depth: optional("depth_max", FieldKind::Count(u16::MAX as u32)),
    Columns: optional("n_cols", FieldKind::Count(u32::MAX)),
    Rows: optional("n_rows", FieldKind::Count(u32::MAX)),
    KeyStability: optional("key_stability", FieldKind::Share),
    Agent: optional("agent_chain", FieldKind::Text),
    Items: optional("n_items", FieldKind::Count(u32::MAX)),
    Step: optional("step", FieldKind::Count(NO_STEP - 1)),
    Mixed: optional("mixed", FieldKind::Flag),
    Preview: optional("preview", FieldKind::Flag),
    HandleTokens: optional("handle_tokens", FieldKind::Count(u8::MAX as u32)),
    Encodings: optional("encodings", FieldKind::List),
    Prefetched: optional("enricher_prefetched", FieldKind::Flag),
    Predicted: optional("enricher_predicted_cost_tokens", FieldKind::Count(u32::MAX)),
    Declined: optional("enricher_decline_reason", FieldKind::Text),
    Cited: optional("cited_in_next_n_turns", FieldKind::Flag),
    Race: optional("enricher_race", FieldKind::Text),
    Order: optional("call_order", FieldKind::Count(NO_ORDER - 1)),
    What: optional("what", FieldKind::Text),
    Type: optional("type", FieldKind::Any),
    Data: optional("data", FieldKind::Any),
}

/// One bit for each field without which there is no event.
const NEEDED: u64 = {
    let (mut bits, mut place) = (0, 0);
    while place < COUNT {
        bits |= (KNOWN[place].needed as u64) << place;
        place += 1;
    }
    bits
};

/// What stood in a field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum FieldValue<'a> {
    /// Nothing, or `null`.
    Absent,
    /// A value of another kind.
    Mistyped,
    /// A number that cannot be.
    OutOfRange,
    Text(RawStr<'a>),
    /// A whole number; `true` is 1.
    Whole(i64),
    Real(f64),
    /// An array or a value of any kind, as it is spelled.
    Span(&'a [u8]),
}

/// The end of 2199: what lies behind it is no time in milliseconds.
const TIME_MS_MAX: i64 = 7_258_118_399_999;
/// No recorder writes fewer than one event of a million.
const RATE_MIN: f64 = 1e-6;

impl FieldKind {
    /// Reads the value at the cursor into its slot: passing it on by value costs more than all the rest.
    #[inline(always)]
    fn read<'a>(self, cursor: &mut Cursor<'a>, slot: &mut FieldValue<'a>) -> FieldResult<()> {
        match (self, cursor.shape()?) {
            (Self::Text, JsonKind::String) => *slot = FieldValue::Text(cursor.string()?),
            (Self::Count(most), JsonKind::Number) => whole(cursor, most.into(), slot)?,
            (Self::Time, JsonKind::Number) => whole(cursor, TIME_MS_MAX, slot)?,
            (Self::Flag, JsonKind::Bool) => *slot = FieldValue::Whole(cursor.boolean()?.into()),
            (Self::Rate, JsonKind::Number) => {
                *slot = real(cursor.number()?, |rate| (RATE_MIN..=1.0).contains(&rate));
            }
            (Self::Share, JsonKind::Number) => *slot = real(cursor.number()?, |share| (0.0..=1.0).contains(&share)),
            (Self::List, JsonKind::Array) | (Self::Any, _) => *slot = FieldValue::Span(span(cursor)?),
            (_, shape) => {
                cursor.skip_value()?;
                *slot = if shape == JsonKind::Null { FieldValue::Absent } else { FieldValue::Mistyped };
            }
        }
        Ok(())
    }
}

/// Reads the whole number at the cursor, from 0 to `most`, into its slot.
pub(super) fn whole(cursor: &mut Cursor<'_>, most: i64, slot: &mut FieldValue<'_>) -> FieldResult<()> {
    let number = match cursor.plain_number() {
        Some(number) => Some(number),
        None => {
            let text = cursor.number()?;
            if text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
                *slot = FieldValue::Mistyped;
                return Ok(());
            }
            std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
        }
    };
    let possible = number.filter(|number| (0..=most).contains(number));
    *slot = possible.map_or(FieldValue::OutOfRange, FieldValue::Whole);
    Ok(())
}

fn real(text: &[u8], possible: impl Fn(f64) -> bool) -> FieldValue<'static> {
    // By far the most frequent one, and the general way is long.
    if text == b"1.0" {
        return FieldValue::Real(1.0);
    }
    match std::str::from_utf8(text).map(str::parse) {
        Ok(Ok(number)) if possible(number) => FieldValue::Real(number),
        _ => FieldValue::OutOfRange,
    }
}

/// The known fields of one JSON object.
pub(super) struct EventFields<'a> {
    values: [FieldValue<'a>; COUNT],
    /// One bit per field: needed and not there.
    missing: u64,
    /// One bit per field: of another kind, or a number that cannot be.
    wrong: u64,
}

impl<'a> EventFields<'a> {
    /// None of them.
    pub(super) fn none() -> Self {
        Self { values: [FieldValue::Absent; COUNT], missing: NEEDED, wrong: 0 }
    }

    /// Reads the object at the cursor to its end, where it stands: moved, it costs as much again. Of a repeated field the last
    /// one stands.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>) -> FieldResult<()> {
        let mut first = cursor.enter()?;
        self.take_in_order(cursor, &mut first)?;
        let mut guess = 0;
        while let Some(key) = cursor.next_key(&mut first)? {
            match place_of(key, guess) {
                Some(place) => {
                    guess = place + 1;
                    self.take(place, KNOWN[place].kind, cursor)?;
                }
                None => cursor.skip_value()?,
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self, place: usize, kind: FieldKind, cursor: &mut Cursor<'a>) -> FieldResult<()> {
        kind.read(cursor, &mut self.values[place])?;
        let bit = 1 << place;
        (self.missing, self.wrong) = (self.missing & !bit, self.wrong & !bit);
        match self.values[place] {
            FieldValue::Absent => self.missing |= bit & NEEDED,
            FieldValue::Mistyped | FieldValue::OutOfRange => self.wrong |= bit,
            _ => {}
        }
        Ok(())
    }

    /// What stands in a field.
    pub(super) fn get(&self, field: Field) -> FieldValue<'a> {
        self.values[field as usize]
    }

    /// The text of a field; empty where there is none.
    pub(super) fn text(&self, field: Field) -> RawStr<'a> {
        if let FieldValue::Text(text) = self.get(field) { text } else { RawStr::default() }
    }

    /// The whole number of a field.
    pub(super) fn whole(&self, field: Field) -> Option<i64> {
        if let FieldValue::Whole(number) = self.get(field) { Some(number) } else { None }
    }

    /// The count of a field; 0 where there is none.
    pub(super) fn count(&self, field: Field) -> u32 {
        self.whole(field).map_or(0, |count| u32::try_from(count).expect("counts are read within 32 bits"))
    }

    /// The number of a field.
    pub(super) fn real(&self, field: Field) -> Option<f64> {
        if let FieldValue::Real(number) = self.get(field) { Some(number) } else { None }
    }

    /// What a field says.
    pub(super) fn flag(&self, field: Field) -> Option<bool> {
        self.whole(field).map(|flag| flag != 0)
    }

    /// The array of a field.
    pub(super) fn span(&self, field: Field) -> Option<&'a [u8]> {
        if let FieldValue::Span(span) = self.get(field) { Some(span) } else { None }
    }

    /// Whether all fields are there without which there is no event.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Why this cannot be an event; none if it can.
    pub(super) fn defect(&self) -> Option<Reason> {
        if self.missing != 0 {
            return Some(Reason::MissingField);
        }
        if self.wrong == 0 {
            return None;
        }
        if self.values.iter().zip(&KNOWN).any(|(value, known)| known.needed && *value == FieldValue::Mistyped) {
            return Some(Reason::MistypedField);
        }
        self.values.contains(&FieldValue::OutOfRange).then_some(Reason::OutOfRange)
    }

    /// Whether a field has a value of another kind, once there is no [`Self::defect`].
    pub(super) fn has_mistyped(&self) -> bool {
        self.wrong != 0
    }

    /// The data of a session summary, if this is one: published readers go by `type` and the presence of `data`.
    pub(super) fn summary(&self) -> Option<&'a [u8]> {
        self.wrapped("session_summary")
    }

    /// What a line of this type wraps.
    pub(super) fn wrapped(&self, wanted: &str) -> Option<&'a [u8]> {
        let kind = self.span(Field::Type)?;
        let data = self.span(Field::Data)?;
        let kind = kind.first().filter(|quote| **quote == b'"').and_then(|_| Cursor::new(kind).string().ok())?;
        kind.decode().is_some_and(|text| *text == *wanted.as_bytes()).then_some(data)
    }
}

/// The place of a key. Writers keep to one order, so it is looked for from `guess` on.
fn place_of(key: RawStr<'_>, guess: usize) -> Option<usize> {
    let stands = |key: &[u8], place: usize| KNOWN[place].name.as_bytes() == key;
    if guess < COUNT && stands(key.0, guess) {
        return Some(guess);
    }
    let find = |key: &[u8]| (guess..COUNT).chain(0..guess).find(|&place| stands(key, place));
    find(key.0).or_else(|| match key.plain() {
        Some(_) => None,
        None => find(&key.decode()?),
    })
}
