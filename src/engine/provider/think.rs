//! Separates reasoning that a model writes at the beginning of its text, in a `<think>` tag, from the answer. Servers
//! that don't know the model's template send both as one text. Pure.

use super::provider_data::DATA_BYTES_MAX;
use std::borrow::Cow;
use std::mem::take;

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// The source of such reasoning in [`crate::engine::EngineEvent::Reasoning`].
pub(in crate::engine) const SOURCE: &str = "think";

/// Longest beginning of a text, in bytes, that is held back because the tag may follow.
const HELD_BYTES_MAX: usize = 64;

/// Splits the text of one provider call.
#[derive(Debug, Default)]
pub(in crate::engine) struct ThinkTag {
    place: Place,
    /// A part of a tag, and white space before the first one.
    held: String,
    /// The text before the answer, as it came. It is not added to once it is longer than [`DATA_BYTES_MAX`].
    beginning: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the first word.
    #[default]
    Start,
    /// In the tag, before the first word.
    Opened,
    Reasoning,
    /// After the tag, before the first word.
    Closed,
    Answer,
}

/// An answer's text after `beginning`, that of [`ThinkTag::take_beginning`].
pub(in crate::engine) fn with_beginning(beginning: String, text: &str) -> Cow<'_, str> {
    if beginning.is_empty() { text.into() } else { (beginning + text).into() }
}

/// A part of the text, the reasoning first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Split {
    pub(in crate::engine) reasoning: String,
    pub(in crate::engine) answer: String,
}

impl ThinkTag {
    /// Takes the next piece of the text; returns the part whose kind is certain.
    pub(in crate::engine) fn push(&mut self, piece: String) -> Split {
        let is_kept = self.place != Place::Answer && self.beginning.len() <= DATA_BYTES_MAX;
        if is_kept {
            self.beginning += &piece;
        }
        let text = if self.held.is_empty() { piece } else { take(&mut self.held) + &piece };
        let split = match self.place {
            Place::Start => self.start(text),
            Place::Opened | Place::Reasoning => self.reasoning(&text),
            Place::Closed => self.closed(&text),
            Place::Answer => Split { answer: text, ..Split::default() },
        };
        if is_kept {
            // The answer is the end of what has come.
            self.beginning.truncate(self.beginning.len().saturating_sub(split.answer.len()));
        }
        split
    }

    /// No tag is looked for any more, unless one has come: the server separates reasoning itself, and leaves none in
    /// the text. Returns the held part.
    pub(in crate::engine) fn off(&mut self) -> Split {
        if self.place == Place::Start {
            self.place = Place::Answer;
            self.beginning.clear();
        }
        self.release()
    }

    /// Returns the held part: other output follows, or the end.
    pub(in crate::engine) fn release(&mut self) -> Split {
        let held = take(&mut self.held);
        match self.place {
            Place::Opened | Place::Reasoning => Split { reasoning: held, ..Split::default() },
            Place::Start if !held.trim_start().is_empty() => {
                self.place = Place::Answer;
                self.beginning.clear();
                Split { answer: held, ..Split::default() }
            }
            Place::Start => {
                self.beginning.clear();
                Split { answer: held, ..Split::default() }
            }
            Place::Closed | Place::Answer => Split { answer: held, ..Split::default() },
        }
    }

    /// Takes the tag and its reasoning as they came, with the white space around them, closed if the model did not
    /// close it: what stands before the answer when it is sent back. Empty without a tag, and if it is too long.
    pub(in crate::engine) fn take_beginning(&mut self) -> String {
        let mut beginning = take(&mut self.beginning);
        if beginning.len() > DATA_BYTES_MAX {
            return String::new();
        }
        match self.place {
            Place::Opened | Place::Reasoning if !beginning.is_empty() => beginning += CLOSING,
            Place::Start | Place::Opened | Place::Reasoning | Place::Closed | Place::Answer => {}
        }
        beginning
    }

    /// Takes a whole text whose tag was never closed, after its end: if the model had nothing else to say, it spoke
    /// of the tag. Empty if the text is another one, and if it is too long.
    pub(in crate::engine) fn take_unclosed(&mut self) -> String {
        match self.place {
            Place::Reasoning if self.beginning.len() <= DATA_BYTES_MAX => take(&mut self.beginning),
            Place::Start | Place::Opened | Place::Reasoning | Place::Closed | Place::Answer => {
                String::new()
            }
        }
    }

    /// Bytes that are held back.
    pub(in crate::engine) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Whether the held part is answer unless a tag follows.
    pub(in crate::engine) fn holds_answer(&self) -> bool {
        self.place == Place::Start && !self.held.is_empty()
    }

    fn start(&mut self, text: String) -> Split {
        let words = text.trim_start();
        if let Some(rest) = words.strip_prefix(OPENING) {
            self.place = Place::Opened;
            return self.reasoning(rest);
        }
        if OPENING.starts_with(words) && text.len() <= HELD_BYTES_MAX {
            self.held = text;
            return Split::default();
        }
        self.place = Place::Answer;
        Split { answer: text, ..Split::default() }
    }

