//! Lines of a telemetry file to rows: one descent per line, straight into [`RecordedEvent`], with damage counted on the way.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::Value as Json;

use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::damage::{Damage, Reason};
use crate::base::id::Id;
use crate::base::json::{Cursor, JsonFault, JsonKind, RawStr};
use crate::base::names::{Names, Sym};
use crate::facts::encode;
use crate::facts::inner_formats::InnerFormat;
use crate::logs::take::TakeLines;
use crate::logs::trace::Millis;
use crate::telemetry::field::{EventFields, Field, FieldValue, whole};
use crate::telemetry::log::{
    Decline, EncodedTokens, NO_FORMAT, NO_LATENCY, NO_ORDER, NO_STEP, RecordedAs, RecordedContent, RecordedEvent,
    RecordedPlan,
};
use crate::telemetry::{CONTEXT_EVENT, SessionSummary};

/// Places on one line at which a record is looked for behind a broken one.
const ATTEMPTS_MAX: usize = 64;

/// [`RecordedEvent::chain`] of the main thread until all files are read.
pub(super) const MAIN: u32 = 0;
/// The same of a subagent without a name. Behind it come those with one, by symbol.
pub(super) const SIDE: u32 = 1;

/// What was found in a file, or in a piece of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseCounts {
    /// Lines, blank ones included.
    pub lines: u64,
    /// Events taken: the "read" of the published reader.
    pub events: u64,
    /// Session summaries, whatever their time.
    pub summaries: u64,
    /// Events outside the window.
    pub outside_window: u64,
    /// First and last time of these.
    pub outside_span_ms: Option<(Millis, Millis)>,
    /// Records and broken stretches of lines that gave nothing.
    pub skipped: u64,
    /// Why, and what else was odd.
    pub damage: Damage,
}

impl ParseCounts {
    /// Takes over the counts of the piece that follows.
    pub(super) fn absorb(&mut self, later: &Self) {
        self.damage.absorb(&later.damage, self.lines);
        self.lines += later.lines;
        self.events += later.events;
        self.summaries += later.summaries;
        self.outside_window += later.outside_window;
        if let Some((first, last)) = later.outside_span_ms {
            self.see_outside(first, last);
        }
        self.skipped += later.skipped;
    }

    fn see_outside(&mut self, first: Millis, last: Millis) {
        let (since, until) = self.outside_span_ms.unwrap_or((first, last));
        self.outside_span_ms = Some((since.min(first), until.max(last)));
    }
}

/// Texts that rows name by symbol.
#[derive(Debug, Default)]
pub(super) struct RowTexts {
    /// Tools and endpoints.
    pub(super) names: Names,
    /// [`RecordedEvent::session`].
    pub(super) sessions: Names,
    /// Subagents; [`RecordedEvent::chain`] is one more than the symbol.
    pub(super) agents: Names,
}

/// What a piece gave.
#[derive(Debug, Default)]
pub(super) struct ParsedRows {
    pub(super) events: Vec<RecordedEvent>,
    pub(super) encodings: Vec<EncodedTokens>,
    pub(super) counts: ParseCounts,
}

/// Turns the lines of one piece after the other into rows.
pub(super) struct Parser<'r> {
    window: &'r Range<Millis>,
    pub(super) texts: RowTexts,
    /// The session of the event before: mostly that of the next one too.
    session: Sym,
    pub(super) rows: ParsedRows,
}

impl TakeLines for Parser<'_> {
    fn line(&mut self, line: &[u8], last: bool) {
        self.rows.counts.lines += 1;
        let line = self.trim(line);
        if line.is_empty() {
            return;
        }
        if let Ok(line) = simdutf8::basic::from_utf8(line) {
            self.values(line, last);
        } else {
            self.damage(Reason::InvalidUtf8);
            self.values(&String::from_utf8_lossy(line), last);
        }
    }

    fn oversize_line(&mut self) {
        self.rows.counts.lines += 1;
        self.skip(Reason::Oversize);
    }

    fn file_damage(&mut self, reason: Reason) {
        self.rows.counts.damage.add(reason, 0);
    }
}

impl<'r> Parser<'r> {
    pub(super) fn new(window: &'r Range<Millis>) -> Self {
        Self { window, texts: RowTexts::default(), session: Sym::default(), rows: ParsedRows::default() }
    }

    fn damage(&mut self, reason: Reason) {
        self.rows.counts.damage.add(reason, self.rows.counts.lines);
    }

    fn skip(&mut self, reason: Reason) {
        self.rows.counts.skipped += 1;
        self.damage(reason);
    }

