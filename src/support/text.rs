//! Shared text: it grows in one place, and clones of it cost nothing.

use serde::{Serialize, Serializer};
use std::ops::Deref;
use std::sync::Arc;

/// Text whose clones share one buffer. Appending to it copies the buffer only if it is shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Text(Arc<String>);

impl Text {
    /// Appends `piece`.
    pub(crate) fn push_str(&mut self, piece: &str) {
        Arc::make_mut(&mut self.0).push_str(piece);
    }

    /// The bytes of the text, in the buffer that its clones share.
    pub(crate) fn shared(&self) -> Arc<dyn AsRef<[u8]> + Send + Sync> {
        self.0.clone()
    }

    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_the_buffer_and_does_not_change_with_the_original() {
        let mut text = Text::from("half");
        let half = text.clone();
        assert_eq!(half.as_ptr(), text.as_ptr());
        text.push_str(" and half");
        assert_eq!((half.as_str(), text.as_str()), ("half", "half and half"));
    }

    #[test]
    fn text_that_is_not_shared_grows_in_place() {
        let mut text = Text::from(String::with_capacity(100));
        let buffer = text.as_ptr();
        text.push_str("piece");
        assert_eq!(text.as_ptr(), buffer);
    }
}
