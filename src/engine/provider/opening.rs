//! How a text begins that arrives in pieces: each of its bytes is looked at once, however much white space
//! there is. Pure.

/// The beginning of one text. The text is given anew each time, with what has come.
#[derive(Debug, Default)]
pub(in crate::engine) struct Opening {
    kind: Kind,
    /// Bytes that have been looked at.
    read_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// Only white space has come.
    #[default]
    Blank,
    /// A list whose first element is not known yet.
    List,
    Object,
    ListOfObjects,
    Other,
}

impl Opening {
    /// Looks at what `text` has more than the last time.
    pub(in crate::engine) fn read(&mut self, text: &[u8]) {
        for byte in text.iter().skip(self.read_bytes) {
            if !matches!(self.kind, Kind::Blank | Kind::List) {
                return;
            }
            self.kind = self.kind.after(*byte);
            self.read_bytes += 1;
        }
    }

    /// It is a JSON object.
    pub(in crate::engine) fn is_object(&self) -> bool {
        self.kind == Kind::Object
    }

    /// It is a JSON object, or a list that can be one of objects.
    pub(in crate::engine) fn is_object_or_list(&self) -> bool {
        matches!(self.kind, Kind::Object | Kind::List | Kind::ListOfObjects)
    }
}

impl Kind {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Blank | Self::List, byte) if byte.is_ascii_whitespace() => self,
            (Self::Blank, b'{') => Self::Object,
            (Self::Blank, b'[') => Self::List,
            (Self::List, b'{') => Self::ListOfObjects,
            (Self::Blank | Self::List, _) => Self::Other,
            (Self::Object | Self::ListOfObjects | Self::Other, _) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_kind_however_they_arrive() {
        for (text, is_object, is_object_or_list) in [
            ("", false, false),
            (" \t\r\n", false, false),
            (" {", true, true),
            ("{]", true, true),
            (" [", false, true),
            ("[ \n", false, true),
            ("[ {", false, true),
            ("[1", false, false),
            ("x{", false, false),
        ] {
            let mut whole = Opening::default();
            whole.read(text.as_bytes());
            let mut single = Opening::default();
            (0..=text.len()).for_each(|end| single.read(&text.as_bytes()[..end]));
            for opening in [whole, single] {
                assert_eq!(opening.is_object(), is_object, "{text:?}");
                assert_eq!(opening.is_object_or_list(), is_object_or_list, "{text:?}");
            }
        }
    }

    /// What was blank is not looked at again: here it would be an object by then.
    #[test]
    fn no_byte_is_read_twice() {
        let mut opening = Opening::default();
        opening.read(b"    ");
        opening.read(b"{{{{ [");
        assert!(!opening.is_object() && opening.is_object_or_list());
        opening.read(b"{{{{ [  {");
        opening.read(b"{{{{ [  {1");
        assert!(opening.is_object_or_list());
    }
}