    /// Takes off what may stand around a record, and counts it.
    fn trim<'a>(&mut self, mut line: &'a [u8]) -> &'a [u8] {
        if let Some(rest) = line.strip_suffix(b"\r") {
            self.damage(Reason::Crlf);
            line = rest;
        }
        if let Some(rest) = line.strip_prefix(b"\xEF\xBB\xBF") {
            self.damage(Reason::Bom);
            line = rest;
        }
        let padding = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | 0);
        let (Some(start), Some(end)) =
            (line.iter().position(|byte| !padding(byte)), line.iter().rposition(|byte| !padding(byte)))
        else {
            self.damage(if line.contains(&0) { Reason::Nul } else { Reason::BlankLine });
            return &[];
        };
        if line[..start].contains(&0) || line[end + 1..].contains(&0) {
            self.damage(Reason::Nul);
        }
        &line[start..=end]
    }

    /// All values on a line: normally one record. Behind a broken one it goes on where the next record begins.
    fn values(&mut self, line: &str, last: bool) {
        let mut cursor = Cursor::new(line.as_bytes());
        let (mut whole, mut attempts) = (0, ATTEMPTS_MAX);
        while !cursor.at_end() {
            let start = cursor.pos();
            match self.value(&mut cursor, line) {
                Ok(()) => whole += 1,
                Err(fault) => match next_record(line.as_bytes(), start, &mut attempts) {
                    Some(next) => {
                        self.skip(Reason::TornRecord);
                        cursor = Cursor::at(line.as_bytes(), next);
                    }
                    None => {
                        self.skip(reason_of(fault, last));
                        break;
                    }
                },
            }
        }
        if whole > 1 {
            self.damage(Reason::Glued);
        }
    }

    fn value<'l>(&mut self, cursor: &mut Cursor<'l>, line: &'l str) -> Result<(), JsonFault> {
        let reason = match cursor.shape()? {
            JsonKind::Object => {
                let mut fields = EventFields::none();
                fields.read(cursor)?;
                self.record(&fields, line);
                return Ok(());
            }
            JsonKind::Array => Reason::Array,
            _ => Reason::Scalar,
        };
        cursor.skip_value()?;
        self.skip(reason);
        Ok(())
    }

    fn record<'l>(&mut self, fields: &EventFields<'l>, line: &'l str) {
        let taken = match (fields.summary(), fields.wrapped(CONTEXT_EVENT)) {
            (Some(data), _) => self.summary(data),
            (None, Some(data)) => self.beside(data, line),
            (None, None) => self.event(fields, line),
        };
        if let Err(reason) = taken {
            self.skip(reason);
        }
    }

    fn summary(&mut self, data: &[u8]) -> Result<(), Reason> {
        let mut data: Json = serde_json::from_slice(data).map_err(|_| Reason::ParseError)?;
        if let Json::Object(fields) = &mut data {
            // What is no number is written as null.
            fields.retain(|_, value| !value.is_null());
        }
        // Nothing is taken out of a summary; it only has to be one.
        let _: SessionSummary = serde_json::from_value(data).map_err(|_| Reason::MistypedField)?;
        self.rows.counts.summaries += 1;
        Ok(())
    }

    /// What happened besides the responses.
    fn beside<'l>(&mut self, data: &'l [u8], line: &'l str) -> Result<(), Reason> {
        let mut fields = EventFields::none();
        fields.read(&mut Cursor::new(data)).map_err(not_json)?;
        match fields.get(Field::What) {
            FieldValue::Absent => Err(Reason::MissingField),
            _ => self.event(&fields, line),
        }
    }

    fn event<'l>(&mut self, fields: &EventFields<'l>, line: &'l str) -> Result<(), Reason> {
        if let Some(defect) = fields.defect() {
            return Err(defect);
        }
        let ts = fields.whole(Field::Time).ok_or(Reason::MissingField)?;
        if !self.window.contains(&ts) {
            // What happened besides the responses is no event of them.
            if matches!(fields.get(Field::What), FieldValue::Absent) {
                self.rows.counts.outside_window += 1;
                self.rows.counts.see_outside(ts, ts);
            }
            return Ok(());
        }
        let mut odd = Odd { line, mistyped: fields.has_mistyped(), ..Odd::default() };
        let event = self.row(fields, ts, &mut odd)?;
        self.rows.events.push(event);
        self.rows.counts.events += u64::from(event.what == RecordedAs::Response);
        for (reason, seen) in odd.reasons() {
            if seen {
                self.damage(reason);
            }
        }
        Ok(())
    }

    /// The row of an event whose fields are all there.
    fn row<'l>(&mut self, fields: &EventFields<'l>, ts: Millis, odd: &mut Odd<'l>) -> Result<RecordedEvent, Reason> {
        let call = u32::from_be_bytes(hash_of(fields.text(Field::Call), odd)?);
        let path = u32::from_be_bytes(hash_of(fields.text(Field::Path), odd)?);
        let body = Id(hash_of(fields.text(Field::Content), odd)?);
        let inner_formats = Self::inner_formats(fields.span(Field::InnerFormats), odd)?;
        let (encodings_start, encodings_count) = self.encodings(fields.span(Field::Encodings), odd)?;
        let mut word = |field| text(fields.text(field), odd);
        let (session, agent, tool) = (word(Field::Session)?, word(Field::Agent)?, word(Field::Tool)?);
        let is_tool = fields.text(Field::Endpoint) == fields.text(Field::Tool);
        let endpoint = if is_tool { None } else { Some(word(Field::Endpoint)?) };
        let (shape, layer, declined) = (word(Field::Shape)?, word(Field::Layer)?, word(Field::Declined)?);
        let (template, l2_format, race) = (word(Field::Template)?, word(Field::L2Format)?, word(Field::Race)?);
        let what = recorded_as(&word(Field::What)?).ok_or(Reason::UnknownValue)?;
        let order = fields.whole(Field::Order).map_or(NO_ORDER, |_| fields.count(Field::Order));
        let shape = odd.known(&shape, |key| key.parse().ok()).unwrap_or(BodyShape::Unknown) as u8;
        // A hint was shown by L0, whether the recorder says so or only flags it.
        let is_flagged = layer.is_empty() && fields.flag(Field::DedupHit) == Some(true);
        let unsaid = if is_flagged { LayerId::L0 } else { LayerId::L3 };
        let layer = odd.known(&layer, |word| word.parse().ok()).unwrap_or(unsaid);
        let is_declined = !declined.is_empty();
        let declined = odd.known(&declined, decline_of).or(is_declined.then_some(Decline::Other));
        let formats = [&template, &l2_format].map(|word| odd.known(word, format_of));
        let format = match layer {
            LayerId::L1 => formats[0],
            LayerId::L2 => formats[1],
            LayerId::L0 | LayerId::L3 => None,
        };
        // Nothing can fail from here on: what is skipped leaves no name behind.
        let tool = self.texts.names.intern(&tool);
        Ok(RecordedEvent {
            session: self.session_of(&session),
            chain: self.chain_of(&agent, fields.flag(Field::Sidechain) == Some(true)),
            partition: fields.count(Field::Partition),
            step: fields.whole(Field::Step).map_or(NO_STEP, |_| fields.count(Field::Step)),
            ts,
            latency_ms: NO_LATENCY,
            call,
            tool,
            endpoint: endpoint.map_or(tool, |endpoint| self.texts.names.intern(&endpoint)),
            path,
            body,
            bytes: fields.count(Field::Bytes),
            shape,
            inner_formats,
            depth: fields.count(Field::Depth).try_into().unwrap_or(u8::MAX),
            columns: fields.count(Field::Columns).try_into().unwrap_or(u16::MAX),
            rows: fields.count(Field::Rows),
            items: fields.count(Field::Items),
            key_stability: fields.real(Field::KeyStability).map_or(f32::NAN, |share| share as f32),
            layer,
            format: format.unwrap_or(NO_FORMAT),
            baseline: fields.count(Field::Baseline),
            sent: fields.count(Field::Sent),
            weight: fields.real(Field::Rate).map_or(1.0, stride),
            content: content_of(fields),
            handle_tokens: fields.count(Field::HandleTokens) as u8,
            order,
            what,
            plan: RecordedPlan {
                prefetched: fields.flag(Field::Prefetched) == Some(true),
                predicted: fields.count(Field::Predicted),
                cited: fields.flag(Field::Cited),
                declined,
                race: odd.known(&race, |word| word.parse().ok()),
            },
            encodings_start,
            encodings_count,
        })
    }

    fn session_of(&mut self, text: &str) -> u32 {
        if self.texts.sessions.text(self.session) != text {
            self.session = self.texts.sessions.intern(text);
        }
        self.session.0
    }

    fn chain_of(&mut self, agent: &str, sidechain: bool) -> u32 {
        match (agent, sidechain) {
            ("", false) => MAIN,
            ("", true) => SIDE,
            // Symbol 0 is the empty text, so the first named one comes behind `SIDE`.
            _ => self.texts.agents.intern(agent).0 + SIDE,
        }
    }

    /// The bits of a list of inner formats. A list that is none counts as absent.
    fn inner_formats<'l>(span: Option<&'l [u8]>, odd: &mut Odd<'l>) -> Result<u16, Reason> {
        let Some(mut cursor) = span.map(Cursor::new) else { return Ok(0) };
        let mut bits = 0;
        let mut first = cursor.enter().map_err(not_json)?;
        while cursor.next_element(&mut first).map_err(not_json)? {
            if cursor.shape().map_err(not_json)? != JsonKind::String {
                odd.mistyped = true;
                return Ok(0);
            }
            let tag = text(cursor.string().map_err(not_json)?, odd)?;
            bits |= odd.known(&tag, |tag| tag.parse().ok().map(InnerFormat::bit)).unwrap_or_default();
        }
        Ok(bits)
    }

    /// The known encodings of a list of `[format, depth, tokens]`. A list that is none counts as absent.
    fn encodings<'l>(&mut self, span: Option<&'l [u8]>, odd: &mut Odd<'l>) -> Result<(u32, u8), Reason> {
        let start = self.rows.encodings.len();
        if let Some(span) = span
            && let Err(reason) = self.push_encodings(span, odd)
        {
            if reason != Reason::MistypedField {
                return Err(reason);
            }
            odd.mistyped = true;
            self.rows.encodings.truncate(start);
        }
        let count = u8::try_from(self.rows.encodings.len() - start).map_err(|_| Reason::OutOfRange)?;
        let first = u32::try_from(start).expect("fewer than 2^32 encodings in a piece");
        Ok(if count == 0 { (0, 0) } else { (first, count) })
    }

    fn push_encodings<'l>(&mut self, span: &'l [u8], odd: &mut Odd<'l>) -> Result<(), Reason> {
        let mut cursor = Cursor::new(span);
        let mut first = cursor.enter().map_err(not_json)?;
        while cursor.next_element(&mut first).map_err(not_json)? {
            let entry = encoding(&mut cursor, odd)?;
            self.rows.encodings.extend(entry);
        }
        Ok(())
    }
}

