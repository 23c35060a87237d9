//! Rows and timeline of a file from one walk through it, for who needs both.

use crate::base::damage::Reason;
use crate::base::json::{Cursor, RawStr, TextSink};
use crate::logs::content::{Block, TakeContent};
use crate::logs::envelope::Envelope;
use crate::logs::field::Outcome;
use crate::logs::message;
use crate::logs::record::{Extractor, is_passed_over};
use crate::logs::take::TakeRecords;
use crate::logs::timeline::rows::FileTimeline;
use crate::logs::timeline::{Reader, content};
use crate::logs::trace::{Counters, FileTrace};

/// Reads a file from its first line to its last.
pub struct Twofold<'v, 'g, 't> {
    /// Who makes the rows. What is counted is counted here.
    pub light: Extractor<'v>,
    /// Who makes the timeline.
    pub timeline: Reader<'g, 't>,
}

impl Twofold<'_, '_, '_> {
    /// What was made of the file.
    pub fn finish(self) -> (FileTrace, FileTimeline) {
        (self.light.finish(), self.timeline.finish().0)
    }
}

impl TakeRecords for Twofold<'_, '_, '_> {
    fn counters(&mut self) -> &mut Counters {
        self.light.counters()
    }

    /// Each takes what it would take alone: of records that the light reading passes over, all that it has seen by then.
    fn record(&mut self, cursor: &mut Cursor<'_>) -> Outcome<()> {
        self.light.draft.clear();
        let mut passed_over = None;
        let mut drafts =
            Drafts { light: &mut self.light.draft, timeline: &mut self.timeline.draft, is_passed_over: false };
        let read = Envelope::read_until(cursor, &mut drafts, |envelope, cursor, drafts| {
            if passed_over.is_none() && is_passed_over(envelope, cursor.rest()) {
                passed_over = Some(*envelope);
                drafts.is_passed_over = true;
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
    light: &'d mut message::Draft<'v>,
    timeline: &'d mut content::Draft,
    /// Whether the light reading looks away.
    is_passed_over: bool,
}

impl TextSink for Drafts<'_, '_> {
    fn push(&mut self, piece: &[u8]) {
        if !self.is_passed_over {
            TakeContent::result_text(self.light).push(piece);
        }
        TakeContent::result_text(self.timeline).push(piece);
    }

    fn lone_surrogate(&mut self) {
        TakeContent::result_text(self.light).lone_surrogate();
    }
}

impl<'a> TakeContent<'a> for Drafts<'_, '_> {
    type Text = Self;

    fn odd(&mut self, reason: Reason) {
        if !self.is_passed_over {
            self.light.odd(reason);
        }
    }

    fn begin(&mut self) {
        if !self.is_passed_over {
            self.light.begin();
        }
        self.timeline.begin();
    }

    fn string(&mut self, text: RawStr<'a>) {
        if !self.is_passed_over {
            self.light.string(text);
        }
        self.timeline.string(text);
    }

    fn begin_result(&mut self) {
        if !self.is_passed_over {
            self.light.begin_result();
        }
        self.timeline.begin_result();
    }

    fn result_text(&mut self) -> &mut Self {
        self
    }

    fn block(&mut self, block: &Block<'a>) {
        if !self.is_passed_over {
            self.light.block(block);
        }
        self.timeline.block(block);
    }
}
