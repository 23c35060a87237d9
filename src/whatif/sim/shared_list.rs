//! A list that stands still, in pieces: those that an earlier one has as well are shared with it. What is kept where chains are
//! forked off one thread is the same list again with a little behind it.

use std::rc::Rc;

/// Elements of a piece: a list that is kept again needs new room for one, and for a pointer to each of the others.
const PIECE: usize = 128;

/// The list.
#[derive(Clone, Debug)]
pub struct SharedList<T>(Vec<Rc<[T]>>);

#[cfg(test)]
thread_local! {
    /// Elements that no earlier list had.
    pub static COPIED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + PartialEq> SharedList<T> {
    /// These elements, with what an earlier list has at the same places.
    pub fn new(elements: &[T], before: Option<&Self>) -> Self {
        let earlier = before.map_or(&[][..], |before| &before.0);
        let piece = |(at, piece): (usize, &[T])| match earlier.get(at).filter(|earlier| earlier[..] == *piece) {
            Some(earlier) => Rc::clone(earlier),
            None => {
                #[cfg(test)]
                COPIED.set(COPIED.get() + piece.len());
                piece.into()
            }
        };
        Self(elements.chunks(PIECE).enumerate().map(piece).collect())
    }

    /// The elements.
    pub fn to_vec(&self) -> Vec<T> {
        self.0.concat()
    }
}
