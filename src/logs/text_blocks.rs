//! The blocks of a record with the texts of results, kept until the record is known to be whole.

use crate::base::json::TextSink;
use crate::logs::content::{BlockFields, TakeContent};

/// Takes blocks with the texts of their results.
pub(super) struct TextBlocks<'a> {
    /// Blocks, each with the texts of its result.
    pub blocks: Vec<(BlockFields<'a>, Vec<Vec<u8>>)>,
    /// Those of the result that is read.
    texts: Vec<Vec<u8>>,
    bytes_max: usize,
}

impl TextBlocks<'_> {
    /// None yet; of each text so many bytes are kept.
    pub fn new(bytes_max: usize) -> Self {
        Self { blocks: Vec::new(), texts: Vec::new(), bytes_max }
    }
}

impl TextSink for TextBlocks<'_> {
    fn push(&mut self, piece: &[u8]) {
        if let Some(text) = self.texts.last_mut() {
            let room = self.bytes_max - text.len();
            text.extend_from_slice(&piece[..room.min(piece.len())]);
        }
    }
}

impl<'a> TakeContent<'a> for TextBlocks<'a> {
    type Text = Self;

    fn begin(&mut self) {
        self.blocks.clear();
    }

    fn begin_result(&mut self) {
        self.texts = vec![Vec::new()];
    }

    fn result_text(&mut self) -> &mut Self {
        self
    }

    fn next_text(&mut self) {
        self.texts.push(Vec::new());
    }

    fn block(&mut self, block: &BlockFields<'a>) {
        self.blocks.push((*block, std::mem::take(&mut self.texts)));
    }
}
