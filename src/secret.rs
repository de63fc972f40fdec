//! What must never be shown: a key, and the same key inside text that others wrote.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_trimmed_and_shows_itself_to_nobody() {
        let secret = Secret::new(" sk-abc\n").expect("not empty");
        assert_eq!(secret.expose(), "sk-abc");
        assert_eq!(format!("{secret:?}"), "Secret([redacted])");
        assert_eq!(Secret::new(" \n"), None);
    }

    #[test]
    fn text_of_others_loses_the_key_and_every_userinfo() {
        let check = |text: &str, redacted: &str| {
            let secret = Secret::new("sk-abcdef").expect("not empty");
            assert_eq!(secret.redact(text), redacted);
        };
        check("nothing here", "nothing here");
        check("bad key sk-abcdef, sk-abcdefg", "bad key [redacted], [redacted]g");
        check("http://u:p@host/a@b and https://h", "http://host/a@b and https://h");
        check("a://sk-abcdef@h b://u@v@h?x c://", "a://h b://h?x c://");
        check("http://u:\u{e9}@h", "http://h");
    }

    #[test]
    fn a_short_key_is_no_part_of_a_word() {
        let check = |key: &str, text: &str, redacted: &str| {
            assert_eq!(Secret::new(key).expect("not empty").redact(text), redacted, "{key}");
        };
        check("e", "the answer", "the answer");
        check("e", "bad key e, \"e\" e", "bad key [redacted], \"[redacted]\" [redacted]");
        check("ollama", "ollama-server, ollama.", "ollama-server, [redacted].");
        check("ollama", r#"{"key":"\nollama"#, "{\"key\":\" [redacted]");
        check("7-bytes", "77-bytes", "77-bytes");
        check("8--bytes", "88--bytes", "8[redacted]");
    }

    const ODD_KEYS: [&str; 6] =
        ["sk/ab\"cd+ef==", r"sk\ab\\cd", "sk%41%2541%", "a&amp;b<c>'d", "sk ab", "%u\\%;&#"];

    /// The spellings of `text` that servers and proxies have for it.
    fn spellings(text: &str) -> Vec<String> {
        let each = |spell: &dyn Fn(char) -> String| text.chars().map(spell).collect::<String>();
        let is_plain = |c: char| c.is_alphanumeric() || "-._~".contains(c);
        let json = serde_json::Value::from(text).to_string();
        let json = json[1..json.len() - 1].to_owned();
        vec![
            json.replace('/', r"\/"),
            json,
            each(&|c| if is_plain(c) { c.into() } else { format!("\\u{:04x}", u32::from(c)) }),
            each(&|c| if is_plain(c) { c.into() } else { format!("\\u{:04X}", u32::from(c)) }),
            each(&|c| if is_plain(c) { c.into() } else { format!("%{:02x}", u32::from(c)) }),
            each(&|c| if is_plain(c) { c.into() } else { format!("%{:02X}", u32::from(c)) }),
            each(&|c| if is_plain(c) { c.into() } else { format!("&#{};", u32::from(c)) }),
            each(&|c| if is_plain(c) { c.into() } else { format!("&#x{:X};", u32::from(c)) }),
            text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
        ]
    }

    #[test]
    fn a_key_is_known_in_every_spelling_of_a_spelling() {
        for key in ODD_KEYS {
            let secret = Secret::new(key).expect("not empty");
            let all: String = key.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
            assert_eq!(secret.redact(&all), "[redacted]", "{key}");
            for once in spellings(key) {
                for twice in spellings(&once) {
                    for text in [&once, &twice] {
                        let redacted = secret.redact(&format!("key ({text})."));
                        assert_eq!(redacted, "key ([redacted]).", "{key} as {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_key_that_is_cut_is_known_in_every_spelling_of_a_spelling() {
        for key in ODD_KEYS {
            let secret = Secret::new(key).expect("not empty");
            for once in spellings(key) {
                for text in spellings(&once) {
                    for (end, _) in text.char_indices() {
                        let redacted = secret.redact_cut(&format!("({key}) ({}", &text[..end]));
                        // A spelling may be whole before its end.
                        let rest = redacted.strip_prefix("([redacted]) (");
                        assert!(matches!(rest, Some("" | "[redacted]")), "{key}: {redacted}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_cut_text_stays_where_no_key_begins() {
        let check = |text: &str, redacted: &str| {
            let secret = Secret::new("sk-abcdef").expect("not empty");
            assert_eq!(secret.redact_cut(text), redacted);
        };
        check("", "");
        check(r"a\/b sk-abcdef", r"a\/b [redacted]");
        check("it failed: sk-ab, then", "it failed: sk-ab, then");
        check("100% sure that & why", "100% sure that & why");
        check("sk-abcde", "");
        check("ends", "end");
        check("sk-a\u{FFFD}", "");
    }

    #[test]
    fn escapes_stay_where_no_key_is() {
        let secret = Secret::new("sk-abcdef").expect("not empty");
        for text in
            [r#"{"a\/b":"\u0041%41\\&amp;"}"#, "%", "100%zz", r"\u12", "&;", "&#;", "&#x+1;"]
        {
            assert_eq!(secret.redact(text), text);
        }
        assert_eq!(unescaped("\u{e9}\\\u{e9}%c3%e9"), "\u{e9}\\\u{e9}%c3%e9");
    }
}
