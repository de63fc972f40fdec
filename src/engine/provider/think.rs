//! Separates reasoning that a model writes at the beginning of its text, in a `<think>` tag, from the answer. Servers
//! that don't know the model's template send both as one text. Pure.

use std::mem::take;

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// The source of such reasoning in [`crate::engine::EngineEvent::Reasoning`].
pub(in crate::engine) const SOURCE: &str = "think";

/// Longest beginning of a text, in bytes, that is held back because the tag may follow.
const HELD_BYTES_MAX: usize = 64;

/// Splits the text of one provider call. Reasoning is never sent back: no server expects it there.
#[derive(Debug, Default)]
pub(in crate::engine) struct ThinkTag {
    place: Place,
    /// A part of a tag, and white space before the first one.
    held: String,
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

/// A part of the text, the reasoning first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Split {
    pub(in crate::engine) reasoning: String,
    pub(in crate::engine) answer: String,
}

impl ThinkTag {
    /// Takes the next piece of the text; returns the part whose kind is certain.
    pub(in crate::engine) fn push(&mut self, piece: String) -> Split {
        let text = if self.held.is_empty() { piece } else { take(&mut self.held) + &piece };
        match self.place {
            Place::Start => self.start(text),
            Place::Opened | Place::Reasoning => self.reasoning(&text),
            Place::Closed => self.closed(&text),
            Place::Answer => Split { answer: text, ..Split::default() },
        }
    }

    /// Returns the held part: other output follows, or the end.
    pub(in crate::engine) fn release(&mut self) -> Split {
        let held = take(&mut self.held);
        match self.place {
            Place::Opened | Place::Reasoning => Split { reasoning: held, ..Split::default() },
            Place::Start if !held.trim_start().is_empty() => {
                self.place = Place::Answer;
                Split { answer: held, ..Split::default() }
            }
            Place::Start | Place::Closed | Place::Answer => {
                Split { answer: held, ..Split::default() }
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