    fn reasoning(&mut self, text: &str) -> Split {
        // A model that does not reason may still write the tag, with nothing but white space in it.
        let text = if self.place == Place::Opened { text.trim_start() } else { text };
        if let Some((reasoning, rest)) = text.split_once(CLOSING) {
            let answer = self.closed(rest).answer;
            return Split { reasoning: reasoning.to_owned(), answer };
        }
        if !text.is_empty() {
            self.place = Place::Reasoning;
        }
        let part = |bytes: &usize| text.ends_with(&CLOSING[..*bytes]);
        let held_bytes = (1..CLOSING.len()).rev().find(part).unwrap_or(0);
        let (reasoning, held) = text.split_at(text.len() - held_bytes);
        self.held = held.to_owned();
        Split { reasoning: reasoning.to_owned(), ..Split::default() }
    }

    fn closed(&mut self, text: &str) -> Split {
        let answer = text.trim_start();
        self.place = if answer.is_empty() { Place::Closed } else { Place::Answer };
        Split { answer: answer.to_owned(), ..Split::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let mut tag = ThinkTag::default();
        let mut splits: Vec<Split> =
            pieces.iter().map(|piece| tag.push((*piece).to_owned())).collect();
        splits.push(tag.release());
        assert_eq!(tag.release(), Split::default(), "nothing is held any more");
        let reasoning = splits.iter().map(|split| split.reasoning.as_str()).collect();
        (reasoning, splits.iter().map(|split| split.answer.as_str()).collect())
    }

    /// The state after `text`, which came character by character if it is short, and its end.
    fn pushed(text: &str) -> ThinkTag {
        let mut tag = ThinkTag::default();
        match text.len() < HELD_BYTES_MAX {
            true => text.chars().for_each(|piece| drop(tag.push(piece.into()))),
            false => drop(tag.push(text.to_owned())),
        }
        tag.release();
        tag
    }

    /// The text is split so, whole, cut at every character, and character by character.
    #[track_caller]
    fn check(text: &str, reasoning: &str, answer: &str) {
        let expected = (reasoning.to_owned(), answer.to_owned());
        assert_eq!(split(&[text]), expected, "{text:?}");
        for (at, _) in text.char_indices() {
            let (left, right) = text.split_at(at);
            assert_eq!(split(&[left, right]), expected, "{left:?} {right:?}");
        }
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert_eq!(split(&pieces), expected, "{text:?} character by character");
    }

    #[test]
    fn a_tag_at_the_beginning_is_reasoning_however_it_is_cut() {
        check("<think>hm</think>a", "hm", "a");
        check(
            "\n <think>\nh\u{e9} <b> </thin \n</think>\n\n\u{e9} b\n",
            "h\u{e9} <b> </thin \n",
            "\u{e9} b\n",
        );
        check("<think>\n\n</think>\n\na", "", "a");
        check("<think></think>a</think><think>b", "", "a</think><think>b");
    }

    #[test]
    fn an_open_tag_is_reasoning_to_the_end() {
        check("<think>\nhm </thi", "hm </thi", "");
        check("<think>", "", "");
        check("<think>hm</think>\n", "hm", "");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in ["", "a", " \n a <think>b</think>", "<thinking>a", "<th", " \n", "</think>a"] {
            check(text, "", text);
        }
        let blank = "\n".repeat(2 * HELD_BYTES_MAX);
        check(&blank, "", &blank);
    }

    #[test]
    fn what_stands_before_the_answer_is_kept_as_it_came() {
        for (text, beginning, unclosed) in [
            ("\n<think>\nhm \n</think>\n\na", "\n<think>\nhm \n</think>\n\n", ""),
            ("<think></think>", "<think></think>", ""),
            ("<think>hm </th", "<think>hm </th</think>", "<think>hm </th"),
            ("<think> ", "<think> </think>", ""),
            ("a <think>b</think>", "", ""),
            ("<thi", "", ""),
            (" ", "", ""),
        ] {
            assert_eq!(pushed(text).take_beginning(), beginning, "{text:?}");
            assert_eq!(pushed(text).take_unclosed(), unclosed, "{text:?}");
        }
        let long = format!("<think>{}", "x".repeat(DATA_BYTES_MAX));
        assert_eq!(pushed(&long).take_beginning(), "");
        assert_eq!(pushed(&long).take_unclosed(), "");
        assert_eq!(pushed(&(long + "</think>a")).take_beginning(), "");
    }

    #[test]
    fn no_tag_is_looked_for_where_the_server_separates_reasoning() {
        let mut tag = ThinkTag::default();
        assert_eq!(tag.push("\n<thi".to_owned()), Split::default());
        assert_eq!(tag.off().answer, "\n<thi");
        assert_eq!(tag.push("<think>a".to_owned()).answer, "<think>a");
        assert_eq!((tag.take_beginning(), tag.take_unclosed()), (String::new(), String::new()));
        // What has come stays what it is.
        let mut tag = pushed("<think>h");
        assert_eq!(tag.off(), Split::default());
        assert_eq!(tag.push("m</think>a".to_owned()).reasoning, "m");
    }

    #[test]
    fn text_is_held_back_for_a_tag_only() {
        let mut tag = ThinkTag::default();
        assert_eq!(tag.push("<thi".to_owned()), Split::default());
        assert!(tag.holds_answer() && tag.held_bytes() == 4);
        assert_eq!(tag.push("nk>hm <".to_owned()).reasoning, "hm ");
        assert!(!tag.holds_answer() && tag.held_bytes() == 1);
        assert_eq!(tag.push("b".to_owned()).reasoning, "<b");
        assert_eq!(tag.push("</think>a<".to_owned()).answer, "a<");
    }
}