/// What was odd about an event that is kept all the same.
#[derive(Default)]
struct Odd<'l> {
    /// The line on which it stands.
    line: &'l str,
    mistyped: bool,
    unknown: bool,
    lone_surrogate: bool,
}

impl Odd<'_> {
    fn reasons(&self) -> [(Reason, bool); 3] {
        [
            (Reason::MistypedField, self.mistyped),
            (Reason::UnknownValue, self.unknown),
            (Reason::LoneSurrogate, self.lone_surrogate),
        ]
    }

    /// Looks a word up; an empty one is none.
    fn known<T>(&mut self, word: &str, look_up: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        if word.is_empty() {
            return None;
        }
        let found = look_up(word);
        self.unknown |= found.is_none();
        found
    }
}

/// Where the next record begins behind a broken one: a writer was killed, the next one appended. Nested objects do not
/// qualify, since they lack the fields of a record.
fn next_record(line: &[u8], broken: usize, attempts: &mut usize) -> Option<usize> {
    let from = broken + 1;
    for offset in memmem::find_iter(line.get(from..)?, b"{\"") {
        *attempts = attempts.checked_sub(1)?;
        let mut fields = EventFields::none();
        let read = fields.read(&mut Cursor::at(line, from + offset));
        if read.is_ok() && (fields.is_complete() || fields.summary().is_some()) {
            return Some(from + offset);
        }
    }
    None
}

