//! What was last made of a text, so that the text that stands on nearly every line is hashed once.

/// Remembers what was last made of a text: the same session and directory stand on nearly every line.
#[derive(Default)]
pub struct Memo<T> {
    text: Vec<u8>,
    made: Option<T>,
}

impl<T: Copy> Memo<T> {
    /// What `make` makes of the text.
    pub fn get(&mut self, text: &[u8], make: impl FnOnce(&[u8]) -> T) -> T {
        match self.made {
            Some(made) if self.text == text => made,
            _ => {
                self.text.clear();
                self.text.extend_from_slice(text);
                *self.made.insert(make(text))
            }
        }
    }
}
