//! The lines that can be quoted from a body, packed: a body has as many of them as lines, nearly all are shown by every
//! encoding, and most are never quoted.

/// A line that can be quoted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Hash of the line, white space around it left out. For counting: two lines may share one.
    pub hash: u32,
    /// The formats whose encoding does not show the line as it is, one bit each by number in the register.
    pub lost_in: u32,
}

/// The lines of one body, by hash.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LineHashes {
    hashes: Box<[u32]>,
    /// Which of them some formats lose, in their order, and those formats.
    lost: Box<[(u32, u32)]>,
}

impl LineHashes {
    /// The lines with these hashes, of which nothing is lost.
    pub fn of_hashes(hashes: impl Iterator<Item = u32>) -> Self {
        Self { hashes: hashes.collect(), lost: Box::default() }
    }

    /// Their hashes.
    pub fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Text> {
        let mut lost = self.lost.iter().peekable();
        (0..).zip(&self.hashes).map(move |(place, &hash)| {
            let lost_in = lost.next_if(|(at, _)| *at == place).map_or(0, |&(_, formats)| formats);
            Text { hash, lost_in }
        })
    }

    /// The places of the lines that a format loses, in their order.
    pub fn lost_in(&self, format: u8) -> impl Iterator<Item = u32> {
        self.lost.iter().filter(move |(_, formats)| formats >> format & 1 == 1).map(|&(place, _)| place)
    }

    /// Notes what a format loses, by places in any order; a place beyond the lines is none.
    pub fn lose(&mut self, format: u8, places: impl Iterator<Item = u32>) {
        let mut all = std::mem::take(&mut self.lost).into_vec();
        all.extend(places.filter(|&place| (place as usize) < self.hashes.len()).map(|place| (place, 1 << format)));
        all.sort_unstable_by_key(|(place, _)| *place);
        all.dedup_by(|next, one| {
            let same = next.0 == one.0;
            one.1 |= if same { next.1 } else { 0 };
            same
        });
        self.lost = all.into();
    }
}

impl FromIterator<Text> for LineHashes {
    fn from_iter<I: IntoIterator<Item = Text>>(texts: I) -> Self {
        let texts = texts.into_iter();
        let (mut hashes, mut lost) = (Vec::with_capacity(texts.size_hint().0), Vec::new());
        for (place, Text { hash, lost_in }) in (0..).zip(texts) {
            hashes.push(hash);
            lost.extend((lost_in != 0).then_some((place, lost_in)));
        }
        Self { hashes: hashes.into(), lost: lost.into() }
    }
}