fn reason_of(fault: JsonFault, last: bool) -> Reason {
    match fault {
        JsonFault::TooDeep => Reason::TooDeep,
        JsonFault::Torn if last => Reason::TornTail,
        JsonFault::Torn | JsonFault::Syntax => Reason::ParseError,
    }
}

fn not_json(_: JsonFault) -> Reason {
    Reason::ParseError
}

/// The text between the quotes. The line is UTF-8, and so is every stretch of it between ASCII bytes: to look for it there
/// takes less time than to prove it once more.
fn text<'l>(raw: RawStr<'l>, odd: &mut Odd<'l>) -> Result<Cow<'l, str>, Reason> {
    if raw.0.is_empty() {
        return Ok(Cow::Borrowed(""));
    }
    if let Some(plain) = raw.plain() {
        let start = plain.as_ptr().addr().wrapping_sub(odd.line.as_ptr().addr());
        let text = odd.line.get(start..start.wrapping_add(plain.len()));
        return text.map(Cow::Borrowed).ok_or(Reason::ParseError);
    }
    let decoded = raw.decode().ok_or(Reason::ParseError)?;
    Ok(Cow::Owned(String::from_utf8(decoded.into_owned()).unwrap_or_else(|broken| {
        odd.lone_surrogate = true;
        String::from_utf8_lossy(broken.as_bytes()).into_owned()
    })))
}

