//! Secrets: keys, and their removal from text written by others.

mod escapes;
mod forms;
#[cfg(test)]
mod tests;

use escapes::unescaped;

use escapes::ENTITY_BYTES_MAX;
use std::fmt;

/// Replaces a secret.
const REDACTED: &str = "[redacted]";

/// A shorter key, in bytes, may be part of ordinary words: it is only recognized as a whole word, and
/// if it is a word itself, as what people set for servers that need no key, not at all.
const LONE_BYTES_MAX: usize = 7;

/// First characters of the escapes of JSON, URLs and HTML.
const ESCAPE_MARKS: [char; 3] = ['\\', '%', '&'];

/// A key. It is never displayed; only the engine that sends it can read its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The key in `text` without surrounding white space, as a file or a variable may add it;
    /// `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the header that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without this key, and without the user names and passwords of URLs. Case is ignored;
    /// the key is also recognized with its middle masked, and in base64. If it occurs
    /// escaped for JSON, URLs or HTML, the text is returned with all such escapes decoded. A key that
    /// is an ordinary word stays.
    pub(crate) fn redact(&self, text: &str) -> String {
        if is_ordinary_word(&self.0) {
            return without_userinfo(text);
        }
        let redacted = without_forms(&self.0, text);
        let (key, plain) = (unescaped(&self.0), unescaped(&redacted));
        let redacted_plain = without_forms(&key, &plain);
        let has_escaped_key = redacted_plain != plain;
        without_userinfo(if has_escaped_key { &redacted_plain } else { &redacted })
    }

    /// Like [`Secret::redact`], for a truncated text: also without a key that is cut by its end. If
    /// its end may be that of a cut key or escape, the text is returned with all escapes decoded.
    pub(crate) fn redact_cut(&self, text: &str) -> String {
        let redacted = self.redact(text);
        if is_ordinary_word(&self.0) {
            return redacted;
        }
        let (key, plain) = (unescaped(&self.0), unescaped(&redacted));
        let whole = without_open_escapes(&plain);
        let kept = without_beginning(&key, whole);
        let kept = &kept[..kept.len() - forms::begun(&key, kept)];
        if kept.len() == plain.len() { redacted } else { kept.to_owned() }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// `text` without each of `values`, as they are and as Rust quotes them. Unlike a key, any value that is not blank is
/// removed, however short.
pub(crate) fn without_values<'v>(text: &str, values: impl Iterator<Item = &'v str>) -> String {
    let mut values: Vec<_> = values.map(str::trim).filter(|value| !value.is_empty()).collect();
    // A value may be part of another one.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.into_iter().fold(text.to_owned(), |text, value| {
        let quoted = format!("{value:?}");
        text.replace(&quoted[1..quoted.len() - 1], REDACTED).replace(value, REDACTED)
    })
}

/// `text` without the userinfo of the URLs in it (RFC 3986, section 3.2.1).
pub(crate) fn without_userinfo(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(colon) = rest.find("://") {
        let (before, after) = rest.split_at(colon + "://".len());
        kept += before;
        let authority = after.find(ends_authority).map_or(after, |end| &after[..end]);
        let userinfo_bytes = authority.rfind('@').map_or(0, |at| at + 1);
        rest = &after[userinfo_bytes..];
    }
    kept + rest
}

fn ends_authority(c: char) -> bool {
    matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`') || c.is_whitespace()
}

fn without_forms(key: &str, text: &str) -> String {
    let text = without(&whole(key, text), text);
    let text = without(&forms::encoded(key, &text), &text);
    let masked = forms::masked(&key.to_ascii_lowercase(), &text.to_ascii_lowercase());
    without(&masked, &text)
}

/// `text` with each of `places` redacted: ranges of bytes, ordered and disjoint.
fn without(places: &[(usize, usize)], text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, end) in places {
        kept += &text[rest..*start];
        kept += REDACTED;
        rest = *end;
    }
    kept + &text[rest..]
}

/// The places of `text` that hold the whole `key`, ignoring case.
fn whole(key: &str, text: &str) -> Vec<(usize, usize)> {
    let is_lone = |start: usize, end: usize| {
        !text[..start].ends_with(is_in_word) && !text[end..].starts_with(is_in_word)
    };
    // Positions stay the same, as only ASCII changes.
    let (key, lower) = (key.to_ascii_lowercase(), text.to_ascii_lowercase());
    let found = lower.match_indices(&key).map(|(start, found)| (start, start + found.len()));
    found.filter(|(start, end)| key.len() > LONE_BYTES_MAX || is_lone(*start, *end)).collect()
}

/// `text` without a beginning of `key` at its end, ignoring case.
fn without_beginning<'a>(key: &str, text: &'a str) -> &'a str {
    let mut beginnings = key.char_indices().rev().map(|(end, _)| &key[..end]);
    let cut = beginnings.find_map(|beginning| {
        let start = text.len().checked_sub(beginning.len())?;
        let end = text.get(start..)?;
        (!beginning.is_empty() && end.eq_ignore_ascii_case(beginning)).then_some(start)
    });
    cut.map_or(text, |start| &text[..start])
}

/// `text` without what may be cut at its end: escapes, which may be nested, and half
/// a character.
fn without_open_escapes(text: &str) -> &str {
    let mut kept = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    while let Some(at) = kept.rfind(ESCAPE_MARKS)
        && kept.len() - at < ENTITY_BYTES_MAX
        && kept[at + 1..].chars().all(|c| c.is_ascii_alphanumeric() || c == '#')
    {
        kept = &kept[..at];
    }
    kept
}

/// Whether `key` is as short as a word and written like one: letters alone, in lower case, in upper
/// case, or with a capital. A key that a program has made has digits or letters of both cases.
fn is_ordinary_word(key: &str) -> bool {
    let rest = key.get(1..).unwrap_or_default();
    let has_letters_alone = key.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_in_one_case = |text: &str, is_case: fn(&u8) -> bool| text.as_bytes().iter().all(is_case);
    key.len() <= LONE_BYTES_MAX
        && has_letters_alone
        && (is_in_one_case(rest, u8::is_ascii_lowercase)
            || is_in_one_case(key, u8::is_ascii_uppercase))
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}
