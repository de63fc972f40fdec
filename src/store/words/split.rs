//! Splits texts into words, so that a word is found however it is written: in another case, with or
//! without accents, in full-width letters, and with characters in it that nobody sees. Pure.
//!
//! Some scripts have no spaces between words, and what is one depends on what is meant. Of those each
//! letter is a word, and a word that is searched is a sequence of them.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Where it is in the text, in bytes.
    pub(super) start: usize,
    pub(super) end: usize,
    /// What it is searched by.
    pub(super) term: String,
}

/// `text` with composed characters, as [`split`] wants it: an accent is a part of its letter, and the
/// parts of a Korean syllable are one.
pub(super) fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// The words of a text that is [`composed`], in order.
pub(super) fn split(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    // A letter right after the last word may belong to it.
    let mut is_open = false;
    for (start, char) in text.char_indices() {
        let end = start + char.len_utf8();
        if is_hidden(char) {
            continue;
        }
        let term = folded(char);
        let is_mark = is_combining_mark(char) || is_sound_mark(char);
        if term.is_empty() && !is_mark {
            is_open = false;
            continue;
        }
        let stands_alone = has_no_spaces(char);
        match words.last_mut() {
            Some(word) if is_open && (is_mark || !stands_alone && !is_alone(word)) => {
                word.term += &term;
                word.end = end;
            }
            Some(_) | None if is_mark => is_open = false,
            Some(_) | None => {
                words.push(Word { start, end, term });
                is_open = true;
            }
        }
    }
    for word in &mut words {
        // A mark that stood on its own is a part of its letter now.
        word.term = word.term.nfc().collect();
    }
    words.retain(|word| !word.term.is_empty());
    words
}

/// A character without case, accents, strokes and style; nothing if it is no part of a word.
fn folded(char: char) -> String {
    let plain = char.nfkd().filter(|char| !is_accent(*char));
    let upper: String = plain.flat_map(char::to_uppercase).collect();
    let lower: String = upper.chars().flat_map(char::to_lowercase).collect();
    let mut letters = String::with_capacity(lower.len());
    for char in lower.chars() {
        match unstroked(char) {
            "" => letters.push(char),
            plain => letters.push_str(plain),
        }
    }
    let letters = letters.chars();
    letters.filter(|char| char.is_alphanumeric() || is_combining_mark(*char)).nfc().collect()
}

/// The letters without a stroke, or apart, of a letter that Unicode does not decompose; nothing for others.
fn unstroked(lower: char) -> &'static str {
    match lower {
        'đ' => "d",
        'ħ' => "h",
        'ł' => "l",
        'ø' => "o",
        'ŧ' => "t",
        'æ' => "ae",
        'œ' => "oe",
        _ => "",
    }
}

/// A mark that changes how a letter is spoken, and not which one it is: those of Unicode's combining
/// classes for marks above, below and around a letter. The vowels and the marks of Indian and Japanese
/// scripts have other classes.
fn is_accent(char: char) -> bool {
    !matches!(canonical_combining_class(char), 0 | 7 | 8 | 9)
}

/// The half-width marks of Japanese, which are letters to Unicode.
fn is_sound_mark(char: char) -> bool {
    matches!(char, '\u{ff9e}' | '\u{ff9f}')
}

/// A character that is not shown, and may stand in the middle of a word: soft hyphens, joiners, spaces
/// without width, marks of direction, variants.
fn is_hidden(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the word is a letter that stands alone.
fn is_alone(word: &Word) -> bool {
    word.term.chars().next().is_some_and(has_no_spaces)
}

/// A letter of a script that has no spaces between words, or, as Korean, writes particles together with
/// them: Thai, Lao, Burmese, Khmer, Korean, Japanese and Chinese.
pub(super) fn has_no_spaces(char: char) -> bool {
    matches!(char,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}'
        | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{aa60}'..='\u{aa7f}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{1b000}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        split(&composed(text)).into_iter().map(|word| word.term).collect()
    }

    #[test]
    fn a_word_is_the_same_however_it_is_written() {
        for (one, other) in [
            ("Größe", "GROSSE"),
            ("café", "cafe\u{301}"),
            ("CAFÉ", "cafe"),
            ("ậ", "a"),
            ("Đặng", "dang"),
            ("ŁÓDŹ", "lodz"),
            ("Ǿresund", "oresund"),
            ("Ħal", "hal"),
            ("Ærø", "aero"),
            ("cœur", "COEUR"),
            ("ΣΊΣΥΦΟΣ", "σισυφος"),
            ("Ёлка", "елка"),
            ("ｄｕｏｌｏｇｕｅ", "duologue"),
            ("ﬁnd", "FIND"),
            ("dona\u{ad}u", "donau"),
            ("zero\u{200b}width", "zerowidth"),
            ("join\u{200d}er\u{fe0f}", "joiner"),
            ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ("ガス", "ｶﾞｽ"),
            ("ガス", "カ\u{3099}ス"),
            ("שָׁלוֹם", "שלום"),
            ("ที่", "ท\u{e35}"),
        ] {
            assert_eq!(terms(one), terms(other), "{one} {other}");
        }
        for (one, other) in [("ガス", "カス"), ("हिन्दी", "हन्द"), ("a", "b"), ("東", "京")]
        {
            assert_ne!(terms(one), terms(other), "{one} {other}");
        }
    }

    #[test]
    fn each_letter_of_a_script_without_spaces_is_a_word() {
        for (text, expected) in [
            ("one two", &["one", "two"][..]),
            ("東京tower", &["東", "京", "tower"]),
            ("GPT模型2", &["gpt", "模", "型", "2"]),
            ("서울에서", &["서", "울", "에", "서"]),
            ("snake_case x.y", &["snake", "case", "x", "y"]),
            ("हिन्दी", &["हिन्दी"]),
            ("naïve, ☃ \u{301}x", &["naive", "x"]),
            ("", &[]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_knows_its_place() {
        let text = composed("Ein e\u{301}t\u{ad}é, 東");
        let places = split(&text).into_iter().map(|word| text[word.start..word.end].to_owned());
        assert_eq!(places.collect::<Vec<_>>(), ["Ein", "ét\u{ad}é", "東"]);
    }
}