/// One `[format, depth, tokens]`; none if the format is not known.
fn encoding<'l>(cursor: &mut Cursor<'l>, odd: &mut Odd<'l>) -> Result<Option<EncodedTokens>, Reason> {
    if cursor.shape().map_err(not_json)? != JsonKind::Array {
        return Err(Reason::MistypedField);
    }
    let mut first = cursor.enter().map_err(not_json)?;
    let mut next = |cursor: &mut Cursor<'_>, wanted: JsonKind| -> Result<(), Reason> {
        let more = cursor.next_element(&mut first).map_err(not_json)?;
        let fits = more && cursor.shape().map_err(not_json)? == wanted;
        fits.then_some(()).ok_or(Reason::MistypedField)
    };
    next(cursor, JsonKind::String)?;
    let name = text(cursor.string().map_err(not_json)?, odd)?;
    next(cursor, JsonKind::Number)?;
    let depth = count(cursor, u8::MAX.into())? as u8;
    next(cursor, JsonKind::Number)?;
    let tokens = count(cursor, u32::MAX)?;
    if cursor.next_element(&mut first).map_err(not_json)? {
        return Err(Reason::MistypedField);
    }
    Ok(odd.known(&name, format_of).map(|format| EncodedTokens { format, depth, tokens }))
}

fn count(cursor: &mut Cursor<'_>, most: u32) -> Result<u32, Reason> {
    let mut value = FieldValue::Absent;
    whole(cursor, most.into(), &mut value).map_err(not_json)?;
    match value {
        FieldValue::Whole(number) => u32::try_from(number).map_err(|_| Reason::OutOfRange),
        FieldValue::OutOfRange => Err(Reason::OutOfRange),
        _ => Err(Reason::MistypedField),
    }
}

/// Calls of which one was recorded: recorders take every n-th, whatever the exact rate (pipeline-compat.md 10.4), and reckon
/// in single precision.
fn stride(rate: f64) -> f64 {
    f64::from((1.0 / rate as f32).round()).max(1.0)
}

/// The number of a format in [`RecordedEvent::format`].
fn format_of(id: &str) -> Option<u8> {
    encode::find(id).map(|(number, _)| number)
}

fn content_of(fields: &EventFields<'_>) -> RecordedContent {
    let is_set = |field| fields.flag(field) == Some(true);
    match (is_set(Field::Mixed), is_set(Field::Preview)) {
        (true, _) => RecordedContent::Mixed,
        (false, true) => RecordedContent::Preview,
        (false, false) => RecordedContent::Text,
    }
}

/// What a record is, by its word; none for a word that is not known.
fn recorded_as(word: &str) -> Option<RecordedAs> {
    match word {
        "" => Some(RecordedAs::Response),
        word => RecordedAs::BESIDE.into_iter().find(|known| known.into_str() == word),
    }
}

fn decline_of(key: &str) -> Option<Decline> {
    Decline::KNOWN.into_iter().find(|reason| reason.into_str() == key)
}

/// The first `N` bytes of SHA-256 that are written as twice as many hex digits; none for an empty text. Some recorders
/// write the thing itself: then it is hashed here.
fn hash_of<'l, const N: usize>(raw: RawStr<'l>, odd: &mut Odd<'l>) -> Result<[u8; N], Reason> {
    let mut bytes = [0; N];
    if !raw.0.is_empty() && !from_hex(raw.0, &mut bytes) {
        let Id(hash) = Id::pseudonym(text(raw, odd)?.as_bytes());
        bytes.copy_from_slice(&hash[..N]);
    }
    Ok(bytes)
}

fn from_hex(digits: &[u8], bytes: &mut [u8]) -> bool {
    let (pairs, rest) = digits.as_chunks();
    let mut seen = 0;
    for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
        let [high, low] = [high, low].map(|digit| NIBBLES[usize::from(digit)]);
        seen |= high | low;
        *byte = high << 4 | low;
    }
    rest.is_empty() && pairs.len() == bytes.len() && seen <= 0xF
}

/// What each byte is worth as a hex digit; more than any is where it is none.
const NIBBLES: [u8; 256] = {
    let mut nibbles = [u8::MAX; 256];
    let mut digit = 0;
    while digit < 16 {
        nibbles[b"0123456789abcdef"[digit] as usize] = digit as u8;
        nibbles[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    nibbles
};
