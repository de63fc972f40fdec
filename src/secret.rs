//! What must never be shown: a key, and the same key inside text that others wrote.

#[cfg(test)]
mod tests;

use std::fmt;

/// Stands where a secret was.
const REDACTED: &str = "[redacted]";

/// A key of fewer bytes may be a part of ordinary words: it is taken for the key only where it
/// stands alone.
const LONE_BYTES_MAX: usize = 7;

/// Begin the escapes of JSON, URLs and HTML.
const ESCAPE_MARKS: [char; 3] = ['\\', '%', '&'];

/// Bytes of the longest escape that is known here: `&#x00002f;`, and more zeros than anyone writes.
const ENTITY_BYTES_MAX: usize = 12;

/// A key. Shows itself to nobody: its text leaves only by [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The key in `text` without the white space around it, as a file or a variable may add it;
    /// `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the one header it is meant for.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without this key, and without the user names and passwords of URLs. If the key is in
    /// it in a spelling of JSON, URLs or HTML, the text comes back with all such escapes undone.
    pub fn redact(&self, text: &str) -> String {
        let redacted = without(&self.0, text);
        let (key, plain) = (unescaped(&self.0), unescaped(&redacted));
        let redacted_plain = without(&key, &plain);
        let has_escaped_key = redacted_plain != plain;
        without_userinfo(if has_escaped_key { &redacted_plain } else { &redacted })
    }

    /// As [`Secret::redact`], for a text that broke off: also without a key that its end has cut. If
    /// its end may be that of a cut key or escape, the text comes back with all escapes undone.
    pub fn redact_cut(&self, text: &str) -> String {
        let redacted = self.redact(text);
        let (key, plain) = (unescaped(&self.0), unescaped(&redacted));
        let kept = without_beginning(&key, without_open_escapes(&plain));
        if kept.len() == plain.len() { redacted } else { kept.to_owned() }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// `text` without the userinfo of the URLs in it (RFC 3986, section 3.2.1).
pub fn without_userinfo(text: &str) -> String {
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

/// `text` with every `key` redacted.
fn without(key: &str, text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, found) in text.match_indices(key) {
        let end = at + found.len();
        let is_part = text[..at].ends_with(is_in_word) || text[end..].starts_with(is_in_word);
        if key.len() <= LONE_BYTES_MAX && is_part {
            continue;
        }
        kept += &text[rest..at];
        kept += REDACTED;
        rest = end;
    }
    kept + &text[rest..]
}

/// `text` without the beginning of `key` that it ends in.
fn without_beginning<'a>(key: &str, text: &'a str) -> &'a str {
    let beginnings = key.char_indices().rev().map(|(end, _)| &key[..end]);
    beginnings.into_iter().find_map(|beginning| text.strip_suffix(beginning)).unwrap_or(text)
}

/// `text` without what its end may have cut: escapes, of which one may stand in another, and half
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

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// `text` with the escapes of JSON, URLs and HTML for ASCII undone, however often they were done:
/// all spellings of a text give the same one here, and so does that one itself.
pub fn unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        plain.push(byte);
        // What an escape stands for may end another.
        while let Some((escape_bytes, byte)) = last_escape(&plain) {
            plain.truncate(plain.len() - escape_bytes);
            plain.push(byte);
        }
    }
    // Only ASCII was taken out, and only ASCII put in.
    String::from_utf8_lossy(&plain).into_owned()
}

/// The escape that `text` ends in: its length and what it stands for.
fn last_escape(text: &[u8]) -> Option<(usize, u8)> {
    match text {
        [.., b'\\', b'u'] => None,
        [.., b'\\', b'b' | b'f' | b'n' | b'r' | b't'] => Some((2, b' ')),
        [.., b'\\', c] if c.is_ascii() => Some((2, *c)),
        [.., b';'] => last_entity(text),
        _ => last_hex(text, b"%", 2).or_else(|| last_hex(text, b"\\u", 4)),
    }
}

fn last_hex(text: &[u8], mark: &[u8], digits: usize) -> Option<(usize, u8)> {
    let (before, hex) = text.split_at_checked(text.len().checked_sub(digits)?)?;
    let byte = if before.ends_with(mark) { ascii(hex, 16)? } else { return None };
    Some((mark.len() + digits, byte))
}

fn last_entity(text: &[u8]) -> Option<(usize, u8)> {
    let near = &text[text.len().saturating_sub(ENTITY_BYTES_MAX)..];
    let entity = &near[near.iter().rposition(|byte| *byte == b'&')?..];
    let byte = match entity {
        [b'&', b'#', b'x' | b'X', hex @ .., b';'] => ascii(hex, 16)?,
        [b'&', b'#', decimal @ .., b';'] => ascii(decimal, 10)?,
        b"&amp;" => b'&',
        b"&lt;" => b'<',
        b"&gt;" => b'>',
        b"&quot;" => b'"',
        b"&apos;" => b'\'',
        _ => return None,
    };
    Some((entity.len(), byte))
}

fn ascii(digits: &[u8], radix: u32) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, radix).ok().filter(u8::is_ascii)
}
