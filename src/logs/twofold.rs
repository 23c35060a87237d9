//! Rows and timeline of a file from one walk through it, for who needs both.

use crate::base::damage::Reason;
use crate::base::json::{Cursor, RawStr, TextSink};
use crate::logs::content::{BlockFields, TakeContent};
use crate::logs::envelope::Envelope;
use crate::logs::field::FieldResult;
use crate::logs::message;
use crate::logs::read::FileReading;
use crate::logs::record::{Extractor, is_passed_over};
use crate::logs::take::TakeRecords;
use crate::logs::timeline::{TimelineReader, content};
use crate::logs::trace::Counters;

/// Reads a file from its first line to its last.
pub struct Twofold<'v, 'g, 't> {
    /// Who makes the rows. What is counted is counted here.
    pub light: Extractor<'v>,
    pub timeline: TimelineReader<'g, 't>,
}

impl Twofold<'_, '_, '_> {
    /// What was made of the file, with how reading it ended.
    pub fn finish(self, end: FileReading) -> FileReading {
        FileReading { trace: self.light.finish(), timeline: Some(self.timeline.finish().0), ..end }
    }
}

impl TakeRecords for Twofold<'_, '_, '_> {
    fn counters(&mut self) -> &mut Counters {
        self.light.counters()
    }

    /// Each takes what it would take alone: of records that the light reading passes over, all that it has seen by then.
    fn record(&mut self, cursor: &mut Cursor<'_>) -> FieldResult<()> {
        self.light.draft.clear();
        let mut passed_over = None;
        let mut drafts = Drafts { light: Some(&mut self.light.draft), timeline: &mut self.timeline.draft };
        let read = Envelope::read_until(cursor, &mut drafts, |envelope, cursor, drafts| {
            if drafts.light.is_some() && is_passed_over(envelope, cursor.rest()) {
                passed_over = Some(*envelope);
                drafts.light = None;
            }
            false
        });
        self.timeline.counters.items = self.light.counters().items;
        if let Some(seen) = passed_over {
            self.light.commit(&seen);
            cursor.jump_to_end();
        } else if let Ok(envelope) = &read {
            self.light.commit(envelope);
        }
        match read {
            Ok(envelope) => self.timeline.take(&envelope),
            Err(fault) if passed_over.is_none() => return Err(fault),
            Err(_) => {}
        }
        Ok(())
    }
}

/// What both keep of a message.
struct Drafts<'d, 'v> {
    /// None once the light reading passes over the rest.
    light: Option<&'d mut message::MessageDraft<'v>>,
    timeline: &'d mut content::ContentDraft,
}

impl TextSink for Drafts<'_, '_> {
    fn push(&mut self, piece: &[u8]) {
        self.light.iter_mut().for_each(|light| light.result_text().push(piece));
        self.timeline.result_text().push(piece);
    }

    fn lone_surrogate(&mut self) {
        self.light.iter_mut().for_each(|light| light.result_text().lone_surrogate());
    }
}

impl<'a> TakeContent<'a> for Drafts<'_, '_> {
    type Text = Self;

    /// What is odd is counted by the light reading.
    fn odd(&mut self, reason: Reason) {
        self.light.iter_mut().for_each(|light| light.odd(reason));
    }

    fn begin(&mut self) {
        self.light.iter_mut().for_each(|light| light.begin());
        self.timeline.begin();
    }

    fn string(&mut self, text: RawStr<'a>) {
        self.light.iter_mut().for_each(|light| light.string(text));
        self.timeline.string(text);
    }

    fn begin_result(&mut self) {
        self.light.iter_mut().for_each(|light| light.begin_result());
        self.timeline.begin_result();
    }

    fn result_text(&mut self) -> &mut Self {
        self
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        self.light.iter_mut().for_each(|light| light.block(block));
        self.timeline.block(block);
    }
}
